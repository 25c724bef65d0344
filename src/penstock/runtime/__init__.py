"""How do I push batches into it? The embedded join."""

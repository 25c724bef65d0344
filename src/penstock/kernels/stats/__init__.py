"""How often keys and values come, learned as they do."""

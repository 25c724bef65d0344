"""What must hold of a combination of tuples: read from SQL text, from functions, and from keys."""

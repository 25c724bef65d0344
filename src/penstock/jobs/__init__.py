"""Jobs: a join over sources, declared as data."""

"""The columns of tuples beside the arena, by the way their type is kept."""

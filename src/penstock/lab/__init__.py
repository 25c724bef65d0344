"""What could have been, and what did the papers find? Imported when it is asked for."""

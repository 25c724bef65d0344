"""Files in and out: formats, readers, writers, and files as streams of a join."""

"""What is a join? Streams, windows, queries and plans: pure data, no numba."""

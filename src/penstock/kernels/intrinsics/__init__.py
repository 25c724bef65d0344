"""Single instructions that numba has no word for."""

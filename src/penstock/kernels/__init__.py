"""The compiled inside: all code that numba compiles, and nothing else."""

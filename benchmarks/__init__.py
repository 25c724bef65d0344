"""How fast, how big, how steady: `python -m benchmarks`. docs/benchmarks.md explains them."""

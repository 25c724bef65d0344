"""A bucket and what Spark keeps of it: segments and manifest, and the windows between batches."""

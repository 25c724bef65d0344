"""Across machines? The join on Spark Structured Streaming; the only importer of pyspark."""

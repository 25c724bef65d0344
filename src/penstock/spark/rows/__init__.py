"""Rows on their way to a bucket and back: packed into blobs, and unpacked."""

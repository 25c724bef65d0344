"""The indexes, each behind the same verbs."""

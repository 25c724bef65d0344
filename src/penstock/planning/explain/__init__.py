"""A plan that a person can read: what it costs, what else there is, and where it would change."""

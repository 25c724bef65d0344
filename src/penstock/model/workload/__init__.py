"""What is known of the streams of a query, for a planner."""

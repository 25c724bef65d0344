"""Planning: what a join costs each way it could be evaluated, and which way is the cheapest."""

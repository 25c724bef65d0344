"""Why did these tuples join, or not? Their windows, their keys, their predicates, what was shed."""

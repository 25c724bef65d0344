"""What punctuations need of compiled code: rows of closed keys, live tuples of a key."""

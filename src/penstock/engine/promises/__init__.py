"""What punctuations let a join forget: flags of keys, when to look at them, what follows."""

"""What happens on arrival? Release, probe, verify, emit, insert, expire."""

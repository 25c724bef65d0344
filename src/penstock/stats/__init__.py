"""What streams are like: how often keys and values come, learned as they do."""

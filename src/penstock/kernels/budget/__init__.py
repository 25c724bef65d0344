"""What a join under limits does beside: worth, victims, ghosts, service."""

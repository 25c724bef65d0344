"""What the papers compare: their strategies, their rules for orders, where choices change."""

"""What commands show: consoles, progress, tables and small pictures."""

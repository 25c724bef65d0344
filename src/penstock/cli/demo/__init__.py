"""The demo: its join, its runs and what it shows."""

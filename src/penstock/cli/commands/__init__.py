"""The commands as typer sees them: one file each, with its options."""

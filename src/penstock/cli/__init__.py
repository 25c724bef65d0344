"""How do I run it? The `penstock` command."""

from penstock.cli.app import app, main

__all__ = ["app", "main"]

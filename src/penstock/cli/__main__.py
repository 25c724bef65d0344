"""`python -m penstock.cli` is the `penstock` command."""

from penstock.cli.app import main

main()

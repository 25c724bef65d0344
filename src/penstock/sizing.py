"""How much memory a join needs: the front door of `penstock.lab.sizing`."""

from penstock.lab.sizing import Recording, Request, Sizing, size

__all__ = ["Recording", "Request", "Sizing", "size"]

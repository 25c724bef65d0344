"""How much memory a join needs: recall against memory, measured on a recording of its streams.

A recording (`penstock.lab.recording`) is joined once without limits (`replay`), which shows what is
due and how many tuples are live at most, and then at many sizes of memory for each policy, closing
in on the recalls that are asked for (`curve`). If it is a sample, its figures have intervals
(`intervals`). Beside the policies stands the best that could have been done (`ceiling`). `size` is
the front of it.
"""

from penstock.lab.recording.recording import Recording
from penstock.lab.sizing.sizing import Request, Sizing, size

__all__ = ["Recording", "Request", "Sizing", "size"]

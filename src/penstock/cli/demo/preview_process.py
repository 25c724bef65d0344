"""`python -m penstock.cli.demo.preview_process KIND EVENTS SEED`: a preview, to standard output.

No other module imports this one: Python would then run it twice.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from penstock.cli.demo.preview import preview
from penstock.samples.nexmark import Nexmark

if __name__ == "__main__":
    kind, events, seed = sys.argv[1:]
    table = preview(kind, Nexmark(events=int(events), seed=int(seed))).to_arrow()
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:
        writer.write_table(table)

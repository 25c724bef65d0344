"""The long version: at least twenty kills of each sort, in some minutes.

make kills
PYTHONPATH=tests .venv/bin/python -m support.kills 1234    # a seed, to draw the same moments again
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from pathlib import Path

from support.kills.campaign import CLUSTER, LOCAL, Campaign

CAMPAIGNS = [
    (LOCAL, {"driver": 20, "python": 20, "step": 20}),
    (CLUSTER, {"executor": 20, "python": 4, "driver": 2}),
]


def main() -> int:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else secrets.randbelow(1 << 31)
    print(f"seed {seed}", flush=True)
    exact = True
    for master, kills in CAMPAIGNS:
        with tempfile.TemporaryDirectory(prefix="penstock-kills-") as directory:
            report = Campaign(Path(directory), seed, master, kills, most_s=1800).run()
        print(report, flush=True)
        exact = exact and report.is_exact
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())

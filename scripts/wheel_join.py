"""What `scripts/try-wheel` runs: a join by the penstock that is installed, and by no other."""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pyarrow as pa

import penstock as ps

MINUTE = 60_000_000

source_tree = Path(sys.argv[1]).resolve()
home = Path(ps.__file__).resolve().parent
assert source_tree not in home.parents, f"penstock is of the source tree: {home}"
assert (home / "py.typed").is_file(), "the wheel carries no py.typed"
assert importlib.metadata.version("penstock") == ps.__version__
for extra in ("ortools", "plotly", "pyspark", "scipy"):
    assert importlib.util.find_spec(extra) is None, f"{extra} is there: not the core alone"

query = ps.WindowJoin(
    [ps.Stream("orders", time="at"), ps.Stream("payments", time="at")],
    on="id",
    within="10 minutes",
)
orders = pa.table({"id": [1, 2, 3], "at": [0, 1 * MINUTE, 2 * MINUTE]})
payments = pa.table({"id": [2, 1, 3], "at": [3 * MINUTE, 4 * MINUTE, 20 * MINUTE]})
with query.start() as join:
    found = pa.concat_tables([join.push(orders=orders, payments=payments), join.finish()])
assert sorted(found["orders_id"].to_pylist()) == [1, 2], found
print(f"joined by penstock {ps.__version__} of {home}")

"""What `join.metrics` shows on the screen adds up, and reads as English."""

import re
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.model.amount import amount

# The parts of what arrived, as they are shown.
_PARTS = r"([\d,]+) (?:late|without a key|filtered out|waiting|live|expired|shed)\b"


def table(*rows: tuple[int, int | None]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({"ts": pa.array(columns[0]), "k": pa.array(columns[1], pa.int64())})


def adds_up(metrics: Any) -> None:
    """Of each stream, the numbers shown are all that arrived."""
    for name, each in metrics.streams.items():
        (line,) = re.findall(rf"^  {name}: (.*)$", str(metrics), re.MULTILINE)
        arrived = re.match(r"([\d,]+) arrived: ", line)
        assert arrived is not None
        shown = [int(number.replace(",", "")) for number in re.findall(_PARTS, line)]
        assert int(arrived[1].replace(",", "")) == each.arrived == sum(shown), line


@pytest.mark.parametrize(
    "options",
    [
        {"within": "10 us"},
        {"within": "10 us", "how": "left"},
        {"within": "10 us", "where": "a.ts <> 5"},
        {"windows": "2 rows"},
        {"windows": "2 rows per key", "where": "b.k < 3"},
        {"windows": "3 arrivals"},
    ],
)
@pytest.mark.parametrize("limits", [None, ps.Limits(memory="3 rows")])
def test_what_is_shown_adds_up(options: dict[str, Any], limits: ps.Limits | None) -> None:
    given = dict(options)
    window = given.pop("windows", None)
    if limits is not None and (window is not None or "how" in given):
        pytest.skip("nothing is dropped from such joins here")
    streams = [ps.Stream(name, time="ts", window=window) for name in "ab"]
    query = ps.WindowJoin(streams, on="k", **given)
    with query.start(limits=limits) as join:
        for begin in (0, 5, 40, 20):
            rows = [(begin + i, None if i % 4 == 0 else i % 3) for i in range(9)]
            join.push(a=table(*rows), b=table(*rows[:5]))
            adds_up(join.metrics)
        join.finish()
        adds_up(join.metrics)
        keyless = sum(each.keyless for each in join.metrics.streams.values())
        assert ("without a key" in str(join.metrics)) == (keyless > 0)
        assert keyless > 0 or window is not None or "how" in given


def test_one_is_singular() -> None:
    assert [amount(count, "result") for count in (0, 1, 2_000)] == [
        "0 results",
        "1 result",
        "2,000 results",
    ]
    streams = [ps.Stream(name, time="ts") for name in "ab"]
    with ps.WindowJoin(streams, on="k", within="10 us").start() as join:
        join.push(a=table((1, 1)), b=table((30, 2)))
        assert str(join.metrics).startswith("0 results, 0 late, 2 live tuples in ")
        join.push(a=table((29, 2)))
        assert str(join.metrics).startswith("1 result, 0 late, 2 live tuples in ")
        join.advance("b", 200)
        join.push(a=table((150, 7)))
        assert ", 1 live tuple in " in str(join.metrics)


def test_memory_is_given_back_at_the_end() -> None:
    rows = table(*[(i, i % 100) for i in range(20_000)])
    for how in ("inner", "full"):
        streams = [ps.Stream(name, time="ts") for name in "ab"]
        with ps.WindowJoin(streams, on="k", within="5000 us", how=how).start() as join:
            join.push(a=rows, b=rows)
            held = join.metrics.bytes
            join.finish()
            assert join.metrics.live == 0
            assert join.metrics.bytes < 20_000 < held
            assert join.footprint()["state"] + join.footprint()["payload"] == join.metrics.bytes
            join.driver.check()

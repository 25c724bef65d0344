"""Static joins of Spark DataFrames: the rows are those that the Arrow form keeps of the same rows
in the order of their contents, and only counts come to the driver."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from support.thoroughness import WAY

Values = tuple[list[Any], pa.DataType]
Tables = tuple[pa.Table, pa.Table]

# An hour that comes twice in New York.
HOUR = datetime.datetime(2024, 11, 3, 5, 30, tzinfo=datetime.UTC)
HOUR_LATER = HOUR + datetime.timedelta(hours=1)
DAY = datetime.date(1969, 12, 31)
DAYS_LATER = DAY + datetime.timedelta(9)
TEN, ZERO = Decimal("10.00"), Decimal("0.00")
TEXTS = ["a", "A", "ä", "", "a ", None]

# By name: the key columns of the left and of the right table.
KEYS: dict[str, tuple[list[Values], list[Values]]] = {
    "numbers": ([([1, 2, 3, 4, 5, None], pa.int64())], [([1, 2, 3, 4, 6, None], pa.int32())]),
    "fractions": (
        [([0.0, -0.0, nan, 0.1, 1.5, None], pa.float64())],
        [([0.0, -0.0, nan, 0.1, 1.5, None], pa.float32())],
    ),
    "texts and bytes": (
        [(TEXTS, pa.string()), ([b"", b"\0"], pa.binary())],
        [(TEXTS, pa.string()), ([b"", b"\0", b"\0\0"], pa.binary())],
    ),
    "dates and decimals": (
        [([DAY, DAYS_LATER], pa.date32()), ([TEN, ZERO, None], pa.decimal128(9, 2))],
        [([DAY, None, DAYS_LATER], pa.date32()), ([TEN, -ZERO, -TEN], pa.decimal128(9, 2))],
    ),
    "instants": (
        [([HOUR, HOUR_LATER], pa.timestamp("us", "UTC"))],
        [([HOUR, HOUR_LATER, HOUR.replace(microsecond=1), None], pa.timestamp("us", "UTC"))],
    ),
    "several": (
        [(["x", "y", None], pa.string()), ([0.0, -0.0, nan, None], pa.float64())],
        [(["x", "y", "z", None], pa.string()), ([0.0, 1.0, nan], pa.float64())],
    ),
}


def drawn(name: str, seed: int, rows: tuple[int, int] = (60, 45)) -> Tables:
    """Two tables with these keys, some far more frequent; rows can be told apart."""
    random = np.random.default_rng(seed)
    tables = []
    for number, columns in zip(rows, KEYS[name], strict=True):
        data: dict[str, Any] = {"note": random.choice(["p", "q", "r"], number)}
        for place, (values, kind) in enumerate(columns):
            chosen = np.minimum(random.geometric(0.4, number) - 1, len(values) - 1)
            data[f"k{place}"] = pa.array([values[each] for each in chosen], kind)
        tables.append(pa.table({**data, "row": random.permutation(number)}))
    return tables[0], tables[1]


def key_of(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith("k")]


def by_contents(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in sorted(table.column_names)])


def rows_of(table: pa.Table) -> Counter[str]:
    """As text, in which NaN is NaN, and -0.0 not 0.0."""
    return Counter(str(row) for row in table.to_pylist())


def frames_of(spark: SparkSession, tables: Tables) -> list[DataFrame]:
    return [spark.createDataFrame(table).repartition(3) for table in tables]


def check(spark: SparkSession, tables: Tables, **options: Any) -> ps.static.Truncation:
    """On Spark as on Arrow."""
    on = key_of(tables[0])
    frames = frames_of(spark, tables)
    *cut, result = ps.static.truncate_tables(*frames, on, **options)
    *expected, told = ps.static.truncate_tables(*map(by_contents, tables), on, **options)
    assert result == told
    for frame, before, table in zip(cut, frames, expected, strict=True):
        assert frame.schema == before.schema
        assert rows_of(frame.toArrow().cast(table.schema)) == rows_of(table)
    # Spark's own join takes NaN for equal to NaN.
    plain = [frame.dropna(subset=on) for frame in cut]
    assert plain[0].join(plain[1], on).count() == result.joined
    return result


# --- the same as Arrow's --------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEYS)
def test_it_keeps_what_the_arrow_form_keeps(spark: SparkSession, name: str) -> None:
    """With NaN, also some of the rows that equal nothing."""
    with_nan = name in ("fractions", "several")
    options = {"drop": (2, 3)} if with_nan else {"keep": (17, 21)}
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        result = check(spark, drawn(name, seed=1), **options)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    if with_nan:
        assert min(result.kept[None]) > 0
    else:
        assert 0 < result.joined < result.total


def test_keys_that_are_alike(spark: SparkSession) -> None:
    """Which of them are kept does not depend on the order in which Spark finds them."""
    keys = np.random.default_rng(5).permutation(np.repeat(np.arange(12), 4))
    table = pa.table({"k": keys, "row": np.arange(48)})
    check(spark, (table, table.slice(7)), keep=(18, 18))


@pytest.mark.parametrize(
    "options",
    [
        {"keep": 31},
        {"drop": 11},  # rows without a key are kept, some of them or all
        {"keep": 50, "method": "average_degree"},
        {"keep": (17, 20), "method": "node_degree"},
        {"drop": (2, 45)},
    ],
    ids=str,
)
def test_every_form_and_method(spark: SparkSession, options: dict[str, Any]) -> None:
    check(spark, drawn("numbers", seed=2), **options)


def test_tables_with_few_rows_or_none(spark: SparkSession) -> None:
    left, right = drawn("several", seed=3)
    check(spark, (left.slice(0, 0), right), keep=7)
    check(spark, (left.slice(0, 0), right.slice(0, 0)), keep=0)
    nulls = left.set_column(1, "k0", pa.nulls(len(left), pa.string()))
    result = check(spark, (nulls, right), keep=(5, 5))
    assert result.kept[None] == (5, result.kept[None][1])
    assert result.total == 0


def test_all_or_nothing_is_not_looked_for(spark: SparkSession) -> None:
    left, right = frames_of(spark, drawn("numbers", seed=4))
    kept_left, kept_right, _ = ps.static.truncate_tables(left, right, "k0", (60, 0))
    assert kept_left is left
    assert kept_right.count() == 0


# --- where the work is done -----------------------------------------------------------------------


def test_only_counts_come_to_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million rows with seven keys, and columns that cannot be read."""
    collected: list[pa.Table] = []
    kind = type(spark.range(1))
    to_arrow = kind.toArrow

    def spied(frame: DataFrame) -> pa.Table:
        collected.append(to_arrow(frame))
        return collected[-1]

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("rows come to the driver")

    monkeypatch.setattr(kind, "toArrow", spied)
    for name in ("collect", "toPandas", "toLocalIterator", "head", "take", "__arrow_c_stream__"):
        monkeypatch.setattr(kind, name, refused)
    frames = [
        spark.range(1_000_000).selectExpr(
            f"id % {keys} AS k", "raise_error('read') AS payload", "id AS row"
        )
        for keys in (7, 5)
    ]
    *cut, result = ps.static.truncate_tables(*frames, "k", (800_000, 800_000))
    monkeypatch.undo()
    assert result.total == 200_000 * (142_858 + 4 * 142_857)
    assert [table.num_rows for table in collected] == [7, 5]
    assert all(table.num_columns <= 2 for table in collected)
    assert sum(kept for kept, _ in result.kept.values()) == 800_000
    with pytest.raises(Exception, match="read"):
        cut[0].select("payload").write.format("noop").mode("overwrite").save()


def plan_of(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


def test_rows_of_whole_keys_stay_where_they_are(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are found by a broadcast of their keys. Those of keys in part are sorted, and where few
    are kept of them, most are dropped before they are shuffled."""
    frames = [spark.range(2_000).selectExpr(f"id % {keys} AS k", "id") for keys in (10, 20)]
    whole, part, result = ps.static.truncate_tables(*frames, "k", (800, 150))
    assert set(result.kept.values()) == {(200, 100), (200, 50), (200, 0), (0, 0)}
    plan = plan_of(whole, capsys)
    assert "BroadcastHashJoin" in plan
    assert "LeftSemi" in plan
    assert "Sort" not in plan
    assert "Exchange hashpartitioning" not in plan
    lines = plan_of(part, capsys).splitlines()
    of_whole = "\n".join(line for line in lines if line.startswith("   :"))  # a child of the union
    of_part = "\n".join(line for line in lines if not line.startswith("   :"))
    assert "LeftSemi" in of_whole
    assert "Sort" not in of_whole
    assert "Exchange hashpartitioning" not in of_whole
    before, after = of_part.split("Exchange hashpartitioning")
    assert "Window [row_number()" in before
    assert "WindowGroupLimit" in after
    assert "BroadcastHashJoin" in after


# --- the sensors and the proxy --------------------------------------------------------------------


def example() -> tuple[str, str]:
    """The code of the page, for Arrow and then for Spark, and what it prints."""
    page = (Path(__file__).parents[2] / "docs" / "static.md").read_text(encoding="utf-8")
    _, section = page.split("## Two sensors and a proxy")
    blocks = re.findall(r"```(?:python|text)\n(.*?)\n```", section, re.DOTALL)[:4]
    on_arrow, shown, on_spark, shown_too = blocks
    return f"{on_arrow}\n{on_spark}", f"{shown}\n{shown_too}"


def test_the_example_in_the_documentation_is_true(spark: SparkSession) -> None:
    code, shown = example()
    told: list[str] = []
    exec(code, {"print": lambda given: told.append(str(given))})  # noqa: S102  its own example
    assert "\n".join(told) == shown


@pytest.mark.skipif(WAY == "ci", reason="test_spark_connect starts a server; so does test-all here")
@pytest.mark.slow  # a session of its own
def test_over_connect(tmp_path: Path) -> None:
    """The same example, where getOrCreate gives a session of Spark Connect."""
    code, shown = example()
    small = '.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")'
    script = tmp_path / "sensors.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        f"SparkSession.builder{small}.getOrCreate()\n"
        f"{code}\nprint(type(sent_north).__module__)\nspark.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "SPARK_REMOTE": "local[1]"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout == f"{shown}\npyspark.sql.connect.dataframe\n", done.stderr[-2000:]


# --- odd columns ----------------------------------------------------------------------------------


def test_columns_of_any_name_and_type(spark: SparkSession) -> None:
    """Names that are twice there or mean something in SQL; types that Spark cannot put in order.
    The same rows in other partitions give the same answer."""
    wkb = "X'0101000000000000000000F03F0000000000000040'"
    columns = [
        "id % 2 AS `a.``b`",
        "id AS twice",
        "id AS twice",
        "map('x', -id) AS many",
        "array(named_struct('y', map(id, timestamp_micros(id)))) AS deep",
        "parse_json(string(id)) AS free",
        "collate(if(id % 3 = 0, 'a', 'A'), 'UTF8_LCASE') AS loose",
        "make_interval(0, 0, 0, int(id)) AS apart",
        f"map(1, st_geomfromwkb({wkb})) AS place",
        "null AS none",
    ]
    frame = spark.range(40).selectExpr(*columns)
    kept = []
    for partitions in (1, 4):
        mixed = frame.repartition(partitions)
        left, right, result = ps.static.truncate_tables(mixed, mixed, "a.`b", (7, 3))
        assert left.schema == frame.schema
        assert (left.count(), right.count()) == (7, 3)
        assert result.joined == 21
        kept.append(left.selectExpr("to_json(many)", "string(free)").collect())
    assert Counter(kept[0]) == Counter(kept[1])


# --- what is refused ------------------------------------------------------------------------------


def test_what_cannot_be_cut(spark: SparkSession) -> None:
    table = pa.table({"k": [1]})
    frame = spark.createDataFrame(table)
    with pytest.raises(ps.InputError, match="left is a Spark DataFrame and right is not, got T"):
        ps.static.truncate_tables(frame, table, "k", 1)
    with pytest.raises(ps.InputError, match=r"right is a Spark .* got int; .*createDataFrame"):
        ps.static.truncate_tables(7, frame, "k", 1)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ps.InputError, match="right is a streaming DataFrame"):
        ps.static.truncate_tables(spark.range(1).toDF("value"), stream, "value", 1)


# A key that cannot be read: nothing is counted before all that can be is checked.
UNREADABLE = "raise_error('read')"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("bigint", "string"),
        ("bigint", "double"),
        ("decimal(9,2)", "decimal(9,3)"),
        ("array<int>", "array<int>"),
        ("variant", "variant"),
        ("interval month", "interval month"),
        ("string", "string collate UTF8_LCASE"),
    ],
)
def test_keys_that_cannot_be_equal(spark: SparkSession, left: str, right: str) -> None:
    frames = [spark.range(9).selectExpr(f"{UNREADABLE}::{kind} AS k") for kind in (left, right)]
    words = re.escape("column 'k' must be of one type in both DataFrames, one that has equality")
    with pytest.raises(ps.SchemaError, match=f"{words}.*{re.escape(f'{left} and {right}')};"):
        ps.static.truncate_tables(*frames, "k", 1)


def test_options_are_checked_before_rows_are_counted(spark: SparkSession) -> None:
    frame = spark.range(9).selectExpr(f"{UNREADABLE}::int AS k")
    with pytest.raises(ps.SchemaError, match="left must have one column 'K', got \\['k'\\]"):
        ps.static.truncate_tables(frame, frame, "K", 1)
    with pytest.raises(ps.PlanError, match="got 'best'"):
        ps.static.truncate_tables(frame, frame, "k", 1, method="best")
    with pytest.raises(ps.PlanError, match=r"so many of each side, got 3; choose"):
        ps.static.truncate_tables(frame, frame, "k", drop=3, method="node_degree")
    with pytest.raises(ps.InputError, match="got neither"):
        ps.static.truncate_tables(frame, frame, "k")


def test_spark_is_not_imported_for_arrow_tables() -> None:
    script = """
import sys, pyarrow as pa, penstock as ps
table = pa.table({"k": [1]})
print(ps.static.truncate_tables(table, table, "k", 2)[2].joined, "pyspark" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "1 False\n"

"""The command's files: what is written in a format is what is read from it."""

import gzip
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from penstock.files.command_error import CommandError
from penstock.files.formats import FORMATS, format_of
from penstock.files.output import Output
from penstock.files.source import Source, open_source

START = datetime(2024, 1, 1)
ENDINGS = [ending for kind in FORMATS for ending in kind.endings]


def sample(rows: int) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(
                [START + timedelta(microseconds=i) for i in range(rows)], pa.timestamp("us")
            ),
            "k": pa.array(range(rows), pa.int64()),
            "name": [None if i % 5 == 0 else f"row {i}" for i in range(rows)],
            "price": [None if i % 7 == 0 else i / 8 for i in range(rows)],
        }
    )


def write(path: Path, *tables: pa.Table) -> Path:
    with Output(path, force=True) as output:
        for table in tables:
            output.write(table)
    return path


def opened(path: Path, rows: int = 100, key: str = "k", time: str = "ts") -> Source:
    return open_source(path, [key], time, rows)


def read(path: Path, **options: Any) -> pa.Table:
    source = opened(path, **options)
    return pa.Table.from_batches(source.batches, source.schema)


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize("ending", [*ENDINGS, ".csv.gz", ".jsonl.zst", ".json.bz2", ".CSV"])
def test_every_format_gives_back_what_it_was_given(tmp_path: Path, ending: str) -> None:
    table = sample(1000)
    path = write(tmp_path / f"file{ending}", table.slice(0, 300), table.slice(300))
    found = read(path)
    assert found.column("ts").cast(pa.timestamp("us")).equals(table.column("ts"))
    assert found.select(["k", "name", "price"]).to_pylist() == (
        table.select(["k", "name", "price"])
        .set_column(
            1,
            "name",
            # CSV cannot tell an absent text from an empty one.
            table.column("name").fill_null("") if ".csv" in ending.lower() else table["name"],
        )
        .to_pylist()
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_rows_keeps_its_columns(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"file{ending}", sample(0))
    if format_of(path).name == "JSON lines":
        with pytest.raises(CommandError, match=r"cannot read .*: Empty JSON.*; for no rows give"):
            read(path)
    else:
        assert read(path).num_rows == 0
        assert read(path).schema.names == ["ts", "k", "name", "price"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_are_of_even_size_and_the_position_reaches_the_end(
    tmp_path: Path, ending: str
) -> None:
    table = sample(1000)
    path = write(tmp_path / f"file{ending}", table)
    for rows in (1000, 999, 64, 5000):
        source = opened(path, rows)
        sizes = [batch.num_rows for batch in source.batches]
        assert sizes == [rows] * (1000 // rows) + [1000 % rows] * (1000 % rows > 0)
        assert source.position() == source.size == path.stat().st_size


def test_small_batches_of_a_file_are_put_together(tmp_path: Path) -> None:
    table = sample(100)
    path = tmp_path / "file.arrow"
    with pa.ipc.new_file(path, table.schema) as file:
        for batch in table.to_batches(max_chunksize=7):
            file.write_batch(batch)
    assert [batch.num_rows for batch in opened(path, 40).batches] == [40, 40, 20]
    assert read(path).equals(table)


def test_an_arrow_stream_is_known_by_its_content(tmp_path: Path) -> None:
    table = sample(10)
    path = tmp_path / "file.arrow"
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table)
    assert read(path).equals(table)


def test_dictionaries_become_their_values(tmp_path: Path) -> None:
    table = sample(10).set_column(1, "k", pa.array(list("aabbccddee")).dictionary_encode())
    found = read(write(tmp_path / "file.arrow", table))
    assert found.schema.field("k").type == pa.string()
    assert found["k"].to_pylist() == list("aabbccddee")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2024-01-01 00:00:00", "2024-01-01 00:00:01.5"], pa.timestamp("us")),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:01.5Z"], pa.timestamp("us", "UTC")),
        (["2024-01-01T01:00:00+01:00", "2024-01-01T00:00:01.5Z"], pa.timestamp("us", "UTC")),
    ],
)
def test_text_times_keep_their_zone_and_fractions(
    tmp_path: Path, times: list[str], expected: pa.DataType
) -> None:
    instants = [START, START + timedelta(seconds=1.5)]
    lines = "".join(f'{{"k": 1, "ts": "{time}"}}\n' for time in times)
    for path in (
        text(tmp_path / "file.csv", "k,ts\n" + "".join(f"1,{time}\n" for time in times)),
        text(tmp_path / "file.jsonl", lines),
        write(tmp_path / "file.parquet", pa.table({"k": [1, 1], "ts": times})),
    ):
        found = read(path)["ts"]
        if path.suffix != ".csv":  # CSV takes nanoseconds when it sees a fraction
            assert found.type == expected
        assert found.type.tz == expected.tz
        assert found.cast(pa.timestamp("us")).to_pylist() == instants


def test_fractions_may_begin_after_the_part_that_types_are_guessed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.files.readers._GUESSED", 256)
    times = ["2024-01-01 00:00:00"] * 50 + ["2024-01-01 00:00:00.25"] * 50
    for path in (
        text(tmp_path / "file.csv", "k,ts\n" + "".join(f"1,{time}\n" for time in times)),
        text(
            tmp_path / "file.jsonl",
            "".join(json.dumps({"k": 1, "ts": time}) + "\n" for time in times),
        ),
    ):
        found = read(path)["ts"]
        assert found.type == pa.timestamp("us")
        assert found[-1].as_py() == START + timedelta(seconds=0.25)


def test_dates_and_integers_are_times_too(tmp_path: Path) -> None:
    assert read(text(tmp_path / "a.csv", "k,ts\n1,2024-01-01\n"))["ts"].to_pylist() == [START]
    assert read(text(tmp_path / "b.csv", "k,ts\n1,17\n"))["ts"].to_pylist() == [17]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "k,ts\n1,noon\n", "column 'ts' of .*a.csv holds something .*'noon'.*ISO 8601"),
        ("a.csv", "k,ts\n1,31/12/2024\n", "'31/12/2024' .*; write the year first"),
        ("a.csv", "k,ts\n1,2024-01-01T00:00:00Z\n1,2024-01-01\n", "some times have a zone"),
        (
            "a.jsonl",
            '{"k": 1, "ts": "2024-01-01T00:00:00"}\n{"k": 1, "ts": "2024-01-01T00:00:00Z"}\n',
            "some times have a zone and others none",
        ),
        ("a.csv", "k;ts\n1;2\n", "has no column 'k'; its header is separated by semicolons"),
        ("a.csv", "k;ts;v\n1;2;1,5\n", "its header is separated by semicolons; penstock reads"),
        ("a.csv", "k\tts\n1\t2\n", "its header is separated by tabs; penstock reads commas"),
        ("a.csv", "", "a CSV file without rows still needs a header line"),
        ("a.csv", "\n\n", "a CSV file without rows still needs a header line"),
        ("a.parquet", "", "the file is empty, and no parquet file"),
        ("a.arrow", "", "the file is empty, and no Arrow file"),
        ("a.csv", "k,ts\n1,1.5\n", "column 'ts' of .* cannot be a time, its type is double; give"),
        ("a.csv", "k,time\n1,1\n", "has no column 'ts'; its columns are 'k', 'time'"),
        ("a.csv", "key,ts\n1,1\n", "has no column 'k'; its columns are 'key', 'ts'"),
        ("a.csv", "k,ts,x,x\n1,1,1,1\n", "has two columns called 'x'"),
        ("a.csv", "k,ts\n1,1\n2\n", "cannot read .*: CSV parse error.*; every row needs as many"),
        ("a.jsonl", '{"k": 1, "ts"\n', "cannot read .*: JSON parse error.*; is it text"),
        ("a.jsonl", "k,ts\n", "cannot read .*: JSON parse error.*; write one JSON object on each"),
        ("a.jsonl", '{"k": 1, "ts": 1}\nk\n', "JSON parse error.*; write one JSON object on each"),
        ("a.json", '[{"k": 1, "ts": 1}]\n', r"it holds a JSON array; .* jq -c '.\[\]' a.json"),
        ("a.parquet", "nothing of the kind", "cannot read .*: Parquet magic.*; is its content"),
        ("a.arrow", "nothing of the kind", "cannot read .*a.arrow.*; is its content Arrow"),
        ("a.csv.gz", "not compressed", "cannot read .*a.csv.gz.*; is it compressed, as its ending"),
        ("a.txt", "k,ts\n", "cannot tell the format of .*'.txt'; use one of .parquet"),
        ("a.parquet.gz", "", "cannot tell the format of"),
        ("a", "", "cannot tell the format of"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        read(text(tmp_path / name, content))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="does not exist; check the path"):
        read(tmp_path / "a.csv")
    with pytest.raises(CommandError, match="is a directory; name a file in it"):
        read(tmp_path)


def test_a_late_surprise_in_a_text_file_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.files.readers._GUESSED", 256)
    monkeypatch.setattr("penstock.files.readers._BLOCK", 128)
    path = text(tmp_path / "file.csv", "k,ts\n" + "1,1\n" * 100 + "1.5,1\n")
    source = opened(path, 10)
    with pytest.raises(CommandError, match=r"int64: invalid value '1.5'; .* guessed"):
        list(source.batches)


def json_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    return text(path, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_field_of_json_lines_may_first_appear_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr("penstock.files.readers._GUESSED", 256)
    monkeypatch.setattr("penstock.files.readers._BLOCK", 128)
    rows: list[dict[str, object]] = [{"k": 1, "ts": i, "x": i, "in": {"a": i}} for i in range(99)]
    rows[60:] = [{**row, "note": f"n{row['ts']}", "in": {"b": "2024-01-01"}} for row in rows[60:]]
    rows[70]["x"] = 1.5
    rows[0]["never"] = None
    path = json_lines(tmp_path / "file.jsonl", rows)
    if ending.endswith(".gz"):
        (tmp_path / "file.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    found = read(tmp_path / f"file{ending}").to_pylist()
    blank = {"note": None, "never": None}
    for row in rows:
        row["in"] = {"a": None, "b": None, **dict(row["in"])}  # type: ignore[call-overload]  # a dict
    assert found == [{**blank, **row} for row in rows]


@pytest.mark.parametrize(
    ("block_bytes", "late", "message"),
    [
        # In a block of its own, and in one with rows before it.
        (260, '"x": "word"', "field 'x' changed from int64 to string in rows 81 to 81; a field"),
        (250, '"x": "word"', "changed from number to string in row 81; a field has one type"),
        (260, '"x": [1]', "field 'x' changed from int64 to list.* in rows 81 to 81; a field"),
        (260, '"x" 1', "JSON parse error.* in row 81; is it text"),
        (250, '"x" 1', "JSON parse error.* in row 81; is it text"),
    ],
)
def test_a_late_surprise_in_json_lines_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, late: str, message: str
) -> None:
    monkeypatch.setattr("penstock.files.readers._GUESSED", block_bytes)
    lines = '{"k": 1, "ts": 1, "x": 1}\n' * 80 + f'{{"k": 1, "ts": 1, {late}}}\n'
    with pytest.raises(CommandError, match=message):
        read(text(tmp_path / "file.jsonl", lines))


def test_json_lines_hold_every_kind_of_value(tmp_path: Path) -> None:
    rows = {
        "text": ['plain "quoted" \\ back\nline', "ünï 🙂", None],
        "bare": ["a", "", None],
        "number": [1.5, float("nan"), float("inf")],
        "decimal": [Decimal("1.25"), Decimal("-3.00"), None],
        "flag": [True, False, None],
        "day": [date(2024, 2, 29), None, date(1999, 12, 31)],
        "at": pa.array([START, None, START], pa.timestamp("us", "UTC")),
        "list": [[1, None], [], None],
        "record": [{"a": float("nan"), "b": [START]}, {"a": 1.0, "b": None}, None],
        "nothing": pa.nulls(3),
    }
    path = write(tmp_path / "file.jsonl", pa.table({**rows, 'odd "name"': [1, 2, 3]}))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert found[0] == {
        "text": 'plain "quoted" \\ back\nline',
        "bare": "a",
        "number": 1.5,
        "decimal": 1.25,
        "flag": True,
        "day": "2024-02-29",
        "at": "2024-01-01T00:00:00.000000Z",
        "list": [1, None],
        "record": {"a": None, "b": ["2024-01-01T00:00:00"]},
        "nothing": None,
        'odd "name"': 1,
    }
    assert [row["number"] for row in found] == [1.5, None, None]
    assert [row["text"] for row in found] == rows["text"]
    assert [row["bare"] for row in found] == rows["bare"]
    assert found[2]["day"] == "1999-12-31"
    assert found[2]["record"] is None


def test_compressed_text_is_compressed(tmp_path: Path) -> None:
    path = write(tmp_path / "file.csv.gz", sample(3))
    assert gzip.decompress(path.read_bytes()).startswith(b'"ts","k","name","price"\n')


def test_many_small_tables_make_few_row_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", *[sample(1000)] * 300)
    metadata = pa.parquet.read_metadata(path)
    assert metadata.num_rows == 300_000
    assert metadata.num_row_groups == 3


@pytest.mark.parametrize(
    ("ending", "column", "message"),
    [
        (".csv", pa.array([[1]]), "CSV cannot hold column 'x' of type list"),
        (".jsonl", pa.array([b"x"]), "JSON lines cannot hold column 'x' of type binary"),
        (".jsonl", pa.array([[b"x"]]), "JSON lines cannot hold column 'x' of type list"),
    ],
)
def test_a_format_refuses_what_it_cannot_hold(
    tmp_path: Path, ending: str, column: pa.Array, message: str
) -> None:
    path = tmp_path / f"file{ending}"
    with pytest.raises(CommandError, match=message), Output(path) as output:
        output.write(pa.table({"x": column}))
    assert list(tmp_path.iterdir()) == []


def test_output_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    with Output(path) as output:
        output.write(sample(3))
        assert not path.exists()
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == [path]
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), Output(path, force=True) as output:
        output.write(sample(5 // (1 - len(before[:1]))))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_output_replaces_only_what_it_may(tmp_path: Path) -> None:
    path = write(tmp_path / "file.csv", sample(3))
    with pytest.raises(CommandError, match="exists already; give --force"):
        Output(path)
    assert read(write(path, sample(4))).num_rows == 4
    with pytest.raises(CommandError, match="cannot tell the format"):
        Output(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CommandError, match="it is a directory"):
        Output(tmp_path / "folder.csv", force=True)
    with pytest.raises(CommandError, match=r"cannot write .*No such file"):
        Output(tmp_path / "missing" / "file.csv").__enter__()


def test_times_are_written_in_utc(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([START.replace(tzinfo=UTC)]), "k": [1]})
    for ending in (".csv", ".jsonl"):
        path = write(tmp_path / f"file{ending}", table)
        assert read(path)["ts"].to_pylist() == [START.replace(tzinfo=UTC)]

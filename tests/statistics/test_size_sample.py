"""Samples by key: what they say of the whole, and how often their intervals hold it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import penstock as ps
from penstock.cli import app
from penstock.cli.size_spark import frames_of
from penstock.engine.residual import bound
from penstock.errors import PlanError
from penstock.jobs.job import JobStream
from penstock.lab.recording import reading
from penstock.lab.recording.key_sample import GROUPS, KeySample, chosen_sample, sample_weights
from penstock.lab.recording.reading import read_recording
from penstock.lab.recording.recording import WholeRecording
from penstock.lab.recording.spark_reading import read_frames
from penstock.lab.recording.survey import StreamSurvey, arrivals_of, slot_us, surveyed_need
from penstock.lab.sizing import Recording, size
from penstock.lab.sizing.intervals import jackknife, memory_at
from penstock.lab.sizing.replay import exact_replay
from penstock.lab.sizing.sizing import Request
from penstock.model.binding import Binding
from penstock.samples import SampleStreams, uniform, zipf
from penstock.stats.heavy_keys import HeavyKeys
from support.thoroughness import often, scaled

STREAMS = [ps.Stream(name, time="ts") for name in "ab"]
QUERY = ps.WindowJoin(STREAMS, on="k", within="1 second")
WORK = zipf(keys=3_000, skew=0.8, rows=20_000, rate=2_000.0, streams=("a", "b"))


def tables_of(work: SampleStreams) -> dict[str, pa.Table]:
    return {name: work.table(name) for name in work.streams}


def taken(tables: dict[str, pa.Table], query: ps.WindowJoin = QUERY, **options: Any) -> Recording:
    """As it is read from files: batch by batch, and again if it has to be."""
    return read_recording(
        query,
        lambda: {name: each.to_batches(max_chunksize=7_000) for name, each in tables.items()},
        {name: each.schema for name, each in tables.items()},
        **options,
    )


# Which keys.


@given(
    st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=50),
    st.sampled_from(
        [
            (pa.int64(), pa.int16()),
            (pa.int32(), pa.int64()),
            (pa.float32(), pa.float64()),
            (pa.string(), pa.large_string()),
            (pa.string(), pa.dictionary(pa.int32(), pa.string())),
            (pa.decimal128(12, 2), pa.decimal256(40, 2)),
        ]
    ),
    st.integers(0, 5),
)
def test_a_key_is_in_the_sample_of_all_streams_or_of_none(
    keys: list[int], kinds: tuple[pa.DataType, pa.DataType], seed: int
) -> None:
    """Whatever type a stream has it in."""
    values: list[Any] = list(keys)
    if pa.types.is_string(kinds[0]):
        values = [f"key {key}" for key in keys]
    elif pa.types.is_decimal(kinds[0]):
        values = [Decimal(key) for key in keys]
    ts = pa.array(range(len(keys)), pa.int64())
    tables = [pa.record_batch({"ts": ts, "k": pa.array(values, kind)}) for kind in kinds]
    binding = bound(Binding.of(QUERY), dict(enumerate(each.schema for each in tables)))
    sample = KeySample(0.4, seed=seed)
    first, second = (sample.groups_of(binding, n, each) for n, each in enumerate(tables))
    assert first.tolist() == second.tolist()
    for number, table in enumerate(tables):
        rows = sample.rows_of(binding, number, table)
        assert rows.to_pylist() == table.filter(pa.array(first >= 0)).to_pylist()


def test_groups_are_of_equal_chance_and_heavy_keys_are_always_in() -> None:
    words = np.arange(-200_000, 200_000)
    sample = KeySample(0.1, np.array([-7, 3]))
    groups = sample.groups(words)
    assert groups[np.isin(words, [-7, 3])].tolist() == [0, 0]
    sizes = np.bincount(groups + 1, minlength=GROUPS + 2)
    assert sizes[1] == 2
    assert sizes[2:].sum() == pytest.approx(40_000, rel=0.02)
    assert (np.abs(sizes[2:] - 2_500) < 5 * 50).all()
    again = KeySample(0.1, seed=1).groups(words)
    assert ((groups > 0) & (again > 0)).mean() == pytest.approx(0.01, rel=0.1)
    assert (KeySample(1.0).groups(words) > 0).all()


def test_a_row_without_a_key_is_in_no_sample() -> None:
    batch = pa.record_batch({"ts": [1, 2], "k": pa.array([None, 5], pa.int64())})
    binding = bound(Binding.of(QUERY), {0: batch.schema, 1: batch.schema})
    assert KeySample(1.0).groups_of(binding, 0, batch)[0] == -1


def counted(*streams: Sequence[int]) -> list[HeavyKeys]:
    found = []
    for keys in streams:
        found.append(HeavyKeys())
        found[-1].add(np.array(keys, np.int64))
    return found


def test_keys_with_many_rows_or_results_are_heavy() -> None:
    light = range(100, 10_100)
    streams = counted([1] * 900 + [2] * 40 + [*light], [1] * 700 + [2] * 2_000 + [*light])
    sample = chosen_sample(streams, 4_000)
    assert sample.heavy.tolist() == [1, 2]
    left = 4_000 - 900 - 700 - 40 - 2_000
    # There is always some room for the others.
    assert sample.share == pytest.approx(max(left, 2_000) / 20_000, rel=0.01)
    assert chosen_sample(streams, 10**9).share == 1.0


@given(st.lists(st.integers(0, 500), min_size=GROUPS + 1, max_size=GROUPS + 1))
def test_every_estimate_stands_for_the_whole(tuples: list[int]) -> None:
    counts, in_all = np.array(tuples), 2 * sum(tuples) + 100
    if np.count_nonzero(counts[1:]) < 2:
        with pytest.raises(PlanError, match="too few"):
            sample_weights(counts, in_all)
        return
    weights = sample_weights(counts, in_all)
    assert weights.shape == (GROUPS + 1, GROUPS + 1)
    assert weights @ counts == pytest.approx([in_all] * (GROUPS + 1))
    assert (weights[:, 0] == 1).all()
    assert (np.diag(weights)[1:] == 0).all()


# What they say.


def test_a_sample_of_everything_says_what_the_whole_says() -> None:
    tables = tables_of(WORK)
    asked = Request(policies=["prob"], with_ceiling=False)
    whole = Recording.of(QUERY, tables)
    exact = exact_replay(whole)
    sample = Recording.of(
        QUERY, tables, sample=KeySample(1.0), whole=WholeRecording(40_000, 40_000, exact.need)
    )
    (curve,), (same,) = size(sample, asked).curves, size(whole, asked).curves
    assert [point.memory for point in curve.points] == [point.memory for point in same.points]
    assert [point.recall for point in curve.points] == pytest.approx(
        [point.recall for point in same.points], abs=0.01
    )
    for enough, known in zip(curve.enough, same.enough, strict=True):
        assert enough is not None
        assert known is not None
        assert enough.interval is not None
        assert enough.memory == pytest.approx(known.memory, rel=0.03)
        # Only what the search leaves open is not known.
        assert enough.interval[1] / enough.memory < 1.02


@pytest.mark.parametrize("window", ["1 second", "tumbling 1 second", "unbounded"])
def test_slots_tell_what_is_live_as_well_as_tuples_do(window: str) -> None:
    query = ps.WindowJoin(STREAMS, on="k", within=window, where="a.v >= 0")
    tables = tables_of(WORK)
    binding = bound(
        Binding.of(query), {number: tables[name].schema for number, name in enumerate("ab")}
    )
    surveys = []
    for number, name in enumerate("ab"):
        surveys.append(StreamSurvey(slot_us(query)))
        for batch in tables[name].to_batches(max_chunksize=999):
            surveys[-1].add(arrivals_of(binding, number, batch))
    need = exact_replay(Recording.of(query, tables)).need
    told = surveyed_need(query, surveys)
    assert told.rows[0] == pytest.approx(need.rows[0], rel=0.01)
    assert told.streams == pytest.approx(need.streams, rel=0.02)


def test_estimates_of_results_are_scaled_to_the_whole() -> None:
    tables = tables_of(WORK)
    results = exact_replay(Recording.of(QUERY, tables)).produced[0]
    errors = []
    for seed in range(scaled(quick=5, all=10)):
        recording = taken(tables, share=0.3, seed=seed)
        assert recording.present < 0.45 * 40_000
        assert recording.rows == 40_000
        estimates = recording.weights @ exact_replay(recording).produced
        errors.append(estimates[0] / results - 1)
    assert abs(np.mean(errors)) < 0.05
    assert np.std(errors) < 0.1


def test_the_jackknife_of_a_mean_is_its_usual_interval() -> None:
    values = np.random.default_rng(3).normal(10, 2, GROUPS)
    means = [values.mean(), *((values.sum() - each) / (GROUPS - 1) for each in values)]
    low, high = jackknife(np.array(means), 0.0)
    half = 2.1314 * values.std(ddof=1) / np.sqrt(GROUPS)
    assert (low, high) == pytest.approx((means[0] - half, means[0] + half), rel=1e-4)
    low, high = jackknife(np.array(means), 0.75)
    assert high - low == pytest.approx(half, rel=1e-4)


# Work that is sampled in a second, of which there are many samples.
COVERED = {
    "uniform": uniform(keys=6_000, rows=40_000, rate=4_000.0, streams=("a", "b")),
    "skewed": zipf(keys=6_000, skew=0.8, rows=40_000, rate=4_000.0, streams=("a", "b")),
}


@pytest.mark.parametrize("name", often(COVERED, "skewed"))
def test_intervals_hold_the_truth_about_as_often_as_they_should(name: str) -> None:
    tables = tables_of(COVERED[name])
    asked = Request(policies=["prob"], recalls=[0.9, 0.95], with_ceiling=False)
    (curve,) = size(Recording.of(QUERY, tables), asked).curves
    memories = np.array([point.memory for point in curve.points], float)
    recalls = np.array([point.recall for point in curve.points])
    held, widths = 0, []
    seeds = scaled(quick=4, all=12)
    for seed in range(seeds):
        (sampled,) = size(taken(tables, share=0.3, seed=seed), asked).curves
        for enough in sampled.enough:
            assert enough is not None
            assert enough.interval is not None
            low, high = enough.interval
            held += low <= memory_at(memories, recalls, enough.recall) <= high
            widths.append(high / enough.memory - 1)
    assert held >= 0.8 * len(widths), f"{held} of {len(widths)}"
    assert np.mean(widths) < 0.25


def test_sampled_points_have_intervals() -> None:
    recording = taken(tables_of(WORK), share=0.3)
    found = size(recording, Request(policies=["prob", "random"]))
    assert found.no_ceiling == "it is not known of a sample"
    assert found.rows == 40_000
    assert found.sampled_rows == recording.present
    for curve in found.curves:
        for point in curve.points:
            assert point.interval is not None
            assert 0 <= point.interval[0] <= point.recall <= point.interval[1] <= 1
    assert found.recommendation is not None
    (prob,) = (each for each in found.curves if each.policy == "prob")
    assert prob.enough[1] is not None
    assert prob.enough[1].interval is not None
    assert found.recommendation.memory >= prob.enough[1].interval[1]


@pytest.mark.slow
def test_semi_joins_are_sampled_too() -> None:
    query = ps.WindowJoin(STREAMS, on="k", within="1 second", how="semi")
    tables = tables_of(WORK)
    asked = Request(policies=["prob"], recalls=[0.9])
    whole = size(Recording.of(query, tables), asked)
    sampled = size(taken(tables, query, share=0.5), asked)
    assert sampled.results == pytest.approx(whole.results, rel=0.05)
    assert sampled.need == pytest.approx(whole.need, rel=0.1)
    assert sampled.need_interval is not None
    (enough,), (known,) = sampled.curves[0].enough, whole.curves[0].enough
    assert enough is not None
    assert known is not None
    assert enough.memory == pytest.approx(known.memory, rel=0.15)


# When.


def test_large_recordings_are_sampled_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(WORK)
    assert taken(tables).sample is None
    assert taken(tables, share=1.0).sample is None
    monkeypatch.setattr(reading, "JOINED_ROWS", 15_000)
    recording = taken(tables)
    assert recording.sample is not None
    assert recording.present == pytest.approx(15_000, rel=0.1)
    assert taken(tables, share=1.0).sample is None


def test_a_join_without_a_key_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    query = ps.WindowJoin(STREAMS, where="abs(a.v - b.v) <= 2", within="10 milliseconds")
    tables = {name: table.slice(0, 500) for name, table in tables_of(WORK).items()}
    monkeypatch.setattr(reading, "JOINED_ROWS", 100)
    assert taken(tables, query).sample is None
    with pytest.raises(PlanError, match="keys cannot be sampled"):
        taken(tables, query, share=0.5)
    with pytest.raises(PlanError, match="above 0 and at most 1"):
        taken(tables, query, share=1.5)


def test_a_sample_that_is_too_small_is_refused() -> None:
    tables = {name: table.slice(0, 50) for name, table in tables_of(WORK).items()}
    with pytest.raises(PlanError, match="too few to tell"):
        taken(tables, share=0.001)


def test_the_command_takes_a_sample(tmp_path: Path) -> None:
    files = []
    for name, table in tables_of(WORK).items():
        files.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(table, files[-1])
    arguments = ["size", *files, "--on", "k", "--time", "ts", "--within", "1 second"]
    arguments += ["--policy", "prob", "--sample", "0.3"]
    plot = tmp_path / "plot.html"
    result = CliRunner().invoke(app, [*arguments, "--plot", str(plot)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert "of the others a part" in result.stdout
    assert "with the upper end of the interval" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert '"name":"prob, interval"' in plot.read_text(encoding="utf-8")
    other = CliRunner().invoke(app, [*arguments, "--seed", "1"], env={"COLUMNS": "80"})
    assert other.stdout != result.stdout


# On Spark.


def test_spark_takes_the_same_sample(spark: Any, tmp_path: Path) -> None:
    """From a directory of CSV files and one of parquet files, with keys of different types."""
    tables = tables_of(WORK)
    tables["a"] = tables["a"].set_column(1, "k", tables["a"]["k"].cast(pa.int32()))
    for name in "ab":
        (tmp_path / name).mkdir()
    for number in range(2):
        part = {name: table.slice(number * 10_000, 10_000) for name, table in tables.items()}
        part["a"] = part["a"].set_column(0, "ts", part["a"]["ts"].cast(pa.timestamp("us", "UTC")))
        pyarrow.csv.write_csv(part["a"], tmp_path / "a" / f"{number}.csv")
        pq.write_table(
            part["b"].set_column(0, "ts", part["b"]["ts"].cast(pa.timestamp("us", "UTC"))),
            tmp_path / "b" / f"{number}.parquet",
        )
    files = [JobStream(tmp_path / name, name, ["k"], "ts", "1 second") for name in "ab"]
    frames = frames_of(spark, files)
    found = read_frames(QUERY, frames, share=0.3, seed=2)
    here = taken(tables, share=0.3, seed=2)
    assert found.sample is not None
    assert here.sample is not None
    assert found.sample.heavy.tolist() == here.sample.heavy.tolist()
    assert found.sample.share == pytest.approx(here.sample.share)
    assert found.whole is not None
    assert here.whole is not None
    assert found.whole.rows == here.whole.rows == 40_000
    assert found.whole.tuples == here.whole.tuples
    assert found.whole.need.rows.tolist() == here.whole.need.rows.tolist()
    for name in "ab":
        assert found.tables[name]["k"].to_pylist() == here.tables[name]["k"].to_pylist()
    assert [each.tolist() for each in found.times] == [each.tolist() for each in here.times]
    assert read_frames(QUERY, frames).sample is None

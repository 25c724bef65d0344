"""The auction streams: the same rows however they are asked for, and the shape they promise."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.samples import Nexmark
from support.thoroughness import often

EVENTS = 5_003
WORK = Nexmark(events=EVENTS, seed=3)


def whole(work: Nexmark, stream: str) -> pa.RecordBatch:
    return work.batch(stream, 0, work.events)


def times_us(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    return pc.cast(batch["date_time"], pa.int64()).to_numpy()


@pytest.mark.parametrize("batch_events", often([1, 7, 50, 1_999], 7, 1_999))
def test_rows_do_not_depend_on_the_batches(batch_events: int) -> None:
    work = Nexmark(events=503, seed=3)
    batches = list(work.batches(batch_events))
    for stream in work.STREAMS:
        rows = whole(work, stream)
        rows.validate(full=True)
        assert rows.schema == work.schema(stream)
        assert rows.equals(pa.concat_batches([batch[stream] for batch in batches]))


@pytest.mark.parametrize("stream", Nexmark.STREAMS)
def test_any_rows_can_be_made_alone(stream: str) -> None:
    rows = whole(WORK, stream)
    for start, stop in ((0, 1), (17, 40), (len(rows) - 3, len(rows) + 5), (len(rows), 1 << 40)):
        assert WORK.batch(stream, start, stop).equals(rows[start : min(stop, len(rows))])
    for name in rows.schema.names:
        assert WORK.batch(stream, 5, 50, [name]).column(name).equals(rows[5:50].column(name))
    more = Nexmark(events=10 * EVENTS, seed=3)
    assert more.batch(stream, 0, len(rows)).equals(rows)


@pytest.mark.parametrize("stream", Nexmark.STREAMS)
def test_the_seed_decides(stream: str) -> None:
    rows = whole(WORK, stream)
    assert rows.equals(whole(Nexmark(events=EVENTS, seed=3), stream))
    other = whole(Nexmark(events=EVENTS, seed=4), stream)
    assert [name for name in rows.schema.names if rows[name] == other[name]] == (
        [] if stream == "bids" else ["id"]
    )


def test_rows_are_pinned() -> None:
    """A change here changes every published number that was drawn from a seed."""
    first = {stream: WORK.batch(stream, 0, 1).to_pylist()[0] for stream in WORK.STREAMS}

    def at(*of_the_day: int) -> datetime:
        return datetime(2024, 1, 1, *of_the_day, tzinfo=UTC)

    assert list(first["persons"].values()) == [
        *(1_000_000, "Wanda Dubois", "wanda.dubois1000000@example.com", "Oakland", "CA"),
        at(0, 0, 1, 742_473),
    ]
    assert list(first["auctions"].values()) == [
        *(1_000_000, "rare lamp", 217_884, 224_759, 7, 1_000_000),
        *(at(0, 0, 0, 424_386), at(0, 2, 8, 792_290)),
    ]
    assert list(first["bids"].values()) == [
        *(992_514, 984_958, 223, "partner 6"),
        at(0, 0, 1, 999_625),
    ]


def test_proportions() -> None:
    counts = {stream: len(whole(WORK, stream)) for stream in WORK.STREAMS}
    assert counts == {"persons": 101, "auctions": 302, "bids": 4_600}
    assert sum(counts.values()) == EVENTS
    assert [WORK.rows_of("auctions", events) for events in (0, 1, 2, 4, 5, 50, 52)] == (
        [0, 0, 1, 3, 3, 3, 4]
    )


@pytest.mark.parametrize("disorder", ["0 seconds", "250 milliseconds", "2 seconds"])
def test_rows_are_out_of_order_within_the_lateness(disorder: str) -> None:
    work = Nexmark(events=100_000, rate=10_000, disorder=disorder)
    most = {"0 seconds": 0, "250 milliseconds": 250_000, "2 seconds": 2_000_000}[disorder]
    for stream in work.STREAMS:
        times = times_us(whole(work, stream))
        behind = int((np.maximum.accumulate(times) - times).max())
        assert behind <= most
        assert behind >= most * 0.9
        assert times[-1] - times[0] == pytest.approx(10e6, abs=2.1e6)


def test_who_sells_and_who_bids() -> None:
    """Half of it is by few; they are persons who have signed up, most of them not long ago."""
    work = Nexmark(events=1_000_000)
    person_times = dict(
        zip(
            whole(work, "persons")["id"].to_pylist(),
            times_us(whole(work, "persons")).tolist(),
            strict=True,
        )
    )
    hot = {}
    for stream, column in (("auctions", "seller"), ("bids", "bidder")):
        rows = whole(work, stream)
        counts = sorted(pc.value_counts(rows[column]).to_pylist(), key=lambda each: -each["counts"])
        by_few = counts[: 1_000_000 // 50 // 100]
        hot[stream] = {each["values"] for each in by_few}
        assert sum(each["counts"] for each in by_few) / len(rows) == pytest.approx(0.5, abs=0.02)
        signed_up = [person_times.get(person, 0) for person in rows[column].to_pylist()]
        # Each of the two times may be two seconds late.
        assert (np.array(signed_up) <= times_us(rows) + 2_000_000).all()
    assert not hot["auctions"] & hot["bids"]


def test_columns_mean_what_they_say() -> None:
    persons, auctions, bids = (whole(WORK, stream) for stream in WORK.STREAMS)
    assert len(set(persons["id"].to_pylist())) == len(persons)
    assert len(set(persons["email_address"].to_pylist())) == len(persons)
    cities = set(zip(persons["city"].to_pylist(), persons["state"].to_pylist(), strict=True))
    assert len(cities) == len({city for city, _ in cities})
    assert pc.all(pc.greater(auctions["reserve"], auctions["initial_bid"])).as_py()
    assert pc.all(pc.greater_equal(auctions["expires"], auctions["date_time"])).as_py()
    put_up = bids["auction"].to_pylist()
    assert max(put_up) <= auctions["id"][-1].as_py()
    assert pc.min(bids["price"]).as_py() >= 100
    assert persons["date_time"][0].as_py() >= datetime(2024, 1, 1, tzinfo=UTC)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="events must be zero or more"):
        Nexmark(events=-1)
    with pytest.raises(ValueError, match="rate must be above 0"):
        Nexmark(events=1, rate=0)
    with pytest.raises(ValueError, match="no stream is called 'sellers'"):
        WORK.batch("sellers", 0, 1)
    with pytest.raises(ValueError, match="at least one event"):
        next(WORK.batches(0))
    assert whole(Nexmark(events=0), "bids").num_rows == 0

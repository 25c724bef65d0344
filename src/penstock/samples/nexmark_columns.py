"""The columns of persons, auctions and bids: places in the streams in, Arrow arrays out.

`COLUMNS` is the visible list of each stream's columns, their types and makers. A maker uses
only the event numbers of its rows and random words drawn at their offsets.

Who sells and who bids: half of all auctions are put up by one hot seller, half of all bids
made by one hot bidder, each of them a recent person who stays hot while the next hundred sign
up. The others are spread over the persons who signed up last. Ids do not begin at zero:
those who were there before the stream began sell and bid too, so that the first minutes are
like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.samples.nexmark_words import (
    CHANNELS,
    CITIES,
    FIRST_NAMES,
    LAST_NAMES,
    QUALITIES,
    STATES,
    THINGS,
)
from penstock.stats.counter import draw, unit

__all__ = ["COLUMNS", "EVENTS_PER_ROUND", "PLACES", "Rows"]

Integers = npt.NDArray[np.int64]

EVENTS_PER_ROUND: Final = 50
# Where in a round the events of a stream begin, and how many they are.
PLACES: Final = {"persons": (0, 1), "auctions": (1, 3), "bids": (4, 46)}

_FIRST_ID: Final = 1_000_000
_ACTIVE_PERSONS: Final = 100_000
_ACTIVE_AUCTIONS: Final = 10_000
_HOT_FOR: Final = 100  # sign-ups, or auctions put up
_HOT_SHARE: Final = 0.5
_CATEGORIES: Final = 10
_LONGEST_AUCTION_US: Final = 600_000_000


@dataclass(frozen=True)
class Rows:
    """Neighbouring rows of a stream.

    stream: its place among the streams. start: the offset of the first row. events: their
    numbers among the events of all streams. event_us: event time between two events.
    """

    seed: int
    stream: int
    start: int
    events: Integers
    first_us: int
    event_us: float
    disorder_us: int

    def fractions(self, lane: str) -> npt.NDArray[np.float64]:
        """Random numbers in [0, 1), one for each row, of the sequence of that name."""
        stop = self.start + len(self.events)
        return unit(draw(self.seed, (self.stream, *lane.encode()), self.start, stop))

    def below(self, bound: int, lane: str) -> Integers:
        """Random whole numbers from 0 to bound - 1."""
        whole: Integers = (self.fractions(lane) * bound).astype(np.int64)
        return whole

    @property
    def newest_person(self) -> Integers:
        """The offset of the person who signed up last, as of each row."""
        return self.events // EVENTS_PER_ROUND

    @property
    def newest_auction(self) -> Integers:
        """The offset of the auction put up last, as of each row; -1 before the first."""
        rounds, places = np.divmod(self.events, EVENTS_PER_ROUND)
        begin, count = PLACES["auctions"]
        newest: Integers = rounds * count + np.clip(places + 1 - begin, 0, count) - 1
        return newest


Maker = Callable[[Rows], pa.Array]


def _ids(rows: Rows) -> pa.Array:
    return pa.array(np.arange(rows.start, rows.start + len(rows.events)) + _FIRST_ID)


def _times_us(rows: Rows) -> Integers:
    slots = rows.events + rows.fractions("date_time")
    times: Integers = (slots * rows.event_us).astype(np.int64) + rows.first_us
    return times + rows.below(rows.disorder_us + 1, "disorder")


def _date_times(rows: Rows) -> pa.Array:
    return pa.array(_times_us(rows)).view(_TIME)


def _expires(rows: Rows) -> pa.Array:
    return pa.array(_times_us(rows) + rows.below(_LONGEST_AUCTION_US, "expires")).view(_TIME)


def _hot_or(rows: Rows, hot: Integers, others: Integers, lane: str) -> pa.Array:
    return pa.array(np.where(rows.fractions(f"hot {lane}") < _HOT_SHARE, hot, others) + _FIRST_ID)


def _recent(rows: Rows, newest: Integers, active: int, lane: str) -> Integers:
    return newest - rows.below(active, lane)


def _sellers(rows: Rows) -> pa.Array:
    newest = rows.newest_person
    others = _recent(rows, newest, _ACTIVE_PERSONS, "seller")
    return _hot_or(rows, newest // _HOT_FOR * _HOT_FOR, others, "seller")


def _bidders(rows: Rows) -> pa.Array:
    newest = rows.newest_person
    others = _recent(rows, newest, _ACTIVE_PERSONS, "bidder")
    # Half a turn before the hot seller: one who were both would fill the answer alone.
    return _hot_or(rows, newest // _HOT_FOR * _HOT_FOR - _HOT_FOR // 2, others, "bidder")


def _auctions(rows: Rows) -> pa.Array:
    newest = rows.newest_auction
    others = _recent(rows, newest, _ACTIVE_AUCTIONS, "auction")
    return _hot_or(rows, newest // _HOT_FOR * _HOT_FOR, others, "auction")


def _prices(rows: Rows, lane: str) -> Integers:
    """In cents, from 1 dollar to 10,000; as many are below 100 dollars as above."""
    prices: Integers = (100 * 10 ** (rows.fractions(lane) * 4)).astype(np.int64)
    return prices


def _bid_prices(rows: Rows) -> pa.Array:
    return pa.array(_prices(rows, "price"))


def _initial_bids(rows: Rows) -> pa.Array:
    return pa.array(_prices(rows, "initial_bid"))


def _reserves(rows: Rows) -> pa.Array:
    return pa.array(_prices(rows, "initial_bid") + _prices(rows, "reserve"))


def _categories(rows: Rows) -> pa.Array:
    return pa.array(rows.below(_CATEGORIES, "category") + 1)


def _words(rows: Rows, words: pa.Array, lane: str) -> pa.Array:
    return words.take(pa.array(rows.below(len(words), lane)))


def _names(rows: Rows) -> pa.Array:
    first, last = _words(rows, FIRST_NAMES, "first"), _words(rows, LAST_NAMES, "last")
    return pc.binary_join_element_wise(first, last, " ")


def _email_addresses(rows: Rows) -> pa.Array:
    name = pc.replace_substring(pc.utf8_lower(_names(rows)), " ", ".")
    return pc.binary_join_element_wise(name, _ids(rows).cast(pa.string()), "@example.com", "")


def _cities(rows: Rows) -> pa.Array:
    return _words(rows, CITIES, "city")


def _states(rows: Rows) -> pa.Array:
    return _words(rows, STATES, "city")  # that of the city


def _item_names(rows: Rows) -> pa.Array:
    quality, thing = _words(rows, QUALITIES, "quality"), _words(rows, THINGS, "thing")
    return pc.binary_join_element_wise(quality, thing, " ")


def _channels(rows: Rows) -> pa.Array:
    return _words(rows, CHANNELS, "channel")


_TIME: Final = pa.timestamp("us", tz="UTC")

COLUMNS: Final[Mapping[str, Mapping[str, tuple[pa.DataType, Maker]]]] = {
    "persons": {
        "id": (pa.int64(), _ids),
        "name": (pa.string(), _names),
        "email_address": (pa.string(), _email_addresses),
        "city": (pa.string(), _cities),
        "state": (pa.string(), _states),
        "date_time": (_TIME, _date_times),
    },
    "auctions": {
        "id": (pa.int64(), _ids),
        "item_name": (pa.string(), _item_names),
        "initial_bid": (pa.int64(), _initial_bids),
        "reserve": (pa.int64(), _reserves),
        "category": (pa.int64(), _categories),
        "seller": (pa.int64(), _sellers),
        "date_time": (_TIME, _date_times),
        "expires": (_TIME, _expires),
    },
    "bids": {
        "auction": (pa.int64(), _auctions),
        "bidder": (pa.int64(), _bidders),
        "price": (pa.int64(), _bid_prices),
        "channel": (pa.string(), _channels),
        "date_time": (_TIME, _date_times),
    },
}

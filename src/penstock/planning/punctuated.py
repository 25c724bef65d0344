"""What promises leave of windows: Ding and Rundensteiner's estimate (2004, section 5.2).

A tuple of stream b goes when stream a has closed its key. Of NK keys, a closes lambda_pa in a
second, so after T seconds b is expected to keep

    lambda_b * T_b * (1 - lambda_pa * T / NK)

    lambda_b   rate of b                 T_b   length of its window, in seconds
    lambda_pa  punctuation rate of a     NK    distinct keys of b in these T seconds

The paper counts T and NK from the start. Here both are of one window: T is T_b, and NK the keys
that a window of b sees. If keys come and go, the quotient is the same, and it does not depend on
how long the join has run. The bracket is clamped to [0, 1]: a stream may close keys that b never
had, or close one twice, and the paper's bracket then falls below 0.

With more streams a tuple goes when all others have closed its key. Their shares are multiplied, as
if they closed keys independently. Tuples that are kept because others may be late are not saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from penstock.model.query import Query
from penstock.model.stream import Stream
from penstock.model.workload.workload import Workload

__all__ = ["PunctuatedWindow", "punctuated_windows"]


@dataclass(frozen=True)
class PunctuatedWindow:
    """A window of which promises of other streams let tuples go.

    tuples: that it keeps without promises. closing: by stream that promises, the keys it closes in
    a second, None if that is not known. keys: in the window, None if not known. closed: the share
    of them that the others have closed. is_clamped: whether it would be more than 1. expected:
    tuples that it keeps with promises. Both are None if a number is missing. live: tuples that a
    running join holds, None without one.
    """

    tuples: float
    closing: Mapping[str, float | None]
    keys: float | None
    closed: float | None
    is_clamped: bool
    expected: float | None
    live: int | None = None


def punctuated_windows(
    query: Query,
    workload: Workload,
    kept: Mapping[str, float],
    live: Mapping[str, int] | None = None,
) -> dict[str, PunctuatedWindow]:
    """The windows of a join, by stream. kept: tuples of each without promises, within limits."""
    rates = _closing_rates(query, workload)
    found = {}
    for name in query.names:
        closing = {other: rate for other, rate in rates.items() if other != name}
        keys = _known_keys(query, workload, name)
        closed, is_clamped = _closed(query, workload, name, closing)
        expected = None
        if closed is not None:
            saved = workload.window_tuples(query, name) * closed
            expected = min(workload.live_tuples(query, name) - saved, kept[name])
        held = None if live is None else live[name]
        found[name] = PunctuatedWindow(
            kept[name], closing, keys, closed, is_clamped, expected, held
        )
    return found


def _closed(
    query: Query, workload: Workload, name: str, closing: Mapping[str, float | None]
) -> tuple[float | None, bool]:
    """The share of a window's keys that all other streams have closed, None if it is not known; and
    whether one of them closes more than there are."""
    if len(closing) < len(query.names) - 1 or 0.0 in closing.values():
        return 0.0, False
    keys = _known_keys(query, workload, name)
    rates = [rate for rate in closing.values() if rate is not None]
    if keys is None or len(rates) < len(closing):
        return None, False
    shares = [rate * _window_s(query, workload, name) / keys for rate in rates]
    return prod(min(share, 1.0) for share in shares), max(shares) > 1.0


def _closing_rates(query: Query, workload: Workload) -> dict[str, float | None]:
    """How many keys each stream closes in a second; None if it promises and that is not known."""
    told_by_others = {name for stream in query.streams for name in stream.expires}
    rates: dict[str, float | None] = {}
    for stream in query.streams:
        given = workload.punctuation_rate(stream.name)
        if given is not None:
            rates[stream.name] = given
        elif stream.promised.keys() - {"expires"} or stream.name in told_by_others:
            rates[stream.name] = _derived_rate(query, workload, stream)
    return rates


def _derived_rate(query: Query, workload: Workload, stream: Stream) -> float | None:
    """What a stream closes that promises without saying so: each tuple its key, or each cluster,
    of which a window has one for each key."""
    if stream.unique:
        return workload.rate(stream.name)
    if not (stream.clustered or stream.increasing):
        return None
    seconds = _window_s(query, workload, stream.name)
    keys = _known_keys(query, workload, stream.name)
    return None if keys is None or not seconds else keys / seconds


def _window_s(query: Query, workload: Workload, name: str) -> float:
    """The time in which as many tuples come as a window holds; 0 if none come."""
    rate = workload.rate(name)
    return workload.window_tuples(query, name) / rate if rate else 0.0


def _known_keys(query: Query, workload: Workload, name: str) -> float | None:
    columns = query.keys[query.position(name)]
    known = workload.knows_distinct(name, columns)
    return workload.distinct_keys(name, columns) if known else None

"""Who gets what, when there is less than the streams would need: CPU, memory, or both.

After Kang, Naughton and Viglas, section 5.2 of the 2003 version and 4.2 and 4.3 of the 2002 one,
for any number of streams. Each function returns the allocation with the highest `output_rate`, in
the order of the streams. Nothing is measured or kept: same arguments, same answer.

CPU is counted in tuples dealt with per unit of time (the service rate), whichever stream they are
of; memory in tuples. Rates and the service rate are per the same unit of time, whatever it is.

| short of | gain | best | streams |
|---|---|---|---|
| CPU, `drop="probe"` | linear in the rates | smallest window first | any |
| CPU, `drop="tuple"` | product of the rates | evenly | any |
| memory | linear in the windows | slowest stream first | two |
| memory | concave after a root is taken | found in rounds of exchanges | three and more |
| both | convex and symmetric in the rates | fastest stream first, then as memory | any |
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.shedding.output_rate import Drop, checked_drop
from penstock.shedding.quantities import Numbers, checked_floors, per_stream, positive
from penstock.shedding.sharing import Bounds, evenly, for_most_combinations, in_turn

__all__ = ["Allocation", "allocate_both", "allocate_cpu", "allocate_memory"]


class Allocation(NamedTuple):
    """What each stream gets; unpacks into two tuples in the order of the streams."""

    rates: tuple[float, ...]
    windows: tuple[float, ...]


def allocate_cpu(
    rates: Numbers,
    windows: Numbers,
    service_rate: float,
    drop: Drop = "probe",
    floors: Numbers | None = None,
) -> tuple[float, ...]:
    """The effective rates: how many tuples of each stream are dealt with per unit of time.

    rates: tuples that arrive per unit of time; no stream gets more
    windows: tuples in each window while nothing is dropped
    service_rate: tuples the join can deal with per unit of time, all streams together
    drop: "probe": a dropped tuple still enters its window; "tuple": it does not
    floors: the least of each stream

    With "probe", windows stay as they are given, and a tuple is worth the product of the other
    windows: most to the smallest window. With "tuple", a window of time shrinks with its stream,
    and the output is the product of the effective rates times a constant: the windows are checked,
    but do not matter, and the best is equal rates. A window of N rows fills up with older tuples
    whatever is dropped: "probe" describes it in either case.
    """
    real = per_stream("rates", rates)
    whole = per_stream("windows", windows, len(real))
    service = positive("service_rate", service_rate)
    mode = checked_drop(drop)
    least = checked_floors(floors, real, service, cap_name="rate", total_name="service rate")
    if service >= sum(real):
        return real
    if mode == "tuple":
        return evenly(service, Bounds(least, real))
    return in_turn(service, Bounds(least, real), turns=whole)


def allocate_memory(
    rates: Numbers,
    memory: float,
    floors: Numbers | None = None,
    *,
    caps: Numbers | None = None,
) -> tuple[float, ...]:
    """The windows: how many tuples of each stream are kept.

    rates: tuples that arrive, and probe, per unit of time
    memory: tuples there is room for, all streams together
    floors: the least of each stream
    caps: tuples in each whole window, beyond which memory is of no use; None: no end to it

    Of two streams the slower gets all: the faster one probes it and passes by, and the join becomes
    one-way. Of three and more, each is worth keeping unless it is faster than all others together.
    """
    real = per_stream("rates", rates)
    room = positive("memory", memory)
    most = (room,) * len(real) if caps is None else per_stream("caps", caps, len(real))
    least = checked_floors(floors, most, room, cap_name="cap", total_name="memory")
    return for_most_combinations(room, Bounds(least, most), real)


def allocate_both(
    memory: float,
    service_rate: float,
    rates: Numbers | None = None,
) -> Allocation:
    """Effective rates and windows, when both CPU and memory are short. Drops probes, not tuples.

    memory: tuples there is room for, all streams together
    service_rate: tuples the join can deal with per unit of time, all streams together
    rates: tuples that arrive per unit of time; None: two streams, each faster than the service rate

    One stream's rate and the other's window: with the best memory for them, the output is a convex
    function of the effective rates that does not care which stream is which, so the most uneven
    rates are the best. That is all to the fastest stream, what is left to the next (of equals, the
    later one first), and then the memory as `allocate_memory` shares it for those rates. For two
    streams the output is selectivity * service_rate * memory, if one of them is fast enough.
    """
    room = positive("memory", memory)
    service = positive("service_rate", service_rate)
    real = (service, service) if rates is None else per_stream("rates", rates)
    effective = real
    if service < sum(real):
        fastest_first = sorted(range(len(real)), key=lambda stream: (-real[stream], -stream))
        turns = [float(fastest_first.index(stream)) for stream in range(len(real))]
        effective = in_turn(service, Bounds((0.0,) * len(real), real), turns=turns)
    return Allocation(effective, allocate_memory(effective, room))

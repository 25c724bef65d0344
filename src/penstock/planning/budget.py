"""What is left of a load under limits: the windows and rates that a plan is then chosen for.

Indexes come after allocation (Kang et al.): a window that holds a tenth of its tuples may be better
scanned, whatever it would be whole.

Memory. With one pool for all streams, each window is expected to keep the same part of its tuples:
what is worth keeping is not known beforehand. With parts, each keeps what fits; if they are
allocated, `allocate_memory` says which, for the rates that probe. A tuple takes its row, and the
record and index entry that go with it.

CPU. Under a service rate, `allocate_cpu` says how many tuples of each stream are dealt with. Those
whose probes are dropped still enter their windows; those that are dropped as tuples do not, and
windows of time hold that many fewer.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.model.limits import Limits
from penstock.model.plan import Index
from penstock.planning.load import Load
from penstock.planning.memory import memory_bytes
from penstock.planning.touched import Structure
from penstock.shedding.allocation import allocate_cpu, allocate_memory
from penstock.shedding.output_rate import checked_drop

__all__ = ["tuple_bytes", "within"]


def within(load: Load, limits: Limits) -> Load:
    """What is left of a load."""
    if limits.service_rate is not None:
        load = _served(load, limits, limits.service_rate)
    return _kept(load, limits) if limits.memory.is_limited else load


def _served(load: Load, limits: Limits, service_rate: float) -> Load:
    names, drop = load.query.names, checked_drop(limits.drop)
    floors = [
        min(limits.floors.get(name, 0.0), rate)
        for name, rate in zip(names, load.rates, strict=True)
    ]
    rates = allocate_cpu(load.rates, load.tuples, service_rate, drop, floors)
    probing = tuple(
        rate if real else silent
        for rate, real, silent in zip(rates, load.rates, load.probe_rates, strict=True)
    )
    if drop == "probe":
        return replace(load, probe_rates=probing)
    tuples = tuple(
        tuples if load.counts_rows[stream] or not load.rates[stream] else tuples * rate / real
        for stream, (tuples, rate, real) in enumerate(
            zip(load.tuples, rates, load.rates, strict=True)
        )
    )
    return replace(load, rates=rates, probe_rates=probing, tuples=tuples)


def _kept(load: Load, limits: Limits) -> Load:
    if limits.memory.rows is not None:
        sizes, room = (1.0,) * len(load.tuples), float(limits.memory.rows)
    else:
        sizes = tuple(tuple_bytes(load, stream) for stream in range(len(load.tuples)))
        room = float(limits.memory.bytes or 0)
    wanted = [tuples * size for tuples, size in zip(load.tuples, sizes, strict=True)]
    parts = limits.parts(load.query.names)
    if limits.pool == "allocated" and room and any(load.probe_rates):
        kept = list(allocate_memory(load.probe_rates, room, caps=wanted))
    elif parts is not None:
        kept = [
            min(each, room * part / sum(parts)) for each, part in zip(wanted, parts, strict=True)
        ]
    else:
        share = min(1.0, room / sum(wanted)) if sum(wanted) else 1.0
        kept = [each * share for each in wanted]
    return replace(
        load,
        tuples=tuple(each / size if size else 0.0 for each, size in zip(kept, sizes, strict=True)),
    )


def tuple_bytes(load: Load, stream: int, indexes: tuple[Index, ...] | None = None) -> float:
    """What is kept of one tuple: its row, and on each path a record and a place in the index; as
    if all were hashed, where indexes are not known yet."""
    tuples = max(load.tuples[stream], 1.0)
    state = 0.0
    for word in range(len(load.query.access.words[stream])):
        index = indexes[word] if indexes else Index("hash")
        bucket = tuples / (index.buckets or load.keys(stream, word))
        state += memory_bytes(Structure(index.name, tuples, bucket), "penstock")
    return load.row_bytes[stream] + state / tuples

"""The embedded join: batches in, results out, in this process.

The order of a call is: check everything (nothing has changed yet), then take everything.
So a refused batch leaves the join as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Lock
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import pyarrow as pa

from penstock.engine.arrivals import Intake
from penstock.engine.clock import Clock
from penstock.engine.engine import Engine
from penstock.engine.intake import take_in, warn_of_unit
from penstock.engine.promises.marked_rows import closings_of
from penstock.engine.release import Released
from penstock.engine.residual import bound
from penstock.errors import InputError, SchemaError, StateError
from penstock.kernels.jit import announce_compilation
from penstock.model.arrival_time import ARRIVAL, given_schema, timed_schema
from penstock.model.binding import Binding
from penstock.model.counters import StreamCounts
from penstock.model.limits import Memory
from penstock.model.plan import Plan
from penstock.model.query import Query
from penstock.model.window import Window, parse_window
from penstock.model.workload.workload import Workload
from penstock.runtime import snapshot
from penstock.runtime.counted import metrics_of
from penstock.runtime.late import LateRows
from penstock.runtime.metrics import Metrics
from penstock.runtime.moment import microseconds
from penstock.runtime.new_limits import changed_limits
from penstock.runtime.observed import Recent, observed_workload
from penstock.runtime.one_call import one_at_a_time
from penstock.runtime.promised import check_kept, promised_key, propagated_table
from penstock.runtime.why.why import Why, explain_tuples
from penstock.windows.payload.storage import check_keepable

__all__ = ["Join"]


_Brought = TypeVar("_Brought")


class Join:
    """A running join. A call is refused while another is in it: one thread at a time."""

    def __init__(
        self,
        query: Query,
        plan: Plan,
        schemas: Mapping[str, pa.Schema] | None,
        clock: Callable[[], float] | None,
    ) -> None:
        which = "joins by a key" if plan.is_plain else "joins by order or by several paths"
        announce_compilation(which if plan.limits is None else f"{which}, under limits")
        self.query = query  # with the windows of this moment
        self.started_as = query
        self.plan = plan
        binding = Binding.of(query)
        if schemas:
            unknown = [name for name in schemas if name not in query.names]
            if unknown:
                raise SchemaError(
                    f"schemas names {unknown}, which are no streams; the streams are {query.names}"
                )
            for name, schema in schemas.items():
                if not isinstance(schema, pa.Schema):
                    raise SchemaError(
                        f"the schema of stream {name!r} is a {type(schema).__name__}; "
                        "pass a pyarrow.Schema"
                    )
                check_keepable(schema, name)
            binding = bound(
                binding,
                {
                    query.position(name): timed_schema(schema, name)
                    if query.streams[query.position(name)].time is ARRIVAL
                    else schema
                    for name, schema in schemas.items()
                },
            )
        self.engine = Engine(binding, plan)
        self.driver, self.gate = self.engine.driver, self.engine.gate
        self.clock = Clock(query, clock or time.monotonic)
        self._wall_clock = clock or time.time
        self.late_rows = [LateRows() for _ in query.streams]
        self.broken_rows = [LateRows() for _ in query.streams]
        self.counts = [StreamCounts() for _ in query.streams]
        self.recent = [Recent() for _ in query.streams]
        self.finished = False
        self._closed = False
        self._broken = False
        self.busy = Lock()

    # Batches in, results out.

    @one_at_a_time
    def push(self, batches: Mapping[str, Any] | None = None, /, **streams: Any) -> pa.Table:
        """Feed one batch, made of a table for any of the streams, and get its results.

        Tables are keywords, or one mapping for names that are no identifiers.
        """
        self._must_be_open("push")
        given = self._by_stream("push", batches, streams)
        watermark = self.clock.now()
        instant_us = self.clock.arrival(self._wall_clock, watermark)
        binding, intakes = take_in(self.query, self.driver.binding, given, instant_us)
        if binding is not self.driver.binding:
            self.driver.check_binding(binding)
        for stream, intake in intakes.items():
            if not self.counts[stream].arrived:
                warn_of_unit(self.query, stream, intake)
        released = self.engine.release(binding, intakes, watermark)
        if self.plan.promising.refuses:
            check_kept(self.query, released)
        return self._whole(lambda: self._take(binding, intakes, released, watermark))

    def _take(
        self,
        binding: Binding,
        intakes: Mapping[int, Intake],
        released: Mapping[int, Released],
        watermark: int,
    ) -> pa.Table:
        if binding is not self.driver.binding:
            self.driver.bind(binding)
        for stream, intake in intakes.items():
            marked, broken = released[stream].marked, released[stream].broken
            punctuations, unusable = (0, 0) if marked is None else (marked.rows, marked.unusable)
            self.counts[stream].arrived += len(intake.ts) - punctuations
            self.counts[stream].punctuations += punctuations
            self.counts[stream].unusable += unusable
            self.counts[stream].filtered += released[stream].filtered
            if broken is not None:
                self.counts[stream].broken += len(broken)
                self.keep_broken(stream, broken)
            if not self.query.keeps_keyless(stream):
                self.counts[stream].keyless += released[stream].keyless
            late = released[stream].late
            if late is not None:
                self.counts[stream].late += len(late)
                self.keep_late(stream, late)
            if len(intake.ts):
                closing = punctuations - unusable
                self.recent[stream].saw(len(released[stream].arrivals), intake, closing)
        newest = {}
        for stream, intake in intakes.items():
            if len(intake.ts):
                reached = self.clock.reached(stream, intake.ts, intake.latest)
                newest[stream], jumped = reached
                self.counts[stream].jumps += jumped
        after = self.clock.after(newest, watermark)
        results = self.engine.take(released, after[1])
        self.clock.settle(after, newest)
        if self.driver.promises and self.driver.shedder.limits is not None:
            self._count_late()
        return results

    def _whole(self, work: Callable[[], _Brought]) -> _Brought:
        """What is begun must be ended, or the windows are no longer what they say."""
        try:
            return work()
        except BaseException:
            self._broken = True
            raise

    @one_at_a_time
    def advance(self, stream: str, ts: int | datetime) -> pa.Table:
        """Promise that `stream` has no tuple before `ts` left to come; return the results."""
        self._must_be_open("advance")
        number = self._number(stream)
        moment = microseconds(ts)
        self.clock.advance(number, moment)
        return self._whole(lambda: self.engine.pass_time(self.clock.watermark))

    @one_at_a_time
    def punctuate(
        self,
        stream: str,
        key: Mapping[str, Any] | None = None,
        /,
        *,
        at: int | datetime | None = None,
        **columns: Any,
    ) -> pa.Table:
        """Promise that `stream` brings no more tuples of a key with a time of `at` or later; return
        the results that this brings out, in outer joins.

        key: in keywords, or one mapping: a value, `OneOf` or `Range` for each column; one that is
        left out means any value. at: the greatest time that the stream has brought, when not given.
        """
        self._must_be_open("punctuate")
        number = self._number(stream)
        given = promised_key(self.query, key, columns)
        moment = self.clock.greatest(number) if at is None else microseconds(at)
        closings = closings_of(self.driver.binding, number, given, moment)
        self.counts[number].punctuations += 1
        self.counts[number].unusable += not closings
        if closings:
            self.recent[number].punctuated()
        return self._whole(lambda: self.engine.pass_time(self.clock.watermark, closings))

    @one_at_a_time
    def punctuations(self) -> pa.Table:
        """Keys of which no result comes any more, since the last call, and from when on."""
        return propagated_table(self)

    @one_at_a_time
    def broken(self) -> dict[str, pa.Table]:
        """The tuples of each stream that it had promised not to bring, since the last call."""
        drained = self._drained(self.broken_rows)
        self._count_late()
        return drained

    @one_at_a_time
    def resize(self, stream: str, window: Window | str | timedelta) -> pa.Table:
        """Give a window of time or rows another length; return the results that this brings out.

        A shorter one ends tuples for good. A longer one holds those that are still there.
        """
        self._must_be_open("resize")
        number = self._number(stream)
        new = parse_window(window, f"the window of stream {stream!r}")
        query = self.query.resized(number, new)
        results = self._whole(lambda: self.driver.resize(number, new, self.clock.watermark))
        self.query = query
        return results

    @one_at_a_time
    def limit(
        self, memory: str | Memory | None = None, *, service_rate: float | None = None
    ) -> None:
        """Keep within another memory from now on, of rows or of bytes as before or not, or within
        another service rate; what is not given stays as it is."""
        self._must_be_open("limit")
        shedder = self.driver.shedder
        limits = changed_limits(self.query, shedder.limits, memory, service_rate)
        assert shedder.limits is not None, "that has been refused"
        shedder.check_memory(limits.memory)
        shedder.limits = limits  # by which late rows are kept, too
        for rows, counts in zip(self.late_rows, self.counts, strict=True):
            counts.late_forgotten += rows.fit(self._late_room)
        self._count_late()
        self._whole(lambda: shedder.limit(limits, self.clock.watermark))

    def _number(self, stream: str) -> int:
        if stream not in self.query.names:
            raise InputError(f"no stream is called {stream!r}; the streams are {self.query.names}")
        return self.query.names.index(stream)

    @one_at_a_time
    def finish(self) -> pa.Table:
        """End all streams; return the last results. Memory of what has expired is given back."""
        self._must_be_open("finish")
        self.clock.finish()
        self.finished = True
        return self._whole(self._end)

    def _end(self) -> pa.Table:
        results = self.engine.pass_time(self.clock.watermark)
        self.driver.windows.give_back()
        return results

    def keep_late(self, stream: int, late: pa.RecordBatch) -> None:
        """Keep late rows until they are asked for: under a limit in bytes, within a part of it."""
        forgotten = self.late_rows[stream].add(late, self._late_room)
        self.counts[stream].late_forgotten += forgotten
        self._count_late()

    def keep_broken(self, stream: int, broken: pa.RecordBatch) -> None:
        """The same of rows that break a promise."""
        forgotten = self.broken_rows[stream].add(broken, self._late_room)
        self.counts[stream].broken_forgotten += forgotten
        self._count_late()

    @property
    def _late_room(self) -> int | None:
        """How many bytes the late rows of a stream may take; None for any."""
        room = self.driver.shedder.late_bytes
        return None if room is None else room // len(self.late_rows)

    def _count_late(self) -> None:
        beside = sum(rows.nbytes for rows in (*self.late_rows, *self.broken_rows))
        promises = self.driver.promises
        self.driver.shedder.bytes_beside = beside + (promises.nbytes if promises else 0)

    @one_at_a_time
    def late(self) -> dict[str, pa.Table]:
        """The late tuples of each stream since the last call."""
        drained = self._drained(self.late_rows)
        self._count_late()
        return drained

    def _drained(self, kept: Sequence[LateRows]) -> dict[str, pa.Table]:
        return {
            name: rows.drain(None if schema is None else given_schema(schema))
            for name, rows, schema in zip(
                self.query.names, kept, self.driver.binding.schemas, strict=True
            )
        }

    def _by_stream(
        self, verb: str, mapping: Mapping[str, Any] | None, keywords: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """What a call was given for each stream, as keywords or in one mapping."""
        if mapping is None:
            return keywords
        if not isinstance(mapping, Mapping):
            raise InputError(
                f"{verb} takes one keyword for each stream, or one mapping, "
                f"got a {type(mapping).__name__}; write {verb}({self.query.names[0]}=...)"
            )
        twice = [name for name in mapping if name in keywords]
        if twice:
            raise InputError(f"{verb} was given {twice} twice; give each stream once")
        return {**mapping, **keywords}

    # What it says of itself.

    @property
    @one_at_a_time
    def metrics(self) -> Metrics:
        """Counters of this moment."""
        return metrics_of(self)

    @one_at_a_time
    def workload(self) -> Workload:
        """What has been seen of the streams: rates of late, and of the live tuples how many keys
        they have, how often they match, and what is kept of one."""
        self._must_be_whole()
        return observed_workload(self)

    @one_at_a_time
    def footprint(self) -> dict[str, int]:
        """Bytes held: `state` for rings and indexes, `payload` for the columns of tuples,
        `late` for late tuples nobody has fetched."""
        windows = self.driver.windows
        return {
            "state": windows.state_bytes,
            "payload": windows.payload_bytes,
            "late": sum(rows.nbytes for rows in self.late_rows),
        }

    @one_at_a_time
    def why(
        self, tuples: Mapping[str, Mapping[str, Any]] | None = None, /, **streams: Mapping[str, Any]
    ) -> Why:
        """Why these tuples, one of each stream named, joined or did not."""
        return explain_tuples(self, self._by_stream("why", tuples, streams))

    @one_at_a_time
    def snapshot(self) -> bytes:
        """All it needs to go on elsewhere: give it to the query's `restore`."""
        self._must_be_whole()
        return snapshot.save(self)

    # Its end.

    def close(self) -> None:
        """No more batches. What it says of itself stays readable. Any thread may call it."""
        self._closed = True

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise StateError(
            "a running join can be neither copied nor pickled; to go on elsewhere, give the bytes "
            "of its snapshot() to the query's restore()"
        )

    def __enter__(self) -> Join:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _must_be_whole(self) -> None:
        if self._broken:
            raise StateError(
                "a call was interrupted half-way, and the windows can no longer be trusted; "
                "restore the last snapshot, or start the query again"
            )

    def _must_be_open(self, verb: str) -> None:
        self._must_be_whole()
        if self.finished or self._closed:
            end = "finished" if self.finished else "closed"
            raise StateError(f"cannot {verb}: the join is {end}; start the query again")

"""The front door: a query that can be run.

A query is described without the engine: planner, kernels and Spark are imported by what runs it,
so `import penstock` is quick, and a driver that only hands a query to Spark loads no kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import PlanError
from penstock.extras import extra
from penstock.model.binding import Binding
from penstock.model.limits import Limits
from penstock.model.plan import Indexes
from penstock.model.punctuation import Promising
from penstock.model.query import Query
from penstock.model.workload.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.planning.explain.explanation import Explanation
    from penstock.planning.weights import Weights
    from penstock.runtime.join import Join

__all__ = ["WindowJoin"]


@dataclass(frozen=True)
class WindowJoin(Query):
    """A join of streams over sliding windows.

    >>> query = WindowJoin(
    ...     [Stream("orders", time="placed_at"), Stream("payments", time="paid_at")],
    ...     on="order_id",
    ...     within="10 minutes",
    ... )  # doctest: +SKIP

    on: the key: a column that all streams share, several of them, or for each stream
        its own column or columns.
    where: further predicates, or all of them: SQL text over columns written
        `stream.column`, such as 'a.k = b.k AND abs(a.x - b.x) <= 5', functions wrapped by
        `udf`, or a list of these, all of which must hold.
    within: the window of every stream that names none, such as '10 minutes', '1000 rows',
        '1000 rows per key', '1000 arrivals', 'tumbling 10 seconds', 'unbounded' or
        'since 2026-01-01T00:00:00Z'.
    between, closed: for two streams, instead: bounds on `second.ts - first.ts`.
    how: 'inner', or of two streams 'left', 'right', 'full', 'semi' or 'anti'. What matches
        nothing comes out when the watermark says that nothing can match it any more.
    select: output columns, as `{"new_name": "stream.column"}` or `["stream.column", …]`;
        all columns, named `stream_column`, when not given.
    """

    def explain(
        self,
        workload: Workload | None = None,
        *,
        indexes: Indexes | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
        limits: Limits | None = None,
        weights: str | Weights | None = None,
        running: Join | None = None,
    ) -> Explanation:
        """The plan that would be run, what it costs, what else there is, and where that would be
        better. Print it, or take it apart.

        workload: what is known of the streams, as given, measured by `penstock profile`, or taken
            from a running join by `join.workload()`. Without, rates are taken to be equal and
            windows to be large.
        indexes, probe_orders, limits: as in `start`; what is given is kept, and costed.
        weights: 'penstock', 'kang2003', 'kang2002', 'tuples' or Weights; those that were measured
            on this machine when not given, or else 'penstock'.
        running: a join of this query. The tuples that it holds are shown beside those that are
            expected, and its own workload is planned for when none is given.
        """
        from penstock.planning.case import case_of
        from penstock.planning.explain.explanation import explained
        from penstock.spark.partitioning import partitioning

        case = case_of(
            self,
            running.workload() if workload is None and running is not None else workload,
            indexes=indexes,
            probe_orders=probe_orders,
            limits=limits,
            weights=weights,
        )
        live = None if running is None else self._live_in(running)
        told = explained(case, partitioning(self, pooled=limits is not None), live)
        if limits is not None:  # refuses what no join could keep
            from penstock.engine.driver import Driver

            Driver(Binding.of(self), told.choice.plan(self, limits))
        return told

    def _live_in(self, running: Join) -> dict[str, int]:
        """The tuples that a join of this query holds, by stream."""
        if running.query.names != self.names:
            raise PlanError(
                f"running= is a join of the streams {running.query.names}, and this query is of "
                f"{self.names}; give a join of this query"
            )
        return {name: each.live for name, each in running.metrics.streams.items()}

    def start(  # noqa: PLR0913  # by keyword only
        self,
        workload: Workload | None = None,
        *,
        indexes: Indexes | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
        schemas: Mapping[str, pa.Schema] | None = None,
        clock: Callable[[], float] | None = None,
        limits: Limits | None = None,
        forget: str = "both",
        promises: str = "drop",
    ) -> Join:
        """Run it in this process.

        workload: what is known of the streams, for the planner; `explain` shows what comes of it.
        indexes: 'hash', 'buckets', 'buckets(4096)', 'bplus_tree', 't_tree' or 'scan', for all
            windows or by stream. The answer does not depend on it. When not given, the cheapest.
        probe_orders: by stream, the others in the order its arrivals probe them; when not given,
            the cheapest.
        schemas: of streams, so that results are typed before a stream's first batch; an outer
            join cannot fill the columns of a stream with nulls before it knows them.
        clock: seconds, for idle timeouts, and since 1970 for times of arrival; the system's
            clocks when not given.
        limits: of memory; what goes when it is not enough, and what is counted of that.
        forget: by what tuples are forgotten: 'both' punctuations and windows, 'window' alone, or
            'punctuation' alone, without windows.
        promises: whether a tuple that its stream had promised not to bring is dropped ('drop') and
            handed out by `join.broken()`, or its batch is refused ('error').
        """
        from penstock.planning.case import plan_for
        from penstock.runtime.join import Join

        promising = Promising.of(forget, promises)
        query = self.without_windows() if forget == "punctuation" else self
        plan = plan_for(query, workload, indexes, probe_orders, limits, promising)
        return Join(query, plan, schemas, clock)

    def on_spark(  # noqa: PLR0913  # by keyword only
        self,
        frames: Mapping[str, Any] | None = None,
        /,
        *,
        workload: Workload | None = None,
        indexes: Indexes | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
        buckets: int | None = None,
        kind: bool = False,
        initial: Mapping[str, Any] | None = None,
        metrics: str | None = None,
        limits: Limits | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        forget: str = "both",
        promises: str = "drop",
        **streams: Any,
    ) -> Any:
        """Run it on Spark: a DataFrame for each stream in, one of the joined rows out.

        frames: the DataFrames in one mapping, for names that are no keywords.
        workload, indexes, probe_orders: as in `start`.
        buckets: into how many parts the join is divided, by key, each of them joined on its
            own; four for each shuffle partition when not given. It stays with a checkpoint. Two
            streams without a key are divided by tuples, into one for each partition. Windows
            of N rows of a stream, or of arrivals, take one, and so do other joins without a
            key; a PlanWarning says so.
        kind: add a column `kind`: 'result', or 'late' and 'broken' for rows that came behind the
            watermark or broke a promise, with the columns of the other streams null, or
            'punctuation' for keys that are over, with all but the key null.
        initial: by stream, a batch DataFrame of history. The query starts as if it had been
            the first batch, but without the results of its own: those are what the same join
            of the histories as batch DataFrames gives. Used when a checkpoint is new.
        metrics: the name of its counters in the query's progress: 'penstock', or 'penstock 2'
            for a join over the output of another. No two in a query may be alike.
        limits: of memory, of the whole join, for streaming DataFrames: each bucket has an equal
            share of it, so there is one bucket for each partition when `buckets` is not given. The
            counters say what is lost. They may be others at a restart.
        checkpoint: the checkpointLocation that the query will be given, looked at now: one of
            another join is refused here, and not by the first batch. A new one is fine.
        forget, promises: as in `start`; with promises='error' a broken one ends the query.
        """
        from penstock.planning.case import plan_for

        with extra("spark", "on_spark"):
            from penstock.spark.operator import SparkOptions, join_on_spark

        promising = Promising.of(forget, promises)
        query = self.without_windows() if forget == "punctuation" else self
        plan = plan_for(query, workload, indexes, probe_orders, limits, promising)
        given = {**(frames or {}), **streams}
        return join_on_spark(
            query, given, plan, SparkOptions(buckets, kind, initial or {}, metrics, checkpoint)
        )

    def restore(  # noqa: PLR0913  # by keyword only
        self,
        data: bytes,
        *,
        workload: Workload | None = None,
        indexes: Indexes | None = None,
        probe_orders: Mapping[str, Sequence[str]] | None = None,
        clock: Callable[[], float] | None = None,
        limits: Limits | None = None,
        forget: str = "both",
        promises: str = "drop",
    ) -> Join:
        """Go on from a snapshot, under the same or another plan, and the same or other limits."""
        from penstock.runtime import snapshot

        join = self.start(
            workload,
            indexes=indexes,
            probe_orders=probe_orders,
            clock=clock,
            limits=limits,
            forget=forget,
            promises=promises,
        )
        snapshot.load(join, data)
        return join

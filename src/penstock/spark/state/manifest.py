"""Cold state: what Spark's state store keeps of a bucket, and all that is needed to go on.

For each stream, immutable segments: tuples, as compressed Arrow. And one manifest: which segments
there are, the counters, and the token of the hot state that matches them. If tuples may leave
early, a record says which of them remain. Restoring is Spark's: what the store returns
is what was committed. What is written when: cold_state.py.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from penstock.errors import SchemaError, SnapshotError
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.description import difference
from penstock.runtime.envelope import seal, unseal
from penstock.shedding.shedder import Shedder
from penstock.windows.payload.storage import kept_type

__all__ = ["Manifest", "Segment", "Store"]


class Store(Protocol):
    """The state calls a bucket makes. A segment is known by its window and its number."""

    def read_manifest(self) -> bytes | None:
        """What was last written, None at first."""

    def write_manifest(self, data: bytes) -> None:
        """Keep the manifest."""

    def read_segment(self, window: int, number: int) -> bytes | None:
        """A segment, None if there is none."""

    def write_segment(self, window: int, number: int, data: bytes) -> None:
        """Keep a segment."""

    def remove_segment(self, window: int, number: int) -> None:
        """Forget a segment."""

    def wake_at(self, watermark: int) -> None:
        """Ask for a step when the join's watermark has come to this, batch or no batch."""


@dataclass(frozen=True)
class Segment:
    """number: its name in the store. rows: as written. newest: the greatest ts in it.

    first, last: the least and the greatest number in it, if tuples may leave early.
    """

    number: int
    rows: int
    newest: int
    first: int = 0
    last: int = 0


@dataclass
class Manifest:
    """What is known of a bucket beside its tuples.

    token: of the hot state that equals the segments. watermark: the highest seen.
    timer: the watermark at which the bucket will be woken; None when it will not.
    reached: the watermarks of the streams at the end of the history it began with.
    division: how many buckets there are, itself included, over how many partitions.
    columns: those kept of each stream, and their types. given: all that the input had.
    segments: of each stream's tuples, then of each stream's ghosts.
    matched: in outer, semi and anti joins, the tuples of each stream that have matched, as bits
    in the order of the segments, of those that had not expired at the watermark; if rows or
    arrivals are counted, in the order of their turns, of those in the window.
    recorded: whether a record says which tuples remain; then nothing is in `matched`.

    If rows or arrivals are counted, tuples wait, and have had their turn up to the watermark.
    numbered: how many have been numbered. floors: for each stream, the time before which none
    is in its window.

    Under limits, loss: how losses are counted; None without limits. shed: tuples that were.
    unprobed: those that did not look for partners. lost, lost_variance: results that were, and how
    uncertain that is.
    """

    query: Mapping[str, Any]
    columns: list[dict[str, str]]
    division: tuple[int, int]
    segments: list[list[Segment]]
    arrived: list[int]
    late: list[int]
    token: str = ""
    watermark: int = BEGINNING
    timer: int | None = None
    next_segment: int = 0
    produced: int = 0
    reached: list[int] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    given: list[list[str]] = field(default_factory=list)
    recorded: bool = False
    numbered: int = 0
    floors: list[int] = field(default_factory=list)
    loss: str | None = None
    shed: int = 0
    unprobed: int = 0
    lost: float = 0.0
    lost_variance: float = 0.0

    @classmethod
    def of(cls, binding: Binding, division: tuple[int, int]) -> Manifest:
        """That of a bucket nothing has come to."""
        streams = len(binding.query.streams)
        return cls(
            query=binding.query.describe(),
            columns=_columns(binding),
            division=division,
            segments=[[] for _ in range(2 * streams)],
            arrived=[0] * streams,
            late=[0] * streams,
            reached=[BEGINNING] * streams,
            matched=[""] * streams,
            given=_given(binding),
            floors=[BEGINNING] * streams,
        )

    def pack(self) -> bytes:
        """Its bytes."""
        return seal(json.dumps(asdict(self)).encode(), json.dumps(self.query))

    @staticmethod
    def partitions_of(data: bytes) -> int:
        """Over how many partitions the buckets are, by a manifest of any query."""
        try:
            return int(json.loads(bytes(unseal(data, "bucket")))["division"][1])
        except (KeyError, TypeError) as error:
            raise _other_version(error) from error

    @classmethod
    def unpack(cls, data: bytes, binding: Binding, division: tuple[int, int]) -> Manifest:
        """From its bytes, if it is of this query; columns added since are taken on."""
        try:
            fields = json.loads(bytes(unseal(data, "bucket")))
            listed = fields.pop("segments")
            segments = [[Segment(**each) for each in of_window] for of_window in listed]
            manifest = cls(segments=segments, **fields)
        except (KeyError, TypeError) as error:
            raise _other_version(error) from error
        _check_query(manifest.query, json.loads(json.dumps(binding.query.describe())))
        if tuple(manifest.division) != division:
            buckets, partitions = manifest.division
            raise SnapshotError(
                f"the checkpoint has {buckets} buckets over {partitions} partitions, "
                f"and this query {division[0]} over {division[1]}; pass buckets={buckets} to "
                f"on_spark, with spark.sql.shuffle.partitions={partitions}, or use a new checkpoint"
            )
        manifest.division = division
        columns, given = _columns(binding), _given(binding)
        for stream, name in enumerate(binding.query.names):
            was, now = manifest.columns[stream], columns[stream]
            _check_columns(name, was, now, given[stream])
            _check_kept(name, was, now, manifest.given[stream])
        manifest.columns, manifest.given = columns, given
        return manifest

    def check_loss(self, loss: str | None) -> None:
        """Refuse to go on with losses counted in another way; None: without limits."""
        if self.loss is None:
            return
        if loss is None:
            raise SnapshotError(
                "the checkpoint is of a join under limits, which has dropped some of its tuples; "
                "go on with limits=, or use a new checkpoint"
            )
        if (self.loss == "off") != (loss == "off"):
            raise SnapshotError(
                f"the checkpoint is of a join with loss={self.loss!r}, and goes on with "
                f"loss={loss!r}; what is lost cannot be counted from the middle on: "
                f"use loss={self.loss!r}, or a new checkpoint"
            )

    def note_losses(self, shedder: Shedder) -> None:
        """Take up what has been lost so far."""
        self.loss = shedder.limits.loss
        self.shed = int(shedder.losses.shed.sum())
        self.unprobed = int(shedder.losses.unprobed.sum())
        self.lost = float(shedder.losses.lost.sum())
        self.lost_variance = shedder.losses.variance or 0.0


def _other_version(error: Exception) -> SnapshotError:
    return SnapshotError(
        f"the checkpoint is of another version of penstock: {error}; "
        "go on with that version, or use a new checkpoint"
    )


def _columns(binding: Binding) -> list[dict[str, str]]:
    """The kept columns of each stream and their types, as text."""
    return [
        {name: str(kept_type(schema.field(name).type)) for name in kept}
        for schema, kept in zip(binding.schemas, binding.kept, strict=True)
        if schema is not None
    ]


def _given(binding: Binding) -> list[list[str]]:
    """All columns of each stream's input."""
    return [[] if schema is None else schema.names for schema in binding.schemas]


def _check_query(was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    differs = difference(was, now, ignored=["select"])
    if differs is not None:
        raise SnapshotError(
            f"the checkpoint is of another join: {differs}; "
            "use the query that wrote it, or a new checkpoint"
        )


def _check_columns(
    stream: str, was: Mapping[str, str], now: Mapping[str, str], given: Sequence[str]
) -> None:
    """Columns may be selected no more, but not be gone or of another type."""
    for column, data_type in was.items():
        if column not in given:
            raise SchemaError(
                f"column {column!r} of stream {stream!r} is in the checkpoint but no longer in "
                "the input; bring it back, or use a new checkpoint"
            )
        if now.get(column, data_type) != data_type:
            raise SchemaError(
                f"column {column!r} of stream {stream!r} was {data_type} in the checkpoint and "
                f"is {now[column]} now; cast it, or use a new checkpoint"
            )


def _check_kept(
    stream: str, was: Collection[str], now: Collection[str], had: Sequence[str]
) -> None:
    """What the input had, but the checkpoint did not keep, is not there for its tuples."""
    for column in sorted(now):
        if column not in was and column in had:
            raise SchemaError(
                f"column {column!r} of stream {stream!r} was not selected when the checkpoint was "
                "written, so the tuples in the windows do not have it; leave it out of select=, "
                "or use a new checkpoint"
            )

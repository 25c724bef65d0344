"""What can go wrong, as one tree.

    PenstockError
    ├── QueryError       the join as described makes no sense
    ├── PlanError        the way asked for to evaluate it does not exist
    ├── InputError       what a call was given does not fit; nothing of it was taken
    │   ├── SchemaError      its columns or types do not fit
    │   └── TimestampError   its event times do not fit
    ├── UdfError         a function given as a predicate failed, or gave no answer
    ├── StateError       the running join cannot do this now
    ├── MissingExtraError    a package that this needs is not installed
    └── SnapshotError    the bytes are not a snapshot of this join

And what is done as asked, but at a price: PlanWarning; or though it looks like a mistake:
InputWarning.

Every message says what is wrong, what was got, and what to do.
"""

from __future__ import annotations

__all__ = [
    "InputError",
    "InputWarning",
    "MissingExtraError",
    "PenstockError",
    "PlanError",
    "PlanWarning",
    "QueryError",
    "SchemaError",
    "SnapshotError",
    "StateError",
    "TimestampError",
    "UdfError",
]


class PenstockError(Exception):
    """Base of every error penstock raises on purpose."""


class QueryError(PenstockError, ValueError):
    """The join as described makes no sense."""


class PlanError(PenstockError, ValueError):
    """The way asked for to evaluate the join does not exist."""


class InputError(PenstockError, ValueError):
    """What a call was given does not fit. The join is as it was before."""


class SchemaError(InputError):
    """The columns or types of a batch do not fit the query."""


class TimestampError(InputError):
    """The event times of a batch are null, out of range or too fine."""


class UdfError(PenstockError, RuntimeError):
    """A function given to `udf` failed, or what it returned is no answer."""


class StateError(PenstockError, RuntimeError):
    """The running join cannot do this in the state it is in."""


class MissingExtraError(PenstockError, ImportError):
    """A package of one of penstock's extras is needed, and is not installed."""


class SnapshotError(PenstockError, ValueError):
    """The bytes are not a whole snapshot of this join."""


class PlanWarning(UserWarning):
    """The join runs as asked, in a way that costs more than another would."""


class InputWarning(UserWarning):
    """What a call was given is taken as it is, but looks like a mistake."""

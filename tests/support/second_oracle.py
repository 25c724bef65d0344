"""docs/semantics.md as a program, a second time: what a join answers, and when.

It was first written from that page alone. Where penstock then differed because the page was open to
two readings, the page was made precise and this program follows it. It shares no line with penstock
or with `oracle.py`, and looks at every combination of all tuples that ever came.
"Reading:" marks what the page leaves open.

    outcomes = answer(question, calls, start_us)

`calls` are the pushes, advances and restarts of a join and its end, with the wall clock at each;
`outcomes` has for each of them the results that come out, what was late, and what the counters say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from support.second_intake import take_in
from support.second_question import Arrival, Call, Counters, Outcome, Question, Result
from support.second_terms import holds, streams

PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


def answer(question: Question, calls: Sequence[Call], start_us: int = 0) -> list[Outcome]:
    return _Answer(question, calls, start_us).outcomes()


class _Answer:
    def __init__(self, question: Question, calls: Sequence[Call], start_us: int) -> None:
        self.question = question
        self.calls = calls
        self.arrivals, self.watermarks = take_in(question, calls, start_us)
        part = [a for a in self.arrivals if not a.is_late and not a.is_filtered]
        self.part = sorted(part, key=lambda arrival: arrival.order)
        self.of = [[a for a in self.part if a.stream == s] for s in range(len(question.sides))]
        for arrival in self.part:
            arrival.taken = self._when_taken(arrival)

    def outcomes(self) -> list[Outcome]:
        outcomes = [Outcome() for _ in self.calls]
        how = self.question.how
        for combination in self._combinations():
            latest = max(combination, key=lambda arrival: arrival.order)
            # It comes out with the last of its tuples to arrive; where tuples wait, in the turn
            # of its latest.
            call = latest.taken if self.question.counts else max(a.call for a in combination)
            if call is None:
                continue
            for arrival in combination:
                arrival.matched = call if arrival.matched is None else min(arrival.matched, call)
            if how not in ("semi", "anti"):
                rows = tuple(arrival.values for arrival in combination)
                outcomes[call].results.append(Result(rows, latest.ts))
        for stream in PRESERVED.get(how, ()):
            for arrival in self.of[stream]:
                gone = self._when_gone(arrival)
                if arrival.matched is None and gone is not None:
                    outcomes[gone].results.append(self._alone(arrival))
        if how == "semi":
            for arrival in self.of[0]:
                if arrival.matched is not None:
                    outcomes[arrival.matched].results.append(self._alone(arrival))
        for call, outcome in enumerate(outcomes):
            self._count(call, outcome)
        return outcomes

    # which combinations there are

    def _combinations(self) -> Iterator[tuple[Arrival, ...]]:
        last = len(self.of) - 1
        terms = [term for term in self.question.where if len(streams(term)) > 1]
        # A term is looked at as soon as a tuple of each of its streams is chosen.
        decided = [[term for term in terms if max(streams(term)) == s] for s in range(last + 1)]

        def extend(chosen: tuple[Arrival, ...]) -> Iterator[tuple[Arrival, ...]]:
            for arrival in self.of[len(chosen)]:
                if arrival.lacks_key or (chosen and chosen[0].key != arrival.key):
                    continue
                more = (*chosen, arrival)
                rows = {a.stream: a.values for a in more}
                if not all(holds(term, rows) for term in decided[arrival.stream]):
                    continue
                if arrival.stream < last:
                    yield from extend(more)
                elif self._in_windows(more):
                    yield more

        return extend(())

    def _in_windows(self, combination: tuple[Arrival, ...]) -> bool:
        if self.question.bounds is not None:
            low, high = self.question.bounds
            return low <= combination[1].ts - combination[0].ts <= high
        latest = max(combination, key=lambda arrival: arrival.order)
        return all(self._in_window(arrival, latest) for arrival in combination)

    def _in_window(self, arrival: Arrival, latest: Arrival) -> bool:
        kind, size = self.question.sides[arrival.stream].window
        if kind == "time":
            return latest.ts - arrival.ts <= size
        if kind == "tumbling":
            return latest.ts // size == arrival.ts // size
        if kind in ("unbounded", "since"):
            return True  # what is before a `since` takes no part
        since = [a for a in self._counted_with(arrival) if arrival.order < a.order <= latest.order]
        return len(since) <= size if kind == "arrivals" else len(since) < size

    def _counted_with(self, arrival: Arrival) -> list[Arrival]:
        """The tuples that count as rows in a tuple's window."""
        kind = self.question.sides[arrival.stream].window.kind
        if kind == "arrivals":
            return self.part
        own = self.of[arrival.stream]
        if kind == "rows":
            return own
        return [a for a in own if not a.lacks_key and a.key == arrival.key]

    # when they come out

    def _first_call(self, begin: int, is_so: Callable[[int], bool]) -> int | None:
        """The first call, from `begin` on, after which something is so; all is at the end."""
        for call in range(begin, len(self.calls)):
            if self.calls[call].kind == "finish" or is_so(call):
                return call
        return None

    def _when_taken(self, arrival: Arrival) -> int | None:
        """Its turn comes when the watermark has passed it."""
        if not self.question.counts:
            return arrival.call

        def passed(call: int) -> bool:
            watermark = self.watermarks[call][0]
            return watermark is not None and watermark > arrival.ts

        return self._first_call(arrival.call, passed)

    def _when_gone(self, arrival: Arrival) -> int | None:
        """The call after which nothing can match a tuple any more.

        Reading: one without a key comes out with its own push also where tuples wait.
        """
        if arrival.lacks_key:
            return arrival.call
        return self._first_call(arrival.call, lambda call: self._has_left(arrival, call, 0))

    def _has_left(self, arrival: Arrival, call: int, beyond: int) -> bool:
        """Whether its window has ended after a call: the watermark is past the end, or N rows
        have been taken after it, and `beyond` more."""
        kind, size = self.question.sides[arrival.stream].window
        if self.question.bounds is None and kind in ("rows", "rows per key", "arrivals"):
            after = [a for a in self._counted_with(arrival) if a.order > arrival.order]
            taken = [a for a in after if a.taken is not None and a.taken <= call]
            return len(taken) >= size + beyond
        watermark, end = self.watermarks[call][0], self._end(arrival)
        return watermark is not None and end is not None and watermark > end

    def _end(self, arrival: Arrival) -> int | None:
        """The last time at which a tuple can still meet it; None if that never ends."""
        if self.question.bounds is not None:
            low, high = self.question.bounds
            return arrival.ts + (high if arrival.stream == 0 else -low)
        kind, size = self.question.sides[arrival.stream].window
        if kind == "time":
            return arrival.ts + size
        return arrival.ts // size * size + size - 1 if kind == "tumbling" else None

    def _alone(self, arrival: Arrival) -> Result:
        rows = [None] * len(self.of)
        return Result(
            tuple(arrival.values if s == arrival.stream else None for s in range(len(rows))),
            arrival.ts,
        )

    # what the counters say

    def _count(self, call: int, outcome: Outcome) -> None:
        outcome.watermark, own = self.watermarks[call]
        for stream in range(len(self.of)):
            came = [a for a in self.arrivals if a.stream == stream and a.call <= call]
            late = [a for a in came if a.is_late]
            outcome.late.append([a.values for a in late if a.call == call])
            part = [a for a in came if not a.is_late and not a.is_filtered]
            keyless = [a for a in part if self._is_keyless(a)]
            kept = [a for a in part if not self._is_keyless(a)]
            waiting = [a for a in kept if a.taken is None or a.taken > call]
            outcome.counters.append(
                Counters(
                    arrived=len(came),
                    late=len(late),
                    filtered=len([a for a in came if a.is_filtered and not a.is_late]),
                    waiting=len(waiting),
                    keyless=len(keyless),
                    live=self._live(call, [a for a in kept if a not in waiting]),
                    watermark=own[stream],
                )
            )

    def _is_keyless(self, arrival: Arrival) -> bool:
        """Whether it meets nothing and is not kept: it has no key, or nothing that order compares
        and need neither wait nor come out alone; unless it counts as a row of its window."""
        question = self.question
        if question.bounds is None and question.sides[arrival.stream].window.kind == "rows":
            return False
        waits = question.counts or arrival.stream in PRESERVED.get(question.how, ())
        return arrival.lacks_key or (arrival.lacks_order and not waits)

    def _live(self, call: int, taken: list[Arrival]) -> tuple[int, int]:
        """The tuples that must be in their window after a call, and those that may be: windows
        let go in order of arrival, so a tuple may be held by one that came before it."""
        held, must = False, 0
        may = 0
        counts_rows = self.question.bounds is None and self.question.sides[0].window.kind in (
            "rows",
            "rows per key",
        )
        lets_matched_go = self.question.how in ("semi", "anti") and not counts_rows
        for arrival in sorted(taken, key=lambda arrival: arrival.place):
            matched = arrival.matched is not None and arrival.matched <= call
            if lets_matched_go and arrival.stream == 0 and matched:
                continue
            held = held or not self._has_left(arrival, call, 1)
            may += held
            must += not self._has_left(arrival, call, 0)
        return must, may

"""What a shedder knows, as tables that can be kept: to go on elsewhere, under any plan.

numbers    of the budget and of each stream's quota
learned    what is known of ages and stays
groups     the sums of lost results by group
counts     the hashes of each path's keys and how often they came
sample     the values of each path
totals     of each path's table
ghosts     of one stream: times, words, marks, notes, and the columns that were kept
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import SnapshotError
from penstock.kernels.arena import Words
from penstock.kernels.budget import ghosts
from penstock.kernels.budget.records import (
    AGES,
    GROUPS,
    LEVELS,
    NOTE_WORDS,
    QUEUE_WORDS,
    SAVED_OF_BUDGET,
    SAVED_OF_QUOTA,
    SAVED_OF_TABLE,
)
from penstock.kernels.stats import frequencies, sample
from penstock.kernels.stats.tables import BY_KEY, BY_ORDER
from penstock.shedding.sharing import portions
from penstock.shedding.shedder import Shedder
from penstock.windows.payload.storage import as_kept
from penstock.windows.windows import Windows

__all__ = [
    "check_ghosts",
    "load",
    "load_ghosts",
    "load_numbers",
    "save",
    "save_ghosts",
]


def save(shedder: Shedder) -> dict[str, pa.Table]:
    """All that does not belong to one tuple."""
    state = shedder.windows.state
    numbers: dict[str, Any] = {name: [state.budget[name][0]] for name in SAVED_OF_BUDGET}
    numbers |= {name: [state.quotas[name].tolist()] for name in (*SAVED_OF_QUOTA, "rows")}
    numbers["looked"] = [shedder.losses.looks]
    saved = {"numbers": pa.table(numbers)}
    learned = [state.words[start : start + count] for start, count in _learned(shedder.windows)]
    if learned:
        saved["learned"] = pa.table({"words": np.concatenate(learned)})
    if shedder.windows.has_groups:
        start = int(state.budget["groups"][0])
        saved["groups"] = pa.table({"sums": state.floats[start : start + GROUPS]})
    saved["totals"] = pa.table({name: state.tables[name] for name in SAVED_OF_TABLE})
    counts: list[tuple[Words, Any, Any]] = []
    samples: list[tuple[Words, Words]] = []
    for path, table in enumerate(state.tables):
        start = int(table.start)
        if table.kind == BY_KEY:
            begin = 2 * start
            entries = np.arange(begin, begin + frequencies.SET_HALVES * int(table.places), 2)
            used = entries[state.singles[entries + 1] > 0.0]
            counts.append((np.full(len(used), path), state.halves[used], state.singles[used + 1]))
        elif table.kind == BY_ORDER:
            words = state.words[start : start + int(table.filled)]
            samples.append((np.full(len(words), path), words))
    if counts:
        columns = [np.concatenate(each) for each in zip(*counts, strict=True)]
        saved["counts"] = pa.table(columns, ["path", "hash", "count"])
    if samples:
        columns = [np.concatenate(each) for each in zip(*samples, strict=True)]
        saved["sample"] = pa.table(columns, ["path", "word"])
    return saved


def load(shedder: Shedder, saved: Mapping[str, pa.Table]) -> None:
    """Restore what was saved, as far as these limits need it."""
    state = shedder.windows.state
    load_numbers(shedder, saved["numbers"])
    spans = _learned(shedder.windows)
    if "learned" in saved and len(saved["learned"]) == sum(count for _, count in spans):
        words = saved["learned"]["words"].to_numpy()
        for start, count in spans:
            state.words[start : start + count] = words[:count]
            words = words[count:]
    if "groups" in saved and shedder.windows.has_groups:
        start = int(state.budget["groups"][0])
        state.floats[start : start + GROUPS] = saved["groups"]["sums"].to_numpy()
    totals = saved["totals"].to_pydict()
    for path, table in enumerate(state.tables):
        for name in SAVED_OF_TABLE:
            table[name] = totals[name][path]
        if table.kind == BY_KEY and "counts" in saved and not table.given:
            rows = saved["counts"]["path"].to_numpy() == path
            hashes = saved["counts"]["hash"].to_numpy()[rows].astype(np.int64)
            weights = saved["counts"]["count"].to_numpy()[rows].astype(np.float64)
            frequencies.add_hashes(state.halves, state.singles, table, hashes, weights)
        elif table.kind == BY_ORDER and "sample" in saved:
            words = saved["sample"]["word"].to_numpy()[saved["sample"]["path"].to_numpy() == path]
            count = min(len(words), int(table.places))
            start = int(table.start)
            state.words[start : start + count] = words[:count]
            table.filled = count
            sample.put_in_order(state.words, table)


def load_numbers(shedder: Shedder, saved: pa.Table) -> None:
    """Restore the numbers of the budget and the quotas that were saved."""
    state = shedder.windows.state
    (numbers,) = saved.to_pylist()
    # What was counted by a sample stays an estimate, whatever looks from now on.
    if 0.0 < numbers.get("looked", 1.0) < 1.0:
        numbers["threshold"] = min(numbers["threshold"], numbers["looked"])
    for name in SAVED_OF_BUDGET:
        state.budget[name] = numbers[name]
    for name in SAVED_OF_QUOTA:
        state.quotas[name] = numbers[name]
    state.budget["shrink"] = 1.0 / state.budget["growth"]
    state.budget["learns"] |= shedder.goes_by_worth
    if shedder.limits.pool == "allocated" and "rows" in numbers:
        state.quotas["rows"] = portions(int(state.budget["rows"][0]), numbers["rows"])


def _learned(windows: Windows) -> list[tuple[int, int]]:
    """Where the words of ages and stays are, and how many."""
    provision, quotas = windows.provision, windows.state.quotas
    assert provision is not None, "a shedder has limits"
    spans = []
    for quota in quotas:
        if provision.has_ages:
            spans.append((int(quota.ages), 3 * AGES))
        elif provision.has_stays:
            spans.append((int(quota.levels) + QUEUE_WORDS, LEVELS))
    return spans


def _notes(shedder: Shedder, stream: int, sequences: Words) -> Words:
    """Where the notes of ghosts stand, in words."""
    state = shedder.windows.state
    mask = int(state.windows["mask"][shedder.windows.streams + stream])
    notes: Words = int(state.quotas["notes"][stream]) + NOTE_WORDS * (sequences & mask)
    return notes


def save_ghosts(shedder: Shedder, stream: int, chosen: Words | None = None) -> pa.Table:
    """The ghosts of a stream, oldest first: all, or those of these sequence numbers."""
    windows, number = shedder.windows, shedder.windows.streams + stream
    state, payload = windows.state, windows.payloads[number]
    live = windows.live_sequences(number) if chosen is None else chosen
    window = state.windows[number]
    columns: dict[str, Any] = {"ts": windows.timestamps(number, live)}
    for word in range(int(window.words)):
        records = state.paths["ring"][int(window.paths) + word] + (live & int(window.mask))
        columns[f"word {word}"] = state.records["key"][records]
        if word == 0:
            columns["marks"] = state.records["marks"][records]
    notes = _notes(shedder, stream, live)
    columns["laid"] = state.words[notes]
    columns["instant"], columns["number"] = state.words[notes + 1], state.words[notes + 2]
    if payload is not None:
        for name in payload.columns:
            columns[f"column {name}"] = payload.take(name, live)
    return pa.table(columns)


def check_ghosts(shedder: Shedder, held: int) -> None:
    """Refuse limits under which `held` ghosts would be forgotten, and with them what is lost."""
    if held and not shedder.windows.has_ghosts:
        raise SnapshotError(
            f"{held:,} tuples that were shed are remembered, to count the results that are lost "
            "without them, and a service rate alone remembers none: go on with memory= as well, or "
            'with drop="tuple"'
        )


def load_ghosts(shedder: Shedder, stream: int, saved: pa.Table, watermark: int) -> None:
    """Restore ghosts that were saved."""
    windows, number = shedder.windows, shedder.windows.streams + stream
    check_ghosts(shedder, len(saved))
    if not len(saved):
        return
    windows.reserve({number: len(saved)}, watermark)
    first = windows.head(number)
    payload = windows.payloads[number]
    if payload is not None:
        table = saved.combine_chunks()
        arrays = {name: as_kept(table[f"column {name}"].chunk(0)) for name in payload.columns}
        payload.write(arrays, first)
    ts = saved["ts"].to_numpy().astype(np.int64)
    names = [name for name in saved.column_names if name.startswith("word ")]
    words = np.stack([saved[name].to_numpy() for name in names])
    marks = saved["marks"].to_numpy().astype(np.int64)
    notes = np.stack([saved["instant"].to_numpy(), saved["number"].to_numpy()])
    done = 0
    while done < len(ts):
        done = ghosts.raise_all(windows.state, stream, (ts, words, marks, notes), done)
        if done < len(ts):
            windows.make_index_room()
    sequences = np.arange(windows.head(number) - len(ts), windows.head(number))
    windows.state.words[_notes(shedder, stream, sequences)] = saved["laid"].to_numpy()
    windows.state.quotas["noted"][stream] = windows.head(number)

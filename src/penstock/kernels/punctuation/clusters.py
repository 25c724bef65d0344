"""Clusters of a stream: tuples of a key that follow each other in time.

A cluster goes on as long as each time with tuples has one of its key. Tuples of one time have no
order: they stand in all clusters of that time. ts and words are of tuples in order of time; places
are free ones, twice as many as tuples; last has room for as many.
"""

from __future__ import annotations

from penstock.kernels.arena import Flags, Words
from penstock.kernels.jit import kernel
from penstock.kernels.punctuation.key_rows import FREE, Places, place_of

__all__ = ["come_back", "last_of_clusters"]


@kernel
def come_back(ts: Words, words: Words, places: Places, last: Words, out: Flags) -> int:
    """Write which tuples have a key whose cluster has ended, and return how many they are.
    O(tuples)."""
    count, now = 0, 1  # times are numbered
    for each in range(len(ts)):
        if each > 0 and ts[each] != ts[each - 1]:
            now += 1
        place = place_of(places, words, words[each])
        first = places[place]
        out[each] = first != FREE and last[first] < now - 1
        count += out[each]
        if not out[each]:
            if first == FREE:
                places[place] = first = each
            last[first] = now
    return count


@kernel
def last_of_clusters(ts: Words, words: Words, places: Places, last: Words, out: Words) -> int:
    """Write tuples after which no other of their key comes at the next time there is, and that
    time; return how many they are. O(tuples)."""
    count, begin, now = 0, 0, 0  # begin: of the tuples of the time before
    while now < len(ts):
        end = now
        while end < len(ts) and ts[end] == ts[now]:
            place = place_of(places, words, words[end])
            if places[place] == FREE:
                places[place] = end
            last[places[place]] = end
            end += 1
        for each in range(begin, now):
            first = places[place_of(places, words, words[each])]
            if last[first] == each:  # and none at this time
                out[0, count], out[1, count] = each, ts[now]
                count += 1
        begin, now = now, end
    return count

"""Static joins: which N tuples of tables to keep, to join the most pairs.

A join of two tables by equal keys is a union of complete bipartite graphs, one component K(m, n)
for each key: m tuples here, n there, m * n pairs. So counts by key are all that has to be known to
say how many tuples of each key to keep. (Das, Gehrke and Riedewald, "Semantic Approximation of
Data Stream Joins", section 3.)

`truncate` answers from counts, `truncate_tables` cuts Arrow tables and Spark DataFrames, and
`truncate_many` is for three tables and more.
"""

from penstock.lab.static.many import ManyTruncation, truncate_many
from penstock.lab.static.truncated_tables import truncate_tables
from penstock.lab.static.truncation import Truncation, truncate

__all__ = ["ManyTruncation", "Truncation", "truncate", "truncate_many", "truncate_tables"]

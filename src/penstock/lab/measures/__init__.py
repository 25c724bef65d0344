"""How far an approximate answer is from the exact one: the set-error measures.

After Das, Gehrke and Riedewald, "Semantic Approximation of Data Stream Joins", section 2.2. All are
over bags: a row that is in an answer twice counts twice.

| measure | range | best | needs a distance |
|---|---|---|---|
| `max_subset`, `recall`, `precision` | 0 to 1 | 1 | no |
| `matching` | 0 to the rows of the smaller answer | all of them | no |
| `dice`, `jaccard`, `cosine`, `overlap` | 0 to 1 | 1 | no |
| `symmetric_difference` | 0 to the rows of both answers | 0 | no |
| `earth_movers` | 0 and more | 0 | yes |
| `mac` | 0 and more | 0 | yes |

`compare` gives all that need no distance at once. An answer is a pyarrow table, anything else with
`__arrow_c_stream__` (polars, pandas), or a sequence of rows that can be hashed.
"""

from penstock.lab.measures.coefficients import (
    cosine,
    dice,
    jaccard,
    matching,
    max_subset,
    overlap,
    precision,
    recall,
    symmetric_difference,
)
from penstock.lab.measures.comparison import Comparison, compare
from penstock.lab.measures.cover import mac
from penstock.lab.measures.distances import MOST_PAIRS
from penstock.lab.measures.transport import earth_movers

__all__ = [
    "MOST_PAIRS",
    "Comparison",
    "compare",
    "cosine",
    "dice",
    "earth_movers",
    "jaccard",
    "mac",
    "matching",
    "max_subset",
    "overlap",
    "precision",
    "recall",
    "symmetric_difference",
]

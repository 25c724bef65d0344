"""The best that could have been done: what to hold, for one who knows all that will come.

A recording of two streams is made into tuples that arrive at instants and meet others at later
ones (`timeline`), either by key and order alone (`by_arrival`) or from the results of the exact
join (`by_match`). What is held of them is a `Holding`, solved as a flow (`flow`) or, where that is
too large, bounded from both sides by prices (`price_bounds`). `optimum` is the front of it.
(Das, Gehrke and Riedewald, "Semantic Approximation of Data Stream Joins", section 4.1.)
"""

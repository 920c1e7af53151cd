"""Traps: sets of nodes to which a walk keeps returning.

`returns.py` measures: `excess_visits` is the number of updates, beyond its long-run share, that a walk spends in a set
once it is there. The importance decides how long one visit lasts; a sparse graph changes how often the walk returns.
`sets.py` searches: candidates are nested sets that arise when nodes merge along four measures of strength
(in compiled code), judged by their *memory*, excess / (1 − share). A trap has at least 10 times the memory of
the uniform walk on the same set, and at least one more update per node: arcs of a ring and halves of a barbell hold any
walk, so they are not traps. Sets improved node by node are worse traps by that measure, but predict worse, so the
families are searched as they are.
"""

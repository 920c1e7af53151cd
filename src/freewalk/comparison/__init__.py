"""A fair comparison of methods: each with a step chosen by the same rule, measured until the same goal.

- `compare.py`: checks all contestants before anything runs, then runs each until it has reached the goal.
- `track.py`: a `Track` is what they have in common; a `Contestant` is a method on it, which runs and reads its curve.
- `steps.py`: the search for a step, within a `Budget` of pilot runs with another seed.
- `result.py`: what each needed, with a bootstrap over its walks, as a table, a figure, a page and files.
"""

from freewalk.comparison.compare import compare
from freewalk.comparison.result import Comparison, Finish
from freewalk.comparison.steps import Budget

__all__ = ["Budget", "Comparison", "Finish", "compare"]

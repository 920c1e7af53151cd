"""A fair comparison of methods: each with a step chosen by the same rule, measured until the same goal."""

from freewalk.comparison.compare import compare
from freewalk.comparison.result import Comparison, Finish
from freewalk.comparison.steps import Budget

__all__ = ["Budget", "Comparison", "Finish", "compare"]

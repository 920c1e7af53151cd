"""A fair comparison of methods: each with a step chosen by the same rule, measured until the same goal."""

from freewalk.comparing.compare import compare
from freewalk.comparing.result import Comparison, Finish
from freewalk.comparing.stepping import Budget

__all__ = ["Budget", "Comparison", "Finish", "compare"]

"""Update rules, one file each: how a visited node improves the model."""

from freewalk.rules.rule import Rule as Rule
from freewalk.rules.sgd import SGD

__all__ = ["SGD"]

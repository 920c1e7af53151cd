"""Update rules, one file each: how a visited node improves the model."""

from freewalk.learning.rule import Rule as Rule
from freewalk.learning.sgd import SGD

__all__ = ["SGD"]

"""Objectives: one loss per node, computed from data that never leave the node.

`LeastSquares` and `Logistic` run on every runtime, and so does your own loss if it depends on its data only through aᵀx
and subclasses `Predictor`. Any other loss subclasses `Objective` and runs on the `reference` runtime.
"""

from freewalk.objectives.files import read as read
from freewalk.objectives.least_squares import LeastSquares
from freewalk.objectives.logistic import Logistic
from freewalk.objectives.objective import Objective as Objective
from freewalk.objectives.predictor import Predictor as Predictor

__all__ = ["LeastSquares", "Logistic"]

"""What is learned: a loss at each node, and the data that never leave it.

`LeastSquares` and `Logistic` run on every runtime. A loss of one's own that looks at its data only through
aᵀx subclasses `Predictor` and does so too; any other subclasses `Objective` and runs on the `reference`
runtime.
"""

from freewalk.objectives.least_squares import LeastSquares
from freewalk.objectives.logistic import Logistic
from freewalk.objectives.objective import Objective as Objective
from freewalk.objectives.predictor import Predictor as Predictor
from freewalk.objectives.reading import read as read

__all__ = ["LeastSquares", "Logistic"]

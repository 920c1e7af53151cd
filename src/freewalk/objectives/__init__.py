"""Objectives: one loss per node, computed from data that never leave the node.

`LeastSquares` and `Logistic` run on every runtime, and so does your own loss if it depends on its data only through aᵀx
and subclasses `Predictor`. Any other loss subclasses `Objective` and runs on the `reference` runtime.

- `objective.py`: the base class `Objective`, and `Share`, all that one node needs of it (`objective.local(node)`).
- `predictor.py`: `Predictor`, the losses of a linear prediction. A subclass gives two scalar functions, which compiled
  runtimes compile from their source, and a bound on the curvature.
- `least_squares.py` and `logistic.py`: its two subclasses.
- `samples.py`: features, targets and the nodes that own them, as they are checked on input.
- `synthetic.py`: the data that `synthetic` draws, each option with a generator of its own, so that changing one keeps
  the others. Its numbers must never change.
- `files.py`: problems in a file, mapped into memory instead of loaded.

The samples of a node are contiguous. `node_weights` say how much a node counts: a relay, which has no data, counts 0.
A problem with data in a file works block by block, since there may be no memory for a second copy.
"""

from freewalk.objectives.files import read as read
from freewalk.objectives.least_squares import LeastSquares
from freewalk.objectives.logistic import Logistic
from freewalk.objectives.objective import Objective as Objective
from freewalk.objectives.predictor import Predictor as Predictor

__all__ = [
    "LeastSquares",
    "Logistic",
]

"""Update rules: how a visited node improves the model. One file per rule.

`rule.py` has the base class `Rule`, `Visit` (what an update may know about the visit), and the checks on which engines
rely. A rule is a frozen dataclass that names its vectors and has one function:

    carries    travel with the model, such as a velocity, and are sent with every message
    stores     stay at each node, one of each per token unless they are `shared`
    evaluates  where the gradient is taken: "x", a carried or a stored vector
    reports    which vector is the model to report: "x" or a carried one
    update(visit, numbers, x, gradient, *carried, *stored) -> the new x, carried and stored

`update` is written once, as arithmetic: `reference` calls it coordinate by coordinate, the other runtimes compile its
source. `numbers` are the numeric fields of the rule, passed at run time: another momentum compiles nothing.

Stored vectors belong to (token, node), since SAG's mean and Walkman's x sum the token's own increments; tokens that
shared them would diverge. Gradient tracking shares them, which for parked tokens is the same and takes 1/n of the
memory. A rule does not know the length of the run: `SGD(average="half")` restarts at powers of two. At a relay, which
has no data, the model stays unchanged; for a rule that stores vectors, a relay is a node whose loss is 0.
"""

from freewalk.rules.adagrad import AdaGrad
from freewalk.rules.combine_first import CombineFirst
from freewalk.rules.gradient_tracking import GradientTracking
from freewalk.rules.momentum import Momentum
from freewalk.rules.rule import Rule as Rule
from freewalk.rules.rule import Visit as Visit
from freewalk.rules.sag import SAG
from freewalk.rules.sgd import SGD
from freewalk.rules.visit_weighted import VisitWeighted
from freewalk.rules.walkman import Walkman

__all__ = [
    "SAG",
    "SGD",
    "AdaGrad",
    "CombineFirst",
    "GradientTracking",
    "Momentum",
    "VisitWeighted",
    "Walkman",
]

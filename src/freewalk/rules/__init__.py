"""Update rules: how a visited node improves the model. One file per rule."""

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

__all__ = ["SAG", "SGD", "AdaGrad", "CombineFirst", "GradientTracking", "Momentum", "VisitWeighted", "Walkman"]

"""Decentralized learning by random walks: design a walk, run it and train models with it."""

from freewalk import analysis, baselines, data, designs, exchanges, graphs, objectives, rules, runtimes, schedules
from freewalk._version import __version__
from freewalk.analysis import diagnose
from freewalk.comparing import compare
from freewalk.designs import Design
from freewalk.errors import FreewalkError
from freewalk.evaluating import evaluate
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.kernel import Kernel, Move
from freewalk.objectives import Objective, Predictor
from freewalk.phases import Phase
from freewalk.record import Record, concat
from freewalk.rules import SGD, Rule
from freewalk.run import learn, resume, walk
from freewalk.sweeping import sweep

__all__ = [
    "SGD",
    "Design",
    "Exchange",
    "FreewalkError",
    "Graph",
    "Kernel",
    "Move",
    "Objective",
    "Phase",
    "Predictor",
    "Record",
    "Rule",
    "__version__",
    "analysis",
    "baselines",
    "compare",
    "concat",
    "data",
    "designs",
    "diagnose",
    "evaluate",
    "exchanges",
    "graphs",
    "learn",
    "load",
    "objectives",
    "resume",
    "rules",
    "runtimes",
    "schedules",
    "sweep",
    "walk",
]

load = Record.load

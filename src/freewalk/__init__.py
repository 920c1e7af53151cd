"""Decentralized learning by random walks: design a walk, run it and train models with it."""

from freewalk import analysis, baselines, data, designs, exchanges, graphs, objectives, rules, runtimes, schedules
from freewalk._version import __version__
from freewalk.analysis import diagnose
from freewalk.comparison import compare
from freewalk.designs import Design
from freewalk.designs.kernel import Kernel, Move
from freewalk.errors import FreewalkError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective, Predictor
from freewalk.rules import SGD, Rule
from freewalk.run.evaluate import evaluate
from freewalk.run.learn import learn, walk
from freewalk.run.record import Record, concat
from freewalk.run.resume import resume
from freewalk.sweeps import sweep

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

"""The paper's evaluation, figure by figure: specs, claims, verdicts."""

from freewalk.paper.fit import Fit, search
from freewalk.paper.registry import KEYS, STUDIES
from freewalk.paper.reproduction import Reproduction, reproduce
from freewalk.paper.sensitivity import Sensitivity, explore
from freewalk.paper.settings import Sweep, sweep
from freewalk.paper.task import Outcome

__all__ = [
    "KEYS",
    "STUDIES",
    "Fit",
    "Outcome",
    "Reproduction",
    "Sensitivity",
    "Sweep",
    "explore",
    "reproduce",
    "search",
    "sweep",
]

"""The paper's evaluation, figure by figure: specs, claims, verdicts."""

from freewalk.studies.evaluation import Reproduction, reproduce
from freewalk.studies.fitting import Fit, search
from freewalk.studies.registry import KEYS, STUDIES
from freewalk.studies.sensitivity import Sensitivity, explore
from freewalk.studies.sweeping import Sweep, sweep
from freewalk.studies.task import Outcome

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

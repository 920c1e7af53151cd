"""The paper's evaluation, figure by figure: specs, claims, verdicts."""

from freewalk.studies.evaluation import KEYS, STUDIES, Reproduction, reproduce
from freewalk.studies.fitting import Fit, search
from freewalk.studies.task import Outcome

__all__ = ["KEYS", "STUDIES", "Fit", "Outcome", "Reproduction", "reproduce", "search"]

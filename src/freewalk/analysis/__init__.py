"""Exact analysis: what a walk will do, computed without running it.

- `chain/`: the stationary distribution and the characteristic times of a walk (`stationary`, `mixing_time`, …);
- `traps/`: the sets that entrap it (`find_traps`, `excess_visits`);
- `learning/`: exact learning curves and limits for least squares (`exact_curve`, `steady_state`, `race`, …);
- `theory/`: the paper's statements as numbers;
- `diagnosis/`: all of this for one graph, as a verdict in plain words (`diagnose`).

All but `exact_curve` require a kernel that does not change with time, and say so. A walk that remembers the last node
is known exactly, as a chain on pairs of nodes (`chain/states.py`); other memories are refused by name. Errors name the
function that was called: internal functions take its name as `who`. What is not accurate enough is refused, not
returned.
"""

from freewalk.analysis import theory
from freewalk.analysis.chain.chain import distance_to_target, period, stationary
from freewalk.analysis.chain.mixing_time import MixingTime, mixing_time
from freewalk.analysis.chain.spectrum import second_eigenvalue, spectral_gap
from freewalk.analysis.chain.times import escape_time, fundamental_matrix, hitting_times, kemeny_constant, sojourn_times
from freewalk.analysis.chain.traffic import messages_per_visit
from freewalk.analysis.diagnosis.diagnose import diagnose
from freewalk.analysis.diagnosis.findings import Diagnosis
from freewalk.analysis.learning.curve import exact_curve
from freewalk.analysis.learning.limits import SteadyState, stability_limit
from freewalk.analysis.learning.race import MatchedSteps, Race, matched_steps, race
from freewalk.analysis.learning.small_step import SmallStepLaw, small_step_law
from freewalk.analysis.learning.tokens import steady_state
from freewalk.analysis.traps.returns import excess_visits
from freewalk.analysis.traps.sets import Trap, find_traps

__all__ = [
    "Diagnosis",
    "MatchedSteps",
    "MixingTime",
    "Race",
    "SmallStepLaw",
    "SteadyState",
    "Trap",
    "diagnose",
    "distance_to_target",
    "escape_time",
    "exact_curve",
    "excess_visits",
    "find_traps",
    "fundamental_matrix",
    "hitting_times",
    "kemeny_constant",
    "matched_steps",
    "messages_per_visit",
    "mixing_time",
    "period",
    "race",
    "second_eigenvalue",
    "small_step_law",
    "sojourn_times",
    "spectral_gap",
    "stability_limit",
    "stationary",
    "steady_state",
    "theory",
]

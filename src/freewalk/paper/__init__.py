"""The paper's evaluation, figure by figure: specs, claims, verdicts.

Everything about figure 3 has its name: `specs/stated/figure-3.toml` and `specs/published/figure-3.toml` say what is run
with the parameters that the paper states and with those fitted to its printed curves; `studies/figure-3.toml` has the
claims. `specs/own` holds companions that are not in the paper. `studies/paper.toml` has the order of the studies and
the sentences of the paper that they quote.

- `study`: a study and its claims, from these files. `claims`, `entrapment` and `bias` have the kinds of claims.
- `figure_2`, `section_4`, `remark_1`, `theorem_1`: studies without learning curves, which compute numbers, judge, list
  and draw them.
- `evidence` is what claims are tested on: exact curves or, where there are none, the mean over the walks; and the
  printed curves.
- `reproduction` runs everything: a `task` for each study and variant reuses the records in its folder (`files`), runs
  what is missing, judges it, draws its `figures` and describes it for the page.
- `fit` and `claim_sweep` read what took long to find and is stored beside the specs: the fitted values, and the
  settings in which each claim holds. The folder `reproduction` at the top of the repository finds them again.

A claim is stored under its wording: whoever rewords one must run its sweep again.
"""

from freewalk.paper.claim_sweep import ClaimSweep
from freewalk.paper.fit import Fit
from freewalk.paper.reproduction import Reproduction, reproduce
from freewalk.paper.study import KEYS, STUDIES
from freewalk.paper.task import StudyOutcome

__all__ = ["KEYS", "STUDIES", "ClaimSweep", "Fit", "Reproduction", "StudyOutcome", "reproduce"]

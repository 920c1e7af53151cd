"""Gradient descent with weights estimated from the token's own visits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from freewalk.designs.kernel import Kernel
from freewalk.objectives import Objective
from freewalk.rules.rule import Rule, check, check_options
from freewalk.schedules import Schedule

_VISITS_PER_NODE = 10.0


@dataclass(frozen=True)
class VisitWeighted(Rule):
    """SGD weighted by the token's own visit counts: x ← x − γ ŵ_v ∇f_v(x), ŵ_v = (t + c) / (n (N_v + c π_v)).

    `SGD` weights a gradient by 1/(n π_v), with the target π of the kernel; if the stationary distribution of the walk
    differs from π, as with the uncorrected jumps of `MHLJ`, its limit is biased. Here (N_v + c π_v)/(t + c) estimates
    the actual distribution of the walk from the token's visits N_v to the node, and the bias falls as 1/t. N_v and t =
    Σ N_v include the current visit.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule; at most about a tenth of 1/L̄, with the mean smoothness L̄.
    prior
        c, the number of visits for which the target counts. A node first visited late has a weight of up to
        (t + c)/(n + n c π_v), so c must be of the order of n. None uses 10 n, with which none of our runs diverged at
        that step (with c = n some did).
    sampled
        Compute each gradient from one random local sample instead of all samples of the node.

    Examples
    --------
    >>> rule = VisitWeighted(step=0.01, prior=100.0)
    >>> rule.counts_visits, rule.numbers
    (True, Numbers(prior=100.0))
    """

    step: float | Schedule
    prior: float | None = None
    sampled: bool = False

    counts_visits: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)
        if self.prior is not None:
            check.real("VisitWeighted", "prior", self.prior, 0.0)

    def fitted(self, objective: Objective, kernel: Kernel) -> VisitWeighted:
        """The rule with a prior of ten visits per node, unless one was given."""
        return self if self.prior is not None else replace(self, prior=_VISITS_PER_NODE * objective.n)

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any) -> Any:
        """One gradient step."""
        # visit.weight is 1/(n π_v).
        weight = (visit.count + 1 + numbers.prior) / (visit.nodes * visit.visits + numbers.prior / visit.weight)
        return x - visit.rate * weight * gradient

"""The stochastic average gradient on a Markov chain: exact with a constant step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from freewalk.rules.rule import Rule, check_options
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class SAG(Rule):
    """Stochastic average gradient: ḡ ← ḡ + (∇f_v(x) − g_v)/n, g_v ← ∇f_v(x), x ← x − γ ḡ.

    Each node remembers its last gradient g_v. The token carries ḡ, the mean of these gradients, and so descends along a
    delayed gradient of the global loss. It reaches the optimum with a constant step, whatever the distribution of the
    walk, so there are no weights; but every node must be visited. A gradient is about as old as the return time of the
    walk: use a step of about n / (2 L τ), where L is the largest smoothness and τ the longest mean hitting time of a
    node (`fw.analysis.hitting_times`). Twice this step still converged in all our experiments.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.

    References
    ----------
    Even, *Stochastic gradient descent under Markovian sampling schemes*, 2023. Le Roux, Schmidt, Bach, *A stochastic
    gradient method with an exponential convergence rate for finite training sets*, 2012.

    Examples
    --------
    >>> SAG(step=0.01).carries, SAG(step=0.01).stores
    (('mean',), ('last',))
    """

    step: float | Schedule

    carries: ClassVar[tuple[str, ...]] = ("mean",)  # type: ignore[misc]
    stores: ClassVar[tuple[str, ...]] = ("last",)  # type: ignore[misc]
    weighted: ClassVar[bool] = False  # type: ignore[misc]
    needs_every_node: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any, mean: Any, last: Any) -> Any:
        """One step."""
        mean = mean + (gradient - last) / visit.nodes
        return x - visit.rate * mean, mean, gradient

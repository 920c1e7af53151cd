"""SGD whose gradient is taken before the models are mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.rules.rule import Rule, check_options
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class CombineFirst(Rule):
    """SGD in the form of Lian et al.: each parked token mixes its old model, then adapts, x_v ← (W x)_v − γ ∇f_v(x_v).

    Here an exchange follows an update, so a token holds W x between two rounds, and its node remembers x_v, at which
    the gradient is taken. The mean model equals that of Lian et al. at every step; `consensus` is that of W x. Nodes
    can send while they compute, which one round of `fw.SGD` and `fw.exchanges.Gossip`, x ← W (x − γ ∇f(x)), does not
    allow.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    sampled
        Compute each gradient from one random local sample instead of all samples of the node.

    References
    ----------
    Lian, Zhang, Zhang, Hsieh, Zhang, Liu, *Can decentralized algorithms outperform centralized algorithms?*, 2017.

    Examples
    --------
    >>> CombineFirst(step=0.01).evaluates
    'own'
    """

    step: float | Schedule
    sampled: bool = False

    stores: ClassVar[tuple[str, ...]] = ("own",)  # type: ignore[misc]
    evaluates: ClassVar[str] = "own"  # type: ignore[misc]
    shared: ClassVar[bool] = True  # type: ignore[misc]
    weighted: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)

    def begin(self, models: NDArray[np.floating[Any]]) -> Mapping[str, NDArray[np.floating[Any]]]:
        """Each node remembers the initial model."""
        return {"own": models}

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any, own: Any) -> Any:
        """One step."""
        x = x - visit.rate * gradient
        return x, x

"""What an update rule is: how a visited node improves the model that it was handed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Rule(ABC):
    """An update rule: a frozen dataclass whose one scalar function changes one coordinate.

    A rule of your own gives `update` and `rates`, and where it needs them the fields below and `carries`. The function
    is plain scalar Python: the reference runtime calls it, the others compile its source. It may be made inside
    `update` and use numbers from there, such as a momentum.
    """

    #: Whether a gradient at node v is multiplied by the kernel's weight 1 / (n · target_v).
    weighted: bool = True
    #: Gradient steps at a node before the model moves on.
    local_steps: int = 1
    #: Whether a gradient is that of one random local sample instead of all of them.
    sampled: bool = False

    @property
    @abstractmethod
    def update(self) -> Callable[..., Any]:
        """The function `update(x, gradient, step, count, *carried)` of one coordinate.

        It returns the new x, or the new x and the new carried numbers. `step` is γ times the weight of this node, so a
        rule that remembers gradients remembers step · gradient; `count` is the number of gradient steps that the rule
        has made before.
        """

    @abstractmethod
    def rates(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The step size γ at each of the given steps."""

    @property
    def constant(self) -> bool:
        """Whether `rates` are the same at all steps; engines then ask for one of them only."""
        return False

    @property
    def carries(self) -> int:
        """How many numbers a coordinate travel with the model, besides the model itself: 0, 1 or 2."""
        return 0

    @property
    def reported(self) -> int:
        """Which carried vector is the model to report; -1 is the model itself."""
        return -1

    def begin(self, models: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """The carried numbers at the first step, (carries, *models.shape): zeros unless the rule says otherwise."""
        return np.zeros((self.carries, *models.shape), dtype=models.dtype)

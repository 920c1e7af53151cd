"""Average all tokens, as with a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.exchanges.exchange import Exchange, Gathering, check, check_options

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Average(Exchange):
    """Replace all tokens by their mean: each sends one message to a server and receives one.

    Parameters
    ----------
    every
        Exchange after each update whose number is a multiple of this.
    down
        Whether the mean is sent back to the node of each token. With False only one message per token is counted: its
        next move is the way down, as with a server that draws the nodes (`fw.designs.Centralized`).

    Examples
    --------
    >>> Average(every=10)
    Average(every=10)
    """

    every: int = 1
    down: bool = True

    constant: ClassVar[bool] = True  # type: ignore[misc]
    means: ClassVar[str] = "all"  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)
        check.flag("Average", "down", self.down)

    def __repr__(self) -> str:
        """The exchange, without default values."""
        return f"Average(every={self.every}{'' if self.down else ', down=False'})"

    def weights(self, gathering: Gathering) -> NDArray[np.float64]:
        """The same for all tokens."""
        tokens = gathering.nodes.size
        return np.full((tokens, tokens), 1.0 / tokens)

    def sent(self, gathering: Gathering, weights: csr_array | None) -> NDArray[np.int64]:
        """One message up and, unless the token moves on by itself, one down per token."""
        return np.full(gathering.nodes.size, 2 if self.down else 1, dtype=np.int64)

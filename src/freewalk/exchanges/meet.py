"""Average tokens at the same node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.exchanges.exchange import Exchange, Gathering, check_options

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Meet(Exchange):
    """Average the tokens that are at the same node after an update; this sends nothing.

    Parameters
    ----------
    every
        Exchange after each update whose number is a multiple of this.

    Examples
    --------
    >>> Meet()
    Meet(every=1)
    """

    every: int = 1

    means: ClassVar[str] = "node"  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)

    def weights(self, gathering: Gathering) -> csr_array:
        """Equal shares for all tokens at the same node."""
        from scipy.sparse import csr_array

        nodes, tokens = gathering.nodes, gathering.nodes.size
        _, place, counts = np.unique(nodes, return_inverse=True, return_counts=True)
        at = csr_array((np.ones(tokens), (np.arange(tokens), place)), shape=(tokens, counts.size))
        return csr_array((at / counts) @ at.T)

    def sent(self, gathering: Gathering, weights: csr_array | None) -> NDArray[np.int64]:
        """Nothing: they are at the same node."""
        return np.zeros(gathering.nodes.size, dtype=np.int64)

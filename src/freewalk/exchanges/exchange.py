"""The base class of exchanges: the weights with which the tokens of a replica mix, and the messages sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.checks import Checks
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.graphs import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

check = Checks(FreewalkError)
ROUNDING = 1e-9  # by which sums of weights may differ from 1


class Gathering(NamedTuple):
    """The tokens of one replica, after an update and before they move.

    Attributes
    ----------
    step
        The number of updates of each token so far, including this one.
    nodes
        The node of each token.
    graph
        The graph.
    words
        `words(count)` draws that many unsigned 64-bit words, always the same for this replica and step.
    """

    step: int
    nodes: NDArray[np.int32]
    graph: Graph
    words: Callable[[int], NDArray[np.uint64]]


class Exchange(ABC):
    """How the tokens of a replica mix: a frozen dataclass that defines weights.

    After an update, the model and all carried vectors become weighted means over the tokens: x_i ← Σ_j W_ij x_j.
    Vectors stored at the nodes are never mixed. To define your own exchange, implement `weights`; the messages follow
    from them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Pair(Exchange):
    ...     '''Two tokens, drawn at random, average.'''
    ...
    ...     def weights(self, gathering):
    ...         tokens = gathering.nodes.size
    ...         one, other = np.argsort(gathering.words(tokens))[:2]
    ...         weights = np.eye(tokens)
    ...         weights[np.ix_([one, other], [one, other])] = 0.5
    ...         return weights
    >>> Pair().every
    1
    """

    #: An exchange follows each update whose number is a multiple of this.
    every: int = 1
    #: Whether parked tokens mix with the same weights, and send the same messages, at each exchange.
    constant: bool = False
    #: What compiled code can do without weights: "all" averages all tokens, "node" those at the same node. Such an
    #: exchange implements `sent`, with the same result each time, and receives None for the weights.
    means: str = ""

    @abstractmethod
    def weights(self, gathering: Gathering) -> Any:
        """W, tokens × tokens, dense or sparse, with rows that add up to 1; None leaves all tokens unchanged."""

    def sent(self, gathering: Gathering, weights: csr_array | None) -> NDArray[np.int64]:
        """The number of messages each token sends: one to each token at another node that uses its model."""
        if weights is None:
            expected = "expected a method sent(gathering, weights) that gives the number of messages each token sends"
            raise FreewalkError(f"{type(self).__name__}: averages without weights (means = {self.means!r}), {expected}")
        takers, givers = weights.nonzero()
        away = gathering.nodes[takers] != gathering.nodes[givers]
        return np.bincount(givers[away], minlength=gathering.nodes.size).astype(np.int64)

    def admit(self, kernel: Kernel, nodes: NDArray[np.int32] | None) -> None:  # noqa: B027 (most have nothing to refuse)
        """Reject a kernel, or the start nodes of the tokens of a replica (None if an earlier phase moves them)."""


def exchanges_in(exchange: Exchange, after: int, until: Any) -> Any:
    """The number of exchanges after step `after`, up to and including `until`."""
    return until // exchange.every - after // exchange.every


def gathering_of(seed: int, replica: int, step: int, nodes: NDArray[np.int32], graph: Graph) -> Gathering:
    """The tokens of a replica at these nodes after update number `step`."""
    return Gathering(step, nodes, graph, lambda count: rng.words_of_use(seed, rng.EXCHANGE, replica, step, count))


def weights_of(exchange: Exchange, gathering: Gathering) -> csr_array | None:
    """The weights of an exchange, after checking everything that engines rely on."""
    from scipy.sparse import csr_array, issparse

    who, tokens = type(exchange).__name__, gathering.nodes.size
    given = exchange.weights(gathering)
    if given is None:
        return None
    if not issparse(given):
        given = check.floats(who, "weights()", given, (tokens, tokens))
    found = csr_array(given, dtype=np.float64)
    if found.shape != (tokens, tokens) or not np.isfinite(found.data).all():
        raise check.fail(who, "weights()", given, f"finite numbers by {tokens} × {tokens} tokens")
    sums = found.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > ROUNDING:
        raise FreewalkError(f"{who}: the weights of token {worst} add up to {float(sums[worst]):.6g}, expected 1")
    return found


def sent_by(exchange: Exchange, gathering: Gathering, weights: csr_array | None) -> int:
    """The total number of messages that the tokens of a walk send in an exchange."""
    who = type(exchange).__name__
    return int(check.integers(who, "sent()", exchange.sent(gathering, weights), gathering.nodes.shape, low=0).sum())


def check_options(exchange: Exchange) -> None:
    """Check the options that exchanges have in common."""
    who = type(exchange).__name__
    check.whole(who, "every", exchange.every, 1)
    check.flag(who, "constant", exchange.constant)
    check.choice(who, "means", exchange.means, ("", "all", "node"))

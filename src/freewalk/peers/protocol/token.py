"""What nodes store and hand over: tokens, where they go, their generations and lineage, and the custody of a walk."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from freewalk import rng
from freewalk.designs.local import LocalKernel

_KEPT = 4096  # cached decisions about moves; each is needed several times


class Key(NamedTuple):
    """The key of a token: its run and walk."""

    run: str
    walk: int


class Generation(NamedTuple):
    """The number of re-issues of a token, and the last issuer; the greater one is newer."""

    number: int
    issuer: int


class Position(NamedTuple):
    """A point in the life of a token; it identifies a hand-over, and within a generation points only grow."""

    generation: Generation
    step: int  # the number of its updates
    hop: int  # the hops it has made in the move after the last update

    @property
    def place(self) -> tuple[int, int]:
        """The point without its generation."""
        return self.step, self.hop


class Token(NamedTuple):
    """A travelling model, with everything that is sent with it."""

    point: Position
    payload: Any  # the model and the vectors that its rule carries; the protocol never looks inside
    due: bool  # whether its move is complete, so that the next update is due at the node that has it
    origin: Generation  # with which it was launched
    lineage: tuple[Position, ...] = ()  # where it was re-issued, with the new generations, oldest first
    messages: int = 0  # how often its model was sent
    probes: int = 0  # how often its probes were sent
    diverged: bool = False  # whether an update gave a value that is not finite; the token then stops
    #: For a rule that stores vectors at the nodes: the step of the last update of this token at each node, so that an
    #: out-of-date disk is detected.
    kept: tuple[tuple[int, int], ...] = ()
    #: Its launch on the clock of the node that has it. Only durations travel, so that clocks are never compared.
    began: float = 0.0
    #: The node that sent it, and where that node's journal ended: what was written before cannot be changed unnoticed.
    witness: bytes = b""
    #: For a walk that remembers: where its last move began, which is here if it stayed; -1 if the next move remembers
    #: nothing, as the first, and that after a departure. It is not sent: a token comes from who sends it.
    previous: int = -1

    def descends(self, point: Position) -> bool:
        """Whether a point lies in the past of this token; if not, a re-issue has discarded it."""
        generation = self.origin
        for issued in self.lineage:
            if point.generation == generation:
                return point.place <= issued.place
            generation = issued.generation
        return point.generation == generation


class Loan(NamedTuple):
    """A hand-over from or to a neighbour."""

    peer: int
    point: Position
    model: str = ""  # the digest of what was handed over, which only a node that has had it knows


class Warrant(NamedTuple):
    """Why others should believe what a node says of a walk; in networks without signatures, nothing."""

    permit: bytes = b""  # that the operator launched the walk, signed by the operator
    proof: bytes = b""  # that the newest generation exists, signed by its issuer


class Trust:
    """Whom a node believes: everybody, where nothing is signed (`network/certificates.py` has the other kind)."""

    signs = False

    def permits(self, key: Key, permit: bytes) -> bool:
        """Whether the operator launched a walk."""
        return True

    def proves(self, key: Key, generation: Generation, proof: bytes) -> bool:
        """Whether the issuer of a generation signed it."""
        return True

    def sign(self, key: Key, generation: Generation) -> bytes:
        """The proof of a generation that this node issues."""
        return b""


class Version(NamedTuple):
    """The vectors that a rule stores at this node, as one stay of a token left them."""

    arrived: Position  # the hand-over with which the stay began
    point: Position  # the last update of the stay
    payload: Any  # the stored vectors
    visits: int  # of the token so far


class Custody(NamedTuple):
    """Everything that a node knows durably about one walk."""

    floor: Generation  # the newest generation that it has heard of; nothing older is accepted
    seen: Position | None = None  # the greatest point at which it has held the token
    token: Token | None = None  # the token that it holds, or its copy of a token that it has lent
    lent: Loan | None = None  # the hand-over to a neighbour; None while it holds the token itself
    source: Loan | None = None  # the hand-over by which it came, until that neighbour has been released
    arrived: Position | None = None  # the hand-over with which the token's stay began
    owed: tuple[Loan, ...] = ()  # the releases that are not yet acknowledged
    versions: tuple[Version, ...] = ()  # of what the rule stores here, oldest first
    warrant: Warrant = Warrant()  # of the walk, and of `floor`
    collected: bool = False  # whether the operator has its result, so that nobody need hear of it any more

    @property
    def held(self) -> Token | None:
        """The token, if this node holds it."""
        return self.token if self.lent is None else None

    def newest(self, token: Token) -> Version | None:
        """The version that applies to a token: the last one in its own past."""
        return next((one for one in reversed(self.versions) if token.descends(one.point)), None)


class Stage(NamedTuple):
    """What a node is doing with a walk, as in the table of `protocol/custody.py`; lost in a crash."""

    name: str
    peer: int = -1  # of the current hand-over
    point: Position | None = None
    waiting: frozenset[int] = frozenset()  # the neighbours that have not answered yet


class Ahead(NamedTuple):
    """An offer made before its token can leave; lost in a crash, and after a while."""

    peer: int
    point: Position
    accepted: bool = False


# Where a token goes from a node: the draws of a step, applied to the node's share of the kernel.


class Mover(NamedTuple):
    """The moves of all tokens from one node: its share of the kernel, and the seed of the random draws."""

    local: LocalKernel
    seed: int

    def hops(self, walk: int, step: int) -> int:
        """The number of hops of the move of a step, the same at every node."""
        return self.local.moves[_chosen(self, walk, step)[0]].hops

    def decision(self, walk: int, step: int, previous: int = -1) -> Literal["go", "stay", "ask"]:
        """The decision of the node where a move starts: a longer move may have to be accepted at its end."""
        if self.local.row is not None:
            return "stay" if _remembering(self, walk, step, previous) == self.local.node else "go"
        move, offset, width = _chosen(self, walk, step)
        share = self.local.moves[move]
        if share.ratio is None or share.hops == 0:
            return "go"
        if share.neighbour_ratios is None:
            return "ask"
        there = self._hop(walk, step, 0)
        if there == self.local.node:
            return "stay"
        ratio = share.neighbour_ratios[np.searchsorted(self.local.neighbours, there)]
        return "go" if rng.accepts(offset, width, share.ratio, ratio) else "stay"

    def onward(self, walk: int, step: int, hop: int, previous: int = -1) -> tuple[int | None, int]:
        """The next node of a move and the hop that leads there; None if the move ends here.

        A matrix may keep a token where it is for a hop. A walk that remembers makes single hops.
        """
        if self.local.row is not None:
            there = self.local.node if hop else _remembering(self, walk, step, previous)
            return (None, hop) if there == self.local.node else (there, 1)
        hops = self.hops(walk, step)
        while hop < hops:
            there, hop = self._hop(walk, step, hop), hop + 1
            if there != self.local.node:
                return there, hop
        return None, hop

    def ratio(self, walk: int, step: int) -> float:
        """The ratio of this node for the move of a step."""
        return self.local.moves[_chosen(self, walk, step)[0]].ratio or 0.0

    def accepts(self, walk: int, step: int, start: float) -> bool:
        """Whether a move that ends here is accepted, given the ratio of its start."""
        _, offset, width = _chosen(self, walk, step)
        return bool(rng.accepts(offset, width, start, self.ratio(walk, step)))

    def _hop(self, walk: int, step: int, hop: int) -> int:
        return self.local.hop(_chosen(self, walk, step)[0], hop, _word(self.seed, walk, step, hop + 1))


@lru_cache(_KEPT)
def _chosen(mover: Mover, walk: int, step: int) -> tuple[int, np.uint64, float]:
    return mover.local.choose(step, _word(mover.seed, walk, step, 0))


@lru_cache(_KEPT)
def _remembering(mover: Mover, walk: int, step: int, previous: int) -> int:
    """The next node of a token that came from `previous`, or from nowhere that it knows (-1)."""
    assert mover.local.row is not None
    return mover.local.row.step(previous, *_words(mover.seed, walk, step, 0))


def _word(seed: int, walk: int, step: int, index: int) -> np.uint64:
    return _words(seed, walk, step, index // 2)[index % 2]


@lru_cache(_KEPT)
def _words(seed: int, walk: int, step: int, block: int) -> tuple[np.uint64, np.uint64]:
    """Two words at a time, as they are drawn; a move of one hop needs both."""
    numbers = (seed, rng.MOVE, walk, step, block)
    even, odd = rng.word_pair(*(np.uint64(number) for number in numbers))
    return even, odd

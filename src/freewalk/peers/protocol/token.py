"""What nodes store and hand over: tokens, their generations and lineage, and the custody of a walk."""

from __future__ import annotations

from typing import Any, NamedTuple


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

    @property
    def held(self) -> Token | None:
        """The token, if this node holds it."""
        return self.token if self.lent is None else None


class Stage(NamedTuple):
    """What a node is doing with a walk, as in the table of `protocol/node.py`; lost in a crash."""

    name: str
    peer: int = -1  # of the current hand-over
    point: Position | None = None
    waiting: frozenset[int] = frozenset()  # the neighbours that have not answered yet


class Ahead(NamedTuple):
    """An offer made before its token can leave; lost in a crash, and after a while."""

    peer: int
    point: Position
    accepted: bool = False


def newest(custody: Custody, token: Token) -> Version | None:
    """The version that applies to a token: the last one in its own past."""
    return next((one for one in reversed(custody.versions) if token.descends(one.point)), None)

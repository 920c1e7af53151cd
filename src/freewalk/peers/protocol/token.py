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


class Point(NamedTuple):
    """A point in the life of a token; it identifies a hand-over, and within a generation points only grow.

    Attributes
    ----------
    generation
        The generation of the token.
    step
        The number of its updates.
    hop
        The number of hops it has made in the move after the last update.
    """

    generation: Generation
    step: int
    hop: int

    @property
    def place(self) -> tuple[int, int]:
        """The point without its generation."""
        return self.step, self.hop


class Token(NamedTuple):
    """A travelling model, with everything that is sent with it.

    Attributes
    ----------
    point
        Its point.
    payload
        The model and the vectors that its rule carries; the protocol never looks inside.
    due
        Whether its move is complete, so that the next update is due at the node that has it.
    lineage
        The points at which it was re-issued, with the new generations, oldest first.
    origin
        The generation with which it was launched.
    messages, probes
        How often its model and its probes were sent.
    diverged
        Whether an update gave a value that is not finite; the token then stops.
    kept
        For a rule that stores vectors at the nodes: the step of the last update of this token at each node, so that an
        out-of-date disk is detected.
    """

    point: Point
    payload: Any
    due: bool
    origin: Generation
    lineage: tuple[Point, ...] = ()
    messages: int = 0
    probes: int = 0
    diverged: bool = False
    kept: tuple[tuple[int, int], ...] = ()

    def descends(self, point: Point) -> bool:
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
    point: Point


class Version(NamedTuple):
    """The vectors that a rule stores at this node, as one stay of a token left them.

    Attributes
    ----------
    arrived
        The hand-over with which the stay began.
    point
        The last update of the stay.
    payload
        The stored vectors.
    visits
        The visits of the token so far.
    """

    arrived: Point
    point: Point
    payload: Any
    visits: int


class Custody(NamedTuple):
    """Everything that a node knows durably about one walk.

    Attributes
    ----------
    floor
        The newest generation that it has heard of; nothing older is accepted.
    seen
        The greatest point at which it has held the token.
    token
        The token that it holds, or its copy of a token that it has lent.
    lent
        The hand-over to a neighbour; None while it holds the token itself.
    source
        The hand-over by which it came, until that neighbour has been released.
    arrived
        The hand-over with which the token's stay began.
    owed
        The releases that are not yet acknowledged.
    versions
        The versions of what the rule stores here, oldest first.
    """

    floor: Generation
    seen: Point | None = None
    token: Token | None = None
    lent: Loan | None = None
    source: Loan | None = None
    arrived: Point | None = None
    owed: tuple[Loan, ...] = ()
    versions: tuple[Version, ...] = ()

    @property
    def held(self) -> Token | None:
        """The token, if this node holds it."""
        return self.token if self.lent is None else None


def newest(custody: Custody, token: Token) -> Version | None:
    """The version that applies to a token: the last one in its own past."""
    return next((one for one in reversed(custody.versions) if token.descends(one.point)), None)

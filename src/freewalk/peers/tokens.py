"""What nodes keep and hand on: tokens, their generations and lineage, and what a node knows of a walk."""

from __future__ import annotations

from typing import Any, NamedTuple


class Key(NamedTuple):
    """Which walk of which run."""

    run: str
    walk: int


class Generation(NamedTuple):
    """How often a token has been re-issued, and by whom; the greater one is newer."""

    number: int
    issuer: int


class Point(NamedTuple):
    """A point in the life of a token; it identifies a hand-over, and within a generation points only grow.

    Attributes
    ----------
    generation
        That of the token.
    step
        How many updates it has had.
    hop
        How many hops of the move after the last of them are behind it.
    """

    generation: Generation
    step: int
    hop: int

    @property
    def place(self) -> tuple[int, int]:
        """The point without its generation."""
        return self.step, self.hop


class Token(NamedTuple):
    """A model under way, with all that travels with it.

    Attributes
    ----------
    point
        Where it is in its life.
    payload
        The model and the vectors that its rule carries; the protocol never looks inside.
    due
        Whether its move is over, and the next update belongs to the node that has it.
    lineage
        The points at which it was re-issued, with the new generation: the oldest first.
    origin
        The generation with which it was launched.
    messages, probes
        How often its model was sent, and its probes.
    diverged
        Whether an update made something that is not finite; it then goes no further.
    kept
        Under a rule that keeps something at the nodes: the step of the last update of this token at each node, so that
        a node whose disk is an old one is found out.
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
    """A hand-over with a neighbour: the one from whom a token came, or to whom it went."""

    peer: int
    point: Point


class Version(NamedTuple):
    """What a rule keeps at this node, as one stay of a token left it.

    Attributes
    ----------
    arrived
        The hand-over with which the stay began.
    point
        The last update of the stay.
    payload
        The stored vectors.
    visits
        The visits of the token until then.
    """

    arrived: Point
    point: Point
    payload: Any
    visits: int


class Custody(NamedTuple):
    """All that a node knows durably of one walk.

    Attributes
    ----------
    floor
        The newest generation that it has heard of; nothing older is accepted.
    seen
        The greatest point that it has had in its hands.
    token
        The token that it holds, or the copy of the one that it has lent.
    lent
        To whom; None while it holds the token itself.
    source
        From whom it came, as long as that neighbour has not been released.
    arrived
        The hand-over with which the token's stay began.
    owed
        The releases that are owed and not yet acknowledged.
    versions
        What the rule keeps here, the oldest first.
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
        """The token, if it is in the hands of this node."""
        return self.token if self.lent is None else None


def newest(custody: Custody, token: Token) -> Version | None:
    """The version that a token finds: the last one that lies in its own past."""
    return next((one for one in reversed(custody.versions) if token.descends(one.point)), None)

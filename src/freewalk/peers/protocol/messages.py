"""Messages between nodes, events that reach a node, and actions that it requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from freewalk.peers.protocol.token import Custody, Generation, Key, Position, Token, Version, Warrant

#: Re-issues of a token at most: they travel with it.
LINEAGE = 10_000
#: Messages, or probes, for each step of a token at most: so many that there is always room for those of the next move.
SENT = 2**20

# Messages between nodes. Their docstrings are in the voice of the sender.


class Handing(NamedTuple):
    """A message about one hand-over."""

    key: Key
    point: Position


class Offer(Handing):
    """I would like to hand you this token; the model comes only if you accept."""


class Coming(Handing):
    """The token that I offer you is here, and an update is being made: make your own offer ahead."""


class Accept(Handing):
    """Send it."""


class Received(Handing):
    """I have it, or have had it, on my disk."""


class Renew(Handing):
    """I still hold what you handed me: keep your copy, and do not worry."""


class Query(Handing):
    """I have heard nothing for a while: tell me whether you still hold what I handed you."""


class Released(Handing):
    """I have dropped it, durably."""


class Release(NamedTuple):
    """What you handed me is safe with another: drop your copy."""

    key: Key
    point: Position
    model: str = ""  # the digest of what you handed me, by which you see that I have had it; "" if I forgot it


class Refuse(NamedTuple):
    """Keep it, for this reason."""

    key: Key
    point: Position
    reason: str


class Transfer(NamedTuple):
    """Here it is, model and all."""

    key: Key
    token: Token  # at the point of this hand-over
    again: bool = False  # whether it may have been sent before
    warrant: Warrant = Warrant()


class Ask(NamedTuple):
    """I have restarted with a token; tell me the last point of this walk that you have had."""

    key: Key


class Last(NamedTuple):
    """The last point of it that I have had, if any, and the newest generation that I know.

    If I hold it and it came from you, this is the hand-over by which it came.
    """

    key: Key
    floor: Generation
    seen: Position | None = None
    warrant: Warrant = Warrant()


class Known(NamedTuple):
    """A generation exists; older ones have been discarded."""

    key: Key
    floor: Generation
    warrant: Warrant = Warrant()


class Probe(NamedTuple):
    """Ask the end of a move whether the model may come."""

    key: Key
    point: Position  # the hop is that of its start
    ratio: float  # of the start, by which the end decides
    trail: tuple[int, ...]  # the nodes that it has passed, first one first: the answer goes back the same way


class Answer(NamedTuple):
    """What the end of a probe decided, on its way back along the rest of the trail."""

    key: Key
    point: Position
    accepted: bool
    trail: tuple[int, ...]


HANDINGS = (Offer, Coming, Accept, Received, Renew, Query, Released)
Message = Handing | Release | Refuse | Transfer | Ask | Last | Known | Probe | Answer


# Events that reach a node.


class Packet(NamedTuple):
    """A message from a neighbour."""

    sender: int
    message: Message


class Alarm(NamedTuple):
    """A timer has expired."""

    key: Key | None
    name: str


class Computed(NamedTuple):
    """A requested update has been made."""

    key: Key
    point: Position  # an answer for a token that is no longer here is ignored
    payload: Any  # the model with the carried vectors
    stored: Any  # the vectors stored here
    finite: bool  # whether all numbers are


class Raised(NamedTuple):
    """A requested update cannot be made: user code has raised an error."""

    key: Key
    point: Position
    why: str


class Launch(NamedTuple):
    """An operator hands in a new token."""

    key: Key
    payload: Any
    permit: bytes = b""
    began: float = 0.0  # the time of the node's clock


class Collect(NamedTuple):
    """An operator has a durable copy of a finished token: it may be released, wherever it is."""

    key: Key
    point: Position


class Forget(NamedTuple):
    """An operator has no use for a run any more."""

    run: str


class Connected(NamedTuple):
    """A neighbour can be reached, perhaps again."""

    peer: int


class Disconnected(NamedTuple):
    """A neighbour has not been reached for as long as an offer waits for its answer."""

    peer: int


Event = Packet | Alarm | Computed | Raised | Launch | Collect | Forget | Connected | Disconnected


# Actions that a node requests.


class Send(NamedTuple):
    """Send a message to a neighbour; a `durable` one only after all earlier writes are on disk."""

    peer: int
    message: Message
    durable: bool = False


class Save(NamedTuple):
    """Replace the stored custody of a walk."""

    key: Key
    custody: Custody


class Journal(NamedTuple):
    """Add a line to the journal."""

    key: Key
    kind: str  # "update", "departure", "re-issue", "discard" or "finish"
    point: Position  # of the token after it
    token: Token | None = None  # if its model is to be kept: at the marks, and at the end
    note: str = ""  # details in words
    messages: int = 0  # of the token so far
    probes: int = 0
    began: float = 0.0  # of the token
    witness: bytes = b""  # of the token, if it has just come


class Timer(NamedTuple):
    """Reset a timer, or stop it with None."""

    key: Key | None
    name: str
    seconds: float | None


class Compute(NamedTuple):
    """Make the next update of a token, with the vectors stored here, and report the result."""

    key: Key
    token: Token
    version: Version | None


class Erase(NamedTuple):
    """Remove a run from the disk, all but its name."""

    run: str


class Fail(NamedTuple):
    """Stop: a node cannot repair this alone."""

    key: Key
    why: str


Action = Send | Save | Journal | Timer | Compute | Erase | Fail


@dataclass(frozen=True)
class Settings:
    """What all nodes of a network agree on."""

    seed: int
    steps: int  # updates of each token
    every: int  # steps between models kept in the journal
    nodes: int
    stores: bool = False  # whether the rule stores vectors at the nodes
    lease: float = 10.0  # seconds that a predecessor waits for a sign of life, and again before it re-issues
    patience: float = 3.0  # seconds after which an unanswered offer or probe counts as refused
    retry: float = 0.5  # seconds after which an unanswered message is repeated
    generations: int = LINEAGE  # re-issues of a token at most
    versions: int = 256  # earlier stays for which a node keeps the stored vectors

    def possible(self, generation: Generation) -> bool:
        """Whether a node of this network can have issued a generation."""
        return 0 <= generation.number <= self.generations and -1 <= generation.issuer < self.nodes

    def reachable(self, point: Position, longest: int, first: int = 0) -> bool:
        """Whether a token can have been at a point, given the hops of the longest move and the first step and hop."""
        known = self.possible(point.generation)
        return known and first <= point.step <= self.steps and first <= point.hop <= longest


def plausible(message: Message, settings: Settings, longest: int) -> bool:
    """Whether a message can be true, given the hops of the longest move; one that cannot changes nothing."""
    floor, point = getattr(message, "floor", None), getattr(message, "point", None)
    if isinstance(message, Transfer):
        point = message.token.point
        if not _bearable(message.token, settings, longest):
            return False
    elif isinstance(message, Last):
        point = message.seen
    elif isinstance(message, Probe) and message.ratio <= 0:  # the end would divide by it
        return False
    if floor is not None and not settings.possible(floor):
        return False
    # A token that is handed over has had an update and is moving: no draw belongs to a step before the first.
    first = 1 if isinstance(message, (Offer, Coming, Transfer)) else 0
    return point is None or settings.reachable(point, longest, first)


def _bearable(token: Token, settings: Settings, longest: int) -> bool:
    """Whether what travels with a token, besides its model, can be true; a token within these bounds stays there."""
    _, step, hop = token.point
    stored = settings.stores or not token.kept
    kept = stored and all(node < settings.nodes and at <= step for node, at in token.kept)
    kept &= token.previous < 0  # it comes from who sends it, whatever that node says
    sent = settings.possible(token.origin) and max(token.messages, token.probes) <= SENT * step + hop
    return kept and sent and all(settings.reachable(point, longest) for point in token.lineage)

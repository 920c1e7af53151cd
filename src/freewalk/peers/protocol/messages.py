"""Messages between nodes, events that reach a node, and actions that it requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from freewalk.peers.protocol.token import Custody, Generation, Key, Point, Token, Version

# Messages between nodes. Their docstrings are in the voice of the sender.


class Offer(NamedTuple):
    """I would like to hand you this token; the model comes only if you accept."""

    key: Key
    point: Point


class Coming(NamedTuple):
    """The token that I offer you is here, and an update is being made: make your own offer ahead."""

    key: Key
    point: Point


class Accept(NamedTuple):
    """Send it."""

    key: Key
    point: Point


class Refuse(NamedTuple):
    """Keep it, for this reason."""

    key: Key
    point: Point
    reason: str


class Transfer(NamedTuple):
    """Here it is, model and all.

    Attributes
    ----------
    key, token
        The token, at the point of this hand-over.
    again
        Whether it may have been sent before.
    """

    key: Key
    token: Token
    again: bool = False


class Received(NamedTuple):
    """I have it, or have had it, on my disk."""

    key: Key
    point: Point


class Renew(NamedTuple):
    """I still hold what you handed me: keep your copy, and do not worry."""

    key: Key
    point: Point


class Query(NamedTuple):
    """I have heard nothing for a while: tell me whether you still hold what I handed you."""

    key: Key
    point: Point


class Release(NamedTuple):
    """What you handed me is safe with another: drop your copy."""

    key: Key
    point: Point


class Released(NamedTuple):
    """I have dropped it, durably."""

    key: Key
    point: Point


class Ask(NamedTuple):
    """I have restarted with a token; tell me the last point of this walk that you have had."""

    key: Key


class Last(NamedTuple):
    """The last point of it that I have had, if any, and the newest generation that I know.

    If I hold it and it came from you, this is the hand-over by which it came.
    """

    key: Key
    floor: Generation
    seen: Point | None


class Known(NamedTuple):
    """A generation exists; older ones have been discarded."""

    key: Key
    floor: Generation


class Probe(NamedTuple):
    """Ask the end of a move whether the model may come.

    Attributes
    ----------
    key, point
        The token that asks; the hop is that of its start.
    ratio
        The ratio of the start, by which the end decides.
    trail
        The nodes that it has passed, starting with the first: the answer goes back the same way.
    """

    key: Key
    point: Point
    ratio: float
    trail: tuple[int, ...]


class Answer(NamedTuple):
    """What the end of a probe decided, on its way back along the rest of the trail."""

    key: Key
    point: Point
    accepted: bool
    trail: tuple[int, ...]


Message = (
    Offer
    | Coming
    | Accept
    | Refuse
    | Transfer
    | Received
    | Renew
    | Query
    | Release
    | Released
    | Ask
    | Last
    | Known
    | Probe
    | Answer
)


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
    """A requested update has been made.

    Attributes
    ----------
    key, point
        The token; an answer for a token that is no longer here is ignored.
    payload, stored
        The model with the carried vectors, and the vectors stored here.
    finite
        Whether all its numbers are finite.
    """

    key: Key
    point: Point
    payload: Any
    stored: Any
    finite: bool


class Raised(NamedTuple):
    """A requested update cannot be made: user code has raised an error."""

    key: Key
    point: Point
    why: str


class Launch(NamedTuple):
    """An operator hands in a new token."""

    key: Key
    payload: Any


class Collect(NamedTuple):
    """An operator has a durable copy of a finished token: it may be released."""

    key: Key
    point: Point


class Connected(NamedTuple):
    """A neighbour can be reached, perhaps again."""

    peer: int


Event = Packet | Alarm | Computed | Raised | Launch | Collect | Connected


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
    """Add a line to the journal.

    Attributes
    ----------
    kind
        "update", "departure", "re-issue", "discard" or "finish".
    point
        The point of the token after it.
    token
        The token itself, if its model is to be kept: at the marks, and at the end.
    note
        Details in words.
    messages, probes
        The messages and probes of the token so far.
    """

    key: Key
    kind: str
    point: Point
    token: Token | None = None
    note: str = ""
    messages: int = 0
    probes: int = 0


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


class Fail(NamedTuple):
    """Stop: a node cannot repair this alone."""

    key: Key
    why: str


Action = Send | Save | Journal | Timer | Compute | Fail


@dataclass(frozen=True)
class Settings:
    """What all nodes of a network agree on.

    Parameters
    ----------
    seed
        The seed of the random draws.
    steps
        The number of updates of each token.
    every
        The number of steps between models kept in the journal.
    nodes
        The number of nodes.
    stores
        Whether the rule stores vectors at the nodes.
    lease
        The seconds that a predecessor waits for a sign of life, and then again for an answer, before it re-issues.
    patience
        The seconds after which an unanswered offer or probe counts as refused.
    retry
        The seconds after which an unanswered message is repeated.
    generations
        The maximum number of re-issues of a token.
    versions
        The number of earlier stays for which a node keeps the stored vectors.
    """

    seed: int
    steps: int
    every: int
    nodes: int
    stores: bool = False
    lease: float = 10.0
    patience: float = 3.0
    retry: float = 0.5
    generations: int = 1_000_000
    versions: int = 256

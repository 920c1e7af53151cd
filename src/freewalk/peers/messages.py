"""What nodes say to each other, what happens to a node, and what it asks of the world around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from freewalk.peers.tokens import Custody, Generation, Key, Point, Token, Version

# What nodes say to each other.


class Offer(NamedTuple):
    """I would like to hand you this token; the model comes only if you accept."""

    key: Key
    point: Point


class Coming(NamedTuple):
    """The token that I offer you is here, and an update is being made: ask ahead where it goes from you."""

    key: Key
    point: Point


class Accept(NamedTuple):
    """Send it."""

    key: Key
    point: Point


class Refuse(NamedTuple):
    """Keep it: the reason says why."""

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
    """I have heard nothing for a while: do you still hold what I handed you."""

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
    """I have restarted with a token; tell me the last that you have had of this walk."""

    key: Key


class Last(NamedTuple):
    """The last that I have had of it, if anything, and the newest generation that I know.

    If I hold it and it came from you, this is the hand-over by which it came.
    """

    key: Key
    floor: Generation
    seen: Point | None


class Known(NamedTuple):
    """There is this generation; whatever is older has been discarded."""

    key: Key
    floor: Generation


class Probe(NamedTuple):
    """Ask, where this probe ends, whether the model may come.

    Attributes
    ----------
    key, point
        Which token asks; the hop is that of its start.
    ratio
        That of the start, with which the end decides.
    trail
        The nodes that it has passed, the start first: the answer goes back the same way.
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


# What happens to a node.


class Packet(NamedTuple):
    """A message from a neighbour."""

    sender: int
    message: Message


class Alarm(NamedTuple):
    """A timer that was set has run out."""

    key: Key | None
    name: str


class Computed(NamedTuple):
    """An update that was asked for has been made.

    Attributes
    ----------
    key, point
        Of which token; an answer for a token that is no longer here is ignored.
    payload, stored
        The model with what is carried, and what stays here.
    finite
        Whether all its numbers are.
    """

    key: Key
    point: Point
    payload: Any
    stored: Any
    finite: bool


class Raised(NamedTuple):
    """An update that was asked for cannot be made: code of the user's has raised an error."""

    key: Key
    point: Point
    why: str


class Launch(NamedTuple):
    """An operator hands in a new token."""

    key: Key
    payload: Any


class Collect(NamedTuple):
    """An operator has a durable copy of a finished token: it may be let go."""

    key: Key
    point: Point


class Connected(NamedTuple):
    """A neighbour can be reached, perhaps again."""

    peer: int


Event = Packet | Alarm | Computed | Raised | Launch | Collect | Connected


# What a node asks of the world around it.


class Send(NamedTuple):
    """Send a message to a neighbour; a `durable` one only when all writes before it are on the disk."""

    peer: int
    message: Message
    durable: bool = False


class Save(NamedTuple):
    """Write what is known of a walk in place of what was."""

    key: Key
    custody: Custody


class Journal(NamedTuple):
    """Add a line to the journal.

    Attributes
    ----------
    kind
        "update", "departure", "re-issue", "discard" or "finish".
    point
        When: that of the token after it.
    token
        The token itself, where its model is to be kept: at the marks, and at the end.
    note
        More of it in words.
    messages, probes
        Those of the token until then.
    """

    key: Key
    kind: str
    point: Point
    token: Token | None = None
    note: str = ""
    messages: int = 0
    probes: int = 0


class Timer(NamedTuple):
    """Set a timer anew, or with None stop it."""

    key: Key | None
    name: str
    seconds: float | None


class Compute(NamedTuple):
    """Make the next update of a token, with what is kept here, and tell the result."""

    key: Key
    token: Token
    version: Version | None


class Fail(NamedTuple):
    """Stop: this cannot be put right by a node alone."""

    key: Key
    why: str


Action = Send | Save | Journal | Timer | Compute | Fail


@dataclass(frozen=True)
class Settings:
    """What all nodes of a network agree on.

    Parameters
    ----------
    seed
        That of the draws.
    steps
        The updates of each token.
    every
        How often its model is kept in the journal.
    nodes
        The number of nodes.
    stores
        Whether the rule keeps something at the nodes.
    lease
        For how many seconds a predecessor waits for a sign of life, then once more for an answer, before it re-issues.
    patience
        For how many seconds an offer or a probe waits before it counts as refused.
    retry
        After how many seconds without an answer a message is repeated.
    generations
        How often a token may be re-issued.
    versions
        How many stays what is kept at a node goes back.
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

"""The state of a node: its durable knowledge, its current stages, and the actions that it requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from freewalk.designs.local import LocalKernel
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.messages import Action, Message, Settings
from freewalk.peers.protocol.moves import Mover
from freewalk.peers.protocol.token import Custody, Key, Point, Token

RENEWALS = 3  # in each lease


class Stage(NamedTuple):
    """What a node is doing with a walk; lost in a crash.

    Attributes
    ----------
    name
        "doubt": it has restarted with a token and asks whether the token had already moved on. "due": an update is
        being made. "probing", "offering", "sent": a move is in progress. "lent": a neighbour has the token. "asking":
        that neighbour has been silent. "finished", "failed": the token goes no further.
    peer, point
        The current hand-over.
    waiting
        The neighbours that have not answered yet.
    """

    name: str
    peer: int = -1
    point: Point | None = None
    waiting: frozenset[int] = frozenset()


class Ahead(NamedTuple):
    """An offer made before its token can leave; lost in a crash, and after a while.

    Attributes
    ----------
    peer, point
        The hand-over.
    accepted
        Whether the neighbour has agreed.
    """

    peer: int
    point: Point
    accepted: bool = False


class Desk:
    """The state of a node, and its pending actions; parameters as for `Node`."""

    def __init__(self, local: LocalKernel, settings: Settings, custody: Mapping[Key, Custody] | None = None) -> None:
        self.local, self.settings = local, settings
        self.me, self.mover = local.node, Mover(local, settings.seed)
        self.longest = max((move.hops for move in local.moves), default=0)  # hops of a move
        self.neighbours = tuple(int(node) for node in local.neighbours)
        self.custody: dict[Key, Custody] = dict(custody or {})
        self.stages: dict[Key, Stage] = {}
        self.ahead: dict[Key, Ahead] = {}
        self.timers: set[tuple[Key | None, str]] = set()
        #: The walks whose tokens may have moved on without this process knowing.
        self.uncertain: set[Key] = set()
        #: Why it accepts no tokens at present, such as a full disk; "" if it does.
        self.closed = ""
        self._actions: list[Action] = []

    def _verdict(self, key: Key, point: Point) -> str:
        """The verdict on an offered token: "old", "had" or "new"."""
        custody = self.custody.get(key)
        if custody is None:
            return "new"
        if point.generation < custody.floor:
            return "old"
        return "had" if custody.seen is not None and point <= custody.seen else "new"

    def _fail(self, key: Key, why: str) -> None:
        self._enter(key, Stage("failed"))
        self._do(say.Fail(key, why))

    def _own(self, key: Key) -> bool:
        """Whether the generation of a token was issued here, so that it must be durable before it is announced."""
        token = self.custody[key].token
        return token is not None and bool(token.lineage) and token.point.generation.issuer == self.me

    def _enter(self, key: Key, stage: Stage, patience: float | None = None) -> None:
        """Begin a stage, with a time limit."""
        self.stages[key] = stage
        self._set(key, "retry", None)
        self._set(key, "deadline", patience)

    def _set(self, key: Key | None, name: str, seconds: float | None) -> None:
        """Reset a timer, or stop it if it is set."""
        if seconds is not None:
            self.timers.add((key, name))
        elif (key, name) in self.timers:
            self.timers.discard((key, name))
        else:
            return
        self._actions.append(say.Timer(key, name, seconds))

    def _send(self, peer: int, message: Message, durable: bool = False) -> None:
        self._actions.append(say.Send(peer, message, durable))

    def _save(self, key: Key, custody: Custody) -> None:
        self.custody[key] = custody
        self._actions.append(say.Save(key, custody))

    def _note(self, key: Key, kind: str, token: Token, note: str = "", keep: bool = False) -> None:
        """Add a line to the journal; with `keep`, including the model."""
        kept = token if keep else None
        self._do(say.Journal(key, kind, token.point, kept, note, token.messages, token.probes))

    def _do(self, action: Action) -> None:
        self._actions.append(action)

    def _taken(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

"""The protocol of one node as a pure state machine: events in, actions out; no sockets, no clock, no disk.

Why a token is never lost (docs/explanation/custody.md proves it at length):

1. It is on the disk of its receiver before its sender gives it up: `Received` is a durable message.
2. The sender then keeps a copy, until the token is safe one hop further (`Release`). So two disks have it at any time.
3. Whatever may have happened twice carries a higher generation the second time (`_reissue`), which is on disk before
   anybody hears of it. No node accepts an older generation after a newer one (`_verdict`), so one lineage is left.

A token that a node knows is in one of these stages there. Everything that a stage sends is repeated until it is
answered, and its time limit decides what happens if it never is:

    stage      meaning                                   an answer leads to                      when time is up
    ---------  ----------------------------------------  --------------------------------------  -----------------
    doubt      restarted with a token: is it mine still?  Last: lent, or once all have said: due  re-issue
    due        an update is being made                   Computed: a move; Raised: failed        (no limit)
    probing    the end of a jump is asked to accept it   Answer: offering, or due here           departure: due
    offering   the next node is asked to take it         Accept: sent; Refuse: departure         departure: due
    sent       the model is on its way there             Received: lent; Refuse: re-issue        re-issue
    lent       a neighbour holds it, a copy is here      Renew: lent again; Release: gone        asking
    asking     that neighbour has been silent            Renew: lent; Release: gone              re-issue
    kept       it says "release", but cannot prove that  Transfer: gone                          asking
               it ever had the token
    finished   all updates are made                      Collect: gone                           (no limit)
    failed     nobody here can repair it                                                         (no limit)

A departure ends a move here instead of at its drawn end. A re-issue continues with the copy here under a new
generation, because what was sent may have arrived.

Neighbours may lie. What cannot be undone needs a warrant (`believes`) or a digest (`_on_release`): that the operator
launched a walk, that its issuer signed a generation, that who says "release" has seen the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from freewalk.designs.local import LocalKernel
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.messages import Action, Event, Message, Settings
from freewalk.peers.protocol.token import (
    Ahead,
    Custody,
    Generation,
    Key,
    Loan,
    Mover,
    Position,
    Stage,
    Token,
    Trust,
    Version,
    Warrant,
)

#: Older than every generation.
NOTHING = Generation(0, -1)
_UNKNOWN = Custody(NOTHING)  # what a node knows about a walk of which it has not heard
_RENEWALS = 3  # in each lease


class Node:
    """One node: its share of the kernel, its durable knowledge, and its current stages.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    >>> node = Node(kernel.local(2), say.Settings(seed=1, steps=10, every=5, nodes=4))
    >>> key = Key("first", 0)
    >>> [type(action).__name__ for action in node.handle(say.Launch(key, [0.0]))]
    ['Save', 'Timer', 'Send', 'Send', 'Compute']
    >>> update = say.Computed(key, node.custody[key].token.point, [0.5], None, finite=True)
    >>> [type(action).__name__ for action in node.handle(update)]
    ['Save', 'Journal', 'Timer', 'Timer', 'Timer']
    """

    def __init__(
        self,
        local: LocalKernel,
        settings: Settings,
        custody: Mapping[Key, Custody] | None = None,
        trust: Trust | None = None,
        forgotten: Iterable[str] = (),
    ) -> None:
        self.local, self.settings, self.trust = local, settings, trust or Trust()
        self.me, self.mover = local.node, Mover(local, settings.seed)
        self.longest = max((move.hops for move in local.moves), default=0)  # hops of a move
        self.neighbours = tuple(int(node) for node in local.neighbours)
        #: The neighbours that tokens come from: a walk that remembers must find the way back in its row.
        self.sources = frozenset(self.neighbours if local.row is None else local.row.nodes.tolist())
        self.custody: dict[Key, Custody] = dict(custody or {})  # durable, as is the next; all else is lost in a crash
        self.forgotten = set(forgotten)  # runs
        self.down: set[int] = set()  # neighbours that have not been reached for a while
        self.stages: dict[Key, Stage] = {}
        self.ahead: dict[Key, Ahead] = {}
        self.timers: set[tuple[Key | None, str]] = set()
        #: The walks whose tokens may have moved on without this process knowing.
        self.uncertain: set[Key] = set()
        #: Why it accepts no tokens at present, such as a full disk; "" if it does.
        self.closed = ""
        self._actions: list[Action] = []

    # Events.

    def restart(self) -> list[Action]:
        """Start from the contents of the disk, which may be out of date."""
        for key, custody in self.custody.items():
            if custody.lent is not None:
                self._query(key, custody.lent)
            elif custody.token is not None and not self._over(custody.token):
                self._doubt(key)
            elif custody.token is not None:
                self._finish(key, custody.token)
            if custody.floor.number > 0 and not custody.collected:
                self._set(None, "gossip", self.settings.lease)
        self._owed()
        return self._taken()

    def handle(self, event: Event) -> list[Action]:
        """The actions that follow from an event, in order; a kind `X` of event or message is handled by `_on_x`."""
        if not isinstance(event, say.Packet):
            getattr(self, f"_on_{type(event).__name__.lower()}")(event)
        elif event.sender in self.neighbours and self.believes(*event):
            getattr(self, f"_on_{type(event.message).__name__.lower()}")(event.sender, event.message)
        return self._taken()

    def believes(self, sender: int, message: Message) -> bool:
        """Whether a message of a neighbour can be true, and comes with the warrant that it needs."""
        key = message.key
        if key.run in self.forgotten or not say.plausible(message, self.settings, self.longest):
            return False
        if isinstance(message, (say.Offer, say.Coming, say.Transfer)) and sender not in self.sources:
            return False
        if not isinstance(message, (say.Transfer, say.Known, say.Last)):
            return True
        floor = message.token.point.generation if isinstance(message, say.Transfer) else message.floor
        known, warrant = self.custody.get(key), message.warrant
        if known is None and (floor <= NOTHING or not self.trust.permits(key, warrant.permit)):
            return False
        return (known is not None and floor <= known.floor) or self.trust.proves(key, floor, warrant.proof)

    def permitted(self, event: say.Launch) -> bool:
        """Whether the operator lets a walk start here."""
        return self.trust.permits(event.key, event.permit) and self.trust.proves(event.key, Generation(0, self.me), b"")

    def _on_launch(self, event: say.Launch) -> None:
        key = event.key
        if key in self.custody or key.run in self.forgotten or not self.permitted(event):
            return
        point = Position(Generation(0, self.me), 0, 0)
        token = Token(point, event.payload, due=True, origin=point.generation, began=event.began)
        warrant = Warrant(event.permit)
        self._save(key, Custody(point.generation, seen=point, token=token, arrived=point, warrant=warrant))
        self._proceed(key)

    def _on_collect(self, event: say.Collect) -> None:
        custody = self._known(event.key)
        held, ended = custody.held, event.point.step >= self.settings.steps
        if held is not None and held.point == event.point and (ended or held.diverged):
            custody = self._let_go(event.key, custody)
        if custody is not _UNKNOWN and custody.held is None and event.point.generation == custody.floor:
            self._save(event.key, custody._replace(collected=True))

    def _on_forget(self, event: say.Forget) -> None:
        """Drop all that is known of a run; nothing of it is accepted again."""
        self.forgotten.add(event.run)
        for key in [key for key in self.custody if key.run == event.run]:
            self._enter(key, Stage(""))
            self._set(key, "renew", None)
            self._forget(key)
            self.uncertain.discard(key)
            del self.stages[key], self.custody[key]
        self._do(say.Erase(event.run))

    def _on_connected(self, event: say.Connected) -> None:
        """Repeat at once what a returning neighbour may have missed."""
        peer = event.peer
        self.down.discard(peer)
        for key, custody in self.custody.items():
            stage = self.stages.get(key)
            if stage is not None and (stage.peer == peer or peer in stage.waiting):
                self._repeat(key)
            for loan in custody.owed:
                if loan.peer == peer:
                    self._send(peer, say.Release(key, loan.point, loan.model))
            if custody.floor.number > 0 and not custody.collected:
                self._send_floor(peer, key)

    def _on_disconnected(self, event: say.Disconnected) -> None:
        """Offers to this neighbour need not wait for an answer."""
        self.down.add(event.peer)
        for key, stage in list(self.stages.items()):
            if stage.peer == event.peer and stage.name in ("probing", "offering") and self._is_gone(event.peer):
                self._depart(key, f"node {event.peer} is down")

    def _is_gone(self, peer: int | None) -> bool:
        """Whether a neighbour is down and others are not: alone, a node would soon have made all updates itself."""
        return peer in self.down and len(self.down) < len(self.neighbours)

    def _on_alarm(self, event: say.Alarm) -> None:
        key, name = event
        self.timers.discard((key, name))
        if key is None:
            {"owed": self._owed, "gossip": self._gossip}[name]()
        elif name == "ahead":
            self._forget(key)
        elif key in self.stages:
            {"renew": self._renewal, "retry": self._repeat, "deadline": self._time_is_up}[name](key)

    def _time_is_up(self, key: Key) -> None:
        """A stage has not been answered within its time limit."""
        stage = self.stages[key]
        if stage.name in ("probing", "offering"):
            self._depart(key, f"no answer from node {stage.peer}")
        elif stage.name in ("doubt", "sent", "asking"):
            self._reissue(key)
        elif stage.name in ("lent", "kept") and (lent := self.custody[key].lent) is not None:
            self._query(key, lent)

    def _repeat(self, key: Key) -> None:
        """Repeat what has not been answered."""
        stage = self.stages[key]
        if stage.name == "doubt":
            for peer in sorted(stage.waiting):
                self._send(peer, say.Ask(key))
        elif stage.point is None:
            return
        elif stage.name == "probing":
            self._forward(say.Probe(key, stage.point, self.mover.ratio(key.walk, stage.point.step - 1), ()))
        elif stage.name in ("offering", "sent"):
            self._send(stage.peer, say.Offer(key, stage.point), self._own(key))
        elif stage.name == "asking":
            self._send(stage.peer, say.Query(key, stage.point))
        else:
            return
        self._set(key, "retry", self.settings.retry)

    # doubt: after a crash.

    def _doubt(self, key: Key) -> None:
        """Ask whether a token found on the disk had already moved on: the disk may be out of date."""
        self.uncertain.add(key)
        self._enter(key, Stage("doubt", waiting=frozenset(self.neighbours)), self.settings.lease)
        self._repeat(key)
        self._set(key, "renew", self.settings.lease / _RENEWALS)

    def _on_ask(self, sender: int, message: say.Ask) -> None:
        custody = self._known(message.key)
        source = custody.source if custody.held is not None else None
        seen = source.point if source is not None and source.peer == sender else custody.seen
        self._send(sender, say.Last(message.key, custody.floor, seen, custody.warrant), durable=True)

    def _on_last(self, sender: int, message: say.Last) -> None:
        key, floor, seen, warrant = message
        self._learn(key, floor, warrant)
        stage = self.stages.get(key)
        if stage is None or stage.name != "doubt":
            return
        if seen is not None and self._went(key, sender, seen):
            self._lend(key, sender, seen)
            return
        self.stages[key] = stage = stage._replace(waiting=stage.waiting - {sender})
        custody = self.custody[key]
        if not stage.waiting and custody.token is not None:
            if custody.token.point.generation < custody.floor:
                self._reissue(key)
            else:
                self._proceed(key)

    # due: a token is held, and an update is made. Then it moves.

    def _proceed(self, key: Key) -> None:
        """Take the next step with a token held here."""
        token = self.custody[key].held
        if token is None:
            return
        if not token.due and not token.diverged:
            self._move(key, token)
        elif self._over(token):
            self._finish(key, token)
        else:
            self._update(key, token)

    def _update(self, key: Key, token: Token) -> None:
        version = self.custody[key].newest(token) if self.settings.stores else None
        if (None if version is None else version.point.step) != dict(token.kept).get(self.me):
            self._fail(key, "what is stored here is not what the token left: an old disk, or `versions` is too low")
            return
        self._enter(key, Stage("due"))
        self._announce(key, token)
        self._do(say.Compute(key, token, version))

    def _updated(self, event: say.Computed | say.Raised) -> Token | None:
        """The token of an update, unless it was discarded while the update was made."""
        token = self._known(event.key).held
        is_due = token is not None and self.stages.get(event.key) == Stage("due") and token.point == event.point
        return token if is_due else None

    def _on_computed(self, event: say.Computed) -> None:
        token = self._updated(event)
        if token is None:
            return
        custody, point = self.custody[event.key], Position(token.point.generation, token.point.step + 1, 0)
        came = token.witness
        token = token._replace(point=point, payload=event.payload, due=False, diverged=not event.finite, witness=b"")
        if self.settings.stores:
            token = token._replace(kept=tuple(sorted({**dict(token.kept), self.me: point.step}.items())))
            custody = self._remembered(custody, token, event.stored)
        self._save(event.key, custody._replace(token=token, seen=point))
        marked = point.step % self.settings.every == 0 or self._over(token._replace(due=True))
        self._note(event.key, "update", token, keep=marked, witness=came)
        self._proceed(event.key)

    def _on_raised(self, event: say.Raised) -> None:
        """The token stays here, with its error, until the code is fixed."""
        if self._updated(event) is not None:
            self._fail(event.key, event.why)

    def _remembered(self, custody: Custody, token: Token, stored: Any) -> Custody:
        """What is stored here after an update: one version per stay, since a re-issue never returns into a stay."""
        found, kept = custody.newest(token), custody.versions
        arrived = custody.arrived or token.point
        version = Version(arrived, token.point, stored, 1 if found is None else found.visits + 1)
        if kept and kept[-1].arrived == arrived and kept[-1].point.generation == token.point.generation:
            kept = kept[:-1]
        return custody._replace(versions=(*kept, version)[-self.settings.versions :])

    def _over(self, token: Token) -> bool:
        return token.diverged or (token.due and token.point.step >= self.settings.steps)

    def _finish(self, key: Key, token: Token) -> None:
        self._enter(key, Stage("finished"))
        self._note(key, "finish", token, "diverged" if token.diverged else "", keep=True)
        if self.custody[key].source is not None:
            self._set(key, "renew", self.settings.lease / _RENEWALS)

    def _move(self, key: Key, token: Token) -> None:
        """Choose or continue the move of a token; if its end decides, ask it first."""
        step, hop = token.point.step - 1, token.point.hop
        decision = self.mover.decision(key.walk, step, token.previous) if hop == 0 else "go"
        if decision == "ask":
            there, _ = self.mover.onward(key.walk, step, 0)
            self._enter(key, Stage("probing", self.me if there is None else there, token.point), self.settings.patience)
            if self._is_gone(there):
                self._depart(key, f"node {there} is down")
            else:
                self._repeat(key)
        elif decision == "stay":
            self._arrive(key, token._replace(previous=self._trace(self.me)))
        else:
            self._carry(key, token)

    def _arrive(self, key: Key, token: Token) -> None:
        """The move ends here."""
        self.custody[key] = self.custody[key]._replace(token=token._replace(due=True), seen=token.point)
        self._proceed(key)

    def _trace(self, node: int) -> int:
        """What a token remembers of a move that began at a node."""
        return -1 if self.local.row is None else node

    # probing: a jump that must be accepted at its end is preceded by a probe.

    def _on_probe(self, sender: int, message: say.Probe) -> None:
        hops = self.mover.hops(message.key.walk, message.point.step - 1) if message.point.step > 0 else 0
        if message.trail and message.trail[-1] == sender and len(message.trail) <= hops:
            self._forward(message)

    def _forward(self, probe: say.Probe) -> None:
        """Forward a probe, or decide if it ends here."""
        walk, step, trail = probe.key.walk, probe.point.step - 1, probe.trail
        there, hops = self.mover.onward(walk, step, len(trail))
        trail += (self.me,) * (hops - len(trail))
        if there is not None:
            self._send(there, probe._replace(trail=trail))
        elif trail[0] == self.me:
            self._decided(say.Answer(probe.key, probe.point, False, ()), home=True)
        else:
            self._back(say.Answer(probe.key, probe.point, self.mover.accepts(walk, step, probe.ratio), trail))

    def _on_answer(self, sender: int, message: say.Answer) -> None:
        if message.trail:
            self._back(message)
        else:
            self._decided(message)

    def _back(self, answer: say.Answer) -> None:
        """Send an answer back along the trail."""
        *rest, last = answer.trail
        while last == self.me and rest:
            *rest, last = rest
        if last == self.me:
            self._decided(answer._replace(trail=()))
        else:
            self._send(last, answer._replace(trail=tuple(rest)))

    def _decided(self, answer: say.Answer, home: bool = False) -> None:
        """Handle the answer to a probe that started here."""
        custody, stage = self._known(answer.key), self.stages.get(answer.key)
        token = custody.held
        if token is None or stage is None or stage.name != "probing" or stage.point != answer.point:
            return
        hops = self.mover.hops(answer.key.walk, token.point.step - 1)
        token = token._replace(probes=token.probes + hops * (1 if home else 2))
        self.custody[answer.key] = custody._replace(token=token)
        if answer.accepted:
            self._carry(answer.key, token)
        else:
            self._arrive(answer.key, token)

    # offering: the next node of the move is asked. Where a token goes depends only on draws, so that node can be asked
    # before the update is made ("ahead"). An offer changes nothing on either side, so it may be lost or repeated.

    def _carry(self, key: Key, token: Token) -> None:
        """Hand a token on to the next node of its move, or end the move here."""
        there, hop = self.mover.onward(key.walk, token.point.step - 1, token.point.hop, token.previous)
        point = token.point._replace(hop=hop)
        if there is None:
            self._arrive(key, token._replace(point=point))
            return
        ahead = self._forget(key)
        if ahead == Ahead(there, point, accepted=True):
            self._hand(key, token, there, point)
            return
        self._enter(key, Stage("offering", there, point), self.settings.patience)
        if self._is_gone(there):
            self._depart(key, f"node {there} is down")
        elif ahead == Ahead(there, point):  # its answer is pending
            self._set(key, "retry", self.settings.retry)
        else:
            self._repeat(key)

    def _announce(self, key: Key, token: Token) -> None:
        """An update begins: offer the token to its next node, which may make its own offer ahead."""
        there, point = self._onward(key, token.point, token.previous)
        if there is not None:
            durable = self._own(key)
            self._offer_ahead(key, there, point, durable)
            self._send(there, say.Coming(key, point), durable)

    def _on_coming(self, sender: int, message: say.Coming) -> None:
        key, point = message
        heard = key in self.custody or self.trust.permits(key, b"")  # the warrant comes with the token
        if self.closed or not heard or self._verdict(key, point) != "new":
            return
        there, hop = self.mover.onward(key.walk, point.step - 1, point.hop)
        onward = point._replace(hop=hop)
        if there is None:
            there, onward = self._onward(key, onward, sender)  # a walk that remembers makes one hop from there
        if there is not None:
            self._offer_ahead(key, there, onward)

    def _onward(self, key: Key, point: Position, previous: int = -1) -> tuple[int | None, Position]:
        """The next node of a token after an update here, if known, and the point of the hand-over."""
        if point.step < self.settings.steps and self.mover.decision(key.walk, point.step, previous) == "go":
            there, hop = self.mover.onward(key.walk, point.step, 0, previous)
            return there, Position(point.generation, point.step + 1, hop)
        return None, point

    def _offer_ahead(self, key: Key, there: int, point: Position, durable: bool = False) -> None:
        if key in self.ahead and self.ahead[key][:2] == (there, point):
            return
        self.ahead[key] = Ahead(there, point)
        self._set(key, "ahead", self.settings.patience)
        self._send(there, say.Offer(key, point), durable)

    def _forget(self, key: Key) -> Ahead | None:
        """Remove an offer made ahead, because it is used now or has expired."""
        self._set(key, "ahead", None)
        return self.ahead.pop(key, None)

    def _on_offer(self, sender: int, message: say.Offer) -> None:
        key, point = message
        verdict = self._verdict(key, point)
        if verdict == "old":
            self._send_floor(sender, key)
        elif verdict == "had":
            self._send(sender, say.Received(key, point), durable=True)
        elif self.closed:
            self._send(sender, say.Refuse(key, point, self.closed))
        else:
            self._send(sender, say.Accept(key, point))

    def _on_accept(self, sender: int, message: say.Accept) -> None:
        key, point = message
        token = self._offered(key, sender, point)
        if token is not None:
            self._hand(key, token, sender, point)
        elif self.ahead.get(key) == Ahead(sender, point):
            self.ahead[key] = Ahead(sender, point, accepted=True)

    def _on_refuse(self, sender: int, message: say.Refuse) -> None:
        key, point, reason = message
        if self._offered(key, sender, point) is None:
            if key in self.ahead and self.ahead[key][:2] == (sender, point):
                self._forget(key)  # the offer is repeated when the token can leave
        elif self.stages[key].name == "offering":
            self._depart(key, f"node {sender} refused: {reason}")
        else:
            self._reissue(key)

    def _depart(self, key: Key, why: str) -> None:
        """End the move here instead of at its drawn end: a departure from the path of a simulation.

        The next move then goes without memory. A re-issue repeats a move with what its token remembered, so that a path
        follows from the seed and the departures alone.
        """
        if key in self.uncertain:  # it may have moved on from this very point, so what follows needs a new generation
            self._reissue(key, proceed=False)
        custody = self.custody[key]
        if custody.held is None or self.stages[key].name == "failed":
            return
        token = custody.held._replace(due=True, previous=-1)
        self._save(key, custody._replace(token=token))
        self._note(key, "departure", token, why)
        self._proceed(key)

    # sent: the model is on its way. From now on only the receiver knows whether it has arrived.

    def _hand(self, key: Key, token: Token, there: int, point: Position) -> None:
        """Send a token, model and all, to a neighbour that has agreed to take it."""
        sent = Stage("sent", there, point)
        if self.stages.get(key) != sent:
            self._enter(key, sent, self.settings.lease)
            self._set(key, "retry", self.settings.retry)
        handed = token._replace(point=point, messages=token.messages + 1, previous=-1)
        warrant = self.custody[key].warrant
        self._send(there, say.Transfer(key, handed, key in self.uncertain, warrant), durable=True)
        self.uncertain.add(key)

    def _on_transfer(self, sender: int, message: say.Transfer) -> None:
        key, token, again, warrant = message
        verdict = self._verdict(key, token.point)
        if verdict == "old":
            self._send_floor(sender, key)
            return
        if verdict == "new":
            self._learn(key, token.point.generation, warrant)
            custody = self._let_go(key, self.custody[key])
            source = Loan(sender, token.point, token.payload.digest)
            token = token._replace(due=False, previous=self._trace(sender))
            self._save(key, custody._replace(seen=token.point, token=token, source=source, arrived=token.point))
            self._set(key, "renew", self.settings.lease / _RENEWALS)
            if again:
                self.uncertain.add(key)
            self._proceed(key)
        self._send(sender, say.Received(key, message.token.point), durable=True)

    def _on_received(self, sender: int, message: say.Received) -> None:
        if self._went(message.key, sender, message.point):
            self._lend(message.key, sender, message.point)

    def _verdict(self, key: Key, point: Position) -> str:
        """The verdict on an offered token: "old", "had" or "new"."""
        custody = self._known(key)
        if point.generation < custody.floor:
            return "old"
        return "had" if custody.seen is not None and point <= custody.seen else "new"

    def _offered(self, key: Key, peer: int, point: Position) -> Token | None:
        """The token that a neighbour refers to, if it was offered or sent to that neighbour."""
        stage = self.stages.get(key)
        if stage is None or stage.name not in ("offering", "sent") or (stage.peer, stage.point) != (peer, point):
            return None
        return self._known(key).held

    def _went(self, key: Key, peer: int, point: Position) -> bool:
        """Whether a neighbour that has had a token at a point must have received the one held here."""
        custody, stage = self._known(key), self.stages.get(key)
        if stage is not None and stage.name == "doubt" and custody.held is not None:
            return point > custody.held.point and point.generation >= custody.floor
        return self._offered(key, peer, point) is not None and key in self.uncertain

    # lent, asking and kept: copies, leases and releases.

    def _lend(self, key: Key, peer: int, point: Position) -> None:
        """A neighbour has the token durably: keep a copy here, and release the previous copy."""
        custody = self.custody[key]
        self._save(key, custody._replace(lent=Loan(peer, point), **self._owing(key, custody)))
        self._set(key, "renew", None)
        self._enter(key, Stage("lent", peer, point), self.settings.lease)

    def _let_go(self, key: Key, custody: Custody) -> Custody:
        """Drop the token or the copy that is here."""
        custody = custody._replace(token=None, lent=None, arrived=None, **self._owing(key, custody))
        if self.custody[key] != custody:
            self._save(key, custody)
        if key in self.stages:
            self._enter(key, Stage(""))  # stops its timers
            del self.stages[key]
        self._set(key, "renew", None)
        self.uncertain.discard(key)
        return custody

    def _owing(self, key: Key, custody: Custody) -> dict[str, Any]:
        """A release is owed to the neighbour from whom the token came."""
        if custody.source is None:
            return {"source": None}
        self._send(custody.source.peer, say.Release(key, custody.source.point, custody.source.model))
        self._set(None, "owed", self.settings.retry)
        # When the token came from there again, its older copy went: even if it acknowledges nothing, it is owed one.
        others = (loan for loan in custody.owed if loan.peer != custody.source.peer)
        return {"source": None, "owed": (*others, custody.source)}

    def _owed(self) -> None:
        """Repeat which copies can be dropped."""
        pending = [(key, loan) for key, custody in self.custody.items() for loan in custody.owed]
        for key, loan in pending:
            self._send(loan.peer, say.Release(key, loan.point, loan.model))
        self._set(None, "owed", self.settings.retry if pending else None)

    def _on_release(self, sender: int, message: say.Release) -> None:
        key, point, model = message
        custody = self._known(key)
        if custody.token is not None and (custody.lent == Loan(sender, point) or self._went(key, sender, point)):
            if model == custody.token.payload.digest:
                self._let_go(key, custody)
            else:  # a lie, or this is an old disk: keep what may be the only copy
                if custody.lent is None:
                    self._lend(key, sender, point)
                self._enter(key, Stage("kept", sender, point), self.settings.lease)
        self._send(sender, say.Released(key, point), durable=True)

    def _on_released(self, sender: int, message: say.Released) -> None:
        custody, gone = self._known(message.key), (sender, message.point)
        left = tuple(loan for loan in custody.owed if loan[:2] != gone)
        if left != custody.owed:
            self._save(message.key, custody._replace(owed=left))

    def _renewal(self, key: Key) -> None:
        custody = self.custody[key]
        if custody.held is not None and custody.source is not None:
            self._send(custody.source.peer, say.Renew(key, custody.source.point), durable=True)
            self._set(key, "renew", self.settings.lease / _RENEWALS)

    def _on_renew(self, sender: int, message: say.Renew) -> None:
        key, point = message
        custody = self._known(key)
        if custody.lent == Loan(sender, point):
            self._enter(key, Stage("lent", sender, point), self.settings.lease)
        elif self._went(key, sender, point):
            self._lend(key, sender, point)
        elif custody.floor > point.generation:
            self._send_floor(sender, key)

    def _query(self, key: Key, loan: Loan) -> None:
        """Ask a neighbour that should have renewed its lease."""
        self._enter(key, Stage("asking", loan.peer, loan.point), self.settings.lease)
        self._repeat(key)

    def _on_query(self, sender: int, message: say.Query) -> None:
        key, point = message
        custody = self._known(key)
        source = custody.source
        if custody.held is not None and source is not None and source[:2] == (sender, point):
            self._send(sender, say.Renew(key, point), durable=True)
        elif custody.floor > point.generation:
            self._send_floor(sender, key)
        elif custody.seen is not None and custody.seen >= point:
            had = [loan for loan in custody.owed if loan[:2] == (sender, point)]
            self._send(sender, say.Release(key, point, had[0].model if had else ""), durable=True)

    # Generations: a re-issue, and how others hear of it.

    def _reissue(self, key: Key, proceed: bool = True) -> None:
        """Continue with the token here under a new generation: a silent neighbour may have received it."""
        custody = self.custody[key]._replace(collected=False)
        if custody.token is None:
            return
        number = custody.floor.number + 1
        if number > self.settings.generations:  # a lineage travels with its token
            self._fail(key, f"it has been re-issued {self.settings.generations:,} times")
            return
        point = custody.token.point._replace(generation=Generation(number, self.me))
        token = custody.token._replace(point=point, lineage=(*custody.token.lineage, point))
        warrant = custody.warrant._replace(proof=self.trust.sign(key, point.generation))
        self._save(key, custody._replace(floor=point.generation, seen=point, token=token, lent=None, warrant=warrant))
        self._note(key, "re-issue", token)
        self._tell(key)
        self.uncertain.discard(key)
        if proceed:
            self._proceed(key)

    def _own(self, key: Key) -> bool:
        """Whether the generation of a token was issued here, so that it must be durable before it is announced."""
        token = self.custody[key].token
        return token is not None and bool(token.lineage) and token.point.generation.issuer == self.me

    def _learn(self, key: Key, generation: Generation, warrant: Warrant) -> None:
        """Learn of a newer generation, and discard what is older."""
        custody = self._known(key)
        if generation <= custody.floor:
            return
        warrant = Warrant(custody.warrant.permit or warrant.permit, warrant.proof)
        custody = custody._replace(floor=generation, warrant=warrant, collected=False)
        if custody.token is None:
            self._save(key, custody)
        elif generation.issuer == self.me:  # issued here but forgotten: an old disk, but perhaps the only copy
            self._save(key, custody._replace(lent=None))
            self._doubt(key)
        else:
            self._note(key, "discard", custody.token, f"generation {generation.number} of {generation.issuer} is newer")
            self._let_go(key, custody)
        if generation.number > 0:
            self._tell(key)

    def _tell(self, key: Key) -> None:
        for peer in self.neighbours:
            self._send_floor(peer, key)
        self._set(None, "gossip", self.settings.lease)

    def _on_known(self, sender: int, message: say.Known) -> None:
        self._learn(message.key, message.floor, message.warrant)

    def _gossip(self) -> None:
        for key, custody in self.custody.items():
            if custody.floor.number > 0 and not custody.collected:
                self._tell(key)

    def _send_floor(self, peer: int, key: Key) -> None:
        custody = self.custody[key]
        self._send(peer, say.Known(key, custody.floor, custody.warrant), durable=True)

    # State and actions.

    def _known(self, key: Key) -> Custody:
        return self.custody.get(key, _UNKNOWN)

    def _enter(self, key: Key, stage: Stage, patience: float | None = None) -> None:
        """Begin a stage, with a time limit."""
        self.stages[key] = stage
        self._set(key, "retry", None)
        self._set(key, "deadline", patience)

    def _fail(self, key: Key, why: str) -> None:
        self._enter(key, Stage("failed"))
        self._do(say.Fail(key, why))

    def _set(self, key: Key | None, name: str, seconds: float | None) -> None:
        """Reset a timer, or stop it if it is set."""
        if seconds is not None:
            self.timers.add((key, name))
        elif (key, name) in self.timers:
            self.timers.discard((key, name))
        else:
            return
        self._do(say.Timer(key, name, seconds))

    def _send(self, peer: int, message: Message, durable: bool = False) -> None:
        self._do(say.Send(peer, message, durable))

    def _save(self, key: Key, custody: Custody) -> None:
        self.custody[key] = custody
        self._do(say.Save(key, custody))

    def _note(
        self, key: Key, kind: str, token: Token, note: str = "", keep: bool = False, witness: bytes = b""
    ) -> None:
        """Add a line to the journal; with `keep`, including the model."""
        kept = token if keep else None
        counts = (token.messages, token.probes)
        self._do(say.Journal(key, kind, token.point, kept, note, *counts, token.began, witness))

    def _do(self, action: Action) -> None:
        self._actions.append(action)

    def _taken(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

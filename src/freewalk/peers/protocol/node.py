"""The protocol of one node as a pure state machine: events in, actions out; no sockets, no clock, no disk.

docs/explanation/custody.md explains its guarantees. In short: a token is on the disk of its receiver before its sender
gives it up; the sender keeps a copy until the token is safe one hop further; anything that may have happened twice
carries a higher generation the second time, and no node accepts an older generation after a newer one.
"""

from __future__ import annotations

from typing import Any

from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.desk import RENEWALS, Ahead, Stage
from freewalk.peers.protocol.messages import Action, Event, Message
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Point, Token
from freewalk.peers.protocol.walker import Walker

#: Older than every generation.
NOTHING = Generation(0, -1)
_HANDED = (say.Offer, say.Coming, say.Transfer)


class Node(Walker):
    """One node: its share of the kernel, its durable knowledge, and its current stages.

    Parameters
    ----------
    local
        Its share of the kernel.
    settings
        What all nodes agree on.
    custody
        Its durable knowledge when it stopped, by walk.

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

    # Events.

    def restart(self) -> list[Action]:
        """Start from the contents of the disk, which may be out of date."""
        for key, custody in self.custody.items():
            if custody.lent is not None:
                self._query(key, custody.lent)
            elif custody.token is not None and not self._over(custody.token):
                self._doubt(key)
            elif custody.token is not None:
                self._finish(key)
            if custody.floor.number > 0:
                self._set(None, "gossip", self.settings.lease)
        self._owed()
        return self._taken()

    def handle(self, event: Event) -> list[Action]:
        """The actions that follow from an event, in order."""
        if isinstance(event, say.Packet):
            if event.sender in self.neighbours and self.sound(event.message):
                _HANDLERS[type(event.message)](self, event.sender, event.message)
        elif isinstance(event, say.Alarm):
            self._alarm(event)
        elif isinstance(event, say.Computed):
            self._computed(event)
        elif isinstance(event, say.Raised):
            self._raised(event)
        elif isinstance(event, say.Launch):
            self._launch(event)
        elif isinstance(event, say.Collect):
            self._collect(event)
        else:
            self._connected(event.peer)
        return self._taken()

    def sound(self, message: Message) -> bool:
        """Whether a message is plausible; one that is not changes nothing."""
        floor, point = getattr(message, "floor", None), getattr(message, "point", None)
        if isinstance(message, say.Transfer):
            point = message.token.point
        elif isinstance(message, say.Last):
            point = message.seen
        if floor is not None and not self._possible(floor):
            return False
        # A token that is handed over has had an update and is moving: no draw belongs to a step before the first.
        first = 1 if isinstance(message, _HANDED) else 0
        return point is None or (
            self._possible(point.generation)
            and first <= point.step <= self.settings.steps
            and first <= point.hop <= self.longest
        )

    def _possible(self, generation: Generation) -> bool:
        number, issuer = generation
        return 0 <= number <= self.settings.generations and -1 <= issuer < self.settings.nodes

    def _launch(self, event: say.Launch) -> None:
        if event.key in self.custody:
            return
        point = Point(Generation(0, self.me), 0, 0)
        token = Token(point, event.payload, due=True, origin=point.generation)
        self._save(event.key, Custody(point.generation, seen=point, token=token, arrived=point))
        self._proceed(event.key)

    def _collect(self, event: say.Collect) -> None:
        custody = self.custody.get(event.key)
        if custody is not None and custody.held is not None and custody.held.point == event.point:
            self._let_go(event.key, custody)

    def _connected(self, peer: int) -> None:
        """Repeat at once what a returning neighbour may have missed."""
        for key, custody in self.custody.items():
            stage = self.stages.get(key)
            if stage is not None and (stage.peer == peer or peer in stage.waiting):
                self._repeat(key, stage)
            for loan in custody.owed:
                if loan.peer == peer:
                    self._send(peer, say.Release(key, loan.point))
            if custody.floor.number > 0:
                self._send(peer, say.Known(key, custody.floor), durable=True)

    def _alarm(self, event: say.Alarm) -> None:
        self.timers.discard((event.key, event.name))
        if event.key is None:
            if event.name == "owed":
                self._owed()
            else:
                self._gossip()
            return
        if event.name == "ahead":
            self._forget(event.key)
            return
        custody, stage = self.custody.get(event.key), self.stages.get(event.key)
        if custody is None or stage is None:
            return
        if event.name == "renew":
            self._renewal(event.key, custody)
        elif event.name == "retry":
            self._repeat(event.key, stage)
        elif stage.name in ("probing", "offering"):
            self._depart(event.key, f"no answer from node {stage.peer}")
        elif stage.name == "lent" and custody.lent is not None:
            self._query(event.key, custody.lent)
        elif stage.name in ("doubt", "sent", "asking"):
            self._reissue(event.key)

    # Handing over.

    def _on_offer(self, sender: int, message: say.Offer) -> None:
        key, point = message
        verdict = self._verdict(key, point)
        if verdict == "old":
            self._send(sender, say.Known(key, self.custody[key].floor), durable=True)
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
            return
        if self.stages[key].name == "offering":
            self._depart(key, f"node {sender} refused: {reason}")
        else:
            self._reissue(key)

    def _on_transfer(self, sender: int, message: say.Transfer) -> None:
        key, token, again = message
        verdict = self._verdict(key, token.point)
        if verdict == "old":
            self._send(sender, say.Known(key, self.custody[key].floor), durable=True)
            return
        if verdict == "new":
            self._learn(key, token.point.generation)
            custody = self._let_go(key, self.custody[key])
            source, token = Loan(sender, token.point), token._replace(due=False)
            self._save(key, custody._replace(seen=token.point, token=token, source=source, arrived=token.point))
            self._set(key, "renew", self.settings.lease / RENEWALS)
            if again:
                self.uncertain.add(key)
            self._proceed(key)
        self._send(sender, say.Received(key, message.token.point), durable=True)

    def _on_received(self, sender: int, message: say.Received) -> None:
        if self._went(message.key, sender, message.point):
            self._lend(message.key, sender, message.point)

    def _offered(self, key: Key, peer: int, point: Point) -> Token | None:
        """The token that a neighbour refers to, if it was offered or sent to that neighbour."""
        custody, stage = self.custody.get(key), self.stages.get(key)
        if custody is None or stage is None or stage.name not in ("offering", "sent"):
            return None
        return custody.held if (stage.peer, stage.point) == (peer, point) else None

    def _went(self, key: Key, peer: int, point: Point) -> bool:
        """Whether a neighbour that has had a token at a point must have received the one held here."""
        custody, stage = self.custody.get(key), self.stages.get(key)
        if custody is None or stage is None or custody.held is None:
            return False
        if stage.name == "doubt":
            return point > custody.held.point and point.generation >= custody.floor
        return self._offered(key, peer, point) is not None

    # Copies and leases.

    def _lend(self, key: Key, peer: int, point: Point) -> None:
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
            self._enter(key, Stage(""))
            del self.stages[key]
        self._set(key, "renew", None)
        self.uncertain.discard(key)
        return custody

    def _owing(self, key: Key, custody: Custody) -> dict[str, Any]:
        """A release is owed to the neighbour from whom the token came."""
        if custody.source is None:
            return {"source": None}
        self._send(custody.source.peer, say.Release(key, custody.source.point))
        self._set(None, "owed", self.settings.retry)
        return {"source": None, "owed": (*custody.owed, custody.source)}

    def _owed(self) -> None:
        """Repeat which copies can be dropped."""
        pending = [(key, loan) for key, custody in self.custody.items() for loan in custody.owed]
        for key, loan in pending:
            self._send(loan.peer, say.Release(key, loan.point))
        self._set(None, "owed", self.settings.retry if pending else None)

    def _on_release(self, sender: int, message: say.Release) -> None:
        key, point = message
        custody = self.custody.get(key)
        if custody is not None and (custody.lent == Loan(sender, point) or self._went(key, sender, point)):
            self._let_go(key, custody)
        self._send(sender, say.Released(key, point), durable=True)

    def _on_released(self, sender: int, message: say.Released) -> None:
        custody = self.custody.get(message.key)
        loan = Loan(sender, message.point)
        if custody is not None and loan in custody.owed:
            self._save(message.key, custody._replace(owed=tuple(one for one in custody.owed if one != loan)))

    def _renewal(self, key: Key, custody: Custody) -> None:
        if custody.held is not None and custody.source is not None:
            self._send(custody.source.peer, say.Renew(key, custody.source.point), durable=True)
            self._set(key, "renew", self.settings.lease / RENEWALS)

    def _on_renew(self, sender: int, message: say.Renew) -> None:
        key, point = message
        custody = self.custody.get(key)
        if custody is None:
            return
        if custody.lent == Loan(sender, point):
            self._enter(key, Stage("lent", sender, point), self.settings.lease)
        elif self._went(key, sender, point):
            self._lend(key, sender, point)
        elif custody.floor > point.generation:
            self._send(sender, say.Known(key, custody.floor), durable=True)

    def _query(self, key: Key, loan: Loan) -> None:
        """Ask a neighbour that should have renewed its lease."""
        self._enter(key, Stage("asking", loan.peer, loan.point), self.settings.lease)
        self._repeat(key, self.stages[key])

    def _on_query(self, sender: int, message: say.Query) -> None:
        key, point = message
        custody = self.custody.get(key)
        if custody is None:
            return
        if custody.held is not None and custody.source == Loan(sender, point):
            self._send(sender, say.Renew(key, point), durable=True)
        elif custody.floor > point.generation:
            self._send(sender, say.Known(key, custody.floor), durable=True)
        elif custody.seen is not None and custody.seen >= point:
            self._send(sender, say.Release(key, point), durable=True)

    # After a crash, and generations.

    def _doubt(self, key: Key) -> None:
        """Ask whether a token found on the disk had already moved on: the disk may be out of date."""
        self.uncertain.add(key)
        self._enter(key, Stage("doubt", waiting=frozenset(self.neighbours)), self.settings.lease)
        self._repeat(key, self.stages[key])
        self._set(key, "renew", self.settings.lease / RENEWALS)

    def _on_ask(self, sender: int, message: say.Ask) -> None:
        custody = self.custody.get(message.key, Custody(NOTHING))
        source = custody.source if custody.held is not None else None
        seen = source.point if source is not None and source.peer == sender else custody.seen
        self._send(sender, say.Last(message.key, custody.floor, seen), durable=True)

    def _on_last(self, sender: int, message: say.Last) -> None:
        key, floor, seen = message
        self._learn(key, floor)
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

    def _depart(self, key: Key, why: str) -> None:
        """End the move here instead of at its drawn end: a departure from the path of a simulation."""
        if key in self.uncertain:  # it may have moved on from this very point, so what follows needs a new generation
            self._reissue(key, proceed=False)
        custody = self.custody[key]
        if custody.held is None or self.stages[key].name == "failed":
            return
        token = custody.held._replace(due=True)
        self._save(key, custody._replace(token=token))
        self._note(key, "departure", token, why)
        self._proceed(key)

    def _reissue(self, key: Key, proceed: bool = True) -> None:
        """Continue with the token here under a new generation: a silent neighbour may have received it."""
        custody = self.custody[key]
        if custody.token is None:
            return
        number = custody.floor.number + 1
        if number > self.settings.generations:
            self._fail(key, f"it has been re-issued {self.settings.generations:,} times")
            return
        point = custody.token.point._replace(generation=Generation(number, self.me))
        token = custody.token._replace(point=point, lineage=(*custody.token.lineage, point))
        self._save(key, custody._replace(floor=point.generation, seen=point, token=token, lent=None))
        self._note(key, "re-issue", token)
        self._tell(key, point.generation)
        self.uncertain.discard(key)
        if proceed:
            self._proceed(key)

    def _learn(self, key: Key, generation: Generation) -> None:
        """Learn of a newer generation, and discard what is older."""
        custody = self.custody.setdefault(key, Custody(NOTHING))
        if generation <= custody.floor:
            return
        custody = custody._replace(floor=generation)
        if custody.token is None:
            self._save(key, custody)
        elif generation.issuer == self.me:  # issued here but forgotten: an old disk, but perhaps the only copy
            self._save(key, custody._replace(lent=None))
            self._doubt(key)
        else:
            self._note(key, "discard", custody.token, f"generation {generation.number} of {generation.issuer} is newer")
            self._let_go(key, custody)
        if generation.number > 0:
            self._tell(key, generation)

    def _tell(self, key: Key, generation: Generation) -> None:
        for peer in self.neighbours:
            self._send(peer, say.Known(key, generation), durable=True)
        self._set(None, "gossip", self.settings.lease)

    def _on_known(self, sender: int, message: say.Known) -> None:
        self._learn(message.key, message.floor)

    def _gossip(self) -> None:
        for key, custody in self.custody.items():
            if custody.floor.number > 0:
                self._tell(key, custody.floor)


_HANDLERS: dict[type, Any] = {
    say.Offer: Node._on_offer,
    say.Coming: Node._on_coming,
    say.Accept: Node._on_accept,
    say.Refuse: Node._on_refuse,
    say.Transfer: Node._on_transfer,
    say.Received: Node._on_received,
    say.Renew: Node._on_renew,
    say.Query: Node._on_query,
    say.Release: Node._on_release,
    say.Released: Node._on_released,
    say.Ask: Node._on_ask,
    say.Last: Node._on_last,
    say.Known: Node._on_known,
    say.Probe: Node._on_probe,
    say.Answer: Node._on_answer,
}

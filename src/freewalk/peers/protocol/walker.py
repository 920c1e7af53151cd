"""A token held by a node: an update, then a move, which its end may have to accept."""

from __future__ import annotations

from typing import Any

from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.desk import RENEWALS, Ahead, Desk, Stage
from freewalk.peers.protocol.token import Custody, Key, Point, Token, Version, newest


class Walker(Desk):
    """Updates and moves of tokens held here, up to the offer that starts a hand-over."""

    # A token is held: an update, then a move.

    def _proceed(self, key: Key) -> None:
        """Take the next step with a token held here."""
        token = self.custody[key].held
        if token is None:
            return
        if not token.due and not token.diverged:
            self._move(key, token)
        elif self._over(token):
            self._finish(key)
        else:
            self._update(key, token)

    def _update(self, key: Key, token: Token) -> None:
        custody = self.custody[key]
        version = newest(custody, token) if self.settings.stores else None
        if (None if version is None else version.point.step) != dict(token.kept).get(self.me):
            self._fail(key, "what is stored here is not what the token left: an old disk, or `versions` is too low")
            return
        self._enter(key, Stage("due"))
        self._announce(key, token)
        self._do(say.Compute(key, token, version))

    def _computed(self, event: say.Computed) -> None:
        custody, stage = self.custody.get(event.key), self.stages.get(event.key)
        token = None if custody is None else custody.held
        if custody is None or token is None or stage != Stage("due") or token.point != event.point:
            return  # the token was discarded while the update was made
        point = Point(token.point.generation, token.point.step + 1, 0)
        token = token._replace(point=point, payload=event.payload, due=False, diverged=not event.finite)
        if self.settings.stores:
            token = token._replace(kept=tuple(sorted({**dict(token.kept), self.me: point.step}.items())))
            custody = self._remembered(custody, token, event.stored)
        self._save(event.key, custody._replace(token=token, seen=point))
        marked = point.step % self.settings.every == 0 or self._over(token._replace(due=True))
        self._note(event.key, "update", token, keep=marked)
        self._proceed(event.key)

    def _raised(self, event: say.Raised) -> None:
        """The token stays here, with its error, until the code is fixed."""
        custody, stage = self.custody.get(event.key), self.stages.get(event.key)
        token = None if custody is None else custody.held
        if token is not None and stage == Stage("due") and token.point == event.point:
            self._fail(event.key, event.why)

    def _remembered(self, custody: Custody, token: Token, stored: Any) -> Custody:
        """What is stored here after an update: one version per stay, since a re-issue never returns into a stay."""
        found, kept = newest(custody, token), custody.versions
        arrived = custody.arrived or token.point
        version = Version(arrived, token.point, stored, 1 if found is None else found.visits + 1)
        if kept and kept[-1].arrived == arrived and kept[-1].point.generation == token.point.generation:
            kept = kept[:-1]
        return custody._replace(versions=(*kept, version)[-self.settings.versions :])

    def _over(self, token: Token) -> bool:
        return token.diverged or (token.due and token.point.step >= self.settings.steps)

    def _finish(self, key: Key) -> None:
        custody = self.custody[key]
        token = custody.held
        if token is not None:
            self._enter(key, Stage("finished"))
            self._note(key, "finish", token, "diverged" if token.diverged else "", keep=True)
            if custody.source is not None:
                self._set(key, "renew", self.settings.lease / RENEWALS)

    def _move(self, key: Key, token: Token) -> None:
        """Choose or continue the move of a token; if its end decides, ask it first."""
        step, hop = token.point.step - 1, token.point.hop
        decision = self.mover.decision(key.walk, step) if hop == 0 else "go"
        if decision == "ask":
            there, _ = self.mover.onward(key.walk, step, 0)
            self._enter(key, Stage("probing", self.me if there is None else there, token.point), self.settings.patience)
            self._repeat(key, self.stages[key])
        elif decision == "stay":
            self._arrive(key, token)
        else:
            self._carry(key, token)

    def _carry(self, key: Key, token: Token) -> None:
        """Hand a token on to the next node of its move, or end the move here."""
        there, hop = self.mover.onward(key.walk, token.point.step - 1, token.point.hop)
        point = token.point._replace(hop=hop)
        if there is None:
            self._arrive(key, token._replace(point=point))
            return
        ahead = self._forget(key)
        if ahead == Ahead(there, point, accepted=True):
            self._hand(key, token, there, point)
            return
        self._enter(key, Stage("offering", there, point), self.settings.patience)
        if ahead == Ahead(there, point):  # its answer is pending
            self._set(key, "retry", self.settings.retry)
        else:
            self._repeat(key, self.stages[key])

    def _hand(self, key: Key, token: Token, there: int, point: Point) -> None:
        """Send a token, model and all, to a neighbour that has agreed to take it."""
        sent = Stage("sent", there, point)
        if self.stages.get(key) != sent:
            self._enter(key, sent, self.settings.lease)
            self._set(key, "retry", self.settings.retry)
        handed = token._replace(point=point, messages=token.messages + 1)
        self._send(there, say.Transfer(key, handed, key in self.uncertain), durable=True)
        self.uncertain.add(key)

    def _arrive(self, key: Key, token: Token) -> None:
        """The move ends here."""
        self.custody[key] = self.custody[key]._replace(token=token._replace(due=True), seen=token.point)
        self._proceed(key)

    # Where a token goes depends only on draws, so the next node can be asked before the update is made.

    def _announce(self, key: Key, token: Token) -> None:
        """An update begins: offer the token to its next node, which may make its own offer ahead."""
        there, point = self._onward(key, token.point)
        if there is None:
            return
        durable = self._own(key)
        self._offer_ahead(key, there, point, durable)
        self._send(there, say.Coming(key, point), durable)

    def _on_coming(self, sender: int, message: say.Coming) -> None:
        key, point = message
        if self.closed or self._verdict(key, point) != "new":
            return
        there, hop = self.mover.onward(key.walk, point.step - 1, point.hop)
        onward = point._replace(hop=hop)
        if there is None:
            there, onward = self._onward(key, onward)
        if there is not None:
            self._offer_ahead(key, there, onward)

    def _onward(self, key: Key, point: Point) -> tuple[int | None, Point]:
        """The next node of a token after an update here, if known, and the point of the hand-over."""
        if point.step < self.settings.steps and self.mover.decision(key.walk, point.step) == "go":
            there, hop = self.mover.onward(key.walk, point.step, 0)
            return there, Point(point.generation, point.step + 1, hop)
        return None, point

    def _offer_ahead(self, key: Key, there: int, point: Point, durable: bool = False) -> None:
        if key in self.ahead and self.ahead[key][:2] == (there, point):
            return
        self.ahead[key] = Ahead(there, point)
        self._set(key, "ahead", self.settings.patience)
        self._send(there, say.Offer(key, point), durable)

    def _forget(self, key: Key) -> Ahead | None:
        """Remove an offer made ahead, because it is used now or has expired."""
        self._set(key, "ahead", None)
        return self.ahead.pop(key, None)

    def _repeat(self, key: Key, stage: Stage) -> None:
        """Repeat what has not been answered."""
        if stage.name == "doubt":
            for peer in sorted(stage.waiting):
                self._send(peer, say.Ask(key))
        elif stage.name == "probing" and stage.point is not None:
            self._forward(say.Probe(key, stage.point, self.mover.ratio(key.walk, stage.point.step - 1), ()))
        elif stage.name in ("offering", "sent") and stage.point is not None:
            self._send(stage.peer, say.Offer(key, stage.point), self._own(key))
        elif stage.name == "asking" and stage.point is not None:
            self._send(stage.peer, say.Query(key, stage.point))
        else:
            return
        self._set(key, "retry", self.settings.retry)

    # A jump that must be accepted at its end is preceded by a probe.

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
        stage, custody = self.stages.get(answer.key), self.custody.get(answer.key)
        if stage is None or custody is None or custody.held is None:
            return
        if stage.name != "probing" or stage.point != answer.point:
            return
        token = custody.held
        hops = self.mover.hops(answer.key.walk, token.point.step - 1)
        token = token._replace(probes=token.probes + hops * (1 if home else 2))
        self.custody[answer.key] = custody._replace(token=token)
        if answer.accepted:
            self._carry(answer.key, token)
        else:
            self._arrive(answer.key, token)

    def _on_probe(self, sender: int, message: say.Probe) -> None:
        hops = self.mover.hops(message.key.walk, message.point.step - 1) if message.point.step > 0 else 0
        if message.trail and message.trail[-1] == sender and len(message.trail) <= hops:
            self._forward(message)

    def _on_answer(self, sender: int, message: say.Answer) -> None:
        if message.trail:
            self._back(message)
        else:
            self._decided(message)

"""A world for nodes of the real protocol: wires, disks and clocks that do whatever a schedule says.

A model is the list of its updates, (step, node) each, and a table of what the token believes that each node has stored;
so a lost, doubled or misplaced update is seen at once. Writes wait until a schedule commits them; a crash loses them,
and with them the messages that had to wait for them.
"""

from collections import Counter
from typing import NamedTuple

from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.token import Key, Mover, Token

RUN = "run"


class Model(NamedTuple):
    """The updates that a model has had, and what its token believes that each node has stored."""

    updates: tuple = ()
    believed: tuple = ()

    @property
    def digest(self):
        return f"{hash(self) % 2**64:064x}"


class Violation(AssertionError):
    """The protocol broke one of its promises."""


class World:
    """Nodes, what is on their disks, and what is under way between them.

    Attributes
    ----------
    wires
        (sender, receiver, message) each, in no order that would matter.
    pending
        By node: writes that are not on the disk yet, and the messages that wait for them.
    works
        By node: updates that are to be made.
    """

    def __init__(self, kernel, settings, starts, make=Node):
        self.kernel, self.settings, self.make = kernel, settings, make
        self.locals = [kernel.local(node) for node in range(kernel.graph.n)]
        self.keys = [Key(RUN, walk) for walk in range(len(starts))]
        self.disks = [{} for _ in self.locals]
        self.journals = [() for _ in self.locals]
        self.pending = [() for _ in self.locals]
        self.works = [() for _ in self.locals]
        self.timers = [frozenset() for _ in self.locals]
        self.clock, self.armed = 0, {}  # when each timer was set, for those who wait patiently
        self.wires = ()
        self.failures = ()
        self.dead = frozenset()  # the nodes that never come back
        self.excused = frozenset()  # the walks of which one of these had the last token
        self.old = False  # whether a node has come back with an old disk
        self.nodes = [make(local, settings) for local in self.locals]
        for key, start in zip(self.keys, starts, strict=True):
            self.does(start, self.nodes[start].handle(say.Launch(key, Model(), self.permit(key, start))))
            self.commit(start)

    def permit(self, key, start):
        """What the operator signs."""
        return b""

    def copy(self):
        """Another world like this one."""
        new = object.__new__(type(self))
        new.__dict__ = {name: list(value) if isinstance(value, list) else value for name, value in vars(self).items()}
        new.nodes = [None if node is None else _copied(node) for node in self.nodes]
        return new

    def print(self):
        """All that the future depends on, in a form that can be compared."""
        return (
            tuple(None if node is None else _printed(node) for node in self.nodes),
            tuple(frozenset(disk.items()) for disk in self.disks),
            tuple(self.pending),
            tuple(frozenset(works) for works in self.works),
            tuple(self.timers),
            frozenset(Counter(self.wires).items()),
        )

    # What can happen.

    def does(self, node, actions):
        """Do what a node asks for, as far as that does not wait for its disk."""
        for action in actions:
            if isinstance(action, say.Send):
                if action.durable and self.pending[node]:
                    self.pending[node] += (action,)
                else:
                    self.wires += ((node, action.peer, action.message),)
            elif isinstance(action, say.Timer):
                timer = {(action.key, action.name)}
                self.timers[node] = self.timers[node] - timer if action.seconds is None else self.timers[node] | timer
                self.armed = {**self.armed, (node, action.key, action.name): self.clock}
            elif isinstance(action, say.Compute):
                self.works[node] += (action,)
            elif isinstance(action, say.Fail):
                self.failures += ((node, action.why),)
            else:
                self.pending[node] += (action,)

    def handle(self, node, event):
        """Let something happen to a node that is up."""
        if self.nodes[node] is not None:
            self.does(node, self.nodes[node].handle(event))

    def commit(self, node):
        """What is pending reaches the disk, and what waited for it the wires."""
        pending, self.pending[node] = self.pending[node], ()
        disk, journal = dict(self.disks[node]), self.journals[node]
        for action in pending:
            if isinstance(action, say.Save):
                disk[action.key] = action.custody
            elif isinstance(action, say.Journal):
                journal += (action,)
            else:
                self.wires += ((node, action.peer, action.message),)
        self.disks[node], self.journals[node] = disk, journal

    def deliver(self, index, keep=False):
        """A packet arrives; with `keep` another copy of it is still under way."""
        sender, receiver, message = self.wires[index]
        if not keep:
            self.drop(index)
        self.handle(receiver, say.Packet(sender, message))

    def drop(self, index):
        """A packet is lost."""
        self.wires = self.wires[:index] + self.wires[index + 1 :]

    def compute(self, node, index=0):
        """An update is made; the model notes it."""
        work = self.works[node][index]
        self.works[node] = self.works[node][:index] + self.works[node][index + 1 :]
        token = work.token
        updates, believed = token.payload
        expect(len(updates) == token.point.step, f"{token} has had other updates than it says")
        stored = None if work.version is None else work.version.payload
        if self.settings.stores:
            expect(
                dict(believed).get(node) == stored, f"node {node} has {stored} stored, but {token} does not think so"
            )
        note = (token.point.step, node)
        payload = Model((*updates, note), tuple(sorted({**dict(believed), node: note}.items())))
        self.handle(node, say.Computed(work.key, token.point, payload, note, finite=True))

    def alarm(self, node, timer):
        """A timer runs out."""
        self.timers[node] = self.timers[node] - {timer}
        self.handle(node, say.Alarm(*timer))

    def crash(self, node):
        """A node dies; what was not on its disk is lost, and what was on its way to this process."""
        self.wires = tuple(packet for packet in self.wires if packet[1] != node)
        self.nodes[node], self.pending[node], self.works[node] = None, (), ()
        self.timers[node] = frozenset()

    def die(self, node):
        """A node dies for good."""
        self.excused |= {key for key in self.keys if self._lost(key, node)}
        self.crash(node)
        self.dead |= {node}

    def restart(self, node, disk=None):
        """It comes back, perhaps with an old disk."""
        if disk is not None:
            self.excused |= {key for key in self.keys if self._lost(key, node)}
            self.disks[node], self.old = disk, True
        self.nodes[node] = self.make(self.locals[node], self.settings, self.disks[node])
        self.does(node, self.nodes[node].restart())

    def _lost(self, key, node):
        """Whether a node whose disk is lost had the last token of the newest generation of a walk."""
        known = [None if here in self.dead else one.get(key) for here, one in enumerate(self.disks)]
        newest = max(one.floor for one in known if one)
        there = [here for here, one in enumerate(known) if one and one.token and one.token.point.generation == newest]
        return there == [node]

    # What must hold.

    def check(self):
        """At any time: of each walk, a token of the newest generation that anybody knows is on some disk."""
        if self.old or self.failures:
            return
        for key in self.keys:
            if key in self.excused:
                continue
            known = [disk[key] for node, disk in enumerate(self.disks) if key in disk and node not in self.dead]
            newest = max(one.floor for one in known)
            there = [one for one in known if one.token is not None and one.token.point.generation == newest]
            expect(there, f"no disk has a token of {newest}")

    def settle(self, patience=100_000):
        """Let everything happen that should, fairly and without any more faults, until all walks are over."""
        for node, machine in enumerate(self.nodes):
            if machine is None and node not in self.dead:
                self.restart(node)
        for _ in range(patience):
            if self.wires:
                self.deliver(0)
            elif any(self.works):
                self.compute(next(node for node, works in enumerate(self.works) if works))
            elif any(self.pending):
                self.commit(next(node for node, pending in enumerate(self.pending) if pending))
            elif self.over() or self.failures:
                return
            else:
                self._wait()
        raise Violation(f"it does not come to an end: {self.wires[:5]} {[node and node.stages for node in self.nodes]}")

    def _wait(self):
        """Nothing is under way: time passes. What goes unanswered is repeated, and only then given up."""
        self.clock += 1
        due = [(node, timer) for node, timers in enumerate(self.timers) for timer in sorted(timers, key=repr)]
        for node, timer in due:
            given_up = timer[1] == "deadline"
            late = not given_up or self.armed[(node, *timer)] < self.clock - 1
            if timer in self.timers[node] and given_up == (self.clock % 2 == 0) and late:
                self.alarm(node, timer)

    def over(self):
        """Whether one finished token is left of each walk, and nothing else."""
        for key in self.keys:
            known = [node.custody[key] for node in self.nodes if node and key in node.custody]
            if key in self.excused and not any(one.token for one in known):
                continue
            newest = max(one.floor for one in known)
            if any(one.floor != newest and one.token is not None for one in known):
                return False
            held = [one.token for one in known if one.held is not None]
            if len(held) != 1 or not (held[0].due and held[0].point.step == self.settings.steps):
                return False
            if any(loan.peer not in self.dead for one in known for loan in one.owed):
                return False
        return True

    def verify(self):
        """At the end: one token of each walk, whose updates are on the journals once each, along the right path."""
        if self.failures:
            return
        for key in self.keys:
            tokens = [node.custody[key].held for node in self.nodes if node and key in node.custody]
            tokens = [token for token in tokens if token is not None]
            if key in self.excused and not tokens:
                continue
            (token,) = tokens
            updates, believed = token.payload
            expect([step for step, _ in updates] == list(range(self.settings.steps)), f"the updates are {updates}")
            if not self.old:
                self._verify_journals(key, token)
            if self.settings.stores and not self.old:
                for node, stored in believed:
                    custody = self.disks[node][key]
                    found = [one for one in custody.versions if token.descends(one.point)]
                    expect(found and found[-1].payload == stored, f"node {node} has {found}, not {stored}")

    def _verify_journals(self, key, token):
        lines = [(node, line) for node, journal in enumerate(self.journals) for line in journal if line.key == key]
        lived = [(node, line) for node, line in lines if token.descends(line.point)]
        noted = Counter((line.point.step - 1, node) for node, line in set(lived) if line.kind == "update")
        expect(noted == Counter(token.payload[0]), f"journals say {sorted(noted)}, the model {token.payload[0]}")
        departures = {line.point.step - 1: node for node, line in lived if line.kind == "departure"}
        path = replay(self.locals, self.settings, key.walk, token.payload[0][0][1], departures)
        expect(path[:-1] == [node for _, node in token.payload[0]], f"{path} is the path, not {token.payload[0]}")

    def discarded(self):
        """How many updates on the journals a re-issue has discarded."""
        tokens = {key: one.held for node in self.nodes if node for key, one in node.custody.items() if one.held}
        lines = [line for journal in self.journals for line in journal if line.kind == "update"]
        return sum(line.key in tokens and not tokens[line.key].descends(line.point) for line in lines)


def expect(truth, words):
    if not truth:
        raise Violation(words)


def replay(locals_, settings, walk, start, departures):
    """The path of a walk whose moves end elsewhere at some steps."""
    path = [start]
    for step in range(settings.steps):
        came = path[-2] if step > 0 and step - 1 not in departures else -1
        end = departures[step] if step in departures else moved(locals_, settings.seed, walk, step, path[-1], came)
        path.append(end)
    return path


def moved(locals_, seed, walk, step, start, previous=-1):
    """Where one move ends, if the move before began at a node."""
    mover = Mover(locals_[start], seed)
    decision = mover.decision(walk, step, previous)
    if decision == "stay":
        return start
    here, hop = start, 0
    while True:
        there, hop = Mover(locals_[here], seed).onward(walk, step, hop, previous)
        if there is None:
            break
        here = there
    if decision == "ask" and not Mover(locals_[here], seed).accepts(walk, step, mover.ratio(walk, step)):
        return start
    return here


def _copied(node):
    new = object.__new__(type(node))
    new.__dict__ = dict(vars(node))
    new.custody, new.stages, new.timers, new._actions = dict(node.custody), dict(node.stages), set(node.timers), []
    new.uncertain, new.ahead = set(node.uncertain), dict(node.ahead)
    return new


def _printed(node):
    known = (node.custody, node.stages, node.ahead)
    return *(frozenset(each.items()) for each in known), frozenset(node.uncertain)


__all__ = ["RUN", "Token", "Violation", "World", "expect", "moved", "replay"]

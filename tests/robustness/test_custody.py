"""The promises of custody, on the real class: whatever crashes, is lost, comes late or twice, no update is."""

import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from schedules import LARGER, PAIR, REMEMBERS, Faults, every, follow, happen, search, some
from world import Violation, World

from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings

SMALLEST = [Faults(crash=1), Faults(deadline=1), Faults(die=1), Faults(drop=1, twice=1)]


@pytest.mark.parametrize(
    ("kernel", "steps", "faults"),
    [(PAIR, 2, faults) for faults in SMALLEST] + [(REMEMBERS, 3, faults) for faults in SMALLEST],
    ids=repr,
)
def test_every_schedule_of_a_small_world(kernel, steps, faults):
    ends, _, whole = search(every(kernel, steps), faults, most=30_000)
    assert whole
    assert ends > 50


def test_random_schedules_of_larger_worlds():
    """Departures, re-issues and updates that they discard really happen on the way."""
    kinds, discarded, failed = [], 0, 0
    for seed in range(300):
        end = some(seed, old=seed % 3 == 2)
        kinds += [line.kind for journal in end.journals for line in journal]
        discarded += end.discarded()
        failed += bool(end.failures)
    assert min(kinds.count("departure"), kinds.count("re-issue"), kinds.count("discard"), discarded) > 20
    assert failed > 0  # a disk that has forgotten what a rule kept there is found out


@pytest.mark.long  # a million: python tests/robustness/schedules.py 1000000
def test_a_hundred_thousand_schedules():
    assert follow(100_000) >= 100_000


# Mistakes that somebody could make: each is found.


class LetsGoEarly(Node):
    """Says that it has a token before that is on its disk."""

    def _send(self, peer, message, durable=False):
        super()._send(peer, message)


class TakesOldGenerations(Node):
    def _verdict(self, key, point):
        verdict = super()._verdict(key, point)
        return "new" if verdict == "old" else verdict


class TakesTokensTwice(Node):
    def _verdict(self, key, point):
        verdict = super()._verdict(key, point)
        return "new" if verdict == "had" else verdict


class TrustsItsDisk(Node):
    """Goes on after a restart without asking."""

    def _doubt(self, key):
        self._proceed(key)


class DepartsUnderTheSameGeneration(Node):
    def _depart(self, key, why):
        self.uncertain.discard(key)
        super()._depart(key, why)


class KeepsNoCopy(Node):
    def _lend(self, key, peer, point):
        self._let_go(key, self.custody[key])


class KeepsOneVersion(Node):
    """Cannot return to what a rule kept at the node before a generation that was discarded."""

    def _remembered(self, custody, token, stored):
        custody = super()._remembered(custody, token, stored)
        return custody._replace(versions=custody.versions[-1:])


class ForgetsWhereItCameFrom(Node):
    """Keeps that in memory only."""

    def _save(self, key, custody):
        super()._save(key, custody)
        if custody.token is not None:
            token = custody.token._replace(previous=-1)
            self._actions[-1] = say.Save(key, custody._replace(token=token))


class RemembersAfterADeparture(Node):
    """Which no replay can know."""

    def _note(self, key, kind, token, *more, **others):
        if kind == "departure":
            token = token._replace(previous=self.before)
            self._save(key, self.custody[key]._replace(token=token))
        super()._note(key, kind, token, *more, **others)

    def _depart(self, key, why):
        self.before = self.custody[key].token.previous
        super()._depart(key, why)


class ForgetsWhenItReissues(Node):
    """A move that is made again then leads elsewhere, and no journal says so."""

    def _reissue(self, key, proceed=True):
        token = self.custody[key].token
        if token is not None:
            self.custody[key] = self.custody[key]._replace(token=token._replace(previous=-1))
        super()._reissue(key, proceed)


MISTAKES = [
    LetsGoEarly,
    TakesOldGenerations,
    TakesTokensTwice,
    TrustsItsDisk,
    DepartsUnderTheSameGeneration,
    KeepsNoCopy,
    KeepsOneVersion,
    ForgetsWhereItCameFrom,
    RemembersAfterADeparture,
    ForgetsWhenItReissues,
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake):
    with pytest.raises(Violation):
        look(mistake)


def look(mistake):
    for faults in (*SMALLEST, Faults(crash=1, deadline=1)):
        search(every(PAIR, make=mistake), faults, most=10_000)
    for seed in range(1000):
        if some(seed, make=mistake).failures:
            raise Violation("a token found something else than it had left")


# Larger worlds, with schedules that hypothesis shrinks.


class Schedules(RuleBasedStateMachine):
    """A ring of five nodes, in which anything may happen at any time."""

    @initialize(kernel=strategies.sampled_from(LARGER), stores=strategies.booleans(), walks=strategies.integers(1, 3))
    def begin(self, kernel, stores, walks):
        self.world = World(kernel, Settings(seed=walks, steps=6, every=3, nodes=5, stores=stores), list(range(walks)))

    def _some(self, data, options):
        return data.draw(strategies.sampled_from(options))

    @precondition(lambda self: self.world.wires)
    @rule(data=strategies.data(), fate=strategies.sampled_from(["deliver", "deliver", "deliver", "drop", "twice"]))
    def packet(self, data, fate):
        happen(
            self.world, (fate, data.draw(strategies.integers(0, len(self.world.wires) - 1))), Faults(drop=1, twice=1)
        )

    @precondition(lambda self: any(self.world.pending))
    @rule(data=strategies.data())
    def commit(self, data):
        self.world.commit(self._some(data, [node for node, pending in enumerate(self.world.pending) if pending]))

    @precondition(lambda self: any(self.world.works))
    @rule(data=strategies.data())
    def compute(self, data):
        self.world.compute(self._some(data, [node for node, works in enumerate(self.world.works) if works]))

    @precondition(lambda self: any(self.world.timers))
    @rule(data=strategies.data())
    def alarm(self, data):
        timers = [(node, one) for node, some in enumerate(self.world.timers) for one in sorted(some, key=repr)]
        self.world.alarm(*self._some(data, timers))

    @rule(node=strategies.integers(0, 4))
    def crash(self, node):
        if self.world.nodes[node] is not None:
            self.world.crash(node)
        else:
            self.world.restart(node)

    @invariant()
    def holds(self):
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self):
        if hasattr(self, "world"):
            self.world.settle()
            self.world.verify()


Schedules.TestCase.settings = settings(
    max_examples=60, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSchedules = Schedules.TestCase

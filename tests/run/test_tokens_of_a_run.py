"""Several tokens from the call to the record: what is counted, resuming, and input that does not fit."""

import signal
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import freewalk as fw
from freewalk import checks
from freewalk.designs import MHLJ, SimpleWalk, Stay
from freewalk.errors import RecordError
from freewalk.exchanges import Average, Gossip, Meet
from freewalk.rules import GradientTracking

GRAPH = fw.graphs.ring(12)
PROBLEM = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=3, heavy=2, heavy_variance=4.0, seed=1)
WALK = MHLJ(0.3, 0.5, 3).kernel(GRAPH, PROBLEM.smoothness)
PARKED = Stay().kernel(GRAPH)
RULE = fw.SGD(step=0.01)


@dataclass(frozen=True)
class Next(fw.Exchange):
    """A user's exchange: a token takes half of the next one."""

    share: float = 0.5

    def weights(self, gathering):
        tokens = gathering.nodes.size
        return (1 - self.share) * np.eye(tokens) + self.share * np.roll(np.eye(tokens), 1, axis=1)


@dataclass(frozen=True)
class Equal(fw.Exchange):
    """A user's exchange: all tokens average, by their weights."""

    every: int = 2

    def weights(self, gathering):
        return Average().weights(gathering)


CASES = {
    "apart": {"kernel": WALK, "rule": RULE, "tokens": 4},
    "Meet": {"kernel": WALK, "rule": RULE, "tokens": 4, "exchange": Meet()},
    "Average": {"kernel": WALK, "rule": RULE, "tokens": 4, "exchange": Average(every=5)},
    "Gossip": {"kernel": PARKED, "rule": GradientTracking(0.005), "tokens": "nodes", "exchange": Gossip()},
    "given matrix": {
        "kernel": PARKED,
        "rule": RULE,
        "tokens": "nodes",
        "exchange": Gossip(np.eye(12) * 0.5 + GRAPH.adjacency().toarray() * 0.25, every=2),
    },
    "Next (a user's)": {"kernel": WALK, "rule": RULE, "tokens": 4, "exchange": Next()},
}


pytestmark = pytest.mark.usefixtures("short_chunks")


def interrupted(step, steps):
    if step >= 12:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.quick("Meet-reference", *(f"{case}-cpu" for case in CASES))
@pytest.mark.parametrize("runtime", ["cpu", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_interrupting_saving_and_resuming(case, runtime, tmp_path):
    run = CASES[case] | {"steps": 60, "walks": 3, "every": 7, "seed": 5, "paths": [2, 0], "runtime": runtime}
    whole = fw.learn(PROBLEM, **run)
    partial = fw.learn(PROBLEM, progress=interrupted, **run)
    assert partial.partial
    assert 12 <= int(partial.data.step[-1]) + 7 < 60
    loaded = fw.load(partial.save(tmp_path / "partial.npz"))
    resumed = fw.resume(loaded, types=[Next])
    assert resumed.data.identical(whole.data)
    other = fw.resume(fw.load(tmp_path / "partial.npz"), types=[Next], runtime="reference")
    np.testing.assert_allclose(other.data.loss, whole.data.loss, rtol=1e-9)
    assert np.array_equal(other.data.messages, whole.data.messages)
    again = fw.load(whole.save(tmp_path / "whole.npz"))
    assert again.data.identical(whole.data)
    assert "consensus" in again.data
    assert again.data.consensus.attrs["long_name"].startswith("consensus")


def test_a_damaged_file_is_refused(tmp_path):
    run = CASES["Average"] | {"steps": 120, "walks": 3, "every": 7, "progress": interrupted}
    for change in ({"tokens": 3}, {"exchanged": np.zeros(2, dtype=np.int64)}, {"tokens": 0}):
        partial = fw.learn(PROBLEM, **run)
        partial.continuation.state = replace(partial.continuation.state, **change)
        loaded = fw.load(partial.save(tmp_path / "bad.npz"))
        with pytest.raises(RecordError, match=r"tokens|exchanged"):
            fw.resume(loaded)


def test_what_a_record_counts():
    record = fw.learn(PROBLEM, WALK, fw.SGD(0.01, local_steps=3), steps=50, walks=2, tokens=4, every=25)
    assert np.array_equal(record.data.updates, [0, 300, 600])
    assert np.array_equal(record.data.step, [0, 25, 50])
    assert record.data.updates.attrs["units"] == "updates"
    assert record.provenance["tokens"] == 4
    assert np.array_equal(record.data.visits.sum("node"), [200, 200])
    assert "4 tokens" in record.label
    alone = fw.learn(PROBLEM, WALK, fw.SGD(0.01, local_steps=3), steps=50, walks=8, every=25)
    means = alone.data.final.values.reshape(2, 4, 3).mean(axis=1)
    np.testing.assert_allclose(record.data.final, means, rtol=1e-12)
    spread = np.mean(np.sum((alone.data.final.values.reshape(2, 4, 3) - means[:, None]) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(record.data.consensus[:, -1], spread, rtol=1e-9)


def test_one_diverging_token_is_a_diverged_walk():
    initial = np.zeros((1, 12, 3))
    initial[0, 3] = np.inf
    with pytest.raises(fw.FreewalkError, match="initial"):
        fw.learn(PROBLEM, PARKED, RULE, steps=5, tokens="nodes", initial=initial)
    record = fw.learn(PROBLEM, PARKED, fw.SGD(50.0), steps=2000, tokens="nodes", every=1000)
    assert record.data.diverged.all()
    assert np.isinf(record.data.loss[0, -1])
    assert np.isinf(record.data.consensus[0, -1])


def test_each_token_may_begin_with_a_model_and_a_node_of_its_own():
    initial = np.random.default_rng(1).standard_normal((2, 4, 3))
    start = np.arange(8).reshape(2, 4)
    record = fw.learn(PROBLEM, WALK, RULE, steps=1, walks=2, tokens=4, initial=initial, start=start, paths=8)
    assert np.array_equal(record.data.path.values[:, 0], np.arange(8))
    means = initial.mean(axis=1)
    assert float(record.data.loss[1, 0]) == pytest.approx(PROBLEM.loss(means[1]))
    row = fw.learn(PROBLEM, WALK, RULE, steps=1, tokens=4, start=[3, 1, 4, 1], paths=4)
    assert np.array_equal(row.data.path.values[:, 0], [3, 1, 4, 1])
    nodes = fw.walk(PARKED, steps=3, walks=2, tokens="nodes")
    assert np.array_equal(nodes.data["at"], np.tile(np.arange(12), (2, 1)))


def test_many_visits_are_summed():
    graph = fw.graphs.ring(2100)
    parked = fw.walk(Stay().kernel(graph), steps=10, tokens="nodes")  # 4.4 million counts by token
    assert parked.data.visits.dims == ("walk", "node")
    assert (parked.data.visits == 10).all()
    moving = fw.walk(SimpleWalk().kernel(graph), steps=10, tokens="nodes", runtime="cpu")
    assert int(moving.data.visits.sum()) == 21_000
    several = fw.walk(SimpleWalk().kernel(graph), steps=10, walks=2, tokens="nodes", runtime=fw.runtimes.CPU(threads=2))
    assert several.data.visits.dims == ("node",)
    assert int(several.data.visits.sum()) == 42_000


def test_records_of_different_tokens_side_by_side():
    runs = [fw.learn(PROBLEM, WALK, RULE, steps=40, walks=2, every=20, tokens=tokens) for tokens in (1, 4, 6)]
    side = fw.concat(runs, ["one", "four", "six"])
    assert np.array_equal(side.data.updates.sel(design="four"), [0, 80, 160])
    assert "at" not in side.data
    assert np.isnan(side.data.consensus.sel(design="one")).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 0}, "tokens = 0, expected"),
        ({"tokens": "node"}, "tokens = 'node', expected a whole number >= 1, a share .*, or \"nodes\""),
        ({"tokens": 2.5}, "tokens = 2.5"),
        ({"tokens": 1, "exchange": Meet()}, "Meet: there is one token, expected at least two"),
        ({"exchange": Meet}, "exchange = .*expected an exchange such as"),
        ({"exchange": Gossip()}, r"Gossip: tokens move by MHLJ.*expected parked ones"),
        ({"kernel": PARKED, "exchange": Gossip()}, "Gossip: 4 tokens start on .* of 12 nodes, expected one on each"),
        ({"tokens": "nodes", "start": 3}, 'start = 3, expected None; leave it out: with tokens="nodes"'),
        ({"start": [1, 2, 3]}, "start has shape"),
        ({"initial": np.zeros((1, 4, 2))}, r"expected \(3,\).*per token, \(1, 4, 3\)"),
        ({"tokens": 10**8}, "models of 1 × 100,000,000 tokens|models of 1 walks × 100,000,000 tokens"),
        ({"tokens": 2**32}, "the models of 1 walks × 4,294,967,296 tokens would take"),
        ({"exchange": Next(share=2.0), "paths": 5}, "paths"),
        ({"kernel": [fw.Phase(None, WALK, RULE)], "rule": None, "exchange": Meet()}, "each phase names its own"),
        ({"rule": fw.rules.SAG(0.01), "tokens": 4 * 10**6}, "what stays at the nodes .1 walks × 4,000,000 tokens"),
    ],
)
def test_what_does_not_fit(changes, message, monkeypatch):
    monkeypatch.setattr(checks, "memory", lambda: 1e9)
    run = {"kernel": WALK, "rule": RULE, "steps": 10, "tokens": 4} | changes
    with pytest.raises(fw.FreewalkError, match=message):
        fw.learn(PROBLEM, **run)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(12) * 0.9, "row 0 of its matrix adds up to 0.9"),
        (np.full((12, 12), 1 / 12), "is not an edge"),
        (np.eye(5), r"shape \(5, 5\), expected \(12, 12\)"),
        (np.eye(12) - 0.5 * np.roll(np.eye(12), 1, axis=1) * 0 - np.diag([0.5] * 12), "row 0"),
        (np.vstack([np.eye(12)[1], np.eye(12)[1:]]), "column 0 of the matrix adds up to 0, expected 1"),
        (-np.eye(12) + 2 * np.eye(12) * 0, "negative"),
    ],
)
def test_a_matrix_that_does_not_fit(matrix, message):
    with pytest.raises(fw.FreewalkError, match=message):
        fw.learn(PROBLEM, PARKED, RULE, steps=10, tokens="nodes", exchange=Gossip(matrix))


def test_an_exchange_where_nothing_is_learned():
    with pytest.raises(fw.FreewalkError, match=r"walk: phases\[0\].exchange = Meet\(every=1\), but nothing is learned"):
        fw.walk([fw.Phase(None, WALK, None, Meet())], steps=10, tokens=4)
    with pytest.raises(fw.FreewalkError, match="rule"):
        fw.learn(PROBLEM, [fw.Phase(None, WALK, None, Meet())], steps=10, tokens=4)


@dataclass(frozen=True)
class Wrong(fw.Exchange):
    """Whatever is given instead of weights."""

    given: str = "short"

    def weights(self, gathering):
        tokens = gathering.nodes.size
        wrong = {
            "short": np.eye(2),
            "sums": 2 * np.eye(tokens),
            "words": "all",
            "nan": np.full((tokens, tokens), np.nan),
        }
        return wrong[self.given]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("short", "shape"),
        ("sums", "weights of token 0 add up to 2, expected 1"),
        ("words", "Wrong: weights"),
        ("nan", "Wrong: weights"),
    ],
)
def test_an_exchange_of_the_users_that_gives_no_weights(given, message):
    with pytest.raises(fw.FreewalkError, match=message):
        fw.learn(PROBLEM, WALK, RULE, steps=10, tokens=4, exchange=Wrong(given))


@dataclass(frozen=True)
class Silent(fw.Exchange):
    """Averages all tokens, and does not say what that sends."""

    means: ClassVar[str] = "all"

    def weights(self, gathering):
        return np.full((gathering.nodes.size,) * 2, 1 / gathering.nodes.size)


def test_an_exchange_without_weights_says_what_it_sends():
    with pytest.raises(fw.FreewalkError, match=r"Silent: averages without weights \(means = 'all'\), expected .*sent"):
        fw.learn(PROBLEM, WALK, RULE, steps=10, tokens=4, exchange=Silent())


def test_bad_options():
    for make, message in ((lambda: Meet(every=0), "Meet: every = 0"), (lambda: Average(every=1.5), "Average: every")):
        with pytest.raises(fw.FreewalkError, match=message):
            make()


def test_own_exchanges_count_what_they_send():
    """A token sends one message to another that takes something of it, unless they stand on the same node."""
    record = fw.learn(PROBLEM, WALK, RULE, steps=30, tokens=4, exchange=Next(), paths=4, runtime="reference")
    nodes = record.data.path.values[:, :-1]  # where each update was made
    moved = fw.walk(WALK, steps=30, tokens=4).data.messages.values[0]
    sent = np.cumsum((nodes != np.roll(nodes, -1, axis=0)).sum(axis=0))
    assert np.array_equal(record.data.messages.values[0, 1:] - moved[1:], sent)


def test_gossip_after_tokens_have_moved():
    """It is refused before the run: by then nobody stands where it started."""
    phases = [fw.Phase(5, WALK, RULE), fw.Phase(None, PARKED, RULE, Gossip())]
    with pytest.raises(fw.FreewalkError, match="Gossip: an earlier phase moves the tokens, expected one parked"):
        fw.learn(PROBLEM, phases, steps=10, tokens="nodes")
    parked = [fw.Phase(5, PARKED, RULE), fw.Phase(None, PARKED, RULE, Gossip())]
    assert fw.learn(PROBLEM, parked, steps=10, tokens="nodes").data.messages[0, -1] == 5 * 24


def test_tokens_start_at_nodes_given_by_name():
    kernel = Stay().kernel(fw.graphs.from_edges([("a", "b"), ("b", "c"), ("c", "a")]))
    record = fw.walk(kernel, steps=2, walks=2, tokens=2, start=[["a", "b"], ["c", "c"]])
    assert np.array_equal(record.data["at"], [[0, 1], [2, 2]])
    assert np.array_equal(fw.walk(kernel, steps=2, tokens=2, start=["c", "b"]).data["at"], [[2, 1]])
    for start in ([["a", "b"], ["c"]], [["a", "b"], "c"], [["a", "x"], ["b", "c"]]):
        with pytest.raises(fw.FreewalkError, match=r"start|no node"):
            fw.walk(kernel, steps=2, walks=2, tokens=2, start=start)


def test_an_average_of_many_needs_no_pairs(monkeypatch):
    """Its weights would be tokens² numbers, also on the reference runtime; they say the same."""

    def refuse(self, gathering):
        raise AssertionError("asked for all pairs")

    run = {"steps": 6, "walks": 2, "tokens": 5, "exchange": Average(every=2), "runtime": "reference"}
    equal = fw.learn(PROBLEM, WALK, RULE, **run | {"exchange": Equal()})
    monkeypatch.setattr(Average, "weights", refuse)
    record = fw.learn(PROBLEM, WALK, RULE, **run)
    np.testing.assert_allclose(record.data.final, equal.data.final, rtol=1e-12)
    np.testing.assert_allclose(record.data.consensus, equal.data.consensus, atol=1e-25)


@pytest.mark.long
def test_the_mean_of_many_models_in_single_precision():
    """Summed in double precision: 0.1 in single precision, added up a million times in it, is 1 % off."""
    graph, tokens = fw.graphs.ring(3), 10**6
    problem = fw.objectives.LeastSquares(np.ones((3, 2)), np.ones(3))
    run = {"steps": 1, "tokens": tokens, "start": 0, "initial": [0.1, 0.3], "precision": "float32"}
    record = fw.learn(problem, Stay().kernel(graph), fw.SGD(1e-30), **run)
    np.testing.assert_allclose(record.data.final[0], [0.1, 0.3], rtol=1e-6)

"""Several tokens and their exchanges: every runtime does what `reference` does, whatever the split of the work."""

import os

import numpy as np
import pytest
from catalogue import (
    COMPILED,
    EXCHANGES,
    GRAPHS,
    PROBLEMS,
    RULES,
    TOKEN_LESSONS,
    WALK,
    advance,
    assert_close,
    assert_identical,
)

import freewalk as fw
from freewalk.exchanges import Average
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.runtimes import CPU, CUDA, Job, Reference, State

ON_CARD = os.environ.get("FREEWALK_TEST_RUNTIME", "CPU") == "CUDA"
GRAPH = GRAPHS["random"]
PROBLEM = PROBLEMS["LeastSquares"]
STEPS, MARKS = 60, [1, 6, 7, 30, 59, 60]


ON_CARDS = [name for name in EXCHANGES if name.startswith(("apart", "Average"))]


def job_of(setting, rule, precision="float64"):
    kernel, tokens, exchange = EXCHANGES[setting]
    phases = arguments.phases(kernel, RULES[rule], PROBLEM, exchange=exchange)
    return Job(PROBLEM, phases, 3, precision, tokens)


def learned(engine, walks, stops=(), steps=STEPS):
    job = engine.job
    rows = walks * job.tokens
    models = np.zeros((rows, job.dim), dtype=job.precision)
    nodes = (np.arange(rows) % job.tokens * 3 % job.kernel.graph.n).astype(np.int32)
    if job.tokens == GRAPH.n:
        nodes = np.tile(np.arange(GRAPH.n, dtype=np.int32), walks)
    state = State.begin(job, nodes, models, steps, np.arange(rows))
    return state, advance(engine, state, [*stops, steps], [mark for mark in MARKS if mark <= steps])


LESSONS = [one for one in TOKEN_LESSONS if not ON_CARD or one[0] in ON_CARDS]


# Each rule costs a compilation of some seconds; those named here do not wait.
@pytest.mark.quick(*(" by ".join(one) for one in LESSONS if one[1] in ("SGD", "Momentum", "GradientTracking")))
@pytest.mark.parametrize("lesson", LESSONS, ids=" by ".join)
def test_every_exchange(lesson):
    job = job_of(*lesson)
    expected = learned(Reference().engine(job), 2)
    assert np.isfinite(expected[0].models).all()
    engines = [runtime.engine(job) for runtime in COMPILED]
    for engine in engines:
        assert_close(learned(engine, 2), expected)
    whole = learned(engines[0], 9)
    assert_identical(learned(engines[0], 9, [5, 6, 29, 31]), whole)
    assert_identical(learned(engines[0], 1, [33]), whole)
    assert_identical(learned(engines[1], 9, [1, 8]), whole)


@pytest.mark.skipif(not ON_CARD, reason="walks are split between parts of a card only")
@pytest.mark.parametrize("setting", ["apart", "Average", "Average, parked"])
def test_parts_of_a_card(setting):
    job = job_of(setting, "Momentum")
    whole = learned(COMPILED[0].engine(job), 9)
    assert_identical(learned(CUDA(walks_at_once=2).engine(job), 9, [7, 20]), whole)


@pytest.mark.long
def test_what_models_of_one_coordinate_carry_is_mixed():
    graph = fw.graphs.ring(6)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=1, seed=1)
    run = {"steps": 12, "every": 4, "walks": 2, "tokens": 3, "exchange": Average(every=3)}
    expected, result = (
        fw.learn(problem, fw.designs.SimpleWalk().kernel(graph), RULES["Momentum"], runtime=runtime, **run)
        for runtime in (Reference(), COMPILED[0])
    )
    for name in ("loss", "consensus", "messages", "final"):
        np.testing.assert_allclose(result.data[name], expected.data[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("setting", ON_CARDS if ON_CARD else ["Meet", "Average", "Gossip"])
def test_single_precision(setting):
    job = job_of(setting, "SGD", "float32")
    expected = learned(Reference().engine(job), 2)
    assert_close(learned(COMPILED[0].engine(job), 2), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.skipif(ON_CARD, reason="a card refuses it")
def test_means_computed_in_python(monkeypatch):
    """An objective that measures in Python stops at each mark, and exchanges go on between."""

    class Measured(fw.objectives.LeastSquares):
        measures = ("loss", "mse", "worst")

        def measure(self, x):
            return {**super().measure(x), "worst": float(np.abs(self.features @ x - self.targets).max())}

    problem = Measured(PROBLEM.features, PROBLEM.targets, PROBLEM.nodes)
    kernel, tokens, exchange = EXCHANGES["Meet"]
    phases = arguments.phases(kernel, RULES["SGD"], problem, exchange=exchange)
    job = Job(problem, phases, 3, "float64", tokens)
    expected, result = learned(Reference().engine(job), 2), learned(CPU(1).engine(job), 2)
    assert "worst" in expected[1]
    assert_close(result, expected)


def test_a_token_takes_the_path_of_the_walk_with_its_number():
    alone = fw.walk(WALK, steps=50, walks=8, paths=8, runtime=COMPILED[0])
    together = fw.walk(WALK, steps=50, walks=2, tokens=4, paths=8, runtime=COMPILED[0])
    assert np.array_equal(alone.data.path, together.data.path)
    assert np.array_equal(together.data.messages, alone.data.messages.values.reshape(2, 4, -1).sum(axis=1))
    assert np.array_equal(together.data.visits, alone.data.visits.values.reshape(2, 4, -1).sum(axis=1))
    assert together.data["at"].dims == ("walk", "token")


def test_one_token_is_a_walk():
    rule = RULES["SGD"]
    plain = fw.learn(PROBLEM, WALK, rule, steps=50, walks=3, runtime=COMPILED[0])
    tokens = fw.learn(PROBLEM, WALK, rule, steps=50, walks=3, tokens=1, runtime=COMPILED[0])
    assert plain.data.identical(tokens.data)


def test_phases_have_exchanges_of_their_own():
    phases = [
        Phase(20, WALK, RULES["SGD"], Average()),
        Phase(40, WALK, RULES["Momentum"]),
        Phase(None, WALK, RULES["SGD"]),
    ]
    records = [
        fw.learn(PROBLEM, phases, steps=STEPS, walks=3, tokens=5, start=0, runtime=runtime)
        for runtime in (Reference(), COMPILED[0])
    ]
    for name in ("messages", "bytes", "loss", "consensus", "visits"):
        np.testing.assert_allclose(records[1].data[name], records[0].data[name], rtol=1e-9, atol=1e-12, err_msg=name)
    data = records[0].data
    moved = fw.walk(WALK, steps=STEPS, walks=3, tokens=5, start=0).data.messages
    assert np.array_equal(
        data.messages - moved, 2 * 5 * np.minimum(np.arange(STEPS + 1), 20) * np.ones((3, 1), dtype=int)
    )
    assert (data.consensus[:, 20] < 1e-25).all()
    assert (data.consensus[:, 30] > 1e-6).all()

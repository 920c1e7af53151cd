"""What runs on Ray has the bytes of what runs on one machine: designs, rules and exchanges, in any number of tasks."""

from functools import partial

import numpy as np
import pytest
from catalogue import (
    DESIGNS,
    EXCHANGES,
    GRAPHS,
    LESSONS,
    PROBLEMS,
    RULES,
    RUNTIMES,
    TOKEN_LESSONS,
    kernel_of,
    phases_of,
)
from processes import killing

import freewalk as fw
from freewalk.designs import MHLJ

pytest.importorskip("ray")
SEVERAL = [RUNTIMES["Ray"][1]]
#: Each rule with least squares, each objective by SGD; other pairs, and other numbers of tasks, are further below.
SINGLE = [one for one in LESSONS if one[0] == "LeastSquares" or one[1] == "SGD"]
#: What travels, what stays at nodes, nodes without data, what a user wrote.
QUICK = [
    *(("LeastSquares", rule) for rule in ("SGD", "SGD, average", "SAG")),
    *((problem, "SGD") for problem in ("LeastSquares, pooled, relays", "LogCosh (a user's), uneven")),
]
ADMITTED = [one for one in TOKEN_LESSONS if one != ("Gossip", "SAG")]  # parked tokens do not see every node
EXCHANGED = [one for one in TOKEN_LESSONS if one[1] == "SGD"]
KILLED = [
    *(("design", design) for design in DESIGNS if design != "Stay"),
    *(("rule", rule) for rule in RULES),
    *(("exchange", setting) for setting in EXCHANGES),
]


def check(run, runtimes):
    expected = run(fw.runtimes.CPU(threads=2))
    for runtime in runtimes:
        assert run(runtime).data.identical(expected.data), runtime
    return expected


def walk(design, graph, runtimes):
    def run(runtime):
        return fw.walk(
            kernel_of(design, graph), steps=120, walks=20, every=7, paths=[0, 3, 19], seed=5, runtime=runtime
        )

    assert check(run, runtimes).data.messages.shape == (20, 19)


def learn(problem, rule, runtimes, precision="float64"):
    objective = PROBLEMS[problem]
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPHS["random"], objective.smoothness)
    options = {"steps": 90, "walks": 19, "every": 11, "start": 0, "seed": 3, "paths": 2, "precision": precision}
    check(lambda runtime: fw.learn(objective, kernel, RULES[rule], runtime=runtime, **options), runtimes)


def learn_with_tokens(setting, rule, runtimes):
    kernel, tokens, exchange = EXCHANGES[setting]
    tokens = "nodes" if tokens == GRAPHS["random"].n else tokens
    options = {"steps": 60, "walks": 9, "every": 7, "tokens": tokens, "exchange": exchange, "seed": 2, "paths": 3}
    problem = PROBLEMS["LeastSquares"]
    check(lambda runtime: fw.learn(problem, kernel, RULES[rule], runtime=runtime, **options), runtimes)


@pytest.mark.quick("SimpleWalk", "Metropolis, importance", "MHLJ", "Decaying", "Lazy (a user's)")
@pytest.mark.parametrize("design", DESIGNS)
def test_every_design(design):
    walk(design, "random", SEVERAL)


@pytest.mark.quick(*map(" by ".join, QUICK))
@pytest.mark.parametrize("lesson", SINGLE, ids=" by ".join)
def test_every_rule(lesson):
    learn(*lesson, SEVERAL)


@pytest.mark.quick("apart by SGD", "Meet by SGD", "Gossip by SGD", "Pair (a user's) by SGD")
@pytest.mark.parametrize("lesson", EXCHANGED, ids=" by ".join)
def test_every_exchange(lesson):
    learn_with_tokens(*lesson, SEVERAL)


@pytest.mark.long
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_and_number_of_tasks(design, graph):
    walk(design, graph, RUNTIMES["Ray"])


@pytest.mark.long
@pytest.mark.parametrize("lesson", LESSONS, ids=" by ".join)
def test_every_rule_and_number_of_tasks(lesson):
    learn(*lesson, RUNTIMES["Ray"])


@pytest.mark.long
@pytest.mark.parametrize("lesson", ADMITTED, ids=" by ".join)
def test_every_exchange_and_number_of_tasks(lesson):
    learn_with_tokens(*lesson, RUNTIMES["Ray"])


@pytest.mark.long
@pytest.mark.parametrize("rule", ["SGD", "SAG"])
def test_single_precision(rule):
    learn("LeastSquares", rule, SEVERAL, "float32")


def test_phases():
    problem, phases = PROBLEMS["LeastSquares"], phases_of(["MHLJ", "Metropolis, target", "Decaying"])
    options = {"steps": 40, "walks": 7, "seed": 1}
    check(lambda runtime: fw.learn(problem, phases, runtime=runtime, **options), RUNTIMES["Ray"])


def test_visits_that_are_summed():
    graph = fw.graphs.ring(300_000)
    kernel = fw.designs.SimpleWalk().kernel(graph)
    record = check(lambda runtime: fw.walk(kernel, steps=50, walks=20, every=25, runtime=runtime), RUNTIMES["Ray"])
    assert record.data.visits.dims == ("node",)
    assert int(record.data.visits.sum()) == 50 * 20


def test_python_on_the_workers():
    """A loss without a slope, on `reference`: what suits an objective also suits it on a cluster."""
    from catalogue import SLOPELESS

    kernel = kernel_of("MHLJ", "random")
    runs = [
        fw.learn(SLOPELESS, kernel, fw.SGD(0.1), steps=30, walks=5, every=10, runtime=runtime)
        for runtime in (None, "ray", fw.runtimes.Ray(inner="reference", tasks=3))
    ]
    assert runs[1].data.identical(runs[0].data)
    assert runs[2].data.identical(runs[0].data)
    assert np.isfinite(runs[0].data.loss).all()


@pytest.mark.long
@pytest.mark.parametrize("setting", KILLED, ids=str)
def test_workers_killed_in_the_middle(setting):
    """Everything once more, for long enough that a worker dies at its work."""
    kind, *names = setting
    steps = {"design": 1_000_000, "rule": 400_000, "exchange": 20_000}[kind]
    steps = 3000 if "a user's" in names[0] and kind == "exchange" else steps  # in Python
    options = {"steps": steps, "walks": 12, "every": steps // 4, "seed": 5}
    if kind == "design":
        runs = partial(fw.walk, kernel_of(*names, "random"), **options)
    elif kind == "rule":
        objective = PROBLEMS["LeastSquares"]
        kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPHS["random"], objective.smoothness)
        runs = partial(fw.learn, objective, kernel, RULES[names[0]], **options)
    else:
        kernel, tokens, exchange = EXCHANGES[names[0]]
        options |= {"tokens": "nodes" if tokens == GRAPHS["random"].n else tokens, "exchange": exchange}
        runs = partial(fw.learn, PROBLEMS["LeastSquares"], kernel, RULES["SGD"], **options)
    with killing(1, pause=0.01) as killed:
        record = runs(runtime=RUNTIMES["Ray"][1])
    assert killed
    assert record.data.identical(runs(runtime="cpu").data)

"""A state in parts: advancing them one by one and joining them is advancing the whole, to the bit."""

from copy import deepcopy
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import freewalk as fw
from freewalk.jobs import arguments
from freewalk.jobs import job as states
from freewalk.jobs.phase import Phase
from freewalk.rules import SAG, SGD, AdaGrad, Momentum, VisitWeighted, Walkman
from freewalk.runtimes import CPU, Job, Reference, State

GRAPH = fw.graphs.watts_strogatz(10, 4, 0.3, seed=2)
PROBLEM = fw.objectives.LeastSquares.synthetic(10, dim=3, samples=[1, 3] * 5, heavy=1, heavy_variance=5.0, seed=1)
KERNEL = fw.designs.MHLJ(0.4, 0.5, 3, corrected=True).kernel(GRAPH, PROBLEM.smoothness)
RULES = {
    "SGD, sampled": SGD(step=0.01, sampled=True),
    "SGD, half": SGD(step=0.01, average="half"),
    "Momentum": Momentum(step=0.003),
    "AdaGrad, at the nodes": AdaGrad(step=0.1, keeper="node"),
    "SAG": SAG(step=0.02),
    "Walkman": Walkman(),
    "VisitWeighted": VisitWeighted(step=0.003),
}
PHASES = {name: [Phase(None, KERNEL, rule)] for name, rule in RULES.items()}
PHASES["SAG, then others"] = [
    Phase(4, KERNEL, RULES["SAG"]),
    Phase(9, KERNEL, RULES["VisitWeighted"]),
    Phase(None, KERNEL, RULES["SGD, half"]),
]
RUNTIMES = {"reference": Reference(), "cpu": CPU(threads=1), "cpu, two threads": CPU(threads=2)}
MIDDLE, STEPS = 6, 15


def job_of(name):
    return Job(PROBLEM, arguments.phases(PHASES[name], None, PROBLEM), seed=4)


def begin(job, walks, kept):
    """The first state; the walks in `kept` keep their paths, in this order."""
    path_of = np.full(walks, -1, dtype=np.int64)
    path_of[kept] = np.arange(len(kept))
    nodes = (np.arange(walks) * 3 % GRAPH.n).astype(np.int32)
    models = np.random.default_rng(walks).standard_normal((walks, 3))
    return State.begin(job, nodes, models, STEPS, path_of)


def in_parts(engine, state, edges, until, marks):
    """Advance a state part by part, and join them; the measures of all walks."""
    parts = [state.part(first, last) for first, last in pairwise(edges)]
    found = []
    for part in parts:
        found.append(engine.advance(part, until, marks))
        engine.settle(part)
    state.join(parts)
    return {name: np.concatenate([measures[name] for measures in found]) for name in found[0]}


def assert_same_state(one, two):
    for field in fields(State):
        left, right = getattr(one, field.name), getattr(two, field.name)
        if isinstance(left, np.ndarray):
            assert left.shape == right.shape, field.name
            assert left.dtype == right.dtype, field.name
            assert left.tobytes() == right.tobytes(), field.name
        else:
            assert left == right, field.name


@pytest.mark.parametrize("runtime", RUNTIMES)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_parts_are_the_whole(runtime, data):
    name = data.draw(st.sampled_from(list(PHASES)), label="rules")
    walks = data.draw(st.integers(2, 20 if runtime != "reference" else 6), label="walks")
    kept = data.draw(st.lists(st.integers(0, walks - 1), unique=True), label="paths")
    edges = [0, *sorted(data.draw(st.sets(st.integers(1, walks - 1)), label="splits")), walks]
    again = [0, *sorted(data.draw(st.sets(st.integers(1, walks - 1)), label="later splits")), walks]
    summed = data.draw(st.booleans(), label="summed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "_VISITS_BY_WALK", 0 if summed else 10**6)
        job = job_of(name)
        whole, parted = begin(job, walks, kept), begin(job, walks, kept)
    assert whole.visits_are_summed == summed
    engine, marks = RUNTIMES[runtime].engine(job), np.array([1, 4, 5, 10, STEPS])
    expected = engine.advance(whole, STEPS, marks)
    engine.settle(whole)
    first = in_parts(engine, parted, edges, MIDDLE, marks[marks <= MIDDLE])
    second = in_parts(engine, parted, again, STEPS, marks[marks > MIDDLE])
    assert_same_state(parted, whole)
    assert set(first) == set(second) == set(expected) == set(job.measured)
    for measure, values in expected.items():
        assert np.array_equal(np.concatenate([first[measure], second[measure]], axis=1), values), measure


@pytest.mark.parametrize("name", PHASES)
def test_a_part_knows_the_numbers_of_its_walks(name):
    """Its draws are those of its walks, and so they are in a part of a part."""
    job = job_of(name)
    state = begin(job, 9, [8, 1, 4])
    inner = state.part(3, 9).part(2, 5)
    assert (state.first, state.part(3, 9).first, inner.first) == (0, 3, 5)
    assert inner.path_of.tolist() == [-1, -1, -1]
    engine = CPU(threads=1).engine(job)
    none = np.zeros(0, dtype=np.int64)
    inner = deepcopy(inner)
    engine.advance(inner, STEPS, none)
    engine.advance(state, STEPS, none)
    assert np.array_equal(inner.nodes, state.nodes[5:8])
    assert np.array_equal(inner.models, state.models[5:8])
    assert np.array_equal(inner.messages, state.messages[5:8])
    misnumbered = deepcopy(begin(job, 9, []).part(5, 8))
    misnumbered.first = 0
    engine.advance(misnumbered, STEPS, none)
    assert not np.array_equal(misnumbered.messages, state.messages[5:8])


def test_paths_of_a_part_are_its_own_rows():
    state = begin(job_of("SAG"), 6, [5, 0, 3])
    part = state.part(2, 6)
    assert part.path_of.tolist() == [-1, 0, -1, 1]
    assert part.paths[:, 0].tolist() == [int(state.nodes[3]), int(state.nodes[5])]
    part.paths[:] = [[7], [8]]
    state.join([state.part(0, 2), part])
    assert state.paths[0].tolist() == [8] * (STEPS + 1)  # walk 5
    assert state.paths[2].tolist() == [7] * (STEPS + 1)  # walk 3
    assert state.paths[1, 0] == state.nodes[0]


def test_a_state_begins_with_what_the_rule_asks_for():
    walkman = begin(job_of("Walkman"), 4, [])
    assert walkman.stored.shape == (4, 10, 2, 3)
    assert np.array_equal(walkman.stored[:, 7, 0], walkman.models)
    assert not walkman.stored[:, :, 1].any()
    counting = begin(job_of("VisitWeighted"), 4, [])
    assert counting.seen.shape == (4, 10)
    assert begin(job_of("SGD, half"), 4, []).carried.shape == (2, 4, 3)

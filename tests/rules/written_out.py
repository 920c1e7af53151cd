"""A problem on which rules are written out in NumPy along the path that was walked, and compared with what runs."""

import numpy as np
import pytest

import freewalk as fw
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.objectives import LeastSquares
from freewalk.runtimes import Job, State, runtime_named

GRAPH = fw.graphs.watts_strogatz(8, 4, 0.3, seed=1)
PROBLEM = LeastSquares.synthetic(
    8, dim=3, samples=[3, 1, 2, 5, 1, 4, 1, 2], noise=0.5, heavy=1, heavy_variance=6.0, seed=3
)
KERNEL = fw.designs.MHLJ(0.4, 0.5, 2).kernel(GRAPH, PROBLEM.smoothness)
START = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
STEPS = 40
EXACT = {"reference": 1e-12, "cpu": 1e-9}

RUNTIMES = pytest.mark.parametrize("runtime", EXACT)


def compare(rule, runtime, replay, problem=PROBLEM, kernel=KERNEL):
    """Run a rule, and compare all that there is with what `replay` makes of the same paths.

    `replay(path, x)` returns the models that are reported, the first one included, and by name the last of every
    vector: those that are stored by node.
    """
    (phase,) = arguments.phases([Phase(None, kernel, rule)], None, problem)
    job = Job(problem, (phase,), seed=9)
    nodes = np.array([PROBLEM.heavy[0], 5], dtype=np.int32)
    state = State.begin(job, nodes, START.copy(), STEPS, np.arange(2))
    engine = runtime_named(runtime).engine(job)
    measures = engine.advance(state, STEPS, np.arange(1, STEPS + 1))
    engine.settle(state)
    assert PROBLEM.heavy[0] in state.paths[1, :-1]
    for walk in range(2):
        trail, vectors = replay(state.paths[walk, :-1], START[walk].copy())
        names = {"x": state.models[walk]}
        names |= {name: state.carried[index, walk] for index, name in enumerate(phase.rule.carries)}
        names |= {name: state.stored[walk, :, index] for index, name in enumerate(phase.rule.stores)}
        assert set(names) == set(vectors)
        for name, values in vectors.items():
            same(names[name], values, runtime, name)
        assert len(trail) == STEPS + 1
        same(state.reported(phase.rule)[walk], trail[-1], runtime, "reported")
        same(measures["loss"][walk], [problem.loss(x) for x in trail[1:]], runtime, "loss")
        distances = [np.sum((x - problem.optimum()) ** 2) for x in trail[1:]]
        same(measures["distance"][walk], distances, runtime, "distance")


def same(found, expected, runtime, name):
    np.testing.assert_allclose(found, expected, rtol=EXACT[runtime], atol=EXACT[runtime], err_msg=name)

"""Every runtime visits the nodes that `reference` visits, and counts the same messages, probes and visits."""

from functools import cache

import numpy as np
import pytest
from catalogue import COMPILED, COUNTS, DESIGNS, GRAPHS, advance, begin, job_of, kernel_of, phases_of

import freewalk as fw
from freewalk.jobs.phase import Phase
from freewalk.runtimes import CPU, Reference

WALKS, STEPS = 40, 20
MARKS = [3, 10, 11, STEPS]
NAMES = [(design, graph) for design in DESIGNS for graph in GRAPHS]
ON_EVERY_GRAPH = pytest.mark.parametrize(("design", "graph"), NAMES, ids=[" on ".join(names) for names in NAMES])


def walked(engine, walks=WALKS, steps=STEPS, stops=(), marks=MARKS):
    """The state after some steps, and the counts at the marks."""
    state = begin(engine.job, walks, steps)
    return state, advance(engine, state, [*stops, steps], marks)


@cache
def truth(design, graph):
    return walked(Reference().engine(job_of(None, kernel_of(design, graph))))


def assert_same(result, expected):
    """The walks of a result are the first of those expected."""
    (state, measures), (true_state, true_measures) = result, expected
    for name in COUNTS:
        assert np.array_equal(getattr(state, name), getattr(true_state, name)[: state.walks]), name
    for name in ("messages", "probes"):
        assert np.array_equal(measures[name], true_measures[name][: state.walks]), name


@pytest.mark.parametrize("runtime", COMPILED, ids=repr)
@ON_EVERY_GRAPH
def test_every_design_on_every_runtime(design, graph, runtime):
    """For 1, 17 and 40 walks, whole and split: walk number w is the same whatever the number of walks."""
    engine = runtime.engine(job_of(None, kernel_of(design, graph)))
    for walks, stops in ((1, [8]), (17, [1, 2, 13]), (WALKS, [])):
        assert_same(walked(engine, walks, stops=stops), truth(design, graph))


@ON_EVERY_GRAPH
def test_what_reference_itself_must_do(design, graph):
    """Paths are possible under the matrix, and counters follow from them where they can."""
    (state, counts), kernel = truth(design, graph), kernel_of(design, graph)
    path = state.paths
    matrices = [kernel.without_memory().matrix(step).toarray() for step in range(STEPS if kernel.fade else 1)]
    for step in range(STEPS):
        possible = matrices[step if kernel.fade else 0][path[:, step], path[:, step + 1]] > 0
        if design.startswith("HistoryDriven"):  # it may refuse what its design accepts
            possible |= path[:, step] == path[:, step + 1]
        assert possible.all()
    assert np.array_equal(state.nodes, path[:, -1])
    assert np.array_equal(state.visits, [np.bincount(walk[:-1], minlength=kernel.graph.n) for walk in path])
    for name in ("messages", "probes"):
        assert np.array_equal(counts[name][:, -1], getattr(state, name))
        assert (np.diff(counts[name], axis=1) >= 0).all()
    moved = (path[:, 1:] != path[:, :-1]).sum(axis=1)
    assert (state.messages >= moved).all()
    if all(move.hops <= 1 for move in kernel.moves):
        assert np.array_equal(state.messages, moved)
    corrected = any(move.hops > 1 and move.ratio is not None for move in kernel.moves)
    assert (state.probes > 0).any() == (corrected or design.endswith("at nodes"))


def test_reference_walks_do_not_depend_on_each_other_or_on_splits():
    for design in ("MHLJ", "MHLJ, corrected", "Decaying"):
        engine = Reference().engine(job_of(None, kernel_of(design, "random")))
        assert_same(walked(engine, 3, stops=[1, 2, 17]), truth(design, "random"))


def test_walks_differ_from_each_other_and_between_seeds():
    kernel = kernel_of("MHLJ", "random")
    runs = [fw.walk(kernel, steps=STEPS, walks=WALKS, start=0, seed=seed, paths=WALKS) for seed in (1, 2)]
    first, second = (run.data.path.values for run in runs)
    assert len(np.unique(first, axis=0)) == WALKS
    assert not (first == second).all(axis=1).any()


def test_a_uniform_start_is_drawn_for_each_walk_alone():
    kernel = kernel_of("SimpleWalk", "ring")
    many = fw.walk(kernel, steps=1, walks=1000, paths=1000).data.path.values[:, 0]
    few = fw.walk(kernel, steps=1, walks=10, paths=10, runtime="reference").data.path.values[:, 0]
    assert np.array_equal(many[:10], few)
    assert np.bincount(many, minlength=10).min() > 50


@pytest.mark.parametrize("runtime", COMPILED, ids=repr)
@pytest.mark.parametrize(
    "names", [("MHLJ, corrected", "Decaying", "SimpleWalk"), ("Decaying", "FromMatrix", "Decaying")]
)
def test_phases(names, runtime):
    job = job_of(None, [Phase(phase.until, phase.kernel) for phase in phases_of(names)])
    assert_same(walked(runtime.engine(job), stops=[3, 12]), walked(Reference().engine(job)))


def test_a_switch_goes_on_where_the_first_phase_ended():
    """Before it the path is that of the first kernel alone, after it that of the second at the same steps."""
    first, second = kernel_of("Metropolis, importance", "random"), kernel_of("Decaying", "random")
    switched, _ = walked(CPU(1).engine(job_of(None, [Phase(10, first), Phase(None, second)])))
    alone, _ = walked(CPU(1).engine(job_of(None, first)))
    assert np.array_equal(switched.paths[:, :11], alone.paths[:, :11])
    engine = Reference().engine(job_of(None, second))
    state = begin(engine.job, WALKS, STEPS)
    state.step, state.nodes = 10, switched.paths[:, 10].copy()
    advance(engine, state, [STEPS], MARKS)
    assert np.array_equal(state.paths[:, 11:], switched.paths[:, 11:])


@pytest.mark.parametrize("design", DESIGNS)
def test_no_split_changes_a_walk(design):
    """Long enough for several blocks of words, with stops and marks inside and at the edges of blocks."""
    steps, marks = 300, [1, 2, 64, 127, 128, 129, 200, 256, 300]
    job = job_of(None, kernel_of(design, "random"))
    one, two = CPU(1).engine(job), CPU(2).engine(job)
    expected = walked(one, 17, steps, marks=marks)
    for engine, stops in ((one, [1, 2, 64, 65, 127, 129, 255, 257]), (two, [7, 130, 131, 299])):
        assert_same(walked(engine, 17, steps, stops, marks), expected)


@pytest.mark.parametrize("widest", [16, 48])
def test_walking_in_slabs_of_any_size(monkeypatch, widest):
    """The compiled runtime walks in slabs of walks × steps; their size is nobody's business."""
    job = job_of(None, kernel_of("MHLJ, corrected", "random"))
    engines = [runtime.engine(job) for runtime in COMPILED]
    expected = walked(engines[0], 100, 150)
    monkeypatch.setattr("freewalk.runtimes.engine._STRETCH", 333)
    monkeypatch.setattr("freewalk.runtimes.engine._WIDEST", widest)
    for engine in engines:
        assert_same(walked(engine, 100, 150), expected)


@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_visits_may_be_summed_over_the_walks(monkeypatch, runtime):
    kernel = kernel_of("MHLJ", "random")
    by_walk = fw.walk(kernel, steps=STEPS, walks=WALKS, runtime=runtime).data.visits
    assert by_walk.dims == ("walk", "node")
    assert (by_walk.sum("node") == STEPS).all()
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 0)
    summed = fw.walk(kernel, steps=STEPS, walks=WALKS, runtime=runtime).data.visits
    assert summed.dims == ("node",)
    assert np.array_equal(summed, by_walk.sum("walk"))


@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_chosen_paths_are_those_of_their_walks(runtime):
    def paths(chosen):
        return fw.walk(kernel_of("MHLJ", "random"), steps=9, walks=WALKS, runtime=runtime, paths=chosen, start=0).data

    everything = paths(WALKS).path.values
    for chosen in ([2, 0, 1], [39, 5, 17, 6], 3):
        data = paths(chosen)
        assert np.array_equal(data.path, everything[data.kept.values])
        assert sorted(data.kept.values) == sorted(range(3) if chosen == 3 else chosen)
    assert "path" not in paths([])

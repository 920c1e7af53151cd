"""Tokens that remember: the same on every runtime and in any phases; what they remember is part of a run."""

import signal

import numpy as np
import pytest
from catalogue import COMPILED, GRAPHS, advance, begin, importance_of, job_of

import freewalk as fw
from freewalk.designs import HistoryDriven, Metropolis, NonBacktracking, SelfRepellent, SimpleWalk
from freewalk.errors import FreewalkError, KernelError
from freewalk.runtimes import Reference

GRAPH = GRAPHS["random"]
PROBLEM = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=3, heavy=2, seed=1)
DESIGNS = {
    "no step back": NonBacktracking(Metropolis(power=0.5), forget=0.1),
    "self-repellent": SelfRepellent(Metropolis(power=0.6), alpha=30),
    "at nodes": SelfRepellent(SimpleWalk(), alpha=2.5, fading=1.0, memory_at="nodes"),
    "history-driven": HistoryDriven(Metropolis(power=0.5), alpha=7),
}
RUN = {"steps": 90, "walks": 5, "every": 10, "start": 0, "seed": 3, "paths": 5}
every_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


def kernel_of(design):
    return design.kernel(GRAPH, importance_of(GRAPH))


def same(one, other):
    for name in ("path", "messages", "probes", "bytes", "visits"):
        assert np.array_equal(one.data[name], other.data[name]), name
    np.testing.assert_allclose(one.data.loss, other.data.loss, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("runtime", COMPILED, ids=repr)
def test_phases_keep_counters_and_forget_the_last_node(runtime):
    """Counters are relative to the target of a phase; several tokens have counters of their own."""
    kernels = [kernel_of(design) for design in (*DESIGNS.values(), SimpleWalk(), DESIGNS["self-repellent"])]
    untils = [20, 31, 40, 60, 70, None]
    phases = [fw.Phase(until, kernel, fw.SGD(step=0.01)) for until, kernel in zip(untils, kernels, strict=True)]
    for tokens in (1, 3):
        runs = [fw.learn(PROBLEM, phases, tokens=tokens, runtime=one, **RUN) for one in (runtime, Reference())]
        same(*runs)


@pytest.mark.parametrize("between", [None, SimpleWalk()])
def test_counters_follow_their_recursion(between):
    """x ← x + γ (δ − x), also where the fading changes, or visits go uncounted for a while."""
    first, second = SelfRepellent(SimpleWalk(), alpha=2, fading=0.6), HistoryDriven(SimpleWalk(), alpha=2, fading=0.9)
    untils = {first: 30, **({between: 50} if between else {}), second: None}
    phases = [fw.Phase(until, kernel_of(design)) for design, until in untils.items()]
    engine = Reference().engine(job_of(None, phases))
    state = begin(engine.job, 3, 80)
    advance(engine, state, [17, 80], [])
    for path, counters in zip(state.paths, np.abs(state.counters), strict=True):
        shares = np.asarray(phases[0].kernel.target).copy()
        for step, node in enumerate(path[:-1]):
            if between is None or not 30 <= step < 50:
                rate = (1 + step / GRAPH.n) ** -(0.6 if step < 30 else 0.9) / GRAPH.n
                shares += rate * (np.eye(GRAPH.n)[node] - shares)
        np.testing.assert_allclose(counters / counters.sum(), shares, rtol=1e-12)


def test_the_first_step_of_a_phase_does_not_remember():
    """On a ring a walk that never steps back turns only where it forgets."""
    kernel = NonBacktracking(SimpleWalk()).kernel(fw.graphs.ring(50))
    phases = [fw.Phase(10, kernel), fw.Phase(20, kernel), fw.Phase(None, kernel)]
    path = fw.walk(phases, steps=30, walks=200, paths=200, start=0).data.path.values
    steps = (np.diff(path, axis=1) + 1) % 50 - 1
    turns = steps[:, 1:] != steps[:, :-1]
    assert not np.delete(turns, [9, 19], axis=1).any()
    assert 60 < turns[:, 9].sum() < 140  # half of them; a fair coin does so but for 1 in 10⁸
    assert 60 < turns[:, 19].sum() < 140


@every_design
@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_a_run_that_is_interrupted_goes_on_as_if_it_had_not_been(tmp_path, design, runtime, short_chunks):
    pressed = []

    def press(step, steps):
        if step >= 40 and not pressed:
            pressed.append(step)
            signal.raise_signal(signal.SIGINT)

    given = {**RUN, "runtime": runtime}
    whole = fw.learn(PROBLEM, kernel_of(design), fw.SGD(step=0.01), **given)
    part = fw.learn(PROBLEM, kernel_of(design), fw.SGD(step=0.01), progress=press, **given)
    assert part.data.attrs["partial"] == 1
    part.save(tmp_path / "part.npz")
    same(fw.resume(fw.load(tmp_path / "part.npz")), whole)


@pytest.mark.parametrize("name", ["self-repellent", "at nodes", "history-driven"])
def test_a_new_epoch_changes_nothing(monkeypatch, name):
    """Counters are divided by powers of two, which loses nothing."""
    expected = fw.learn(PROBLEM, kernel_of(DESIGNS[name]), fw.SGD(step=0.01), **RUN)
    monkeypatch.setattr("freewalk.designs.memory.EPOCH", 1)
    monkeypatch.setattr("freewalk.jobs.job.EPOCH", 1)
    for runtime in (*COMPILED, Reference()):
        same(fw.learn(PROBLEM, kernel_of(DESIGNS[name]), fw.SGD(step=0.01), runtime=runtime, **RUN), expected)


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_what_a_memory_costs_is_counted(runtime):
    """Counters that travel add 12 bytes for each node that was visited; those at nodes cost two probes each."""
    carried, asked = (
        fw.learn(PROBLEM, kernel_of(DESIGNS[name]), fw.SGD(step=0.01), **{**RUN, "every": 90}, runtime=runtime).data
        for name in ("self-repellent", "at nodes")
    )
    sent = 0
    path = carried.path.values[0]
    for step in range(90):
        if path[step + 1] != path[step]:
            sent += 12 * len(set(path[: step + 1]))
    assert carried.bytes.values[0, -1] == 24 * carried.messages.values[0, -1] + sent
    assert not carried.probes.any()
    expected = 2 * GRAPH.degrees[asked.path.values[:, :-1]].sum(axis=1)
    assert np.array_equal(asked.probes.values[:, -1], expected)
    assert np.array_equal(asked.bytes.values[:, -1], 24 * asked.messages.values[:, -1] + 64 * expected)


def test_counters_that_do_not_fit_are_refused():
    graph = fw.graphs.ring(2_000_000)
    kernel = SelfRepellent(SimpleWalk(), alpha=1).kernel(graph)
    with pytest.raises(FreewalkError, match=r"the visit counts of 500,000 walks on 2,000,000 nodes would take .* TB"):
        fw.walk(kernel, steps=10, walks=500_000)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SelfRepellent(SimpleWalk(), alpha=-1), r"SelfRepellent: alpha = -1, expected a finite number >= 0"),
        (lambda: SelfRepellent(SimpleWalk(), alpha=np.nan), r"SelfRepellent: alpha = nan, expected"),
        (lambda: HistoryDriven(SimpleWalk(), alpha=0.3), r"HistoryDriven: alpha = 0.3, expected a multiple of 0.5"),
        (lambda: SelfRepellent(SimpleWalk(), 1, fading=0.5), r"SelfRepellent: fading = 0.5, expected"),
        (lambda: SelfRepellent(SimpleWalk(), 1, memory_at="cloud"), r"expected 'token' or 'nodes'"),
        (lambda: NonBacktracking(SimpleWalk(), forget=2), r"NonBacktracking: forget = 2, expected"),
        (lambda: NonBacktracking(DESIGNS["at nodes"]), r"NonBacktracking: got SelfRepellent.*has a memory already"),
        (lambda: NonBacktracking(fw.designs.MHLJ(0.1, 0.5, 3)).kernel(GRAPH, importance_of(GRAPH)), r"single hops"),
        (lambda: SelfRepellent(fw.designs.Centralized(), 1).kernel(GRAPH), r"a memory needs a design whose moves are"),
        (
            lambda: NonBacktracking(
                fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 1), fw.schedules.Inverse(1.0, scale=9))
            ).kernel(GRAPH, importance_of(GRAPH)),
            r"its moves change with the step",
        ),
        (
            lambda: NonBacktracking(fw.designs.MHLJ(0.5, 0.5, 1)).kernel(GRAPH, importance_of(GRAPH)),
            r"is not reversible for its target",
        ),
        (lambda: kernel_of(DESIGNS["no step back"]).matrix(), r"so it has no matrix; kernel.without_memory"),
    ],
)
def test_bad_input_is_refused(make, words):
    with pytest.raises(KernelError, match=words):
        make()

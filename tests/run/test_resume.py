"""Ctrl-C returns what was computed; `fw.resume` goes on to the same result as without it."""

import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from catalogue import Centres

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.run import checkpoint
from freewalk.schedules import Schedule
from freewalk.storage.archive import pack

pytestmark = pytest.mark.usefixtures("short_chunks", "handlers_are_restored")

GRAPH = fw.graphs.ring(30)
PROBLEM = fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, samples=[1, 2] * 15, ridge=0.01, seed=2)
#: Without ridge other rules and single precision are what tests/contract compiles as well.
PLAIN = fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, samples=[1, 2] * 15, seed=2)
KERNEL = fw.designs.MHLJ(jump=0.3, stop=0.5, hops=3).kernel(GRAPH, PROBLEM.smoothness)
RUN = {"steps": 200, "walks": 3, "every": 7, "seed": 5, "paths": [2, 0]}


def interrupt_at(*steps, number=signal.SIGINT):
    """A progress callback that presses Ctrl-C at the first call from each of the given steps on."""
    waiting = list(steps)

    def progress(step, total):
        if waiting and step >= waiting[0]:
            waiting.pop(0)
            signal.raise_signal(number)

    return progress


def assert_prefix(partial, whole):
    """A partial record is the beginning of the whole one, bit for bit."""
    assert partial.partial
    assert not whole.partial
    steps = partial.data.step.values
    assert 0 < steps.size < whole.data.step.size
    assert np.array_equal(steps, whole.data.step.values[: steps.size])
    for name in ("loss", "mse", "distance", "messages", "probes", "bytes"):
        if name in whole.data:
            assert np.array_equal(partial.data[name], whole.data[name][:, : steps.size], equal_nan=True), name
    reached = int(partial.data.visits.sum("node")[0])
    assert steps[-1] <= reached < steps[-1] + 7
    if "path" in whole.data:
        assert np.array_equal(partial.data.path, whole.data.path[:, : reached + 1])


def saved(record, folder):
    return fw.load(record.save(folder / "record.npz"))


# Interrupting.


def test_an_interrupted_run_returns_the_beginning(runtime):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(60), **RUN)
    assert_prefix(partial, whole)
    assert partial.data.attrs["partial"] == 1
    assert not partial.data.diverged.any()


def test_final_models_and_nodes_are_those_of_a_run_that_ends_there(runtime):
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(60), **RUN)
    reached = int(partial.data.visits.sum("node")[0])
    short = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **(RUN | {"steps": reached}))
    for name in ("final", "at", "visits", "path"):
        assert np.array_equal(partial.data[name], short.data[name]), name


def test_an_interruption_before_the_second_checkpoint(runtime):
    run = {"steps": 400, "every": 400, "seed": 5, "runtime": runtime}
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(1), **run)
    assert partial.partial
    assert partial.data.step.values.tolist() == [0]
    assert fw.resume(partial).data.identical(fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **run).data)


def test_ctrl_c_while_threads_compute():
    def press():
        signal.raise_signal(signal.SIGINT)

    timers = []

    def progress(step, total):  # the handler is in place by the first call, however slow the machine is
        if not timers:
            timers.append(threading.Timer(0.05, press))
            timers[0].start()

    run = {"walks": 64, "every": 10**8, "seed": 5, "runtime": fw.runtimes.CPU(threads=2)}
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), steps=10**10, progress=progress, **run)
    timers[0].join()
    assert partial.partial
    reached = int(partial.data.visits.sum("node")[0])
    assert (partial.data.visits.sum("node") == reached).all()
    short = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), steps=reached, **run)
    assert np.array_equal(partial.data.final, short.data.final)
    assert np.array_equal(partial.data.visits, short.data.visits)


def test_a_second_ctrl_c_interrupts_at_once():
    def progress(step, total):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=progress, **RUN)


def test_a_ctrl_c_that_comes_too_late_costs_nothing_and_is_noted(monkeypatch):
    make_label = checkpoint.label_of

    def press(*given):
        signal.raise_signal(signal.SIGINT)
        return make_label(*given)

    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
    monkeypatch.setattr(checkpoint, "label_of", press)
    late = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
    assert late.data.identical(whole.data)
    assert late.provenance["interrupted_by"] == "SIGINT"
    assert late.provenance["interruptions"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sigterm_is_treated_like_ctrl_c(number):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(60, number=number), **RUN)
    assert_prefix(partial, whole)
    assert partial.provenance["interrupted_by"] == number.name
    resumed = fw.resume(partial)
    assert same(resumed, whole)
    assert "interrupted_by" not in resumed.provenance


class Pressed(fw.runtimes.Reference):
    """Presses Ctrl-C while the engine is made, as one does when the compiler takes long."""

    def engine(self, job):
        signal.raise_signal(signal.SIGINT)
        return super().engine(job)


def test_an_interruption_before_the_first_step_loses_nothing_and_says_so(tmp_path):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime="reference", **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=Pressed(), **RUN)
    assert "3 walks, 0 steps, partial" in repr(partial)
    assert partial.provenance["interrupted_by"] == "SIGINT"
    assert partial.data.step.values.tolist() == [0]
    assert np.array_equal(partial.data.loss[:, 0], whole.data.loss[:, 0])
    for record in (partial, saved(partial, tmp_path)):
        resumed = fw.resume(record, runtime="reference", types=[Pressed])
        assert resumed.data.identical(whole.data)


def test_a_process_that_is_terminated_saves_what_it_has(tmp_path):
    """All as on a cluster: SIGTERM from outside while threads compute, then the script goes on and saves."""
    program = (
        "import sys, freewalk as fw\n"
        "kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6))\n"
        "tell = lambda step, steps: print(step, flush=True)\n"
        "record = fw.walk(kernel, steps=10**12, every=10**11, progress=tell)\n"
        "record.save(sys.argv[1])\n"
        "sys.exit(0 if record.provenance['interrupted_by'] == 'SIGTERM' else 1)\n"
    )
    path = tmp_path / "record.npz"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.read()
    assert fw.load(path).partial


def test_a_handler_of_the_users_own_is_put_back():
    pressed = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        mine = signal.getsignal(signal.SIGINT)
        partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **RUN)
        assert partial.partial
        assert signal.getsignal(signal.SIGINT) is mine
        assert not pressed
        fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_handler_is_put_back_after_an_error():
    def progress(step, total):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=progress, **RUN)


def test_learning_in_another_thread(runtime):
    results = []

    def work():
        results.append(fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results[0].data.identical(fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN).data)


# Going on.


def same(record, whole):
    """Every array, attribute and coordinate, bit for bit; and the same story, but for the times."""
    assert not record.partial
    assert record.continuation is None
    assert record.data.identical(whole.data)
    own = {"started", "seconds", "interruptions"}
    stories = [{name: value for name, value in r.provenance.items() if name not in own} for r in (record, whole)]
    assert stories[0] == stories[1]
    return True


def test_resuming_gives_the_uninterrupted_record(runtime):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(60), **RUN)
    assert same(fw.resume(partial), whole)


def test_resuming_a_walk_without_learning(runtime, tmp_path):
    whole = fw.walk(KERNEL, runtime=runtime, **RUN)
    partial = fw.walk(KERNEL, runtime=runtime, progress=interrupt_at(60), **RUN)
    assert_prefix(partial, whole)
    assert same(fw.resume(partial), whole)
    assert same(fw.resume(saved(partial, tmp_path)), whole)


def test_resuming_from_a_file(runtime, tmp_path):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(60), **RUN)
    loaded = saved(partial, tmp_path)
    assert loaded.partial
    assert loaded.data.identical(partial.data)
    assert same(fw.resume(loaded), whole)
    assert same(fw.resume(saved(loaded, tmp_path)), whole)  # saved again without being resumed


@pytest.mark.parametrize("through_files", [False, True])
def test_two_interruptions(runtime, tmp_path, through_files):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN)
    first = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(1), **RUN)
    first = saved(first, tmp_path) if through_files else first
    second = fw.resume(first, progress=interrupt_at(70))
    assert_prefix(second, whole)
    assert second.data.step.size > first.data.step.size
    second = saved(second, tmp_path) if through_files else second
    resumed = fw.resume(second)
    assert same(resumed, whole)
    assert [record.provenance["interruptions"] for record in (whole, first, second, resumed)] == [0, 1, 2, 2]


PHASES = {
    "mean then model": (fw.SGD(0.02, average=True), fw.SGD(0.005)),
    "model then mean": (fw.SGD(0.02), fw.SGD(0.005, average=True)),
    "two means": (fw.SGD(0.02, average=True), fw.SGD(0.005, average=True)),
    "one mean": (fw.SGD(0.02, average=True), fw.SGD(0.02, average=True)),
}


@pytest.mark.quick(
    *(f"cpu-{switch}-{rules}" for switch in (10, 17, 150) for rules in PHASES),
    *("reference-10-one mean", "reference-17-mean then model", "reference-150-model then mean"),
)
@pytest.mark.parametrize("rules", PHASES.values(), ids=PHASES)
@pytest.mark.parametrize("switch", [10, 17, 150])
def test_resuming_around_a_switch(runtime, tmp_path, rules, switch):
    # Chunks have 1, 16, 256 steps: the interruption is after, at or before the switch.
    uniform = fw.designs.Metropolis(power=0).kernel(GRAPH)
    phases = [fw.Phase(switch, KERNEL, rules[0]), fw.Phase(None, uniform, rules[1])]
    run = {"steps": 200, "walks": 2, "every": 7, "seed": 5, "runtime": runtime}
    whole = fw.learn(PROBLEM, phases, **run)
    partial = fw.learn(PROBLEM, phases, progress=interrupt_at(12), **run)
    assert_prefix(partial, whole)
    reached = int(partial.data.visits.sum("node")[0])
    done = phases if reached > switch else [fw.Phase(None, KERNEL, rules[0])]
    short = fw.learn(PROBLEM, done, **(run | {"steps": reached}))
    assert np.array_equal(partial.data.final, short.data.final)
    assert same(fw.resume(partial), whole)
    assert same(fw.resume(saved(partial, tmp_path)), whole)


def test_resuming_changes_nothing_in_the_partial_record(runtime, tmp_path):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime=runtime, progress=interrupt_at(60), **RUN)
    before, story = partial.data.copy(deep=True), dict(partial.provenance)
    fw.resume(partial, progress=interrupt_at(80))
    assert partial.data.identical(before)
    assert partial.provenance == story
    assert same(fw.resume(partial), whole)
    assert same(fw.resume(partial), whole)
    loaded = saved(partial, tmp_path)
    assert same(fw.resume(loaded), whole)
    assert same(fw.resume(loaded), whole)
    assert loaded.data.identical(before)


def test_the_story_goes_on(tmp_path):
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **RUN)
    partial.continuation.seconds = 1000.0
    for record in (partial, saved(partial, tmp_path)):
        resumed = fw.resume(record)
        assert resumed.provenance["started"] == partial.provenance["started"]
        assert resumed.provenance["seconds"] >= 1000


def test_resuming_with_another_runtime():
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), runtime="reference", **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **RUN)
    resumed = fw.resume(partial, runtime="reference")
    for name in ("messages", "probes", "visits", "path", "at"):
        assert np.array_equal(resumed.data[name], whole.data[name]), name
    np.testing.assert_allclose(resumed.data.loss, whole.data.loss, rtol=1e-9, atol=1e-12)


def test_resuming_float32(runtime, tmp_path):
    run = RUN | {"precision": "float32", "runtime": runtime}
    rule = fw.SGD(fw.schedules.Inverse(0.02, scale=100), local_steps=2, sampled=True)
    whole = fw.learn(PLAIN, KERNEL, rule, **run)
    partial = fw.learn(PLAIN, KERNEL, rule, progress=interrupt_at(60), **run)
    resumed = fw.resume(saved(partial, tmp_path))
    assert resumed.data.final.dtype == np.float32
    assert same(resumed, whole)


def test_resuming_where_visits_are_summed(runtime, monkeypatch, tmp_path):
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 10)
    whole = fw.walk(KERNEL, runtime=runtime, **RUN)
    partial = fw.walk(KERNEL, runtime=runtime, progress=interrupt_at(60), **RUN)
    assert partial.data.visits.dims == ("node",)
    assert same(fw.resume(saved(partial, tmp_path)), whole)


def lazy_matrix():
    return 0.5 * np.eye(GRAPH.n) + 0.25 * GRAPH.adjacency().toarray()


DESIGNS = [
    fw.designs.SimpleWalk(),
    fw.designs.Metropolis(power=1),
    fw.designs.Metropolis(power=1, proposal=lazy_matrix()),
    fw.designs.MHLJ(0.5, 0.5, 3, corrected=True),
    fw.designs.ClosedFormMHLJ(0.5, 0.5, 3),
    fw.designs.FromMatrix(lazy_matrix()),
    fw.designs.Centralized(power=1),
    fw.designs.Decaying(fw.designs.MHLJ(0.9, 0.5, 3), fw.schedules.Exponential(1.0, half_life=50)),
]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_every_design_resumes_from_a_file(design, tmp_path):
    kernel = design.kernel(GRAPH, PROBLEM.smoothness)
    whole = fw.learn(PROBLEM, kernel, fw.SGD(0.002), **RUN)
    partial = fw.learn(PROBLEM, kernel, fw.SGD(0.002), progress=interrupt_at(60), **RUN)
    assert same(fw.resume(saved(partial, tmp_path)), whole)


@pytest.mark.parametrize("seed", range(8))
def test_a_law_of_the_users_own_survives_a_file_to_the_last_bit(seed, tmp_path):
    # Dividing a law by its sum twice can change it in the last bit, and with it every model.
    law = np.random.default_rng(seed).random(GRAPH.n) ** 2 + 1e-3
    kernel = fw.designs.Metropolis(target=law).kernel(GRAPH)
    whole = fw.learn(PROBLEM, kernel, fw.SGD(0.001), **RUN)
    partial = fw.learn(PROBLEM, kernel, fw.SGD(0.001), progress=interrupt_at(60), **RUN)
    assert same(fw.resume(saved(partial, tmp_path)), whole)


# A user's own classes.


def _momentum(visit, numbers, x, gradient, velocity):
    velocity = 0.9 * velocity - visit.rate * visit.weight * gradient
    return x + velocity, velocity


@dataclass(frozen=True)
class Momentum(fw.Rule):
    """Heavy-ball SGD."""

    step: float
    weighted: bool = True
    local_steps: int = 1
    sampled: bool = False
    carries: ClassVar[tuple[str, ...]] = ("velocity",)

    @property
    def update(self):
        return _momentum

    def rates(self, steps):
        return np.full(np.shape(steps), float(self.step))


class Fourth(fw.Predictor):
    """¼(prediction − target)⁴: no closed form of its optimum."""

    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        square = (prediction - target) * (prediction - target)
        return 0.25 * square * square

    @staticmethod
    def slope(prediction, target):
        return (prediction - target) * (prediction - target) * (prediction - target)

    def optimum(self):
        raise NotImplementedError


@dataclass(frozen=True)
class Halving(Schedule):
    """Half of it after so many steps."""

    initial: float
    at: int

    def __call__(self, steps):
        return np.where(np.asarray(steps) < self.at, self.initial, self.initial / 2)


FOURTH = Fourth(PROBLEM.features / 10, PROBLEM.targets / 10, PROBLEM.nodes)
OWN = {
    "Momentum": (PROBLEM, Momentum(1e-3), Momentum),
    "Fourth": (FOURTH, fw.SGD(0.01), Fourth),
    "Halving": (PROBLEM, fw.SGD(Halving(0.01, 100)), Halving),
}


@pytest.mark.quick("cpu-Halving", *(f"reference-{name}" for name in OWN))
@pytest.mark.parametrize("name", OWN)
def test_a_class_of_the_users_own_is_named_when_a_file_needs_it(name, runtime, tmp_path):
    problem, rule, kind = OWN[name]
    whole = fw.learn(problem, KERNEL, rule, runtime=runtime, **RUN)
    partial = fw.learn(problem, KERNEL, rule, runtime=runtime, progress=interrupt_at(60), **RUN)
    assert not whole.data.diverged.any()
    assert same(fw.resume(partial), whole)
    loaded = saved(partial, tmp_path)
    with pytest.raises(RecordError, match=rf"your own class '{name}'; pass it: fw.resume\(record, types=\[{name}\]\)"):
        fw.resume(loaded)
    assert same(fw.resume(loaded, types=[kind]), whole)


def test_an_objective_that_cannot_be_saved_costs_the_wish_to_go_on_and_nothing_else(tmp_path):
    problem = Centres(np.arange(60.0).reshape(30, 2))
    run = RUN | {"runtime": "reference"}
    whole = fw.learn(problem, KERNEL, fw.SGD(0.01), **run)
    partial = fw.learn(problem, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **run)
    assert same(fw.resume(partial), whole)
    loaded = saved(partial, tmp_path)
    assert loaded.partial
    assert loaded.data.identical(partial.data)
    with pytest.raises(RecordError, match=r"resume: cannot resume .*: archive: cannot store a Centres"):
        fw.resume(loaded)


# What is handed over.


def again(seed=2):
    return fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, samples=[1, 2] * 15, seed=seed)


@pytest.mark.parametrize("from_file", [False, True], ids=["in memory", "loaded"])
def test_what_is_handed_over_is_never_ignored(from_file, tmp_path):
    """A record that holds its objective and rule needs neither; whoever passes them means those, and is told if not."""
    rule = fw.rules.Walkman()  # its penalty follows from the objective
    whole = fw.learn(PLAIN, KERNEL, rule, **RUN)
    partial = fw.learn(PLAIN, KERNEL, rule, progress=interrupt_at(60), **RUN)
    partial = saved(partial, tmp_path) if from_file else partial
    wrong = [
        (
            {"objective": again(seed=3)},
            r"resume: objective = LeastSquares.*began with, with the same data; .*leave it",
        ),
        ({"objective": fw.objectives.Logistic.synthetic(30, 3)}, r"resume: objective = Logistic"),
        ({"objective": "PROBLEM"}, r"resume: objective = 'PROBLEM', expected the objective that it began with"),
        ({"rule": fw.rules.Walkman(penalty=1e6)}, r"resume: rule = Walkman\(penalty=1000000.0.*began with, Walkman"),
        ({"rule": fw.SGD(0.01)}, r"resume: rule = SGD.* expected the rule that it began with, Walkman.*leave it out"),
        ({"rule": 0.01}, r"resume: rule = 0.01, expected the rule that it began with"),
        ({"rule": [rule, rule]}, r"resume: rule = .* expected at most 1, one for each phase"),
    ]
    for handed, message in wrong:
        with pytest.raises(RecordError, match=message):
            fw.resume(partial, **handed)
    assert same(fw.resume(partial, objective=again(), rule=fw.rules.Walkman()), whole)


def test_a_record_with_phases_takes_their_rules_and_a_walk_takes_none():
    phases = [fw.Phase(100, KERNEL, fw.SGD(0.01)), fw.Phase(None, KERNEL, fw.rules.Momentum(1e-3))]
    whole = fw.learn(PLAIN, phases, **RUN)
    partial = fw.learn(PLAIN, phases, progress=interrupt_at(60), **RUN)
    with pytest.raises(RecordError, match=r"resume: rule = Momentum\(step=0.01.*expected .*Momentum\(step=0.001"):
        fw.resume(partial, rule=[None, fw.rules.Momentum(1e-2)])
    assert same(fw.resume(partial, rule=[fw.SGD(0.01), None], objective=PLAIN), whole)
    walked = fw.walk(KERNEL, progress=interrupt_at(60), **RUN)
    for handed in ({"objective": PROBLEM}, {"rule": fw.SGD(0.01)}):
        with pytest.raises(RecordError, match=r"expected None; the record is one of fw.walk, which learns nothing"):
            fw.resume(walked, **handed)


def test_an_objective_that_cannot_be_compared_is_taken_as_it_is_or_refused():
    problem = Centres(np.arange(60.0).reshape(30, 2))
    run = RUN | {"runtime": "reference", "steps": 200}
    partial = fw.learn(problem, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **run)
    with pytest.raises(RecordError, match=r"resume: objective = .*Centres.* the record has it, so leave it out"):
        fw.resume(partial, objective=Centres(problem.centres))
    assert same(fw.resume(partial, objective=problem), fw.learn(problem, KERNEL, fw.SGD(0.01), **run))


# Files of earlier versions.


def test_a_file_of_an_earlier_version_resumes(tmp_path):
    """It has no graph of its own, no attributes of variables, and a list of all checkpoints."""
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
    partial = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), progress=interrupt_at(60), **RUN)
    packed = pack(partial.continuation)
    packed.tree["fields"]["marks"] = partial.data.step.values.tolist()
    path = fw.Record(partial.data, partial.provenance, packed).save(tmp_path / "old.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays["header"].tobytes())
    del header["variables"]
    assert "graph" not in header
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    loaded = fw.load(path)
    assert loaded.graph is None
    assert loaded.data.identical(partial.data)
    resumed = fw.resume(loaded)
    assert same(resumed, whole)
    assert resumed.graph == GRAPH


# What cannot go on.


def test_a_complete_record_cannot_go_on(tmp_path):
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(0.01), **RUN)
    for record in (whole, saved(whole, tmp_path)):
        with pytest.raises(RecordError, match=r"resume: cannot resume 'MHLJ.*': the run is complete"):
            fw.resume(record)


def test_records_side_by_side_go_on_one_by_one():
    partial = fw.walk(KERNEL, progress=interrupt_at(60), **RUN)
    both = fw.concat([partial, partial], labels=["a", "b"])
    assert both.partial
    with pytest.raises(RecordError, match=r"resume: cannot resume 'a \| b': .*resume each of them"):
        fw.resume(both)


@pytest.mark.parametrize("progress", [5, "x", lambda: None])
def test_a_progress_that_cannot_be_told(progress):
    partial = fw.walk(KERNEL, progress=interrupt_at(60), **RUN)
    with pytest.raises(fw.FreewalkError, match=r"resume: progress = .*, expected a function progress\(step, steps\)"):
        fw.resume(partial, progress=progress)


def test_what_is_not_a_record_cannot_go_on():
    with pytest.raises(RecordError, match=r"resume: record = 3, expected a record"):
        fw.resume(3)


# A user's class of the same name as one of the package.


def stay_put(visit, numbers, x, gradient):
    return x


class _Own:
    @dataclass(frozen=True)
    class SGD(fw.Rule):
        """Never changes the model, unlike fw.SGD."""

        step: float = 0.1

        @property
        def update(self):
            return stay_put

        def rates(self, steps):
            return np.full(steps.shape, self.step)


def test_an_own_class_never_stands_for_one_of_the_package(tmp_path):
    own = type("SGD", (_Own.SGD,), {"__module__": __name__, "__qualname__": "SGD"})
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6))
    problem = fw.objectives.LeastSquares.synthetic(6, dim=2, seed=1)
    run = {"steps": 50, "every": 10, "runtime": "reference"}
    partial = fw.learn(problem, kernel, own(), progress=lambda *_: signal.raise_signal(signal.SIGINT), **run)
    assert partial.partial
    loaded = fw.load(partial.save(tmp_path / "own"))
    with pytest.raises(RecordError, match=r"your own class 'SGD'; pass it: fw.resume\(record, types=\[SGD\]\)"):
        fw.resume(loaded)
    whole = fw.resume(loaded, types=[own])
    assert (whole.data.loss == whole.data.loss[:, 0]).all()


def test_it_goes_on_with_the_runtime_it_began_with(tmp_path):
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6))
    runtime = fw.runtimes.CPU(threads=1)
    partial = fw.walk(kernel, steps=50, runtime=runtime, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    loaded = fw.load(partial.save(tmp_path / "run"))
    for record in (partial, loaded):
        assert fw.resume(record).provenance["runtime"] == "CPU(threads=1)"
    assert fw.resume(loaded, runtime="reference").provenance["runtime"] == "Reference()"

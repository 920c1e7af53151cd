"""A goal ends a run at the first mark at which it is reached, however the run was cut into chunks."""

import signal
from dataclasses import dataclass, field

import numpy as np
import pytest

import freewalk as fw
from freewalk.report import Page, curves, section_of, summary, write_page
from freewalk.run import loop
from freewalk.specs import parse
from freewalk.storage.archive import pack

GRAPH = fw.graphs.ring(30)
PROBLEM = fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, seed=2)
KERNEL = fw.designs.Metropolis(power=1).kernel(GRAPH, PROBLEM.smoothness)
RUN = {"steps": 500, "walks": 3, "every": 7, "seed": 5, "paths": 1}
RULE = fw.SGD(0.001)


@pytest.fixture(scope="module")
def whole():
    return {name: fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=name) for name in ("cpu", "reference")}


def level_of(record, share=0.5, name="loss"):
    """A level that is first reached well within the run."""
    means = record.data[name].mean("walk").values
    return float(means[0] + share * (means.min() - means[0]))


def first_at_most(record, level, name="loss"):
    means = record.data[name].mean("walk").values
    return int(record.data.step.values[np.argmax(means <= level)])


@pytest.mark.parametrize("chunk", [1, 3, 7, 16, 2**20])
def test_it_ends_at_the_first_mark_whatever_the_chunks(whole, runtime, chunk, monkeypatch):
    monkeypatch.setattr(loop, "_CHUNK_STEPS", chunk)
    level = level_of(whole[runtime])
    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, goal={"loss": level})
    last = first_at_most(whole[runtime], level)
    assert 7 < last < 500
    assert record.data.step.values[-1] == last
    assert not record.partial
    assert record.continuation is None
    short = fw.learn(PROBLEM, KERNEL, RULE, **(RUN | {"steps": last}), runtime=runtime)
    assert record.data.identical(short.data)
    assert record.provenance["goal"] == {"loss": level}
    assert record.provenance["reached"] == last
    assert record.provenance["steps"] == 500


def test_a_goal_that_is_not_reached_changes_nothing(whole, runtime):
    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, goal={"loss": -1.0})
    assert record.data.identical(whole[runtime].data)
    assert record.provenance["reached"] is None
    assert "goal" not in whole[runtime].provenance


def test_one_that_the_first_model_has_reached_leaves_one_mark(runtime):
    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, goal={"loss": 1e9})
    assert record.data.step.values.tolist() == [0]
    assert record.provenance["reached"] == 0
    assert not record.partial


def test_one_that_is_reached_at_the_last_step_only(whole):
    """500 is no multiple of 7: the last mark is a short one."""
    run = RUN | {"every": 300}
    level = float(whole["cpu"].data.distance.mean("walk").values[-1])
    record = fw.learn(PROBLEM, KERNEL, RULE, **run, goal={"distance": level})
    assert record.data.step.values.tolist() == [0, 300, 500]
    assert record.provenance["reached"] == 500


def test_several_levels_must_all_be_reached(whole):
    record = whole["cpu"]
    levels = {"loss": level_of(record, 0.2), "distance": level_of(record, 0.6, "distance")}
    steps = {name: first_at_most(record, level, name) for name, level in levels.items()}
    assert steps["loss"] < steps["distance"]
    together = fw.learn(PROBLEM, KERNEL, RULE, **RUN, goal=levels)
    both = np.all([record.data[name].mean("walk").values <= level for name, level in levels.items()], axis=0)
    assert together.provenance["reached"] == record.data.step.values[np.argmax(both)] >= steps["distance"]


@dataclass(frozen=True)
class Signs(fw.Objective):
    """Least squares on one number, and the share of nodes whose sign is right."""

    targets: np.ndarray = field(repr=False)
    measures = ("loss", "accuracy")
    rising = ("accuracy",)

    @property
    def n(self):
        return len(self.targets)

    @property
    def dim(self):
        return 1

    @property
    def smoothness(self):
        return np.ones(self.n)

    def loss(self, x):
        return float(0.5 * np.mean((x[0] - self.targets) ** 2))

    def measure(self, x):
        return {"loss": self.loss(x), "accuracy": float(np.mean(self.targets * x[0] > 0.5))}

    def gradient(self, node, x, sample=None):
        return np.array([x[0] - self.targets[node]])


SIGNS = Signs(np.linspace(0.5, 2.0, 30))
SLOW = {"steps": 400, "walks": 4, "every": 5, "runtime": "reference", "seed": 3}


def test_a_rising_measure_has_to_be_at_least_the_level():
    kernel = fw.designs.SimpleWalk().kernel(GRAPH)
    whole = fw.learn(SIGNS, kernel, fw.SGD(0.01), **SLOW)
    means = whole.data.accuracy.mean("walk").values
    record = fw.learn(SIGNS, kernel, fw.SGD(0.01), **SLOW, goal={"accuracy": 0.4})
    last = int(whole.data.step.values[np.argmax(means >= 0.4)])
    assert record.provenance["reached"] == last > 0
    assert record.data.accuracy.mean("walk").values[-1] >= 0.4 > record.data.accuracy.mean("walk").values[-2]


def test_consensus_of_tokens():
    run = {"steps": 300, "every": 5, "tokens": 3, "exchange": fw.exchanges.Meet(), "seed": 1}
    run["initial"] = np.arange(9.0).reshape(1, 3, 3)
    whole = fw.learn(PROBLEM, KERNEL, RULE, **run)
    level = float(whole.data.consensus.min()) * 2
    record = fw.learn(PROBLEM, KERNEL, RULE, **run, goal={"consensus": level})
    assert record.provenance["reached"] == first_at_most(whole, level, "consensus") > 0


def test_a_run_that_diverges_does_not_reach_it():
    with np.errstate(all="ignore"):
        record = fw.learn(PROBLEM, KERNEL, fw.SGD(50.0), steps=2000, every=100, goal={"loss": 0.0})
    assert record.data.diverged.all()
    assert record.provenance["reached"] is None


# Resuming.


@pytest.mark.parametrize("through_files", [False, True])
def test_a_resumed_run_keeps_its_goal(whole, runtime, tmp_path, monkeypatch, through_files):
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 16)
    level = level_of(whole[runtime])
    stop = {"progress": lambda step, steps: signal.raise_signal(signal.SIGINT) if step >= 20 else None}
    partial = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, goal={"loss": level}, **stop)
    assert partial.partial
    assert partial.provenance["reached"] is None
    partial = fw.load(partial.save(tmp_path / "it")) if through_files else partial
    record = fw.resume(partial)
    straight = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, goal={"loss": level})
    assert record.data.identical(straight.data)
    assert record.provenance["reached"] == straight.provenance["reached"]


def test_a_signal_at_the_mark_of_the_goal_leaves_a_complete_record(whole, monkeypatch):
    level = level_of(whole["cpu"])
    last = first_at_most(whole["cpu"], level)
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 7)
    stop = {"progress": lambda step, steps: signal.raise_signal(signal.SIGINT) if step >= last else None}
    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, goal={"loss": level}, **stop)
    assert not record.partial
    assert record.provenance["interrupted_by"] == "SIGINT"
    assert record.provenance["reached"] == last


def test_a_partial_record_without_that_field_resumes(whole):
    partial = fw.learn(PROBLEM, KERNEL, RULE, **RUN, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    packed = pack(partial.continuation)
    assert packed.tree["fields"].pop("goal") == {}
    old = fw.Record(partial.data, partial.provenance, packed)
    assert fw.resume(old).data.identical(whole["cpu"].data)


# What is refused.


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({"los": 0.1}, r"learn: goal has 'los', expected something that is measured; did you mean 'loss'\?"),
        ({"accuracy": 0.1}, r"learn: goal has 'accuracy', .*; there are loss, mse, distance"),
        ({"consensus": 0.1}, r"learn: goal has 'consensus', expected something that is measured"),
        ({"loss": float("nan")}, r"learn: goal\['loss'\] = nan, expected a finite number"),
        ({"loss": "0.1"}, r"learn: goal\['loss'\] = '0.1', expected a finite number"),
        ({"loss": 0.1, 3: 1}, r"learn: goal has 3, expected something that is measured"),
        ({}, r"learn: goal = {}, expected levels of measures such as {'loss': 0.1}"),
        (0.1, r"learn: goal = 0.1, expected levels of measures such as {'loss': 0.1}"),
        ("loss", r"learn: goal = 'loss', expected levels of measures"),
    ],
)
def test_nonsense_is_refused(goal, message):
    with pytest.raises(fw.FreewalkError, match=message):
        fw.learn(PROBLEM, KERNEL, RULE, **RUN, goal=goal)


def test_a_distance_that_is_not_known_is_refused():
    with pytest.raises(fw.FreewalkError, match=r"goal has 'distance', and the optimum of Signs is not known"):
        fw.learn(SIGNS, fw.designs.SimpleWalk().kernel(GRAPH), RULE, **SLOW, goal={"distance": 0.1})


def test_a_goal_in_a_file_is_checked(tmp_path):
    partial = fw.learn(PROBLEM, KERNEL, RULE, **RUN, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    partial.continuation.goal = {"nothing": 1.0}
    with pytest.raises(fw.errors.RecordError, match="goal has 'nothing'"):
        fw.resume(fw.load(partial.save(tmp_path / "it")))


# Specs, tables, figures and pages.

SPEC = """
[graph]
kind = "ring"
n = 30
[problem]
kind = "LeastSquares"
dim = 3
heavy = 2
seed = 2
[run]
steps = 500
walks = 3
every = 7
goal = { loss = LEVEL }
[[walk]]
label = "quick"
design = { kind = "Metropolis", power = 1 }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "slow"
design = { kind = "Metropolis", power = 1 }
rule = { kind = "SGD", step = 1e-5 }
[[walk]]
label = "quick again"
design = { kind = "Metropolis", power = 1 }
rule = { kind = "SGD", step = 1e-3 }
"""


def test_a_spec_in_which_some_walks_end_early(whole, tmp_path):
    spec = parse(SPEC.replace("LEVEL", repr(level_of(whole["cpu"]))))
    told = []

    def progress(label, done, total, walks, measures):
        told.append((label, done, total, measures))

    record = spec.run(progress)
    parts = record.provenance["parts"]
    last = parts["quick"]["reached"]
    assert parts["slow"]["reached"] is None
    assert 0 < last < 500
    # All that was done of all that there will be: at the end nothing is left.
    assert told[-1][:3] == ("quick again", 2 * last + 500, 2 * last + 500)
    shares = [done / total for _, done, total, _ in told]
    assert shares == sorted(shares)
    assert list(told[-1][3]) == ["mse"]
    assert told[-1][3]["mse"] == pytest.approx(float(record.data.mse.sel(design="quick", step=last).mean()))
    # The record is padded; what is drawn from it is that of the last mark of each.
    quick = record.data.loss.sel(design="quick")
    assert quick.sel(step=slice(last + 1, None)).isnull().all()
    assert quick.sel(step=slice(None, last)).notnull().all()
    text = summary.text(record)
    assert "nan" not in text.lower()
    assert curves(record, tmp_path / "curves.png") is None or (tmp_path / "curves.png").stat().st_size > 0
    write_page(Page("goals", [section_of(record)]), tmp_path / "page.html")
    assert "NaN" not in (tmp_path / "page.html").read_text(encoding="utf-8").split("<script")[0]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("3", r"\[run\]: goal = 3, expected a table such as { accuracy = 0.95 }"),
        ('{ loss = "x" }', r"\[run\]: goal = 'x', expected a table such as { accuracy = 0.95 }"),
        ("{ accuracy = 0.9 }", r"\[run\]: goal has 'accuracy', expected something that is measured"),
        ("{ loss = nan }", r"\[run\]: goal\['loss'\] = nan, expected a finite number"),
        ("{ loss = 1 }\ncheckpoint = -1", r"\[run\]: checkpoint = -1, expected the seconds between saves"),
        ("{ loss = 1 }\ncheckpoint = inf", r"\[run\]: checkpoint = inf, expected the seconds between saves"),
    ],
)
def test_a_spec_with_nonsense_is_refused(goal, message):
    with pytest.raises(fw.errors.SpecError, match=message):
        parse(SPEC.replace("{ loss = LEVEL }", goal)).plan()

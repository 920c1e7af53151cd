"""What is random is a function of seed, walk and step; a run resumes exactly; one that fails loses nothing."""

from functools import partial

import numpy as np
import pytest
import torch
from nets import BATCH, GRAPH, LOOP, classes, identical, normed, objective_of, perceptron, uniform
from torch import nn

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.exchanges import Average, Meet
from freewalk.run import loop
from freewalk.torch import Optimizer

KERNEL = uniform()
DATA = classes([4, 3, 5, 6] * 2)


def random_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))


def random_normed():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))


class Noisy:
    """A dataset whose samples are drawn anew each time, with torch's generator."""

    def __init__(self, pair):
        self.pair = pair

    def __len__(self):
        return len(self.pair[1])

    def __getitem__(self, place):
        return self.pair[0][place] + 0.1 * torch.randn(6), self.pair[1][place]


OBJECTIVES = {
    "dropout": objective_of(random_net(), DATA, batch=2),
    "noisy data": objective_of(perceptron(), [Noisy(pair) for pair in DATA], batch=2),
    "batch norm": objective_of(random_normed(), DATA, batch=3),
}
RUN = {"steps": 20, "every": 5, "seed": 4, "runtime": LOOP}


@pytest.mark.quick("SGD-dropout", "Adam-noisy data", "SGD-batch norm")
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("rule", [fw.SGD(0.05, local_steps=3), Optimizer("Adam", local_steps=2)], ids=["SGD", "Adam"])
def test_draws_belong_to_seed_walk_and_step(objective, rule, monkeypatch):
    many = fw.learn(objective, KERNEL, rule, **RUN, walks=5)
    one = fw.learn(objective, KERNEL, rule, **RUN, walks=1)
    for name in ("final", "loss", "messages", "bytes"):
        np.testing.assert_array_equal(one.data[name][0], many.data[name][0])
    torch.manual_seed(99)  # whatever torch drew before
    identical(fw.learn(objective, KERNEL, rule, **RUN, walks=5), many)
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 3)
    identical(fw.learn(objective, KERNEL, rule, **RUN, walks=5), many)
    other = fw.learn(objective, KERNEL, rule, **(RUN | {"seed": 5}), walks=1, start=int(many.data.at[0]))
    assert not np.allclose(other.data.final, one.data.final)


def test_local_steps_draw_anew():
    """Two local steps at one node with half of the units dropped: the same mask twice would be another model."""
    objective, masks = objective_of(random_net(), DATA), []

    def note(module, inputs, outputs):
        if module.training:
            masks.append((outputs == 0).float())

    objective.module[1].register_forward_hook(note)
    fw.learn(objective, KERNEL, fw.SGD(1e-9, local_steps=2), steps=3, runtime=LOOP)
    assert len({tuple(mask.reshape(-1).tolist()) for mask in masks[-6:]}) == 6


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_the_generator_of_the_user_is_left_alone(objective):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    fw.learn(objective, KERNEL, fw.SGD(0.05), **RUN, walks=2)
    objective.gradient(0, objective.first_model())
    objective.estimate("smoothness", most=2)
    objective.initial(2, 1)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_generator_is_left_alone_by_a_batch_and_by_an_error():
    failing = objective_of(Failing(random_net(), 10), DATA)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    fw.learn(objective_of(perceptron(), DATA), KERNEL, fw.SGD(0.05), **(RUN | {"runtime": BATCH}), walks=4)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ArithmeticError):
        fw.learn(failing, KERNEL, fw.SGD(0.05), **RUN)
    assert torch.equal(torch.get_rng_state(), before)


# Resuming.


class Stop(Exception):
    """In place of Ctrl-C."""


def stopping(at):
    def progress(step, steps):
        if step >= at:
            raise Stop

    return progress


@pytest.fixture
def _short(monkeypatch):
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 3)
    monkeypatch.setattr(loop, "_SHARE", 0)


MADE = partial(torch.optim.Adam, lr=0.02)
CASES = {
    "SGD": ("dropout", fw.SGD(0.05), {"walks": 2}),
    "mean": ("batch norm", fw.SGD(0.05, average="half"), {"walks": 2}),
    "Adam": ("batch norm", Optimizer("Adam", {"lr": 0.02, "betas": (0.8, 0.9)}), {"walks": 2}),
    "Adam that stays": ("dropout", Optimizer("Adam", state="stays"), {"walks": 2}),
    "Adam of a function": ("dropout", Optimizer(MADE), {"walks": 2}),
    "tokens": ("batch norm", Optimizer("Adam"), {"walks": 2, "tokens": 3, "exchange": Average(every=2)}),
    "tokens that meet": ("dropout", fw.rules.Momentum(0.05), {"tokens": 3, "exchange": Meet()}),
    "goal": ("dropout", fw.SGD(0.05), {"goal": {"loss": 0.97}}),
}


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("case", CASES)
def test_a_run_resumes_exactly(case, tmp_path):
    name, rule, options = CASES[case]
    objective = OBJECTIVES[name]
    whole = fw.learn(objective, KERNEL, rule, **RUN, **options)
    assert (case == "goal") == ("reached" in whole.provenance and whole.data.step[-1] < 20)
    with pytest.raises(Stop) as caught:
        fw.learn(objective, KERNEL, rule, **RUN, **options, progress=stopping(4))
    record = caught.value.record
    assert record.partial
    assert record.provenance["failed"] == "Stop: "
    path = record.save(tmp_path / "half")
    identical(fw.resume(record), whole)
    handed = {} if rule.stored else {"rule": rule}
    identical(fw.resume(fw.load(path), objective=objective, **handed), whole)


@pytest.mark.usefixtures("_short")
def test_phases_resume_exactly_wherever_they_stop(tmp_path):
    objective, adam = OBJECTIVES["batch norm"], Optimizer(MADE)
    phases = [
        fw.Phase(6, KERNEL, fw.SGD(0.05, average=True)),
        fw.Phase(12, KERNEL, adam),
        fw.Phase(None, KERNEL, fw.SGD(0.1)),
    ]
    whole = fw.learn(objective, phases, **RUN, walks=2)
    for at in (4, 6, 10, 12, 15):
        with pytest.raises(Stop) as caught:
            fw.learn(objective, phases, **RUN, walks=2, progress=stopping(at))
        path = caught.value.record.save(tmp_path / f"{at}")
        identical(fw.resume(fw.load(path), objective=objective, rule=[None, adam, None]), whole)
        identical(fw.resume(caught.value.record), whole)


@pytest.mark.usefixtures("_short")
def test_every_checkpoint_leads_to_the_same_result(tmp_path):
    objective, rule = OBJECTIVES["batch norm"], Optimizer("Adam")
    files = []
    keep = lambda record: files.append(record.save(tmp_path / f"{len(files)}"))  # noqa: E731
    whole = fw.learn(objective, KERNEL, rule, **RUN, walks=2, checkpoint=keep, checkpoint_every=1e-9)
    assert len(files) >= 5
    for path in files:
        identical(fw.resume(fw.load(path), objective=objective), whole)


@pytest.mark.usefixtures("_short")
def test_a_record_knows_with_what_it_began(tmp_path):
    frozen = perceptron()
    frozen[0].requires_grad_(False)
    objective = objective_of(frozen, DATA, batch=2, test=DATA[0])
    with pytest.raises(Stop) as caught:
        fw.learn(objective, KERNEL, Optimizer(MADE), **RUN, progress=stopping(4))
    path = caught.value.record.save(tmp_path / "half")
    resume = partial(fw.resume, rule=Optimizer(MADE))
    with pytest.raises(RecordError, match="objective"):
        resume(fw.load(path))
    with pytest.raises(RecordError, match="rule"):
        fw.resume(fw.load(path), objective=objective)
    data = [(inputs + 1e-6, targets) for inputs, targets in DATA]
    other = perceptron(seed=1)
    other[0].requires_grad_(False)
    rectified = nn.Sequential(frozen[0], nn.ReLU(), frozen[2])
    wrong = {
        "data": objective_of(frozen, data, batch=2, test=DATA[0]),
        "batch": objective_of(frozen, DATA, batch=3, test=DATA[0]),
        "test": objective_of(frozen, DATA, batch=2, test=DATA[1]),
        "loss": objective_of(frozen, DATA, "multi_margin_loss", batch=2, test=DATA[0]),
        "measures": objective_of(frozen, DATA, batch=2, test=DATA[0], metrics={}),
        "frozen parameters": objective_of(other, DATA, batch=2, test=DATA[0]),
        "architecture": objective_of(rectified, DATA, batch=2, test=DATA[0]),
        "other objective": fw.objectives.LeastSquares.synthetic(GRAPH.n, 3),
    }
    for name, one in wrong.items():
        for record in (fw.load(path), caught.value.record):
            with pytest.raises(RecordError):
                pytest.fail(f"{name}: {resume(record, objective=one)}")
    assert not resume(fw.load(path), objective=objective).partial


@pytest.mark.usefixtures("_short")
def test_code_that_is_handed_to_a_record_in_memory_is_checked_and_used():
    def made(parameters, rate=0.02):
        return torch.optim.Adam(parameters, lr=rate)

    objective, other = (objective_of(perceptron(), DATA, batch=2) for _ in range(2))
    whole = fw.learn(objective, KERNEL, Optimizer(made), **RUN, walks=2)
    with pytest.raises(Stop) as caught:
        fw.learn(objective, KERNEL, Optimizer(made), **RUN, walks=2, progress=stopping(4))
    record = caught.value.record
    for rule in (Optimizer(MADE), Optimizer(made, {"rate": 0.5}), Optimizer(made, state="stays"), Optimizer("Adam")):
        with pytest.raises(RecordError, match=r"resume: rule = Optimizer.*that it began with, Optimizer"):
            fw.resume(record, rule=rule)
    with pytest.raises(Stop) as again:
        fw.resume(record, objective=other, rule=Optimizer(made), progress=stopping(8))
    assert again.value.record.continuation.job.objective is other
    identical(fw.resume(again.value.record, objective=objective), whole)


# Failing.


class Failing(nn.Module):
    """Fails at its so-manieth call while it learns."""

    def __init__(self, module, at):
        super().__init__()
        self.module, self.at, self.calls = module, at, 0

    def forward(self, inputs):
        if self.training:
            self.calls += 1
            if self.calls == self.at:
                raise ArithmeticError("call number 50")
        return self.module(inputs)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_module_that_fails_leaves_what_was_measured(checkpoint, tmp_path):
    run = RUN | {"steps": 100, "every": 4}
    options = {"checkpoint": tmp_path / "kept.npz", "checkpoint_every": 1e-9} if checkpoint else {}
    whole = fw.learn(objective_of(random_normed(), DATA), KERNEL, fw.SGD(0.05, average=True), **run)
    objective = objective_of(Failing(random_normed(), 50), DATA)
    with pytest.raises(ArithmeticError, match="call number 50") as caught:
        fw.learn(objective, KERNEL, fw.SGD(0.05, average=True), **run, **options)
    record = caught.value.record
    reached = int(record.data.step[-1])
    assert 40 <= reached <= 50
    assert record.partial
    np.testing.assert_array_equal(record.data.loss, whole.data.loss.sel(step=record.data.step))
    np.testing.assert_array_equal(record.data.bytes, whole.data.bytes.sel(step=record.data.step))
    assert "visits" not in record.data
    (note,) = caught.value.__notes__
    assert note.startswith("freewalk: error.record holds what was measured up to step ")
    assert record.provenance["failed"] == "ArithmeticError: call number 50"
    with pytest.raises(RecordError, match="it failed in the middle of a step"):
        fw.resume(record)
    fw.load(record.save(tmp_path / "saved"))
    assert ("the last checkpoint can" in note) == checkpoint
    if checkpoint:
        good = objective_of(Failing(random_normed(), -1), DATA)
        done = fw.resume(fw.load(tmp_path / "kept.npz"), objective=good)
        np.testing.assert_array_equal(done.data.loss, whole.data.loss)


@pytest.mark.usefixtures("_short")
def test_a_failure_in_a_later_phase():
    """Within one chunk a phase ends well and the next fails: what was measured fits the marks."""
    first = [fw.Phase(10, KERNEL, fw.SGD(0.05, average=True)), fw.Phase(None, KERNEL, Optimizer("Adam"))]
    with pytest.raises(ArithmeticError) as caught:
        fw.learn(objective_of(Failing(random_net(), 13), DATA), first, **(RUN | {"every": 1}))
    record = caught.value.record
    assert 8 <= int(record.data.step[-1]) <= 11
    assert record.data.loss.shape == (1, record.data.sizes["step"])


def test_other_runtimes_rescue_too(monkeypatch):
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 3)
    calls = []

    class Sometimes(fw.exchanges.Average):
        def weights(self, gathering):
            calls.append(gathering.step)
            if gathering.step >= 10:
                raise ArithmeticError("tired")
            return np.full((2, 2), 0.5)

        means = ""

    problem = fw.objectives.LeastSquares.synthetic(GRAPH.n, 3)
    for runtime in ("reference", "cpu"):
        with pytest.raises(Exception, match="tired") as caught:
            fw.learn(problem, KERNEL, fw.SGD(0.01), steps=30, tokens=2, exchange=Sometimes(every=1), runtime=runtime)
        assert 5 <= int(caught.value.record.data.step[-1]) <= 10


def test_an_error_at_the_end_leaves_a_complete_record():
    with pytest.raises(Stop) as caught:
        fw.learn(OBJECTIVES["dropout"], KERNEL, fw.SGD(0.05), **RUN, progress=stopping(20))
    assert not caught.value.record.partial
    assert "it is complete" in caught.value.__notes__[0]


# Divergence.


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_divergence_is_a_status(runtime):
    def picky(outputs, targets):
        if not torch.isfinite(outputs).all():
            raise ValueError("Input contains NaN")
        return outputs.mean()

    data = [(inputs * 1e3, targets.float()) for inputs, targets in DATA]
    objective = objective_of(nn.Linear(6, 1), data, lambda o, t: ((o[:, 0] - t) ** 2).mean(), metrics={"picky": picky})
    run = {"steps": 60, "every": 20, "walks": 4, "runtime": runtime}
    for rule in (fw.SGD(10.0), Optimizer("SGD", {"lr": 10.0, "momentum": 0.9})):
        record = fw.learn(objective, KERNEL, rule, **run)
        assert record.data.diverged.all()
        assert np.isinf(record.data.loss[:, -1]).all()
        assert not record.partial


def test_a_norm_that_is_nan_is_divergence_too():
    objective = objective_of(normed(), classes([4] * GRAPH.n), lambda o, t: nn.functional.cross_entropy(o * 1e30, t))
    record = fw.learn(objective, KERNEL, fw.SGD(1e30), steps=10, every=5, runtime=LOOP)
    assert record.data.diverged.all()


def test_the_reference_refuses_what_it_cannot_draw():
    dropout = objective_of(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)))
    assert dropout.random
    assert not objective_of(perceptron()).random
    with pytest.raises(fw.FreewalkError, match="draws random numbers as it learns, as dropout does; leave `runtime`"):
        fw.learn(dropout, uniform(), fw.SGD(step=0.1), steps=2, runtime="reference")

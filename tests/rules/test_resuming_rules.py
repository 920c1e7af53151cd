"""Every rule goes on from a file as if nothing had happened, and the bytes that it sends are counted."""

import signal

import numpy as np
import pytest
from test_rule import EXAMPLES
from written_out import KERNEL, PROBLEM

import freewalk as fw
from freewalk.rules import SAG, AdaGrad, Momentum

SMALL = 0.003  # a step that suits all of them
RULES = {name: rule for name, rule in EXAMPLES.items() if "Walkman" not in name}
RULES = {name: type(rule)(**{**vars(rule), "step": SMALL}) for name, rule in RULES.items()}
RULES |= {name: fw.rules.Walkman(proximal="proximal" in name) for name in EXAMPLES if "Walkman" in name}
CASES = [
    (name, runtime)
    for name in RULES
    for runtime in ("cpu", "reference")
    if (name, runtime) != ("Walkman, proximal", "cpu")
]
# Each rule in single precision is a compilation of its own: one of them, and all of them by reference.
CASES = [
    (name, runtime, precision)
    for name, runtime in CASES
    for precision in ("float64", "float32")
    if (runtime, precision) != ("cpu", "float32") or name == "SAG"
]
NAMES = [" on ".join(case) for case in CASES]
EVERY_RULE = pytest.mark.parametrize(("name", "runtime", "precision"), CASES, ids=NAMES)
QUICK = pytest.mark.quick(*(name for name in NAMES if "cpu on float32" not in name))
RUN = {"steps": 120, "walks": 3, "every": 7, "seed": 5, "paths": [2, 0]}


pytestmark = pytest.mark.usefixtures("short_chunks")


def interrupted(step, steps):
    if step >= 12:
        signal.raise_signal(signal.SIGINT)


def same_bytes(record, whole):
    assert record.data.identical(whole.data)
    for name, values in whole.data.variables.items():
        assert record.data[name].values.tobytes() == values.values.tobytes(), name


@QUICK
@EVERY_RULE
def test_resuming_in_the_middle(name, runtime, precision, tmp_path):
    run = RUN | {"runtime": runtime, "precision": precision}
    whole = fw.learn(PROBLEM, KERNEL, RULES[name], **run)
    partial = fw.learn(PROBLEM, KERNEL, RULES[name], progress=interrupted, **run)
    assert partial.partial
    assert not whole.data.diverged.any()
    same_bytes(fw.resume(fw.load(partial.save(tmp_path / "partial.npz"))), whole)


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
@pytest.mark.parametrize("switch", [10, 17, 60])
def test_resuming_around_a_switch_between_memories(runtime, switch, tmp_path):
    """Before, at or after the switch from stored vectors to others."""
    phases = [fw.Phase(switch, KERNEL, SAG(step=SMALL)), fw.Phase(None, KERNEL, AdaGrad(step=SMALL, keeper="node"))]
    whole = fw.learn(PROBLEM, phases, runtime=runtime, **RUN)
    partial = fw.learn(PROBLEM, phases, runtime=runtime, progress=interrupted, **RUN)
    assert partial.partial
    same_bytes(fw.resume(fw.load(partial.save(tmp_path / "partial.npz"))), whole)


CORRECTED = fw.designs.MHLJ(0.4, 0.5, 3, corrected=True).kernel(KERNEL.graph, PROBLEM.smoothness)  # it sends probes


@QUICK
@EVERY_RULE
def test_bytes_are_those_of_messages_and_probes(name, runtime, precision):
    data = fw.learn(PROBLEM, CORRECTED, RULES[name], runtime=runtime, precision=precision, **RUN).data
    size = (1 + len(RULES[name].carries)) * 3 * np.dtype(precision).itemsize
    assert int(data.probes[:, -1].min()) > 0
    assert np.array_equal(data.bytes, data.messages * size + data.probes * 64)


@pytest.mark.parametrize(
    ("runtime", "precision"), [("cpu", "float64"), ("reference", "float64"), ("reference", "float32")]
)
def test_bytes_over_phases_that_carry_different_numbers_of_vectors(runtime, precision):
    rules = [fw.SGD(step=SMALL, average="half"), fw.SGD(step=SMALL), Momentum(step=SMALL), SAG(step=SMALL)]
    ends = [13, 28, 90, None]
    phases = [fw.Phase(end, CORRECTED, rule) for end, rule in zip(ends, rules, strict=True)]
    run = RUN | {"every": 1, "runtime": runtime, "precision": precision}
    data = fw.learn(PROBLEM, phases, **run).data
    item = 3 * np.dtype(precision).itemsize
    carried = np.repeat([2, 0, 1, 1], np.diff([0, 13, 28, 90, 120]))
    sent = np.diff(data.messages.values, axis=1) * (1 + carried) * item + np.diff(data.probes.values, axis=1) * 64
    assert np.array_equal(data.bytes.values[:, 1:], np.cumsum(sent, axis=1))
    assert not data.bytes.values[:, 0].any()


def test_a_walk_that_learns_nothing_has_no_bytes():
    assert "bytes" not in fw.walk(KERNEL, steps=10).data

"""Modules of PyTorch between peers: what their nodes learn from, and what is refused."""

import sys
from pathlib import Path

import numpy as np
import pytest
from networks import play

import freewalk as fw
from freewalk.errors import PeerError
from freewalk.peers.network.init import Network, init
from freewalk.specs import load
from freewalk.torch import Optimizer

SPEC = """
[graph]
kind = "ring"
n = 6
[problem]
kind = "torch"
model = { kind = "MODEL" }
data = { kind = "wine" }
batch = 5
[run]
steps = 40
walks = 2
every = 20
[[walk]]
design = { kind = "Metropolis", power = 0 }
rule = { RULE }
"""
NETS = """
import torch

def dropping(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.Dropout(0.5))

def normed(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.BatchNorm1d(outputs))
"""


def made(folder: Path, model: str = "softmax", rule: str = 'kind = "SGD", step = 0.1') -> Network:
    (folder / "nets_of_peers.py").write_text(NETS)
    (folder / "my.toml").write_text(SPEC.replace("MODEL", model).replace("RULE", rule))
    return init(folder / "my.toml", folder / "net", plain=True)


def test_nodes_make_their_share_from_the_spec(tmp_path: Path) -> None:
    network = made(tmp_path)
    problem = network.plan.problem
    (first, second) = network.vectors()
    assert first["x"].dtype == np.float32
    assert network.config(0).run.precision == "float32"
    again = load(tmp_path / "my.toml").plan().problem.initial(2, 0)
    assert np.array_equal(first["x"], again)
    assert np.array_equal(second["x"], again)
    assert first["x"].any()
    share, mine = network.config(4).share(), problem.local(4)
    assert (share.node, share.samples, share.factor) == (4, mine.samples, mine.factor)
    assert np.array_equal(share.gradient(first["x"], [0, 1]), mine.gradient(first["x"], [0, 1]))
    assert share.objective.n == 1


@pytest.mark.parametrize(
    ("model", "rule", "words"),
    [
        ("nets_of_peers:dropping", 'kind = "SGD", step = 0.1', "draws its own random numbers"),
        ("nets_of_peers:normed", 'kind = "SGD", step = 0.1', "numbers that are not trained"),
        (
            "softmax",
            'kind = "Optimizer", factory = "Adam"',
            "'torch' only, .* Momentum .* or AdaGrad, whose state travels",
        ),
    ],
)
def test_what_peers_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, rule: str, words: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "nets_of_peers", raising=False)
    with pytest.raises(PeerError, match=words):
        made(tmp_path, model, rule)
    assert not (tmp_path / "net").exists()


def test_a_module_walks_between_peers(tmp_path: Path) -> None:
    """Minibatches are drawn alike: the nodes are the same, the models but for the rounding of single precision."""
    network = made(tmp_path)
    collected = play(network)
    task = network.task
    options = {"steps": task.start.steps, "walks": 2, "every": task.start.every, "seed": task.job.seed, "paths": 2}
    simulated = fw.learn(task.objective, task.kernel, task.rule, **options)
    assert collected.departures == ()
    assert np.array_equal(collected.record.data.path, simulated.data.path)
    np.testing.assert_allclose(collected.record.data.final, simulated.data.final, rtol=1e-4, atol=1e-5)
    assert float(collected.record.data.accuracy[:, -1].mean()) > float(collected.record.data.accuracy[:, 0].mean())


@pytest.mark.parametrize(("rule", "state"), [("Momentum", "velocity"), ("AdaGrad", "squares")])
def test_rules_that_are_named_instead_of_an_optimizer(tmp_path: Path, rule: str, state: str) -> None:
    """Their state travels with the token, between peers as in a simulation."""
    network = made(tmp_path, rule=f'kind = "{rule}", step = 1e-2')
    assert [set(vectors) for vectors in network.vectors()] == [{"x", state}] * 2
    collected = play(network)
    task = network.task
    options = {"steps": task.start.steps, "walks": 2, "every": task.start.every, "seed": task.job.seed}
    simulated = fw.learn(task.objective, task.kernel, task.rule, **options)
    np.testing.assert_allclose(collected.record.data.final, simulated.data.final, rtol=1e-3, atol=1e-4)
    assert float(collected.record.data.loss[:, -1].mean()) < float(collected.record.data.loss[:, 0].mean())


def test_momentum_is_that_of_pytorch(tmp_path: Path) -> None:
    """As the message says: on all nodes alike, which the weights of a uniform target are."""
    task = made(tmp_path, rule='kind = "Momentum", step = 1e-2').task
    theirs = Optimizer("SGD", {"lr": 1e-2, "momentum": 0.9})
    options = {"steps": 40, "walks": 2, "every": 20, "seed": 3}
    finals = [fw.learn(task.objective, task.kernel, rule, **options).data.final for rule in (task.rule, theirs)]
    np.testing.assert_allclose(*finals, rtol=1e-3, atol=1e-4)

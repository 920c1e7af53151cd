"""Small modules and data on a small graph, which the tests of torch share."""

import numpy as np
import torch
from torch import nn

import freewalk as fw
from freewalk.torch import TorchObjective

GRAPH = fw.graphs.barabasi_albert(8, 2, seed=4)
SIZES = (1 + np.arange(GRAPH.n) * 7 % 5).tolist()  # 1 to 5 samples, different at every node
LOOP = fw.runtimes.Torch(vectorize=False)
BATCH = fw.runtimes.Torch(vectorize=True)


def half_square(outputs, targets):
    """The loss of `LeastSquares`."""
    return 0.5 * ((outputs.squeeze(-1) - targets) ** 2).mean()


def linear(dim, kind=torch.float64):
    """A linear prediction whose first model is zero."""
    module = nn.Linear(dim, 1, bias=False).to(kind)
    nn.init.zeros_(module.weight)
    return module


def by_node(features, targets, nodes, n=GRAPH.n):
    """Samples as one pair of tensors for each node; None where there are none."""
    parts = [np.flatnonzero(np.asarray(nodes) == node) for node in range(n)]
    return [(torch.as_tensor(features[part]), torch.as_tensor(targets[part])) if part.size else None for part in parts]


def classes(sizes=SIZES, dim=6, count=3, seed=0, kind=torch.float32, shape=None):
    """Data of a few classes for each node."""
    draws = np.random.default_rng(seed)
    found = []
    for size in sizes:
        targets = draws.integers(0, count, size)
        features = draws.standard_normal((size, dim)) + targets[:, None]
        inputs = torch.as_tensor(features, dtype=kind)
        found.append((inputs if shape is None else inputs.reshape(size, *shape), torch.as_tensor(targets)))
    return found


def uniform(graph=GRAPH):
    """A walk that visits all nodes alike: nothing has to be known of them."""
    return fw.designs.Metropolis().kernel(graph)


def objective_of(module, datasets=None, loss="cross_entropy", **options):
    """An objective whose importance takes no time."""
    datasets = classes() if datasets is None else datasets
    options.setdefault("importance", np.ones(len(datasets)))
    return TorchObjective(module, loss, datasets, **options)


def perceptron(dim=6, outputs=3, width=5, seed=0, kind=torch.float32):
    """A smooth one: derivatives of tanh do not jump, so that roundings stay what they are."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(dim, width), nn.Tanh(), nn.Linear(width, outputs)).to(kind)


def normed(dim=6, outputs=3, seed=0, **options):
    """One with a batch norm, that is, with buffers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(dim, 4), nn.BatchNorm1d(4, **options), nn.Linear(4, outputs))


def same(one, other, relative=1e-10, names=("loss", "consensus")):
    """Assert that two records tell the same: counts to the bit, numbers within rounding."""
    for name in ("visits", "messages", "probes", "bytes", "updates", "at"):
        np.testing.assert_array_equal(one.data[name], other.data[name], err_msg=name)
    for name in (*names, "final"):
        if name in one.data or name in other.data:
            scale = max(float(np.abs(other.data[name]).max()), 1e-12)
            np.testing.assert_allclose(one.data[name], other.data[name], rtol=0, atol=relative * scale, err_msg=name)


def identical(one, other):
    """Assert that two records hold the same bits."""
    assert set(one.data) == set(other.data)
    for name in one.data:
        np.testing.assert_array_equal(one.data[name], other.data[name], err_msg=name)


class Items:
    """A dataset that gives its samples one by one."""

    def __init__(self, inputs, targets, form=lambda values: values):
        self.inputs, self.targets, self.form = inputs, targets, form

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, place):
        return self.form(self.inputs[place]), self.targets[place]

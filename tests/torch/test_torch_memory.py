"""A large model walks with three copies: the module's own, the one that walks, and a gradient."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np
import torch
import freewalk as fw
from freewalk.torch import Optimizer, TorchObjective

torch.set_num_threads(1)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def learn(width, steps):
    module = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, width), torch.nn.Linear(width, 2))
    data = [(torch.randn(4, 4), torch.tensor([0, 1, 0, 1])) for _ in range(4)]
    objective = TorchObjective(module, "cross_entropy", data, importance=np.ones(4))
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(4))
    record = fw.learn(objective, kernel, fw.SGD(1e-3), steps=steps, every=steps)
    assert np.isfinite(record.data.loss).all()
    return 4 * objective.dim


learn(8, 3)  # whatever is compiled and imported
before = peak()
size = learn(4470, 3)
assert size > 4 * 2e7
print((peak() - before) / size)
"""


@pytest.mark.long
def test_a_model_of_twenty_million_parameters_takes_three_copies():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 3.2

"""How much memory a large module takes while it walks: python benchmarks/torch_memory.py [parameters, 1e8 by default]

The growth of the peak of resident memory, in copies of the model: one is the module itself, one the model that walks,
and one its gradient. A small module walks first, so that libraries and compiled code are not counted.
"""

import resource
import sys

import torch

import freewalk as fw
from freewalk.torch import TorchObjective

NODES, INPUTS = 4, 1000


def square(outputs, targets):
    """A loss that takes no memory of its own."""
    return (outputs**2).mean()


def peak():
    """The largest resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def walk(module, inputs):
    """Twenty steps of SGD on a ring."""
    samples = torch.randn(NODES, 2, inputs)
    objective = TorchObjective(module, square, [(own, torch.zeros(2)) for own in samples])
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(NODES))
    return fw.learn(objective, kernel, fw.SGD(step=0.1), steps=20, every=10)


def main():
    """Print the copies."""
    count = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8
    walk(torch.nn.Linear(10, 10), 10)
    before, copy = peak(), 4 * count
    module = torch.nn.Linear(INPUTS, count // INPUTS, bias=False)
    own = peak() - before
    record = walk(module, INPUTS)
    print(
        f"{count:,} parameters in float32, {copy / 1e6:,.0f} MB: the module {own / copy:.2f} copies, with the walk "
        f"{(peak() - before) / copy:.2f}; {record.provenance['seconds'] / 20:.2f} s per step"
    )


if __name__ == "__main__":
    main()

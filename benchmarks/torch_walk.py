"""What a walk costs around a step of PyTorch, and what running many walks in one batch gains.

    python benchmarks/torch_walk.py                 # on a processor
    python benchmarks/torch_walk.py --device cuda   # on a graphics card: 256 walks of the convolutional network too

Ratios within one run, each the median of several turns; machines differ, ratios less so.
"""

import argparse
import statistics
import time
import warnings

import numpy as np
import torch

import freewalk as fw
from freewalk.runtimes import Torch
from freewalk.torch import TorchObjective, models

NODES, BATCH = 100, 10


def objective(module):
    """A hundred nodes with 20 pictures each, drawn at random: what is computed does not depend on what is on them."""
    draws = np.random.default_rng(1)
    inputs = draws.standard_normal((NODES, 20, 64)).astype(np.float32)
    targets = draws.integers(0, 10, (NODES, 20))
    return TorchObjective(module, "cross_entropy", list(zip(inputs, targets, strict=True)), batch=BATCH)


def plain_step(module, device):
    """A function that makes so many steps of torch alone: the module, its loss, its gradient, SGD."""
    inputs, targets = torch.randn(64, BATCH, 64, device=device), torch.randint(0, 10, (64, BATCH), device=device)
    module = module.to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)

    def go(steps):
        for step in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(inputs[step % 64]), targets[step % 64]).backward()
            optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return go


def walk(problem, walks, vectorize, device):
    """A function that makes so many steps of a walk, with all that surrounds them."""
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3, power=0).kernel(fw.graphs.ring(NODES))
    runtime = Torch(device=device, vectorize=vectorize)

    def go(steps):
        fw.learn(problem, kernel, fw.SGD(step=0.01), steps=steps, every=steps, walks=walks, runtime=runtime)

    return go


def seconds_per_step(go, steps):
    """Seconds of one more step: a long run less a short one, so that what happens once is left out."""
    clock = time.perf_counter()
    go(1)
    short = time.perf_counter() - clock
    clock = time.perf_counter()
    go(steps + 1)
    return (time.perf_counter() - clock - short) / steps


def compare(first, second, turns):
    """By turns: the seconds of a step of one and of the other, and the median of their ratios."""
    first[0](5), second[0](5)
    turns = [(seconds_per_step(first[0], first[1]), seconds_per_step(second[0], second[1])) for _ in range(turns)]
    ratios = [one / other for one, other in turns]
    return *(statistics.median(column) for column in zip(*turns, strict=True)), statistics.median(ratios)


def main():
    """Print the ratios."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu")
    options.add_argument("--turns", type=int, default=7)
    given = options.parse_args()
    device, turns = given.device, given.turns
    warnings.simplefilter("ignore")
    networks = {"perceptron": models.perceptron(64, 10), "convolutional": models.convolutional((1, 8, 8), 10)}
    print(f"device {device}, {torch.get_num_threads()} threads, torch {torch.__version__}; batches of {BATCH} pictures")
    for name, module in networks.items():
        problem = objective(module)
        walked, alone, ratio = compare((walk(problem, 1, False, device), 400), (plain_step(module, device), 400), turns)
        print(
            f"{name:14} one walk {walked * 1e6:7.1f} µs per update, torch alone {alone * 1e6:7.1f} µs: "
            f"overhead {100 * (ratio - 1):+.1f} %"
        )
        for walks in (32, 256):
            loop, batch, ratio = compare(
                (walk(problem, walks, False, device), max(3, 640 // walks)),
                (walk(problem, walks, True, device), 100 if device == "cpu" else 2000),
                turns,
            )
            print(
                f"{name:14} {walks} walks, one after the other {loop / walks * 1e6:7.1f} µs per update, in one batch "
                f"{batch / walks * 1e6:7.2f} µs ({walks / batch:,.0f} updates/s): {ratio:.1f} times as fast"
            )


if __name__ == "__main__":
    main()

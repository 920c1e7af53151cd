"""Write an update rule of your own; it is compiled like the built-in ones.

`Clipped` is SGD that moves no coordinate by more than a bound, which keeps it stable at steps where plain SGD
diverges. Prints the error of both at a small and at a large step, and that the compiled run agrees with the
slow reference.
"""

from dataclasses import dataclass

import numpy as np

import freewalk as fw


@dataclass(frozen=True)
class Clipped(fw.Rule):
    """SGD whose steps move no coordinate by more than `most`."""

    step: float
    most: float = 0.02

    @staticmethod
    def update(visit, numbers, x, gradient):
        """The new value of one coordinate; parameters such as `most` arrive in `numbers`."""
        return x - min(max(visit.rate * visit.weight * gradient, -numbers.most), numbers.most)


graph = fw.graphs.grid(10, 10)
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, noise=0.1, seed=3)
kernel = fw.designs.Metropolis(power=0).kernel(graph)

for step in (1e-3, 1e-1):
    for rule in (fw.SGD(step), Clipped(step)):
        record = fw.learn(problem, kernel, rule, steps=5000, walks=100, every=5000, seed=1)
        lost = int(record.data.diverged.sum())
        error = f"{lost} of 100 walks diverged" if lost else f"error {float(record.data.mse[:, -1].mean()):.3f}"
        print(f"{type(rule).__name__:8s} step {step}: {error}")
print(f"best possible error {record.data.attrs['optimal_mse']:.3f}")

short = {"steps": 50, "walks": 2, "every": 50, "seed": 1}
fast = fw.learn(problem, kernel, Clipped(0.1), **short)
slow = fw.learn(problem, kernel, Clipped(0.1), **short, runtime="reference")
print("compiled and reference runs agree:", bool(np.allclose(fast.data.final, slow.data.final, rtol=1e-9)))

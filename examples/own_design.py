"""Write a design of your own, check that it samples what it claims, and let it learn.

`Strides` is a simple walk that takes several hops at once now and then. Prints, for the simple walk and for
strides on a ring, the distance of the stationary distribution from the stated target, the excess visits to
the heavy nodes, the messages per update, and the error after 5000 updates.
"""

from dataclasses import dataclass

import freewalk as fw


@dataclass(frozen=True)
class Strides(fw.Design):
    """Take `hops` simple steps at once with probability `far`, else one."""

    far: float = 0.5
    hops: int = 6

    def moves(self, graph, importance):
        """The table of moves; the probabilities add up to 1."""
        return [fw.Move(1 - self.far, hops=1), fw.Move(self.far, hops=self.hops)]

    def target(self, graph, importance):
        """The distribution that these moves sample: simple steps visit nodes in proportion to their degree."""
        return graph.degrees


graph = fw.graphs.ring(301)  # odd: on an even ring the simple walk is periodic
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, noise=0.1, seed=3)
for design in (fw.designs.SimpleWalk(), Strides()):
    kernel = design.kernel(graph)
    record = fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=5000, walks=200, every=5000, start=0, seed=1)
    print(design)
    print(f"  distance from target  {fw.analysis.distance_to_target(kernel):.1e}")
    print(f"  excess visits         {fw.analysis.excess_visits(kernel, problem.heavy):.0f}")
    print(f"  messages per update   {float(record.data.messages[:, -1].mean()) / 5000:.2f}")
    print(f"  error                 {float(record.data.mse[:, -1].mean()):.4f}")
print(f"best possible error     {record.data.attrs['optimal_mse']:.4f}")

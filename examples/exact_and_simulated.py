"""Compute a learning curve exactly and compare it with a simulation.

For least squares and SGD, `exact_curve` gives the mean over infinitely many walks. Prints both curves and by
how many standard errors of the simulation they differ; then the error at which the walk settles, divided into
bias and variance.
"""

import numpy as np

import freewalk as fw
from freewalk.analysis import exact_curve, steady_state

graph = fw.graphs.ring(100)
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, noise=0.1, seed=3)
kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
rule = fw.SGD(step=2e-3)
options = {"steps": 4000, "every": 500, "start": 0}

exact = exact_curve(problem, kernel, rule, **options).mse
record = fw.learn(problem, kernel, rule, **options, walks=4000, seed=1)
mean = record.data.mse.mean("walk")
error = record.data.mse.std("walk", ddof=1) / np.sqrt(record.data.sizes["walk"])

print("updates   exact  simulated  standard errors apart")
apart = abs(mean - exact) / error
for step in exact.step.values[1:]:
    at = {"step": step}
    print(f"{step:7d} {float(exact.sel(at)):7.4f} {float(mean.sel(at)):10.4f} {float(apart.sel(at)):22.1f}")
print(steady_state(problem, kernel, rule))

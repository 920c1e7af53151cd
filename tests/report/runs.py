"""A small run whose record tests draw, tabulate and put on pages."""

import freewalk as fw


def learned(design: fw.Design, step: float = 0.01, graph: fw.Graph | None = None, **options: int) -> fw.Record:
    graph = graph or fw.graphs.ring(20)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = design.kernel(graph, problem.smoothness)
    settings = {"steps": 1000, "walks": 5, "every": 50, "start": 0, "paths": 2} | options
    return fw.learn(problem, kernel, fw.SGD(step=step), **settings)

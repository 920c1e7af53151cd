"""Workers and machines that die: the record is the same."""

import numpy as np
import pytest
from processes import killing

import freewalk as fw

pytest.importorskip("ray")
GRAPH = fw.graphs.watts_strogatz(200, 4, 0.1, seed=1)
PROBLEM = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=5, heavy=2, seed=1)
KERNEL = fw.designs.MHLJ(0.1, 0.5, 3).kernel(GRAPH, PROBLEM.smoothness)


@pytest.mark.long
def test_workers_killed_in_the_middle():
    options = {"steps": 400_000, "walks": 60, "every": 20_000, "paths": 2, "seed": 6}
    expected = fw.learn(PROBLEM, KERNEL, fw.rules.Momentum(1e-3, 0.5), **options)
    with killing(3) as killed:
        record = fw.learn(
            PROBLEM, KERNEL, fw.rules.Momentum(1e-3, 0.5), runtime=fw.runtimes.Ray(tasks=3, cpus=1), **options
        )
    assert killed
    assert record.data.identical(expected.data)
    assert np.isfinite(record.data.loss).all()

"""Networks of real nodes for tests: in one process, or each node a process of its own."""

import asyncio
from contextlib import asynccontextmanager

import numpy as np

import freewalk as fw
from freewalk.peers.network.init import init
from freewalk.peers.node import process
from freewalk.peers.operator import collect
from freewalk.runtimes import Reference

SPEC = """
[graph]
{graph}

[problem]
{problem}

[[walk]]
label = "walk"
{walk}

[run]
steps = {steps}
walks = 1
every = {every}
seed = {seed}
start = 0
"""
RING = 'kind = "ring"\nn = 6'
LINEAR = 'kind = "LeastSquares"\ndim = 4\nheavy = 1'
METROPOLIS = 'design = { kind = "Metropolis", power = 1.0 }\nrule = { kind = "SGD", step = 3e-3 }'
MHLJ = 'design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 3 }\nrule = { kind = "SGD", step = 3e-3 }'

REMEMBERS = """design = { kind = "NonBacktracking", design = { kind = "Metropolis", power = 0.5 } }
rule = { kind = "SGD", step = 3e-3 }"""


def written(folder, graph=RING, problem=LINEAR, walk=MHLJ, steps=100, every=25, seed=3, **options):
    """The network of a spec, in a folder."""
    spec = folder / "spec.toml"
    spec.write_text(SPEC.format(graph=graph, problem=problem, walk=walk, steps=steps, every=every, seed=seed))
    return init(spec, folder / "net", **options)


def patient(network):
    """Let nodes wait for each other for a minute: a machine that is busy would count as a neighbour that is down."""
    for one in network.nodes:
        config = network.path(one.number)
        config.write_text(config.read_text().replace("patience = 3.0", "patience = 60.0"))
    assert network.config(0).times.patience == 60


@asynccontextmanager
async def nodes(network):
    """All nodes, in this process and this loop."""
    tasks = {one.number: asyncio.create_task(process.work(network.config(one.number))) for one in network.nodes}
    try:
        async with collect.operator_of(network) as operator:
            while None in (await operator.statuses(5.0)).values():
                for task in tasks.values():
                    if task.done():
                        await task
                await asyncio.sleep(0.05)
        yield tasks
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def played(network, run="first", patience=120):
    """Launch a run, see it through, and collect it."""
    async with nodes(network):
        await collect.launch(network, run)
        await collect.finished(network, run, patience)
        return await collect.collect(network, run)


def play(network, run="first"):
    """The same, from outside of a loop."""
    return asyncio.run(played(network, run))


def repeated(network, collected):
    """The same run by `reference`, given the departures."""
    task, rows = network.task, len(network.starts)
    job, (_, _, steps, every) = task.job, task.start
    options = {"steps": steps, "walks": 1, "every": every, "seed": job.seed, "start": 0, "paths": rows}
    runtime = Reference(departures=collected.departures)
    return fw.learn(task.objective, task.kernel, task.rule, tokens=job.tokens, runtime=runtime, **options)


def assert_same(collected, reference):
    """Path, models and measures of a run of peers are those of a simulation."""
    ours, theirs = collected.record.data, reference.data
    assert np.array_equal(ours.path, theirs.path)
    for name in ("final", "loss", "distance"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-12)
    assert np.array_equal(ours.visits, theirs.visits)

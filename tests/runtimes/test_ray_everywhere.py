"""One word more: `walk`, `learn`, `compare`, specs, commands and studies on Ray give what they give without."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import freewalk as fw
from freewalk import cli
from freewalk import paper as studies
from freewalk.runtimes.ray.shipment import pack, unpack
from freewalk.specs import parse

pytest.importorskip("ray")
SPEC = """
name = "small"
[graph]
kind = "ring"
n = 12
[problem]
kind = "LeastSquares"
dim = 2
heavy = 2
[run]
steps = 300
walks = 5
every = 50
RUNTIME
[[walk]]
label = "jumping"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "switching"
tokens = 2
exchange = { kind = "Meet" }
design = { kind = "Metropolis" }
rule = { kind = "Momentum", step = 1e-3, momentum = 0.5 }
"""


@pytest.mark.long
@pytest.mark.parametrize("runtime", ['"ray"', '{ kind = "Ray", inner = "cpu", tasks = 2, cpus = 1 }'])
def test_specs(runtime):
    found = parse(SPEC.replace("RUNTIME", f"runtime = {runtime}")).run()
    assert found.data.identical(parse(SPEC.replace("RUNTIME", "")).run().data)


@pytest.mark.long
def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC.replace("RUNTIME", ""))
    for out, *more in (("a",), ("b", "--runtime", "ray")):
        result = CliRunner().invoke(cli.app, ["run", "spec.toml", "--out", out, "--quiet", *more])
        assert result.exit_code == 0, result.output
    first, second = (fw.load(Path(out) / "record.npz") for out in "ab")
    assert first.data.identical(second.data)
    assert "Ray(" in second.provenance["parts"]["jumping"]["runtime"]


@pytest.mark.long
def test_comparisons():
    graph = fw.graphs.ring(12)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    methods = [fw.baselines.fedavg(0.01, local_steps=1), fw.baselines.multi_walk_sgd(0.01, tokens=2)]
    found = [fw.compare(problem, graph, methods, runtime=runtime) for runtime in ("cpu", "ray")]
    assert found[0].rows == found[1].rows
    assert found[0].record.data.identical(found[1].record.data)


@pytest.mark.long
def test_studies(tmp_path):
    made = [
        studies.reproduce(["4a"], "stated", tmp_path / str(runtime), quick=True, runtime=runtime)
        for runtime in (None, "ray")
    ]
    records = [fw.load(one.outcomes[0].folder / "record.npz") for one in made]
    assert records[0].data.identical(records[1].data)
    assert made[0].outcomes[0].verdicts == made[1].outcomes[0].verdicts


def test_arrays_are_sent_once():
    graph = fw.graphs.ring(900_000)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=10, seed=1)  # too large to be copied for the cache
    kernel = fw.designs.Metropolis().kernel(graph)
    engine = fw.runtimes.CPU(threads=1).engine(fw.runtimes.Job(problem, (fw.Phase(None, kernel, fw.SGD(0.1)),), 0))
    alone, whole = pack((graph, problem)), pack(engine)
    network = engine.walker.networks[kernel]
    derived = network.spans.nbytes + network.edges.nbytes + network.ratios.nbytes
    weights = 3 * 8 * graph.n  # of nodes, their target, and what a move is accepted by
    assert whole.bytes < alone.bytes + derived + weights + 20_000
    again = unpack(whole)
    assert (again.walker.networks[again.job.kernel].edges == network.edges).all()
    assert not again.learner.data[again.job.phases[0]].features.flags.writeable


def test_mapped_files_are_not_sent(tmp_path):
    whole = fw.graphs.ring(50_000)
    whole.save(tmp_path / "ring.graph")
    fw.objectives.LeastSquares.synthetic(whole.n, dim=3, seed=1).save(tmp_path / "samples.data")
    graph, problem = fw.graphs.read(tmp_path / "ring.graph"), fw.objectives.read(tmp_path / "samples.data")
    assert pack((graph, problem)).bytes < 10_000
    kernel = fw.designs.Metropolis().kernel(graph)
    runs = [
        fw.learn(problem, kernel, fw.SGD(1e-2), steps=100, walks=20, every=50, runtime=runtime)
        for runtime in ("cpu", fw.runtimes.Ray(tasks=2, cpus=1))
    ]
    assert runs[0].data.identical(runs[1].data)

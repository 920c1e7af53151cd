"""Calls of the whole public surface with wrong arguments: each must work or raise a FreewalkError, and soon.

    python tests/robustness/calls.py 5000 --seed 1
    python tests/robustness/calls.py 200 --only Momentum    # only functions with this in their names

One or two arguments of a call that works are exchanged for junk. The calls run in processes of their own, with 6 GB of
memory each; a process that dies or is silent for ten seconds counts as a crash or a hang of the call that it had begun.
A call with an unknown or missing argument is no part of this: Python itself refuses it. Designs, objectives, rules,
exchanges, partitioners and runtimes are taken from the catalogue of the contract tests, made and used.
"""

import argparse
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))

LIMIT = 10.0  # seconds that a call may take
MEMORY = 6 * 2**30
LARGEST = 2**28  # bytes of a file: some calls would fill the disk, and rightly
BATCH = 250
TORCH = os.environ.get("FREEWALK_TEST_TORCH") != "0" and find_spec("torch") is not None


class OwnError(Exception):
    """What a function of the user's raises: that is theirs, and comes through as it is."""


def fail(*arguments):
    """A function of the user's that does not work."""
    raise OwnError


def junk(random):
    """Something that a user may give by mistake, or an attacker on purpose."""
    import networkx
    import numpy as np
    from scipy.sparse import csr_array

    import freewalk as fw

    class Rude:
        def __repr__(self):
            raise RuntimeError("no words")

        def __float__(self):
            raise RuntimeError("no number")

        def __array__(self, *arguments, **options):
            raise RuntimeError("no array")

    class Endless:
        """Says that it has more entries than there is room for, and gives each."""

        def __len__(self):
            return 2**50

        def __getitem__(self, index):
            return index

    def lying(kind):
        """An object that says it is of a class, and has nothing of it."""
        return type("Liar", (), {"__class__": property(lambda self: kind)})()

    endless = [0]
    endless.append(endless)
    return random.choice(
        [
            None,
            True,
            "x",
            "",
            "0.5",
            "\0",
            "../../etc",
            b"bytes",
            -1,
            0,
            1,
            2,
            2.5,
            -0.5,
            1e308,
            1e-320,
            float("nan"),
            float("inf"),
            float("-inf"),
            10**30,
            -(10**30),
            2**63,
            2**31,
            1 + 2j,
            [],
            (),
            {},
            [1],
            [0, 1],
            [[1], [2, 3]],
            [1, "a"],
            [None],
            ["a", "b"],
            [0.5] * 6,
            [-1] * 6,
            [10**30],
            {"a": 1},
            {1, 2},
            range(3),
            object(),
            Rude(),
            int,
            lambda: None,
            fail,
            Path("missing/x"),
            np.array(3),
            np.float32(0.5),
            np.int8(-3),
            np.uint64(2**63 + 5),
            np.datetime64("2020-01-01"),
            np.zeros(0),
            np.zeros((2, 0)),
            np.ones(6),
            np.ones((6, 6)),
            np.eye(6),
            np.full(6, np.nan),
            np.array([1, 2, None], dtype=object),
            np.array(["a", "b"]),
            np.arange(6) + 1j,
            np.ma.masked_array(np.arange(1.0, 7.0), [0, 1, 0, 0, 0, 0]),
            np.arange(6, dtype=">i8"),
            csr_array(np.eye(6)),
            networkx.path_graph(3),
            fw.graphs.ring(5),
            fw.graphs.path(6),
            fw.designs.SimpleWalk(),
            fw.SGD(step=0.1),
            fw.schedules.Constant(1.0),
            fw.errors.FreewalkError,
            # What numpy makes of numbers, truths and texts.
            np.True_,
            np.False_,
            np.str_("x"),
            np.bytes_(b"x"),
            np.float16(0.5),
            np.longdouble(0.5),
            np.complex128(1j),
            np.timedelta64("NaT"),
            np.array(0.5),
            np.array(True),
            np.array("x"),
            np.array(None),
            np.array([], dtype=object),
            np.ones(1),
            np.ones(2),
            np.ones((2, 2), dtype=bool),
            np.ones((1, 1, 1)),
            np.matrix([[1.0, 2.0]]),
            np.zeros(2, dtype=[("a", "i4")]),
            np.array(["2020-01-01"], dtype="M8[D]"),
            np.broadcast_to(1.0, 2**45),
            np.broadcast_to(1.0, (2**30, 2**20)),
            csr_array((2, 3)),
            # What does not have the form that lists have.
            [[1], [2, 3], []],
            [[[1.0]], [2.0]],
            [np.ones(2), np.ones(3)],
            ["x", ["y"]],
            [[]],
            [{}],
            [np.True_],
            endless,
            (number for number in range(3)),
            {None: None},
            {(1, 2): [3]},
            {"x": np.ones(2)},
            # What is large.
            2**40,
            2**50,
            -(2**63),
            1e20,
            "x" * 10**5,
            range(2**50),
            [0] * 10**5,
            Endless(),
            # What is something else than it says, or looks like a number and is none.
            *(lying(kind) for kind in (bool, int, float, str, list, dict, np.ndarray, fw.Graph, fw.Kernel, fw.SGD)),
            *(lying(kind) for kind in (fw.objectives.LeastSquares, fw.designs.MHLJ, fw.runtimes.CPU, fw.Record)),
            *(lying(kind) for kind in (fw.exchanges.Meet, fw.schedules.Constant, Path)),
            Fraction(1, 3),
            Decimal("0.5"),
            Decimal("NaN"),
            "\ud800",
            "nan",
            memoryview(b"abc"),
            sys,
            type,
            NotImplemented,
            ...,
            slice(None),
        ]
    )


def plugged():
    """What the catalogue has examples of, by name: each made with the arguments of its first example, and used."""
    import catalogue

    import freewalk as fw

    ring, problem = fw.graphs.ring(6), catalogue.PROBLEMS["LeastSquares"]
    run = {"steps": 3, "runtime": "reference", "start": 0}

    def mixed(kernel, tokens):
        options = {**run, "tokens": tokens} if tokens < problem.n else {**run, "tokens": "nodes", "start": None}
        return lambda exchange: fw.learn(problem, kernel, fw.SGD(step=1e-3), exchange=exchange, **options)

    def taught(rule):
        return fw.learn(problem, catalogue.WALK, rule, **run)

    def walked(design):
        return design.kernel(ring, catalogue.importance_of(ring)).without_memory().matrix()

    labels = [0, 1, 0, 1, 0, 1]
    data = fw.data.Dataset([[0.0, 1.0, 2.0, 4.0, 3.0, 5.0]] * 6, labels, classes=("no", "yes"))
    pairs = [
        *((design, walked) for design in catalogue.designs_on(ring).values()),
        *((catalogue.PROBLEMS[name], lambda made: made.loss([0.0] * made.dim)) for name in catalogue.LISTED_PROBLEMS),
        *((rule, taught) for rule in (catalogue.LISTED_RULES | catalogue.MEMORY_RULES).values()),
        *((one, mixed(kernel, tokens)) for kernel, tokens, one in catalogue.EXCHANGES.values() if one is not None),
        *((one, lambda made: made.partition(data, 2)) for one in catalogue.PARTITIONERS.values()),
        *((examples[0], lambda made: made) for examples in catalogue.RUNTIMES.values()),
    ]
    calls = {}
    for example, use in pairs:
        kind = type(example)
        if kind.__module__ != "catalogue" and inspect.signature(kind).parameters:  # else there is nothing to exchange
            parameters = inspect.signature(kind).parameters.items()
            given = {name: getattr(example, name, parameter.default) for name, parameter in parameters}
            calls.setdefault(kind.__name__, (lambda kind=kind, use=use, **given: use(kind(**given)), given))
    return calls


def trained(folder):
    """What PyTorch is needed for, with arguments that work, by name."""
    import numpy as np
    import torch

    import freewalk as fw
    from freewalk import torch as trainable

    module = torch.nn.Linear(2, 2)
    data = [(torch.ones(3, 2), torch.tensor([0, 1, 0])), (torch.zeros(1, 2), torch.tensor([1]))]
    options = {"module": module, "loss": "cross_entropy", "datasets": data, "test": data[0], "batch": 2}
    options |= {"metrics": {"accuracy": trainable.accuracy}, "importance": np.ones(2), "weight_by": "node"}
    options |= {"relays": (), "graph": fw.graphs.path(2), "measure_on": 10, "redraw": False, "rising": ("accuracy",)}
    options |= {"primary": "loss", "heavy": (0,)}
    made = trainable.TorchObjective(**options)
    kernel = fw.designs.Metropolis().kernel(options["graph"])
    state, model = module.state_dict(), np.zeros(made.dim)
    saved = trainable.save_state(state, folder / "state.safetensors")
    sizes = {"inputs": 2, "outputs": 3, "seed": 1}
    calls = {
        "TorchObjective": (lambda **given: trainable.TorchObjective(**given).loss(model), options),
        "TorchObjective.estimate": (made.estimate, {"kind": "smoothness", "model": model}),
        "TorchObjective.gradient": (made.gradient, {"node": 0, "x": model, "sample": 0}),
        "TorchObjective.samples": (made.samples, {"node": 0}),
        "TorchObjective.local": (made.local, {"node": 0}),
        "TorchObjective.on": (made.on, {"features": np.ones((1, 2)), "targets": [0]}),
        "TorchObjective.save_model": (made.save_model, {"model": model, "path": folder / "model.safetensors"}),
        "Optimizer": (
            lambda **given: fw.learn(made, kernel, trainable.Optimizer(**given), steps=2),
            {"factory": "Adam", "options": {"lr": 0.1}, "state": "stays", "step": 0.1, "weighted": True}
            | {"local_steps": 1},
        ),
        "accuracy": (trainable.accuracy, {"outputs": torch.ones(3, 2), "targets": data[0][1]}),
        "save_state": (
            trainable.save_state,
            {"state": state, "path": folder / "again.safetensors", "metadata": {"a": "b"}},
        ),
        "load_state": (trainable.load_state, {"path": saved}),
        "softmax": (trainable.models.softmax, sizes),
        "perceptron": (trainable.models.perceptron, sizes | {"hidden": (4,)}),
        "convolutional": (
            trainable.models.convolutional,
            {"shape": (1, 8, 8), "outputs": 3, "channels": (2, 2), "dropout": 0.1, "seed": 1},
        ),
        "Torch, used": (
            lambda **given: fw.learn(made, kernel, fw.SGD(step=0.1), steps=2, runtime=fw.runtimes.Torch(**given)),
            {"device": "cpu", "vectorize": False},
        ),
    }
    for name in ("loss", "losses", "measure"):
        calls[f"TorchObjective.{name}"] = (getattr(made, name), {"x": model})
    for name in ("named", "state_dict", "module_with"):
        calls[f"TorchObjective.{name}"] = (getattr(made, name), {"model": model})
    return calls


def surface(folder):
    """Every public callable with arguments that work, by name."""
    import networkx
    import numpy as np

    import freewalk as fw
    from freewalk import (
        analysis,
        baselines,
        data,
        designs,
        exchanges,
        graphs,
        objectives,
        report,
        runtimes,
        schedules,
    )
    from freewalk import specs as experiment
    from freewalk.analysis import theory

    ring = graphs.ring(6)
    problem = objectives.LeastSquares.synthetic(6, dim=2, heavy=1, samples=2, seed=1)
    logistic = objectives.Logistic.synthetic(6, dim=2, heavy=1, seed=1, ridge=0.1)
    kernel = designs.MHLJ(0.1, 0.5, 2).kernel(ring, problem.smoothness)
    exact = designs.Metropolis(power=1).kernel(ring, problem.smoothness)
    one = objectives.LeastSquares.synthetic(6, dim=2, heavy=1, seed=1)
    rule = fw.SGD(step=1e-3)
    run = {"kernel": kernel, "steps": 6, "walks": 2, "every": 2, "start": 0, "seed": 1, "runtime": "reference"}
    run |= {"paths": 1, "progress": None, "tokens": 2}
    saved = {"checkpoint": folder / "checkpoint.npz", "checkpoint_every": 60.0}
    record = fw.learn(problem, rule=rule, **run)
    stopped = {**run, "steps": 60, "progress": lambda step, steps: signal.raise_signal(signal.SIGINT)}
    partial = fw.learn(problem, rule=rule, **stopped)
    assert partial.partial
    other = fw.learn(problem, exact, rule, steps=6, walks=2, every=2, runtime="reference")
    stay = designs.Stay().kernel(ring)
    file = record.save(folder / "good.npz")
    (folder / "edges.txt").write_text("0 1\n1 2\n")
    (folder / "samples.csv").write_text("v,a,y\n0,1.0,2.0\n1,2.0,3.0\n")
    found = fw.diagnose(ring, problem.smoothness, budget=1.0)
    series = report.Series("a", {"updates": [0.0, 1.0]}, [1.0, 2.0])
    shown = {"measure": "loss", "axes": ["updates", "messages"]}
    (folder / "spec.toml").write_text(experiment.shipped("example.toml").read_text())
    small = experiment.shipped("sweep.toml").read_text().replace("walks = 20", 'walks = 2\nruntime = "reference"')
    (folder / "small.toml").write_text(small)
    swept = fw.sweep(folder / "small.toml", {"problem.noise": [0.1, 0.2], "run.steps": [4, 6]}, folder=folder / "swept")
    features, targets, nodes = np.arange(12.0).reshape(6, 2) + np.eye(6, 2), np.arange(6.0), np.arange(6)
    samples = {"features": features, "targets": targets, "nodes": nodes, "ridge": 0.1, "heavy": (1,)}
    samples |= {"weight_by": "node", "relays": (), "graph": ring}
    drawn = {"n": 6, "dim": 2, "heavy": 1, "heavy_probability": None, "adjacent": True, "light_variance": 1.0}
    drawn |= {"heavy_variance": 10.0, "constant": False, "distance": 1.0, "shift": 0.0}
    drawn |= {"shifted": "heavy", "samples": 1, "ridge": 0.0, "seed": 1}
    compared = fw.compare(one, ring, [baselines.fedavg(0.1)], goal=2.0, walks=2, most=1000, runtime="reference")
    curve = {"problem": problem, "kernel": kernel, "rule": rule, "steps": 6, "every": 2, "start": 0, "progress": None}
    labelled = data.Dataset(features, [0, 1, 0, 1, 0, 1], classes=("no", "yes"))
    halves = data.IID().partition(labelled, 2)
    shared = {"data": labelled, "n": 2, "seed": 1}
    evaluated = fw.evaluate(record, problem, per_node=True)
    calls = {
        "Dataset": (
            data.Dataset,
            {"features": features, "targets": nodes, "name": "a", "classes": tuple("abcdef"), "shape": (1, 1, 2)},
        ),
        "Dataset.source": (data.Dataset, {"features": features, "targets": targets, "source": "a", "licence": "b"}),
        "Dataset.take": (labelled.take, {"indices": [0, 1]}),
        "Dataset.split": (labelled.split, {"test": 0.5, "seed": 1}),
        "Dataset.standardized": (labelled.standardized, {"by": labelled, "targets": False}),
        "Dataset.by_node": (labelled.by_node, {"partition": halves}),
        "Partition": (
            data.Partition,
            {"nodes": nodes, "n": 6, "targets": nodes, "classes": tuple("abcdef"), "made_by": "a"},
        ),
        "Partition.samples": (halves.samples, {"node": 1}),
        "IID.partition": (data.IID().partition, shared),
        "Dirichlet.partition": (data.Dirichlet(0.5).partition, shared),
        "Quantity.partition": (data.Quantity(0.5).partition, shared),
        "Shards.partition": (data.Shards().partition, shared),
        "FeatureShift.partition": (data.FeatureShift().partition, shared),
        "evaluate": (
            fw.evaluate,
            {"model": record, "objective": problem, "per_node": True, "dataset": (features[:2], [0.0, 1.0])},
        ),
        "evaluation_table": (report.evaluation_table, {"found": evaluated}),
        "node_losses": (report.node_losses, {"found": evaluated, "path": folder / "n.png"}),
        "partition_figure": (report.partition_figure, {"partition": halves, "path": folder / "f.png"}),
        "graphs.topology": (graphs.topology, {"name": "topozoo/Abilene"}),
        "graphs.topologies": (graphs.topologies, {"collection": "sndlib"}),
        "graphs.ring": (graphs.ring, {"n": 6}),
        "graphs.path": (graphs.path, {"n": 6}),
        "graphs.grid": (graphs.grid, {"rows": 2, "cols": 3}),
        "graphs.complete": (graphs.complete, {"n": 6}),
        "graphs.star": (graphs.star, {"n": 6}),
        "graphs.erdos_renyi": (graphs.erdos_renyi, {"n": 6, "p": 0.9, "seed": 1}),
        "graphs.watts_strogatz": (graphs.watts_strogatz, {"n": 6, "k": 4, "p": 0.1, "seed": 1}),
        "graphs.barabasi_albert": (graphs.barabasi_albert, {"n": 6, "m": 2, "seed": 1}),
        "graphs.from_networkx": (graphs.from_networkx, {"graph": networkx.path_graph("abc")}),
        "graphs.from_edges": (graphs.from_edges, {"edges": [(0, 1), (1, 2)], "n": 3, "names": None}),
        "graphs.from_scipy": (graphs.from_scipy, {"matrix": ring.adjacency()}),
        "graphs.read": (graphs.read, {"path": folder / "edges.txt", "verify": True}),
        "graphs.read, mapped": (graphs.read, {"path": ring.save(folder / "ring.graph"), "verify": True}),
        "Graph.save": (ring.save, {"path": folder / "new.graph"}),
        "Graph": (
            graphs.Graph,
            {"indptr": ring.indptr, "indices": ring.indices, "name": "g", "node_names": None, "positions": None},
        ),
        "Graph.neighbours": (ring.neighbours, {"node": 1}),
        "Graph.node": (ring.node, {"name": 1}),
        "Graph.distances": (ring.distances, {"nodes": [0]}),
        "Metropolis": (designs.Metropolis, {"power": 1.0, "target": None, "proposal": None}),
        "FromMatrix": (designs.FromMatrix, {"P": kernel.matrix(), "target": None}),
        "Metropolis(target).kernel": (
            lambda target: designs.Metropolis(target=target).kernel(ring),
            {"target": [1] * 6},
        ),
        "FromMatrix(target).kernel": (
            lambda P, target: designs.FromMatrix(P, target=target).kernel(ring),
            {"P": exact.matrix(), "target": [1] * 6},
        ),
        "Metropolis(proposal).kernel": (
            lambda proposal: designs.Metropolis(proposal=proposal).kernel(ring),
            {"proposal": exact.matrix()},
        ),
        "Design.kernel": (
            designs.MHLJ(0.1, 0.5, 3).kernel,
            {"graph": ring, "importance": problem.smoothness, "label": "a"},
        ),
        "Move": (fw.Move, {"probability": 0.5, "hops": 1, "ratio": None, "rows": None, "law": None}),
        "Kernel": (
            fw.Kernel,
            {"graph": ring, "moves": [fw.Move(1.0)], "target": [1] * 6, "label": "a", "fade": None, "biased": True},
        ),
        "Kernel.at": (kernel.at, {"step": 3}),
        "Kernel.matrix": (kernel.matrix, {"step": 3}),
        "Kernel.local": (kernel.local, {"node": 3}),
        "Kernel.probabilities": (kernel.probabilities, {"steps": [0, 1]}),
        "Constant": (schedules.Constant, {"value": 0.1}),
        "Inverse": (schedules.Inverse, {"initial": 0.1, "scale": 10.0, "power": 1.0}),
        "Exponential": (schedules.Exponential, {"initial": 0.1, "half_life": 10.0}),
        "Gossip": (
            lambda matrix, every: fw.learn(
                problem,
                stay,
                rule,
                steps=3,
                tokens="nodes",
                exchange=exchanges.Gossip(matrix, every),
                runtime="reference",
            ),
            {"matrix": exchanges.Gossip().on(ring), "every": 1},
        ),
        "Gossip.on": (exchanges.Gossip().on, {"graph": ring}),
        "Method": (
            baselines.Method,
            {"label": "a", "design": designs.Stay(), "rule": rule, "tokens": "nodes", "exchange": exchanges.Meet()},
        ),
        "centralized_sgd": (baselines.centralized_sgd, {"step": 0.1, "sampling": "uniform", "sampled": False}),
        "decentralized_sgd": (
            baselines.decentralized_sgd,
            {"step": 0.1, "matrix": None, "every": 1, "combine_first": False, "sampled": False},
        ),
        "gradient_tracking": (baselines.gradient_tracking, {"step": 0.1, "matrix": None}),
        "fedavg": (baselines.fedavg, {"step": 0.1, "local_steps": 2, "sampled": False}),
        "minibatch_sgd": (
            baselines.minibatch_sgd,
            {"step": 0.1, "batch": 2, "sampling": "partial", "sampled": False},
        ),
        "multi_walk_sgd": (
            baselines.multi_walk_sgd,
            {"step": 0.1, "tokens": 2, "design": None, "meet": True, "sampled": False},
        ),
        "compare": (
            fw.compare,
            {
                "problem": one,
                "graph": ring,
                "contestants": [baselines.fedavg(0.1)],
                "goal": 2.0,
                "walks": 2,
                "seed": 1,
                "most": 1000,
                "start": None,
                "initial": None,
                "keep_steps": True,
                "budget": None,
                "runtime": "reference",
                "precision": "float64",
                "progress": None,
            },
        ),
        "Phase": (
            lambda until, kernel, rule, exchange: fw.learn(
                problem, [fw.Phase(until, kernel, rule, exchange)], steps=3, tokens=2, runtime="reference"
            ),
            {"until": 5, "kernel": kernel, "rule": rule, "exchange": exchanges.Meet()},
        ),
        "CUDA": (runtimes.CUDA, dict.fromkeys(inspect.signature(runtimes.CUDA).parameters)),
        "Logistic": (objectives.Logistic, samples | {"targets": np.array([0, 1, 0, 1, 0, 1])}),
        "LeastSquares.synthetic": (objectives.LeastSquares.synthetic, drawn | {"noise": 0.1}),
        "Logistic.synthetic": (objectives.Logistic.synthetic, drawn),
        "LeastSquares.synthetic, to a file": (
            objectives.LeastSquares.synthetic,
            drawn | {"noise": 0.1, "path": folder / "drawn.data"},
        ),
        "LeastSquares.save": (problem.save, {"path": folder / "new.data"}),
        "objectives.read": (
            objectives.read,
            {"path": problem.save(folder / "good.data"), "verify": True, "types": ()},
        ),
        "LeastSquares.loss": (problem.loss, {"x": [0.0, 1.0]}),
        "LeastSquares.mse": (problem.mse, {"x": [0.0, 1.0]}),
        "LeastSquares.gradient": (problem.gradient, {"node": 1, "x": [0.0, 1.0], "sample": 0}),
        "LeastSquares.samples": (problem.samples, {"node": 1}),
        "LeastSquares.local": (problem.local, {"node": 1}),
        "LeastSquares.proximal": (problem.proximal, {"node": 1, "point": [0.0, 1.0], "penalty": 1.0}),
        "Logistic.loss": (logistic.loss, {"x": [0.0, 1.0]}),
        "learn": (
            fw.learn,
            {
                "objective": problem,
                "rule": rule,
                "initial": [0.0, 0.0],
                "precision": "float64",
                "exchange": None,
                "goal": {"loss": 0.1},
                **run,
                **saved,
            },
        ),
        "walk": (fw.walk, run | saved),
        "resume": (
            fw.resume,
            {
                "record": partial,
                "runtime": None,
                "types": (),
                "progress": None,
                "objective": problem,
                "rule": rule,
                "files": (),
                **saved,
            },
        ),
        "load": (fw.load, {"path": file}),
        "concat": (fw.concat, {"records": [record, other], "labels": ["a", "b"], "pad": False}),
        "Record.save": (record.save, {"path": folder / "new.npz"}),
        "diagnose": (
            fw.diagnose,
            {
                "graph": ring,
                "importance": problem.smoothness,
                "start": 0,
                "dim": 2,
                "samples": 1,
                "equal": False,
                "designs": None,
                "budget": 2.0,
                "progress": None,
            },
        ),
        "Diagnosis.text": (found.text, {"width": 80}),
        "Diagnosis.times_uniform": (found.times_uniform, {"label": next(iter(found.forecasts))}),
        "Comparison.text": (compared.text, {"width": 80}),
        "Comparison.page": (compared.page, {"path": folder / "compared.html", "title": "a"}),
        "Comparison.save": (compared.save, {"folder": folder / "compared", "title": "a"}),
        "LeastSquares.losses": (problem.losses, {"x": [0.0, 1.0]}),
        "LeastSquares.measure": (problem.measure, {"x": [0.0, 1.0]}),
        "LeastSquares.on": (problem.on, {"features": [[0.0, 1.0]], "targets": [1.0]}),
        "Logistic.assess": (logistic.assess, {"x": [0.0, 1.0]}),
        "Logistic.gradient": (logistic.gradient, {"node": 1, "x": [0.0, 1.0], "sample": 0}),
        "exact_curve": (analysis.exact_curve, curve | {"initial": [0.0, 0.0], "tokens": 2, "exchange": None}),
        "find_traps": (analysis.find_traps, {"kernel": exact, "factor": 10.0, "least": None, "most": 10}),
        "escape_time": (analysis.escape_time, {"kernel": exact, "nodes": [0], "start": 0}),
        "excess_visits": (analysis.excess_visits, {"kernel": exact, "nodes": [0]}),
        "matched_steps": (
            analysis.matched_steps,
            {"problem": one, "first": exact, "second": kernel, "fraction": 0.5, "rule": None, "limit": None},
        ),
        "mixing_time": (analysis.mixing_time, {"kernel": exact, "tolerance": 0.1}),
        "race": (
            analysis.race,
            {"problem": one, "kernel": exact, "settle": 0.1, "reach": 0.2, "start": 0, "initial": None, "most": 1000},
        ),
        "small_step_law": (analysis.small_step_law, {"problem": one, "kernel": exact, "rule": fw.SGD(step=1e-5)}),
        "stability_limit": (analysis.stability_limit, {"problem": one, "kernel": exact, "rule": None}),
        "steady_state": (
            analysis.steady_state,
            {"problem": one, "kernel": exact, "rule": rule, "initial": None, "tokens": 2, "exchange": None},
        ),
        "curves": (
            report.curves,
            {"record": record, "path": folder / "a.png", "scale": "auto", "band": "confidence", **shown},
        ),
        "sweep": (
            lambda **given: fw.sweep(folder=folder / "swept", **given),
            {"spec": folder / "small.toml", "over": {"run.seed": [1]}, "on": "threads", "workers": 1, "walks": "all"}
            | {"address": None, "progress": None},
        ),
        "sweep_lines": (report.sweep_lines, {"data": swept, "path": folder / "l.png", "measure": None, "x": None}),
        "sweep_curves": (report.sweep_curves, {"data": swept, "path": folder / "m.png", "measure": None, "x": None}),
        "sweep_map": (
            report.sweep_map,
            {"data": swept, "path": folder / "n.png", "measure": None, "x": None, "y": None},
        ),
        "escape": (report.escape, {"record": record, "path": folder / "b.png", "designs": None, "updates": 3}),
        "occupancy": (report.occupancy, {"record": record, "path": folder / "c.png", "around": 2}),
        "section_of": (report.section_of, {"record": record, "graph": None, "title": "a", "text": ("b",), **shown}),
        "summarize": (report.summarize, {"record": record, "goal": 0.1, **shown}),
        "table": (report.table, {"record": record, "goal": 0.1, **shown}),
        "text": (report.text, {"record": record, "width": 100, **shown}),
        "diagnosis_figure": (report.diagnosis_figure, {"found": found, "path": folder / "e.png"}),
        "Page": (report.Page, {"title": "a", "sections": [report.section_of(record)], "intro": ["b"]}),
        "Section": (report.Section, {"title": "a", "text": ["b"], "charts": [], "verdicts": [], "tables": []}),
        "Chart": (report.Chart, {"title": "a", "series": [series], "y_label": "b", "x_log": False, "lines": {}}),
        "Series": (
            report.Series,
            {"label": "a", "x": {"updates": [0.0, 1.0]}, "y": [1.0, 2.0], "low": None, "high": None},
        ),
        "Table": (report.Table, {"head": ["a"], "rows": [["1"]], "caption": "b"}),
        "Verdict": (report.Verdict, {"claim": "a", "outcome": "pass", "measured": "1", "comment": "", "quote": ""}),
        "Walks": (
            report.Walks,
            {"graph": ring, "heavy": [0], "importance": np.ones(6), "paths": {}, "visits": {"a": np.ones(6)}},
        ),
        "write_page": (
            report.write_page,
            {"page": report.Page("a", [report.section_of(record)]), "path": folder / "d.html"},
        ),
        "experiment.read_samples": (
            experiment.read_samples,
            {"path": folder / "samples.csv", "target": "y", "node": "v", "features": ["a"]},
        ),
        "experiment.shipped": (experiment.shipped, {"name": "demo.toml"}),
        "experiment.load": (experiment.load, {"path": folder / "spec.toml"}),
        "experiment.parse": (experiment.parse, {"text": (folder / "spec.toml").read_text(), "source": "spec"}),
    }
    for name in ("distance_to_target", "fundamental_matrix", "kemeny_constant", "messages_per_visit", "period"):
        calls[name] = (getattr(analysis, name), {"kernel": exact})
    for name in ("second_eigenvalue", "sojourn_times", "spectral_gap", "stationary", "hitting_times"):
        calls[name] = (getattr(analysis, name), {"kernel": exact})
    good = {"problem": one, "kernel": kernel, "step": 1e-3, "steps": 4, "start": 0, "length": 5, "longest": 5}
    good |= {"importance": one.smoothness, "initial": None, "mixing": 10.0, "exact": None}
    for name in theory.__all__:
        function = getattr(theory, name)
        if inspect.isfunction(function):
            calls[f"theory.{name}"] = (function, {one: good[one] for one in inspect.signature(function).parameters})
    return {**plugged(), **calls, **(trained(folder) if TORCH else {})}


#: What is public and takes no arguments of a user, or is the outcome of something else.
OUTCOMES = {
    "FreewalkError",
    "Design",
    "Exchange",
    "Objective",
    "Predictor",
    "Rule",
    "Record",
    "Row",
    "RunFolder",
    "Spec",
}
OUTCOMES |= {
    "Diagnosis",
    "MatchedSteps",
    "MixingTime",
    "Race",
    "SmallStepLaw",
    "SteadyState",
    "Trap",
}
OUTCOMES |= {"AccumulatedError", "Assumptions", "BiasIdentity", "Contraction", "ErrorBound", "ImportanceRates"}
OUTCOMES |= {"Partitioner"}
OUTCOMES |= {"Overhead", "SmallestConstants", "Terms"}


def missing(calls):
    """The public names that no call covers."""
    import freewalk as fw
    from freewalk import (
        analysis,
        baselines,
        data,
        designs,
        exchanges,
        graphs,
        objectives,
        report,
        rules,
        runtimes,
        schedules,
    )
    from freewalk import specs as experiment

    modules = (fw, analysis, analysis.theory, baselines, designs, exchanges, experiment, graphs, objectives, report)
    modules = (*modules, rules, runtimes, data)
    things = {name: getattr(module, name) for module in (*modules, schedules) for name in module.__all__}
    public = {name for name, thing in things.items() if callable(thing) and name not in OUTCOMES}
    given = {name for name in public if inspect.signature(things[name]).parameters}
    return given - {name.rpartition(".")[2] for name in calls}


def work(first, last, seed, only=""):
    """Make the calls of some numbers, and tell about each before and after it, a line of JSON each time."""
    import random as randomness

    import freewalk as fw

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        calls = {call: made for call, made in surface(Path(name)).items() if only in call}
        for number in range(first, last):
            random = randomness.Random(f"{seed}/{number}")
            call = sorted(calls)[number % len(calls)]
            function, good = calls[call]
            chosen = random.sample(sorted(good), min(len(good), random.choice([1, 1, 1, 2])))
            given = {**good, **{parameter: junk(random) for parameter in chosen}}
            print(json.dumps({"number": number, "call": call, "chosen": chosen}), flush=True)
            shown = {parameter: fw.checks.show(given[parameter]) for parameter in chosen}
            try:
                function(**given)
                outcome, said = "works", ""
            except OwnError:
                outcome, said = "works", ""
            except fw.FreewalkError as error:
                outcome, said = "refused", str(error)
            except BaseException as error:
                outcome, said = "wrong", f"{type(error).__name__}: {error}"
            print(json.dumps({"outcome": outcome, "said": said[:2000], "given": shown}), flush=True)


def run(first, last, seed, script=__file__, only=""):
    """The outcome of each call: works, refused, wrong, crash or hang."""
    found = []
    while first < last:
        command = [sys.executable, script, "--work", str(first), str(min(last, first + BATCH)), "--seed", str(seed)]
        command += ["--only", only] if only else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        begun, timer = None, None
        slow = threading.Event()

        def kill(process=process, slow=slow):
            slow.set()
            process.kill()

        for line in process.stdout:
            if timer is not None:
                timer.cancel()
            told = json.loads(line)
            if "number" in told:
                begun = told
                timer = threading.Timer(LIMIT, kill)
                timer.start()
            else:
                found.append({**begun, **told})
                begun = None
        if timer is not None:
            timer.cancel()
        process.wait()
        process.stdout.close()
        if begun is not None:
            found.append({**begun, "outcome": "hang" if slow.is_set() else "crash", "said": "", "given": {}})
        elif process.returncode:
            raise RuntimeError(f"the process that makes the calls ended with {process.returncode}")
        first = found[-1]["number"] + 1
    return found


def asked_for(about, work, script=__file__):
    """What the command line asks for, done: the outcomes, or nothing in a process that only works for another."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=int, nargs=2)
    if "only" in inspect.signature(work).parameters:
        parser.add_argument("--only", default="", help="only functions with this in their names")
    options = parser.parse_args()
    only = (options.only,) if "only" in options else ()
    if options.work:
        work(*options.work, options.seed, *only)
        sys.exit()
    return run(options.first, options.first + options.count, options.seed, script, *only)


def main():
    """Make the calls, and print what went wrong."""
    found = asked_for(__doc__, work)
    for one in found:
        if one["outcome"] not in ("works", "refused"):
            print(one["number"], one["outcome"], one["call"], one["given"] or one["chosen"], one["said"][:300])
    counts = Counter(one["outcome"] for one in found)
    calls = len({one["call"] for one in found})
    print(f"{len(found)} calls of {calls} functions:", ", ".join(f"{n} {name}" for name, n in counts.most_common()))
    long = max((len(one["said"]) for one in found if one["outcome"] == "refused"), default=0)
    print(f"the longest message has {long} letters")
    sys.exit(any(name not in ("works", "refused") for name in counts))


if __name__ == "__main__":
    main()

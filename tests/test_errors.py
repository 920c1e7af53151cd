"""Bad input gets a clear error where it enters: who objects, what it got, what it expected."""

import re
import tomllib
from pathlib import Path

import networkx
import numpy as np
import pytest
from scipy.sparse import csr_array

import freewalk as fw
from freewalk import errors

ROOT = Path(__file__).parents[1]
NAN, INF = float("nan"), float("inf")
GRAPH = fw.graphs.ring(6)
PROBLEM = fw.objectives.LeastSquares.synthetic(6, 2, seed=1)
KERNEL = fw.designs.SimpleWalk().kernel(GRAPH)
OTHER = fw.designs.SimpleWalk().kernel(fw.graphs.path(6))
RULE = fw.SGD(0.01)
ONES = np.ones(6)


def learn(**changes):
    arguments = {"problem": PROBLEM, "kernel": KERNEL, "rule": RULE, "steps": 4, "runtime": "reference"} | changes
    return lambda: fw.learn(**arguments)


def walk(**changes):
    return lambda: fw.walk(**({"kernel": KERNEL, "steps": 4, "runtime": "reference"} | changes))


def phases(*untils, rule=RULE, steps=10):
    return learn(kernel=[fw.Phase(until, KERNEL, rule) for until in untils], rule=None, steps=steps)


def data(features=((1.0,), (2.0,)), targets=(1.0, 2.0), **options):
    return lambda: fw.objectives.LeastSquares(features, targets, **options)


def synthetic(**options):
    return lambda: fw.objectives.LeastSquares.synthetic(**({"n": 6, "dim": 2} | options))


def matrix(rows):
    return lambda: fw.designs.FromMatrix(rows).kernel(GRAPH)


def kernel(*moves, target=ONES):
    return lambda: fw.Kernel(GRAPH, list(moves), target, label="mine")


def graph(generator, *arguments, **options):
    return lambda: getattr(fw.graphs, generator)(*arguments, **options)


def leaving():
    rows = np.eye(6) / 2
    rows[0, 3] = 0.5
    return rows + np.diag([0, 0.5, 0.5, 0.5, 0.5, 0.5])


# Who objects or what is wrong must be named at the start of the message, then what was got.
CASES = {
    # Numbers of a run
    "steps 0": (learn(steps=0), r"^run: steps = 0, expected a whole number >= 1"),
    "steps negative": (learn(steps=-5), r"^run: steps = -5, expected"),
    "steps a float": (learn(steps=10.0), r"^run: steps = 10\.0, expected"),
    "steps NaN": (learn(steps=NAN), r"^run: steps = nan, expected"),
    "steps infinite": (walk(steps=INF), r"^run: steps = inf, expected"),
    "steps text": (learn(steps="10"), r"^run: steps = '10', expected"),
    "steps missing": (walk(steps=None), r"^run: steps = None, expected"),
    "steps a truth value": (learn(steps=True), r"^run: steps = True, expected"),
    "every 0": (learn(every=0), r"^run: every = 0, expected a whole number >= 1"),
    "every a float": (walk(every=0.5), r"^run: every = 0\.5, expected"),
    "walks 0": (learn(walks=0), r"^learn: walks = 0, expected a whole number >= 1"),
    "walks a float": (walk(walks=2.5), r"^walk: walks = 2\.5, expected"),
    "walks a list": (learn(walks=[3]), r"^learn: walks = \[3\], expected"),
    # Seeds
    "seed negative": (learn(seed=-1), r"^learn: seed = -1, expected a whole number from 0 to 2\^64 - 1$"),
    "seed too large": (walk(seed=2**64), r"^walk: seed = 18446744073709551616, expected"),
    "seed a float": (learn(seed=1.0), r"^learn: seed = 1\.0, expected"),
    "seed a numpy float": (learn(seed=np.float32(1)), r"^learn: seed = (np\.float32\()?1\.0\)?, expected"),
    "seed missing": (learn(seed=None), r"^learn: seed = None, expected"),
    "seed text": (walk(seed="abc"), r"^walk: seed = 'abc', expected"),
    "seed of data text": (synthetic(seed="abc"), r"^LeastSquares\.synthetic: seed = 'abc', expected"),
    "seed of a graph negative": (graph("erdos_renyi", 10, 0.9, seed=-1), r"^erdos_renyi: seed = -1, expected"),
    # Starts
    "start beyond the graph": (
        learn(start=6),
        r"^run: start = 6, expected a whole number from 0 to 5; give a node, 'uniform' or 'heaviest'$",
    ),
    "start negative": (walk(start=-1), r"^run: start = -1, expected a whole number from 0 to 5; give a node"),
    "start a float": (learn(start=1.0), r"^run: start = 1\.0, expected a whole number from 0 to 5; give a node"),
    "start floats": (
        walk(start=[0.5, 1], walks=2),
        r"^run: start is an array of float64, expected whole numbers; give",
    ),
    "start of another length": (
        walk(start=[0, 1], walks=3),
        r"^run: start has shape \(2,\), expected a node, a list with one for each of the 3 walks, 'uniform' or",
    ),
    "start of several rows": (
        walk(start=[[0, 1], [2, 3]], walks=4),
        r"^run: start has shape \(2, 2\), expected .*4 walks",
    ),
    "start of unequal rows": (
        walk(start=[[0], [0, 1]], walks=2),
        r"^run: start cannot be read as an array of whole numbers \(its rows differ in length\); give a node",
    ),
    "start one outside": (
        walk(start=[0, 17], walks=2),
        r"^run: start holds 17, expected whole numbers from 0 to 5; give",
    ),
    "start nearly a word": (
        learn(start="heavy"),
        r"^run: start = 'heavy', expected a node, 'uniform' or 'heaviest'; did you mean 'heaviest'\?$",
    ),
    "start another word": (
        walk(start="Pazzi"),
        r"^run: start = 'Pazzi', expected a node, 'uniform' or 'heaviest'; ring\(6\) has no names$",
    ),
    # Initial models
    "initial of another size": (
        learn(initial=np.zeros(3)),
        r"^learn: initial has shape \(3,\), expected \(2,\) or, with one model per walk, \(1, 2\)$",
    ),
    "initial for other walks": (
        learn(initial=np.zeros((3, 2)), walks=2),
        r"^learn: initial has shape \(3, 2\), expected \(2,\) or, .*, \(2, 2\)$",
    ),
    "initial a number": (learn(initial=0.0), r"^learn: initial has shape \(\), expected \(2,\)"),
    "initial NaN": (learn(initial=[0.0, NAN]), r"^learn: initial\[1\] = nan, expected a finite number$"),
    "initial infinite": (learn(initial=[INF, 0.0]), r"^learn: initial\[0\] = inf, expected a finite number$"),
    "initial beyond float32": (
        learn(initial=[-1e300, 0], precision="float32"),
        r"^learn: initial holds numbers up to 1e\+300 in size, expected at most the 3\.4e\+38 of float32; use",
    ),
    "initial text": (learn(initial="zero"), r"^learn: initial = 'zero', expected an array of real numbers$"),
    "initial of unequal rows": (
        learn(initial=[[0], [0, 1]]),
        r"^learn: initial cannot be read as an array of real numbers \(its rows differ in length\); give a numpy",
    ),
    # Paths, runtimes, precision, progress
    "paths beyond the walks": (
        walk(paths=3, walks=2),
        r"^run: paths = 3, expected a whole number from 0 to 2; give how many walks keep their path, or a list",
    ),
    "paths of a walk there is not": (
        walk(paths=[0, 2], walks=2),
        r"^run: paths = \[0, 2\], expected walks from 0 to 1, each once; give how many walks",
    ),
    "paths negative": (learn(paths=-1), r"^run: paths = -1, expected a whole number >= 0; give how many walks"),
    "paths of a walk below 0": (walk(paths=[-1]), r"^run: paths holds -1, expected whole numbers >= 0; give how many"),
    "paths twice": (
        walk(paths=[0, 0], walks=2),
        r"^run: paths = \[0, 0\], expected walks from 0 to 1, each once; give",
    ),
    "paths a float": (walk(paths=1.0), r"^run: paths = 1\.0, expected a whole number >= 0; give how many walks"),
    "paths missing": (walk(paths=None), r"^run: paths = None, expected a whole number >= 0; give how many walks"),
    "runtime unknown": (
        learn(runtime="gpu"),
        r"^run: runtime = 'gpu', expected 'cpu', 'cuda', 'ray', 'reference' or 'torch'",
    ),
    "runtime a list": (walk(runtime=["cpu"]), r"^run: runtime = \['cpu'\], expected"),
    "runtime a class": (walk(runtime=fw.runtimes.CPU), r"^run: runtime = <class .*CPU'>, expected"),
    "threads 0": (lambda: fw.runtimes.CPU(threads=0), r"^CPU: threads = 0, expected a whole number from 1"),
    "threads a float": (lambda: fw.runtimes.CPU(threads=1.5), r"^CPU: threads = 1\.5, expected"),
    "threads text": (lambda: fw.runtimes.CPU(threads="2"), r"^CPU: threads = '2', expected"),
    "precision unknown": (learn(precision="float16"), r"^learn: precision = 'float16', expected 'float64' or"),
    "precision a type": (learn(precision=np.float32), r"^learn: precision = <class 'numpy.float32'>, expected"),
    "progress a number": (learn(progress=3), r"^run: progress = 3, expected a function"),
    # Problems, kernels, rules and phases that do not fit
    "problem missing": (learn(problem=None), r"^learn: objective = None, expected an objective such as"),
    "problem a kernel": (
        learn(problem=KERNEL),
        r"^learn: objective = Kernel\(SimpleWalk\(\) on ring\(6\): .*, expected an obj",
    ),
    "problem of another size": (learn(problem=synthetic(n=7)()), r"^learn: the objective has 7 nodes and the graph 6"),
    "kernel missing": (
        learn(kernel=None, rule=None),
        r"^learn: kernel = None, expected a kernel, as design\.kernel\(.*, or a list of fw\.Phase\(until",
    ),
    "kernel a design": (walk(kernel=fw.designs.SimpleWalk()), r"^walk: kernel = SimpleWalk\(\), expected a kernel, as"),
    "kernel an empty list": (learn(kernel=[], rule=None), r"^learn: kernel = \[\], expected a kernel, as"),
    "kernel a list of kernels": (
        walk(kernel=[KERNEL]),
        r"^walk: kernel = \[Kernel\(.*\)\], expected .* list of fw\.Phase",
    ),
    "rule missing": (learn(rule=None), r"^learn: rule = None, expected an update rule such as fw\.SGD\(step=1e-3\)$"),
    "rule a number": (learn(rule=0.01), r"^learn: rule = 0\.01, expected an update rule such as"),
    "rule of a phase missing": (
        phases(5, None, rule=None),
        r"^learn: phases\[0\]\.rule = None, expected an update rule",
    ),
    "rule of a walk": (
        walk(kernel=[fw.Phase(None, KERNEL, 0.01)]),
        r"^walk: phases\[0\]\.rule = 0\.01, expected an update rule such as fw\.SGD\(step=1e-3\) or None$",
    ),
    "rule twice": (learn(kernel=[fw.Phase(None, KERNEL, RULE)]), r"^learn: got a list of phases and a rule"),
    "phases not growing": (
        phases(5, 5, None),
        r"^learn: phases end at \[5, 5, None\], expected increasing whole numbers; only the last may be None$",
    ),
    "phases falling": (phases(20, 15), r"^learn: phases end at \[20, 15\], expected increasing whole numbers"),
    "phases from 0": (phases(0, None), r"^learn: phases\[0\]\.until = 0, expected a whole number >= 1; only the last"),
    "phases without an end inside": (
        phases(5, None, None),
        r"^learn: phases\[1\]\.until = None, expected a whole number >= 1; only the last may be None$",
    ),
    "phases at a float": (phases(2.5, None), r"^learn: phases\[0\]\.until = 2\.5, expected a whole number >= 1"),
    "phases at NaN": (phases(NAN, None), r"^learn: phases\[0\]\.until = nan, expected a whole number >= 1"),
    "phases at text": (phases("5", None), r"^learn: phases\[0\]\.until = '5', expected a whole number >= 1"),
    "phases that end early": (phases(3, 8), r"^phases: the last ends at step 8, before the 10 steps of the run"),
    "phases on two graphs": (
        learn(kernel=[fw.Phase(2, KERNEL, RULE), fw.Phase(None, OTHER, RULE)], rule=None),
        r"^learn: the kernels of its phases are on different graphs, expected one graph$",
    ),
    # Rules and schedules
    "step 0": (lambda: fw.SGD(0), r"^SGD: step = 0, expected a finite number > 0; or a schedule such as Inverse\("),
    "step negative": (lambda: fw.SGD(-1e-3), r"^SGD: step = -0\.001, expected"),
    "step NaN": (lambda: fw.SGD(NAN), r"^SGD: step = nan, expected"),
    "step infinite": (lambda: fw.SGD(INF), r"^SGD: step = inf, expected"),
    "step text": (lambda: fw.SGD("fast"), r"^SGD: step = 'fast', expected"),
    "local steps 0": (lambda: fw.SGD(0.1, local_steps=0), r"^SGD: local_steps = 0, expected a whole number from 1 to"),
    "local steps a float": (lambda: fw.SGD(0.1, local_steps=1.5), r"^SGD: local_steps = 1\.5, expected"),
    "schedule negative": (lambda: fw.schedules.Inverse(-0.1, scale=10), r"^Inverse: initial = -0\.1, expected"),
    "schedule scale 0": (lambda: fw.schedules.Inverse(0.1, scale=0), r"^Inverse: scale = 0, expected"),
    "schedule half-life text": (lambda: fw.schedules.Exponential(0.1, "a"), r"^Exponential: half_life = 'a', expected"),
    "schedule of nothing": (lambda: fw.schedules.Constant(None), r"^Constant: value = None, expected"),
    # Data
    "features NaN": (data(features=[[1.0], [NAN]]), r"^LeastSquares: features\[1, 0\] = nan, expected"),
    "features infinite": (data(features=[[INF], [1.0]]), r"^LeastSquares: features\[0, 0\] = inf, expected"),
    "targets NaN": (data(targets=[NAN, 1.0]), r"^LeastSquares: targets\[0\] = nan, expected"),
    "features flat": (
        data(features=[1.0, 2.0]),
        r"^LeastSquares: features has shape \(2,\), expected \(any, any\)",
    ),
    "features empty": (data(features=np.empty((0, 2)), targets=[]), r"^LeastSquares: features has shape \(0, 2\)"),
    "features text": (
        data(features=[["a"], ["b"]]),
        r"^LeastSquares: features = .*, expected an array of real numbers",
    ),
    "targets too few": (data(targets=[1.0]), r"^LeastSquares: targets has shape \(1,\), expected \(2,\)"),
    "a node without data": (data(nodes=[0, 2]), r"^LeastSquares: no data at 1 of 3 nodes \(1\)"),
    "nodes too few": (data(nodes=[0]), r"^LeastSquares: nodes has shape \(1,\), expected \(2,\)"),
    "nodes negative": (data(nodes=[-1, 0]), r"^LeastSquares: nodes holds -1, expected whole numbers >= 0"),
    "nodes floats": (data(nodes=[0.0, 1.0]), r"^LeastSquares: nodes is an array of float64, expected whole"),
    "ridge negative": (data(ridge=-0.1), r"^LeastSquares: ridge = -0\.1, expected"),
    "labels of -1": (lambda: fw.objectives.Logistic([[1.0], [2.0]], [-1, 1]), r"^Logistic: .*-1"),
    "heavy beyond the nodes": (
        synthetic(heavy=7),
        r"^LeastSquares.synthetic: heavy = 7, expected a whole number from 0 to 6",
    ),
    "noise negative": (synthetic(noise=-1.0), r"^LeastSquares.synthetic: noise = -1\.0, expected"),
    "heavy probability above 1": (synthetic(heavy_probability=1.5), r"heavy_probability = 1\.5, expected"),
    # Designs
    "jump above 1": (lambda: fw.designs.MHLJ(1.1, 0.5, 3), r"^MHLJ: jump = 1\.1, expected a probability from 0 to 1"),
    "jump negative": (lambda: fw.designs.MHLJ(-0.1, 0.5, 3), r"^MHLJ: jump = -0\.1, expected"),
    "jump NaN": (lambda: fw.designs.MHLJ(NAN, 0.5, 3), r"^MHLJ: jump = nan, expected"),
    "jump text": (lambda: fw.designs.MHLJ("a", 0.5, 3), r"^MHLJ: jump = 'a', expected"),
    "stop 0": (lambda: fw.designs.MHLJ(0.1, 0.0, 3), r"^MHLJ: stop = 0\.0, expected a probability above 0"),
    "hops 0": (
        lambda: fw.designs.MHLJ(0.1, 0.5, 0),
        r"^MHLJ: hops = 0, expected a whole number from 1 to 10000; jump=0",
    ),
    "hops a float": (lambda: fw.designs.MHLJ(0.1, 0.5, 2.5), r"^MHLJ: hops = 2\.5, expected"),
    "closed form with hops 0": (lambda: fw.designs.ClosedFormMHLJ(0.1, 0.5, 0), r"^ClosedFormMHLJ: hops = 0, expected"),
    "power infinite": (
        lambda: fw.designs.Metropolis(power=INF).kernel(GRAPH, ONES),
        r"^Metropolis: power = inf, expected a finite number; 0 is uniform, 1 is importance$",
    ),
    "power text": (lambda: fw.designs.Metropolis(power="one"), r"^Metropolis: power = 'one', expected a finite number"),
    "importance missing": (
        lambda: fw.designs.Metropolis(power=1).kernel(GRAPH),
        r"^Metropolis\(power=1\): needs the importance of the nodes",
    ),
    "importance 0": (
        lambda: fw.designs.Metropolis(power=1).kernel(GRAPH, [1, 1, 0, 1, 1, 1]),
        r"importance of node 2 is 0\.0, expected a finite number > 0",
    ),
    "importance negative": (
        lambda: fw.designs.MHLJ(0.1, 0.5, 3).kernel(GRAPH, [1, 1, 1, -2, 1, 1]),
        r"^MHLJ.*importance of node 3 is -2\.0, expected",
    ),
    "importance NaN": (
        lambda: fw.designs.SimpleWalk().kernel(GRAPH, [NAN, 1, 1, 1, 1, 1]),
        r"^SimpleWalk\(\): importance of node 0 is nan",
    ),
    "importance too short": (
        lambda: fw.designs.Metropolis(power=1).kernel(GRAPH, [1, 2]),
        r"importance has shape \(2,\), expected \(6,\)",
    ),
    "importance text": (
        lambda: fw.designs.Metropolis(power=1).kernel(GRAPH, ["a"] * 6),
        r"^Metropolis\(power=1\): importance = \['a'.*, expected an array of real numbers$",
    ),
    "target 0": (lambda: fw.designs.Metropolis(target=0 * ONES).kernel(GRAPH), r"of node 0 is 0\.0, expected"),
    "matrix not stochastic": (matrix(np.eye(6) * 0.9), r"^FromMatrix\(P\): row 0 of its matrix adds up to 0\.9"),
    "matrix negative": (matrix(-np.eye(6)), r"^FromMatrix\(P\): its matrix has entries that are negative"),
    "matrix NaN": (matrix(NAN * np.ones((6, 6))), r"^FromMatrix\(P\): its matrix has entries .*not finite"),
    "matrix leaves the graph": (matrix(leaving()), r"goes from node 0 to node 3, which is not an edge of ring\(6\)"),
    "matrix of another size": (matrix(np.eye(5)), r"shape \(5, 5\), expected \(6, 6\)"),
    "matrix text": (matrix([["a"]]), r"^FromMatrix: P = \[\['a'\]\], expected an array of real numbers$"),
    "matrix without a law": (matrix(np.eye(6)), r"^FromMatrix: P is reducible \(6 strongly connected parts\)"),
    "graph of networkx": (
        lambda: fw.designs.SimpleWalk().kernel(networkx.path_graph(4)),
        r"^SimpleWalk\(\): graph = .* networkx\.classes\.graph\.Graph, expected a graph of fw\.graphs; from_networkx",
    ),
    "decaying a number": (
        lambda: fw.designs.Decaying(3, 4),
        r"^Decaying: design = 3, expected a design, as in Decaying",
    ),
    "decaying by a number": (
        lambda: fw.designs.Decaying(fw.designs.SimpleWalk(), 4),
        r"^Decaying: schedule = 4, expected a schedule, as in Decaying",
    ),
    # Moves and kernels
    "probability above 1": (lambda: fw.Move(1.5), r"^Move: probability = 1\.5, expected a probability from 0 to 1$"),
    "probability negative": (lambda: fw.Move(-0.5), r"^Move: probability = -0\.5, expected"),
    "probability NaN": (lambda: fw.Move(NAN), r"^Move: probability = nan, expected"),
    "probability text": (lambda: fw.Move("half"), r"^Move: probability = 'half', expected"),
    "hops negative": (
        lambda: fw.Move(1.0, hops=-1),
        r"^Move: hops = -1, expected a whole number from 0 to 10000; 0 stays$",
    ),
    "hops half": (lambda: fw.Move(1.0, hops=0.5), r"^Move: hops = 0\.5, expected"),
    "ratio with rows": (lambda: fw.Move(1.0, ratio=ONES, rows=np.eye(6)), r"^Move: got both ratio and rows"),
    "law with ratio": (lambda: fw.Move(1.0, ratio=ONES, law=ONES), r"^Move: got law together with ratio or rows"),
    "matrices for other hops": (lambda: fw.Move(1.0, 3, rows=[np.eye(6)] * 2), r"^Move: got 2 matrices for 3 hops"),
    "moves that do not add up": (kernel(fw.Move(0.5)), r"^mine: the probabilities of its moves add up to 0\.5"),
    "moves beyond 1": (kernel(fw.Move(0.7), fw.Move(0.7)), r"^mine: the probabilities .* add up to 1\.4, expected 1"),
    "no moves": (kernel(), r"^mine: the probabilities of its moves add up to 0, expected 1"),
    "a move that is none": (kernel(0.5, 0.5), r"^mine: a move = 0\.5, expected fw\.Move\(\.\.\.\)$"),
    "moves not in a list": (
        lambda: fw.Kernel(GRAPH, fw.Move(1.0), ONES),
        r"^kernel: moves = Move\(1, hops=1\), expected a list of fw\.Move\(",
    ),
    "ratio too short": (kernel(fw.Move(1.0, ratio=[1, 2])), r"^mine: ratio has shape \(2,\), expected \(6,\)"),
    "ratio 0": (kernel(fw.Move(1.0, ratio=[0, 1, 1, 1, 1, 1])), r"^mine: ratio of node 0 is .*0\.0.*, expected"),
    "law of nothing": (
        kernel(fw.Move(1.0, law=0 * ONES)),
        r"^mine: law of node 0 is 0\.0, expected .* >= 0, and one above 0$",
    ),
    "target too long": (kernel(fw.Move(1.0), target=np.ones(7)), r"^mine: target has shape \(7,\), expected \(6,\)"),
    "a node of a law that acts alone": (
        lambda: fw.designs.Centralized().kernel(GRAPH).local(0),
        r"^Centralized\(power=0\.0\): draws from a distribution over all nodes",
    ),
    "a node that is not there": (lambda: KERNEL.local(6), r"^ring\(6\): node = 6, expected a whole number from 0 to 5"),
    # Graphs
    "disconnected": (graph("from_edges", [(0, 1), (2, 3)]), r"^from_edges: disconnected, 2 components of 2, 2 nodes"),
    "empty": (graph("from_edges", []), r"^from_edges: got no nodes, a walk needs at least 2 nodes"),
    "one node": (graph("from_edges", [(0, 0)]), r"^from_edges: got 1 node, a walk needs at least 2 nodes"),
    "one node of networkx": (graph("from_networkx", networkx.path_graph(1)), r"got 1 node, a walk needs at least 2"),
    "one node of scipy": (graph("from_scipy", csr_array((1, 1))), r"^from_scipy: got 1 node"),
    "ring of 2": (graph("ring", 2), r"^ring: n = 2, expected a whole number from 3"),
    "path of 1": (graph("path", 1), r"^path: n = 1, expected a whole number from 2"),
    "ring of a float": (graph("ring", 5.0), r"^ring: n = 5\.0, expected"),
    "edges that are no pairs": (graph("from_edges", [(0, 1, 2)]), r"^from_edges: edges has shape .* give pairs"),
    "edges of floats": (graph("from_edges", [(0.0, 1.0)]), r"^from_edges: edges is an array of float64, .*give pairs"),
    "edges beyond n": (graph("from_edges", [(0, 1), (1, 5)], n=3), r"^from_edges: edge 1 of the list is \(1, 5\)"),
    "edges below 0": (graph("from_edges", [(0, -1)]), r"^from_edges: edge 0 of the list is \(0, -1\)"),
    "matrix not symmetric": (graph("from_scipy", [[0, 1], [0, 0]]), r"^from_scipy: entry \(0, 1\) is not zero but its"),
    "matrix not square": (graph("from_scipy", np.ones((2, 3))), r"^from_scipy: got a matrix of shape \(2, 3\)"),
    "not of networkx": (graph("from_networkx", [(0, 1)]), r"^from_networkx: got a list, expected a networkx graph"),
    "edge probability": (graph("erdos_renyi", 10, 1.5), r"^erdos_renyi: p = 1\.5, expected a probability"),
    "a file that is not there": (graph("read", "/none/such.txt"), r"/none/such\.txt"),
    # Records
    "load a missing file": (lambda: fw.load("/none/such.npz"), r"^/none/such\.npz: there is no such file"),
    "concat nothing": (lambda: fw.concat([]), r"^concat: got no record, expected at least one"),
    "resume a complete run": (lambda: fw.resume(walk()()), r"^resume: cannot resume 'SimpleWalk\(\)': the run is"),
    "resume a number": (lambda: fw.resume(3), r"^resume: record = 3, expected a record"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name):
    call, message = CASES[name]
    with pytest.raises(fw.FreewalkError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 1000


def test_there_are_enough_cases():
    assert len(CASES) >= 40


RUNS = [name for name in CASES if name.split()[0] in ("steps", "every", "walks", "seed", "start", "paths", "phases")]
RUNS += [
    name for name in CASES if name.split()[0] in ("initial", "precision", "rule", "problem", "progress", "runtime")
]


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_computed_before_a_run_is_checked(monkeypatch, name):
    def compute(*arguments):
        pytest.fail("something was computed before all input was checked")

    monkeypatch.setattr(fw.runtimes.Reference, "engine", compute)
    monkeypatch.setattr(fw.Kernel, "matrix", compute)  # to find out whether the walk samples its target
    monkeypatch.setattr(type(PROBLEM), "smoothness", property(compute))
    monkeypatch.setitem(vars(KERNEL), "biased", None)
    call, message = CASES[name]
    with pytest.raises(fw.FreewalkError, match=message):
        call()


@pytest.mark.parametrize("value", ["two", "-1", "1.5"])
def test_a_number_of_threads_in_the_environment_is_checked(monkeypatch, value):
    monkeypatch.setenv("FREEWALK_THREADS", value)
    with pytest.raises(
        fw.FreewalkError, match=rf"^cpu: FREEWALK_THREADS = '{re.escape(value)}', expected a whole number"
    ):
        fw.walk(KERNEL, steps=4)


# Input that looks wrong and is not: its treatment is documented.


def test_self_loops_are_dropped_and_duplicates_merged():
    clean = fw.graphs.from_edges([(0, 1), (1, 2)])
    assert fw.graphs.from_edges([(0, 1), (1, 0), (0, 1), (1, 2), (2, 2), (0, 0)]) == clean
    assert fw.graphs.from_scipy([[5, 1, 0], [1, 0, 2], [0, 2, 7]]) == clean
    many = networkx.MultiDiGraph([(0, 1), (0, 1), (1, 0), (1, 2), (1, 1)])
    assert fw.graphs.from_networkx(many) == clean
    assert clean.degrees.tolist() == [1, 2, 1]


def test_a_move_of_no_hops_stays():
    record = fw.walk(fw.Kernel(GRAPH, [fw.Move(1.0, hops=0)], ONES), steps=5, start=2)
    assert record.data["at"].values.tolist() == [2]
    assert not record.data.messages.any()


def test_a_jump_probability_of_0_or_1_is_fine():
    for jump in (0, 1, 0.0, 1.0):
        fw.designs.MHLJ(jump, 1.0, 1).kernel(GRAPH, ONES)


# The classes.


def test_every_error_of_the_package_is_a_value_error_and_every_warning_a_user_warning():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    warnings = [kind for kind in kinds if issubclass(kind, Warning)]
    assert len(kinds) - len(warnings) >= 6
    assert all(issubclass(kind, errors.FreewalkError) for kind in kinds if kind not in warnings)
    assert issubclass(errors.FreewalkError, ValueError)
    assert fw.FreewalkError is errors.FreewalkError
    assert warnings
    assert all(issubclass(kind, errors.FreewalkWarning) for kind in warnings)
    assert issubclass(errors.FreewalkWarning, UserWarning)


def test_a_missing_extra_prints_the_line_that_installs_it():
    error = errors.MissingExtra("torch", "deep")
    assert re.search(r"'torch' is not installed; install it with: pip install \"\.\[deep\]\"", str(error))


def test_install_lines_work_from_a_checkout():
    """Nothing is published: no line installs the package by its name, and pip ignores unknown extras."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    folders = [ROOT / name for name in ("src", "docs", "examples")]
    texts = [file for folder in folders for kind in ("py", "md", "toml") for file in folder.rglob(f"*.{kind}")]
    seen = set()
    for file in [*texts, *ROOT.glob("*.md")]:
        lines = re.findall(r"pip install (?:--\S+ )?[\\\"']*([^\s\"'`;]+)", file.read_text())
        assert not [line for line in lines if line.startswith("freewalk")], file
        seen |= {extra for line in lines if line.startswith(".[") for extra in line[2:-1].split(",")}
    assert {"torch", "data", "peers", "ray", "cuda", "topologies", "parquet"} <= seen <= {*extras, "{extra}"}

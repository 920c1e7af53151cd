"""`learn` and `walk` prepare a job and its first state, then run the loop; a `Method` is a walk that can run itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from freewalk.checks import Checks
from freewalk.designs import Design
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.jobs.prepare import first_state, kernel_of, place, prepare
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.run.checkpoint import Continuation
from freewalk.run.loop import Keep, Progress, Watch, run_to_end
from freewalk.run.record import Record
from freewalk.runtimes import Runtime, runtime_for
from freewalk.schedules import Schedule

_check = Checks(FreewalkError)


def learn(
    objective: Objective | None = None,
    kernel: Kernel | Sequence[Phase] | None = None,
    rule: Rule | None = None,
    *,
    steps: int,
    walks: int = 1,
    every: int = 1,
    start: str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    seed: int = 0,
    runtime: str | Runtime | None = None,
    precision: str | None = None,
    paths: int | Sequence[int] = 0,
    progress: Progress | None = None,
    problem: Objective | None = None,
    tokens: int | str = 1,
    exchange: Exchange | None = None,
    goal: Mapping[str, float] | None = None,
    checkpoint: str | os.PathLike[str] | Keep | None = None,
    checkpoint_every: float = 60.0,
) -> Record:
    """Train a model along a random walk: at each step the current node updates it, then it moves.

    Parameters
    ----------
    objective
        The objective to minimise; it has one loss per node of the kernel's graph.
    kernel
        How the walk moves; or a list of `Phase`s, which replaces kernel and rule.
    rule
        How a node updates the model.
    steps
        The number of updates per token (each is followed by one move).
    walks
        The number of independent replicas.
    every
        Measure at steps 0, every, 2·every, … and at the last step.
    start
        A node, a list with one node per walk, "uniform", or "heaviest" (the node with the largest importance). An
        integer is a node number, a string a node name. With several tokens, also an array of (walks, tokens) nodes.
        None means "uniform" or, with tokens="nodes", each token's own node.
    initial
        The initial model, of shape (dim,), (walks, dim) or (walks, tokens, dim). None uses the objective's own initial
        model, which is zero unless the objective defines another.
    seed
        Determines every random draw. Walk w takes the same path whatever the number of walks; token t of walk w takes
        the path of walk w · tokens + t.
    runtime
        "cpu", "cuda", "torch" or "reference", or a runtime such as `fw.runtimes.CPU(threads=1)`; all visit the same
        nodes. None selects the one that suits the objective: "cpu" for linear predictors, "torch" for modules,
        otherwise "reference".
    precision
        The precision of the models, "float64" or "float32". None uses that of the module's parameters, or "float64".
    paths
        How many walks keep their full path, or a list of walk numbers. With several tokens, these are token numbers.
    progress
        A function called a few times per second with the current step and the total number of steps. If it has a
        parameter `measures`, it also receives the latest measurements, averaged over the walks, by name:
        `progress(step, steps, measures)`.
    problem
        An alias of `objective`.
    tokens
        The number of models that travel at the same time within each walk, or "nodes" for one token per node, starting
        there. Measures are those of their mean model; `consensus` is their mean squared distance from it; counts are
        summed.
    exchange
        How the tokens of a walk mix after an update, for example `fw.exchanges.Meet()`. None means they do not mix.
    goal
        Target values of measures, such as {"loss": 0.1} or {"accuracy": 0.95}. The run ends at the first measured step
        (see `every`) where the mean over the walks is at most the target, or at least the target for measures where
        higher is better. If there are several targets, all must be met. Also "distance" and, with several tokens,
        "consensus".
    checkpoint
        A file that always holds the latest state of the run, so that it survives a crash or `kill -9`: partial records
        during the run, and the returned record at the end. `fw.resume(fw.load(path))` completes the run with the same
        result. An existing file is replaced. Alternatively, a function that is called with each partial record and may
        save it.
    checkpoint_every
        Seconds between two checkpoints. The interval is longer if writing a checkpoint takes more than a twentieth of
        it.

    Returns
    -------
    Record
        The measurements. After Ctrl-C or SIGTERM (which clusters send before they end a job), the record holds what was
        measured so far and is marked as partial: save it, and resume it with `fw.resume`. Your script continues, also
        after SIGTERM; `record.provenance["interrupted_by"]` names the signal. A second signal takes effect immediately.
        With a goal, `record.provenance["reached"]` is the step at which the goal was reached, or None; a record that
        reached its goal ends there and is complete.

    Raises
    ------
    FreewalkError
        If an argument is invalid; nothing has been computed in that case.
    Exception
        Whatever your own code raises: a module, a rule, a progress function. The error then has an attribute `record`
        with the measurements made before it.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> record = fw.learn(problem, kernel, fw.SGD(step=0.01), steps=2000, walks=10, every=1000, start=0)
    >>> bool(record.data.loss.mean("walk")[-1] < record.data.loss.mean("walk")[0])
    True
    """
    if objective is not None and problem is not None:
        raise FreewalkError("learn: got both `objective` and `problem`, expected one: they are two names for the same")
    found = arguments.objective("learn", objective if problem is None else problem)  # type: ignore[arg-type]
    options = {"exchange": exchange, "tokens": tokens, "seed": seed, "precision": precision}
    job = prepare("learn", found, kernel, rule, steps=steps, **options)  # type: ignore[arg-type]
    begin = place("learn", job, steps=steps, walks=walks, every=every, start=start, paths=paths, tokens=tokens)
    levels = {} if goal is None else arguments.goal(goal, found, job.tokens)
    chosen = runtime_for(runtime, found, job.phases)
    watch = Watch.of("run", progress, checkpoint, checkpoint_every)
    state = first_state(job, begin, initial)
    return run_to_end(Continuation(job, state, begin.steps, begin.every, chosen, goal=levels), watch)


def walk(
    kernel: Kernel | Sequence[Phase],
    *,
    steps: int,
    walks: int = 1,
    every: int = 1,
    start: str | ArrayLike | None = None,
    seed: int = 0,
    runtime: str | Runtime | None = None,
    paths: int | Sequence[int] = 0,
    progress: Progress | None = None,
    tokens: int | str = 1,
    checkpoint: str | os.PathLike[str] | Keep | None = None,
    checkpoint_every: float = 60.0,
) -> Record:
    """Walk without learning; the parameters are those of `learn`.

    Returns
    -------
    Record
        `messages`, `probes`, `visits`, and `path` if it was requested.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    >>> record = fw.walk(kernel, steps=1000, walks=4, every=1000)
    >>> record.data.messages.values[:, -1]
    array([1000, 1000, 1000, 1000])
    """
    job = prepare("walk", None, kernel, steps=steps, tokens=tokens, seed=seed)
    begin = place("walk", job, steps=steps, walks=walks, every=every, start=start, paths=paths, tokens=tokens)
    chosen = runtime_for(runtime, None, job.phases)
    watch = Watch.of("run", progress, checkpoint, checkpoint_every)
    return run_to_end(Continuation(job, first_state(job, begin), begin.steps, begin.every, chosen), watch)


@dataclass(frozen=True, eq=False)
class Method:
    """A learning method: everything that `fw.learn` takes except the problem and the length of the run.

    Parameters
    ----------
    label
        The name used in tables and figures.
    design
        How the tokens move.
    rule
        How a node updates a model.
    tokens, exchange
        As in `fw.learn`.

    Raises
    ------
    FreewalkError
        If an argument has the wrong type.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, seed=1)
    >>> walk = fw.baselines.Method("one walk", fw.designs.SimpleWalk(), fw.SGD(step=0.05))
    >>> walk.learn(problem, graph, steps=1000, walks=10, every=1000).data.updates.values
    array([   0, 1000])
    """

    label: str
    design: Design
    rule: Rule
    tokens: int | str = 1
    exchange: Exchange | None = None

    def __post_init__(self) -> None:
        _check.text("Method", "label", self.label)
        _check.instance("Method", "design", self.design, Design, "a design such as fw.designs.SimpleWalk()")
        _check.instance("Method", "rule", self.rule, Rule, "an update rule such as fw.SGD(step=1e-3)")
        if not isinstance(self.tokens, str) or self.tokens != "nodes":
            _check.whole("Method", "tokens", self.tokens, 1, remedy='"nodes" is one on each node')
        if self.exchange is not None:
            _check.instance("Method", "exchange", self.exchange, Exchange, "an exchange such as fw.exchanges.Meet()")

    def kernel(self, graph: Graph, problem: Objective) -> Kernel:
        """Compile the design for a graph, using the smoothness of the problem if the design needs it."""
        return kernel_of(self.design, graph, problem, self.label)

    def with_step(self, step: float | Schedule) -> Method:
        """Return the same method with another step size."""
        return replace(self, rule=replace(self.rule, step=step))  # type: ignore[type-var]

    def learn(self, problem: Objective, graph: Graph, **options: Any) -> Record:
        """Run the method; `options` are those of `fw.learn`: steps, walks, every and so on."""
        kernel = self.kernel(graph, problem)
        record = learn(problem, kernel, self.rule, tokens=self.tokens, exchange=self.exchange, **options)
        record.data.attrs["label"] = self.label
        return record

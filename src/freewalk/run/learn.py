"""`learn`, `walk` and `resume`: check the arguments, then run the loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks, show
from freewalk.designs.kernel import Kernel, Move
from freewalk.errors import FreewalkError, RecordError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.run.checkpoint import MOST_STEPS, Continuation, check_room
from freewalk.run.loop import run_to_end
from freewalk.run.record import Record
from freewalk.run.watch import Keep, Progress, Watch
from freewalk.runtimes import Job, Runtime, State, runtime_for, runtime_named
from freewalk.storage.archive import Packed, name_of, unpack

check = arguments.check
_check = Checks(RecordError)


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
    phases = arguments.phases(kernel, rule, found, exchange=exchange)  # type: ignore[arg-type]
    precision = arguments.precision("learn", precision, found)
    count = arguments.tokens(tokens, phases[0].kernel.graph)
    job = Job(found, phases, check.seed("learn", seed), precision, count)
    size = _size("learn", job, steps, walks, every, tokens)
    models = arguments.models(initial, found, size.walks, job.seed, precision, count)
    found.admit(models[0])
    levels = arguments.goal(goal, found, count)
    watch = Watch.of("run", progress, checkpoint, checkpoint_every)
    return _begin(job, models, size, start, runtime, paths, watch, levels)


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
    phases = arguments.phases(kernel, None, None, "walk")
    count = arguments.tokens(tokens, phases[0].kernel.graph)
    job = Job(None, phases, check.seed("walk", seed), tokens=count)
    size = _size("walk", job, steps, walks, every, tokens)
    watch = Watch.of("run", progress, checkpoint, checkpoint_every)
    return _begin(job, np.zeros((size.walks * count, 0)), size, start, runtime, paths, watch)


def resume(
    record: Record,
    *,
    runtime: str | Runtime | None = None,
    types: Sequence[type] = (),
    progress: Progress | None = None,
    objective: Objective | None = None,
    rule: Rule | Sequence[Rule | None] | None = None,
    checkpoint: str | os.PathLike[str] | Keep | None = None,
    checkpoint_every: float = 60.0,
    files: Sequence[str | os.PathLike[str]] = (),
) -> Record:
    """Resume an interrupted run from its partial record; the result is identical to an uninterrupted run.

    A record loaded from a file is validated completely first: a damaged or malicious file is rejected.

    Parameters
    ----------
    record
        A partial record, from this process or loaded from a file.
    runtime
        The runtime to continue with; None uses the original one.
    types
        Your own objective, rule or schedule classes, if the loaded record uses any. No other code named in the record
        is ever executed.
    progress, checkpoint, checkpoint_every
        As in `learn`; `checkpoint` may be the file from which the record was loaded.
    objective
        The original objective, if a loaded record cannot contain it: a torch module is code. It is rejected if its data
        or structure differ from those of the run, even if the record contains an objective.
    rule
        The original rule, if a loaded record cannot contain it, such as an `Optimizer` with a function of your own.
        With phases, a list with one rule per phase. It is rejected if it differs from the rule in the record.
    files
        The current paths of the files of a mapped graph or mapped data, if they have moved since the run began. A
        record refers to these files by path and checksum; a file with different content is rejected.

    Returns
    -------
    Record
        The complete record; if the run has a goal, it ends where the goal is reached.

    Raises
    ------
    RecordError
        If the record is complete, was saved without the state needed to resume, or is inconsistent, or if the given
        objective or rule is not the original one.
    """
    _check.instance("resume", "record", record, Record, "a record, as fw.learn returns it or fw.load reads it")
    if not record.partial or record.continuation is None:
        lost = record.provenance.get("not_resumable", "it holds several records side by side; resume each of them")
        why = lost if record.partial else "the run is complete"
        raise RecordError(f"resume: cannot resume {show(record.label)}: {why}")
    watch = Watch.of("resume", progress, checkpoint, checkpoint_every)
    chosen = None if runtime is None else runtime_named(runtime)
    known = _known_types(types)
    listed = _check.items("resume", "files", files, "a list of paths")
    places = [_check.path("resume", "a path in files", path) for path in listed]
    try:
        run = record.continuation
        rules: list[Any] = list(rule) if isinstance(rule, (list, tuple)) else [rule]
        if isinstance(run, Packed):
            given = {"objective": objective} | {f"rule {place}": one for place, one in enumerate(rules)}
            known_parts = {name: one for name, one in given.items() if one is not None}
            if isinstance(run.given.get("graph"), Packed):  # its file was not found when the record was loaded
                known_parts["graph"] = unpack(run.given["graph"], {"Graph": Graph}, places)
            run = unpack(Packed(run.tree, run.arrays, {**run.given, **known_parts}), known, places)
        run = _check.instance("record", "continuation", run, Continuation, "what record.save wrote").checked()
        if objective is not None or any(one is not None for one in rules):
            run = run.handed(objective, rules)
    except RecordError:
        raise
    except Exception as error:  # the record is inconsistent, or a user-defined class objects
        raise RecordError(f"resume: cannot resume {show(record.label)}: {error}") from error
    run.runtime = run.runtime if chosen is None else chosen
    return run_to_end(run, watch)


class _Size(NamedTuple):
    steps: int
    walks: int
    every: int
    tokens: int | str


def _size(who: str, job: Job, steps: int, walks: int, every: int, tokens: int | str) -> _Size:
    """The length, number of walks and measuring interval: whole numbers for which there is enough memory."""
    steps = check.whole("run", "steps", check.whole("run", "steps", steps, 1), 1, MOST_STEPS)
    walks, every = check.whole(who, "walks", walks, 1), check.whole("run", "every", every, 1)
    check_room(job, walks, steps, every)
    return _Size(steps, walks, every, tokens)


def _begin(
    job: Job,
    models: NDArray[Any],
    size: _Size,
    start: str | ArrayLike | None,
    runtime: str | Runtime | None,
    paths: int | Sequence[int],
    watch: Watch,
    goal: dict[str, float] | None = None,
) -> Record:
    steps, walks, every, tokens = size
    arguments.phases_cover(job.phases, steps)
    arguments.schedules(job.phases, steps)
    chosen = runtime_for(runtime, job.objective, job.phases)
    path_of = arguments.paths(paths, walks * job.tokens, job.tokens)
    importance = arguments.importance(start, job.objective, job.kernel)
    check_room(job, walks, steps, every, int((path_of >= 0).sum()))
    nodes = arguments.start(start, job.seed, walks, job.kernel.graph, importance, tokens)
    arguments.exchanges(job.phases, job.tokens, nodes)
    if job.objective is not None:
        arguments.visits_everywhere(job.phases, nodes)
        arguments.targets(job.phases)  # last, because it computes something
    state = State.begin(job, nodes, models, steps, path_of)
    return run_to_end(Continuation(job, state, steps, every, chosen, goal=goal or {}), watch)


def _known_types(more: Sequence[type]) -> dict[str, type]:
    """The classes that a record may contain, by name."""
    from freewalk import exchanges, graphs, objectives, rules, runtimes, schedules

    _check.instance("resume", "types", more, (list, tuple), "a list of dataclasses")
    for kind in more:
        if not isinstance(kind, type) or not is_dataclass(kind):
            raise _check.fail("resume", "types", kind, "a list of dataclasses")
    if "torch" in sys.modules:  # otherwise no rule of a record can need it
        from freewalk.torch import optimizer

        more = [*more, optimizer.Optimizer, optimizer.Slot]
    modules = (exchanges, graphs, objectives, rules, runtimes, schedules)
    listed = [getattr(module, name) for module in modules for name in module.__all__]
    known = [kind for kind in listed if isinstance(kind, type)]
    return {name_of(kind): kind for kind in [*known, Move, Kernel, Phase, Job, State, Continuation, *more]}

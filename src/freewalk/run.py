"""`learn`, `walk` and `resume`: check what enters, then hand it to the loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import entering
from freewalk.archive import Packed, name_of, unpack
from freewalk.errors import RecordError
from freewalk.kernel import Kernel, Move
from freewalk.learning import Rule
from freewalk.loop import Continuation, Progress, go_on
from freewalk.objectives import Objective
from freewalk.phases import Phase
from freewalk.record import Record
from freewalk.runtimes import Job, Runtime, State, runtime_named

_VISITS_BY_WALK = 4_000_000  # above so many counts, visits are summed over the walks


def learn(
    problem: Objective,
    kernel: Kernel | Sequence[Phase],
    rule: Rule | None = None,
    *,
    steps: int,
    walks: int = 1,
    every: int = 1,
    start: str | ArrayLike = "uniform",
    initial: ArrayLike | None = None,
    seed: int = 0,
    runtime: str | Runtime = "cpu",
    precision: str = "float64",
    paths: int | Sequence[int] = 0,
    progress: Progress | None = None,
) -> Record:
    """Learn a model that walks: at each step the node updates it, then it moves on.

    Parameters
    ----------
    problem
        What is learned; it has one loss for each node of the kernel's graph.
    kernel
        How the walk moves, or a list of `Phase`s in place of kernel and rule.
    rule
        How a node updates the model.
    steps
        The number of updates (each followed by one move).
    walks
        The number of independent replicas.
    every
        Measure at steps 0, every, 2·every, … and at the last one.
    start
        A node, an array with one node a walk, or "uniform".
    initial
        The first model, (dim,) or (walks, dim); None is the zero model.
    seed
        Determines every draw: walk number w of a seed takes the same path whatever the number of walks.
    runtime
        "cpu", "cuda" or "reference", or a runtime such as `fw.runtimes.CPU(threads=1)`; all visit the same nodes.
    precision
        "float64" or "float32", for the models.
    paths
        How many walks keep their whole path, or which.
    progress
        Called with the step reached and the number of steps, a few times a second.

    Returns
    -------
    Record
        The measurements. After Ctrl-C it is marked as partial, and `fw.resume` goes on.

    Raises
    ------
    FreewalkError
        If something does not fit; nothing has been computed then.

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
    phases = entering.phases(kernel, rule, entering.problem(problem))
    job = Job(problem, phases, int(entering.seed(seed)), entering.precision(precision))
    models = entering.models(initial, problem.dim, entering.count("walks", walks), precision)
    return _begin(job, models, steps, every, start, runtime, paths, progress)


def walk(
    kernel: Kernel | Sequence[Phase],
    *,
    steps: int,
    walks: int = 1,
    every: int = 1,
    start: str | ArrayLike = "uniform",
    seed: int = 0,
    runtime: str | Runtime = "cpu",
    paths: int | Sequence[int] = 0,
    progress: Progress | None = None,
) -> Record:
    """Walk without learning: the parameters are those of `learn`.

    Returns
    -------
    Record
        `messages`, `probes`, `visits`, and `path` where it was asked for.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    >>> record = fw.walk(kernel, steps=1000, walks=4, every=1000)
    >>> record.data.messages.values[:, -1]
    array([1000, 1000, 1000, 1000])
    """
    job = Job(None, entering.phases(kernel, None, None), int(entering.seed(seed)))
    models = np.zeros((entering.count("walks", walks), 0))
    return _begin(job, models, steps, every, start, runtime, paths, progress)


def resume(
    record: Record,
    *,
    runtime: str | Runtime | None = None,
    types: Sequence[type] = (),
    progress: Progress | None = None,
) -> Record:
    """Go on with a partial record, to the same result as without the interruption.

    Parameters
    ----------
    record
        A partial record, from this process or loaded from a file.
    runtime
        Another runtime to go on with; None takes the one it began with.
    types
        Your own objective, rule or schedule classes, where a loaded record uses any.
    progress
        As in `learn`.

    Returns
    -------
    Record
        The whole record.

    Raises
    ------
    RecordError
        If the record is complete or was saved without what it takes to go on.
    """
    if not isinstance(record, Record):
        raise RecordError(f"resume: got {record!r}, expected a record, as fw.learn returns it or fw.load reads it")
    if not record.partial or record.continuation is None:
        lost = record.provenance.get("not_resumable", "it has several records side by side; resume each of them")
        why = lost if record.partial else "the run is complete"
        raise RecordError(f"resume: cannot go on with {record.label!r}: {why}")
    entering.progress(progress)
    run = record.continuation
    run = unpack(run, _known_types(types)) if isinstance(run, Packed) else run
    run = run.copy()
    run.runtime = run.runtime if runtime is None else runtime_named(runtime)
    return go_on(run, progress)


def _begin(
    job: Job,
    models: NDArray[Any],
    steps: int,
    every: int,
    start: str | ArrayLike,
    runtime: str | Runtime,
    paths: int | Sequence[int],
    progress: Progress | None,
) -> Record:
    steps, every = entering.count("steps", steps), entering.count("every", every)
    entering.phases_cover(job.phases, steps)
    entering.schedules(job.phases, steps)
    entering.progress(progress)
    chosen = runtime_named(runtime)
    walks, n = models.shape[0], job.kernel.graph.n
    path_of = entering.paths(paths, walks)
    kept = path_of >= 0
    rule = job.phases[0].rule
    state = State(
        step=0,
        nodes=entering.start(start, job.seed, walks, n),
        models=models,
        carried=np.zeros((0, *models.shape)) if rule is None else rule.begin(models),
        messages=np.zeros(walks, dtype=np.int64),
        probes=np.zeros(walks, dtype=np.int64),
        visits=np.zeros((walks if walks * n <= _VISITS_BY_WALK else 1, n), dtype=np.int64),
        path_of=path_of,
        paths=np.zeros((int(kept.sum()), steps + 1 if kept.any() else 1), dtype=np.int32),
    )
    state.paths[path_of[kept], 0] = state.nodes[kept]
    return go_on(Continuation(job, state, steps, every, chosen), progress)


def _known_types(more: Sequence[type]) -> dict[str, type]:
    """The classes that a record may hold, by name."""
    from freewalk import graphs, learning, objectives, runtimes, schedules

    modules = (graphs, learning, objectives, runtimes, schedules)
    listed = [getattr(module, name) for module in modules for name in module.__all__]
    known = [kind for kind in listed if isinstance(kind, type)]
    return {name_of(kind): kind for kind in [*known, Move, Kernel, Phase, Job, State, Continuation, *more]}

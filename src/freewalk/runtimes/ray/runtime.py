"""Walks on a cluster: parts of a state are sent to Ray workers, advanced there, sent back and joined again.

A state is sent without its visits, which the worker counts from 0, and with only the current step of its paths.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.jobs.job import Job, Measures, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.cpu.loops import LANES
from freewalk.runtimes.engine import MARKS, WALKS, Engine, Runtime, joined
from freewalk.runtimes.ray.cluster import cause_of, connect, ray_module, slots, task_options
from freewalk.runtimes.ray.shipment import pack, unpack

_check = Checks(FreewalkError)
_PACE, _LONGEST = 1.0, 30.0  # seconds between states that are sent back
_SHARE = 20  # overhead takes at most this fraction (1 / 20) of the time
_MOST = 10**6
_STAGE = 2**20  # steps that a worker makes at a time: bounds arrays with one number per step
_ROOM = 3  # copies of the job that a new object store can hold: a new one may arrive before an old one is released


@dataclass(frozen=True)
class Ray(Runtime):
    """The same walks on a Ray cluster, divided among its workers: pip install ".[ray]".

    Nodes, messages and visits are those of any runtime, and floats are bit-identical to those of `inner`, for any
    number of tasks and of machines with the same kind of processor. Graph, tables and data are stored once per machine
    and mapped by its workers. About once per second, the walks are sent back to this process, so that only the work
    since then is lost if a worker or a machine dies; Ray repeats it elsewhere.

    Parameters
    ----------
    inner
        The runtime on the workers: "cpu", "cuda", "torch" or "reference", or an object such as
        `fw.runtimes.Torch(device="cuda")`. Default: one that suits the objective.
    tasks
        The number of parts into which the walks are divided. Default: one per machine (or GPU, or core, if `inner` uses
        only one); more parts balance machines of different speeds.
    address
        The address of a cluster as "host:port", or "auto" for the one that this machine belongs to. Default: the one
        that this process has joined or that $RAY_ADDRESS names; otherwise one is started on this machine for the
        lifetime of the process.
    cpus
        The cores per task, which are the threads of "cpu". Default: all of the smallest machine for "cpu", else 1.
    gpus
        The GPUs per task. Default: 1 if `inner` uses one, else 0.
    interval
        The seconds after which walks are sent back: the work that can be lost, and the delay of Ctrl-C. Default: 1, or
        up to 30 if sending them would take more than a twentieth of the time. At least half of the time is spent on
        work.

    Raises
    ------
    FreewalkError
        If a parameter is not valid.

    Examples
    --------
    >>> Ray(tasks=4)
    Ray(inner=None, tasks=4, address=None, cpus=None, gpus=None, interval=None)
    """

    inner: str | Runtime | None = None
    tasks: int | None = None
    address: str | None = None
    cpus: int | None = None
    gpus: float | None = None
    interval: float | None = None

    def __post_init__(self) -> None:
        from freewalk.runtimes import runtime_named

        if self.inner is not None and isinstance(runtime_named(self.inner), Ray):
            raise _check.fail("Ray", "inner", self.inner, 'a runtime of one machine, such as "cpu"')
        for name in ("tasks", "cpus"):
            if getattr(self, name) is not None:
                _check.whole("Ray", name, getattr(self, name), 1, _MOST, remedy="None lets the cluster decide")
        if self.gpus is not None:
            _check.real("Ray", "gpus", self.gpus, low=0.0)
        if self.interval is not None:
            _check.real("Ray", "interval", self.interval, above=0.0, expected="seconds > 0")
        if self.address is not None:
            _check.text("Ray", "address", self.address)

    def engine(self, job: Job) -> RayEngine:
        """Join the cluster and prepare a job on it."""
        from freewalk.runtimes import runtime_for

        ray_module()
        return RayEngine(job, self, runtime_for(self.inner, job.objective, job.phases))


@dataclass
class Sent:
    """What is sent back: walks, their counts since they were sent, measures, and the story."""

    state: State
    visits: NDArray[np.integer] | tuple[NDArray[np.int64], NDArray[np.int64]]  # or the nonzero positions and counts
    measures: Measures
    story: dict[str, str]
    warned: list[Warning]
    seconds: float  # of work


class RayEngine(Engine):
    """A job in the object store of a cluster, and the tasks that advance it."""

    stages = 2**10
    whole = True

    def __init__(self, job: Job, runtime: Ray, inner: Runtime) -> None:
        self.job, self.runtime, self.inner = job, runtime, inner
        made = inner.engine(job) if inner.portable else inner  # else each worker makes its own engine
        self.machines = connect(runtime.address, _ROOM * pack((job, made)).bytes)
        cards = inner.cards if runtime.gpus is None else runtime.gpus
        cpus = runtime.cpus or 1
        if runtime.cpus is None and inner.threaded and not cards:  # so that tasks are few and large
            cpus = min((one.cpus for one in self.machines if one.cpus), default=1)
        self.slots = slots(self.machines, cpus, cards)
        self.ray = ray_module()
        self.shipment = self.ray.put(pack((job, made, cpus)))
        self.task = self.ray.remote(work).options(**task_options(cpus, cards))
        self.told: dict[str, str] = {}
        self.beside = 0.0  # overhead of the last interval in seconds: sending, receiving, waiting

    @property
    def pace(self) -> float:  # type: ignore[override]
        """The interval: long enough that sending states does not matter, short enough that little is lost."""
        return pace_of(self.beside, self.runtime.interval)

    @property
    def story(self) -> dict[str, str]:
        """Where it ran, and the story of the engines."""
        counts = {"machine": len(self.machines), "task": self.slots}
        machines, tasks = (f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items())
        return {"cluster": f"{machines}, {tasks} at a time", **self.told}

    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Move a state forward: each part on a worker."""
        began = time.perf_counter()
        given = replace(state, visits=state.visits[:, :0], paths=state.paths[:, state.step : until + 1])
        order = until, marks, state.paths.shape[1]
        ranges = divided(state.walks, self.runtime.tasks or self.slots)
        references = [self.task.remote([self.shipment], given.part(*walks), *order) for walks in ranges]
        try:
            results: list[Sent] = self.ray.get(references)
        except Exception as error:
            raise cause_of(error) from None
        except BaseException:  # a second Ctrl-C
            for reference in references:
                self.ray.cancel(reference)
            raise
        for result in results:
            self.told |= result.story
            for warning in result.warned:
                warnings.warn(warning, stacklevel=2)
        take(state, given, results)
        worked = [result.seconds for result in results]
        self.beside = max(0.0, time.perf_counter() - began - max(max(worked), sum(worked) / self.slots))
        found = joined([result.measures for result in results], WALKS)
        return {name: np.require(values, requirements="W") for name, values in found.items()}  # not the object store's

    def measure(self, state: State) -> Measures:
        """The measures of a state as it is."""
        return self.advance(state, state.step, np.array([state.step]))

    def _run(self, state: State, passage: Passage) -> Measures:
        raise NotImplementedError("passages are run by the engines of the workers")


def pace_of(beside: float, interval: float | None = None) -> float:
    """The length of an interval with this many seconds of overhead; a requested interval is used if possible."""
    return max(interval or min(_LONGEST, max(_PACE, _SHARE * beside)), 2 * beside)


def divided(walks: int, tasks: int) -> list[tuple[int, int]]:
    """The walks in ranges as equal as whole blocks allow, at least one walk each."""
    tasks = min(walks, tasks)
    unit = LANES if walks >= LANES * tasks else 1
    edges = np.linspace(0, walks // unit, tasks + 1).astype(int) * unit
    return [(int(first), int(last)) for first, last in pairwise([*edges[:-1], walks])]


def take(state: State, given: State, results: list[Sent]) -> None:
    """Update a state from the results of its parts, given the state that was divided, which has no visits."""
    given.join([result.state for result in results])
    for field in fields(State):
        if field.name not in ("visits", "paths", "path_of"):
            setattr(state, field.name, getattr(given, field.name))
    for result in results:
        first, rows = result.state.first - state.first, result.state.rows
        mine = state.visits if state.visits_are_summed else state.visits[first : first + rows]
        if isinstance(result.visits, tuple):
            cells, counts = result.visits
            mine.reshape(-1)[cells] += counts
        else:
            mine += result.visits


# On a worker.

_engines: dict[Any, Engine] = {}  # of the last job only: what a worker has mapped stays in the object store


def work(wrapped: list[Any], part: State, until: int, marks: NDArray[np.int64], columns: int) -> Sent:
    """Advance walks, or only measure them; the job is a reference in a list, so that it is fetched once.

    The paths of the whole run have this many columns.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine = _engine(wrapped[0])
        state = _whole(part, engine.job, columns)
        began = time.perf_counter()
        parts = [] if state.step < until else [engine.measure(state)]
        while state.step < until:
            end = min(state.step + _STAGE, until)
            parts.append(engine.advance(state, end, marks[(marks > state.step) & (marks <= end)]))
        engine.settle(state)
        seconds = time.perf_counter() - began
    paths = state.paths[:, part.step : until + 1] if columns > 1 else state.paths
    back = replace(state, visits=state.visits[:, :0], paths=paths)
    said = [warning.message for warning in caught if isinstance(warning.message, Warning)]
    return Sent(back, _counts(state.visits), joined(parts, MARKS), engine.story, said, seconds)


def _engine(reference: Any) -> Engine:
    import ray

    if reference not in _engines:
        _engines.clear()
        job, made, cores = unpack(ray.get(reference))
        if isinstance(made, Engine):
            made.use(cores)
        _engines[reference] = made if isinstance(made, Engine) else made.engine(job)
    return _engines[reference]


def _whole(part: State, job: Job, columns: int) -> State:
    """A writable state in memory."""
    own: dict[str, Any] = {name: np.array(value) for name, value in vars(part).items() if isinstance(value, np.ndarray)}
    own["visits"] = np.zeros((part.visits.shape[0], job.kernel.graph.n), dtype=np.int64)
    own["paths"] = np.zeros((part.paths.shape[0], columns), dtype=np.int32)
    if part.paths.size:
        own["paths"][:, part.step if columns > 1 else 0] = part.paths[:, 0]
    return replace(part, **own)


def _counts(visits: NDArray[np.int64]) -> Any:
    """Counts in the narrowest type that holds them or, if most are 0, in sparse form."""
    flat = visits.reshape(-1)
    cells = np.flatnonzero(flat)
    if 4 * cells.size < flat.size:
        return cells, flat[cells]
    most = int(flat.max(initial=0))
    kind = next((kind for kind in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(kind).max), np.int64)
    return visits.astype(kind)

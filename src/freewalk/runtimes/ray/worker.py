"""The work of a Ray worker: map a job once, advance the walks it receives, and send them back.

A state is sent without its visits, which the worker counts from 0, and with only the current step of its paths.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.jobs.job import Job, Measures, State
from freewalk.runtimes.base import Engine, Runtime, side_by_side
from freewalk.runtimes.ray.shipment import unpack

STAGE = 2**20  # steps at a time: bounds arrays with one number per step
_engines: dict[Any, Engine] = {}  # of the last job only: what a worker has mapped stays in the object store


class Order(NamedTuple):
    """How far to advance, where to measure, and how many columns the paths of the whole run have."""

    until: int
    marks: NDArray[np.int64]
    columns: int


@dataclass
class Sent:
    """What is sent back: walks, their counts since they were sent, measures, and the story."""

    state: State
    visits: NDArray[np.integer] | tuple[NDArray[np.int64], NDArray[np.int64]]  # or the nonzero positions and counts
    measures: Measures
    story: dict[str, str]
    warned: list[Warning]
    seconds: float  # of work


@dataclass(frozen=True)
class Kit:
    """A job for a worker: with the engine if it can be sent, else with the runtime that builds it there."""

    job: Job
    made: Engine | Runtime
    cores: int = 1

    def engine(self) -> Engine:
        """The engine, on the cores of a task."""
        if isinstance(self.made, Engine):
            self.made.use(self.cores)
            return self.made
        return self.made.engine(self.job)


def light(state: State, until: int) -> State:
    """A view of a state without the visits, and with paths only up to the step `until`."""
    return replace(state, visits=state.visits[:, :0], paths=state.paths[:, state.step : until + 1])


def take(state: State, given: State, results: list[Sent]) -> None:
    """Update a state from the results of its parts, given the light state that was divided."""
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


def work(wrapped: list[Any], part: State, order: Order) -> Sent:
    """Advance walks, or only measure them; the job is a reference in a list, so that it is fetched once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine = _engine(wrapped[0])
        state = _whole(part, engine.job, order)
        began = time.perf_counter()
        measures = _advance(engine, state, order)
        engine.settle(state)
        seconds = time.perf_counter() - began
    since = part.step
    paths = state.paths[:, since : order.until + 1] if order.columns > 1 else state.paths
    visits = _counts(state.visits)
    back = replace(state, visits=state.visits[:, :0], paths=paths)
    said = [warning.message for warning in caught if isinstance(warning.message, Warning)]
    return Sent(back, visits, measures, engine.story, said, seconds)


def _engine(reference: Any) -> Engine:
    import ray

    if reference not in _engines:
        _engines.clear()
        _engines[reference] = unpack(ray.get(reference)).engine()
    return _engines[reference]


def _advance(engine: Engine, state: State, order: Order) -> Measures:
    if state.step == order.until:
        return engine.measure(state)
    parts = []
    while state.step < order.until:
        end = min(state.step + STAGE, order.until)
        parts.append(engine.advance(state, end, order.marks[(order.marks > state.step) & (order.marks <= end)]))
    return side_by_side(parts)


def _whole(part: State, job: Job, order: Order) -> State:
    """A writable state in memory."""
    own = {field.name: getattr(part, field.name) for field in fields(State)}
    own = {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in own.items()}
    own["visits"] = np.zeros((part.visits.shape[0], job.kernel.graph.n), dtype=np.int64)
    own["paths"] = np.zeros((part.paths.shape[0], order.columns), dtype=np.int32)
    if part.paths.size:
        own["paths"][:, part.step if order.columns > 1 else 0] = part.paths[:, 0]
    return State(**own)


def _counts(visits: NDArray[np.int64]) -> Any:
    """Counts in the narrowest type that holds them or, if most are 0, in sparse form."""
    flat = visits.reshape(-1)
    cells = np.flatnonzero(flat)
    if 4 * cells.size < flat.size:
        return cells, flat[cells]
    most = int(flat.max(initial=0))
    kind = next((kind for kind in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(kind).max), np.int64)
    return visits.astype(kind)

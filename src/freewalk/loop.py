"""The loop of a run: advance chunk by chunk, measure, stop cleanly when asked to, and make the record."""

import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk._version import __version__
from freewalk.objectives import LeastSquares
from freewalk.record import Record
from freewalk.runtimes import Engine, Job, Runtime, State
from freewalk.runtimes.runtime import known_optimum

Progress = Callable[[int, int], None]

_CHUNK_SECONDS = 0.15  # how long Ctrl-C and a progress bar may have to wait
_CHUNK_STEPS = 2**20  # bounds what schedules write out a step


@dataclass(eq=False)
class Continuation:
    """A run under way: what it takes to go on, and what was measured so far."""

    job: Job
    state: State
    steps: int
    every: int
    runtime: Runtime
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    interruptions: int = 0
    marks: list[int] = field(default_factory=list)
    measures: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def copy(self) -> "Continuation":
        """A copy that can go on while this one stays as it is."""
        parts: dict[str, Any] = {
            name: np.array(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(self.state).items()
        }
        measures = {name: list(values) for name, values in self.measures.items()}
        return Continuation(**{**vars(self), "state": State(**parts), "marks": list(self.marks), "measures": measures})


def go_on(run: Continuation, progress: Progress | None) -> Record:
    """Advance a run to its end, or to the first interruption."""
    clock = time.perf_counter()
    engine = run.runtime.engine(run.job)
    state = run.state
    if not run.marks:
        _append(run, np.array([0]), engine.measure(state))
    chunk = 1.0
    with _interruptible() as interrupted:
        while state.step < run.steps and not interrupted.is_set():
            _enter_phase(run.job, engine, state)
            _, end_of_phase, _ = run.job.phase_at(state.step)
            limit = state.step + min(int(chunk), _CHUNK_STEPS)
            until = min(limit, run.steps, run.steps if end_of_phase is None else end_of_phase)
            marks = _marks(state.step, until, run.every, run.steps)
            length, began = until - state.step, time.perf_counter()
            _append(run, marks, engine.advance(state, until, marks))
            spent = time.perf_counter() - began
            # Nobody knows at first how fast a step is, and the first chunk may have to compile: grow step by step.
            chunk = max(1.0, length * min(16.0, _CHUNK_SECONDS / max(spent, 1e-6)))
            if progress is not None:
                progress(state.step, run.steps)
        engine.settle(state)
        run.seconds += time.perf_counter() - clock
        run.interruptions += interrupted.is_set()  # also in the last chunk: whoever runs more must know
        return _record(run)  # a Ctrl-C that comes too late must not cost the result


def _marks(after: int, until: int, every: int, steps: int) -> NDArray[np.int64]:
    """The steps in (after, until] at which to measure."""
    marks = np.arange(after - after % every + every, until + 1, every, dtype=np.int64)
    return np.append(marks, steps) if until == steps and steps % every else marks


def _append(run: Continuation, marks: NDArray[np.int64], measures: dict[str, NDArray[Any]]) -> None:
    if marks.size:
        _mark_as_infinite(measures)
        run.marks.extend(int(mark) for mark in marks)
        for name, values in measures.items():
            run.measures.setdefault(name, []).append(values)


def _mark_as_infinite(measures: dict[str, NDArray[Any]]) -> None:
    """Where a walk has diverged write ∞ for NaN: means in xarray skip NaN, and it must not silently leave them."""
    if "loss" in measures:
        diverged = ~np.isfinite(measures["loss"])
        for name in ("loss", "mse", "distance"):
            if name in measures:
                measures[name][diverged & np.isnan(measures[name])] = np.inf


def _enter_phase(job: Job, engine: Engine, state: State) -> None:
    """Where a new rule begins, so do the numbers that it carries."""
    phase, _, began = job.phase_at(state.step)
    if began == state.step and phase.rule is not None:
        engine.settle(state)
        state.carried = phase.rule.begin(state.models)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag, so that a chunk ends whole; a second one interrupts at once."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag  # only the main thread may handle signals
        return
    previous = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        flag.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, note)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)


def _record(run: Continuation) -> Record:
    import xarray

    job, state = run.job, run.state
    partial = state.step < run.steps
    run.measures = {name: [_side_by_side(values)] for name, values in run.measures.items()}
    variables: dict[str, Any] = {name: (("walk", "step"), values[0]) for name, values in run.measures.items()}
    variables["visits"] = ("node", state.visits[0]) if state.visits_are_summed else (("walk", "node"), state.visits)
    variables["at"] = ("walk", state.nodes)
    attrs: dict[str, Any] = {"partial": int(partial), "label": _label(job)}
    if job.problem is not None:
        models = job.reported(state)
        variables["final"] = (("walk", "coordinate"), models)
        finite = np.isfinite(models).all(axis=1) & np.isfinite(variables["loss"][1]).all(axis=1)
        variables["diverged"] = ("walk", ~finite)
        variables["smoothness"] = ("node", job.problem.smoothness)
        attrs |= {"heavy": list(job.problem.heavy), **_optimal(job)}
    if state.paths.shape[0]:
        kept = np.flatnonzero(state.path_of >= 0)
        variables["path"] = (("kept", "time"), state.paths[state.path_of[kept], : state.step + 1])
        variables["kept"] = ("kept", kept)
        variables["time"] = ("time", np.arange(state.step + 1))  # so that paths of different lengths fit side by side
    graph = job.kernel.graph
    coords: dict[str, Any] = {
        "step": np.array(run.marks),
        "walk": np.arange(state.walks),
        "node": np.arange(graph.n),
    }
    if graph.node_names is not None:
        coords["node_name"] = ("node", np.array(graph.node_names))
    data = xarray.Dataset(variables, coords=coords, attrs=attrs)
    return Record(data, _provenance(run), run.copy() if partial else None, graph)


def _side_by_side(values: list[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of walks × marks as one; those that lie mark by mark stay so, which is far quicker."""
    if all(value.flags.f_contiguous for value in values):
        return np.concatenate([value.T for value in values]).T
    return np.concatenate(values, axis=1)


def _label(job: Job) -> str:
    return " → ".join(phase.kernel.label for phase in job.phases)


def _optimal(job: Job) -> dict[str, float]:
    """The best values that can be reached, by which figures and tables measure."""
    problem = job.problem
    if problem is None:
        return {}
    best = known_optimum(problem)
    if np.isnan(best).any():
        return {}
    values = {"optimal_loss": float(problem.loss(best))}
    return values | ({"optimal_mse": float(problem.mse(best))} if isinstance(problem, LeastSquares) else {})


@cache
def versions() -> dict[str, str]:
    """Of freewalk, Python, and the packages that numbers depend on."""
    packages = {package: version(package) for package in ("numpy", "scipy", "numba", "xarray")}
    return {"freewalk": __version__, "python": platform.python_version(), **packages}


def _provenance(run: Continuation) -> dict[str, Any]:
    job = run.job
    phases = [
        {"until": phase.until, "kernel": phase.kernel.label, "rule": None if phase.rule is None else repr(phase.rule)}
        for phase in job.phases
    ]
    return {
        "graph": job.kernel.graph.name,
        "problem": None if job.problem is None else repr(job.problem),
        "phases": phases,
        "steps": run.steps,
        "walks": run.state.walks,
        "every": run.every,
        "seed": job.seed,
        "precision": job.precision,
        "runtime": repr(run.runtime),
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "interruptions": run.interruptions,
        "versions": dict(versions()),
        "platform": platform.platform(),
    }

"""The loop of a run: advance chunk by chunk, measure, stop cleanly when asked to, and make the record."""

import platform
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk import entering
from freewalk._version import __version__
from freewalk.checks import Checks
from freewalk.errors import FreewalkError, RecordError
from freewalk.objectives import Objective
from freewalk.objectives.objective import measured
from freewalk.phases import label_of
from freewalk.record import Record, described
from freewalk.rules.rule import PROBE_BYTES
from freewalk.runtimes import Engine, Job, Runtime, State
from freewalk.signals import Stop, held
from freewalk.watching import Watch

if TYPE_CHECKING:
    import xarray

MOST_STEPS = 2**62  # sums of two such numbers fit into 64 bits
_MOST_ROWS = 2**32 - 1  # draws number them by 32 bits
_CHUNK_SECONDS = 0.15  # how long Ctrl-C and a progress bar may have to wait
_CHUNK_STEPS = 2**20  # bounds arrays with one number per step
_BLOWN_UP = 1e4  # times the largest of the first, zero-model and optimal losses: nothing that learns gets there
_check = Checks(RecordError)


@dataclass(eq=False)
class Continuation:
    """A run under way: what it takes to resume, and what was measured so far."""

    job: Job
    state: State
    steps: int
    every: int
    runtime: Runtime
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    interruptions: int = 0
    measures: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    goal: dict[str, float] = field(default_factory=dict)  # levels of measures at which it ends, all of them
    fingerprint: str = ""  # of an objective that a record does not hold

    formerly: ClassVar = {"marks": None}

    def outside(self) -> dict[str, Any]:
        """What a record does not hold, by name: an objective or rules that are code."""
        objective, found = self.job.objective, dict[str, Any]()
        if objective is not None and not objective.stored:
            self.fingerprint = self.fingerprint or objective.fingerprint
            found["objective"] = objective
        for place, phase in enumerate(self.job.phases):
            if phase.rule is not None and not phase.rule.stored:
                found[f"rule {place}"] = phase.rule
        return found

    @property
    def marks(self) -> NDArray[np.int64]:
        """The steps at which it was measured."""
        return _marks(-1, self.state.step, self.every, self.steps) if self.measures else np.zeros(0, dtype=np.int64)

    @property
    def reached(self) -> bool:
        """Whether it stands at a mark at which the means over the walks have reached the goal."""
        at_mark = self.state.step % self.every == 0 or self.state.step == self.steps
        if not self.goal or not self.measures or not at_mark or self.job.objective is None:
            return False
        rising, found = self.job.objective.rising, self.latest(self.goal)
        return all(found[name] >= to if name in rising else found[name] <= to for name, to in self.goal.items())

    @property
    def over(self) -> bool:
        """Whether nothing is left to be done."""
        return self.state.step >= self.steps or self.reached

    def latest(self, names: Iterable[str] | None = None) -> dict[str, float]:
        """The means over the walks at the last mark, of all measures or those with these names."""
        with np.errstate(all="ignore"):  # a walk may have diverged
            # Contiguous: the order of a sum, and with it the last bit, must not depend on how a chunk was laid out.
            return {
                name: float(np.ascontiguousarray(self.measures[name][-1][:, -1]).mean())
                for name in (self.measures if names is None else names)
            }

    def checked(self) -> "Continuation":
        """A copy of which everything is known to fit together: engines trust what they are given, files may lie.

        Raises
        ------
        FreewalkError
            If something does not fit.
        """
        steps = _check.whole("record", "steps", self.steps, 1, MOST_STEPS)
        every = _check.whole("record", "every", self.every, 1)
        job = _check.instance("record", "job", self.job, Job, "a job").checked(steps)
        state = _check.instance("record", "state", self.state, State, "a state").checked(job, steps)
        check_room(job, state.walks, steps, every)
        runtime = _check.instance("record", "runtime", self.runtime, Runtime, "a runtime")
        run = Continuation(
            job,
            state,
            steps,
            every,
            runtime,
            _check.text("record", "started", self.started),
            _check.real("record", "seconds", self.seconds, 0.0),
            _check.whole("record", "interruptions", self.interruptions),
            goal=entering.goal(self.goal or None, job.objective, job.tokens, "record"),
            fingerprint=_check.instance("record", "fingerprint", self.fingerprint, str, "a text"),
        )
        if self.fingerprint and job.objective is not None and job.objective.fingerprint != self.fingerprint:
            raise RecordError(
                f"record: it was made with another objective than {job.objective!r}, expected the same module, data "
                "and measures; pass the one that it began with"
            )
        _check.instance("record", "measures", self.measures, dict, "a mapping")
        known = job.measured
        if "bytes" in known and "bytes" not in self.measures and len(self.measures) == len(known) - 1:
            del known["bytes"]  # a record of an earlier version
        if set(self.measures) != set(known):
            raise _check.fail("record", "measures", list(self.measures), f"{', '.join(known)}")
        count = _count_marks(state.step, every, steps)
        for name, kind in known.items():
            values = _check.instance("record", name, self.measures[name], list, "a list of arrays")
            parts = [_measured(name, part, kind, state.walks) for part in values]
            run.measures[name] = [part for part in parts if part.shape[1]]
            if sum(part.shape[1] for part in run.measures[name]) != count:
                raise RecordError(f"record: {name} was not measured {count} times, as every and step demand")
        if "bytes" in job.measured and "bytes" not in known and run.measures:
            run.measures["bytes"] = [_bytes_of(run)]
        return run


def _bytes_of(run: Continuation) -> NDArray[np.int64]:
    """The bytes sent up to each mark, for a run of an earlier version: as if rules had changed at marks alone."""
    sizes = [run.job.message_bytes(run.job.rule_at(int(mark))) for mark in run.marks]
    messages, probes = (np.concatenate(run.measures[name], axis=1) for name in ("messages", "probes"))
    sent = np.cumsum(np.diff(messages, axis=1, prepend=0) * np.array(sizes), axis=1) + probes * PROBE_BYTES
    now = run.state.bytes_sent(run.job, run.state.messages[:, None], run.state.probes[:, None])[:, 0]
    since = (run.state.messages - messages[:, -1]) * sizes[-1] + (run.state.probes - probes[:, -1]) * PROBE_BYTES
    run.state.surplus += sent[:, -1] + since - now
    return np.asarray(sent)


def _measured(name: str, values: Any, kind: str, walks: int) -> NDArray[Any]:
    fits = isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.newbyteorder("=") == kind
    if not fits or len(values) != walks:
        raise _check.fail("record", name, values, f"an array of {kind} by {walks} walks and checkpoints")
    return np.array(values, dtype=kind)  # in its own order: those that lie mark by mark stay so


def check_room(job: Job, walks: int, steps: int, every: int, kept: int = 0) -> None:
    """Raise a FreewalkError unless a run fits into the memory, before any of it is made."""
    check = Checks(FreewalkError)
    count = _count_marks(steps, every, steps)
    columns = len(job.measured) + 1  # one more: they are put together one after the other
    model, n, rows = max(job.message_bytes(phase.rule) for phase in job.phases), job.kernel.graph.n, walks * job.tokens
    who = f"{walks:,} walks" if job.tokens == 1 else f"{walks:,} walks × {job.tokens:,} tokens"
    copies = 1 + (job.tokens > 1)  # exchanges need room to mix
    sizes = [rows * (32.0 + copies * model), 8.0 * walks * count * columns, 8.0 * kept * (steps + 1)]
    check.room("run", f"the models of {who}", sizes[0], "run fewer at a time")
    check.whole("run", f"number of {'walks' if job.tokens == 1 else 'walks × tokens'}", rows, 1, _MOST_ROWS)
    stored = [0.0]
    for rule in (phase.rule for phase in job.phases if phase.rule is not None and job.objective is not None):
        item, stores = np.dtype(job.precision).itemsize, len(rule.stores)
        keepers, which = (walks, f"{walks:,} walks") if rule.shared else (rows, who)
        what = (
            f"what stays at the nodes ({which} × {n:,} nodes × {stores} vector{'s' * (stores != 1)} of "
            f"{job.dim:,} numbers × {item} bytes{' and a count of 8 bytes' * rule.counts_visits})"
        )
        size = float(n) * (keepers * stores * job.dim * item + rows * 8 * rule.counts_visits)
        check.room(type(rule).__name__, what, size, "run fewer walks at a time, or take precision='float32'")
        stored.append(size)
    check.room("run", f"measuring {walks:,} walks {count:,} times", sizes[1], "let `every` be larger")
    check.room("run", f"{kept:,} paths of {steps:,} steps", sizes[2], "keep fewer paths")
    # Where a rule begins, the vectors of the one before are there too.
    most = max(one + other for one, other in pairwise([*stored, 0.0]))
    check.room("run", "models, measurements, paths and what stays at the nodes", sum(sizes) + most, "run fewer walks")


def run_to_end(run: Continuation, watch: Watch) -> Record:
    """Advance a run to its end, or to the first Ctrl-C or SIGTERM: whatever there is by then is in the record."""
    watch.begin()
    clock = time.perf_counter()
    with held() as stop:  # also while code is compiled and the record is made: nothing is lost, whenever it comes
        engine = run.runtime.engine(run.job)
        if not run.measures:
            _append(run, np.array([0]), engine.measure(run.state))
        _advance(run, engine, watch, stop, clock)
        data = _data(run)
    run.seconds += time.perf_counter() - clock
    run.interruptions += bool(stop)  # also in the last chunk: whoever runs more must know
    story = _provenance(run) | engine.story | ({"interrupted_by": stop.name} if stop else {})
    record = Record(data, story, None if run.over else run, run.job.kernel.graph)
    watch.end(record)
    return record


def _advance(run: Continuation, engine: Engine, watch: Watch, stop: Stop, clock: float) -> None:
    state, chunk = run.state, 1.0
    while not run.over and not stop:
        first, began = state.step, time.perf_counter()
        with _rescued(run, engine, watch, clock, whole=False):
            _proceed(run, engine, min(first + min(int(chunk), _CHUNK_STEPS), run.steps))
        length, spent = state.step - first, time.perf_counter() - began
        # Nobody knows at first how fast a step is, and the first chunk may have to compile: grow step by step.
        chunk = max(1.0, length * min(16.0, _CHUNK_SECONDS / max(spent, 1e-6)))
        with _rescued(run, engine, watch, clock, whole=True):
            watch.tell(state.step, state.step if run.over else run.steps, run.latest)  # a goal may end it early
            if not run.over and not stop:  # what there is at the end is kept by others
                watch.checkpoint(lambda: _checkpoint(run, engine, clock))
    engine.settle(state)


def _proceed(run: Continuation, engine: Engine, until: int) -> None:
    """Advance up to a step or, mark by mark, to the first mark at which the goal is reached, if there is one."""
    state, every = run.state, run.every
    while True:
        end = min(until, (state.step // every + 1) * every) if run.goal else until
        marks = _marks(state.step, end, every, run.steps)
        first = state.step
        try:
            measures = engine.advance(state, end, marks)
        except Exception:
            state.step = first  # up to which there are measurements
            raise
        _append(run, marks, measures)
        if end == until or run.reached:
            return


@contextmanager
def _rescued(run: Continuation, engine: Engine, watch: Watch, clock: float, whole: bool) -> Iterator[None]:
    """Where code of the user's fails, hand over what was measured: as `record` of the error, with a note on it.

    Between two steps the state is `whole`, and the run can be resumed. Where a step fails, walks may be ahead of what
    was learned: where they are and what they visited is left out.
    """
    try:
        yield
    except Exception as error:
        with suppress(Exception):  # what went wrong first is what must be heard of
            record = _checkpoint(run, engine, clock)
            record.provenance["failed"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            how = "fw.resume completes it" if whole else "it cannot be resumed"
            if run.over:
                record.continuation, how = None, "it is complete"
            elif not whole:
                record.continuation, record.data = None, record.data.drop_vars(["visits", "at"])
                record.provenance["not_resumable"] = "it failed in the middle of a step"
                if watch.path is not None and watch.path.exists():
                    how += f", but the last checkpoint can: fw.resume(fw.load({str(watch.path)!r}))"
            error.record = record  # type: ignore[attr-defined]
            error.add_note(f"freewalk: error.record holds what was measured up to step {run.state.step}; {how}")
        raise


def _checkpoint(run: Continuation, engine: Engine, clock: float) -> Record:
    """A run under way as a partial record: whoever resumes from it was interrupted."""
    engine.settle(run.state)
    run.outside()  # it keeps the fingerprint, so that this is computed once
    spent = run.seconds + time.perf_counter() - clock
    now = replace(run, seconds=spent, interruptions=run.interruptions + 1)
    return Record(_data(now), _provenance(now) | engine.story, now, run.job.kernel.graph)


def _marks(after: int, until: int, every: int, steps: int) -> NDArray[np.int64]:
    """The steps in (after, until] at which to measure."""
    first = (after // every + 1) * every
    count = max((until - first) // every + 1, 0)  # np.arange would find it in floating point
    marks = min(first, until) + every * np.arange(count, dtype=np.int64)
    return np.append(marks, steps) if until == steps and steps % every else marks


def _count_marks(step: int, every: int, steps: int) -> int:
    """How many steps there are from 0 to `step` at which to measure."""
    return 1 + step // every + (step == steps and steps % every > 0)


def _append(run: Continuation, marks: NDArray[np.int64], measures: dict[str, NDArray[Any]]) -> None:
    if marks.size:
        _mark_as_infinite(run.job, measures)
        for name, values in measures.items():
            run.measures.setdefault(name, []).append(values)


def _mark_as_infinite(job: Job, measures: dict[str, NDArray[Any]]) -> None:
    """Where a walk has diverged write ∞ for NaN: means in xarray skip NaN, and it must not silently leave them."""
    if job.objective is not None:
        diverged = ~np.isfinite(measures["loss"])
        others = [name for name in ("distance", "consensus") if name in measures]
        for name in (*job.objective.measures, *others):
            worst = -np.inf if name in job.objective.rising else np.inf
            measures[name][diverged & np.isnan(measures[name])] = worst


def _data(run: Continuation) -> "xarray.Dataset":
    import xarray

    job, state = run.job, run.state
    for name, values in run.measures.items():  # one after the other: two copies of all of them need not fit
        run.measures[name] = [_side_by_side(values)]
    variables: dict[str, Any] = {name: (("walk", "step"), values[0]) for name, values in run.measures.items()}
    own = np.asarray if run.over else np.array  # a run that may resume shares nothing with its record
    alone = not state.visits_are_summed or state.walks == 1
    visits = own(state.visits if state.visits_are_summed else state.summed(state.visits))
    variables["visits"] = (("walk", "node"), visits) if alone else ("node", visits[0])
    several = state.tokens > 1
    nodes = own(state.nodes)
    variables["at"] = (("walk", "token"), _by_walk(state, nodes)) if several else ("walk", nodes)
    attrs: dict[str, Any] = {"partial": int(not run.over), "label": label_of(job.phases, job.tokens)}
    objective = job.objective
    if objective is not None:
        models, best = state.reported(job.rule_of(state)), _optimal(job, objective)
        by_walk = _by_walk(state, models)
        mean = by_walk.mean(axis=1, dtype=np.float64).astype(models.dtype) if several else models
        variables["final"] = (("walk", "coordinate"), own(mean))
        variables["diverged"] = ("walk", _diverged(objective, by_walk, variables["loss"][1], best))
        variables["updates"] = ("step", job.updates_at(run.marks))
        if objective.known_smoothness is not None:
            variables["smoothness"] = ("node", objective.known_smoothness)
        attrs |= {"primary": objective.primary, "heavy": list(objective.heavy), **best}
    if state.paths.shape[0]:
        kept = np.flatnonzero(state.path_of >= 0)
        variables["path"] = (("kept", "time"), state.paths[state.path_of[kept], : state.step + 1])
        variables["kept"] = ("kept", kept)
        variables["time"] = ("time", np.arange(state.step + 1))  # so that paths of different lengths fit side by side
    graph = job.kernel.graph
    coords: dict[str, Any] = {
        "step": run.marks,
        "walk": np.arange(state.walks),
        "node": np.arange(graph.n),
    }
    if several:
        coords["token"] = np.arange(state.tokens)
    if graph.node_names is not None:
        coords["node_name"] = ("node", np.array(graph.node_names))
    data = described(xarray.Dataset(variables, coords=coords, attrs=attrs))
    for name in () if objective is None else objective.rising:
        data[name].attrs["better"] = "higher"
    return data


def _diverged(
    objective: Objective, models: NDArray[Any], loss: NDArray[np.float64], best: dict[str, float]
) -> NDArray[np.bool_]:
    """By walk: whether something is not finite, or the last loss is beyond all that was ever reasonable."""
    try:
        with np.errstate(all="ignore"):
            zero = float(objective.zero_loss())
    except Exception:  # an objective of the user's that has no value there must not cost the run
        zero = np.nan
    scale = np.fmax(np.abs(loss[:, 0]), np.fmax(abs(zero), abs(best.get("optimal_loss", 0.0))))
    finite = np.isfinite(models).all(axis=(1, 2)) & np.isfinite(loss).all(axis=1)
    beyond = (loss[:, -1] > _BLOWN_UP * scale) & (scale > 0)
    return np.asarray(~finite | beyond)


def _side_by_side(values: list[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of walks × marks as one; those that lie mark by mark stay so, which is far quicker."""
    if all(value.flags.f_contiguous for value in values):
        return np.concatenate([value.T for value in values]).T
    return np.concatenate(values, axis=1)


def _by_walk(state: State, values: NDArray[Any]) -> NDArray[Any]:
    """What is known by row, by walk and token."""
    return values.reshape(state.walks, state.tokens, *values.shape[1:])


def _optimal(job: Job, objective: Objective) -> dict[str, float]:
    """The values of the measures at the optimum, by which figures and tables measure."""
    if np.isnan(job.optimum).any():
        return {}
    values = measured(objective, job.optimum)
    return {f"optimal_{name}": float(values[name]) for name in objective.measures}


@cache
def versions() -> dict[str, str]:
    """The versions of freewalk, Python, and the packages that numbers depend on."""
    packages = {package: version(package) for package in ("numpy", "scipy", "numba", "xarray")}
    return {"freewalk": __version__, "python": platform.python_version(), **packages}


def _provenance(run: Continuation) -> dict[str, Any]:
    job = run.job
    phases = [
        {"until": phase.until, "kernel": phase.kernel.label, "rule": None if phase.rule is None else repr(phase.rule)}
        | ({} if phase.exchange is None else {"exchange": repr(phase.exchange)})
        for phase in job.phases
    ]
    return {
        "graph": job.kernel.graph.name,
        "problem": None if job.objective is None else repr(job.objective),
        "phases": phases,
        "steps": run.steps,
        "walks": run.state.walks,
        **({"tokens": job.tokens} if job.tokens > 1 else {}),
        "every": run.every,
        **({"goal": dict(run.goal), "reached": run.state.step if run.reached else None} if run.goal else {}),
        "seed": job.seed,
        "precision": job.precision,
        "runtime": repr(run.runtime),
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "interruptions": run.interruptions,
        "versions": dict(versions()),
        "platform": platform.platform(),
        **({} if job.objective is None else job.objective.story()),
    }

"""What a checkpoint contains: the state of a running run, what it has measured, and the record that it makes.

The positions and models of the walks are a `State` (`jobs/job.py`); the loop of the run (`loop.py`) saves it all from
time to time, in the file of a record (`record.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import LARGE, copy_of_counts
from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.jobs import arguments
from freewalk.jobs.phase import count_marks, label_of, marks_in, updates_at
from freewalk.jobs.prepare import MOST_STEPS, check_room, prepare
from freewalk.rules.rule import PROBE_BYTES
from freewalk.run.record import described, versions
from freewalk.runtimes import Job, Runtime, State

if TYPE_CHECKING:
    import xarray

_BLOWN_UP = 1e4  # times the largest of the first, zero-model and optimal losses: no run that learns gets there
_check = Checks(RecordError)


@dataclass(eq=False)
class Continuation:
    """The state of a running run: what it needs to resume, and what it has measured so far."""

    job: Job
    state: State
    steps: int
    every: int
    runtime: Runtime
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    interruptions: int = 0
    measures: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    goal: dict[str, float] = field(default_factory=dict)  # target values of measures; the run ends when all are met
    fingerprint: str = ""  # of an objective that the record does not contain

    formerly: ClassVar = {"marks": None}

    @property
    def marks(self) -> NDArray[np.int64]:
        """The steps at which it was measured."""
        return marks_in(-1, self.state.step, self.every, self.steps) if self.measures else np.zeros(0, dtype=np.int64)

    @property
    def reached(self) -> bool:
        """Whether it is at a mark where the means over the walks have reached the goal."""
        at_mark = self.state.step % self.every == 0 or self.state.step == self.steps
        if not self.goal or not self.measures or not at_mark or self.job.objective is None:
            return False
        rising, found = self.job.objective.rising, self.latest(self.goal)
        return all(found[name] >= to if name in rising else found[name] <= to for name, to in self.goal.items())

    @property
    def over(self) -> bool:
        """Whether the run is finished."""
        return self.state.step >= self.steps or (bool(self.goal) and self.reached)

    def latest(self, names: Iterable[str] | None = None) -> dict[str, float]:
        """The means over the walks at the last mark, of all measures or of those with the given names."""
        with np.errstate(all="ignore"):  # a walk may have diverged
            # Contiguous: the order of summation, and hence the last bit, must not depend on the memory layout of a
            # chunk.
            return {
                name: float(np.ascontiguousarray(self.measures[name][-1][:, -1]).mean())
                for name in (self.measures if names is None else names)
            }

    def append(self, measures: dict[str, NDArray[Any]]) -> None:
        """Add measurements, with ∞ for NaN in diverged walks: means skip NaN, and such walks must not drop out."""
        objective = self.job.objective
        if objective is not None:
            diverged = ~np.isfinite(measures["loss"])
            for name in (*objective.measures, "distance", "consensus"):
                if name in measures:
                    worst = -np.inf if name in objective.rising else np.inf
                    measures[name][diverged & np.isnan(measures[name])] = worst
        for name, values in measures.items():
            self.measures.setdefault(name, []).append(values)

    def outside(self) -> dict[str, Any]:
        """Objects that a record does not contain, by name: an objective or rules that are code."""
        objective, found = self.job.objective, dict[str, Any]()
        if objective is not None and not objective.stored:
            self.fingerprint = self.fingerprint or objective.fingerprint
            found["objective"] = objective
        for place, phase in enumerate(self.job.phases):
            if phase.rule is not None and not phase.rule.stored:
                found[f"rule {place}"] = phase.rule
        return found

    def at(self, seconds: float) -> Continuation:
        """A copy for a record made while it runs: resuming from it counts as an interruption."""
        self.outside()  # computes the fingerprint once and keeps it
        return replace(self, seconds=seconds, interruptions=self.interruptions + 1)

    def data(self) -> xarray.Dataset:
        """All measurements so far, assembled in place."""
        import xarray

        job, state, graph = self.job, self.state, self.job.kernel.graph
        variables: dict[str, Any] = {}
        for name, values in self.measures.items():  # one at a time: two copies of all of them may not fit in memory
            self.measures[name] = [side_by_side(values)]
            variables[name] = (("walk", "step"), self.measures[name][0])
        variables |= self._at_nodes()
        attrs: dict[str, Any] = {"partial": int(not self.over), "label": label_of(job.phases, job.tokens)}
        if job.objective is not None:
            variables |= self._learned(variables["loss"][1])
            attrs |= {"primary": job.objective.primary, "heavy": list(job.objective.heavy), **job.optimal}
        if state.paths.shape[0]:
            kept = np.flatnonzero(state.path_of >= 0)
            variables["path"] = (("kept", "time"), state.paths[state.path_of[kept], : state.step + 1])
            variables["kept"] = ("kept", kept)
            variables["time"] = ("time", np.arange(state.step + 1))  # so that paths of different lengths can be joined
        coords: dict[str, Any] = {"step": self.marks, "walk": np.arange(state.walks)}
        if graph.n <= LARGE:  # otherwise nodes are numbered implicitly, without a stored number for each
            coords["node"] = np.arange(graph.n)
        if state.tokens > 1:
            coords["token"] = np.arange(state.tokens)
        if graph.node_names is not None:
            coords["node_name"] = ("node", np.array(graph.node_names))
        data = described(xarray.Dataset(variables, coords=coords, attrs=attrs))
        for name in () if job.objective is None else job.objective.rising:
            data[name].attrs["better"] = "higher"
        return data

    def _at_nodes(self) -> dict[str, Any]:
        """The visits to each node, and where the tokens are."""
        state, own = self.state, np.asarray if self.over else np.array  # a record shares no memory with a run
        if not state.visits_are_summed:
            visits = own(state.summed(state.visits))
        else:
            visits = state.visits if self.over else copy_of_counts(state.visits)
        alone = not state.visits_are_summed or state.walks == 1
        nodes = own(state.nodes)
        return {
            "visits": (("walk", "node"), visits) if alone else ("node", visits[0]),
            "at": (("walk", "token"), nodes.reshape(-1, state.tokens)) if state.tokens > 1 else ("walk", nodes),
        }

    def _learned(self, loss: NDArray[np.float64]) -> dict[str, Any]:
        """The last models, whether they have diverged, and the updates that led to them."""
        job, state = self.job, self.state
        models = state.reported(job.rule_of(state))
        by_walk = models.reshape(state.walks, state.tokens, -1)
        mean = by_walk.mean(axis=1, dtype=np.float64).astype(models.dtype) if state.tokens > 1 else models
        # A walk has diverged if a value is not finite, or its last loss is beyond any reasonable value.
        scale = np.fmax(np.abs(loss[:, 0]), np.fmax(abs(job.zero_loss), abs(job.optimal.get("optimal_loss", 0.0))))
        finite = np.isfinite(by_walk).all(axis=(1, 2)) & np.isfinite(loss).all(axis=1)
        beyond = (loss[:, -1] > _BLOWN_UP * scale) & (scale > 0)
        found: dict[str, Any] = {
            "final": (("walk", "coordinate"), np.asarray(mean) if self.over else np.array(mean)),
            "diverged": ("walk", ~finite | beyond),
            "updates": ("step", updates_at(job.phases, self.marks, job.tokens)),
        }
        smoothness = None if job.objective is None else job.objective.known_smoothness
        return found if smoothness is None else found | {"smoothness": ("node", smoothness)}

    def story(self) -> dict[str, Any]:
        """What was run, by which versions, when and for how long."""
        job = self.job
        phases = [
            {"until": one.until, "kernel": one.kernel.label, "rule": None if one.rule is None else repr(one.rule)}
            | ({} if one.exchange is None else {"exchange": repr(one.exchange)})
            for one in job.phases
        ]
        return {
            "graph": job.kernel.graph.name,
            "problem": None if job.objective is None else repr(job.objective),
            "phases": phases,
            "steps": self.steps,
            "walks": self.state.walks,
            **({"tokens": job.tokens} if job.tokens > 1 else {}),
            "every": self.every,
            **({"goal": dict(self.goal), "reached": self.state.step if self.reached else None} if self.goal else {}),
            "seed": job.seed,
            "precision": job.precision,
            "runtime": repr(self.runtime),
            "started": self.started,
            "seconds": round(self.seconds, 3),
            "interruptions": self.interruptions,
            "versions": dict(versions()),
            "platform": platform.platform(),
            **({} if job.objective is None else job.objective.story()),
        }

    def checked(self) -> Continuation:
        """A copy in which everything has been checked: engines trust their input, but files may be forged."""
        steps = _check.whole("record", "steps", self.steps, 1, MOST_STEPS)
        every = _check.whole("record", "every", self.every, 1)
        job = _check.instance("record", "job", self.job, Job, "a job")
        objective = None if job.objective is None else arguments.objective("record", job.objective)
        tokens = _check.whole("record", "tokens", job.tokens, 1)
        kind = _check.text("record", "precision", job.precision)
        job = prepare("record", objective, job.phases, steps=steps, tokens=tokens, seed=job.seed, precision=kind)
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
            goal=arguments.goal(self.goal or None, job.objective, job.tokens, "record"),
            fingerprint=_check.instance("record", "fingerprint", self.fingerprint, str, "a string"),
        )
        if self.fingerprint and job.objective is not None and job.objective.fingerprint != self.fingerprint:
            expected = "the same module, data and measures; pass the one that it began with"
            raise RecordError(f"record: it was made with another objective than {job.objective!r}, expected {expected}")
        run._take(_check.instance("record", "measures", self.measures, dict, "a mapping"))
        return run

    def _take(self, measures: dict[str, Any]) -> None:
        """Take over measurements that a file holds."""
        known = self.job.measured
        if "bytes" in known and "bytes" not in measures and len(measures) == len(known) - 1:
            del known["bytes"]  # a record of an earlier version
        if set(measures) != set(known):
            raise _check.fail("record", "measures", list(measures), f"{', '.join(known)}")
        count = count_marks(self.state.step, self.every, self.steps)
        for name, kind in known.items():
            values = _check.instance("record", name, measures[name], list, "a list of arrays")
            for part in values:
                fits = isinstance(part, np.ndarray) and part.ndim == 2 and part.dtype.newbyteorder("=") == kind
                if not fits or len(part) != self.state.walks:
                    expected = f"an array of {kind} by {self.state.walks} walks and checkpoints"
                    raise _check.fail("record", name, part, expected)
            # Copies keep the memory order: arrays stored mark by mark stay so.
            self.measures[name] = [np.array(part, dtype=kind) for part in values if part.shape[1]]
            if sum(part.shape[1] for part in self.measures[name]) != count:
                raise RecordError(f"record: {name} was not measured {count} times, as every and step require")
        if "bytes" in self.job.measured and "bytes" not in known and self.measures:
            self.measures["bytes"] = [self._bytes()]

    def _bytes(self) -> NDArray[np.int64]:
        """The bytes sent up to each mark, for a run of an earlier version: as if rules had changed only at marks."""
        job, state = self.job, self.state
        sizes = [job.message_bytes(job.rule_at(int(mark))) for mark in self.marks]
        messages, probes = (np.concatenate(self.measures[name], axis=1) for name in ("messages", "probes"))
        sent = np.cumsum(np.diff(messages, axis=1, prepend=0) * np.array(sizes), axis=1) + probes * PROBE_BYTES
        now = state.bytes_sent(job, state.messages[:, None], state.probes[:, None])[:, 0]
        since = (state.messages - messages[:, -1]) * sizes[-1] + (state.probes - probes[:, -1]) * PROBE_BYTES
        state.surplus += sent[:, -1] + since - now
        return np.asarray(sent)


def side_by_side(values: list[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays of walks × marks; those stored mark by mark stay so, which is much faster."""
    if all(value.flags.f_contiguous for value in values):
        return np.concatenate([value.T for value in values]).T
    return np.concatenate(values, axis=1)

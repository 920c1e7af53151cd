"""The state of a running run: what it needs to resume, what it has measured, and its memory."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError, RecordError
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.rules.rule import PROBE_BYTES
from freewalk.runtimes import Job, Runtime, State
from freewalk.storage.archive import same

MOST_STEPS = 2**62  # sums of two such numbers fit into 64 bits
_MOST_ROWS = 2**32 - 1  # draws number them with 32 bits
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
        return self.state.step >= self.steps or self.reached

    def latest(self, names: Iterable[str] | None = None) -> dict[str, float]:
        """The means over the walks at the last mark, of all measures or of those with the given names."""
        with np.errstate(all="ignore"):  # a walk may have diverged
            # Contiguous: the order of summation, and hence the last bit, must not depend on the memory layout of a
            # chunk.
            return {
                name: float(np.ascontiguousarray(self.measures[name][-1][:, -1]).mean())
                for name in (self.measures if names is None else names)
            }

    def handed(self, objective: Objective | None, rules: Sequence[Rule | None]) -> "Continuation":
        """The same run with the objective and rules passed to `fw.resume`, in place of those that are code.

        Everything passed must equal what the run began with, even if it is not needed: nothing is ignored.

        Parameters
        ----------
        objective
            The objective, or None to keep that of the run.
        rules
            The rule of each phase, or None to keep that of the run.

        Raises
        ------
        RecordError
            If one of them is not what the run began with.
        """
        job, fingerprint = self.job, self.fingerprint
        if objective is not None and objective is not job.objective:
            _check.instance("resume", "objective", objective, Objective, "the objective that it began with")
            if job.objective is None or (job.objective.stored and not same(objective, job.objective)):
                raise _refusal("objective", objective, job.objective)
            if not job.objective.stored:
                fingerprint = fingerprint or job.objective.fingerprint
                job = replace(job, objective=objective)
        if len(rules) > len(job.phases):
            raise _check.fail("resume", "rule", rules, f"at most {len(job.phases)}, one for each phase")
        given = [*rules, *[None] * (len(job.phases) - len(rules))]
        phases = [
            phase if rule is None else replace(phase, rule=_same_rule(rule, phase, job.objective))
            for rule, phase in zip(given, job.phases, strict=True)
        ]
        return replace(self, job=replace(job, phases=tuple(phases)), fingerprint=fingerprint).checked()

    def checked(self) -> "Continuation":
        """A copy in which everything has been checked: engines trust their input, but files may be forged.

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
            goal=arguments.goal(self.goal or None, job.objective, job.tokens, "record"),
            fingerprint=_check.instance("record", "fingerprint", self.fingerprint, str, "a string"),
        )
        if self.fingerprint and job.objective is not None and job.objective.fingerprint != self.fingerprint:
            raise RecordError(
                f"record: it was made with an objective other than {job.objective!r}, expected the same module, data "
                "and measures; pass the one that it began with"
            )
        _check.instance("record", "measures", self.measures, dict, "a mapping")
        known = job.measured
        if "bytes" in known and "bytes" not in self.measures and len(self.measures) == len(known) - 1:
            del known["bytes"]  # a record of an earlier version
        if set(self.measures) != set(known):
            raise _check.fail("record", "measures", list(self.measures), f"{', '.join(known)}")
        count = count_marks(state.step, every, steps)
        for name, kind in known.items():
            values = _check.instance("record", name, self.measures[name], list, "a list of arrays")
            parts = [_measured(name, part, kind, state.walks) for part in values]
            run.measures[name] = [part for part in parts if part.shape[1]]
            if sum(part.shape[1] for part in run.measures[name]) != count:
                raise RecordError(f"record: {name} was not measured {count} times, as every and step require")
        if "bytes" in job.measured and "bytes" not in known and run.measures:
            run.measures["bytes"] = [_bytes_of(run)]
        return run


def _same_rule(rule: Rule, phase: Phase, objective: Objective | None) -> Rule:
    """A rule passed by the user, with parameters filled in that follow from the objective and the kernel."""
    _check.instance("resume", "rule", rule, Rule, "the rule that it began with; with phases, a list of them")
    own = None if objective is None else phase.rule
    if objective is None or own is None or type(rule) is not type(own):
        raise _refusal("rule", rule, own)
    fitted = rule.fitted(objective, phase.kernel)
    # A function that was defined again is identified by its name only.
    if not (same(fitted, own) if own.stored else _words(fitted) == _words(own)):
        raise _refusal("rule", rule, own)
    return fitted


def _words(rule: Rule) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(rule))


def _refusal(name: str, got: Any, own: Any) -> FreewalkError:
    if own is None:
        return _check.fail("resume", name, got, "None", "the record is one of fw.walk, which learns nothing")
    expected = f"the {name} that it began with, {'with the same data' if name == 'objective' else show(own)}"
    return _check.fail("resume", name, got, expected, "the record has it, so leave it out")


def _bytes_of(run: Continuation) -> NDArray[np.int64]:
    """The bytes sent up to each mark, for a run of an earlier version: as if rules had changed only at marks."""
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
    return np.array(values, dtype=kind)  # keeps the memory order: arrays stored mark by mark stay so


def check_room(job: Job, walks: int, steps: int, every: int, kept: int = 0) -> None:
    """Raise a FreewalkError unless a run fits into memory, before any of it is allocated."""
    check = Checks(FreewalkError)
    count = count_marks(steps, every, steps)
    columns = len(job.measured) + 1  # one more: they are joined one after the other
    model, n, rows = max(job.message_bytes(phase.rule) for phase in job.phases), job.kernel.graph.n, walks * job.tokens
    who = f"{walks:,} walks" if job.tokens == 1 else f"{walks:,} walks × {job.tokens:,} tokens"
    copies = 1 + (job.tokens > 1)  # exchanges need memory to mix
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
    check.room("run", f"measuring {walks:,} walks {count:,} times", sizes[1], "increase `every`")
    check.room("run", f"{kept:,} paths of {steps:,} steps", sizes[2], "keep fewer paths")
    # When a rule begins, the vectors of the previous one are still in memory.
    most = max(one + other for one, other in pairwise([*stored, 0.0]))
    check.room("run", "models, measurements, paths and what stays at the nodes", sum(sizes) + most, "run fewer walks")


def marks_in(after: int, until: int, every: int, steps: int) -> NDArray[np.int64]:
    """The steps in (after, until] at which to measure."""
    first = (after // every + 1) * every
    count = max((until - first) // every + 1, 0)  # np.arange would compute it in floating point
    marks = min(first, until) + every * np.arange(count, dtype=np.int64)
    return np.append(marks, steps) if until == steps and steps % every else marks


def count_marks(step: int, every: int, steps: int) -> int:
    """The number of measured steps from 0 to `step`."""
    return 1 + step // every + (step == steps and steps % every > 0)

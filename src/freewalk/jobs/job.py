"""What is run, `Job`, and its current state, `State`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import add_counts, copy_of_counts, no_counts
from freewalk.checks import Checks, Ints
from freewalk.designs.kernel import Kernel
from freewalk.designs.memory import EPOCH, LEAST, VisitCounts
from freewalk.errors import RecordError
from freewalk.jobs import arguments
from freewalk.jobs.phase import Passage, Phase, phase_at
from freewalk.objectives import Objective
from freewalk.objectives.objective import measured
from freewalk.rules import Rule
from freewalk.rules.rule import PROBE_BYTES, begun

_check = Checks(RecordError)
_VISITS_BY_WALK = 4_000_000  # with more counts than this, visits are summed over the walks

Measures = dict[str, NDArray[Any]]
Vectors = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that determines a run, except its length."""

    objective: Objective | None
    phases: tuple[Phase, ...]
    seed: int
    precision: str = "float64"
    tokens: int = 1  # models that walk at the same time within one walk

    formerly: ClassVar = {"problem": "objective"}

    @property
    def kernel(self) -> Kernel:
        """The kernel of the first phase; all phases share its graph."""
        return self.phases[0].kernel

    @property
    def dim(self) -> int:
        """The size of a model; 0 if nothing is learned."""
        return 0 if self.objective is None else self.objective.dim

    @property
    def measured(self) -> dict[str, str]:
        """The measures of its engines, and the types of the arrays."""
        counts = dict.fromkeys(("messages", "probes"), "int64")
        if self.objective is None:
            return counts
        apart = ("consensus",) if self.tokens > 1 else ()
        return counts | {"bytes": "int64"} | dict.fromkeys((*self.objective.measures, "distance", *apart), "float64")

    @cached_property
    def optimum(self) -> NDArray[np.float64]:
        """The optimum from which distances are measured; NaN if the objective has none."""
        return np.zeros(0) if self.objective is None else arguments.optimum(self.objective)

    @cached_property
    def optimal(self) -> dict[str, float]:
        """The values of the measures at the optimum, for figures and tables; computed once."""
        if self.objective is None or np.isnan(self.optimum).any():
            return {}
        values = measured(self.objective, self.optimum)
        return {f"optimal_{name}": float(values[name]) for name in self.objective.measures}

    @cached_property
    def zero_loss(self) -> float:
        """The loss of the zero model; NaN if it has none."""
        try:
            with np.errstate(all="ignore"):
                return np.nan if self.objective is None else float(self.objective.zero_loss())
        except Exception:  # a user's objective that fails there must not end the run
            return np.nan

    def rule_at(self, step: int) -> Rule | None:
        """The rule of the update that led to a step; at step 0, that of the first update."""
        return phase_at(self.phases, max(step - 1, 0)).phase.rule

    def rule_of(self, state: State) -> Rule | None:
        """The rule whose vectors a state holds."""
        return phase_at(self.phases, max(state.entered, 0)).phase.rule

    def passage(self, start: int, until: int, marks: Ints) -> Passage:
        """The steps from `start` to `until` or to the end of their phase; empty if until = start."""
        phase, end, began = phase_at(self.phases, start if until > start else max(start - 1, 0))
        until = until if end is None else max(min(until, end), start)
        return Passage(phase, began, start, until, marks[marks <= until])

    def message_bytes(self, rule: Rule | None) -> int:
        """The bytes of one message: the model and what the rule carries."""
        if rule is None or self.objective is None:
            return 0
        return (self.dim + rule.sent(self.objective)) * np.dtype(self.precision).itemsize


@dataclass(eq=False)
class State:
    """The position of every token, what it carries, what is stored at the nodes, and all counts.

    A row is a token; those of walk number w are the rows w · tokens to (w + 1) · tokens − 1.
    """

    step: int
    nodes: NDArray[np.int32]
    models: Vectors  # rows × dim
    carried: Vectors  # vectors × rows × dim
    messages: Ints
    probes: Ints
    visits: Ints  # rows × nodes, or 1 × nodes if summed over rows
    path_of: Ints  # for each row, the index of its path in `paths`, or -1
    paths: NDArray[np.int32]
    stored: Vectors = None  # type: ignore[assignment]  # rows (walks, if shared) × nodes × vectors × dim
    seen: Ints = None  # type: ignore[assignment]  # rows × nodes, where the rule counts visits
    surplus: Ints = None  # type: ignore[assignment]  # by walk: bytes to add, since earlier rules sent other messages
    exchanged: Ints = None  # type: ignore[assignment]  # by walk: messages sent in exchanges
    entered: int = -1  # the step at which the vectors of the rule were initialized
    first: int = 0  # the number of the first row
    tokens: int = 1  # rows of each walk
    # What a token remembers, if its kernel has a memory; see `designs/memory.py`.
    previous: NDArray[np.int32] = None  # type: ignore[assignment]  # by row: where it came from, or -1
    counters: NDArray[np.float64] = None  # type: ignore[assignment]  # rows × nodes: weighted visits, < 0 before one
    known: Ints = None  # type: ignore[assignment]  # by row: the nodes that it has visited
    freight: Ints = None  # type: ignore[assignment]  # by row: bytes of counters sent
    counted_from: int = 0  # the step at which counting began
    epoch: int = 0  # of the counters

    def __post_init__(self) -> None:
        if self.stored is None:
            self.stored = np.zeros((self.rows, 0, 0, self.dim), dtype=self.models.dtype)
        if self.seen is None:
            self.seen = np.zeros((self.rows, 0), dtype=np.int64)
        if self.surplus is None:
            self.surplus = np.zeros(self.walks, dtype=np.int64)
        if self.exchanged is None:
            self.exchanged = np.zeros(self.walks, dtype=np.int64)
        if self.previous is None:
            self.previous = np.full(self.rows, -1, dtype=np.int32)
            self.counters = np.zeros((self.rows, 0))
            self.known, self.freight = (np.zeros(self.rows, dtype=np.int64) for _ in range(2))

    @classmethod
    def begin(
        cls, job: Job, nodes: NDArray[np.int32], models: Vectors, steps: int = 0, path_of: Ints | None = None
    ) -> State:
        """The initial state of a job: initial nodes and models; `path_of` says which rows keep a path."""
        rows, n = nodes.size, job.kernel.graph.n
        path_of = np.full(rows, -1, dtype=np.int64) if path_of is None else path_of
        kept = path_of >= 0
        state = cls(
            step=0,
            nodes=nodes,
            models=models,
            carried=np.zeros((0, *models.shape), dtype=models.dtype),
            messages=np.zeros(rows, dtype=np.int64),
            probes=np.zeros(rows, dtype=np.int64),
            visits=np.zeros((rows if rows * n <= _VISITS_BY_WALK else 1, n), dtype=np.int64),
            path_of=path_of,
            paths=np.zeros((int(kept.sum()), steps + 1 if kept.any() else 1), dtype=np.int32),
            tokens=job.tokens,
        )
        state.paths[path_of[kept], 0] = nodes[kept]
        state.enter(job)
        return state

    def enter(self, job: Job) -> None:
        """Initialize the vectors of the rule of the next update, if it is a new rule."""
        phase, _, began = phase_at(job.phases, self.step)
        rule = phase.rule
        if self.entered == began:
            return
        self.entered = began
        if rule is None or job.objective is None:
            return
        if self.step > 0:
            sent = self.summed(self.messages) + self.exchanged
            self.surplus += sent * (job.message_bytes(job.rule_at(self.step)) - job.message_bytes(rule))
        vectors, n, kind = begun(rule, self.models), job.kernel.graph.n, self.models.dtype
        self.carried = np.empty((len(rule.carries), *self.models.shape), dtype=kind)
        for index, name in enumerate(rule.carries):
            self.carried[index] = vectors[name]
        keepers, share = (self.walks, self.tokens) if rule.shared else (self.rows, 1)
        self.stored = np.zeros((keepers, n if rule.stores else 0, len(rule.stores), self.dim), dtype=kind)
        for index, name in enumerate(rule.stores):
            self.stored[:, :, index] = vectors[name][::share, None]
            # If tokens share it, its initial value at a node is that of the token that is there.
            self.stored[np.arange(self.rows) // share, self.nodes, index] = vectors[name]
        self.seen = np.zeros((self.rows, n if rule.counts_visits else 0), dtype=np.int64)

    def begins_phase(self, job: Job) -> bool:
        """Whether the next step is the first of a phase that remembers, or that follows one."""
        remembers = any(phase.kernel.memory is not None for phase in job.phases)
        return remembers and (self.step == 0 or any(phase.until == self.step for phase in job.phases))

    def recall(self, job: Job) -> None:
        """Begin a phase: where tokens came from is forgotten; counters are kept, or begin at the target."""
        self.previous[:] = -1
        place = job.phases.index(phase_at(job.phases, self.step).phase)
        memory, target = job.phases[place].kernel.memory, np.asarray(job.phases[place].kernel.target)
        if not isinstance(memory, VisitCounts):
            return
        if not self.counters.shape[1]:
            self.counters, self.counted_from = np.tile(-target, (self.rows, 1)), self.step
            return
        before = job.phases[place - 1].kernel.memory if place else memory
        if (
            not isinstance(before, VisitCounts) or before.fading != memory.fading
        ):  # visits grew otherwise, or not at all
            now = self.step - self.counted_from
            total, self.epoch = memory.total(target.size, now), memory.epoch(target.size, now)
            for counters in self.counters:
                counters *= total / math.fsum(np.abs(counters))  # rounded once, so the same on every machine
            self.begin_epoch(self.epoch)

    def begin_epoch(self, epoch: int) -> None:
        """Divide the counters, which have grown large."""
        self.counters *= 2.0 ** (EPOCH * (self.epoch - epoch))
        small = np.abs(self.counters) < LEAST
        self.counters[small] = np.copysign(LEAST, self.counters[small])
        self.epoch = epoch

    @property
    def rows(self) -> int:
        """The total number of tokens."""
        return int(self.nodes.size)

    @property
    def walks(self) -> int:
        """The number of walks."""
        return self.rows // self.tokens

    def summed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by row, summed over the tokens of each walk."""
        return values if self.tokens == 1 else values.reshape(-1, self.tokens, *values.shape[1:]).sum(axis=1)

    @property
    def dim(self) -> int:
        """The size of a model."""
        return int(self.models.shape[1])

    @property
    def visits_are_summed(self) -> bool:
        """Whether visits are summed over all rows."""
        return bool(self.visits.shape[0] != self.rows)

    def reported(self, rule: Rule | None) -> Vectors:
        """The models to report, or what their rule reports instead, by row."""
        return self.models if rule is None or rule.reports == "x" else self.carried[rule.carries.index(rule.reports)]

    def bytes_sent(self, job: Job, messages: Ints, probes: Ints) -> Ints:
        """The total bytes of these messages and probes of each walk (walks × marks)."""
        sent = np.asarray(messages * job.message_bytes(job.rule_of(self)))  # keeps the memory order of the messages
        if probes.any():
            sent += probes * PROBE_BYTES
        if self.surplus.any():
            sent += self.surplus[:, None]
        return sent

    def part(self, first: int, last: int) -> State:
        """The walks first..last-1 as a separate state, which shares their arrays until it advances.

        Visits summed over all walks start at 0 in it, and paths are copies: `join` combines both.
        """
        rows, walks = slice(first * self.tokens, last * self.tokens), slice(first, last)
        path_of, kept = self.path_of[rows].copy(), self.path_of[rows] >= 0
        paths = self.paths[path_of[kept]]
        path_of[kept] = np.arange(len(paths))
        values: dict[str, Any] = {name: getattr(self, name)[rows] for name in _BY_ROW}
        values |= {name: getattr(self, name)[walks] for name in _BY_WALK}
        values["stored"] = self.stored[rows if len(self.stored) == self.rows else walks]
        values["visits"] = no_counts(self.visits) if self.visits_are_summed else self.visits[rows]
        values |= {"carried": self.carried[:, rows], "path_of": path_of, "paths": paths}
        return replace(self, first=self.first + first * self.tokens, **values)

    def join(self, parts: Sequence[State]) -> None:
        """Update this state from its parts, which together hold all of its walks, in any order."""
        parts = sorted(parts, key=lambda part: part.first)
        for part in parts:
            rows, kept = slice(part.first - self.first, part.first - self.first + part.rows), part.path_of >= 0
            self.paths[self.path_of[rows][kept]] = part.paths[part.path_of[kept]]
            if self.visits_are_summed:
                add_counts(self.visits[0], part.visits[0])
            else:
                self.visits[rows] = part.visits
        for name in (*_BY_ROW, *_BY_WALK, "stored", "carried"):
            arrays, axis = [getattr(part, name) for part in parts], int(name == "carried")
            if not all(np.may_share_memory(array, getattr(self, name)) for array in arrays):
                setattr(self, name, np.concatenate(arrays, axis=axis))
        for name in ("step", "entered", "counted_from", "epoch"):
            setattr(self, name, getattr(parts[0], name))

    def checked(self, job: Job, steps: int) -> State:
        """A copy with exactly the types, shapes and ranges that engines rely on."""
        n, dim = job.kernel.graph.n, job.dim
        step = _check.whole("record", "step", self.step, 0, steps)
        rows, tokens = max(np.size(self.nodes), 1), _check.whole("record", "tokens", self.tokens, 1)
        if tokens != job.tokens or rows % tokens:
            raise _check.fail("record", "tokens", tokens, f"{job.tokens}, as its job, and whole walks of {rows} rows")
        began = phase_at(job.phases, max(step - 1, 0)).began
        entered = began if self.entered == -1 else _check.whole("record", "entered", self.entered, 0, step)
        if entered not in (began, phase_at(job.phases, min(step, steps - 1)).began):
            raise _check.fail("record", "entered", entered, "the step at which a rule began")
        rule = None if job.objective is None else phase_at(job.phases, entered).phase.rule
        hops = max(move.hops for phase in job.phases for move in phase.kernel.moves)
        most = min(step * max(hops, 1), 2**62)  # the most models that a walk can have sent by now
        asked = int(job.kernel.graph.degrees.max()) if any(map(_counts, job.phases)) else 1  # by one step
        path_of = _exactly("path_of", self.path_of, "int64", (rows,), -1, rows - 1)
        kept = np.sort(path_of[path_of >= 0])
        if not np.array_equal(kept, np.arange(kept.size)):
            raise _check.fail("record", "path_of", path_of, f"each of {kept.size} rows once")
        summed = rows > 1 and np.shape(self.visits)[:1] == (1,)
        carries, stores, counts, keepers = 0, 0, False, rows
        if rule is not None:
            carries, stores, counts = len(rule.carries), len(rule.stores), rule.counts_visits
            keepers = rows // tokens if rule.shared else rows
        floats, walks = job.precision, rows // tokens
        counting = any(_counts(phase) for phase in job.phases[: 1 + job.phases.index(phase_at(job.phases, step).phase)])
        expected: dict[str, tuple[Any, ...]] = {
            "nodes": ("int32", (rows,), 0, n - 1),
            "models": (floats, (rows, dim)),
            "carried": (floats, (carries, rows, dim)),
            "messages": ("int64", (rows,), 0, most),
            "probes": ("int64", (rows,), 0, 2 * asked * most),
            "visits": ("int64", (1 if summed else rows, n), 0, step * (rows if summed else 1)),
            "paths": ("int32", (kept.size, steps + 1 if kept.size else 1), 0, n - 1),
            "stored": (floats, (keepers, n if stores else 0, stores, dim)),
            "seen": ("int64", (rows, n if counts else 0), 0, step),
            "surplus": ("int64", (walks,)),
            "exchanged": ("int64", (walks,), 0, 2**62),
            "previous": ("int32", (rows,), -1, n - 1),
            "counters": ("float64", (rows, n if counting else 0)),
            "known": ("int64", (rows,), 0, n),
            "freight": ("int64", (rows,), 0, 2**62),
        }
        arrays = {name: _exactly(name, getattr(self, name), *one) for name, one in expected.items()}
        first = _check.whole("record", "first", self.first, 0, 2**32 - rows)
        if counting and not (np.abs(arrays["counters"]) >= LEAST).all():
            raise _check.fail("record", "counters", arrays["counters"], "numbers that are not 0")
        since = _check.whole("record", "counted_from", self.counted_from, 0, step)
        epoch = _check.whole("record", "epoch", self.epoch, 0)
        return State(
            step=step,
            path_of=path_of,
            entered=entered,
            first=first,
            tokens=tokens,
            counted_from=since,
            epoch=epoch,
            **arrays,
        )


def _counts(phase: Phase) -> bool:
    """Whether tokens count their visits in a phase."""
    return isinstance(phase.kernel.memory, VisitCounts)


_BY_ROW = ("nodes", "models", "messages", "probes", "seen", "previous", "counters", "known", "freight")
_BY_WALK = ("surplus", "exchanged")


def _exactly(
    name: str, values: Any, kind: str, shape: tuple[int, ...], low: int | None = None, high: int | None = None
) -> NDArray[Any]:
    """A copy of an array that must have this type (up to byte order), this shape and, if given, this range."""
    if not (isinstance(values, np.ndarray) and values.dtype.newbyteorder("=") == kind and values.shape == shape):
        raise _check.fail("record", name, values, f"an array of {kind} of shape {shape}")
    if low is not None and high is not None:
        _check.integers("record", name, values, shape, low=low, high=high, keep=kind)
    if name == "visits":
        return copy_of_counts(values.astype(kind, copy=False))
    return np.array(values, dtype=kind, order="C")

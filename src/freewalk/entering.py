"""What enters a run is checked here, before anything is computed."""

import reprlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel
from freewalk.learning import Rule
from freewalk.objectives import Objective
from freewalk.phases import Phase

seed = rng.check_seed


def count(name: str, value: int, error: type[FreewalkError] = FreewalkError) -> int:
    """A whole number that is at least 1."""
    if not _is_whole(value) or value < 1:
        raise error(f"{name}: got {value!r}, expected a whole number >= 1")
    return int(value)


def precision(value: str) -> str:
    """The name of a float type."""
    if not isinstance(value, str) or value not in ("float64", "float32"):
        raise FreewalkError(f"precision: got {value!r}, expected 'float64' or 'float32'")
    return value


def problem(value: Objective) -> Objective:
    """An objective."""
    if not isinstance(value, Objective):
        raise FreewalkError(f"problem: got {value!r}, expected an objective such as fw.objectives.LeastSquares(...)")
    return value


def progress(value: Any) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise FreewalkError(f"progress: got {value!r}, expected a function of the step reached and the number of steps")


def phases(
    kernel: Kernel | Sequence[Phase], rule: Rule | None, problem: Objective | None, who: str = "learn"
) -> tuple[Phase, ...]:
    """A kernel and a rule, or a list of phases, as phases that fit each other and the problem; `who` asks for them."""
    if isinstance(kernel, Kernel):
        listed = [Phase(None, kernel, rule)]
    elif rule is not None and isinstance(kernel, (list, tuple)):
        raise FreewalkError(
            f"{who}: got a list of phases and a rule; each phase names its own rule: fw.Phase(until, kernel, rule)"
        )
    else:
        listed = list(kernel) if isinstance(kernel, (list, tuple)) else []
    if not listed or not all(isinstance(phase, Phase) and isinstance(phase.kernel, Kernel) for phase in listed):
        raise FreewalkError(
            f"kernel: got {reprlib.repr(kernel)}, expected a kernel, as design.kernel(graph, importance) makes it, or "
            "a list of fw.Phase(until, kernel, rule)"
        )
    ends = [phase.until for phase in listed]
    given: list[Any] = ends[:-1] if ends[-1] is None else ends
    if not all(_is_whole(end) for end in given) or any(b <= a for a, b in pairwise([0, *given])):
        raise FreewalkError(f"phases: they end at {ends}, expected growing whole numbers; only the last may be None")
    if any(phase.kernel.graph != listed[0].kernel.graph for phase in listed):
        raise FreewalkError("phases: their kernels live on different graphs, expected one graph")
    if problem is not None:
        for phase in listed:
            if not isinstance(phase.rule, Rule):
                raise FreewalkError(f"rule: got {phase.rule!r}, expected an update rule such as fw.SGD(step=1e-3)")
        n = listed[0].kernel.graph.n
        if problem.n != n:
            raise FreewalkError(
                f"{who}: the problem has {problem.n} nodes and the graph {n}; expected the same number (a problem "
                "has as many nodes as the largest number in `nodes` says: does the last one hold data?)"
            )
    return tuple(listed)


def phases_cover(listed: tuple[Phase, ...], steps: int) -> None:
    """Every phase has its steps, and the last reaches the end of the run."""
    for phase in listed[:-1]:
        if phase.until is not None and phase.until >= steps:
            raise FreewalkError(
                f"phases: one begins at step {phase.until}, and the run ends at {steps}; leave it out or run longer"
            )
    end = listed[-1].until
    if end is not None and end < steps:
        raise FreewalkError(
            f"phases: the last ends at step {end}, before the {steps} steps of the run; let its until be None"
        )


def schedules(listed: tuple[Phase, ...], steps: int) -> None:
    """Try whatever changes with the step all along the run: a schedule that turns bad must not cost a run half done."""
    grid = np.unique(np.linspace(0, steps - 1, 1000).astype(np.int64))
    for phase in listed:
        phase.kernel.probabilities(grid)
        if phase.rule is None:
            continue
        rates = np.asarray(phase.rule.rates(grid))
        if rates.shape != grid.shape or not (np.isfinite(rates) & (rates >= 0)).all():
            raise FreewalkError(
                f"{type(phase.rule).__name__}: rates() gives {reprlib.repr(rates)}, expected one finite number >= 0 "
                "for each of the steps it is given"
            )


def models(initial: ArrayLike | None, dim: int, walks: int, kind: str) -> NDArray[Any]:
    """The first model of each walk."""
    if initial is None:
        return np.zeros((walks, dim), dtype=kind)
    try:
        with np.errstate(over="ignore"):  # a number that float32 cannot hold is infinite, hence refused below
            values = np.array(initial, dtype=kind)
    except (TypeError, ValueError):
        raise FreewalkError(
            f"initial: got {initial!r}, expected an array of numbers, ({dim},) or ({walks}, {dim})"
        ) from None
    if values.shape not in ((dim,), (walks, dim)):
        raise FreewalkError(f"initial: got shape {values.shape}, expected ({dim},) or ({walks}, {dim})")
    if not np.isfinite(values).all():
        raise FreewalkError("initial: got values that are not finite, expected a model to start from")
    return np.array(np.broadcast_to(values, (walks, dim)), order="C")


def start(value: str | ArrayLike, seed_: int, walks: int, n: int) -> NDArray[np.int32]:
    """The first node of each walk."""
    if isinstance(value, str):
        if value != "uniform":
            raise FreewalkError(
                f"start: got {value!r}, expected a node, an array of nodes, or 'uniform'; a heavy node is "
                "int(problem.smoothness.argmax())"
            )
        words = rng.word_pair(
            np.uint64(seed_), rng.START, np.arange(walks, dtype=np.uint64), np.uint64(0), np.uint64(0)
        )[0]
        return np.asarray(rng.pick(words, np.uint64(n)), dtype=np.int32)
    nodes = _integers(value)
    if nodes is None or nodes.shape not in ((), (walks,)):
        raise FreewalkError(f"start: got {value!r}, expected a node, an array of {walks} nodes, or 'uniform'")
    if nodes.size and (nodes.min() < 0 or nodes.max() >= n):
        raise FreewalkError(f"start: got node {nodes.min() if nodes.min() < 0 else nodes.max()}, expected 0 to {n - 1}")
    return np.array(np.broadcast_to(nodes, (walks,)), dtype=np.int32)


def paths(value: int | Sequence[int], walks: int) -> NDArray[np.int64]:
    """By walk: the row of its path, or -1."""
    chosen = _integers(value)
    if chosen is not None and chosen.ndim == 0:
        chosen = np.arange(int(chosen)) if 0 <= int(chosen) <= walks else None
    fits = chosen is not None and chosen.ndim == 1 and ((chosen >= 0) & (chosen < walks)).all()
    if chosen is None or not fits or np.unique(chosen).size != chosen.size:
        raise FreewalkError(
            f"paths: got {value!r}, expected how many of the {walks} walks to keep, or which of 0..{walks - 1}, each "
            "once"
        )
    rows = np.full(walks, -1, dtype=np.int64)
    rows[chosen] = np.arange(chosen.size)
    return rows


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _integers(value: Any) -> NDArray[np.int64] | None:
    """An array of whole numbers, or None where it is not one."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        return None
    return array.astype(np.int64) if array.dtype.kind in "iu" or array.size == 0 else None

"""What enters a run is checked here, before anything is computed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel
from freewalk.learning import Rule
from freewalk.objectives import Objective
from freewalk.runtimes import Phase

seed = rng.check_seed


def count(name: str, value: int) -> int:
    """A whole number that is at least 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise FreewalkError(f"{name}: got {value!r}, expected a whole number >= 1")
    return int(value)


def precision(value: str) -> str:
    """The name of a float type."""
    if value not in ("float64", "float32"):
        raise FreewalkError(f"precision: got {value!r}, expected 'float64' or 'float32'")
    return value


def phases(kernel: Kernel | Sequence[Phase], rule: Rule | None, problem: Objective | None) -> tuple[Phase, ...]:
    """A kernel and a rule, or a list of phases, as phases that fit each other and the problem."""
    if isinstance(kernel, Kernel):
        listed = [Phase(None, kernel, rule)]
    elif rule is not None:
        raise FreewalkError(
            "learn: got a list of phases and a rule; each phase names its own rule: fw.Phase(until, kernel, rule)"
        )
    else:
        listed = list(kernel) if isinstance(kernel, (list, tuple)) else []
    if not listed or not all(isinstance(phase, Phase) and isinstance(phase.kernel, Kernel) for phase in listed):
        raise FreewalkError(
            f"kernel: got {kernel!r}, expected a kernel, as design.kernel(graph, importance) makes it, or a list of "
            "fw.Phase"
        )
    ends = [phase.until for phase in listed]
    inner = [0 if end is None else end for end in ends[:-1]]
    if any(b <= a for a, b in zip([0, *inner], inner, strict=False)) or None in ends[:-1]:
        raise FreewalkError(f"phases: they end at {ends}, expected growing steps; only the last may be None")
    if any(phase.kernel.graph != listed[0].kernel.graph for phase in listed):
        raise FreewalkError("phases: their kernels live on different graphs, expected one graph")
    if problem is not None:
        if not isinstance(problem, Objective):
            raise FreewalkError(
                f"problem: got {problem!r}, expected an objective such as fw.objectives.LeastSquares(...)"
            )
        if any(not isinstance(phase.rule, Rule) for phase in listed):
            raise FreewalkError(f"rule: got {rule!r}, expected an update rule such as fw.SGD(step=1e-3)")
        n = listed[0].kernel.graph.n
        if problem.n != n:
            raise FreewalkError(f"learn: the problem has {problem.n} nodes and the graph {n}; expected the same number")
    return tuple(listed)


def phases_cover(listed: tuple[Phase, ...], steps: int) -> None:
    """The last phase reaches the end of the run."""
    end = listed[-1].until
    if end is not None and end < steps:
        raise FreewalkError(
            f"phases: the last ends at step {end}, before the {steps} steps of the run; let its until be None"
        )


def models(initial: ArrayLike | None, dim: int, walks: int, kind: str) -> NDArray[Any]:
    """The first model of each walk."""
    if initial is None:
        return np.zeros((walks, dim), dtype=kind)
    values = np.array(initial, dtype=kind)
    if values.shape not in ((dim,), (walks, dim)):
        raise FreewalkError(f"initial: got shape {values.shape}, expected ({dim},) or ({walks}, {dim})")
    if not np.isfinite(values).all():
        raise FreewalkError("initial: got values that are not finite, expected a model to start from")
    return np.array(np.broadcast_to(values, (walks, dim)))


def start(value: str | ArrayLike, seed_: int, walks: int, n: int) -> NDArray[np.int32]:
    """The first node of each walk."""
    if isinstance(value, str):
        if value != "uniform":
            raise FreewalkError(f"start: got {value!r}, expected a node, an array of nodes, or 'uniform'")
        words = rng.word_pair(
            np.uint64(seed_), rng.START, np.arange(walks, dtype=np.uint64), np.uint64(0), np.uint64(0)
        )[0]
        return np.asarray(rng.pick(words, np.uint64(n)), dtype=np.int32)
    nodes = np.asarray(value)
    if nodes.dtype.kind not in "iu" or nodes.shape not in ((), (walks,)):
        raise FreewalkError(f"start: got {value!r}, expected a node, an array of {walks} nodes, or 'uniform'")
    if nodes.size and (nodes.min() < 0 or nodes.max() >= n):
        raise FreewalkError(f"start: got node {nodes.min() if nodes.min() < 0 else nodes.max()}, expected 0 to {n - 1}")
    return np.array(np.broadcast_to(nodes, (walks,)), dtype=np.int32)


def paths(value: int | Sequence[int], walks: int) -> NDArray[np.int64]:
    """By walk: the row of its path, or -1."""
    chosen = np.arange(value) if isinstance(value, (int, np.integer)) else np.asarray(value, dtype=np.int64)
    if chosen.ndim != 1 or (chosen.size and not (chosen.min() >= 0 and chosen.max() < walks)):
        raise FreewalkError(
            f"paths: got {value!r}, expected how many of the {walks} walks to keep, or which of 0..{walks - 1}"
        )
    rows = np.full(walks, -1, dtype=np.int64)
    rows[chosen] = np.arange(chosen.size)
    return rows

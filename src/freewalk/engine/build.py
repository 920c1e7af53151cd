"""Prepare what compiled code reads: the program of an objective and a rule, its samples, its table, its plan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import native, rng
from freewalk.compiling import compile_functions
from freewalk.engine import arrays, cpu, step
from freewalk.engine.table import HOPS, PLAIN, begins_near, compile_kernel
from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel
from freewalk.objectives import LeastSquares, Predictor
from freewalk.rules import Rule

_ROWS = 2**14
_LINE, _CACHE = 64, 2**26  # bytes
_UNROLLED = 32  # up to so many coordinates, their number is compiled in
_CALLS = ("draw_block", "walk_block", "learn_block", "measure_block", "word")
_APPLY = (step.apply_alone, step.apply_with_one, step.apply_with_two)


class Program(NamedTuple):
    """A phase made ready: the compiled halves and the arrays they read. A phase that does not learn has one half."""

    walk: Callable[..., None]
    learn: Callable[..., None] | None
    table: arrays.Table
    data: arrays.Data | None


def program(
    problem: Predictor | None, kernel: Kernel, rule: Rule | None, optimum: NDArray[np.float64], precision: str
) -> Program:
    """Make a phase ready for a processor."""
    walk = compile_functions({"walk_slab": cpu.walk_slab, "choose": native.choose}, "walk_slab", calls=_CALLS)
    table = compile_kernel(kernel)
    if problem is None or rule is None:
        return Program(walk, None, table, None)
    functions = {
        "learn_slab": cpu.learn_slab,
        "DIM": problem.dim if problem.dim <= _UNROLLED else 0,
        "SPLIT": "math" in getattr(getattr(type(problem).slope, "__code__", None), "co_names", ()),
        "read": native.read,
        "predict": native.predict,
        "fetch": native.fetch,
        **functions_of(problem, rule),
    }
    learn = compile_functions(functions, "learn_slab", calls=_CALLS)
    return Program(walk, learn, table, samples(problem, kernel, rule, optimum, precision))


def functions_of(problem: Predictor, rule: Rule) -> dict[str, Any]:
    """What an objective and a rule put in place of the functions and numbers of `step`."""
    if not 0 <= rule.carries < len(_APPLY):
        raise FreewalkError(f"{type(rule).__name__}: carries {rule.carries} numbers a coordinate, expected 0, 1 or 2")
    _try(f"value of {type(problem).__name__}", type(problem).value, 1, 0.5, 1.0)
    _try(f"slope of {type(problem).__name__}", type(problem).slope, 1, 0.5, 1.0)
    _try(f"update of {type(rule).__name__}", rule.update, 1 + rule.carries, 0.5, 0.5, 0.1, 0, *[0.5] * rule.carries)
    return {
        "slope": type(problem).slope,
        "value": type(problem).value,
        "update": rule.update,
        "apply": _APPLY[rule.carries],
        "RIDGE": bool(problem.ridge != 0),
        "FACTORS": _factors(problem).size > 0,
    }


def _try(who: str, function: Callable[..., Any], expected: int, *arguments: float) -> None:
    """Call a function in plain Python first: what is wrong there is told better than by a compiler."""
    try:
        result = function(*arguments)
    except ArithmeticError:
        return
    except Exception as error:
        raise FreewalkError(f"{who}: fails when called with {arguments}: {type(error).__name__}: {error}") from error
    got = len(result) if isinstance(result, tuple) else 1
    if got != expected:
        raise FreewalkError(f"{who}: returns {got} number(s), expected {expected}: the new x and all that it carries")


def samples(
    problem: Predictor, kernel: Kernel, rule: Rule, optimum: NDArray[np.float64], precision: str
) -> arrays.Data:
    """The samples of an objective as compiled code reads them."""
    weights = kernel.weights if rule.weighted else np.ones(kernel.graph.n)
    curvature, pull, least = _expansion(problem, optimum)
    return arrays.Data(
        features=_fixed(aligned(problem.features.astype(precision, copy=False))),
        targets=_fixed(problem.targets.astype(precision, copy=False)),
        offsets=_fixed(problem.offsets),
        alone=bool(problem.targets.size == problem.n and not problem.relays),
        sample_weights=_fixed(problem.sample_weights),
        weights=_fixed(weights),
        factors=_fixed(_factors(problem)),
        ridge=float(problem.ridge),
        optimum=_fixed(optimum),
        curvature=_fixed(curvature),
        pull=_fixed(pull),
        least=least,
    )


def _factors(problem: Predictor) -> NDArray[np.float64]:
    """The factors of the nodes' losses; none where all of them are 1. Where there are relays some are not."""
    factors = problem.node_weights
    return np.empty(0) if (factors == 1.0).all() else factors


def _expansion(
    problem: Predictor, optimum: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Second derivative, derivative and value at the optimum, where they are the whole loss and fewer numbers."""
    dim = problem.dim
    if not isinstance(problem, LeastSquares) or dim > problem.targets.size or np.isnan(optimum).any():
        return np.empty((0, 0)), np.empty(0), 0.0
    curvature, pull, least = np.zeros((dim, dim)), np.zeros(dim), 0.0
    for first in range(0, problem.targets.size, _ROWS):  # in pieces: a large problem has no room for a second one
        rows = slice(first, first + _ROWS)
        features, weights = problem.features[rows], problem.sample_weights[rows, None]
        errors = features @ optimum - problem.targets[rows]
        curvature += features.T @ (weights * features)
        pull += features.T @ (weights[:, 0] * errors)
        least += float(0.5 * weights[:, 0] @ errors**2)
    return curvature, pull, least


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only: numba compiles anew for an array that may be written, so all of them must be alike."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a copy whose rows lie one behind the other and begin where a line of the cache does.

    A row that fills lines then touches no others. What no cache can hold is not copied for that.
    """
    if array.flags.c_contiguous and (array.ctypes.data % _LINE == 0 or array.nbytes > _CACHE):
        return array
    room = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    first = -room.ctypes.data % _LINE
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def route(
    seed: int, kernel: Kernel, table: arrays.Table, start: int, until: int, marks: NDArray[np.int64], walks: int
) -> arrays.Route:
    """How to move between two steps: thresholds made on the host, one row a step only where they change."""
    times = np.arange(start, max(until, start + 1) if kernel.fade is not None else start + 1)
    ends = rng.ends(kernel.probabilities(times))
    starts = np.hstack([np.zeros((ends.shape[0], 1), dtype=np.uint64), ends])
    plain = (table.moves[1:, HOPS] == 1) & (table.moves[1:, PLAIN] == 1)
    nearby = 1 + int(np.argmin(np.append(plain, False))) if begins_near(kernel) else 0  # so many are one hop
    longer = np.flatnonzero(table.moves[:, HOPS] > 1)
    far = starts[:, longer[0]] if longer.size else np.full(ends.shape[0], rng.LAST)
    counts = (np.empty((walks, marks.size), dtype=np.int64) for _ in range(2))
    near, free, far = (np.ascontiguousarray(words) for words in (starts[:, nearby], starts[:, min(nearby, 1)], far))
    return arrays.Route(np.uint64(seed), start, ends, near, free, far, marks, *counts)


def lesson(
    seed: int, rule: Rule, start: int, until: int, marks: NDArray[np.int64], walks: int, began: int
) -> arrays.Lesson:
    """How to learn between two steps: step sizes made on the host, one a step only where they change."""
    rates = rule.rates(np.arange(start, start + 1 if rule.constant else max(until, start + 1)))
    return arrays.Lesson(
        np.uint64(seed),
        start,
        rates[:1] if (rates == rates[0]).all() else rates,
        began,
        int(rule.local_steps),
        bool(rule.sampled),
        rule.reported,
        marks,
        *(np.empty((walks, marks.size)) for _ in range(3)),
    )

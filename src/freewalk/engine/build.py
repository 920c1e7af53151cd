"""Prepare what compiled code reads: the program of an objective and a rule, its samples, its table, its plan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.compiling import compile_functions
from freewalk.engine import cpu, step
from freewalk.engine.table import Table, compile_kernel
from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel
from freewalk.learning import Rule
from freewalk.objectives import Predictor

_CALLS = ("draw_block", "walk_block", "learn_block", "measure_block", "word")
_APPLY = (step.apply_alone, step.apply_with_one, step.apply_with_two)


class Program(NamedTuple):
    """A phase made ready: the compiled halves and the arrays they read. A phase that does not learn has one half."""

    walk: Callable[..., None]
    learn: Callable[..., None] | None
    table: Table
    data: cpu.Data | None


def program(
    problem: Predictor | None, kernel: Kernel, rule: Rule | None, optimum: NDArray[np.float64], precision: str
) -> Program:
    """Make a phase ready."""
    walk = compile_functions({"walk_slab": cpu.walk_slab}, "walk_slab", calls=_CALLS)
    table = compile_kernel(kernel)
    if problem is None or rule is None:
        return Program(walk, None, table, None)
    if not 0 <= rule.carries < len(_APPLY):
        raise FreewalkError(f"{type(rule).__name__}: carries {rule.carries} numbers a coordinate, expected 0, 1 or 2")
    _try(f"value of {type(problem).__name__}", type(problem).value, 1, 0.5, 1.0)
    _try(f"slope of {type(problem).__name__}", type(problem).slope, 1, 0.5, 1.0)
    _try(f"update of {type(rule).__name__}", rule.update, 1 + rule.carries, 0.5, 0.5, 0.1, 0, *[0.5] * rule.carries)
    functions: dict[str, Callable[..., Any]] = {
        "learn_slab": cpu.learn_slab,
        "slope": type(problem).slope,
        "value": type(problem).value,
        "update": rule.update,
        "apply": _APPLY[rule.carries],
    }
    learn = compile_functions(functions, "learn_slab", calls=_CALLS)
    weights = kernel.weights if rule.weighted else np.ones(kernel.graph.n)
    return Program(walk, learn, table, _samples(problem, weights, optimum, precision))


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


def _samples(
    problem: Predictor, weights: NDArray[np.float64], optimum: NDArray[np.float64], precision: str
) -> cpu.Data:
    features = np.zeros((problem.targets.size, -(-problem.dim // 4) * 4), dtype=precision)
    features[:, : problem.dim] = problem.features
    return cpu.Data(
        features=_fixed(features),
        targets=_fixed(problem.targets.astype(precision)),
        offsets=_fixed(problem.offsets),
        sample_weights=_fixed(problem.sample_weights),
        weights=_fixed(weights),
        ridge=float(problem.ridge),
        optimum=_fixed(optimum),
    )


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only: numba compiles anew for an array that may be written, so all of them must be alike."""
    view = np.ascontiguousarray(array)
    view.setflags(write=False)
    return view


def route(seed: int, kernel: Kernel, start: int, until: int, marks: NDArray[np.int64], walks: int) -> cpu.Route:
    """How to move between two steps: thresholds made on the host, one row a step only where they change."""
    times = np.arange(start, max(until, start + 1) if kernel.fade is not None else start + 1)
    counts = (np.empty((walks, marks.size), dtype=np.int64) for _ in range(2))
    return cpu.Route(np.uint64(seed), start, rng.ends(kernel.probabilities(times)), marks, *counts)


def lesson(
    seed: int, rule: Rule, start: int, until: int, marks: NDArray[np.int64], walks: int, began: int
) -> cpu.Lesson:
    """How to learn between two steps: step sizes made on the host, one a step only where they change."""
    rates = rule.rates(np.arange(start, max(until, start + 1)))
    return cpu.Lesson(
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


def padded(models: NDArray[Any], width: int) -> NDArray[Any]:
    """Models with zeros behind their coordinates, as wide as the features."""
    result = np.zeros((*models.shape[:-1], width), dtype=models.dtype)
    result[..., : models.shape[-1]] = models
    return result

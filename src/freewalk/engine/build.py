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

_CALLS = ("draw_block", "walk_block", "learn_block", "measure", "word")
_APPLY = (step.apply_alone, step.apply_with_one, step.apply_with_two)


class Program(NamedTuple):
    """A phase made ready: compiled code and the arrays it reads."""

    run: Callable[..., None]
    table: Table
    data: cpu.Data


def program(
    problem: Predictor | None, kernel: Kernel, rule: Rule | None, optimum: NDArray[np.float64], precision: str
) -> Program:
    """Make a phase ready."""
    functions: dict[str, Callable[..., Any]] = {"advance": cpu.advance}
    if problem is not None:
        functions |= {"slope": type(problem).slope, "value": type(problem).value}
    if rule is not None:
        if not 0 <= rule.carries < len(_APPLY):
            raise FreewalkError(f"{type(rule).__name__}: carries {rule.carries} numbers a coordinate, expected 0, 1 or 2")
        functions |= {"update": rule.update, "apply": _APPLY[rule.carries]}
    weights = kernel.weights if rule is not None and rule.weighted else np.ones(kernel.graph.n)
    run = compile_functions(functions, "advance", calls=_CALLS)
    return Program(run, compile_kernel(kernel), _samples(problem, weights, optimum, precision))


def _samples(
    problem: Predictor | None, weights: NDArray[np.float64], optimum: NDArray[np.float64], precision: str
) -> cpu.Data:
    dim = 0 if problem is None else problem.dim
    features = np.zeros((0 if problem is None else problem.targets.size, -(-dim // 4) * 4), dtype=precision)
    if problem is not None:
        features[:, :dim] = problem.features
    return cpu.Data(
        features=_fixed(features),
        targets=_fixed(np.zeros(0, dtype=precision) if problem is None else problem.targets.astype(precision)),
        offsets=_fixed(np.zeros(1, dtype=np.int64) if problem is None else problem.offsets),
        sample_weights=_fixed(np.zeros(0) if problem is None else problem.sample_weights),
        weights=_fixed(weights),
        ridge=0.0 if problem is None else float(problem.ridge),
        optimum=_fixed(optimum),
    )


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only: numba compiles anew for an array that may be written, so all of them must be alike."""
    view = np.ascontiguousarray(array)
    view.setflags(write=False)
    return view


def plan(
    seed: int, kernel: Kernel, rule: Rule | None, start: int, until: int, marks: NDArray[np.int64], began: int
) -> cpu.Plan:
    """What to do between two steps: thresholds and step sizes made on the host, one a step only where they change."""
    times = np.arange(start, max(until, start + 1))
    rates = np.zeros(1) if rule is None else rule.rates(times)
    return cpu.Plan(
        seed=np.uint64(seed),
        step=start,
        until=until,
        marks=marks.astype(np.int64),
        ends=rng.ends(kernel.probabilities(times if kernel.fade is not None else times[:1])),
        rates=rates[:1] if (rates == rates[0]).all() else rates,
        counted_from=began,
        learning=rule is not None,
        local_steps=1 if rule is None else int(rule.local_steps),
        sampled=rule is not None and bool(rule.sampled),
        reported=-1 if rule is None else rule.reported,
    )

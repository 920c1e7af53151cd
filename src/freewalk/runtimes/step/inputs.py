"""Prepare the inputs of compiled code: the two halves, the samples of an objective, routes and lessons."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.blocks import blocks
from freewalk.compiled import native
from freewalk.compiled.compiler import Written, compile_functions
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.exchanges import Exchange
from freewalk.jobs.phase import Passage
from freewalk.objectives import Predictor
from freewalk.rules import Rule
from freewalk.runtimes.cpu import loops
from freewalk.runtimes.cpu.mix import ALL, NODE, NOT, WEIGHTS
from freewalk.runtimes.step import arrays, step
from freewalk.runtimes.step.network import HOPS, PLAIN, begins_near

_LINE, _CACHE = 64, 2**26  # bytes
_UNROLLED = 32  # up to this many coordinates, their number is compiled in
_CALLS = ("draw_block", "walk_block", "learn_block", "measure_block", "measure_tokens", "mix_rows", "word")

Compiled = Callable[..., None]


def walker() -> Compiled:
    """The walking half for a CPU, the same for every kernel."""
    functions = {"walk_stretch": loops.walk_stretch, "choose": native.choose}
    return compile_functions(functions, "walk_stretch", calls=_CALLS)


def learner(objective: Predictor, rule: Rule, tokens: int = 1) -> Compiled:
    """The learning half for a CPU, for walks with one or several tokens."""
    entry = loops.learn_stretch if tokens == 1 else loops.learn_tokens
    functions = {
        entry.__name__: entry,
        "SHARED": bool(rule.shared and tokens > 1),
        "DIM": objective.dim if objective.dim <= _UNROLLED else 0,
        "SPLIT": "math" in getattr(getattr(type(objective).slope, "__code__", None), "co_names", ()),
        "REPORTED": reported(rule),
        "read": native.read,
        "predict": native.predict,
        "fetch": native.fetch,
        **functions_of(objective, rule),
    }
    return compile_functions(functions, entry.__name__, calls=_CALLS)


def reported(rule: Rule) -> int:
    """The index of the carried vector to report as the model; -1 for the model itself."""
    return -1 if rule.reports == "x" else rule.carries.index(rule.reports)


def functions_of(objective: Predictor, rule: Rule) -> dict[str, Any]:
    """The functions and numbers of an objective and a rule that replace those of `step`."""
    _try(f"value of {type(objective).__name__}", type(objective).value)
    _try(f"slope of {type(objective).__name__}", type(objective).slope)
    functions = {
        "slope": type(objective).slope,
        "value": type(objective).value,
        "update": rule.update,
        "apply": _apply_of(rule),
        "numbers_of": _numbers_of(rule),
        "Numbers": type(rule.numbers),
        "STORES": len(rule.stores),
        "COUNTS_VISITS": bool(rule.counts_visits),
        "RIDGE": bool(objective.ridge != 0),
        "FACTORS": _factors(objective).size > 0,
    }
    for vectors, function in ((rule.carries, step.evaluated_carried), (rule.stores, step.evaluated_stored)):
        if rule.evaluates in vectors:
            functions |= {"evaluated": function, "EVALUATED": vectors.index(rule.evaluates)}
    return functions


def _try(who: str, function: Callable[..., Any]) -> None:
    """Call a function of a prediction and a target in plain Python, whose errors are clearer than numba's.

    The update of a rule was already called when it was checked (`rules.rule.checked`).
    """
    prediction, target = 0.5, 1.0
    try:
        function(prediction, target)
    except ArithmeticError:
        return
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise FreewalkError(f"{who}: fails when called with {(prediction, target)}: {said}") from error


def _apply_of(rule: Rule) -> Written:
    """`step.apply` for the vectors of a rule."""
    places = ["vectors.models[at.row, j]"]
    places += [f"vectors.carried[{index}, at.row, j]" for index in range(len(rule.carries))]
    places += [f"vectors.stored[at.memory + np.uint64({index}), j]" for index in range(len(rule.stores))]
    old, new = ", ".join([places[0], "gradient", *places[1:]]), [f"new_{index}" for index in range(len(places))]
    lines = [f"    {', '.join(new)} = update(visit, numbers, {old})"]
    lines += [f"    {place} = {name}" for place, name in zip(places, new, strict=True)]
    return Written("\n".join(["def apply(visit, numbers, vectors, at, j, gradient):", *lines]))


def _numbers_of(rule: Rule) -> Written:
    """`step.numbers_of` for the parameters of a rule."""
    values = ", ".join(f"values[{index}]" for index in range(len(rule.numbers)))
    return Written(f"def numbers_of(values):\n    return Numbers({values})")


def samples(
    objective: Predictor, kernel: Kernel, rule: Rule, optimum: NDArray[np.float64], precision: str
) -> arrays.Data:
    """The samples of an objective as compiled code reads them."""
    weights = kernel.weights if rule.weighted else np.ones(kernel.graph.n)
    curvature, pull, least = objective.expansion(optimum)
    alone = bool(objective.targets.size == objective.n and not objective.relays)
    return arrays.Data(
        features=_fixed(aligned(objective.features.astype(precision, copy=False))),
        targets=_fixed(objective.targets.astype(precision, copy=False)),
        offsets=_fixed(np.empty(0, dtype=np.int64) if alone else objective.offsets),  # never read
        alone=alone,
        sample_weights=_fixed(np.empty(0) if curvature.size else objective.sample_weights),
        weights=_fixed(weights),
        factors=_fixed(_factors(objective)),
        ridge=float(objective.ridge),
        optimum=_fixed(optimum),
        curvature=_fixed(curvature),
        pull=_fixed(pull),
        least=least,
    )


def _factors(objective: Predictor) -> NDArray[np.float64]:
    """The factors of the nodes' losses; empty if all are 1, which is not the case if there are relays."""
    factors = objective.node_weights
    return np.empty(0) if all((factors[part] == 1.0).all() for part in blocks(factors.size)) else factors


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only: numba compiles separately for writable arrays, so all must be alike."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a contiguous copy whose rows are aligned to cache lines.

    A row then touches as few cache lines as possible. Arrays larger than any cache are not copied.
    """
    if array.flags.c_contiguous and (array.ctypes.data % _LINE == 0 or array.nbytes > _CACHE):
        return array
    room = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    first = -room.ctypes.data % _LINE
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def route(passage: Passage, network: arrays.Network, seed: int, first: int, tokens: int = 1) -> arrays.Route:
    """How to move along a passage: thresholds computed on the host, one row per step only if they change.

    `first` is the number of the first token. Buffers for counts are not allocated yet.
    """
    kernel, start = passage.phase.kernel, passage.start
    times = np.arange(start, max(passage.until, start + 1) if kernel.fade is not None else start + 1)
    ends = rng.ends(kernel.probabilities(times))
    starts = np.hstack([np.zeros((ends.shape[0], 1), dtype=np.uint64), ends])
    plain = (network.moves[1:, HOPS] == 1) & (network.moves[1:, PLAIN] == 1)
    # The number of initial moves that are a single uniform hop.
    nearby = 1 + int(np.argmin(np.append(plain, False))) if begins_near(kernel) else 0
    longer = np.flatnonzero(network.moves[:, HOPS] > 1)
    far = starts[:, longer[0]] if longer.size else np.full(ends.shape[0], rng.LAST)
    near, free, far = (np.ascontiguousarray(words) for words in (starts[:, nearby], starts[:, min(nearby, 1)], far))
    none = np.empty((0, 0), dtype=np.int64)
    return arrays.Route(np.uint64(seed), first, tokens, start, ends, near, free, far, passage.marks, none, none)


def lesson(passage: Passage, seed: int, first: int, precision: str, tokens: int = 1) -> arrays.Lesson:
    """How to learn along a passage: step sizes computed on the host, one per step only if they change.

    `first` is the number of the first token. Buffers for measures are not allocated yet.
    """
    rule, start, none = passage.phase.rule, passage.start, np.empty((0, 0))
    if rule is None:
        raise ValueError("a passage without a rule has no lesson")
    rates = rule.rates(np.arange(start, start + 1 if rule.constant else max(passage.until, start + 1)))
    return arrays.Lesson(
        seed=np.uint64(seed),
        first=first,
        tokens=tokens,
        start=start,
        rates=rates[:1] if (rates == rates[0]).all() else rates,
        numbers=np.array(rule.numbers, dtype=precision),
        counted_from=passage.began,
        local_steps=int(rule.local_steps),
        sampled=bool(rule.sampled),
        nodes=passage.phase.kernel.graph.n,
        marks=passage.marks,
        fit=none,
        penalty=none,
        distance=none,
        consensus=none,
    )


def mixing(exchange: Exchange | None, weights: Any, precision: str) -> arrays.Mixing:
    """How tokens mix: by averaging all or those on one node, by constant weights, or not at all."""
    none = np.empty(0, dtype=np.uint64)
    if exchange is None:
        return arrays.Mixing(NOT, 1, none, none, np.empty(0, dtype=precision))
    if exchange.means:
        how = ALL if exchange.means == "all" else NODE
        return arrays.Mixing(how, int(exchange.every), none, none, np.empty(0, dtype=precision))
    parts = weights.indptr.astype(np.uint64), weights.indices.astype(np.uint64), weights.data.astype(precision)
    return arrays.Mixing(WEIGHTS, int(exchange.every), *parts)

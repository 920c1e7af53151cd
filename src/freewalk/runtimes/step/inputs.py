"""The inputs of compiled code: functions of an objective and a rule, kernels and samples as arrays, routes, lessons."""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.blocks import blocks, read_only
from freewalk.checks import Checks
from freewalk.compiled.compiler import Written
from freewalk.designs.kernel import Kernel
from freewalk.designs.memory import ENTRY, LastNode, VisitCounts
from freewalk.errors import FreewalkError
from freewalk.graphs.structure import check_bounds
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.objectives import Predictor
from freewalk.rules import Rule
from freewalk.runtimes.step import arrays, memory, update
from freewalk.runtimes.step.arrays import HOPS, LAW, PLAIN, RATIO, ROWS, ROWS_A_HOP
from freewalk.storage.mapped import Mapped

_check = Checks(FreewalkError)
_LINE, _CACHE = 64, 2**26  # bytes
_NODES = 2**16  # whose edges are processed together


# The functions of an objective and a rule.


def functions_of(objective: Predictor, rule: Rule) -> dict[str, Any]:
    """The functions and numbers of an objective and a rule that replace those of `update.py`."""
    kind, example = type(objective), (0.5, 1.0)  # a prediction and a target
    for name in ("value", "slope"):  # the errors of plain Python are clearer than numba's
        with _check.attempt(f"{name} of {kind.__name__}: fails when called with {example}"), suppress(ArithmeticError):
            getattr(kind, name)(*example)
    numbers = ", ".join(f"values[{index}]" for index in range(len(rule.numbers)))
    functions = {
        "slope": kind.slope,
        "value": kind.value,
        "update": rule.update,
        "apply": _apply_of(rule),
        "numbers_of": Written(f"def numbers_of(values):\n    return Numbers({numbers})"),
        "Numbers": type(rule.numbers),
        "STORES": len(rule.stores),
        "COUNTS_VISITS": bool(rule.counts_visits),
        "REPORTED": -1 if rule.reports == "x" else rule.carries.index(rule.reports),
        "RIDGE": bool(objective.ridge != 0),
        "FACTORS": _factors(objective).size > 0,
    }
    for vectors, function in ((rule.carries, update.evaluated_carried), (rule.stores, update.evaluated_stored)):
        if rule.evaluates in vectors:
            functions |= {"evaluated": function, "EVALUATED": vectors.index(rule.evaluates)}
    return functions


def _apply_of(rule: Rule) -> Written:
    """`update.apply` for the vectors of a rule."""
    places = ["vectors.models[at.row, j]"]
    places += [f"vectors.carried[{index}, at.row, j]" for index in range(len(rule.carries))]
    places += [f"vectors.stored[at.memory + np.uint64({index}), j]" for index in range(len(rule.stores))]
    old, new = ", ".join([places[0], "gradient", *places[1:]]), [f"new_{index}" for index in range(len(places))]
    lines = [f"    {', '.join(new)} = update(visit, numbers, {old})"]
    lines += [f"    {place} = {name}" for place, name in zip(places, new, strict=True)]
    return Written("\n".join(["def apply(visit, numbers, vectors, at, j, gradient):", *lines]))


# The kernel of a walk.


def kind_of_memory(kernel: Kernel) -> str:
    """The step that its tokens make, by name; none if they remember nothing."""
    if kernel.memory is None:
        return ""
    if not isinstance(kernel.memory, VisitCounts):
        return "no_step_back"
    roots = " by roots" if kernel.memory.twice_alpha % 2 else ""
    return ("history_driven" if kernel.memory.driven else "self_repellent") + roots


def functions_of_memory(kind: str) -> dict[str, Any]:
    """The functions and numbers of a kind of memory that replace those of `memory.py`."""
    if not kind:
        return {}
    name, _, roots = kind.partition(" by ")
    constants = {"REMEMBERS": True, "COUNTS": name != "no_step_back", "ROOTS": bool(roots)}
    return {**constants, "remembered_move": getattr(memory, name)}


def flattened(kernel: Kernel) -> arrays.FlatKernel:
    """A kernel as flat arrays."""
    graph, n = kernel.graph, kernel.graph.n
    ratios: list[NDArray[np.float64]] = []
    laws: list[NDArray[np.uint64]] = []
    matrices: list[Any] = []
    moves = np.full((len(kernel.moves), 6), -1, dtype=np.int64)
    for row, move in zip(moves, kernel.moves, strict=True):
        row[HOPS] = move.hops
        row[PLAIN] = int(move.ratio is None and move.law is None and move.rows is None)
        row[ROWS_A_HOP] = int(move.rows is not None and len(move.rows) > 1)
        if move.ratio is not None:
            ratio = np.asarray(move.ratio)  # corrected jumps share one
            same = (index for index, known in enumerate(ratios) if np.array_equal(known, ratio))
            row[RATIO] = next(same, len(ratios))
            if row[RATIO] == len(ratios):
                ratios.append(ratio)
        if move.law is not None:
            row[LAW] = len(laws)
            law = np.asarray(move.law)
            laws.append(rng.ends(law / law.sum()))
        if move.rows is not None:
            row[ROWS] = len(matrices)
            matrices += move.rows
    firsts = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    indptr = [matrix.indptr.astype(np.int64) + first for matrix, first in zip(matrices, firsts[:-1], strict=True)]
    indices = [matrix.indices.astype(np.uint32) for matrix in matrices]
    if isinstance(graph.indices, Mapped):  # another process may have written to its file since it was opened
        check_bounds(graph.name, graph.indptr, graph.indices)
    spans = np.empty(n, dtype=np.uint64)
    for part in blocks(n):  # in pieces, to limit the memory for a large graph
        edges = graph.indptr[part.start : part.stop + 1].astype(np.uint64)
        spans[part] = (edges[:-1] << rng.HALF) | np.diff(edges)
    stacked = np.reshape(ratios[0] if len(ratios) == 1 else ratios, (len(ratios), n))  # a single one is not copied
    flat = arrays.FlatKernel(
        spans=spans,
        edges=_edges(kernel),
        moves=moves,
        ratios=read_only(np.ascontiguousarray(stacked, dtype=np.float64)),
        row_indptr=np.array(indptr, dtype=np.int64).reshape(len(matrices), n + 1),
        row_indices=np.concatenate([np.empty(0, dtype=np.uint32), *indices]),
        row_ends=np.concatenate([np.empty(0, dtype=np.uint64), *map(_row_ends, matrices)])[None],
        law_ends=np.array(laws, dtype=np.uint64).reshape(len(laws), n),
        **dict.fromkeys(("shares", "others", "rarity"), _fixed(np.empty(0))),
        **dict.fromkeys(("outcomes", "row_starts", "back"), _fixed(np.empty(0, dtype=np.uint64))),
    )
    return flat if kernel.memory is None else _with_rows(flat, kernel)


def _with_rows(flat: arrays.FlatKernel, kernel: Kernel) -> arrays.FlatKernel:
    """With the rows that a memory changes. Unless a design proposes uniform hops, its proposals are from them, too."""
    rows, move, moves = kernel.rows, kernel.moves[0], flat.moves.copy()
    starts = np.append(np.uint64(0), rows.ends[:-1])
    starts[rows.indptr[:-1]] = 0
    moves[0, ROWS] = -1 if len(kernel.moves) == 1 and move.rows is None and move.hops == 1 else 0
    return flat._replace(
        moves=moves,
        row_indptr=rows.indptr[None],
        row_indices=rows.nodes.astype(np.uint32),
        row_ends=np.append(rows.ends, np.full(memory.LONGEST, rng.LAST))[None],
        shares=_fixed(np.append(rows.shares, np.zeros(memory.LONGEST))),
        others=_fixed(rows.others),
        rarity=_fixed(1.0 / np.asarray(kernel.target)),
        outcomes=_fixed((rows.indptr[:-1].astype(np.uint64) << rng.HALF) | np.diff(rows.indptr).astype(np.uint64)),
        row_starts=_fixed(starts),
        back=_fixed(rows.back.astype(np.uint64)),
    )


def begins_near(kernel: Kernel) -> bool:
    """Whether its first move is one uniform hop with constant limits, so that `near_move` can make it."""
    move = kernel.moves[0]
    fades = kernel.fade is not None and move.ratio is not None
    return move.hops == 1 and move.rows is None and move.law is None and not fades


def _edges(kernel: Kernel) -> NDArray[np.uint64]:
    """By edge: the end in the lower half; in the upper half, that of the largest word 0 that takes the edge.

    This is for the first move, if it is a near move. Another process may write to the file of a mapped graph while it
    is copied: no end is beyond the last node.
    """
    graph, move, width = kernel.graph, kernel.moves[0], rng.ends(kernel.probabilities(0))[0, 0]
    edges = np.empty(graph.indices.size, dtype=np.uint64)
    for nodes in blocks(graph.n, numbers=_NODES):
        indptr = graph.indptr[nodes.start : nodes.stop + 1]
        part = slice(indptr[0], indptr[-1])
        tails = np.minimum(graph.indices[part].view(np.uint32), np.uint32(graph.n - 1))
        limits = rng.LAST
        if begins_near(kernel) and move.ratio is not None and width > 0:
            ratio = np.asarray(move.ratio, dtype=np.float64)
            found = rng.largest_accepted(float(width), np.repeat(ratio[nodes], np.diff(indptr)), ratio[tails])
            limits = np.minimum(found, width - np.uint64(1))
        edges[part] = (limits & ~rng.LOW) | tails
    return edges


def _row_ends(matrix: Any) -> NDArray[np.uint64]:
    """`rng.ends` of every row of a CSR matrix, rows of equal length together."""
    starts = matrix.indptr[:-1].astype(np.int64)
    lengths = np.diff(matrix.indptr)
    result = np.empty(matrix.nnz, dtype=np.uint64)
    for length in np.unique(lengths):
        entries = starts[lengths == length][:, None] + np.arange(length)
        result[entries] = rng.ends(matrix.data[entries])
    return result


def route(job: Job, state: State, passage: Passage, network: arrays.FlatKernel) -> arrays.Route:
    """How to move along a passage: thresholds computed on the host, one row per step only if they change.

    Buffers for counts are not allocated yet.
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
    counts = (none, none, none)
    recalls, gains, twice_alpha, kept = np.uint64(0), np.empty(0), 0, ""
    if isinstance(kernel.memory, LastNode):
        recalls = kernel.memory.recalls
    elif isinstance(kernel.memory, VisitCounts):
        twice_alpha, kept, since = kernel.memory.twice_alpha, kernel.memory.kept, state.counted_from
        gains = kernel.memory.gains(kernel.graph.n, start - since, passage.until - since)
    tokens = np.uint64(job.seed), state.first, state.tokens
    remembering = recalls, gains, twice_alpha, 2 * (kept == "nodes"), ENTRY * (kept == "token")
    return arrays.Route(*tokens, start, ends, near, free, far, passage.marks, *counts, *remembering)


# The samples of an objective, and how to learn from them.


def samples(job: Job, objective: Predictor, kernel: Kernel, rule: Rule) -> arrays.NodeData:
    """The samples of an objective as compiled code reads them."""
    optimum, precision = job.optimum, job.precision
    weights = kernel.weights if rule.weighted else np.ones(kernel.graph.n)
    curvature, pull, least = objective.expansion(optimum)
    alone = bool(objective.targets.size == objective.n and not objective.relays)
    words, remedy = f"{type(objective).__name__}: its samples do not fit into {precision}", "scale them, or use float64"
    with _check.attempt(words, remedy), np.errstate(over="raise"):
        features, targets = (part.astype(precision, copy=False) for part in (objective.features, objective.targets))
    return arrays.NodeData(
        features=_fixed(aligned(features)),
        targets=_fixed(targets),
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
    return read_only(np.ascontiguousarray(array).view())


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


def lesson(job: Job, state: State, passage: Passage) -> arrays.Lesson:
    """How to learn along a passage: step sizes computed on the host, one per step only if they change.

    Buffers for measures are not allocated yet.
    """
    rule, start = passage.phase.rule, passage.start
    assert rule is not None
    rates = rule.rates(np.arange(start, start + 1 if rule.constant else max(passage.until, start + 1)))
    return arrays.Lesson(
        seed=np.uint64(job.seed),
        first=state.first,
        tokens=state.tokens,
        start=start,
        rates=rates[:1] if (rates == rates[0]).all() else rates,
        numbers=np.array(rule.numbers, dtype=job.precision),
        counted_from=passage.began,
        local_steps=int(rule.local_steps),
        sampled=bool(rule.sampled),
        nodes=passage.phase.kernel.graph.n,
        marks=passage.marks,
        **dict.fromkeys(("fit", "penalty", "distance", "consensus"), np.empty((0, 0))),
    )


def no_mixing(precision: str) -> arrays.Mixing:
    """How tokens mix without an exchange."""
    none = np.empty(0, dtype=np.uint64)
    return arrays.Mixing(arrays.NOT, 1, none, none, np.empty(0, dtype=precision))

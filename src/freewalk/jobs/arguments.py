"""Checks of single arguments of a run; `prepare` makes a job of them."""

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.checks import Checks, guess, show, suggestion
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError, FreewalkError, KernelError, ProblemError, TargetWarning
from freewalk.exchanges import Exchange
from freewalk.exchanges.exchange import check_options, gathering_of, sent_by, weights_of
from freewalk.graphs import Graph
from freewalk.jobs.phase import Phase
from freewalk.linear.stationary import stationary_law
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.rules.rule import Visit, begun, checked

check = Checks(FreewalkError)
# Names that a record or a report already uses.
_TAKEN = {
    *("messages", "probes", "bytes", "distance", "visits", "final", "diverged", "path", "at", "smoothness", "time"),
    *("step", "walk", "node", "node_name", "coordinate", "kept", "design", "walks", "updates", "rounds"),
    *("consensus", "token"),
}
_CHEAP, _CHEAP_HOPS = 1000, 16  # nodes and hops for which a stationary distribution takes a fraction of a second
_SAME = 1e-9  # a rounding error
_TRIED = 1000  # coordinates on which a rule is tried: a model may have a hundred million


def objective(who: str, value: Objective) -> Objective:
    """Check an objective and the names of its measures."""
    expected = "an objective such as fw.objectives.LeastSquares(...)"
    found = check.instance(who, "objective", value, Objective, expected)
    name = type(found).__name__
    measures = check.instance(name, "measures", found.measures, tuple, "a tuple of names")
    if "loss" not in measures or not all(isinstance(measure, str) and measure.isidentifier() for measure in measures):
        raise check.fail(name, "measures", measures, "names such as ('loss', 'accuracy'), 'loss' among them")
    if taken := _TAKEN & set(measures):
        raise check.fail(name, "measures", measures, f"other names than {', '.join(sorted(taken))}")
    check.choice(name, "primary", found.primary, measures)
    for rising in check.instance(name, "rising", found.rising, tuple, "a tuple of names"):
        check.choice(name, "rising", rising, measures)
    return found


def goal(value: Any, found: Objective | None, tokens: int = 1, who: str = "learn") -> dict[str, float]:
    """The target values of a goal, by measure: those of the objective, `distance`, and `consensus` of tokens."""
    if value is None:
        return {}
    expected = "levels of measures such as {'loss': 0.1}"
    given = check.instance(who, "goal", value, Mapping, expected)
    if not given or found is None:
        raise check.fail(who, "goal", value, expected if found is not None else "None: nothing is learned")
    known = [*found.measures, "distance", *(["consensus"] if tokens > 1 else [])]
    if "distance" in given and np.isnan(optimum(found)).any():
        raise FreewalkError(f"{who}: goal has 'distance', and the optimum of {type(found).__name__} is not known")
    for name in given:
        if name not in known:
            remedy = suggestion(name, known, "there are")
            raise FreewalkError(f"{who}: goal has {show(name)}, expected something that is measured; {remedy}")
    return {name: check.real(who, f"goal[{name!r}]", level) for name, level in given.items()}


def optimum(found: Objective) -> NDArray[np.float64]:
    """The optimum from which distances are measured; NaN if the objective has none."""
    try:
        best = found.optimum()
    except (ProblemError, NotImplementedError, np.linalg.LinAlgError):
        best = None
    if best is None or np.isnan(best).any():
        return np.broadcast_to(np.nan, found.dim)
    return check.floats(type(found).__name__, "optimum()", best, (found.dim,), finite=False)


def phases(
    kernel: Kernel | Sequence[Phase],
    rule: Rule | None,
    objective: Objective | None,
    who: str = "learn",
    exchange: Exchange | None = None,
) -> tuple[Phase, ...]:
    """A kernel, a rule and an exchange, or a list of phases, as phases that fit each other and the objective.

    `who` is the caller. Parameters of rules that follow from the objective and the kernel are filled in.
    """
    several = not issubclass(type(kernel), Kernel)
    listed = _listed(kernel, rule, who, exchange) if several else [Phase(None, kernel, rule, exchange)]  # type: ignore[arg-type]
    expected = f"an update rule such as fw.SGD(step=1e-3){' or None' if objective is None else ''}"
    for index, phase in enumerate(listed):
        name = f"phases[{index}].rule" if several else "rule"
        if type(phase.rule).__module__.startswith("torch.optim"):
            raise check.fail(who, name, phase.rule, "freewalk.torch.Optimizer, such as Optimizer('Adam', {'lr': 1e-3})")
        check.instance(who, name, phase.rule, (Rule, NoneType) if objective is None else Rule, expected)
        if phase.exchange is not None:
            name = name.replace("rule", "exchange")
            found = check.instance(who, name, phase.exchange, Exchange, "an exchange such as fw.exchanges.Meet()")
            if objective is None:
                raise FreewalkError(f"{who}: {name} = {found!r}, but nothing is learned; an exchange mixes models")
            check_options(found)
    if objective is None:
        return tuple(listed)
    n = listed[0].kernel.graph.n
    if objective.n != n:
        got = f"the objective has {objective.n} nodes and the graph {n}; expected the same number"
        remedy = "the largest number in `nodes` determines that of an objective: pass graph= to count all nodes"
        raise FreewalkError(f"{who}: {got} ({remedy})")
    names = listed[0].kernel.graph.node_names
    if objective.node_names is not None and names is not None and objective.node_names != names:
        node = next(v for v in range(n) if objective.node_names[v] != names[v])
        got = f"{show(objective.node_names[node])} in the objective and {show(names[node])} in the graph"
        remedy = "give the objective the graph of the kernel"
        raise FreewalkError(f"{who}: node {node} is {got}, expected the same names in the same order; {remedy}")
    return tuple(replace(phase, rule=_rule(phase, objective)) for phase in listed)


def _listed(kernel: Any, rule: Rule | None, who: str, exchange: Exchange | None) -> list[Phase]:
    """A list of phases that follow each other on one graph."""
    is_list = issubclass(type(kernel), (list, tuple))
    listed: list[Phase] = list(kernel) if is_list else []
    if is_list and (rule is not None or exchange is not None):
        got = f"got a list of phases and {'a rule' if rule is not None else 'an exchange'}"
        raise FreewalkError(f"{who}: {got}; each phase names its own: fw.Phase(until, kernel, rule, exchange)")
    if not listed or not all(isinstance(one, Phase) and issubclass(type(one.kernel), Kernel) for one in listed):
        expected = "a kernel, as design.kernel(graph, importance) makes it, or a list of fw.Phase(until, kernel, rule)"
        raise check.fail(who, "kernel", kernel, expected)
    ends, remedy = [phase.until for phase in listed], "only the last may be None"
    known = ends[:-1] if ends[-1] is None else ends
    given = [check.whole(who, f"phases[{place}].until", end, 1, remedy=remedy) for place, end in enumerate(known)]
    if any(b <= a for a, b in pairwise(given)):
        raise FreewalkError(f"{who}: phases end at {show(ends)}, expected increasing whole numbers; {remedy}")
    if any(phase.kernel.graph != listed[0].kernel.graph for phase in listed):
        raise FreewalkError(f"{who}: the kernels of its phases are on different graphs, expected one graph")
    return listed


def _rule(phase: Phase, objective: Objective) -> Rule | None:
    """The checked rule of a phase, with parameters filled in that follow from the objective and the kernel."""
    if phase.rule is None:
        return None
    rule = checked(phase.rule.fitted(objective, phase.kernel))
    if objective.batch is not None and objective.batch * rule.local_steps > rng.WORDS:
        got = f"{rule.local_steps:,} local steps with minibatches of {objective.batch:,} need more draws than"
        remedy = "use fewer local steps or smaller batches"
        raise FreewalkError(f"{type(rule).__name__}: {got} the {rng.WORDS:,} per visit; {remedy}")
    begun(rule, np.zeros((2, min(objective.dim, _TRIED))))
    if rule.proximal:
        zeros = [np.zeros(objective.dim) for _ in ("x", *rule.carries, *rule.stores)]
        try:
            point, penalty = rule.point(Visit(0.1, 1.0, 0, objective.n, 1), rule.numbers, *zeros)
        except Exception as error:
            raise FreewalkError(f"{type(rule).__name__}: point() fails: {type(error).__name__}: {error}") from error
        objective.proximal(0, point, penalty)  # raises if the objective has none
    return rule


def exchanges(listed: tuple[Phase, ...], tokens: int, nodes: NDArray[np.int32]) -> None:
    """Reject an exchange that these tokens cannot make; `nodes` are the start nodes of the tokens of all walks."""
    parked = True  # so far
    for phase in listed:
        exchange, stayed = phase.exchange, parked
        parked = parked and phase.kernel.is_parked
        if exchange is None:
            continue
        who = type(exchange).__name__
        if tokens < 2:
            remedy = "pass tokens=8, or a larger fraction to fedavg"
            raise FreewalkError(f"{who}: there is one token, expected at least two that can mix; {remedy}")
        starts = {own.tobytes(): own for own in nodes.reshape(-1, tokens)}  # np.unique is slow for long rows
        for own in starts.values() if stayed else (None,):
            exchange.admit(phase.kernel, own)
        first = gathering_of(0, 0, exchange.every, nodes[:tokens], phase.kernel.graph)
        weights = None if exchange.means else weights_of(exchange, first)
        if exchange.means or weights is not None:
            sent_by(exchange, first, weights)


def visits_everywhere(listed: tuple[Phase, ...], nodes: NDArray[np.int32]) -> None:
    """Reject a rule that needs every node if the walk cannot reach some node from one of these nodes.

    A later phase begins wherever the earlier ones may have led.
    """
    starts: NDArray[Any] = np.unique(nodes)
    needing = [index for index, phase in enumerate(listed) if phase.rule is not None and phase.rule.needs_every_node]
    for index, phase in enumerate(listed[: needing[-1] + 1] if needing else ()):
        kernel, n = phase.kernel, phase.kernel.graph.n
        if _leads_everywhere(kernel):
            starts = np.arange(n)
            continue
        matrix = kernel.without_memory().matrix()  # a memory keeps a walk from no node
        matrix.eliminate_zeros()
        stuck = _stuck(matrix, starts) if index in needing else None
        if stuck is not None:
            lost = np.flatnonzero(~_reached(matrix, stuck))
            unmet = f"{lost.size:,} of {n:,} nodes (such as node {int(lost[0])})"
            got = f"the walk by {kernel.label} never gets from node {stuck} to {unmet}, but this rule needs all of them"
            raise FreewalkError(f"{type(phase.rule).__name__}: {got}; use a kernel that visits every node, or fw.SGD")
        if index < needing[-1]:
            led = np.zeros(n, dtype=bool)
            for start in starts:
                led |= led if led[start] else _reached(matrix, int(start))
            starts = np.flatnonzero(led)


def _leads_everywhere(kernel: Kernel) -> bool:
    """Whether one move alone reaches every node: along any edge, since graphs are connected, or by a draw."""
    probable = [move for move, share in zip(kernel.moves, kernel.probabilities(0)[0], strict=True) if share > 0]
    drawn = [bool((np.asarray(move.law) > 0).all()) for move in probable if move.law is not None]
    return any(drawn) or any(move.law is None and move.rows is None and move.hops == 1 for move in probable)


def _stuck(matrix: Any, starts: NDArray[Any]) -> int | None:
    """A start node from which a walk does not reach every node, or None; takes only two searches."""
    first = int(starts[0])
    if not _reached(matrix, first).all():
        return first
    lost = starts[~_reached(matrix.T.tocsr(), first)[starts]]  # from where no node that leads everywhere is reached
    return int(lost[0]) if lost.size else None


def _reached(matrix: Any, start: int) -> NDArray[np.bool_]:
    """Per node: whether a walk from the start reaches it."""
    from scipy.sparse.csgraph import breadth_first_order

    found = np.zeros(matrix.shape[0], dtype=bool)
    found[breadth_first_order(matrix, start, return_predecessors=False)] = True
    return found


def targets(listed: tuple[Phase, ...]) -> None:
    """Warn if a walk is not known to sample its target and does not: its gradient weights are then wrong."""
    known: list[Kernel] = []
    for phase in listed:
        kernel, rule = phase.kernel, phase.rule
        if rule is None or not rule.weighted or rule.counts_visits or any(kernel is one for one in known):
            continue
        known.append(kernel)
        cheap = kernel.graph.n <= _CHEAP and all(move.hops <= _CHEAP_HOPS for move in kernel.moves)
        if kernel.biased is not None or kernel.fade is not None or not cheap:
            continue
        target = np.asarray(kernel.target)
        try:
            matrix = kernel.without_memory().matrix()  # with a memory it samples the same
            moved = float(np.abs(target @ matrix - target).sum())
            away = float(np.abs(stationary_law(matrix, kernel.label) - target).sum() / 2) if moved > _SAME else 0.0
        except (KernelError, AnalysisError):  # it has no unique stationary distribution: the analysis says why
            continue
        if away > _SAME:
            got = f"its target is not its stationary distribution, which is {away:.2g} away in total variation"
            remedy = "omit the target or, if this is intended, declare it with biased=True"
            words = f"{kernel.label}: {got}, so its gradient weights are biased; {remedy}"
            warnings.warn(words, TargetWarning, stacklevel=outside())


def outside() -> int:
    """The number of stack levels up to the first caller outside the package, for warnings."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "freewalk":
        level, frame = level + 1, frame.f_back
    return level


def models(
    initial: ArrayLike | None, objective: Objective, walks: int, seed: int, kind: str, tokens: int = 1
) -> NDArray[Any]:
    """The initial model of each token."""
    dim = objective.dim
    if tokens > 1:  # those of a walk start with its model, unless each is given its own
        what, shape = f"the models of {walks:,} × {tokens:,} tokens", (walks, tokens, dim)
        check.room("learn", what, 8.0 * walks * tokens * dim, "run fewer walks or tokens at a time")
        if initial is not None and not issubclass(type(initial), np.ndarray):
            initial = check.floats("learn", "initial", initial)
        if initial is not None and np.shape(initial) == shape:
            flat = check.floats("learn", "initial", initial).reshape(-1, dim)
            return models(flat, objective, walks * tokens, seed, kind)
        try:
            return np.repeat(models(initial, objective, walks, seed, kind), tokens, axis=0)
        except FreewalkError as error:
            raise FreewalkError(f"{error} (or, with one model per token, {shape})") from error
    check.room("learn", f"{walks} models of {dim} numbers", 8.0 * walks * dim, "run fewer walks at a time")
    if initial is None and type(objective).initial is Objective.initial:
        return np.zeros((walks, dim), dtype=kind)
    given: Any = objective.initial(walks, seed) if initial is None else initial
    who, name = ("learn", "initial") if initial is not None else (type(objective).__name__, "initial()")
    # A model may be large: one that already has the right type is copied at most once.
    plain = issubclass(type(given), np.ndarray) and not isinstance(given, np.ma.MaskedArray) and given.dtype == kind
    values: NDArray[Any] = np.asarray(given) if plain else check.floats(who, name, given)
    if values.shape not in ((dim,), (walks, dim)):
        expected = f"({dim},) or, with one model per walk, ({walks}, {dim})"
        raise FreewalkError(f"{who}: {name} has shape {values.shape}, expected {expected}")
    with np.errstate(over="ignore"):
        rounded = np.array(np.broadcast_to(values.astype(kind, copy=False), (walks, dim)), order="C")
    if not (np.isfinite(rounded.min()) and np.isfinite(rounded.max())):
        check.floats(who, name, values)  # raises, and names the place
        worst, most = float(np.abs(values).max()), float(np.finfo(kind).max)
        got = f"initial holds numbers up to {worst:.2g} in size, expected at most the {most:.2g} of {kind}"
        raise FreewalkError(f"learn: {got}; use precision='float64'")
    return rounded


def tokens(who: str, value: float | str, n: int) -> int:
    """How many tokens a walk has on n nodes: so many, one on each node, or one for a share of them."""
    kind = type(value)  # not what it says of itself
    if issubclass(kind, str) and value == "nodes":
        return n
    if issubclass(kind, float) and 0 < float(value) < 1:
        return max(1, round(float(value) * n))
    if issubclass(kind, (str, float)):
        expected = 'a whole number >= 1, a share of the nodes such as 0.1, or "nodes": one on each node'
        raise check.fail(who, "tokens", value, expected)
    return check.whole(who, "tokens", value, 1, remedy='"nodes" is one on each node')


def start(
    value: str | ArrayLike | None, seed_: int, walks: int, graph: Graph, importance: ArrayLike, tokens: int | str = 1
) -> NDArray[np.int32]:
    """The start node of each token: "uniform", "heaviest", a node, one per walk or per token, by number or name."""
    if isinstance(tokens, str):
        if value is not None:
            remedy = 'leave it out: with tokens="nodes" each token starts at its own node'
            raise check.fail("run", "start", value, "None", remedy)
        return np.tile(np.arange(graph.n, dtype=np.int32), walks)
    if value is None or (isinstance(value, str) and value == "uniform"):
        key = (np.uint64(seed_), rng.START, np.arange(walks * tokens, dtype=np.uint64), np.uint64(0), np.uint64(0))
        return np.asarray(rng.pick(rng.word_pair(*key)[0], np.uint64(graph.n)), dtype=np.int32)
    if isinstance(value, str) and value == "heaviest":
        value = int(np.argmax(importance))
    each = f"a list with one for each of the {walks} walks, " if walks > 1 else ""
    each += f"rows of {tokens} of them, one for each token, " if tokens > 1 else ""
    expected = f"a node, {each}'uniform' or 'heaviest'"
    close = guess(value, ("uniform", "heaviest")) if isinstance(value, str) else ""
    if close and graph.node_names is None:
        raise check.fail("run", "start", value, expected, close)
    nodes = nodes_of("run", "start", value, graph, expected)
    nodes = nodes[None] if walks == 1 and tokens > 1 and nodes.shape == (tokens,) else nodes
    if nodes.shape not in ((), (walks,), (walks, tokens)):
        raise FreewalkError(f"run: start has shape {nodes.shape}, expected {expected}")
    by_walk = nodes if nodes.ndim == 2 else np.broadcast_to(nodes, (walks,))[:, None]
    return np.array(np.broadcast_to(by_walk, (walks, tokens)).reshape(-1), dtype=np.int32)


def nodes_of(who: str, name: str, value: Any, graph: Graph, expected: str, check: Checks = check) -> NDArray[np.int64]:
    """Nodes as numbers: given by number, or by name if the graph has names."""
    check.room(who, name, 64.0 * value.size if issubclass(type(value), np.ndarray) else 0.0)
    given = value.tolist() if hasattr(value, "tolist") else value  # arrays and table columns
    rows = given if issubclass(type(given), (list, tuple)) else [given]
    words = [word for row in rows for word in (row if issubclass(type(row), (list, tuple)) else [row])]
    if words and all(isinstance(word, str) for word in words):
        if graph.node_names is None:
            raise check.fail(who, name, value, expected, f"{graph.name} has no names")
        if len({len(row) if isinstance(row, (list, tuple)) else 0 for row in rows}) > 1:
            raise check.fail(who, name, value, expected, "all rows must have the same length")
        return np.array([graph.node(word) for word in words], dtype=np.int64).reshape(np.shape(given))
    return check.integers(who, name, value, None, low=0, high=graph.n - 1, remedy=f"give {expected}")


def paths(value: int | Sequence[int], rows: int, tokens: int = 1) -> NDArray[np.int64]:
    """Per token: the row of its path, or -1."""
    who = "walks" if tokens == 1 else "tokens"
    remedy = f"give how many {who} keep their path, or a list of them"
    chosen = check.integers("run", "paths", value, None, low=0, remedy=remedy)
    if chosen.ndim == 0:
        chosen = np.arange(check.whole("run", "paths", int(chosen), 0, rows, remedy))
    if chosen.ndim != 1 or (chosen >= rows).any() or np.unique(chosen).size != chosen.size:
        raise check.fail("run", "paths", value, f"{who} from 0 to {rows - 1}, each once", remedy)
    path_of = np.full(rows, -1, dtype=np.int64)
    path_of[chosen] = np.arange(chosen.size)
    return path_of

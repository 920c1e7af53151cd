"""Exact learning curves: the expected loss at every checkpoint, without random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check, check_kernel
from freewalk.analysis.chain.states import states_of
from freewalk.analysis.learning import model
from freewalk.analysis.learning.groups import Group, group_of, length_of, mean_of
from freewalk.analysis.learning.recursion import new_tally, room_for, update_of
from freewalk.designs.kernel import Kernel
from freewalk.exchanges import Exchange
from freewalk.jobs.job import Job
from freewalk.jobs.phase import Phase, label_of, phase_at, updates_at
from freewalk.jobs.prepare import prepare
from freewalk.linear.arrays import Floats, Ints
from freewalk.objectives import LeastSquares
from freewalk.rules import Rule
from freewalk.rules.rule import PROBE_BYTES

if TYPE_CHECKING:
    import xarray

Progress = Callable[[int, int], None] | None

_BLOCK = 512  # steps between two checks for Ctrl-C


class Expected(NamedTuple):
    """Expected quantities along a run, by checkpoint."""

    totals: Floats  # the packed moments of the mean model
    consensus: Floats
    traffic: Floats  # messages and probes
    visits: Floats  # by node


def exact_curve(
    problem: LeastSquares,
    kernel: Kernel | Sequence[Phase],
    rule: Rule | None = None,
    steps: int = 1000,
    every: int = 1,
    start: str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    tokens: float | str = 1,
    exchange: Exchange | None = None,
) -> xarray.Dataset:
    """Compute the exact expected error of a walk that learns least squares, at every checkpoint.

    With e = x − x* and the update e ← B_v e + b_v at node v, the moments p(v) = P(v_t = v), m(v) = E[e 1_v] and S(v) =
    E[e eᵀ 1_v] follow a linear recursion:
    S⁺(u) = Σ_v P(v, u) [B_v S B_v + B_v m b_vᵀ + b_v mᵀ B_v + p b_v b_vᵀ], and E‖e‖² = Σ tr S(v).

    Parameters
    ----------
    problem
        A least-squares problem, with any number of samples per node and any ridge.
    kernel
        How the walk moves; or a list of `Phase`s, which replaces kernel and rule. Probabilities may change with the
        step. A walk may remember the last node; each phase begins without a past.
    rule
        `fw.SGD` without averaging: any schedule, local steps, with or without weights, full or sampled gradients.
    steps, every
        As in `fw.learn`: the number of updates, and the number of updates between two checkpoints.
    start
        A node, a distribution over the nodes, "uniform", or "heaviest" (the node with the largest smoothness); with a
        single token also several nodes with equal probability. Nodes are given by number or, if the graph has names, by
        name. With several tokens, each draws its own start; parked tokens (`fw.designs.Stay`) may be given one node
        each. None means "uniform" or, with tokens="nodes", each token's own node.
    initial
        The initial model; None means the zero model.
    progress
        Called every few hundred updates with the number of updates so far and in total; an exception it raises ends the
        computation.
    tokens, exchange
        As in `fw.learn`: the number of models that travel at the same time, and how they mix. Supported exactly are
        tokens that never mix, `Average` of tokens drawn by `fw.designs.Centralized`, and parked tokens with `Average`
        or, with full gradients, `Gossip`.

    Returns
    -------
    xarray.Dataset
        With the names of `record.data`. By `step`: expected `loss`, `mse`, `distance`, `messages`, `probes` and `bytes`
        (for double precision), `updates` and, with several tokens, expected `consensus`; by `node`: expected `visits`.
        With several tokens, errors are those of their mean model and counts are sums. A step size that diverges gives
        values up to infinity.

    Raises
    ------
    AnalysisError
        If the problem is not least squares, the rule is not supported, the tokens depend on each other in a way that no
        recursion describes, or there are too many nodes and features for the memory.

    Notes
    -----
    A step costs O((n + entries) · d²) for one sample per node. Jumps are applied hop by hop, so that jumps of up to r
    hops count 2r · edges entries whatever their lengths; corrected jumps cannot be split into hops and count the
    entries of their multi-hop rows. Of a walk that remembers the last node each pair of nodes has moments: a step costs
    O((2 · edges + n) · d²). Full gradients of several samples cost an additional O(n · d³). The state takes n · (d +
    1)(d + 2)/2 numbers.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> curve = exact_curve(problem, kernel, fw.SGD(step=0.01), steps=2000, every=1000, start=0)
    >>> curve.mse.values.round(3)
    array([9.735, 0.086, 0.086])
    """
    who = "exact_curve"
    quadratic = model.Quadratic(model.check_problem(who, problem))
    steps, every = check.whole(who, "steps", steps, 1), check.whole(who, "every", every, 1)
    check.function(who, "progress", progress, ("done", "steps"))
    job = prepare(who, problem, kernel, rule, steps=steps, exchange=exchange, tokens=tokens)
    d, checkpoints = quadratic.dim, steps // every + 2
    for phase in job.phases:
        check_kernel(who, phase.kernel, last_node=True)
    states = max(states_of(phase.kernel).nodes.size for phase in job.phases)
    width = model.check_size(who, states, d, "nodes" if states == problem.n else "pairs of nodes")
    check.room(who, f"{checkpoints:,} checkpoints", 8.0 * checkpoints * (width + d**2 + 10), "let every be larger")
    marks = np.unique(np.append(np.arange(0, steps + 1, every), steps))
    error = model.first_model(who, initial, problem.dim) - problem.optimum()
    inside = quadratic.basis.T @ error
    group = group_of(who, quadratic, job, tokens, start, inside)
    with np.errstate(all="ignore"):
        if group is None:
            law = model.start_law(who, start, job.kernel.graph, problem.smoothness)
            found = _independent(quadratic, job, marks, model.first_state(law, inside), progress)
        else:
            found = _follow(group, job.phases, marks, progress)
        outside = float(error @ error - inside @ inside) if d < problem.dim else 0.0
        measures = quadratic.measures(found.totals, max(outside, 0.0))
    if job.tokens > 1:
        measures["consensus"] = found.consensus
    return _dataset(measures, marks, found, job, problem)


def _independent(quadratic: model.Quadratic, job: Job, marks: Ints, state: Floats, progress: Progress) -> Expected:
    """Follow independent tokens: one of them determines all."""
    tally, visits = new_tally(len(state), state.shape[1], len(marks)), np.zeros(len(state))
    tally.totals[0] = state.sum(axis=0)
    steps, step, place = int(marks[-1]), 0, 1
    entered: Phase | None = None
    while step < steps:
        phase, end, _ = phase_at(job.phases, step)
        rule = model.check_rule("exact_curve", phase.rule)
        until = min(step + _BLOCK, steps, steps if end is None else end)
        times = np.arange(step, until)
        if phase is not entered:  # and has not come from anywhere
            present = states_of(phase.kernel)
            rooms = room_for(present.lifted(state))
            tally = tally._replace(visits=np.zeros(len(present.nodes)))
        if phase is not entered or phase.kernel.fade is not None:
            entered, update = phase, update_of(quadratic, phase.kernel, rule, times)
        last = int(np.searchsorted(marks, until, side="right"))
        part = tally._replace(totals=tally.totals[place:last], traffic=tally.traffic[place:last])
        update.advance(rooms, rule.rates(times), part, marks[place:last] - step)
        step, place = until, last
        if step in (steps, end):
            state = present.gathered(rooms[0])
            visits += present.gathered(tally.visits)
        if progress is not None:
            progress(step, steps)
    totals = mean_of(tally.totals, job.tokens)
    apart = np.maximum(length_of(tally.totals) - length_of(totals), 0.0)
    return Expected(totals, apart, job.tokens * tally.traffic, job.tokens * visits)


def _follow(group: Group, phases: Sequence[Phase], marks: Ints, progress: Progress) -> Expected:
    """Follow tokens to the end, from one exchange, checkpoint or phase to the next."""
    first, apart = group.moments()
    totals, consensus = np.zeros((len(marks), first.size)), np.zeros(len(marks))
    traffic = np.zeros((len(marks), 2))
    totals[0], consensus[0] = first, apart
    steps, step, place, told = int(marks[-1]), 0, 1, 0
    entered: Phase | None = None
    while step < steps:
        phase, end, _ = phase_at(phases, step)
        rule = model.check_rule("exact_curve", phase.rule)
        if phase is not entered:
            group.enter(phase, rule)
            entered = phase
        exchange = phase.exchange
        until = min(step + _BLOCK, int(marks[place]), steps if end is None else end)
        if exchange is not None:
            until = min(until, (step // exchange.every + 1) * exchange.every)
        group.run(rule.rates(np.arange(step, until)))
        step = until
        if exchange is not None and step % exchange.every == 0:
            group.mix(exchange, step)
        if step == marks[place]:
            totals[place], consensus[place] = group.moments()
            traffic[place, 0] = group.messages
            place += 1
        if progress is not None and (step == steps or step >= told + _BLOCK):
            told = step
            progress(step, steps)
    return Expected(totals, consensus, traffic, group.visits)


def _dataset(
    measures: dict[str, Floats], marks: Ints, found: Expected, job: Job, problem: LeastSquares
) -> xarray.Dataset:
    import xarray

    measures = {name: np.where(np.isnan(values), np.inf, values) for name, values in measures.items()}
    messages, probes = found.traffic.T
    size = job.message_bytes(job.phases[0].rule)  # the same in all phases: their rules carry nothing
    measures |= {"messages": messages, "probes": probes, "bytes": messages * size + probes * PROBE_BYTES}
    variables: dict[str, Any] = {name: ("step", values) for name, values in measures.items()}
    variables["updates"] = ("step", updates_at(job.phases, marks, job.tokens))
    best = problem.optimum()
    attrs = {
        "label": label_of(job.phases, job.tokens),
        "optimal_loss": float(problem.loss(best)),
        "optimal_mse": float(problem.mse(best)),
    }
    coords = {"step": marks, "node": np.arange(problem.n)}
    return xarray.Dataset(variables | {"visits": ("node", found.visits)}, coords=coords, attrs=attrs)

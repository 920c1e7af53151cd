"""Run contestants until each has reached the goal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from freewalk.checks import Checks
from freewalk.comparison.result import AXES, Comparison, Finish, spans
from freewalk.comparison.steps import Budget, Choice, choose, reduced
from freewalk.comparison.track import Contestant, Interrupted, Track, has_diverged
from freewalk.errors import FreewalkError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.prepare import PRECISIONS, blamed_on, place, prepare
from freewalk.objectives import Objective
from freewalk.objectives.objective import measured
from freewalk.report.measures import values_of
from freewalk.run.learn import Method
from freewalk.run.loop import Progress
from freewalk.run.record import Record, concat
from freewalk.runtimes import Runtime, runtime_named

_BEYOND = 1.5  # times the rounds to the goal: the length of a run
_PATIENCE = 4  # times the rounds that the pilots needed, after which a step from a search is reduced
_REDUCTIONS = 12
_check = Checks(FreewalkError)


def compare(
    problem: Objective,
    graph: Graph,
    contestants: Sequence[Method],
    *,
    goal: float = 2.0,
    walks: int = 100,
    seed: int = 0,
    most: int = 10_000_000,
    start: str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    keep_steps: bool = False,
    budget: Budget | None = None,
    runtime: str | Runtime | None = None,
    precision: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure what each method needs until its mean error is within a factor of the optimum.

    Steps are chosen by one rule for all: the step that reaches the goal in the fewest rounds, and stays there, in pilot
    runs with another seed. For least squares with `fw.SGD` the pilots start at the step whose expected loss settles at
    half of the goal's distance from the optimum, which is known exactly, and go up; otherwise they come down from the
    largest step that could be stable. Schedules, and rules without a step, are left unchanged.

    Parameters
    ----------
    problem
        The objective; its optimum must be known, and its primary measure positive there.
    graph
        The graph on which the tokens move.
    contestants
        Methods, such as those in `fw.baselines`, with distinct labels.
    goal
        The target, as a multiple of the optimum: it is reached when the primary measure, averaged over the walks, is at
        most this multiple of its optimal value. The first model may not meet it yet: a logistic loss begins at .693,
        so if its optimum is .586, goals are below 1.18.
    walks
        The number of independent replicas of each contestant. A method without randomness, such as parked tokens with
        full gradients, runs once.
    seed
        Determines every draw.
    most
        The maximum number of updates, summed over all tokens of a walk, after which a contestant counts as not reaching
        the goal.
    start, initial
        As in `fw.learn`, the same for all walks and tokens: a node, "uniform" or "heaviest", and a model of shape
        (dim,). With tokens="nodes", tokens start at their own nodes.
    keep_steps
        Use the steps of the methods unchanged.
    budget
        What the search for a step may spend per contestant; None uses `Budget()`.
    runtime, precision
        As in `fw.learn`; None uses what suits the objective and, for the runtime, the rule of each contestant.
    progress
        Called with the current activity, the number of finished contestants, and their total number.

    Returns
    -------
    Comparison
        `print(found)`, `found.figure()`, `found.page("page.html")`, `found.save("folder")`. After Ctrl-C it contains
        the finished contestants, and is partial.

    Raises
    ------
    FreewalkError
        If an argument is invalid, or there is no positive optimum; nothing has been run in that case.
    KeyboardInterrupt
        After Ctrl-C, if no contestant has finished.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(6)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, noise=0.5, seed=1)
    >>> methods = [fw.baselines.fedavg(0.1, local_steps=1), fw.baselines.gradient_tracking(0.1)]
    >>> found = fw.compare(problem, graph, methods, runtime="reference")
    >>> [(row.label, row.reached) for row in found.rows]
    [('FedAvg', True), ('gradient tracking', True)]
    """
    who, budget = "compare", Budget() if budget is None else budget
    arguments.objective(who, problem)
    _check.instance(who, "graph", graph, Graph, "a graph such as fw.graphs.ring(100)")
    _check.instance(who, "budget", budget, Budget, "a Budget, or None")
    goal = _check.real(who, "goal", goal, above=1.0, remedy="2 is twice the optimum")
    _check.function(who, "progress", progress, ("label", "done", "total"))
    keep, methods = _check.flag(who, "keep_steps", keep_steps), _methods(contestants)
    optimum = _optimum(problem)
    finished: list[tuple[Finish, Record]] = []

    def tell(words: str) -> None:
        if progress is not None:
            progress(words, len(finished), len(methods))

    if np.asarray(start, dtype=object).ndim > 0:
        expected = "one node, 'uniform' or 'heaviest'"
        raise _check.fail(who, "start", start, expected, "contestants have different numbers of tokens")
    if initial is not None:
        initial = _check.floats(who, "initial", initial, (problem.dim,), remedy="all walks begin with one model")
    precision = _check.choice(who, "precision", problem.precision if precision is None else precision, PRECISIONS)
    chosen = None if runtime is None else runtime_named(runtime)
    options = {"start": start, "initial": initial, "runtime": chosen, "precision": precision}
    size = _check.whole(who, "walks", walks, 1), _check.whole(who, "most", most, 1)
    track = Track(problem, graph, goal * optimum, optimum, _check.seed(who, seed), *size, options, tell)
    _check_first(track)
    runners = [Contestant(track, method) for method in methods]
    for one in runners:
        _admit(one)
    stopped = ""
    try:
        for one in runners:
            finished.append(_run(one, choose(one, budget, keep)))
    except (Interrupted, KeyboardInterrupt) as interrupt:
        stopped = str(interrupt) or "SIGINT"
        if not finished:
            raise KeyboardInterrupt(stopped) from None
    rows, records = zip(*finished, strict=True)
    together = concat(records, [row.label for row in rows], pad=True)
    together.data.attrs["partial"] = int(bool(stopped))
    if stopped:
        together.provenance["interrupted_by"] = stopped
    return Comparison(rows, together, goal, track.level, optimum, problem.primary, track.most, budget)


def _methods(contestants: Sequence[Method]) -> list[Method]:
    expected = "a list of methods, such as [fw.baselines.fedavg(step=0.01)]"
    found = _check.items("compare", "contestants", contestants, expected)
    if not found:
        raise _check.fail("compare", "contestants", contestants, expected)
    one_method = "a method, such as fw.baselines.fedavg(step=0.01) or fw.baselines.Method(label, design, rule)"
    for one in found:
        _check.instance("compare", "a contestant", one, Method, one_method)
    labels = [one.label for one in found]
    if len(set(labels)) != len(labels):
        raise _check.fail("compare", "the labels of contestants", labels, "different ones", "rename them")
    return found


def _optimum(problem: Objective) -> float:
    """The primary measure at the optimum."""
    who, name = type(problem).__name__, problem.primary
    if name in problem.rising:
        raise FreewalkError(f"compare: higher is better for {name} of {who}, expected a loss as its primary measure")
    best = arguments.optimum(problem)
    if np.isnan(best).any():
        expected = "an objective with optimum(): the goal is a multiple of the best value"
        raise FreewalkError(f"compare: the optimum of {who} is not known, expected {expected}")
    value = float(measured(problem, best)[name])
    if not value > 1e-12 * float(measured(problem, np.zeros(problem.dim))[name]):
        expected = "more than 0: the goal is a multiple of it; use data with noise"
        raise FreewalkError(f"compare: {name} of {who} is {value:.2g} at the optimum, expected {expected}")
    return value


def _check_first(track: Track) -> None:
    """Reject a goal that the first model already meets."""
    problem, initial = track.problem, track.options["initial"]
    for first in arguments.models(initial, problem, 1, track.seed, "float64"):
        value = float(measured(problem, first)[problem.primary])
        if value <= track.level:
            best, largest = track.optimum, math.floor(1000 * value / track.optimum) / 1000
            goal = f"{track.level / best:.4g} × the optimum of {best:.4g} = {track.level:.4g}"
            already = f"which the first model, {value:.4g}, already meets"
            smaller = f"a goal below {largest:g}, or " if largest > 1 else ""
            words = f"the goal for {problem.primary} is {goal}, {already}; choose {smaller}another initial model"
            raise FreewalkError(f"compare: {words}")


def _admit(one: Contestant) -> None:
    """Raise what `learn` would raise, before anything is run."""
    track, method, rounds = one.track, one.method, one.first_rounds
    with blamed_on(f"compare: {method.label}"):
        options = {"exchange": method.exchange, "tokens": method.tokens, "precision": track.options["precision"]}
        job = prepare("learn", track.problem, one.kernel, method.rule, steps=rounds, seed=track.seed, **options)
        start, tokens = one.options["start"], method.tokens
        nodes = place("learn", job, steps=rounds, walks=track.walks, every=rounds, start=start, tokens=tokens).nodes
        arguments.exchanges(job.phases, job.tokens, nodes)
        arguments.visits_everywhere(job.phases, nodes)


def _run(one: Contestant, choice: Choice) -> tuple[Finish, Record]:
    """Run a contestant until it has reached the goal, or its budget is exhausted."""
    track, most = one.track, one.most_rounds
    guess = one.first_rounds if not np.isfinite(choice.rounds) else int(np.ceil(_BEYOND * choice.rounds))
    rounds, left = min(max(guess, 8), most), _REDUCTIONS if np.isfinite(choice.rounds) else 0
    while True:
        track.tell(f"{one.method.label}: {rounds:,} rounds")
        record = one.run(choice.step, rounds, track.walks, track.seed)
        reached = one.rounds_to_goal(record)
        needed = min(max(int(np.ceil(_BEYOND * reached)), 8), most) if np.isfinite(reached) else most
        if np.isfinite(reached) and 2 * needed < rounds:
            rounds = needed  # again, with checkpoints that are close enough
            continue
        failed = has_diverged(record) or rounds > _PATIENCE * choice.rounds
        if left and (not one.stays(record) if np.isfinite(reached) else failed):
            choice, left = reduced(choice), left - 1
            rounds = min(max(int(np.ceil(_BEYOND * choice.rounds)), 8), most)
        elif np.isfinite(reached) or rounds >= most or has_diverged(record):
            return _finish(one, record, choice), record
        else:
            rounds = min(4 * rounds, most)


def _finish(one: Contestant, record: Record, choice: Choice) -> Finish:
    track, data = one.track, record.data.assign(rounds=record.data.step)
    values = values_of(data, track.problem.primary)
    counts = {axis: np.asarray(data[axis].values, dtype=np.float64) for axis in AXES}
    step = choice.step if choice.step is not None else getattr(one.method.rule, "step", None)
    return Finish(
        label=one.method.label,
        step=step if isinstance(step, float | int) else None,
        how=choice.how,
        to_goal=spans(values, track.level, counts, track.seed),
        in_all={axis: float(count[..., -1].mean()) for axis, count in counts.items()},
        final=float(one.mean_of(record)[-1]),
        walks=len(values),
        draws=one.draws,
        stayed=one.stays(record),
        diverged=int(data.diverged.values.sum()),
        pilot_runs=choice.runs,
        pilot_updates=choice.updates,
    )

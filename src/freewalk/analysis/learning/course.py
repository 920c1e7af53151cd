"""Which tokens can be followed exactly, and the loop that follows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.analysis.chain.chain import check
from freewalk.analysis.learning import model
from freewalk.analysis.learning.groups import Drawn, Fixed, Group, Sampled
from freewalk.analysis.learning.moments import Floats
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.exchanges import Average, Exchange
from freewalk.jobs import arguments
from freewalk.jobs.job import Job
from freewalk.jobs.phase import Phase, phase_at
from freewalk.rules import SGD, Rule

_BLOCK = 512  # steps between two checks for Ctrl-C

# How tokens depend on each other.
INDEPENDENT = "independent"  # identically distributed tokens that never mix
FIXED = "fixed"  # parked, without randomness
SAMPLED = "sampled"  # parked, with gradients of random samples, and averaged
DRAWN = "drawn"  # at nodes that a server redraws for each update, and averaged


class Course(NamedTuple):
    """The quantities along a run, by checkpoint."""

    totals: Floats  # the packed moments of the mean model
    consensus: Floats
    traffic: Floats  # messages and probes
    visits: Floats  # by node


def kind_of(who: str, phases: Sequence[Phase], counts: NDArray[np.int64], tokens: int | str, chosen: bool) -> str:
    """How the tokens of a run depend on each other.

    Parameters
    ----------
    who
        The caller, for error messages.
    phases
        The phases of the run.
    counts
        The number of samples by node.
    tokens
        Their number, or "nodes".
    chosen
        Whether each token has its own start.

    Raises
    ------
    AnalysisError
        If their moments do not follow a closed recursion.
    """
    parked = all(phase.kernel.is_parked for phase in phases)
    drawn = all(_is_drawn(phase.kernel) for phase in phases)
    mixing = [phase.exchange for phase in phases if phase.exchange is not None]
    for phase in phases:
        _check_rule(who, phase, counts)
    if tokens == "nodes" and not parked:
        raise AnalysisError(
            f'{who}: tokens = "nodes" starts each token at another node, and they move by {phases[0].kernel.label}; '
            "expected tokens with the same distribution, such as tokens=8, or parked ones (fw.designs.Stay). "
            'Simulate it: fw.learn(..., tokens="nodes", walks=1000)'
        )
    if parked and (chosen or tokens == "nodes"):
        if not any(_draws_samples(phase.rule, counts) for phase in phases):
            for exchange in mixing:
                _check_that(exchange.constant, who, exchange, "weights that may change from one exchange to the next")
            return FIXED
        for exchange in mixing:
            what = "gradients of random samples, after which any two models are correlated in their own way"
            _check_that(exchange.means == "all" and exchange.constant, who, exchange, what, "Take sampled=False, or ")
        return SAMPLED
    if not mixing:
        return INDEPENDENT
    for exchange in mixing:
        if parked:
            raise AnalysisError(
                f"{who}: {exchange!r} mixes parked tokens, but where they start is random; expected tokens="
                '"nodes", or a start with one node for each token'
            )
        averages = isinstance(exchange, Average) and exchange.means == "all"
        _check_that(drawn and averages, who, exchange, "tokens whose paths decide how they are correlated")
    return DRAWN


def _check_that(fine: bool, who: str, exchange: Exchange, what: str, remedy: str = "") -> None:
    if not fine:
        raise AnalysisError(
            f"{who}: {exchange!r} mixes {what}; expected an exchange whose moments follow a closed recursion "
            "(fw.exchanges.Average of tokens that fw.designs.Centralized draws or that are parked, Gossip of parked "
            f"tokens with full gradients, or none). {remedy or 'Or '}simulate it: fw.learn(..., walks=1000)"
        )


def _check_rule(who: str, phase: Phase, counts: NDArray[np.int64]) -> None:
    """Check that the rule is plain SGD, or raise an error that says what to do."""
    rule = phase.rule
    constant = phase.exchange is None or phase.exchange.constant
    if not isinstance(rule, SGD) and phase.kernel.is_parked and constant and not _draws_samples(rule, counts):
        raise AnalysisError(
            f"{who}: got rule = {rule!r}, expected fw.SGD(step=...) without averaging; parked tokens with full "
            "gradients draw nothing: one run of fw.learn(..., walks=1) is exact"
        )
    model.check_rule(who, rule)


def _draws_samples(rule: Rule | None, counts: NDArray[np.int64]) -> bool:
    return rule is not None and rule.sampled and bool((counts > 1).any())


def _is_drawn(kernel: Kernel) -> bool:
    """Whether each node is drawn independently of the previous one."""
    return len(kernel.moves) == 1 and kernel.moves[0].law is not None


def group_of(
    who: str,
    quadratic: model.Quadratic,
    job: Job,
    tokens: int | str,
    start: str | ArrayLike | None,
    error: Floats,
) -> Group | None:
    """The tokens of a run, all with the same first error, as a group; None if one token determines all.

    Raises
    ------
    FreewalkError
        If their moments do not follow a recursion, or an exchange does not fit.
    """
    phases, graph, count = job.phases, job.kernel.graph, job.tokens
    smoothness = quadratic.problem.smoothness
    random = start is None or model.is_distribution(start) or (isinstance(start, str) and start == "uniform")
    if count == 1:
        arguments.exchanges(phases, count, np.zeros(1, dtype=np.int32))  # rejects a single token
        for phase in phases:
            model.check_rule(who, phase.rule)
        return None
    kind = kind_of(who, phases, np.diff(quadratic.problem.offsets), tokens, not random)
    if kind in (INDEPENDENT, DRAWN) and not random and np.size(np.asarray(start, dtype=object)) > 1:
        expected = "one node, 'uniform', 'heaviest' or a distribution, from which each token draws its own node"
        raise check.fail(who, "start", start, expected, "simulate other starts: fw.learn(..., walks=1000)")
    if kind == INDEPENDENT:
        return None
    model.check_size(who, count, quadratic.dim, "tokens")
    if kind == DRAWN:
        return Drawn(quadratic, count, model.start_law(who, start, graph, smoothness), error)
    nodes = arguments.start(start, 0, 1, graph, smoothness, tokens)
    arguments.exchanges(phases, count, nodes)
    return (Fixed if kind == FIXED else Sampled)(quadratic, graph, nodes, error)


def follow(
    group: Group,
    phases: Sequence[Phase],
    steps: int,
    marks: NDArray[np.int64],
    progress: Callable[[int, int], None] | None,
) -> Course:
    """Follow tokens to the end, from one exchange, checkpoint or phase to the next."""
    first, apart = group.moments()
    totals, consensus = np.zeros((len(marks), first.size)), np.zeros(len(marks))
    traffic = np.zeros((len(marks), 2))
    totals[0], consensus[0] = first, apart
    step, place, told = 0, 1, 0
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
    return Course(totals, consensus, traffic, group.visits)

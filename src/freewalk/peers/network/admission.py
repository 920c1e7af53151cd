"""Reject what cannot run between peers, with a reason, before anything is written."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError, FreewalkWarning, PeerError
from freewalk.jobs import arguments
from freewalk.jobs.prepare import Start
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.rules.rule import begun
from freewalk.runtimes import Job
from freewalk.specs.plan import Plan


class Admitted(NamedTuple):
    """A walk of a spec that peers can run."""

    label: str
    job: Job
    rule: Rule
    start: Start  # token t of replica w is row w · tokens + t
    models: NDArray[np.floating]

    @property
    def objective(self) -> Objective:
        """What is learned."""
        assert self.job.objective is not None  # a spec has one
        return self.job.objective

    @property
    def kernel(self) -> Kernel:
        """How tokens move."""
        return self.job.kernel


def admit(plan: Plan, source: str, label: str | None = None) -> Admitted:
    """A walk of a plan, or an error that says why peers cannot run it; a plan with one walk needs no label."""
    chosen = _chosen(plan, source, label)
    job, where = plan.jobs[chosen], f"{source}: {chosen!r}"
    for reason in _reasons(plan, chosen):
        raise PeerError(f"{where}: {reason}")
    rule = job.phases[0].rule
    assert rule is not None  # peers learn
    if plan.options["goal"] is not None:
        goal = f"{source}: [run]: goal = {plan.options['goal']}"
        raise PeerError(f"{goal}, but no node can measure the mean over all walks; leave it out, and set the steps")
    models = arguments.models(None, plan.problem, plan.options["walks"], job.seed, job.precision, job.tokens)
    start = plan.start(chosen)
    _check_stores(rule, models, where)
    try:
        arguments.visits_everywhere(job.phases, start.nodes)
    except FreewalkError as error:
        warnings.warn(f"{where}: {error}", FreewalkWarning, stacklevel=arguments.outside())
    return Admitted(chosen, job, rule, start, models)


def _chosen(plan: Plan, source: str, label: str | None) -> str:
    known = ", ".join(repr(one) for one in plan.jobs)
    if label is None and len(plan.jobs) > 1:
        raise PeerError(f"{source}: has {len(plan.jobs)} walks, expected one; choose with --label: {known}")
    if label is not None and label not in plan.jobs:
        raise PeerError(f"{source}: has no walk {label!r}, expected one of {known}")
    return next(iter(plan.jobs)) if label is None else label


def _reasons(plan: Plan, label: str) -> Iterator[str]:
    """Why peers cannot run a walk of a plan."""
    phases, objective = plan.jobs[label].phases, plan.problem
    rule, exchange, kernel = phases[0].rule, phases[0].exchange, phases[0].kernel
    if len(phases) > 1:
        yield f"has {len(phases)} phases, expected one design and one rule; for decaying jumps, use the design Decaying"
    if exchange is not None:
        yield f"has the exchange {type(exchange).__name__}, but peers never wait for each other's tokens; leave it out"
    if isinstance(plan.methods[label][0].tokens, str):
        yield 'has tokens = "nodes", expected a number: parked tokens need exchanges; write tokens = 1, or more'
    counting = kernel.memory is not None and kernel.memory.counts
    if not kernel.is_local and not counting:
        yield f"{kernel.label} draws from all nodes, which no node can do; use a design that moves along edges"
    if counting:
        yield (
            f"{kernel.label} counts how often a token was at each node, and such walks do not run between peers yet; "
            "run it in the simulator; NonBacktracking runs between peers"
        )
    if rule is None:
        yield "has no rule, expected one: peers learn"
    elif rule.runs_on is not None:
        who = f"{type(rule).__name__} runs on runtime = {rule.runs_on!r} only, which makes its steps itself"
        yield (
            f"{who}; peers apply the `update` of a rule to what comes with a token. For torch modules, too, use "
            "Momentum (like torch.optim.SGD) or AdaGrad, whose state travels with the token, as in "
            'rule = { kind = "Momentum", step = 1e-2 }; or write a rule of your own'
        )
    elif rule.stores and rule.shared:
        yield (
            f"the tokens of {type(rule).__name__} share what is stored at a node ({', '.join(rule.stores)}), but a "
            "re-issued token could not undo what others have built on; use a rule whose tokens keep their own, like SAG"
        )
    who, others = type(objective).__name__, objective.dim - objective.trained
    if objective.random:
        yield f"{who} draws its own random numbers, so a restarted node could not repeat an update; leave out dropout"
    if others > 0:
        yield f"{who} has {others:,} numbers that are not trained, and peers update no buffers; use GroupNorm, for one"


def _check_stores(rule: Rule, models: NDArray[np.floating], where: str) -> None:
    """A node that a token reaches late does not know the initial model of the token."""
    if not rule.stores:
        return
    first, zero = begun(rule, models), begun(rule, np.zeros_like(models))
    for name in rule.stores:
        if not np.array_equal(first[name], zero[name]):
            raise PeerError(
                f"{where}: {name!r}, stored at the nodes, starts from the initial model of the token, which is not 0 "
                "and unknown to them; use a rule that stores nothing, or an objective that starts at 0"
            )

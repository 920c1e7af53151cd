"""Reject what cannot run between peers, with a reason, before anything is written."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError, FreewalkWarning, PeerError
from freewalk.jobs import arguments
from freewalk.jobs.phase import Phase
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
    _check_phases(plan, chosen, job.phases, where)
    rule = _checked_rule(job.phases[0].rule, where)
    _check_objective(plan.problem, where)
    if plan.options["goal"] is not None:
        raise PeerError(
            f"{source}: [run]: goal = {plan.options['goal']}, but no node can measure the mean over all walks; leave "
            "it out, and set the number of steps"
        )
    models = arguments.models(None, plan.problem, plan.options["walks"], job.seed, job.precision, job.tokens)
    start = plan.start(chosen)
    _check_stores(rule, models, where)
    _warn_of_unvisited(job.phases, start.nodes, where)
    return Admitted(chosen, job, rule, start, models)


def _chosen(plan: Plan, source: str, label: str | None) -> str:
    known = ", ".join(repr(one) for one in plan.jobs)
    if label is None and len(plan.jobs) > 1:
        raise PeerError(f"{source}: has {len(plan.jobs)} walks, expected one; choose with --label: {known}")
    if label is not None and label not in plan.jobs:
        raise PeerError(f"{source}: has no walk {label!r}, expected one of {known}")
    return next(iter(plan.jobs)) if label is None else label


def _check_phases(plan: Plan, label: str, phases: tuple[Phase, ...], where: str) -> None:
    if len(phases) > 1:
        raise PeerError(
            f"{where} has {len(phases)} phases, expected one design and one rule: peers do not change them in a run; "
            'choose one phase, or design = { kind = "Decaying", ... } for decaying jumps'
        )
    if phases[0].exchange is not None:
        raise PeerError(
            f"{where} has the exchange {type(phases[0].exchange).__name__}, but tokens of peers never wait for each "
            "other, so they cannot mix; leave it out"
        )
    if isinstance(plan.methods[label][0].tokens, str):
        raise PeerError(
            f'{where} has tokens = "nodes", expected a number: parked tokens learn together only by exchanges, which '
            "peers do not support; write tokens = 1, or more"
        )
    if not phases[0].kernel.is_local:
        raise PeerError(
            f"{where}: {phases[0].kernel.label} draws nodes from a distribution over all nodes, which no node can do; "
            "use a design that moves along edges, such as Metropolis or MHLJ"
        )


def _checked_rule(rule: Rule | None, where: str) -> Rule:
    if rule is None:
        raise PeerError(f"{where} has no rule, expected one: peers learn")
    who = type(rule).__name__
    if rule.runs_on is not None:
        raise PeerError(
            f"{where}: {who} runs on runtime = {rule.runs_on!r} only, expected a rule with its own update; use "
            "SGD, Momentum or another of `freewalk list rule`"
        )
    if rule.stores and rule.shared:
        raise PeerError(
            f"{where}: the tokens of {who} share what is stored at a node ({', '.join(rule.stores)}), but a re-issued "
            "token could not undo what others have built on; use a rule whose tokens keep their own, such as SAG"
        )
    return rule


def _check_objective(objective: Objective, where: str) -> None:
    who = type(objective).__name__
    if objective.random:
        raise PeerError(
            f"{where}: {who} draws its own random numbers, as dropout does, so a restarted node could not repeat "
            "an update; use a model without randomness"
        )
    if objective.trained < objective.dim:
        raise PeerError(
            f"{where}: {who} has {objective.dim - objective.trained:,} numbers that are not trained, the buffers of "
            "its module, expected none: peers do not update them; for example, replace BatchNorm by GroupNorm"
        )


def _check_stores(rule: Rule, models: NDArray[np.floating], where: str) -> None:
    """A node that a token reaches late does not know the initial model of the token."""
    if not rule.stores:
        return
    first, zero = begun(rule, models), begun(rule, np.zeros_like(models))
    for name in rule.stores:
        if not np.array_equal(first[name], zero[name]):
            raise PeerError(
                f"{where}: {name!r}, which {type(rule).__name__} stores at the nodes, starts from the initial model "
                "of the token, which is not 0 here, so nodes do not know it; use a rule that stores nothing, or an "
                "objective that starts at 0"
            )


def _warn_of_unvisited(phases: tuple[Phase, ...], starts: NDArray[np.int32], where: str) -> None:
    try:
        arguments.visits_everywhere(phases, starts)
    except FreewalkError as error:
        warnings.warn(f"{where}: {error}", FreewalkWarning, stacklevel=arguments.outside())

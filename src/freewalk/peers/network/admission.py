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
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.rules.rule import begun
from freewalk.specs.plan import Plan


class Task(NamedTuple):
    """One walk of a spec as peers run it.

    Attributes
    ----------
    label
        Its label in the spec.
    objective, kernel, rule
        What is learned, how tokens move, and how nodes update them, with all derived values filled in.
    starts, models
        The initial node and model of each token: token t of replica w is row w · tokens + t.
    seed, steps, every, precision
        As for `learn`.
    """

    label: str
    objective: Objective
    kernel: Kernel
    rule: Rule
    starts: NDArray[np.int32]
    models: NDArray[np.floating]
    seed: int
    steps: int
    every: int
    precision: str


def task_of(plan: Plan, source: str, label: str | None = None) -> Task:
    """One walk of a plan, checked to be one that peers can run.

    Parameters
    ----------
    plan
        The plan of a spec.
    source
        The name of the spec in error messages.
    label
        The label of the walk; not needed if there is only one.

    Raises
    ------
    PeerError
        If there is no such walk, or peers cannot run it; the message says what to do.
    """
    chosen = _chosen(plan, source, label)
    where = f"{source}: {chosen!r}"
    phases = arguments.phases(plan.walks[chosen], None, plan.problem)
    _check_phases(plan, chosen, phases, where)
    _check_rule(phases[0].rule, where)
    _check_objective(plan.problem, where)
    if plan.options["goal"] is not None:
        raise PeerError(
            f"{source}: [run]: goal = {plan.options['goal']}, but no node can measure the mean over all walks; leave "
            "it out, and set the number of steps"
        )
    kernel, rule = phases[0].kernel, phases[0].rule
    assert rule is not None  # entering.phases demands one
    seed, walks, tokens = plan.options["seed"], plan.options["walks"], plan.tokens[chosen]
    precision = arguments.precision("network", plan.options["precision"], plan.problem)
    models = arguments.models(None, plan.problem, walks, seed, precision, int(tokens))
    starts = plan.starts(chosen)
    _check_stores(rule, models, where)
    _warn_of_unvisited(phases, starts, where)
    steps, every = plan.options["steps"], plan.options["every"]
    return Task(chosen, plan.problem, kernel, rule, starts, models, seed, steps, every, precision)


def _chosen(plan: Plan, source: str, label: str | None) -> str:
    known = ", ".join(repr(one) for one in plan.walks)
    if label is None and len(plan.walks) > 1:
        raise PeerError(f"{source}: has {len(plan.walks)} walks, expected one; choose with --label: {known}")
    if label is not None and label not in plan.walks:
        raise PeerError(f"{source}: has no walk {label!r}, expected one of {known}")
    return next(iter(plan.walks)) if label is None else label


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
    if isinstance(plan.tokens[label], str):
        raise PeerError(
            f'{where} has tokens = "nodes", expected a number: parked tokens learn together only by exchanges, which '
            "peers do not support; write tokens = 1, or more"
        )
    if not phases[0].kernel.is_local:
        raise PeerError(
            f"{where}: {phases[0].kernel.label} draws nodes from a distribution over all nodes, which no node can do; "
            "use a design that moves along edges, such as Metropolis or MHLJ"
        )


def _check_rule(rule: Rule | None, where: str) -> None:
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

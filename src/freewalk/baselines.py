"""Methods to compare a walk with, by name: each combines a design, a rule, tokens and an exchange."""

from __future__ import annotations

from typing import Any

from freewalk.checks import Checks
from freewalk.designs import Centralized, Design, Metropolis, Stay
from freewalk.errors import FreewalkError
from freewalk.exchanges import Average, Gossip, Meet
from freewalk.rules import SGD, CombineFirst, GradientTracking
from freewalk.run.learn import Method as Method
from freewalk.schedules import Schedule

__all__ = ["centralized_sgd", "decentralized_sgd", "fedavg", "gradient_tracking", "minibatch_sgd", "multi_walk_sgd"]

_check = Checks(FreewalkError)
_SAMPLING = {"uniform": Centralized(), "importance": Centralized(power=1.0), "partial": Centralized(1.0, uniform=0.5)}


def centralized_sgd(step: float | Schedule, sampling: str = "uniform", sampled: bool = False) -> Method:
    """SGD at nodes drawn by a server.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    sampling
        "uniform", "importance" (∝ the smoothness L_v), or "partial", half of each (Needell, Srebro, Ward, 2014).
    sampled
        Compute each gradient from one random local sample.

    Examples
    --------
    >>> centralized_sgd(0.01, "partial").design
    Centralized(power=1.0, uniform=0.5)
    """
    design = _SAMPLING[_check.choice("centralized_sgd", "sampling", sampling, _SAMPLING)]
    return Method(f"centralized SGD ({sampling})", design, SGD(step, sampled=sampled))


def decentralized_sgd(
    step: float | Schedule, matrix: Any = None, every: int = 1, combine_first: bool = False, sampled: bool = False
) -> Method:
    """Gossip: every node takes a gradient step, then mixes with its neighbours, x ← W (x − γ ∇f(x)).

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    matrix, every
        As in `fw.exchanges.Gossip`.
    combine_first
        Use the form of Lian et al., x ← W x − γ ∇f(x), in which nodes can send while they compute, but which needs
        smaller steps; see `fw.rules.CombineFirst`.
    sampled
        Compute each gradient from one random local sample.

    Examples
    --------
    >>> decentralized_sgd(0.01).tokens
    'nodes'
    """
    _check.flag("decentralized_sgd", "combine_first", combine_first)
    rule = CombineFirst(step, sampled) if combine_first else SGD(step, sampled=sampled)
    label = "decentralized SGD" + " (combine first)" * combine_first
    return Method(label, Stay(), rule, "nodes", Gossip(matrix, every))


def gradient_tracking(step: float | Schedule, matrix: Any = None) -> Method:
    """Gossip of models and of directions that track the gradient of the global loss: exact with a constant step.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    matrix
        As in `fw.exchanges.Gossip`.

    Examples
    --------
    >>> gradient_tracking(0.01).rule
    GradientTracking(step=0.01)
    """
    return Method("gradient tracking", Stay(), GradientTracking(step), "nodes", Gossip(matrix))


def fedavg(step: float | Schedule, local_steps: int = 10, sampled: bool = False, fraction: float = 1.0) -> Method:
    """FedAvg, or local SGD: nodes take local steps, then a server averages their models; one such round is one step.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    local_steps
        The number of local steps of each node per round.
    sampled
        Compute each gradient from one random local sample.
    fraction
        The share of the nodes that take part in a round: with 1 all of them, otherwise as many as that share, each
        drawn by the server uniformly and independently (so that it may draw a node twice).

    Examples
    --------
    >>> fedavg(0.01, local_steps=5).exchange
    Average(every=1)
    >>> fedavg(0.01, fraction=0.1).tokens
    0.1
    """
    rule = SGD(step, local_steps=local_steps, sampled=sampled)
    share = _check.probability("fedavg", "fraction", fraction, positive=True)
    if share == 1:
        return Method("FedAvg", Stay(), rule, "nodes", Average())
    return Method(f"FedAvg ({share:g} of the nodes)", Centralized(), rule, share, Average(down=False))


def minibatch_sgd(step: float | Schedule, batch: int = 8, sampling: str = "uniform", sampled: bool = False) -> Method:
    """SGD on the mean gradient of several nodes drawn by a server.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    batch
        The number of nodes per round, at least 2.
    sampling, sampled
        As in `centralized_sgd`.

    Examples
    --------
    >>> minibatch_sgd(0.01, batch=4).tokens
    4
    """
    design = _SAMPLING[_check.choice("minibatch_sgd", "sampling", sampling, _SAMPLING)]
    _check.whole("minibatch_sgd", "batch", batch, 2, remedy="centralized_sgd takes one node at a time")
    rule = SGD(step, sampled=sampled)
    return Method(f"minibatch SGD ({batch}, {sampling})", design, rule, batch, Average(down=False))


def multi_walk_sgd(
    step: float | Schedule, tokens: int = 8, design: Design | None = None, meet: bool = False, sampled: bool = False
) -> Method:
    """Several walks that learn in parallel; the result is their mean model.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    tokens
        The number of walks.
    design
        How they move; None uses the uniform Metropolis walk.
    meet
        Whether tokens that meet at a node are averaged.
    sampled
        Compute each gradient from one random local sample.

    Examples
    --------
    >>> multi_walk_sgd(0.01, tokens=4, meet=True).exchange
    Meet(every=1)
    """
    _check.whole("multi_walk_sgd", "tokens", tokens, 1)
    meet = _check.flag("multi_walk_sgd", "meet", meet)
    label = f"{tokens} walks" + ", meeting" * meet
    chosen = Metropolis() if design is None else design
    return Method(label, chosen, SGD(step, sampled=sampled), tokens, Meet() if meet else None)

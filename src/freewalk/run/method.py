"""A learning method: how tokens move, learn and mix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from freewalk.checks import Checks
from freewalk.designs import Design
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.exchanges import Exchange
from freewalk.graphs import Graph
from freewalk.jobs.prepare import kernel_of
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.run.learn import learn
from freewalk.run.record import Record
from freewalk.schedules import Schedule

_check = Checks(FreewalkError)


@dataclass(frozen=True, eq=False)
class Method:
    """A learning method: everything that `fw.learn` takes except the problem and the length of the run.

    Parameters
    ----------
    label
        The name used in tables and figures.
    design
        How the tokens move.
    rule
        How a node updates a model.
    tokens, exchange
        As in `fw.learn`.

    Raises
    ------
    FreewalkError
        If an argument has the wrong type.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, seed=1)
    >>> walk = fw.baselines.Method("one walk", fw.designs.SimpleWalk(), fw.SGD(step=0.05))
    >>> walk.learn(problem, graph, steps=1000, walks=10, every=1000).data.updates.values
    array([   0, 1000])
    """

    label: str
    design: Design
    rule: Rule
    tokens: int | str = 1
    exchange: Exchange | None = None

    def __post_init__(self) -> None:
        _check.text("Method", "label", self.label)
        _check.instance("Method", "design", self.design, Design, "a design such as fw.designs.SimpleWalk()")
        _check.instance("Method", "rule", self.rule, Rule, "an update rule such as fw.SGD(step=1e-3)")
        if self.tokens != "nodes":
            _check.whole("Method", "tokens", self.tokens, 1, remedy='"nodes" is one on each node')
        if self.exchange is not None:
            _check.instance("Method", "exchange", self.exchange, Exchange, "an exchange such as fw.exchanges.Meet()")

    def kernel(self, graph: Graph, problem: Objective) -> Kernel:
        """Compile the design for a graph, using the smoothness of the problem if the design needs it."""
        return kernel_of(self.design, graph, problem, self.label)

    def with_step(self, step: float | Schedule) -> Method:
        """Return the same method with another step size."""
        return replace(self, rule=replace(self.rule, step=step))  # type: ignore[type-var]

    def learn(self, problem: Objective, graph: Graph, **options: Any) -> Record:
        """Run the method; `options` are those of `fw.learn`: steps, walks, every and so on."""
        kernel = self.kernel(graph, problem)
        record = learn(problem, kernel, self.rule, tokens=self.tokens, exchange=self.exchange, **options)
        record.data.attrs["label"] = self.label
        return record

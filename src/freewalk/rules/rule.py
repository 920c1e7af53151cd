"""The base class of update rules: how a visited node improves the model it receives."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, said, show
from freewalk.errors import FreewalkError
from freewalk.schedules import Schedule, values_at

if TYPE_CHECKING:
    from freewalk.designs.kernel import Kernel
    from freewalk.objectives import Objective

check = Checks(FreewalkError)
_MOST_VECTORS = 8
_MOST_LOCAL_STEPS = 10**6  # a visit cannot be interrupted
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NOT_NUMBERS = ("step", "local_steps")  # passed to `update` as visit.rate and visit.count
#: The size of a probe in bytes: the numbers of run, walk, step and hop, a ratio, and a packet header.
PROBE_BYTES = 64
FORM = "update(visit, numbers, x, gradient, *carried, *stored), which returns the new x, carried and stored"


class Visit(NamedTuple):
    """The context of an update, as far as a rule may use it.

    Attributes
    ----------
    rate
        The step size γ at this step.
    weight
        The kernel's weight of this node, 1 / (n · target_v); 1 for a rule that is not `weighted`.
    count
        The number of updates of this token that the rule has made before this one.
    nodes
        The number of nodes n.
    visits
        The number of visits of this token to this node since the rule began, including this one; 0 unless the rule
        `counts_visits`.
    """

    rate: Any
    weight: Any
    count: Any
    nodes: Any
    visits: Any


class Rule(ABC):
    """An update rule: a frozen dataclass with the names of its vectors and one function.

    To define your own rule, implement `update` and, as needed, the fields below. The function is plain arithmetic that
    works for a number, an array and a tensor alike: the reference runtime calls it coordinate by coordinate, compiled
    runtimes compile its source. It sees one coordinate at a time, so a rule that clips by the norm of the gradient
    cannot be written. Its parameters, such as a momentum, are fields of the dataclass and are passed by name in
    `numbers` at run time: a new value compiles nothing.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class HeavyBall(Rule):
    ...     step: float
    ...     momentum: float = 0.9
    ...     carries = ("velocity",)
    ...
    ...     @staticmethod
    ...     def update(visit, numbers, x, gradient, velocity):
    ...         velocity = numbers.momentum * velocity + visit.rate * visit.weight * gradient
    ...         return x - velocity, velocity
    >>> HeavyBall(0.1).numbers, HeavyBall(0.1).rates(np.arange(2))
    (Numbers(momentum=0.9), array([0.1, 0.1]))
    """

    #: The vectors that travel with the model, by name; they are sent with it.
    carries: tuple[str, ...] = ()
    #: The vectors that stay at each node, one of each per token unless they are `shared`.
    stores: tuple[str, ...] = ()
    #: The vector at which the gradient is evaluated: "x", or a carried or stored one.
    evaluates: str = "x"
    #: The vector that is reported as the model: "x", or a carried one.
    reports: str = "x"
    #: Whether the tokens of a walk share the vectors stored at a node, in the order of their numbers.
    shared: bool = False
    #: Whether `visit.visits` is counted.
    counts_visits: bool = False
    #: Whether `update` receives, instead of a gradient, the minimiser of f_v(y) + penalty/2 ‖y − point‖², with the
    #: point and the penalty given by `point`; on the reference runtime only, for objectives with a `proximal`.
    proximal: bool = False
    #: Whether the rule converges to the optimum only if the token visits every node.
    needs_every_node: bool = False
    #: Whether a gradient at node v is multiplied by the kernel's weight 1 / (n · target_v).
    weighted: bool = True
    #: The only runtime that supports this rule, which then has no `update`; None means all of them.
    runs_on: str | None = None
    #: Whether a record can contain it; a rule that is code is passed to `fw.resume` again.
    stored: bool = True
    #: Updates at a node before the model moves on.
    local_steps: int = 1
    #: Whether a gradient is computed from one random local sample instead of all samples.
    sampled: bool = False

    @property
    @abstractmethod
    def update(self) -> Callable[..., Any]:
        """The function `update(visit, numbers, x, gradient, *carried, *stored)`: a static method, or a property.

        It returns the new x, or a tuple of the new x and all carried and stored vectors in order. `visit` is a `Visit`,
        `numbers` are those of the rule in the precision of the model, and `gradient` is the unweighted gradient of the
        node.
        """

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters as a named tuple: every numeric field except `step` and `local_steps`."""
        declared: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        own = {one.name: getattr(self, one.name) for one in declared if one.name[0] != "_"}
        found = {name: float(one) for name, one in own.items() if name not in _NOT_NUMBERS and _is_number(one)}
        return _numbers(tuple(found))(**found)  # type: ignore[no-any-return]

    def rates(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The step size γ at each of the given steps, from the field `step`, a number or a schedule."""
        step = _step_of(self)
        if isinstance(step, Schedule):
            return values_at(step, steps, f"{type(self).__name__}: step")
        return np.full(np.shape(steps), step)

    @property
    def constant(self) -> bool:
        """Whether `rates` are the same at all steps; engines then ask for only one of them."""
        own = type(self).rates is not Rule.rates  # a user-defined class may override it
        return not own and not isinstance(getattr(self, "step", 1.0), Schedule)

    def point(self, visit: Visit, numbers: Any, x: Any, *vectors: Any) -> tuple[Any, float]:
        """Where a `proximal` rule asks a node to solve its own problem: the point and the penalty."""
        raise NotImplementedError(f"{type(self).__name__} is proximal and must implement `point`")

    def begin(self, models: NDArray[np.floating[Any]]) -> Mapping[str, NDArray[np.floating[Any]]]:
        """The initial vectors of the rule by name, each shaped like the models; omitted ones are zero.

        A stored vector starts with the same value at all nodes.
        """
        return {}

    def sent(self, objective: Objective) -> int:
        """The number of values that travel with a model: those of the vectors that the rule carries."""
        return len(self.carries) * objective.trained

    def fitted(self, objective: Objective, kernel: Kernel) -> Rule:
        """The rule with all parameters filled in that follow from the objective and the kernel."""
        return self


def check_runs_on(rules: Iterable[Rule | None], runtime: str) -> None:
    """Reject a rule that only another runtime supports."""
    for rule in rules:
        if rule is not None and rule.runs_on not in (None, runtime):
            who = f"{runtime}: {type(rule).__name__}"
            raise FreewalkError(f"{who} runs on runtime={rule.runs_on!r} only; leave `runtime` out")


def check_options(rule: Rule) -> None:
    """Check the options that rules have in common."""
    who = type(rule).__name__
    _step_of(rule)
    check.whole(who, "local_steps", rule.local_steps, 1, _MOST_LOCAL_STEPS)
    for name in ("weighted", "sampled"):
        check.flag(who, name, getattr(rule, name))


def _step_of(rule: Rule) -> float | Schedule:
    """The step size of a rule: a schedule, or a positive number."""
    step = getattr(rule, "step", 1.0)
    if issubclass(type(step), Schedule):  # unlike isinstance, not deceived by an object that lies about its class
        return step
    remedy = "or a schedule such as Inverse(0.1, scale=100)"
    return check.real(type(rule).__name__, "step", step, above=0.0, remedy=remedy)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@cache
def _numbers(names: tuple[str, ...]) -> Any:
    return namedtuple("Numbers", names)


def checked(rule: Rule) -> Rule:
    """Return the rule after checking everything that engines rely on, or an error that says what is wrong."""
    who = type(rule).__name__
    if isinstance(rule.carries, int) or hasattr(rule, "reported"):
        expected = "the names of its vectors such as ('velocity',) (and `reports` in place of `reported`)"
        remedy = f"rules have a new form: {FORM}. CONTRIBUTING.md shows one"
        raise check.fail(who, "carries", rule.carries, expected, remedy)
    for kind in ("carries", "stores"):
        names = check.instance(who, kind, getattr(rule, kind), tuple, "a tuple of names")
        for name in names:
            check.text(who, kind, name)
        check.whole(who, f"number of vectors in {kind}", len(names), 0, _MOST_VECTORS)
    vectors = ("x", *rule.carries, *rule.stores)
    if len(set(vectors)) != len(vectors):
        raise check.fail(who, "carries and stores", vectors[1:], "different names, none of them 'x'")
    check.choice(who, "evaluates", rule.evaluates, vectors)
    check.choice(who, "reports", rule.reports, ("x", *rule.carries))
    for name in ("shared", "counts_visits", "proximal", "needs_every_node"):
        check.flag(who, name, getattr(rule, name))
    check_options(rule)
    if rule.runs_on is None:
        _check_update(who, rule, len(vectors))
    return rule


def _check_update(who: str, rule: Rule, vectors: int) -> None:
    """Call the function once in plain Python, which reports errors better than a compiler."""
    function, expected = rule.update, ["visit", "numbers", "x", "gradient", *rule.carries, *rule.stores]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise check.fail(who, "update", function, f"a function {FORM}") from None
    if inspect.ismethod(function):
        raise FreewalkError(f"{who}: update is a method that takes `self`; make it a @staticmethod: {FORM}")
    names = list(parameters)
    moved = any(name in expected and expected.index(name) != place for place, name in enumerate(names))
    if len(names) != len(expected) or moved or any(one.kind not in _PLACED for one in parameters.values()):
        given, wanted = (f"update({', '.join(map(str, one))})" for one in (parameters.values(), expected))
        raise FreewalkError(f"{who}: {given} has another form than it should, which is {FORM}; here {wanted}")
    visit, numbers = Visit(rate=0.1, weight=1.0, count=0, nodes=2, visits=1), rule.numbers
    try:
        result = function(visit, numbers, 0.5, 0.5, *[0.5] * (vectors - 1))
    except ArithmeticError:
        return
    except Exception as error:
        known = f" (numbers are its fields that are numbers: {', '.join(numbers._fields) or 'none'})"  # type: ignore[attr-defined]
        more = known if isinstance(error, AttributeError) else ""
        raise FreewalkError(f"{who}: update fails where all numbers are 0.5: {said(error)}{more}") from error
    values = result if isinstance(result, tuple) else (result,)
    words = ", ".join(["x", *rule.carries, *rule.stores])
    if len(values) != vectors or isinstance(result, tuple) != (vectors > 1):
        got = f"{len(values)} value{'s' * (len(values) != 1)}" if isinstance(result, (tuple, float)) else show(result)
        kind = "a tuple of the new" if vectors > 1 else "one number, the new"
        raise FreewalkError(f"{who}: update returns {got}, expected {vectors}: {kind} {words}")
    if not all(_is_number(value) for value in values):
        raise FreewalkError(f"{who}: update returns {show(result)}, expected numbers: the new {words}")


def begun(rule: Rule, models: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The initial vectors of a rule, by name, checked and with the dtype of the models."""
    who, names = type(rule).__name__, (*rule.carries, *rule.stores)
    with check.attempt(f"{who}: begin() fails"):
        given = rule.begin(models)
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        raise check.fail(who, "begin()", given, f"a mapping of some of {', '.join(names) or 'no vectors'} to arrays")
    vectors = {}
    for name in names:
        values = given.get(name, np.zeros_like(models))
        if not isinstance(values, np.ndarray) or values.shape != models.shape or values.dtype.kind != "f":
            raise check.fail(who, f"begin()[{name!r}]", values, f"an array of floats of shape {models.shape}")
        vectors[name] = values.astype(models.dtype)
    return vectors

"""What an update rule is: how a visited node improves the model that it was handed."""

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

from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError
from freewalk.schedules import Schedule, schedule, values_at

if TYPE_CHECKING:
    from freewalk.kernel import Kernel
    from freewalk.objectives import Objective

check = Checks(FreewalkError)
_MOST_VECTORS = 8
_MOST_LOCAL_STEPS = 10**6  # a visit cannot be interrupted
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NOT_NUMBERS = ("step", "local_steps")  # they reach `update` as visit.rate and visit.count
#: The bytes of a probe: the numbers of run, walk, step and hop, a ratio, and the header of a packet.
PROBE_BYTES = 64
FORM = "update(visit, numbers, x, gradient, *carried, *stored), which returns the new x, carried and stored"


class Visit(NamedTuple):
    """What a rule may know of the occasion of an update.

    Attributes
    ----------
    rate
        The step size γ at this step.
    weight
        The kernel's weight of this node, 1 / (n · target_v); 1 for a rule that is not `weighted`.
    count
        How many updates of this token the rule has made before this one.
    nodes
        The number of nodes n.
    visits
        The visits of this token to this node since the rule began, this one counted; 0 unless the rule
        `counts_visits`.
    """

    rate: Any
    weight: Any
    count: Any
    nodes: Any
    visits: Any


class Rule(ABC):
    """An update rule: a frozen dataclass, the names of its vectors, and one function.

    A rule of your own gives `update` and where it needs them the fields below. The function is plain arithmetic that is
    right for a number, an array and a tensor alike: the reference runtime calls it coordinate by coordinate, compiled
    runtimes compile its source. Its parameters, such as a momentum, are fields of the dataclass and reach it by name in
    `numbers`, at run time: a new value compiles nothing.

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
    #: The vectors that stay at each node, one of each for every token unless they are `shared`.
    stores: tuple[str, ...] = ()
    #: The vector at which the gradient is taken: "x", or one that is carried or stored.
    evaluates: str = "x"
    #: The vector that is the model to report: "x", or one that is carried.
    reports: str = "x"
    #: Whether the tokens of a walk share what is stored at a node, in the order of their numbers.
    shared: bool = False
    #: Whether `visit.visits` is counted.
    counts_visits: bool = False
    #: Whether `update` is handed, in place of a gradient, the minimiser of f_v(y) + penalty/2 ‖y − point‖², with the
    #: point and the penalty that `point` names; on the reference runtime only, for objectives with a `proximal`.
    proximal: bool = False
    #: Whether the rule converges to the optimum only if the token visits every node.
    needs_every_node: bool = False
    #: Whether a gradient at node v is multiplied by the kernel's weight 1 / (n · target_v).
    weighted: bool = True
    #: The one runtime that knows this rule, which then has no `update`; None: all of them.
    runs_on: str | None = None
    #: Whether a record can hold it; one that is code is handed to `fw.resume` again.
    stored: bool = True
    #: Updates at a node before the model moves on.
    local_steps: int = 1
    #: Whether a gradient is that of one random local sample instead of all of them.
    sampled: bool = False

    @property
    @abstractmethod
    def update(self) -> Callable[..., Any]:
        """The function `update(visit, numbers, x, gradient, *carried, *stored)`: a static method, or a property.

        It returns the new x, or a tuple of the new x and all carried and stored vectors in their order. `visit` is a
        `Visit`, `numbers` are those of the rule in the precision of the model, `gradient` is that of the node, without
        any weight.
        """

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters by name, a named tuple: every field that is a number, but for `step` and `local_steps`."""
        names = [field.name for field in fields(self)] if is_dataclass(self) else list[str]()
        values = {name: getattr(self, name) for name in names if name not in _NOT_NUMBERS and name[0] != "_"}
        found = {name: value for name, value in values.items() if _is_number(value)}
        return _numbers(tuple(found))(*(float(value) for value in found.values()))  # type: ignore[no-any-return]

    def rates(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The step size γ at each of the given steps: that of the field `step`, a number or a schedule."""
        who = type(self).__name__
        return values_at(schedule(getattr(self, "step", 1.0), who), steps, f"{who}: step")

    @property
    def constant(self) -> bool:
        """Whether `rates` are the same at all steps; engines then ask for one of them only."""
        own = type(self).rates is not Rule.rates  # a class of a user's may have rates of its own
        return not own and not isinstance(getattr(self, "step", 1.0), Schedule)

    def point(self, visit: Visit, numbers: Any, x: Any, *vectors: Any) -> tuple[Any, float]:
        """Where a rule that is `proximal` asks a node to solve its own problem: the point and the penalty."""
        raise NotImplementedError(f"{type(self).__name__} is proximal and must say near which point")

    def begin(self, models: NDArray[np.floating[Any]]) -> Mapping[str, NDArray[np.floating[Any]]]:
        """The vectors where the rule begins, by name, each shaped like the models; those left out begin as zeros.

        A stored vector begins the same at all nodes.
        """
        return {}

    def sent(self, objective: Objective) -> int:
        """How many numbers travel with a model: those of the vectors that the rule carries."""
        return len(self.carries) * objective.trained

    def fitted(self, objective: Objective, kernel: Kernel) -> Rule:
        """The rule with all that follows from the objective and the kernel filled in; itself where nothing does."""
        return self


def message_bytes(rule: Rule | None, dim: int, precision: str = "float64") -> int:
    """The bytes of one message: a model of `dim` numbers and the vectors that its rule carries.

    Examples
    --------
    >>> from freewalk.rules import SAG, SGD
    >>> message_bytes(SGD(step=0.1), dim=10), message_bytes(SAG(step=0.1), dim=10, precision="float32")
    (80, 80)
    """
    return (0 if rule is None else 1 + len(rule.carries)) * dim * np.dtype(precision).itemsize


def check_runs_on(rules: Iterable[Rule | None], runtime: str) -> None:
    """Refuse a rule that only another runtime knows."""
    for rule in rules:
        if rule is not None and rule.runs_on not in (None, runtime):
            raise FreewalkError(
                f"{runtime}: {type(rule).__name__} runs on runtime={rule.runs_on!r} only; leave `runtime` out"
            )


def check_options(rule: Rule) -> None:
    """Check the options that rules have in common, those that this one has."""
    who = type(rule).__name__
    schedule(getattr(rule, "step", 1.0), who)
    check.whole(who, "local_steps", rule.local_steps, 1, _MOST_LOCAL_STEPS)
    for name in ("weighted", "sampled"):
        check.flag(who, name, getattr(rule, name))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@cache
def _numbers(names: tuple[str, ...]) -> Any:
    return namedtuple("Numbers", names)


def checked(rule: Rule) -> Rule:
    """The rule, of which everything that engines trust is known to be right.

    Raises
    ------
    FreewalkError
        If something is not: for example, a rule with the signature of an earlier version.
    """
    who = type(rule).__name__
    if isinstance(rule.carries, int) or hasattr(rule, "reported"):
        raise FreewalkError(
            f"{who}: carries = {show(rule.carries)}, expected the names of its vectors such as ('velocity',) (and "
            f"`reports` in place of `reported`); rules have a new form: {FORM}. CONTRIBUTING.md shows one"
        )
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
    """Call the function once in plain Python: what is wrong there is told better than by a compiler."""
    function, expected = rule.update, ["visit", "numbers", "x", "gradient", *rule.carries, *rule.stores]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise check.fail(who, "update", function, f"a function {FORM}") from None
    if inspect.ismethod(function):
        raise FreewalkError(f"{who}: update is a method that takes `self`; make it a @staticmethod: {FORM}")
    names = list(parameters)
    strays = {name for place, name in enumerate(names) if name in expected and expected.index(name) != place}
    if len(names) != len(expected) or strays or any(one.kind not in _PLACED for one in parameters.values()):
        raise FreewalkError(
            f"{who}: update({', '.join(map(str, parameters.values()))}) has another form than it should, which is "
            f"{FORM}; here update({', '.join(expected)})"
        )
    visit, numbers = Visit(rate=0.1, weight=1.0, count=0, nodes=2, visits=1), rule.numbers
    try:
        result = function(visit, numbers, 0.5, 0.5, *[0.5] * (vectors - 1))
    except ArithmeticError:
        return
    except Exception as error:
        known = f" (numbers are its fields that are numbers: {', '.join(numbers._fields) or 'none'})"  # type: ignore[attr-defined]
        raise FreewalkError(
            f"{who}: update fails where all numbers are 0.5: {type(error).__name__}: {error}"
            f"{known if isinstance(error, AttributeError) else ''}"
        ) from error
    values = result if isinstance(result, tuple) else (result,)
    words = ", ".join(["x", *rule.carries, *rule.stores])
    if len(values) != vectors or isinstance(result, tuple) != (vectors > 1):
        got = f"{len(values)} value{'s' * (len(values) != 1)}" if isinstance(result, (tuple, float)) else show(result)
        kind = "a tuple of the new" if vectors > 1 else "one number, the new"
        raise FreewalkError(f"{who}: update returns {got}, expected {vectors}: {kind} {words}")
    if not all(_is_number(value) for value in values):
        raise FreewalkError(f"{who}: update returns {show(result)}, expected numbers: the new {words}")


def begun(rule: Rule, models: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The vectors with which a rule begins, by name, all of them and of the type of the models.

    Raises
    ------
    FreewalkError
        If `begin` makes something else.
    """
    who, names = type(rule).__name__, (*rule.carries, *rule.stores)
    try:
        given = rule.begin(models)
    except Exception as error:
        raise FreewalkError(f"{who}: begin() fails: {type(error).__name__}: {error}") from error
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        raise check.fail(who, "begin()", given, f"a mapping of some of {', '.join(names) or 'no vectors'} to arrays")
    vectors = {}
    for name in names:
        values = given.get(name, np.zeros_like(models))
        if not isinstance(values, np.ndarray) or values.shape != models.shape or values.dtype.kind != "f":
            raise check.fail(who, f"begin()[{name!r}]", values, f"an array of floats of shape {models.shape}")
        vectors[name] = values.astype(models.dtype)
    return vectors

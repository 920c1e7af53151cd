"""What every rule is asked for: functions that are right for arrays too, and plain words where something is wrong."""

from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import LISTED_RULES, MEMORY_RULES
from written_out import GRAPH, KERNEL, PROBLEM

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.rules import SAG, SGD, Visit, VisitWeighted, Walkman

EXAMPLES = LISTED_RULES | MEMORY_RULES
EXAMPLES |= {"Walkman": Walkman(penalty=3.0), "Walkman, proximal": Walkman(penalty=3.0, proximal=True)}
EXAMPLES |= {"VisitWeighted": VisitWeighted(step=0.1, prior=5.0)}  # without, they follow from the problem


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("count", [0, 3, 7, 8])
def test_an_update_is_the_same_for_arrays_and_numbers(name, count):
    rule, generator = EXAMPLES[name], np.random.default_rng(5)
    visit = Visit(rate=0.1, weight=1.7, count=count, nodes=8, visits=2)
    vectors = [generator.uniform(0.1, 2.0, 6) for _ in range(2 + len(rule.carries) + len(rule.stores))]
    kept = [vector.copy() for vector in vectors]
    whole = rule.update(visit, rule.numbers, *vectors)
    whole = whole if isinstance(whole, tuple) else (whole,)
    assert len(whole) == len(vectors) - 1
    for j in range(6):
        one = rule.update(visit, rule.numbers, *(float(vector[j]) for vector in vectors))
        np.testing.assert_allclose([result[j] for result in whole], one, rtol=1e-15)
    assert all(np.array_equal(*pair) for pair in zip(vectors, kept, strict=True))  # nothing was written in place


# What is wrong is said in plain words, on every runtime, before anything is computed.


def plain(visit, numbers, x, gradient):
    return x - visit.rate * gradient


def with_speed(visit, numbers, x, gradient, speed):
    return x - speed, speed + gradient


def old(x, gradient, step, count):
    return x - step * gradient


@dataclass(frozen=True)
class Mine(fw.Rule):
    """A user's rule, of which anything may be wrong."""

    function: object = with_speed
    carried: object = ("speed",)
    stored: object = ()
    shown: str = "x"
    taken: str = "x"
    begins: object = None

    carries = property(lambda self: self.carried)
    stores = property(lambda self: self.stored)
    reports = property(lambda self: self.shown)
    evaluates = property(lambda self: self.taken)
    update = property(lambda self: self.function)

    def begin(self, models):
        return {} if self.begins is None else self.begins(models)


class Method(fw.Rule):
    """Forgot that an update is a static method."""

    def update(self, visit, numbers, x, gradient):
        return x


class OldMethod(fw.Rule):
    """Forgot it in the old form as well."""

    carries = 1

    @property
    def update(self):
        return old


def forgetful(visit, numbers, x, gradient, speed):
    return x - speed


def generous(visit, numbers, x, gradient):
    return x, x, x


def failing(visit, numbers, x, gradient):
    return x - numbers.speed


def three(visit, numbers, x, gradient, one, two):
    return x, one, two


FORM = r"update\(visit, numbers, x, gradient, \*carried, \*stored\), which returns the new x, carried and stored"
WRONG = {
    "too few values": (Mine(forgetful), r"Mine: update returns 1 value, expected 2: a tuple of the new x, speed$"),
    "too many values": (Mine(generous, ()), r"Mine: update returns 3 values, expected 1: one number, the new x$"),
    "an update that fails": (
        Mine(failing, ()),
        r"Mine: update fails where all numbers are 0.5: AttributeError: .*speed",
    ),
    "the old signature": (
        Mine(old, ()),
        rf"Mine: update\(x, gradient, step, count\) has another form than it should, which is {FORM}; here "
        r"update\(visit, numbers, x, gradient\)$",
    ),
    "a vector too few": (
        Mine(plain),
        rf"Mine: update\(.*\) .* {FORM}; here update\(visit, numbers, x, gradient, speed\)$",
    ),
    "carries as a number": (Mine(old, 1), rf"Mine: carries = 1, expected the names of .*\('velocity',\).*{FORM}"),
    "carries as a number in a class": (OldMethod(), rf"OldMethod: carries = 1, expected the names.*{FORM}"),
    "carries as a text": (Mine(carried="speed"), r"Mine: carries = 'speed', expected a tuple of names"),
    "carries x": (Mine(carried=("x",)), r"Mine: carries and stores = \('x',\), expected different names, none .* 'x'"),
    "carries twice": (Mine(three, ("a", "a")), r"Mine: carries and stores = \('a', 'a'\), expected different names"),
    "carries and stores": (Mine(three, ("a",), ("a",)), r"Mine: carries and stores = \('a', 'a'\), expected different"),
    "evaluates": (Mine(taken="there"), r"Mine: evaluates = 'there', expected 'x' or 'speed'"),
    "reports": (Mine(shown="there"), r"Mine: reports = 'there', expected 'x' or 'speed'"),
    "reports what is stored": (Mine(with_speed, (), ("speed",), "speed"), r"Mine: reports = 'speed', expected 'x'"),
    "a method": (Method(), r"Method: update is a method that takes `self`; make it a @staticmethod: update\("),
    "no function": (Mine(3, ()), rf"Mine: update = 3, expected a function {FORM}"),
    "begins with a shape": (
        Mine(begins=lambda models: {"speed": np.zeros(5)}),
        r"Mine: begin\(\)\['speed'\] = .*, expected an array of floats of shape \(2, 3\)",
    ),
    "begins with whole numbers": (
        Mine(begins=lambda models: {"speed": np.zeros(models.shape, dtype=int)}),
        r"Mine: begin\(\)\['speed'\] = .*, expected an array of floats of shape \(2, 3\)",
    ),
    "begins with a name": (
        Mine(begins=lambda models: {"force": models}),
        r"Mine: begin\(\) = .*, expected a mapping of some of speed to arrays",
    ),
    "begins with an array": (
        Mine(begins=lambda models: models[None]),
        r"Mine: begin\(\) = .*, expected a mapping of some of speed to arrays",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_what_is_wrong_is_told(name, runtime):
    rule, message = WRONG[name]
    with pytest.raises(FreewalkError, match=message):
        fw.learn(PROBLEM, KERNEL, rule, steps=3, runtime=runtime)


def test_a_rule_with_nothing_wrong_runs():
    """So that it is not all of them that are refused."""
    for rule in (Mine(), Mine(plain, ()), Mine(carried=(), stored=("speed",)), Mine(shown="speed", taken="speed")):
        assert np.isfinite(fw.learn(PROBLEM, KERNEL, rule, steps=3, runtime="reference").data.loss).all()


# What the nodes would have to keep, and which of them are reached.


def test_more_memory_than_there_is_is_told_with_its_arithmetic():
    ring = fw.graphs.ring(10**5)
    problem = fw.objectives.LeastSquares.synthetic(ring.n, dim=10, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(ring)
    message = (
        r"SAG: what stays at the nodes \(1,000,000 walks × 100,000 nodes × 1 vector of 10 numbers × 8 bytes\).*"
        r"run fewer walks at a time, or take precision='float32'"
    )
    with pytest.raises(FreewalkError, match=message):
        fw.learn(problem, kernel, SAG(step=0.1), steps=3, walks=10**6)
    with pytest.raises(FreewalkError, match=r"VisitWeighted: what stays .* 0 vectors of .* and a count of 8 bytes\)"):
        fw.learn(problem, kernel, VisitWeighted(step=0.1), steps=3, walks=10**7)


PATH = fw.graphs.path(4)
ON_PATH = fw.objectives.LeastSquares.synthetic(4, dim=2, seed=1)


def absorbing():
    """A walk on the path 0-1-2-3 that never comes back from 2 and 3."""
    rows = [[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]
    return fw.designs.FromMatrix(rows, target=np.ones(4)).kernel(PATH)


@pytest.mark.parametrize("rule", [SAG(step=0.01), Walkman()], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("start", [2, [0, 2]], ids=repr)
def test_a_rule_that_needs_every_node_is_refused_where_some_are_never_reached(rule, start):
    """From node 0 all are reached, from node 2 not."""
    options = {"steps": 20, "walks": np.size(start), "start": start, "runtime": "reference"}
    name = type(rule).__name__
    message = rf"{name}: the walk by .* never gets from node 2 to 2 of 4 nodes \(such as node 0\).*or fw\.SGD"
    with pytest.raises(FreewalkError, match=message):
        fw.learn(ON_PATH, absorbing(), rule, **options)
    plain = SGD(step=0.01, weighted=False)
    assert not fw.learn(ON_PATH, absorbing(), plain, **options).data.diverged.any()
    assert not fw.learn(ON_PATH, absorbing(), rule, **(options | {"start": 0})).data.diverged.any()


def test_a_phase_begins_wherever_those_before_may_have_led():
    wandering, plain = fw.designs.SimpleWalk().kernel(PATH), SGD(step=0.01, weighted=False)
    run = {"steps": 20, "start": 0, "runtime": "reference"}
    for before in (wandering, absorbing()):
        phases = [fw.Phase(5, before, plain), fw.Phase(None, absorbing(), SAG(step=0.01))]
        with pytest.raises(FreewalkError, match=r"SAG: the walk by .* never gets from node 2 to 2 of 4 nodes"):
            fw.learn(ON_PATH, phases, **run)
    healed = [fw.Phase(5, absorbing(), plain), fw.Phase(None, wandering, SAG(step=0.01))]
    assert not fw.learn(ON_PATH, healed, **run).data.diverged.any()


def test_all_nodes_are_reached_on_a_graph_that_is_walked_by_rows():
    """The check follows the rows of a matrix: here they lead everywhere."""
    matrix = 0.5 * np.eye(GRAPH.n) + 0.5 * GRAPH.adjacency().toarray() / GRAPH.degrees[:, None]
    kernel = fw.designs.FromMatrix(matrix).kernel(GRAPH)
    assert not fw.learn(PROBLEM, kernel, SAG(step=0.01), steps=20, walks=2).data.diverged.any()


def test_one_objective_under_one_name():
    with pytest.raises(FreewalkError, match=r"learn: got both `objective` and `problem`, expected one"):
        fw.learn(objective=PROBLEM, problem=PROBLEM, kernel=KERNEL, rule=SGD(step=0.01), steps=3)
    named = fw.learn(problem=PROBLEM, kernel=KERNEL, rule=SGD(step=0.01), steps=3)
    assert named.data.identical(fw.learn(objective=PROBLEM, kernel=KERNEL, rule=SGD(step=0.01), steps=3).data)
    with pytest.raises(FreewalkError, match=r"learn: objective = None, expected an objective such as"):
        fw.learn(kernel=KERNEL, rule=SGD(step=0.01), steps=3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "def update(visit, numbers, x, gradient, z, y):\n    return x, z, y",
            r"here update\(visit, numbers, x, gradient, y, z\)",
        ),
        (
            "def update(visit, numbers, x, y, gradient, z):\n    return x, y, z",
            r"here update\(visit, numbers, x, gradient, y, z\)",
        ),
        ("def update(visit, numbers, x, gradient, *vectors):\n    return x, *vectors", r"\*vectors\) has another form"),
        (
            "def update(visit, numbers, x, gradient, y, z):\n    return [x, y, z]",
            r"expected 3: a tuple of the new x, y, z",
        ),
        ("def update(visit, numbers, x, gradient, y, z):\n    return x, 'y', z", r"expected numbers: the new x, y, z"),
        ("def update(visit, numbers, x, gradient, y, z):\n    pass", r"returns None, expected 3"),
        (
            "def update(visit, numbers, x, gradient, y, z):\n    return x * numbers.nothing, y, z",
            r"numbers are its fields that are numbers: beta\)",
        ),
    ],
)
def test_functions_that_almost_fit_are_refused_before_any_work(function, message):
    space = {}
    exec(function, space)

    @dataclass(frozen=True)
    class Almost(fw.Rule):
        step: float = 0.1
        beta: float = 2.0
        nothing: float | None = None
        stores = ("y", "z")
        update = staticmethod(space["update"])

    problem = fw.objectives.LeastSquares.synthetic(5, dim=2, seed=1)
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(5))
    with pytest.raises(FreewalkError, match=message):
        fw.learn(problem, kernel, Almost(), steps=3, runtime="reference")


@dataclass(frozen=True)
class ClippedByNorm(fw.Rule):
    """What looks like clipping by the norm of the gradient."""

    step: float

    @staticmethod
    def update(visit, numbers, x, gradient):
        return x - visit.rate * gradient / max(1.0, np.linalg.norm(gradient))


def test_a_rule_sees_one_coordinate_at_a_time_and_says_so():
    problem = fw.objectives.LeastSquares([[3.0, 4.0]] * 2, [1.0, 1.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    with pytest.raises(FreewalkError, match="update of ClippedByNorm cannot be compiled"):
        fw.learn(problem, kernel, ClippedByNorm(1.0), steps=1, runtime="cpu")
    record = fw.learn(problem, kernel, ClippedByNorm(1.0), steps=1, runtime="reference")
    assert record.data.final.values.tolist() == [[1.0, 1.0]]  # by the norm: 0.6 and 0.8
    assert "clips by the norm of the gradient cannot be written" in " ".join(fw.Rule.__doc__.split())

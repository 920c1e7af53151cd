"""Numbers that change with the step: their values, that no split changes them, and their errors."""

from dataclasses import dataclass

import numpy as np
import pytest

import freewalk as fw
from freewalk import schedules
from freewalk.errors import FreewalkError
from freewalk.schedules import Constant, Exponential, Inverse, Schedule

EXAMPLES = {
    "Constant": [Constant(0.3)],
    "Inverse": [Inverse(0.1, scale=100), Inverse(2.0, scale=7.5, power=0.7)],
    "Exponential": [Exponential(0.1, half_life=33.0)],
}
ALL = [example for examples in EXAMPLES.values() for example in examples]


def test_every_listed_schedule_has_an_example():
    assert set(EXAMPLES) == set(schedules.__all__)
    assert all(type(example).__name__ == name for name, examples in EXAMPLES.items() for example in examples)


def test_values():
    steps = np.array([0, 100, 300, 10**9])
    assert Constant(0.3)(steps) == pytest.approx([0.3] * 4)
    assert Inverse(0.1, scale=100)(steps) == pytest.approx(0.1 / (1 + steps / 100))
    assert Inverse(0.1, scale=100, power=0.5)(steps) == pytest.approx(0.1 / np.sqrt(1 + steps / 100))
    assert Exponential(0.1, half_life=100)(steps[:3]) == pytest.approx([0.1, 0.05, 0.0125])


@pytest.mark.parametrize("example", ALL, ids=repr)
def test_values_are_the_same_to_the_bit_however_steps_are_split(example):
    steps = np.arange(1000, dtype=np.int64)
    whole = example(steps)
    assert whole.dtype == np.float64
    assert np.array_equal(whole, np.concatenate([example(steps[i : i + 1]) for i in range(1000)]))
    assert np.array_equal(whole, np.concatenate([example(part) for part in np.split(steps, [1, 4, 11, 500, 777])]))


@pytest.mark.parametrize("example", ALL, ids=repr)
def test_values_are_positive_and_do_not_grow(example):
    values = example(np.arange(500))
    assert (values > 0).all()
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda bad: Constant(bad), "Constant: value"),
        (lambda bad: Inverse(bad, 10), "Inverse: initial"),
        (lambda bad: Inverse(0.1, bad), "Inverse: scale"),
        (lambda bad: Inverse(0.1, 10, bad), "Inverse: power"),
        (lambda bad: Exponential(bad, 10), "Exponential: initial"),
        (lambda bad: Exponential(0.1, bad), "Exponential: half_life"),
    ],
)
def test_parameters_must_be_positive(make, name, bad):
    with pytest.raises(FreewalkError, match=rf"{name} = .*, expected a finite number > 0"):
        make(bad)


def test_a_number_is_a_constant_schedule():
    steps = np.array([0, 7, 10**9])
    assert np.array_equal(fw.SGD(0.1).rates(steps), fw.SGD(Constant(0.1)).rates(steps))
    assert np.array_equal(fw.SGD(ALL[1]).rates(steps), ALL[1](steps))


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf, True, "fast", None, [0.1]], ids=repr)
def test_what_is_neither_a_number_nor_a_schedule(bad):
    with pytest.raises(FreewalkError, match=r"SGD: step = .*, expected a finite number > 0; or a schedule such as"):
        fw.SGD(bad)


def test_a_schedule_must_say_its_value():
    with pytest.raises(TypeError, match="abstract"):
        Schedule()


@dataclass(frozen=True)
class Odd(fw.schedules.Schedule):
    """Turns bad at step 3."""

    bad: float

    def __call__(self, steps):
        return np.where(steps == 3, self.bad, 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_an_own_schedule_that_turns_bad_is_named_with_its_step(bad):
    with pytest.raises(fw.FreewalkError, match=rf"SGD: step: Odd\(bad={bad}\) is {bad:g} at step 3, expected"):
        fw.SGD(step=Odd(bad)).rates(np.arange(10))
    design = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 2, power=0), Odd(bad))
    with pytest.raises(fw.FreewalkError, match=rf"fade: Odd\(bad={bad}\) is {bad:g} at step 3"):
        design.kernel(fw.graphs.ring(4)).probabilities(np.arange(10))


def test_a_schedule_may_die_out_and_may_be_a_scalar():
    late = np.array([10**6])
    assert fw.SGD(step=fw.schedules.Exponential(0.1, half_life=1)).rates(late) == 0.0

    @dataclass(frozen=True)
    class Flat(fw.schedules.Schedule):
        def __call__(self, steps):
            return 0.25

    assert (fw.SGD(step=Flat()).rates(np.arange(3)) == 0.25).all()


def test_a_schedule_that_would_turn_bad_is_refused_before_anything_runs():
    @dataclass(frozen=True)
    class Late(fw.schedules.Schedule):
        def __call__(self, steps):
            return np.where(steps < 500, 1.0, np.nan)

    problem, graph = fw.objectives.LeastSquares.synthetic(4, dim=1), fw.graphs.ring(4)
    called = []
    decaying = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 2, power=0), Late()).kernel(graph)
    with pytest.raises(fw.FreewalkError, match=r"fade: .* is nan at step 5\d\d"):
        fw.walk(decaying, steps=1000, progress=lambda *_: called.append(1))
    kernel = fw.designs.SimpleWalk().kernel(graph)
    with pytest.raises(fw.FreewalkError, match=r"SGD: step: .* is nan at step 5\d\d"):
        fw.learn(problem, kernel, fw.SGD(Late()), steps=1000, progress=lambda *_: called.append(1))
    assert not called


def test_rates_of_an_own_rule_are_one_number_a_step():
    class Scalar(fw.SGD):
        def rates(self, steps):
            return 0.1

    problem, kernel = fw.objectives.LeastSquares.synthetic(4, dim=1), fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    with pytest.raises(fw.FreewalkError, match=r"Scalar: rates\(\) has shape \(\), expected \(3,\); give one"):
        fw.learn(problem, kernel, Scalar(0.1), steps=3)

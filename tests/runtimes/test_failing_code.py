"""Code that fails or overflows: no thread waits for another that has given up, and divergence is a status."""

from queue import Empty, SimpleQueue

import numpy as np
import pytest

import freewalk as fw
from freewalk.jobs.phase import Phase
from freewalk.runtimes import CPU, Job
from freewalk.runtimes.cpu import runtime as cpu


def test_a_task_that_fails_does_not_keep_the_others_waiting(monkeypatch):
    """Every task fails, and there are more tasks than threads and rows to count in."""
    starved = []

    class Impatient(SimpleQueue):
        def get(self):
            try:
                return super().get(timeout=5)
            except Empty:
                starved.append("waited for a row that nobody gives back")
                raise

    def fail(*arguments):
        raise ZeroDivisionError("compiled code failed")

    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    engine = CPU(threads=2).engine(Job(None, (Phase(None, kernel),), 0))
    monkeypatch.setattr(cpu, "SimpleQueue", Impatient)
    monkeypatch.setattr(cpu, "walking_code", lambda memory: fail)
    monkeypatch.setattr(CPU, "engine", lambda self, job: engine)
    with pytest.raises(ZeroDivisionError, match="compiled code failed"):
        fw.walk(kernel, steps=3, walks=1000, runtime=CPU(threads=2))
    assert starved == []


class Untypable(fw.Predictor):
    """A slope that Python can run and numba cannot compile."""

    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        return 0.5 * (prediction - target) ** 2

    @staticmethod
    def slope(prediction, target):
        return max([prediction - target], key=abs)

    def optimum(self):
        return np.zeros(self.dim)


def test_a_slope_that_cannot_be_compiled_says_what_to_do():
    problem = Untypable([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    with pytest.raises(fw.FreewalkError, match=r"slope of Untypable or update of SGD cannot be compiled.*'reference'"):
        fw.learn(problem, kernel, fw.SGD(step=0.1), steps=2)
    assert fw.learn(problem, kernel, fw.SGD(step=0.01), steps=2, runtime="reference").data.loss[0, -1] < 6


class Quartic(fw.Predictor):
    """A loss whose arithmetic overflows in plain Python when the model diverges."""

    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        return (prediction - target) ** 4

    @staticmethod
    def slope(prediction, target):
        return 4.0 * (prediction - target) ** 3

    def optimum(self):
        return np.zeros(self.dim)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_divergence_is_a_status_on_every_runtime(runtime):
    problem = Quartic([[1.0], [2.0], [3.0]], [5.0, 5.0, 5.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    record = fw.learn(problem, kernel, fw.SGD(step=10.0), steps=50, walks=2, every=10, runtime=runtime)
    assert record.data.diverged.all()
    assert not np.isfinite(record.data.loss.values[:, -1]).any()
    assert np.isinf(record.data.loss.mean("walk")[-1])


class Forgetful(fw.Rule):
    """Says that it carries a number, and does not return it."""

    carries = ("memory",)

    @property
    def update(self):
        return forgetful

    def rates(self, steps):
        return np.full(steps.shape, 0.1)


def forgetful(visit, numbers, x, gradient, memory):
    return x - visit.rate * gradient


class Unfinished(Quartic):
    """Forgot that a slope is a static method."""

    def slope(self, prediction, target):
        return prediction - target


def test_functions_that_do_not_fit_are_told_in_plain_words():
    data = [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    with pytest.raises(
        fw.FreewalkError, match=r"Forgetful: update returns 1 value, expected 2: a tuple of the new x, m"
    ):
        fw.learn(Quartic(*data), kernel, Forgetful(), steps=2)
    with pytest.raises(fw.FreewalkError, match=r"slope of Unfinished: fails when called .*TypeError.*missing 1"):
        fw.learn(Unfinished(*data), kernel, fw.SGD(0.1), steps=2)


def test_an_objective_need_not_know_its_optimum():
    class Plain(Quartic):
        optimum = fw.Objective.optimum

    class Nothing(Quartic):
        def optimum(self):
            return None

    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    for kind in (Plain, Nothing):
        record = fw.learn(kind([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), kernel, fw.SGD(1e-3), steps=5)
        assert record.data.distance.isnull().all()
        assert "optimal_loss" not in record.data.attrs

"""An objective that measures more than its loss: on every runtime, at every mark, under its own names."""

import math

import numpy as np
import pytest

import freewalk as fw
from freewalk.runtimes import CPU, engine

GRAPH = fw.graphs.watts_strogatz(12, 4, 0.3, seed=1)


class Classifier(fw.Predictor):
    """A logistic loss that also says how many answers are right."""

    measures = ("loss", "accuracy")
    primary = "accuracy"
    curvature = 0.25

    @staticmethod
    def value(prediction, target):
        size = abs(prediction)
        return math.log1p(math.exp(-size)) + max(prediction, 0.0) - target * prediction

    @staticmethod
    def slope(prediction, target):
        return 1.0 / (1.0 + math.exp(-prediction)) - target

    def measure(self, x):
        right = (self.features @ np.asarray(x) > 0) == (self.targets > 0.5)
        return {"loss": self.loss(x), "accuracy": float(self.sample_weights @ right)}

    def optimum(self):
        raise NotImplementedError


def classifier():
    made = fw.objectives.Logistic.synthetic(12, dim=4, samples=[2, 3] * 6, ridge=0.05, seed=3)
    return Classifier(made.features, made.targets, made.nodes, ridge=0.05)


PROBLEM = classifier()
KERNEL = fw.designs.MHLJ(0.3, 0.5, 3).kernel(GRAPH, PROBLEM.smoothness)
RULES = {"SGD": fw.SGD(step=0.3), "SGD, average": fw.SGD(step=0.3, average=True), "SAG": fw.rules.SAG(step=0.05)}
RUN = {"steps": 45, "walks": 17, "seed": 3}


@pytest.mark.quick(*(f"{every}-{rule}" for every in (1, 7, 45) for rule in ("SGD", "SGD, average")))
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("every", [1, 7, 45])
def test_a_measure_of_ones_own_is_the_same_on_every_runtime(rule, every, monkeypatch):
    truth = fw.learn(PROBLEM, KERNEL, RULES[rule], runtime="reference", every=every, **RUN).data
    assert np.unique(truth.accuracy).size > 2
    for slab in (engine._STRETCH, 100, 17):
        monkeypatch.setattr(engine, "_STRETCH", slab)
        for threads in (1, 2):
            data = fw.learn(PROBLEM, KERNEL, RULES[rule], runtime=CPU(threads=threads), every=every, **RUN).data
            assert np.array_equal(data.accuracy, truth.accuracy), (slab, threads)
            np.testing.assert_allclose(data.loss, truth.loss, rtol=1e-9)
            np.testing.assert_allclose(data.final, truth.final, rtol=1e-9, atol=1e-12)


def test_it_is_that_of_the_models_at_the_marks():
    data = fw.learn(PROBLEM, KERNEL, RULES["SGD, average"], every=9, **RUN).data
    finals = [PROBLEM.measure(x)["accuracy"] for x in data.final.values]
    assert np.array_equal(data.accuracy[:, -1], finals)
    assert (data.accuracy[:, 0] == PROBLEM.measure(np.zeros(4))["accuracy"]).all()


def test_a_measure_of_ones_own_over_phases():
    phases = [fw.Phase(20, KERNEL, RULES["SGD, average"]), fw.Phase(None, KERNEL, RULES["SGD"])]
    run = RUN | {"every": 10}
    truth = fw.learn(PROBLEM, phases, runtime="reference", **run).data
    assert np.array_equal(fw.learn(PROBLEM, phases, **run).data.accuracy, truth.accuracy)


def test_the_record_says_which_measure_to_show(tmp_path):
    record = fw.learn(PROBLEM, KERNEL, RULES["SGD"], every=9, **RUN)
    assert record.data.attrs["primary"] == "accuracy"
    assert fw.load(record.save(tmp_path / "record")).data.attrs["primary"] == "accuracy"
    assert "optimal_accuracy" not in record.data.attrs  # it does not know its optimum
    squares = fw.objectives.LeastSquares.synthetic(12, dim=2, seed=1)
    attrs = fw.learn(squares, KERNEL, fw.SGD(step=0.01), steps=3).data.attrs
    assert attrs["primary"] == "mse"
    assert attrs["optimal_mse"] == pytest.approx(squares.mse(squares.optimum()))
    logistic = fw.objectives.Logistic.synthetic(12, dim=4, ridge=0.1, seed=1)
    assert fw.learn(logistic, KERNEL, fw.SGD(step=0.01), steps=3).data.attrs["primary"] == "loss"


WRONG = {
    "a name that is taken": (
        ("loss", "messages"),
        "loss",
        r"measures = \('loss', 'messages'\), expected other .*messages",
    ),
    "the distance": (("loss", "distance"), "loss", r"measures = .*, expected other names than distance"),
    "bytes": (("loss", "bytes", "path"), "loss", r"measures = .*, expected other names than bytes, path"),
    "no loss": (("accuracy",), "accuracy", r"measures = \('accuracy',\), expected names such as .*'loss' among them"),
    "no tuple": ("loss", "loss", r"measures = 'loss', expected a tuple of names"),
    "no name": (("loss", "how right"), "loss", r"measures = .*, expected names such as"),
    "another primary": (("loss",), "accuracy", r"primary = 'accuracy', expected 'loss'"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_names_that_cannot_be_are_refused(name, runtime):
    measures, primary, message = WRONG[name]
    kind = type("Wrong", (Classifier,), {"measures": measures, "primary": primary})
    problem = kind(PROBLEM.features, PROBLEM.targets, PROBLEM.nodes)
    with pytest.raises(fw.FreewalkError, match=f"Wrong: {message}"):
        fw.learn(problem, KERNEL, fw.SGD(step=0.1), steps=3, runtime=runtime)


@pytest.mark.parametrize("taken", ["kept", "time", "smoothness", "coordinate", "node_name", "design"])
def test_other_names_of_a_record_are_taken_too(taken):
    kind = type("Wrong", (Classifier,), {"measures": ("loss", taken), "primary": "loss"})
    problem = kind(PROBLEM.features, PROBLEM.targets, PROBLEM.nodes)
    with pytest.raises(fw.FreewalkError, match=f"Wrong: measures = .*, expected other names than {taken}"):
        fw.learn(problem, KERNEL, fw.SGD(step=0.1), steps=3, runtime="reference")


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_a_measure_that_is_named_and_not_given_is_told(runtime):
    kind = type("Silent", (Classifier,), {"measures": ("loss", "accuracy", "margin")})
    problem = kind(PROBLEM.features, PROBLEM.targets, PROBLEM.nodes, ridge=0.05)
    with pytest.raises(fw.FreewalkError, match=r"Silent: measure\(\) gives loss, accuracy, expected margin as well"):
        fw.learn(problem, KERNEL, fw.SGD(step=0.1), steps=3, runtime=runtime)


class Validated(fw.Predictor):
    """Its loss is measured on other data, and higher is better for its score."""

    curvature = 1.0
    measures = ("loss", "score")
    primary = "score"
    rising = ("score",)
    value = staticmethod(fw.objectives.LeastSquares.value)
    slope = staticmethod(fw.objectives.LeastSquares.slope)

    def measure(self, x):
        return {"loss": float(np.sum(np.square(x))), "score": -float(np.sum(np.abs(x)))}


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_a_class_that_measures_for_itself_is_asked_everywhere(runtime):
    problem = Validated([[1.0], [2.0], [3.0]], [1.0, 1.0, 1.0])
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(3))
    data = fw.learn(problem, kernel, fw.SGD(step=0.05), steps=20, every=5, walks=2, runtime=runtime).data
    assert data.loss.values[:, -1] == pytest.approx(data.final.values[:, 0] ** 2)
    assert data.score.values[:, -1] == pytest.approx(-abs(data.final.values[:, 0]))
    assert data.attrs["primary"] == "score"
    assert data.score.attrs["better"] == "higher"
    assert "better" not in data.loss.attrs

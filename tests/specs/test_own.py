"""Classes of the user's own in a spec: imported by a run of it, announced, and by nothing else."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import RecordError, SpecError
from freewalk.specs import RunFolder, load
from freewalk.specs.folder import record_of

MINE = '''
import math
from dataclasses import dataclass
import numpy as np
import freewalk as fw
import beside_mine

WORD = beside_mine.WORD


@dataclass(frozen=True)
class Lazy(fw.Design):
    """Stay with probability `stay`, otherwise take a simple step."""

    stay: float = 0.5

    def moves(self, graph, importance):
        if self.stay > 1:
            raise ZeroDivisionError("stay")
        return [fw.Move(self.stay, hops=0), fw.Move(1 - self.stay, hops=1)]

    def target(self, graph, importance):
        return graph.degrees


class LogCosh(fw.Predictor):
    """log cosh(aᵀx − y)."""

    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        size = abs(prediction - target)
        return size + math.log1p(math.exp(-2.0 * size)) - math.log(2.0)

    @staticmethod
    def slope(prediction, target):
        return math.tanh(prediction - target)


@dataclass(frozen=True)
class Halving(fw.schedules.Schedule):
    """initial, then half of it."""

    initial: "float"
    after: int = 10

    def __call__(self, steps):
        return np.where(np.asarray(steps) < self.after, self.initial, self.initial / 2)


@dataclass(frozen=True)
class Plain(fw.Rule):
    """x ← x − γ ∇f."""

    step: float
    halving: Halving | None = None

    @property
    def update(self):
        def plain(visit, numbers, x, gradient):
            return x - visit.rate * gradient

        return plain

    def rates(self, steps):
        return np.full(len(steps), self.step)


class Picky(Lazy):
    def __init__(self, numbers: list[int], *rest, name="", **more):
        assert False, "too\\npicky"
'''
SPEC = """
[graph]
kind = "ring"
n = 3
[problem]
kind = "{module}:LogCosh"
data = "samples.csv"
[run]
steps = 400
walks = 2
every = 100
runtime = "reference"
[[walk]]
label = "first"
design = {{ kind = "{module}:Lazy", stay = 0.25 }}
rule = {{ kind = "{module}:Plain", step = 1e-2, halving = {{ kind = "{module}:Halving", initial = 1 }} }}
[[walk]]
label = "second"
design = {{ kind = "SimpleWalk" }}
rule = {{ kind = "SGD", step = {{ kind = "{module}:Halving", initial = 1e-2, after = 2e2 }} }}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of one's own, under a name that no other test has imported."""
    name = f"mine_{os.getpid()}_{tmp_path.name}".replace("-", "_").replace("[", "").replace("]", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.py").write_text(MINE)
    (tmp_path / "beside_mine.py").write_text("WORD = 'beside'\n")
    (tmp_path / "samples.csv").write_text("node,a,b,target\n0,1,0,1\n1,0,2,2.2\n2,1,1,1.4\n2,0,1,1\n")
    (tmp_path / "my.toml").write_text(SPEC.format(module=name))
    path = list(sys.path)
    yield name
    sys.path[:] = path
    for one in (name, "beside_mine"):
        sys.modules.pop(one, None)


def test_a_run_imports_announces_and_uses_them(module: str) -> None:
    spec = load("my.toml")
    assert spec.code == [f"{module}:LogCosh", f"{module}:Lazy", f"{module}:Plain", f"{module}:Halving"]
    assert module not in sys.modules  # to load and check a spec executes nothing
    told: list[str] = []
    plan = spec.plan(told.append)
    assert told == [f"importing {module} ({module}.py), named in my.toml"]
    mine = sys.modules[module]
    assert plan.problem.n == 3
    assert type(plan.problem) is mine.LogCosh
    first, second = plan.walks["first"][0], plan.walks["second"][0]
    assert first.rule == mine.Plain(1e-2, mine.Halving(1.0))
    assert second.rule == fw.SGD(mine.Halving(1e-2, 200))
    assert first.kernel.moves[0].probability == 0.25
    record = spec.run(plan=plan)
    alone = fw.learn(plan.problem, first.kernel, first.rule, steps=400, walks=2, every=100, runtime="reference")
    np.testing.assert_array_equal(record.data.loss.sel(design="first"), alone.data.loss)
    assert os.path.realpath(".") not in sys.path[:1]


def interrupt(label: str, done: int, total: int, walks: int) -> None:
    if done >= 100:
        signal.raise_signal(signal.SIGINT)


def test_to_resume_takes_consent_and_nothing_else_imports(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RunFolder.create(Path("whole"), load("my.toml")).run()
    assert RunFolder.create(Path("run"), load("my.toml")).run(interrupt).partial
    for name in (module, "beside_mine"):
        del sys.modules[name]
    with pytest.raises(RecordError, match=rf"names code \({module}:LogCosh, .*freewalk resume run --allow-code"):
        RunFolder.open(Path("run"))
    fw.report.curves(record_of(Path("run")), "a.png")
    fw.report.section_of(record_of(Path("run")))
    assert module not in sys.modules
    told: list[str] = []
    rest = RunFolder.open(Path("run"), allow_code=True, tell=told.append).run()
    assert told == [f"importing {module} ({Path(module).absolute()}.py), named in run/spec.toml"]
    np.testing.assert_array_equal(rest.data.loss, whole.data.loss)
    with pytest.raises(RecordError, match="complete, there is nothing to resume"):
        RunFolder.open(Path("run")).run()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((":Lazy", ":Lasy"), r"1 'first': design: {module} has no class 'Lasy'; did you mean 'Lazy'\?"),
        ((":Lazy", ":WORD"), r"{module} has no class 'WORD'"),
        ((":Lazy", ":Plain"), r"{module}:Plain is not a design, expected a subclass of fw\.Design"),
        (
            ("mine", "nobodys"),
            r"there is no module 'nobodys_.*expected nobodys_.*\.py or a module that Python can import",
        ),
        ((":Lazy", ":"), r"design: kind = .*, expected a class as \"module:Name\""),
        ((":Lazy", ".Lazy:"), r"design: kind = .*, expected a class as \"module:Name\""),
        (("stay = 0.25", "stay = 'x'"), r"{module}:Lazy: stay = 'x', expected a number"),
        (("stay = 0.25", "stey = 1"), r"{module}:Lazy has no parameter 'stey'; did you mean 'stay'\?"),
        (
            ("stay = 0.25", "stay = 2"),
            r"1 'first': Lazy fails on this graph \(ZeroDivisionError: stay, .*\.py, line 19\)",
        ),
        (("initial = 1 ", "initial = true "), r"rule: {module}:Plain: halving: {module}:Halving: initial = true"),
        (
            (':Lazy", stay = 0.25', ':Picky", numbers = [1]'),
            r"Picky cannot use these values \(AssertionError: too picky, ",
        ),
        ((':Lazy", stay = 0.25', ":Picky\", numbers = ['a']"), r"numbers = \['a'\], expected a list of whole numbers"),
        (('"ring"', '"{module}:ring"'), r"\[graph\]: kind = .*a graph cannot be a class of your own"),
    ],
    ids=range(13),
)
def test_mistakes_are_one_line_each(module: str, change: tuple[str, str], message: str) -> None:
    text = SPEC.replace("{{", "{").replace("}}", "}")
    assert change[0] in text.replace("{module}", module)
    changed = text.replace("{module}", module).replace(change[0], change[1].replace("{module}", module), 1)
    Path("my.toml").write_text(changed)
    with pytest.raises(SpecError, match=message.replace("{module}", module)) as caught:
        load("my.toml").plan()
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("my.toml: ")


@pytest.mark.parametrize("code", ["import nobodys_module", "1 / 0", "raise SystemExit(0)", "def f(:"])
def test_a_module_that_fails_says_where(module: str, code: str) -> None:
    Path(f"{module}.py").write_text(f"# line 1\n{code}\n")
    with pytest.raises(SpecError, match=rf"{module} cannot be imported \(.*line 2") as caught:
        load("my.toml").plan()
    assert "\n" not in str(caught.value)


def test_a_module_of_the_same_name_elsewhere_is_not_taken_for_it(module: str) -> None:
    load("my.toml").plan()
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    for file in ("my.toml", "samples.csv", f"{module}.py"):
        (elsewhere / file).write_text(Path(file).read_text())
    with pytest.raises(SpecError, match=r"is not imported, since another module is named .*rename it"):
        load("elsewhere/my.toml").plan()

"""What is to be pasted makes what it was made from."""

import tomllib
from dataclasses import dataclass

import numpy as np
import pytest

import freewalk as fw
from freewalk.analysis.diagnosis.code import in_python, in_toml
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.schedules import Constant, Inverse
from freewalk.specs.catalogue import build

DESIGNS = [
    SimpleWalk(),
    Metropolis(),
    Metropolis(power=np.float64(0.5)),
    MHLJ(0.1, 0.5, 3),
    MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
    MHLJ(1e-7, np.float32(0.5), np.int64(4)),
    ClosedFormMHLJ(0.1, 0.5, 3, power=2),
    Centralized(power=1.0),
    Decaying(MHLJ(0.5, 0.5, 3), Inverse(1.0, scale=100)),
]
RULES = [fw.SGD(3e-3), fw.SGD(1e-12, average=True, local_steps=3), fw.SGD(Constant(0.1), weighted=False)]


@dataclass(frozen=True)
class Mine(SimpleWalk):
    """A design of a user's."""

    amount: float
    name: str = 'a "name"'


@pytest.mark.parametrize("thing", [*DESIGNS, *RULES], ids=repr)
def test_python_makes_the_same_again(thing):
    again = eval(in_python(thing), {"fw": fw})
    assert type(again) is type(thing)
    assert vars(again) == vars(thing)


@pytest.mark.parametrize("thing", [*DESIGNS, *RULES], ids=repr)
def test_a_spec_makes_the_same_again(thing):
    family = "rule" if isinstance(thing, fw.SGD) else "design"
    again = build(family, tomllib.loads(f"x = {in_toml(thing)}")["x"], "here")
    assert type(again) is type(thing)
    assert vars(again) == vars(thing)


def test_what_is_not_the_default_is_said_and_no_more():
    assert in_python(MHLJ(0.5, 0.5, 3)) == "fw.designs.MHLJ(jump=0.5, stop=0.5, hops=3)"
    assert in_toml(MHLJ(0.5, 0.5, 3)) == '{ kind = "MHLJ", jump = 0.5, stop = 0.5, hops = 3 }'
    assert in_python(Metropolis()) == "fw.designs.Metropolis(power=0.0)"  # better than nothing at all
    assert in_toml(SimpleWalk()) == '{ kind = "SimpleWalk" }'


def test_designs_of_a_users_own_are_called_by_their_module():
    mine = Mine(0.5)
    assert eval(in_python(mine), {"Mine": Mine}) == mine
    assert in_toml(mine) == f'{{ kind = "{Mine.__module__}:Mine", amount = 0.5 }}'
    for name in ('ä\n"', "\N{PEDESTRIAN}", "\x7f", "a\\b"):
        odd = Mine(float("inf"), name)
        assert tomllib.loads(f"x = {in_toml(odd)}")["x"] == {"kind": f"{Mine.__module__}:Mine", **vars(odd)}

    @dataclass(frozen=True)
    class Hidden(Mine):
        """Not to be found by name."""

    assert in_toml(Hidden(0.5)) is None
    assert in_toml(Decaying(Hidden(0.5), Inverse(1.0, scale=100))) is None


@pytest.mark.parametrize(
    "design", [Metropolis(target=np.ones(3)), FromMatrix(np.eye(3)), Metropolis(proposal=np.eye(3))]
)
def test_arrays_cannot_be_written(design):
    assert in_toml(design) is None
    assert in_python(design) == f"fw.designs.{design!r}"

"""A diagnosis in words: its table, its winners, the names of nodes, and code to paste."""

import tomllib
from dataclasses import dataclass, replace

import networkx
import numpy as np
import pytest
from walks import problem_with

import freewalk as fw
from freewalk.analysis.diagnosis.diagnose import IMPORTANCE, UNIFORM, diagnose
from freewalk.analysis.diagnosis.findings import Diagnosis
from freewalk.analysis.diagnosis.words import counted, in_python, in_toml, number
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.graphs import Graph
from freewalk.schedules import Constant, Inverse
from freewalk.specs.catalogue import build

JUMPING = "MHLJ, jump 0.1"
FAMILIES = tuple(f"family {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX")


def named(graph: Graph) -> Graph:
    return Graph(graph.indptr, graph.indices, graph.name, FAMILIES[: graph.n])


@pytest.fixture(scope="module")
def ring() -> Diagnosis:
    return diagnose(fw.graphs.ring(24), problem_with(2 * [60.0] + 22 * [1.0], seed=4), start=0)


def table(found: Diagnosis, width: int = 100) -> list[str]:
    return found.text(width).split("\n\n")[1].splitlines()


def caption(found: Diagnosis) -> str:
    return " ".join(found.text().split("\n\n")[2].split())


def row(found: Diagnosis, label: str) -> list[str]:
    (line,) = (line for line in table(found) if line[2:].startswith(label))
    return line[2:].removeprefix(label).split()


def changed(found: Diagnosis, label: str, **race: float) -> Diagnosis:
    one = found.forecasts[label]
    assert one.race is not None
    return replace(found, forecasts={**found.forecasts, label: replace(one, race=replace(one.race, **race))})


def without_races(found: Diagnosis) -> Diagnosis:
    return replace(found, forecasts={label: replace(one, race=None) for label, one in found.forecasts.items()})


# The table.


def test_one_row_a_design_with_its_numbers(ring: Diagnosis) -> None:
    arrived = {label: one for label, one in ring.forecasts.items() if np.isfinite(one.race.updates)}
    assert len(arrived) > 3
    for label, one in arrived.items():
        excess, distance, messages, step, updates, sent, ratio, times = row(ring, label)
        assert float(excess.replace(",", "")) == pytest.approx(one.excess, rel=0.01)
        assert float(distance) == pytest.approx(one.distance, rel=0.06, abs=1e-9)
        assert float(messages) == pytest.approx(one.messages_per_update, abs=0.006)
        assert float(step) == pytest.approx(one.race.step, rel=0.06)
        assert float(updates.replace(",", "")) == pytest.approx(one.race.updates, rel=0.01)
        assert float(sent.replace(",", "")) == pytest.approx(one.race.messages, rel=0.01)
        quotient = one.race.updates / ring.forecasts[UNIFORM].race.updates
        assert float(ratio) == pytest.approx(quotient, rel=0.01, abs=0.005)
        assert times == "×"
    assert "the walk spends at nodes 0, 1 once it is there" in caption(ring)


def test_the_best_design_is_marked(ring: Diagnosis) -> None:
    (marked,) = (line for line in table(ring) if line.startswith(">"))
    assert marked.startswith(f"> {ring.best_label} ")


def test_it_fits_on_eighty_columns(ring: Diagnosis) -> None:
    large = changed(ring, IMPORTANCE, updates=1_234_567.0, messages=1_234_567.0)
    one = replace(ring.forecasts[UNIFORM], label="a design with a long [bold] name")
    large = replace(large, forecasts={**large.forecasts, one.label: one})
    for width in (80, 100):
        lines = table(large, width)
        assert max(map(len, lines)) <= width
        assert "1,234,567" in "".join(lines)
        assert "[bold]" in "".join(lines)
        prose = large.text(width).split("\n\n")[0].splitlines()
        assert 0.8 * width < max(map(len, prose)) <= width


def test_what_was_not_reached_says_why(ring: Diagnosis) -> None:
    given_up = changed(ring, IMPORTANCE, updates=np.inf, messages=np.inf)
    assert row(given_up, IMPORTANCE)[-6:] == ["given", "up", "—", ">", "20", "×"]
    slow = changed(given_up, UNIFORM, updates=200_000.0)  # the analysis ends after a million updates
    assert row(replace(slow, goal=replace(slow.goal, most=1_000_000)), IMPORTANCE)[-3:] == [">", "5", "×"]
    excess = ring.forecasts[JUMPING].race.excess
    biased = changed(ring, JUMPING, updates=np.inf, messages=np.inf, bias=0.9 * excess)
    assert row(biased, JUMPING)[-3:] == ["biased", "—", "—"]
    assert "'biased': the design settles above the goal" in " ".join(str(biased).split())
    assert "'given up': not at the goal after" in " ".join(str(given_up).split())
    assert "'given up'" not in str(ring)
    # A design with its law on target is never called biased.
    slow = changed(ring, IMPORTANCE, updates=np.inf, messages=np.inf, bias=0.9 * ring.forecasts[IMPORTANCE].race.excess)
    assert "given" in row(slow, IMPORTANCE)
    # Nothing to compare with: no ratio.
    assert row(changed(ring, UNIFORM, updates=np.inf, messages=np.inf), IMPORTANCE)[-1] == "—"


def test_what_was_not_computed_is_a_dash(ring: Diagnosis) -> None:
    one = ring.forecasts[IMPORTANCE]
    found = replace(ring, forecasts={**ring.forecasts, IMPORTANCE: replace(one, race=None)})
    assert row(found, IMPORTANCE)[-4:] == ["—"] * 4


def test_columns_that_would_hold_dashes_alone_are_left_out(ring: Diagnosis) -> None:
    found = without_races(ring)
    assert len(row(found, UNIFORM)) == 3
    assert not [word for word in ("1.25 ×", "step", "optimum", "until") if word in caption(found)]
    unknown = {label: replace(one, excess=np.nan) for label, one in found.forecasts.items()}
    free = replace(found, traps=(), held=None, forecasts=unknown)
    assert row(free, UNIFORM)[0] == "—"
    assert "Excess visits:" not in caption(free)


def test_numbers() -> None:
    assert [number(value) for value in (0.5, 99.94, 123_456.7, np.inf, np.nan)] == ["0.5", "99.9", "123,457", "—", "—"]


# What to use.


def test_what_is_printed_ends_with_what_to_paste(ring: Diagnosis) -> None:
    best = changed(ring, JUMPING, updates=1.0, messages=1.0, step=0.0123456)
    assert best.best == MHLJ(0.1, 0.5, 3)
    assert best.rule == fw.SGD(0.0123)
    assert str(best).splitlines()[-4:] == [
        "use:       fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)",
        "           fw.SGD(step=0.0123)",
        'in a spec: design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }',
        '           rule = { kind = "SGD", step = 0.0123 }',
    ]
    assert repr(best) == str(best)
    told = best.as_dict()
    assert (told["best"], told["cheapest"]) == (JUMPING, JUMPING)
    assert told["use"] == ["fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)", "fw.SGD(step=0.0123)"]
    assert told["in_spec"][0] == 'design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }'


def test_whoever_sends_least_is_named_beside_whoever_learns_fastest(ring: Diagnosis) -> None:
    found = changed(changed(ring, JUMPING, updates=10.0, messages=2000.0), IMPORTANCE, updates=900.0, messages=7.0)
    assert (found.best_label, found.cheapest_label) == (JUMPING, IMPORTANCE)
    assert (found.best, found.cheapest) == (MHLJ(0.1, 0.5, 3), found.forecasts[IMPORTANCE].design)
    words = " ".join(str(found).split())
    assert "MHLJ, jump 0.1 is the fastest of the designs below: 10 updates and 2,000 messages" in words
    assert "Where messages are scarce, MH importance needs the fewest: 7 messages and 900 updates." in words
    assert str(found).splitlines()[-1].startswith("for the fewest messages: fw.designs.Metropolis(power=1.0), fw.SGD(")
    alone = changed(found, JUMPING, messages=1.0)
    assert "fewest" not in str(alone)


def test_without_races_nothing_is_advised(ring: Diagnosis) -> None:
    found = without_races(ring)
    assert (found.best, found.best_label, found.cheapest, found.rule) == (None, None, None, None)
    assert "use:" not in str(found)
    assert found.as_dict()["use"] == []


def test_what_has_no_text_is_not_put_into_a_spec(ring: Diagnosis) -> None:
    one = replace(ring.forecasts[UNIFORM], design=Metropolis(target=np.ones(24)))
    found = changed(replace(ring, forecasts={**ring.forecasts, UNIFORM: one}), UNIFORM, updates=1.0, messages=1.0)
    assert "use:       fw.designs.Metropolis(target=…)" in str(found)
    assert "in a spec" not in str(found)
    endless = changed(ring, JUMPING, updates=1.0, messages=1.0, step=1e-320)
    assert endless.rule is not None
    assert changed(endless, JUMPING, step=0.0).rule is None
    assert str(changed(endless, JUMPING, step=0.0)).count("in a spec:") == 1


def test_the_step_that_is_advised_does_what_was_forecast() -> None:
    graph = fw.graphs.ring(24)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    found = diagnose(graph, problem, start="heaviest", designs={})
    assert found.best is not None
    wanted = found.forecasts[found.best_label].race
    kernel = found.best.kernel(graph, problem.smoothness)
    curve = fw.analysis.exact_curve(problem, kernel, found.rule, steps=int(1.1 * wanted.updates) + 2, start="heaviest")
    goal = found.goal.optimum + found.goal.reach
    assert np.flatnonzero(curve.loss.values <= goal)[0] == pytest.approx(wanted.updates, rel=0.05)


# Names.


def test_nodes_are_called_by_their_names() -> None:
    graph = named(fw.graphs.ring(24))
    found = diagnose(graph, 2 * [300.0] + 22 * [1.0], start="family C", designs={})
    assert found.start == "node family C"
    assert found.traps[0].names == ("family A", "family B")
    words = " ".join(str(found).split())
    assert "is entrapped at nodes family A, family B; how" in words
    assert "once at nodes family A, family B, the importance walk spends" in words
    assert "the walk spends at nodes family A, family B once it is there" in words
    assert str(found.traps[0]).startswith("nodes family A, family B: once there")
    assert found.as_dict()["traps"][0]["names"] == ["family A", "family B"]
    assert found.as_dict()["traps"][0]["nodes"] == [0, 1]
    heaviest = diagnose(graph, [1.0, *[3.0], *22 * [1.0]], start="heaviest", designs={})
    assert heaviest.start == "node family B, the heaviest"
    several = diagnose(graph, np.ones(24), start=["family C", "family D"], designs={})
    assert several.start == "one of nodes family C, family D"
    given = diagnose(graph, np.ones(24), start=np.full(24, 1 / 24), designs={})
    assert given.start == "a given distribution over the nodes"
    with pytest.raises(fw.FreewalkError, match=r"there is no node 'family c', .*did you mean 'family C'"):
        diagnose(graph, np.ones(24), start="family c")


def test_without_names_nodes_are_called_by_their_numbers() -> None:
    kernel = Metropolis(power=1).kernel(fw.graphs.ring(24), 2 * [300.0] + 22 * [1.0])
    (trap,) = fw.analysis.find_traps(kernel)
    assert trap.names == ()
    assert trap.where == "nodes 0, 1"


def test_why_a_set_that_holds_the_walk_is_no_trap() -> None:
    families = networkx.florentine_families_graph()
    importance = [{"Medici": 5.0, "Pazzi": 200.0}.get(name, 1.0) for name in families]
    found = diagnose(fw.graphs.from_networkx(families), importance, designs={})
    assert found.entrapped is False
    assert found.held.names == ("Pazzi",)
    assert found.held.lost > 15
    assert "times as many as the uniform walk needs; in a trap it is ten times or more" in " ".join(str(found).split())


def test_counts_in_words():
    assert [number(value) for value in (1341.4, 17.88, 2.0, float("inf"))] == ["1,341", "17.9", "2", "—"]
    counts = [counted(amount, "update") for amount in (1234.5, 0.3, 1.0)]
    assert counts == ["1,234 updates", "less than one update", "1 update"]


# Code to paste makes what it was made from.

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

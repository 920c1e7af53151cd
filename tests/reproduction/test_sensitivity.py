"""The joint fit and the random worlds: what is stored is what is computed, and what is said follows from it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from reproduction import search, sensitivity, worlds
from reproduction.sensitivity import NAMES, STORED, Sensitivity, explore
from reproduction.worlds import (
    CLOSED_FORM,
    D_HOPS,
    FIGURES,
    JUMPS,
    ONE_MORE,
    VALUES,
    Score,
    World,
    draw,
    point,
    score,
)
from test_search import APART, SPACE, TOY

import freewalk as fw
from freewalk.errors import SpecError
from freewalk.paper.files import fit_path
from freewalk.paper.fit import SPACES, Fit, Fitted
from freewalk.sweeps import crews

RINGS = {"3", "6"}
WORLD = World(seed=3, jump=0.3, stop=0.7, hops=5, noise=1.0, heavy=2, reading=D_HOPS)


@pytest.fixture(scope="module")
def shipped() -> Sensitivity:
    return Sensitivity.load(STORED)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A small figure 5b, alone, in this process."""
    assert APART in TOY
    (tmp_path / "5b.toml").write_text(TOY)
    monkeypatch.setattr(search, "spec_path", lambda figure, variant: tmp_path / f"{figure}.toml")
    monkeypatch.setattr(search, "SPACES", {"5b": SPACE})
    monkeypatch.setattr(search, "WALKS", 4)
    monkeypatch.setattr(crews, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    for module in (sensitivity, worlds):
        monkeypatch.setattr(module, "FIGURES", ("5b",))
    search.spec_of.cache_clear()
    search.graph_of.cache_clear()
    yield tmp_path
    search.spec_of.cache_clear()
    search.graph_of.cache_clear()


def test_every_figure_jump_and_draw_is_stored(shipped: Sensitivity) -> None:
    assert tuple(shipped.joint) == tuple(shipped.worlds) == FIGURES
    assert set(FIGURES) == {figure for figure, space in SPACES.items() if space.jump}
    for row in shipped.joint.values():
        assert tuple(row) == JUMPS
        assert {len(scores) for scores in row.values()} == {50}
    assert (shipped.scores() >= shipped.scores("jumping")).all()  # the worst of three is not better than one of them
    assert (shipped.scores("jumping") > 0).all()
    assert shipped.scores().max() < worlds.DIVERGED


@pytest.mark.parametrize("figure", FIGURES)
def test_every_value_has_its_worlds(figure: str, shipped: Sensitivity) -> None:
    made = [world for world, _ in shipped.worlds[figure]]
    assert made == draw(figure, len(made), 50)
    assert len(made) >= 300
    for factor, values in {"seed": tuple(range(1, 51)), **VALUES}.items():
        wanted = values[:2] if factor == "reading" and figure in RINGS else values
        counts = Counter(getattr(world, factor) for world in made)
        assert set(counts) == set(wanted)
        assert max(counts.values()) - min(counts.values()) <= 1
    # Several at a time: hardly any two worlds agree in all but one value.
    assert len({(world.jump, world.stop, world.hops, world.noise, world.heavy) for world in made}) > 0.8 * len(made)
    assert all(0 < found.jumping <= found.worst for _, found in shipped.worlds[figure])
    # One draw of the data has so heavy a node that in figure 3 every step of the uniform walk diverges.
    diverged = {world.seed for world, found in shipped.worlds[figure] if found.worst == worlds.DIVERGED}
    assert diverged == ({34} if figure == "3" else set())


@pytest.mark.long  # the next test has stored scores, too
@pytest.mark.parametrize(("figure", "jump", "seed"), [("5b", 0.7, 22), ("3", 0.1, 39)])
def test_a_stored_score_of_the_joint_fit_comes_out_again(
    figure: str, jump: float, seed: int, shipped: Sensitivity
) -> None:
    assert point(figure, jump, seed) == pytest.approx(shipped.joint[figure][jump][seed - 1], rel=1e-6)
    # The test has power: the next draw of the data has another score.
    assert point(figure, jump, seed) != pytest.approx(shipped.joint[figure][jump][seed], rel=1e-3)


def test_stored_scores_of_worlds_come_out_again(shipped: Sensitivity) -> None:
    for reading in VALUES["reading"]:
        world, found = next(pair for pair in shipped.worlds["5a"] if pair[0].reading == reading)
        assert score("5a", world) == pytest.approx(found, rel=1e-6)


def test_the_joint_fit_has_what_the_searches_found(shipped: Sensitivity) -> None:
    for figure in FIGURES:
        # The same simulation as that of the search, over the same draws and steps, with two jump probabilities more.
        readings = Fit.load(fit_path(figure)).readings
        searched = [JUMPS.index(jump) for jump in SPACES[figure].jump]
        worst = shipped.scores()[FIGURES.index(figure)]
        best = worst[searched].min(axis=0)
        assert (best.min(), np.median(best)) == pytest.approx(readings[search.AS_FITTED], abs=6e-5)
        assert (worst[0].min(), np.median(worst[0])) == pytest.approx(readings[search.AS_STATED], abs=6e-5)


def test_the_joint_best_is_the_least_of_the_table(shipped: Sensitivity) -> None:
    best, middle, alone, *_ = shipped.tables()
    for table, kind, over in ((best, "worst", np.min), (middle, "worst", np.median), (alone, "jumping", np.median)):
        *rows, each = table.rows
        shown = np.array([[float(cell) for cell in row[1:]] for row in rows])
        assert [float(row[0]) for row in rows] == list(JUMPS)
        for i, figure in enumerate(FIGURES):
            for j, jump in enumerate(JUMPS):
                scores = [getattr(one, kind) for one in shipped.joint[figure][jump]]
                assert shown[j, i] == pytest.approx(over(scores), abs=6e-4)
            value, jump = each[1 + i].split(" at ")
            assert float(value) == shown[:, i].min()
            assert shown[JUMPS.index(float(jump)), i] == float(value)
        np.testing.assert_allclose(shown[:, -2], shown[:, :4].max(axis=1))
        np.testing.assert_allclose(shown[:, -1], shown[:, :4].mean(axis=1), atol=1.1e-3)
        if kind == "worst":
            for column, over_figures in ((-2, np.max), (-1, np.mean)):
                winner = JUMPS.index(shipped.joint_best(over, over_figures))
                assert shown[winner, column] == shown[:, column].min()


def test_resampling_finds_a_clear_winner_and_no_other() -> None:
    scores = {jump: [Score(abs(jump - 0.5) + seed / 1000, 0.01) for seed in range(9)] for jump in (0.1, 0.5, 0.9)}
    np.testing.assert_array_equal(Sensitivity({"3": scores, "6": scores}, {}).resampled(), [0, 1, 0])
    same = {jump: [Score(float(x), 0.01) for x in np.roll(range(1, 10), i)] for i, jump in enumerate((0.1, 0.5, 0.9))}
    wins = Sensitivity({"3": same, "6": same}, {}).resampled()
    assert wins.sum() == pytest.approx(1)
    assert wins.min() > 0.1


def test_the_stated_jump_probability_is_never_the_joint_best(shipped: Sensitivity) -> None:
    assert JUMPS[0] == 0.1
    assert shipped.resampled()[:2].sum() == 0


def test_tables_name_every_value_and_factor(shipped: Sensitivity) -> None:
    *_, near, shares, values, alone = shipped.tables()
    assert [row[0] for row in near.rows] == [f"{jump:g}" for jump in JUMPS]
    assert Counter(row[1] for row in shares.rows) == dict.fromkeys(NAMES.values(), 2)
    for table in (values, alone):
        assert [row[0] for row in table.rows] == [NAMES[factor] for factor, tried in VALUES.items() for _ in tried]
        # The closed form is not drawn on rings, where it is nothing new.
        assert [bool(cell) for cell in table.rows[-1][2:]] == [figure not in RINGS for figure in FIGURES]
    row = next(row for row in values.rows if row[0] == NAMES["heavy"] and row[1] == "5")
    found = shipped.having("6", "heavy", 5)
    assert row[-1] == f"{found.min():.3f}, {np.quantile(found, 0.1):.2f} ({len(found)})"


def made_by_hand(effect: float) -> Sensitivity:
    """Scores that depend on the noise, a little on the jump probability, and otherwise on chance."""
    generator = np.random.default_rng(1)
    row = []
    for world in draw("3", 300, 50):
        logs = 2 * world.noise + effect * world.jump + generator.normal(0, 0.3)
        row.append((world, Score(float(np.exp(logs - 9)), 1.0)))
    return Sensitivity({}, {"3": row})


def test_shares_find_what_was_planted_and_nothing_else() -> None:
    # The variance of the jump probability is .08, and 2.12² · .08 = .36 is four times that of chance, .09. That of the
    # noise is 4 · .284 = 1.14.
    found = made_by_hand(2.12).explained("3")
    assert found["noise"][0] == pytest.approx(1.14 / (1.14 + 0.36 + 0.09), abs=0.05)
    assert found["jump"][0] == pytest.approx(0.8, abs=0.05)
    # Random worlds are not quite orthogonal: a little of so large an effect is seen in other factors.
    assert all(share < 0.05 for factor, (share, _) in found.items() if factor not in ("noise", "jump"))
    nothing = made_by_hand(0.0).explained("3")
    assert {factor for factor, (share, chance) in nothing.items() if share > chance} == {"noise"}
    assert all(0 < chance < 0.12 for _, chance in nothing.values())


@pytest.mark.parametrize("reading", VALUES["reading"])
def test_a_world_has_the_design_that_it_names(reading: str) -> None:
    graph = fw.graphs.grid(4, 5)
    importance = np.linspace(1, 3, graph.n)
    world = World(seed=1, jump=0.3, stop=0.7, hops=5, noise=1.0, heavy=2, reading=reading)
    step, *jumps = world.design().kernel(graph, importance).moves
    more = 1 if reading == ONE_MORE else 0
    assert (step.probability, step.hops) == (0.7, 1)
    assert [jump.hops for jump in jumps] == [i + more for i in range(1, 6)]
    # p_d is the chance to stop after each hop: w_(i+1) / w_i = 1 − p_d.
    weights = np.array([jump.probability for jump in jumps])
    assert weights.sum() == pytest.approx(0.3)
    np.testing.assert_allclose(weights[1:] / weights[:-1], 0.3)
    assert all((jump.rows is not None) == (reading == CLOSED_FORM) for jump in jumps)


def test_one_hop_more_is_one_hop_more() -> None:
    graph, importance = fw.graphs.grid(4, 5), np.linspace(1, 3, 20)
    uniform = fw.designs.SimpleWalk().kernel(graph).matrix().toarray()
    steps = fw.designs.Metropolis(1).kernel(graph, importance).matrix().toarray()
    plain = fw.designs.MHLJ(0.4, 0.5, 3)
    jumps = plain.kernel(graph, importance).matrix().toarray() - 0.6 * steps
    longer = worlds.OneHopMore(plain).kernel(graph, importance)
    np.testing.assert_allclose(longer.matrix().toarray(), 0.6 * steps + jumps @ uniform, atol=1e-12)
    np.testing.assert_array_equal(longer.target, plain.kernel(graph, importance).target)


def test_noise_and_heavy_nodes_reach_the_data(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    monkeypatch.setattr(worlds, "simulate", lambda *given, **change: asked.update(change, given=given) or [tried])
    tried = search.Tried(0.123456789, 0.3, np.inf, Fitted(1, 1.0, 1.0, 0.5))
    world = World(seed=4, jump=0.5, stop=0.5, hops=2, noise=2.0, heavy=3, reading=D_HOPS)
    assert score("5b", world) == Score(0.1234568, worlds.DIVERGED)
    assert asked == {"given": ("5b", 4, {0.5: fw.designs.MHLJ(0.5, 0.5, 2)}), "noise": 0.08, "heavy": 3}


def test_every_factor_changes_the_score(toy: Path) -> None:
    changes = (
        {"seed": 4},
        {"jump": 0.9},
        {"stop": 0.3},
        {"hops": 1},
        {"noise": 2.0},
        {"heavy": 3},
        {"reading": ONE_MORE},
    )
    scores = [score("5b", World(**{**vars(WORLD), **change})) for change in ({}, *changes)]
    assert len({found.jumping for found in scores}) == len(scores)


def test_exploring_is_complete_and_reproducible(toy: Path) -> None:
    told: dict[str, list[int]] = {}
    found = explore(12, 2, workers=1, tell=lambda what, done, _: told.setdefault(what, []).append(done))
    assert told == {"joint fit": [1, 2], "random worlds": list(range(1, 13))}
    assert {jump: len(scores) for jump, scores in found.joint["5b"].items()} == dict.fromkeys(JUMPS, 2)
    assert [world for world, _ in found.worlds["5b"]] == draw("5b", 12, 2)
    for jump, seed in product((0.1, 1.0), (1, 2)):
        assert point("5b", jump, seed) == found.joint["5b"][jump][seed - 1]
    world, one = found.worlds["5b"][7]
    assert score("5b", world) == one
    found.save(toy / "new" / "found.json")
    assert Sensitivity.load(toy / "new" / "found.json") == found
    assert explore(12, 2, workers=1) == found


def test_what_is_shipped_is_as_it_would_be_saved(shipped: Sensitivity, tmp_path: Path) -> None:
    shipped.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == STORED.read_bytes()


@pytest.mark.parametrize(("arguments", "message"), [((0,), "worlds = 0 and seeds = 50"), ((5, -1), "seeds = -1")])
def test_bad_arguments_are_refused_at_once(arguments: tuple, message: str) -> None:
    with pytest.raises(SpecError, match=f"explore: .*{message}, expected at least 1 of each"):
        explore(*arguments)

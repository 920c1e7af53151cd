"""Section IV's account: distances against a walk by hand, and verdicts that notice what is planted."""

import tomllib
from typing import Any

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.paper import KEYS, STUDIES, section_4
from freewalk.paper.files import spec_path
from freewalk.specs.catalogue import build

TINY: dict[str, Any] = {
    "walks": 5,
    "seed": 3,
    "updates": [1, 4, 20],
    "look": 20,
    "others": {"seeds": [5], "updates": [4, 20]},
    "problem": {"kind": "LeastSquares", "dim": 3, "heavy": 1, "noise": 0.01, "seed": 1},
    "setting": [
        {"label": "a", "graph": {"kind": "ring", "n": 9}, "shift": 0.0},
        {"label": "b", "graph": {"kind": "ring", "n": 9}, "shift": 0.3},
        {"label": "c", "graph": {"kind": "complete", "n": 9}, "shift": 0.0},
    ],
    "walk": [
        {"label": label, "design": design, "rule": {"kind": "SGD", "step": 1e-3}}
        for label, design in (
            ("MH uniform", {"kind": "Metropolis", "power": 0}),
            ("MH importance", {"kind": "Metropolis", "power": 1}),
            ("MHLJ", {"kind": "MHLJ", "jump": 0.5, "stop": 0.5, "hops": 3}),
        )
    ],
}


@pytest.fixture(scope="module")
def tiny() -> xarray.Dataset:
    return section_4.numbers(TINY)


def test_numbers_are_those_of_the_same_walks_followed_by_hand(tiny: xarray.Dataset) -> None:
    graph = fw.graphs.ring(9)
    problem = build("problem", {**TINY["problem"], "shift": 0.3}, "test", n=9)
    node, best = int(problem.smoothness.argmax()), problem.optimum()
    kernel = fw.designs.Metropolis(1).kernel(graph, problem.smoothness)
    record = fw.learn(problem, kernel, fw.SGD(1e-3), steps=20, walks=5, start=node, seed=3, paths=5)
    own, away, visits = (np.zeros((5, 21)) for _ in range(3))
    for walk in range(5):
        model, path = np.zeros(3), record.data.path.values[walk]
        for step in range(21):
            own[walk, step] = _projected(problem, node, model)
            away[walk, step] = np.sum((model - best) ** 2)
            visits[walk, step] = np.sum(path[:step] == node)
            at = path[step]
            slope = problem.features[at] @ model - problem.targets[at]
            model = model - 1e-3 * kernel.weights[at] * slope * problem.features[at]
    found = tiny.sel(setting="b", design="MH importance", draw=1)
    for updates in (1, 4, 20):
        here = found.sel(updates=updates)
        assert float(here.own) == pytest.approx(np.median(own[:, updates]))
        assert float(here.own_mean) == pytest.approx(own[:, updates].mean())
        assert float(here.distance) == pytest.approx(away[:, updates].mean())
        assert float(here.visits) == visits[:, updates].mean()
    assert float(found.own_at_start) == pytest.approx(own[0, 0])
    assert float(found.distance_at_start) == pytest.approx(away[0, 0])
    assert float(found.own_at_optimum) == pytest.approx(_projected(problem, node, best))
    assert float(found.correlation.sel(updates=20)) == pytest.approx(
        section_4.rank_correlation(visits[:, 20], away[:, 20]), nan_ok=True
    )
    assert float(found.share) == pytest.approx(problem.smoothness[node] / problem.smoothness.sum())


def test_other_draws_are_other_data_at_fewer_checkpoints(tiny: xarray.Dataset) -> None:
    alone = section_4.numbers(
        {**TINY, "problem": {**TINY["problem"], "seed": 5}, "others": {"seeds": [], "updates": []}}
    )
    other = tiny.sel(draw=5)
    for name in ("own", "distance", "visits", "share", "own_at_optimum"):
        expected = alone[name].isel(draw=0)
        if "updates" in expected.dims:
            expected = expected.where(expected.updates > 1)  # update 1 is not among their checkpoints
        np.testing.assert_array_equal(other[name], expected.transpose(*other[name].dims))
    assert not np.allclose(tiny.own_at_optimum.sel(draw=1), other.own_at_optimum)


def _projected(problem: fw.objectives.LeastSquares, node: int, model: np.ndarray) -> float:
    """The squared distance from the nearest model that fits the sample of a node, by its pseudoinverse."""
    features, target = problem.features[node][None], problem.targets[node]
    nearest = model + np.linalg.pinv(features) @ (target - features @ model)
    return float(np.sum((nearest - model) ** 2))


def test_the_rank_correlation_knows_ties_and_constants() -> None:
    x, y = np.array([1.0, 1.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 9.0])
    ranks = np.array([[1.5, 1.5, 3.0, 4.0], [2.0, 1.0, 3.0, 4.0]])
    assert section_4.rank_correlation(x, y) == pytest.approx(np.corrcoef(ranks)[0, 1])
    assert np.isnan(section_4.rank_correlation(np.ones(3), np.arange(3.0)))


def test_data_and_walks_are_those_of_figure_3() -> None:
    spec, figure = (
        tomllib.loads(spec_path(key, variant).read_text(encoding="utf-8"))
        for key, variant in (("section-4", "own"), ("3", "published"))
    )
    assert spec["problem"] == figure["problem"]
    assert spec["walk"] == figure["walk"]
    assert spec["seed"] == figure["run"]["seed"]
    assert figure["run"]["start"] == "heaviest"
    assert spec["updates"][-1] == figure["run"]["steps"]
    assert [one["graph"] for one in spec["setting"][:2]] == [figure["graph"]] * 2
    assert (STUDIES["section-4"].module, STUDIES["section-4"].variants) == (section_4, ("own",))
    assert "section-4" in KEYS


def planted(**change: float) -> xarray.Dataset:
    """One draw for which every claim holds, but for what is changed."""
    value = {
        "visits": 800.0, "share": 0.1, "own": 1e-9, "own_shifted": 1e-9, "others": 1e-3, "distance": 0.5,
        "uniform": 0.2, "correlation": 0.9, "early": 1.5, "early_shifted": 1.5, "dense_own": 1e-3,
        "dense_distance": 0.1, **change,
    }  # fmt: skip
    own, distance = np.full((3, 3, 2), value["others"]), np.full((3, 3, 2), value["uniform"])
    own[:, 1] = np.array([value["own"], value["own_shifted"], value["dense_own"]])[:, None]
    distance[:, 1, 1] = [value["distance"], value["distance"], value["dense_distance"]]
    distance[:, 1, 0] = [value["early"], value["early_shifted"], 1.0]
    three = ("setting", "design", "updates")
    data = xarray.Dataset(
        {
            "own": (three, own),
            "own_mean": (three, own),
            "distance": (three, distance),
            "visits": (three, np.full((3, 3, 2), value["visits"])),
            "correlation": (three, np.full((3, 3, 2), value["correlation"])),
            "share": (three[:2], np.full((3, 3), value["share"])),
            "own_at_start": ("setting", np.ones(3)),
            "own_at_optimum": ("setting", np.full(3, 1e-6)),
            "distance_at_start": ("setting", np.ones(3)),
        },
        coords={
            "setting": ["ring", "ring, shifted data", "dense"],
            "design": ["MH uniform", "MH importance", "MHLJ"],
            "updates": [10, 1000],
        },
        attrs={"look": 1000},
    )
    return data.expand_dims("draw")


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"visits": 400.0}, [0]),
        ({"share": 0.45}, [0]),
        ({"own": 1e-5}, [1]),
        ({"own_shifted": 1e-5}, [2]),
        ({"others": 5e-6}, [3]),
        ({"distance": 0.21}, [4]),
        ({"correlation": 0.3}, [5]),
        ({"early": 0.99}, [6]),
        ({"early_shifted": 0.99}, [7]),
        ({"dense_own": 1e-9}, [8]),
        ({"dense_distance": 0.3}, [8]),
    ],
)
def test_what_is_planted_fails_its_claim_and_no_other(change: dict[str, float], failing: list[int]) -> None:
    verdicts = section_4.judge(planted(**change))
    assert [number for number, one in enumerate(verdicts) if one.outcome == "fail"] == failing
    assert all(one.outcome in ("pass", "fail") for one in verdicts)
    assert [number for number, one in enumerate(verdicts) if not one.quote] == [6, 7]  # what the paper does not say


@pytest.mark.parametrize(("others", "outcome"), [(1, "pass"), (5, "depends"), (10, "fail")])
def test_other_draws_decide_and_the_first_one_is_shown(others: int, outcome: str) -> None:
    draws = [planted()] * (11 - others) + [planted(correlation=0.25)] * others
    verdicts = section_4.judge(xarray.concat(draws, dim="draw"))
    assert [one.outcome for one in verdicts] == ["pass"] * 5 + [outcome] + ["pass"] * 3
    assert verdicts[5].measured == "holds: 0.90"
    assert verdicts[5].share.startswith(f"{10 - others} of 10 other draws; 0.25 to ")


def test_table_and_figure_show_every_setting(tiny: xarray.Dataset, tmp_path) -> None:
    table = section_4.table(TINY, tiny)
    assert [row[0] for row in table.rows][:2] == ["a, MH uniform", "a, MH importance"]
    assert len(table.rows) == 9
    section_4.draw(tiny, tmp_path / "figure.png", "footer")
    assert (tmp_path / "figure.png").stat().st_size > 1000

"""Theorem 1's terms: exact errors against slow computations, and verdicts that notice planted exponents."""

import tomllib
from typing import Any

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.analysis import exact_curve, mixing_time, steady_state, theory
from freewalk.analysis.theory import assumptions
from freewalk.paper import KEYS, STUDIES, theorem_1
from freewalk.paper.files import spec_path
from freewalk.specs.catalogue import build

TINY: dict[str, Any] = {
    "graph": {"kind": "ring", "n": 7},
    "problem": {
        "kind": "LeastSquares", "dim": 2, "heavy": 1, "heavy_variance": 4.0, "noise": 0.01, "shift": 0.05, "ridge": 2.0,
        "seed": 2,
    },
    "rate": {"doublings": [2, 9, 10], "jumps": [0.0, 0.2], "stop": 0.5, "hops": 2, "run": 500},
    "gap": {"jumps": [0.1, 0.2]},
    "dependence": {
        "step": 1e-3,
        "holding": [0.0, 0.5],
        "placements": 2,
        "graphs": {"complete": {"kind": "complete", "n": 7}, "ring": {"kind": "ring", "n": 7}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny() -> xarray.Dataset:
    return theorem_1.numbers(TINY)


@pytest.fixture(scope="module")
def problem() -> fw.objectives.LeastSquares:
    return build("problem", TINY["problem"], "test", n=7)  # type: ignore[no-any-return]


def kernel_of(problem: fw.objectives.LeastSquares, jump: float) -> fw.Kernel:
    return fw.designs.MHLJ(jump, 0.5, 2).kernel(fw.graphs.ring(7), problem.smoothness)


def test_the_error_after_t_updates_is_that_of_the_exact_curve(
    tiny: xarray.Dataset, problem: fw.objectives.LeastSquares
) -> None:
    for jump in (0.0, 0.2):
        for updates in (512, 1024):
            step = float(tiny.step_size.sel(jump=jump, updates=updates))
            curve = exact_curve(problem, kernel_of(problem, jump), fw.SGD(step), steps=updates, every=updates)
            found = float(tiny.error.sel(jump=jump, updates=updates))
            assert found == pytest.approx(float(curve.distance[-1]), rel=1e-9)


def test_the_step_is_the_theorems_and_there_is_none_for_short_runs(
    tiny: xarray.Dataset, problem: fw.objectives.LeastSquares
) -> None:
    assert assumptions(problem).holds
    for jump in (0.0, 0.2):
        for updates in (4, 512, 1024):
            printed = theory.theorem_1(problem, kernel_of(problem, jump), updates, step=1e-3).printed.step
            found = float(tiny.step_size.sel(jump=jump, updates=updates))
            assert found == pytest.approx(printed, rel=1e-12, nan_ok=True)
    assert np.isnan(tiny.step_size.sel(updates=4)).all()
    assert (tiny.shortest > 4).all()
    assert np.isnan(tiny.error.sel(updates=4)).all()


def test_the_gap_is_where_a_small_step_settles(tiny: xarray.Dataset, problem: fw.objectives.LeastSquares) -> None:
    assert float(tiny.floor.sel(jump=0.0)) < 1e-25
    for jump in (0.1, 0.2):
        limit = steady_state(problem, kernel_of(problem, jump), fw.SGD(1e-7))
        away = limit.model - problem.optimum()
        assert float(tiny.gap.sel(probability=jump)) == pytest.approx(away @ away, rel=1e-4)


def test_laziness_doubles_the_mixing_time_and_mean_memory_is_that_of_the_eigenvalues(
    tiny: xarray.Dataset, problem: fw.objectives.LeastSquares
) -> None:
    kernel = kernel_of(problem, 0.0)
    assert tiny.lazy_mixing.values[0] == mixing_time(kernel)
    assert tiny.lazy_mixing.values[1] == pytest.approx(2 * tiny.lazy_mixing.values[0], abs=2)
    assert float(tiny.lazy_error[0]) == pytest.approx(steady_state(problem, kernel, fw.SGD(1e-3)).distance)
    values = np.sort(np.linalg.eigvals(kernel.matrix().toarray()).real)[:-1]
    assert theorem_1.mean_memory(kernel) == pytest.approx(np.mean((1 + values) / (1 - values)))


def test_errors_over_graphs_are_means_over_placements(
    tiny: xarray.Dataset, problem: fw.objectives.LeastSquares
) -> None:
    generator, found = np.random.default_rng(0), []
    for _ in range(2):
        order = generator.permutation(7)
        placed = fw.objectives.LeastSquares(problem.features[order], problem.targets[order], ridge=2.0)
        kernel = fw.designs.Metropolis(1).kernel(fw.graphs.ring(7), placed.smoothness)
        found.append(steady_state(placed, kernel, fw.SGD(1e-3)).distance)
    assert float(tiny.graph_error.sel(design="MH importance", graph="ring")) == pytest.approx(np.mean(found))


def planted(
    power: float = -1.0,
    rare: float = 2.0,
    stated: float = 2.0,
    floor: float = 1.0,
    lazy: float = 1.0,
    graphs: float = 1.0,
    memory: float = 1.0,
    shortest: float = 1e3,
) -> xarray.Dataset:
    """Numbers that follow the given power laws."""
    updates, jumps = 2.0 ** np.arange(20, 28), np.array([1e-4, 3e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2])
    steps = np.log(updates / 1e3) / updates
    gap = np.where(jumps <= 1e-3, (jumps / 1e-3) ** rare, (jumps / 1e-3) ** stated)
    holding, times = np.array([0.0, 0.5, 0.75]), np.array([2.0, 8.0, 32.0])
    errors = times**graphs
    return xarray.Dataset(
        {
            "step_size": (("jump", "updates"), np.array([steps, steps])),
            "error": (("jump", "updates"), np.array([updates**power * steps * updates, np.full(8, floor * 5.0)])),
            "mixing": ("jump", [10.0, 5.0]),
            "shortest": ("jump", [shortest, shortest]),
            "floor": ("jump", [0.0, 5.0]),
            "gap": ("probability", gap),
            "lazy_mixing": ("holding", 1 / (1 - holding)),
            "lazy_error": ("holding", (1 - holding) ** -lazy),
            "graph_mixing": (("design", "graph"), np.array([times, times])),
            "graph_memory": (("design", "graph"), np.array([errors ** (1 / memory)] * 2)),
            "graph_error": (("design", "graph"), np.array([errors, errors])),
        },
        coords={
            "jump": [0.0, 0.1], "updates": updates, "probability": jumps, "holding": holding,
            "graph": ["a", "b", "c"], "design": ["MH importance", "MH uniform"],
        },
        attrs={"convexity": 1.0, "factor": 1.0, "run": 15000, "n": 31},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"power": -0.8}, [0]),
        ({"power": -1.2}, [0]),
        ({"shortest": 2e4}, [1]),
        ({"floor": 1.2}, [2]),
        ({"rare": 1.5}, [3]),
        ({"stated": 1.0}, [4]),
        ({"lazy": 0.5}, [5]),
        ({"graphs": 0.5}, [6, 7]),
        ({"memory": 0.5}, [8]),
    ],
)
def test_a_planted_exponent_fails_its_claim_and_no_other(change: dict[str, float], failing: list[int]) -> None:
    verdicts = theorem_1.judge(planted(**change))
    assert [number for number, one in enumerate(verdicts) if one.outcome == "fail"] == failing
    assert all(one.outcome in ("pass", "fail") for one in verdicts)
    assert all(one.quote for one in verdicts[:-1])


def test_the_study_is_listed_and_draws(tiny: xarray.Dataset, tmp_path) -> None:
    spec = tomllib.loads(spec_path("theorem-1-rate", "own").read_text(encoding="utf-8"))
    assert (STUDIES["theorem-1-rate"].module, STUDIES["theorem-1-rate"].variants) == (theorem_1, ("own",))
    assert "theorem-1-rate" in KEYS
    sizes = {table["n"] for table in spec["dependence"]["graphs"].values()}
    assert sizes == {spec["graph"]["n"]}
    assert len([k for k in spec["rate"]["doublings"] if k >= 24]) == 7
    data = planted()
    theorem_1.draw(data, tmp_path / "figure.png", "footer")
    assert (tmp_path / "figure.png").stat().st_size > 1000
    table = theorem_1.table(spec, data)
    assert [row[0] for row in table.rows] == ["a", "b", "c"]

"""Figures and tables of sweeps: what they show, of complete sweeps and of others."""

from pathlib import Path

import numpy as np
import pytest
import xarray

from freewalk import report
from freewalk.errors import RecordError
from freewalk.report.sweeps import spread_out, tabulated, view_of


def sweep(*, walks: int = 4, missing: bool = False, words: bool = False) -> xarray.Dataset:
    """Two keys, two seeds, two designs: the last value is jump + n / 1000 + seed / 10⁴ + a walk's own part."""
    jump, n, seed = np.array([0.1, 0.3, 0.9]), np.array([10, 1000]), np.array([1, 2])
    part = np.linspace(-1e-5, 1e-5, walks)
    last = jump[:, None, None, None, None] + n[:, None, None, None] / 1000 + seed[:, None, None] / 1e4
    last = last + np.array([0.0, 0.5])[:, None] + part
    values = last[..., None] * np.array([4.0, 2.0, 1.0])
    dims = ("walk.A.design.jump", "graph.n", "problem.seed", "design", "walk", "step")
    messages = np.broadcast_to(np.array([0.0, 5.0, 10.0]), values.shape).copy()
    finished = np.ones((3, 2, 2), dtype=bool)
    if missing:
        values[2], messages[2], finished[2] = np.nan, np.nan, False
    coords = {
        "walk.A.design.jump": np.array(["a", "b", "c"]) if words else jump,
        "graph.n": n,
        "problem.seed": seed,
        "design": ["first", "second"],
        "walk": np.arange(walks),
        "step": [0, 10, 20],
    }
    variables = {"mse": (dims, values, {"long_name": "mean squared error, of all"}), "messages": (dims, messages)}
    made = xarray.Dataset({**variables, "finished": (dims[:3], finished)}, coords)
    return made.assign_attrs(primary="mse", left_out="")


def test_seeds_are_repetitions_and_the_rest_is_shown() -> None:
    view = view_of(sweep())
    assert (view.keys, view.x, view.others) == (["walk.A.design.jump", "graph.n"], "walk.A.design.jump", ["graph.n"])
    assert view.draws == " and 2 values of problem.seed"
    np.testing.assert_allclose(view.final.sel(design="first").values[:, 0], np.array([0.1, 0.3, 0.9]) + 0.01 + 1.5e-4)
    # Student's t with one degree of freedom, times the deviation of two values 1e-4 apart, over √2.
    np.testing.assert_allclose(view.half.values, 12.706204736 * 1e-4 / np.sqrt(2) / np.sqrt(2), rtol=1e-6)
    assert view.curves.shape == (3, 2, 2, 3)
    assert [panel.words for panel in view.panels(view.x)] == ["graph.n = 10", "graph.n = 1000"]


@pytest.mark.parametrize("alone", [["problem.seed", "graph.n"], ["graph.n"]], ids=len)
def test_without_repetitions_the_interval_is_that_of_the_walks(alone: list[str]) -> None:
    view = view_of(sweep().isel({"problem.seed": [0], "graph.n": [0]}).squeeze(alone, drop=True))
    assert (view.draws, view.keys) == ("", ["walk.A.design.jump"])
    deviation = np.std(np.linspace(-1e-5, 1e-5, 4), ddof=1)
    np.testing.assert_allclose(view.half.values, 3.18244630528 * deviation / 2, rtol=1e-6)


def test_a_sweep_of_seeds_alone_has_them_as_its_axis() -> None:
    view = view_of(sweep().isel({"graph.n": 0, "walk.A.design.jump": 0}, drop=True))
    assert (view.keys, view.draws) == (["problem.seed"], "")


def test_a_table_has_a_row_for_each_point() -> None:
    head, rows = tabulated(view_of(sweep(missing=True)))
    assert head == ["walk.A.design.jump", "graph.n", "first", "second"]
    assert rows[0] == ["0.1", "10", "0.1101 ± 0.00064", "0.6101 ± 0.00064"] or rows[0][:2] == ["0.1", "10"]
    assert [row[2:] for row in rows[4:]] == [["–", "–"], ["–", "–"]]


DRAW = {"lines": report.sweep_lines, "curves": report.sweep_curves, "map": report.sweep_map}


@pytest.mark.quick("{}-lines", "{'missing': True}-curves", "{'words': True}-map")
@pytest.mark.parametrize("name", DRAW)
@pytest.mark.parametrize("options", [{}, {"missing": True}, {"words": True}, {"walks": 1}], ids=str)
def test_every_kind_of_sweep_is_drawn(tmp_path: Path, name: str, options: dict) -> None:
    DRAW[name](sweep(**options), tmp_path / f"{name}.png")
    DRAW[name](sweep(**options), tmp_path / f"{name}.svg", x="graph.n")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    words = (tmp_path / f"{name}.svg").read_text()
    assert "<svg" in words


def test_one_that_diverged_is_drawn_as_such(tmp_path: Path) -> None:
    data = sweep()
    data.mse[0, 0, :, 0, :, -1] = np.inf
    _, rows = tabulated(view_of(data))
    assert rows[0][2] == "diverged"
    for name, draw in DRAW.items():
        draw(data, tmp_path / f"{name}.png")


@pytest.mark.parametrize("name", DRAW)
def test_losses_about_to_overflow_leave_the_picture(tmp_path: Path, name: str) -> None:
    data = sweep()
    data.mse[2, ..., 1:] = 1e290
    DRAW[name](data, tmp_path / f"{name}.png")
    view = view_of(data)
    worst = float(view.curves.isel(step=0).max())
    assert view.ends(view.final.values, log=True) == (view.final.values.min(), 1e6 * worst)
    assert view.ends(view.final.values, log=False)[1] == view.final.values.max()


def test_a_map_needs_two_keys(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"only 'walk.A.design.jump' was varied, expected two keys"):
        report.sweep_map(sweep().isel({"graph.n": 0, "problem.seed": 0}, drop=True), tmp_path / "a.png")
    with pytest.raises(RecordError, match=r"y = 'problem.seed', expected 'graph.n'"):
        report.sweep_map(sweep(), tmp_path / "a.png", y="problem.seed")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (3, {}, "expected an xarray.Dataset that fw.sweep returned"),
        (xarray.Dataset(), {}, "has no finished point"),
        (sweep(), {"measure": "mee"}, "did you mean 'mse'"),
        (sweep(), {"x": "problem.seed"}, "x = 'problem.seed', expected 'walk.A.design.jump' or 'graph.n'"),
    ],
)
def test_what_cannot_be_shown(tmp_path: Path, data: xarray.Dataset, options: dict, message: str) -> None:
    for draw in DRAW.values():
        with pytest.raises(RecordError, match=message):
            draw(data, tmp_path / "a.png", **options)
    assert list(tmp_path.iterdir()) == []


def test_numbers_far_apart_need_a_log_axis() -> None:
    assert [spread_out(numbers) for numbers in ([1e-4, 1e-3, 1e-2], [1, 2, 3], [0, 1, 100])] == [True, False, False]

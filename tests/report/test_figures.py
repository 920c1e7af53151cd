"""Figures are drawn, whatever the record holds."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from runs import learned

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.report import curves, escape, occupancy
from freewalk.report.figures import new_figure, save


@pytest.fixture(scope="module")
def both() -> fw.Record:
    records = [learned(fw.designs.Metropolis(power=1)), learned(fw.designs.MHLJ(0.5, 0.5, 3))]
    return fw.concat(records, ["MH $importance", "MHLJ"])


def assert_drawn(path: Path) -> None:
    image = imread(path)
    assert image.shape[0] > 200
    assert image.shape[1] > 200
    assert image[..., :3].std() > 0.01  # not a blank sheet


@pytest.mark.parametrize("scale", ["auto", "linear", "log"])
def test_curves(both: fw.Record, tmp_path: Path, scale) -> None:
    assert_drawn(curves(both, tmp_path / "new" / "curves.png", scale=scale))


def words_of(path: Path) -> str:
    """The texts in an SVG image, which matplotlib notes beside their outlines."""
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("band", "words"),
    [("quantiles", "band: 10–90 % of the walks"), ("confidence", "band: 95 % confidence of the mean"), ("none", None)],
)
def test_the_legend_names_the_band(both: fw.Record, tmp_path: Path, band, words: str | None) -> None:
    drawn = words_of(curves(both, tmp_path / "curves.svg", band=band))
    assert "line: mean over 5 walks" in drawn
    assert (words in drawn) if words else ("band:" not in drawn)


def test_a_single_walk_has_no_band(tmp_path: Path) -> None:
    drawn = words_of(curves(learned(fw.designs.SimpleWalk(), walks=1, paths=0), tmp_path / "one.svg"))
    assert "one walk" in drawn
    assert "band:" not in drawn


def test_the_legend_says_what_the_record_says_about_diverged_walks(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data["diverged"] = ("walk", np.arange(5) < 2)  # all values are finite
    assert "(2 of 5 diverged)" in words_of(curves(record, tmp_path / "a.svg"))
    gone = learned(fw.designs.SimpleWalk(), step=50.0)
    assert "(5 of 5 diverged)" in words_of(curves(gone, tmp_path / "b.svg", band="confidence"))


def test_curves_of_one_walk_and_one_record(tmp_path: Path) -> None:
    assert_drawn(curves(learned(fw.designs.SimpleWalk(), walks=1, paths=0), tmp_path / "one.png"))


def test_curves_with_diverged_walks(tmp_path: Path) -> None:
    diverged = learned(fw.designs.SimpleWalk(), step=50.0)
    assert bool(diverged.data.diverged.all())
    assert_drawn(curves(diverged, tmp_path / "alone.png"))
    assert_drawn(curves(fw.concat([diverged, learned(fw.designs.MHLJ(0.5, 0.5, 3))]), tmp_path / "beside.png"))


def test_curves_with_values_that_are_not_finite_from_the_start(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data["mse"] = record.data.mse * np.nan
    assert_drawn(curves(record, tmp_path / "nan.png"))


def test_curves_without_any_message(tmp_path: Path) -> None:
    matrix = np.eye(20)
    still = learned(fw.designs.FromMatrix(matrix, target=np.ones(20)))
    assert int(still.data.messages.max()) == 0
    for scale in ("linear", "log"):
        assert_drawn(curves(still, tmp_path / f"{scale}.png", scale=scale))


def test_curves_that_reach_an_optimum_of_zero(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data["mse"] = record.data.mse.where(record.data.step < 500, 0.0)
    record.data.attrs["optimal_mse"] = 0.0
    assert_drawn(curves(record, tmp_path / "zero.png"))


def test_curves_of_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data = record.data.isel(step=slice(0, 1))
    assert_drawn(curves(record, tmp_path / "one.png", scale="log"))


def test_more_designs_than_colours(tmp_path: Path) -> None:
    one = learned(fw.designs.SimpleWalk())
    assert_drawn(curves(fw.concat([one] * 9, [f"design {k}" for k in range(9)]), tmp_path / "nine.png"))


def test_escape(both: fw.Record, tmp_path: Path) -> None:
    assert_drawn(escape(both, tmp_path / "all.png"))
    assert_drawn(escape(both, tmp_path / "one.png", designs=["MHLJ"], updates=100))
    with pytest.raises(RecordError, match="expected some of 'MH"):
        escape(both, tmp_path / "x.png", designs=["other"])
    with pytest.raises(RecordError, match="has no paths"):
        escape(learned(fw.designs.SimpleWalk(), paths=0), tmp_path / "x.png")


def test_figures_of_designs_with_different_numbers_of_walks_and_paths(tmp_path: Path) -> None:
    runs = [
        learned(fw.designs.SimpleWalk(), paths=1),
        learned(fw.designs.SimpleWalk(), paths=2, walks=9),
        learned(fw.designs.SimpleWalk(), paths=0, walks=4),
    ]
    padded = fw.concat(runs, ["a", "b", "c"], pad=True)
    for band in ("quantiles", "confidence", "none"):
        assert_drawn(curves(padded, tmp_path / f"{band}.png", band=band))
    assert_drawn(occupancy(padded, tmp_path / "occupancy.png"))
    assert_drawn(escape(padded, tmp_path / "escape.png", designs=["a", "b"]))
    with pytest.raises(RecordError, match="the paths of 'c' in the record are empty"):
        escape(padded, tmp_path / "escape.png")


def test_occupancy(both: fw.Record, tmp_path: Path) -> None:
    assert_drawn(occupancy(both, tmp_path / "occupancy.png"))


@pytest.fixture(scope="module")
def sites() -> fw.Record:
    """Two designs on a graph that is neither ring nor path, with names."""
    grid = fw.graphs.grid(4, 5)
    names = tuple(f"site ${number}" for number in range(20))
    graph = Graph(grid.indptr, grid.indices, node_names=names)
    problem = fw.objectives.LeastSquares.synthetic(20, dim=2, heavy=[0, 7], seed=1)
    records = []
    for design in (fw.designs.Metropolis(power=1), fw.designs.SimpleWalk()):
        kernel = design.kernel(graph, problem.smoothness)
        records.append(fw.learn(problem, kernel, fw.SGD(step=0.01), steps=300, walks=3, every=50, paths=2))
    found = fw.concat(records, ["MH", "simple"])
    found.graph = graph
    return found


def test_on_any_graph_hops_from_the_heavy_nodes_count(sites: fw.Record, tmp_path: Path) -> None:
    for draw in (escape, occupancy):
        drawn = words_of(draw(sites, tmp_path / "hops.svg"))
        assert "hops from the nearest heavy node" in drawn
        assert "heavy nodes: site $0 and site $7" in drawn
    # Nodes 0 and 7 of a grid of 4 × 5: 2 of them, then 6 neighbours, 7 at two hops, and so on.
    counts = np.bincount(sites.graph.distances([0, 7])).tolist()
    assert f"nodes at 0, 1, … hops: {', '.join(map(str, counts))}" in drawn


def test_a_ring_is_drawn_as_a_ring_and_names_its_heaviest_node(both: fw.Record, tmp_path: Path) -> None:
    ring = fw.graphs.ring(20)
    named = fw.Record(both.data, graph=Graph(ring.indptr, ring.indices, node_names=tuple("abcdefghijklmnopqrst")))
    drawn = words_of(occupancy(named, tmp_path / "named.svg"))
    assert "node, counted from the heaviest node" in drawn
    heaviest = int(both.data.smoothness.values.reshape(-1, 20)[0].argmax())
    assert f"heaviest node: {'abcdefghijklmnopqrst'[heaviest]}" in drawn
    for record in (fw.Record(both.data, graph=ring), fw.Record(both.data)):  # without a graph: as a ring
        drawn = words_of(escape(record, tmp_path / "ring.svg", updates=50))
        assert "node, counted from the heaviest node" in drawn
        assert "heaviest node: " not in drawn


def test_a_graph_of_another_size_is_refused(both: fw.Record, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="5 nodes, expected 20"):
        occupancy(fw.Record(both.data, graph=fw.graphs.star(5)), tmp_path / "a.png")


def test_many_updates_near_a_few_heavy_nodes(tmp_path: Path) -> None:
    graph = fw.graphs.star(12)
    record = fw.walk(fw.designs.SimpleWalk().kernel(graph), steps=3000, walks=3, paths=3, every=3000)
    record.graph = graph
    assert_drawn(escape(record, tmp_path / "star.png"))
    assert "hops from the most visited node" in words_of(occupancy(record, tmp_path / "star.svg"))


def test_a_drawing_that_fails_keeps_the_old_file(both: fw.Record, tmp_path: Path) -> None:
    from matplotlib.artist import Artist

    class Broken(Artist):
        def draw(self, renderer: object) -> None:
            raise RuntimeError("out of ink")

    path = curves(both, tmp_path / "curves.png")
    before, figure = path.read_bytes(), new_figure(3, 3)
    figure.add_artist(Broken())
    with pytest.raises(RuntimeError, match="out of ink"):
        save(figure, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot be written"):
        curves(learned(fw.designs.SimpleWalk()), tmp_path / "file" / "curves.png")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "here"


def test_bad_requests(both: fw.Record, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot draw this kind of file"):
        curves(both, tmp_path / "curves.xyz")
    with pytest.raises(RecordError, match="scale = 'cubic'"):
        curves(both, tmp_path / "curves.png", scale="cubic")
    with pytest.raises(RecordError, match="band = 'wide'"):
        curves(both, tmp_path / "curves.png", band="wide")
    assert list(tmp_path.iterdir()) == []
    walked = fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)), steps=10)
    with pytest.raises(RecordError, match="has no loss"):
        curves(walked, tmp_path / "curves.png")

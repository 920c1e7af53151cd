"""A diagnosis is drawn, whatever was found."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import networkx
import numpy as np
import pytest
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread

import freewalk as fw
from freewalk.analysis.diagnosis.diagnose import IMPORTANCE, UNIFORM, Diagnosis, Forecast, diagnose
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.report import diagnosis_figure, graph_map, layout

HEAVY = 60.0


def importance(n: int, *heavy: int) -> list[float]:
    return [HEAVY if node in heavy else 1.0 for node in range(n)]


@pytest.fixture(scope="module")
def ring() -> Diagnosis:
    problem = fw.objectives.LeastSquares.synthetic(24, dim=2, heavy=2, seed=3)
    return diagnose(fw.graphs.ring(24), problem, start=0)


def assert_drawn(path: Path) -> None:
    image = imread(path)
    assert image.shape[:2] == (1088, 1856)
    left, right = image[:, :928, :3], image[:, 928:, :3]
    for part in (left[:850], left[900:], right[:544], right[544:]):  # the graph, its scale, and two panels
        assert part.std() > 0.02


def changed(found: Diagnosis, label: str, **race: float) -> Diagnosis:
    one = found.forecasts[label]
    assert one.race is not None
    return replace(found, forecasts={**found.forecasts, label: replace(one, race=replace(one.race, **race))})


# The figure.


def test_a_raced_diagnosis_is_drawn(ring: Diagnosis, tmp_path: Path) -> None:
    path = diagnosis_figure(ring, tmp_path / "new" / "ring.png")
    assert path == tmp_path / "new" / "ring.png"
    assert_drawn(path)
    assert diagnosis_figure(ring, tmp_path / "ring.svg").stat().st_size > 10_000
    with pytest.raises(RecordError, match="cannot draw this kind of file"):
        diagnosis_figure(ring, tmp_path / "ring.xyz")


def test_designs_that_were_given_up_or_are_biased_are_drawn(ring: Diagnosis, tmp_path: Path) -> None:
    found = changed(ring, IMPORTANCE, updates=np.inf, messages=np.inf)
    found = changed(found, "MHLJ, jump 0.1", updates=np.inf, messages=np.inf, bias=1.0)
    one: Forecast = ring.forecasts[UNIFORM]
    labels = [f"design {k} of a $spec with a long name" for k in range(8)]
    more = {label: replace(one, label=label) for label in labels}
    assert_drawn(diagnosis_figure(replace(found, forecasts={**found.forecasts, **more}), tmp_path / "more.png"))
    nobody = changed(found, UNIFORM, updates=np.inf, messages=np.inf)
    assert_drawn(diagnosis_figure(nobody, tmp_path / "nobody.png"))


@pytest.mark.quick(
    "Graph(ring(90): 90 nodes, 90 edges)-(0, 89)",
    "Graph(path(2): 2 nodes, 1 edges)-(0,)",
    "Graph(barabasi_albert(40, 2, seed=1): 40 nodes, 76 edges)-(30,)",
    "Graph(ring(2600): 2600 nodes, 2600 edges)-(9,)",
)
@pytest.mark.parametrize(
    ("graph", "heavy"),
    [
        (fw.graphs.ring(90), (0, 89)),  # enough nodes for a close-up, with the trap across node 0
        (fw.graphs.path(90), (88, 89)),
        (fw.graphs.path(2), (0,)),
        (fw.graphs.grid(5, 6), (8,)),
        (fw.graphs.star(12), (3,)),
        (fw.graphs.complete(8), ()),
        (fw.graphs.barabasi_albert(40, 2, seed=1), (30,)),
        (fw.graphs.watts_strogatz(160, 4, 0.1, seed=1), (5, 6, 80)),
        (fw.graphs.erdos_renyi(520, 0.02, seed=1), (7,)),  # too many to show them all
        (fw.graphs.ring(2600), (9,)),
    ],
    ids=str,
)
def test_every_graph_is_drawn(
    graph: Graph, heavy: tuple[int, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = diagnose(graph, importance(graph.n, *heavy))
    with caplog.at_level(logging.WARNING):
        assert_drawn(diagnosis_figure(found, tmp_path / "graph.png"))
    assert not caplog.records  # matplotlib complains there about layouts that do not work out


def test_of_what_is_not_least_squares_the_figure_says_so_and_shows_no_updates(
    ring: Diagnosis, drawn: Callable[[Diagnosis], Figure]
) -> None:
    found = diagnose(fw.graphs.ring(24), fw.objectives.Logistic.synthetic(24, dim=2, heavy=2, seed=1), start=0)
    title = drawn(found).get_suptitle().splitlines()
    assert "not your loss: traps and messages only" in title[0]
    assert "entrapped at nodes 0, 1" in title[1]
    titles = {axes.get_title(loc="left") for axes in drawn(found).axes}
    assert "Excess visits to the worst trap" in titles
    assert not [one for one in titles if one.startswith("Updates needed")]
    assert "not your loss" not in drawn(ring).get_suptitle()


def test_no_state_is_left_behind(ring: Diagnosis, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    diagnosis_figure(ring, tmp_path / "one.png")
    assert dict(matplotlib.rcParams) == before
    diagnosis_figure(ring, tmp_path / "two.png")
    np.testing.assert_array_equal(imread(tmp_path / "one.png"), imread(tmp_path / "two.png"))


def scattered(figure: Figure, title: str) -> list[PathCollection]:
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left").startswith(title))
    return [one for one in axes.collections if isinstance(one, PathCollection)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Diagnosis], Figure]:
    """Draw a diagnosis, and look at the figure before it is written."""

    def draw(found: Diagnosis) -> Figure:
        figures: list[Figure] = []
        monkeypatch.setattr("freewalk.report.figures.save", lambda figure, path: figures.append(figure))
        diagnosis_figure(found, tmp_path / "not written.png")
        return figures[0]

    return draw


def test_rings_are_around_the_nodes_of_the_traps_and_no_others(
    ring: Diagnosis, drawn: Callable[[Diagnosis], Figure]
) -> None:
    worst = ring.traps[0]
    near = replace(worst, nodes=(9, 10), lost=0.2 * worst.lost)
    far = replace(worst, nodes=(15,), lost=0.05 * worst.lost)
    figure = drawn(replace(ring, traps=(worst, near, far)))
    *rings, nodes = scattered(figure, "Where")
    assert [len(one.get_offsets()) for one in rings] == [len(near.nodes), len(worst.nodes)]
    pale, strong = (tuple(one.get_edgecolor()[0]) for one in rings)
    assert strong == to_rgba(graph_map.TRAP)
    assert pale == to_rgba(graph_map.OTHER)
    assert len(nodes.get_offsets()) == ring.graph.n
    places = {tuple(place) for one in rings for place in np.asarray(one.get_offsets())}
    assert places <= {tuple(place) for place in np.asarray(nodes.get_offsets())}
    assert not [one for axes in figure.axes for one in axes.collections if isinstance(one, PolyCollection)]
    words = [one.get_text() for axes in figure.axes for one in axes.texts if one.get_text().endswith(" updates")]
    assert [one.partition(":")[0] for one in words] == ["worst trap", "trap"]
    assert graph_map.shown_traps(replace(ring, traps=())) == ()


def words_in(figure: Figure) -> list[str]:
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left").startswith("Where"))
    return [one.get_text() for one in axes.texts]


def test_nodes_that_have_names_are_called_by_them(drawn: Callable[[Diagnosis], Figure]) -> None:
    families = networkx.florentine_families_graph()
    graph = fw.graphs.from_networkx(families)
    found = diagnose(graph, [200.0 if name == "Strozzi" else 1.0 for name in families], designs={})
    assert found.traps[0].names == ("Strozzi",)
    words = words_in(drawn(found))
    assert set(families) < set(words)  # all of so few
    (label,) = (one for one in words if one.startswith("worst trap: "))
    assert "Strozzi" not in label
    many = fw.graphs.ring(90)
    many = Graph(many.indptr, many.indices, node_names=tuple(f"$site {node} of the map" for node in range(90)))
    found = diagnose(many, importance(90, 7, 8), designs={})
    words = words_in(drawn(found))
    assert "close-up of the worst trap, with node names" in words
    assert "$site 7 of th…" in words
    assert any(one.startswith("worst trap at nodes $site 7 of the map, $site 8 of the map: ") for one in words)


def test_names_hide_neither_nodes_nor_each_other(drawn: Callable[[Diagnosis], Figure]) -> None:
    graph = fw.graphs.ring(30)
    named = Graph(graph.indptr, graph.indices, node_names=tuple(f"family {node}" for node in range(30)))
    figure = drawn(diagnose(named, importance(30, 0), designs={}))
    figure.draw_without_rendering()
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left").startswith("Where"))
    names = [one.get_window_extent() for one in axes.texts if one.get_text().startswith("family")]
    assert len(names) == 30
    dots = axes.transData.transform(np.asarray(scattered(figure, "Where")[-1].get_offsets()))
    for place, box in enumerate(names):
        assert not any(box.overlaps(other) for other in names[:place])
        assert not any(box.contains(*dot) for dot in dots)
        assert axes.bbox.contains(*box.min)
        assert axes.bbox.contains(*box.max)


def test_a_graph_that_says_where_its_nodes_are_is_drawn_so(drawn: Callable[[Diagnosis], Figure]) -> None:
    graph, places = fw.graphs.ring(12), np.column_stack([np.arange(12.0), np.arange(12.0) % 3])
    found = diagnose(Graph(graph.indptr, graph.indices, positions=places), importance(12, 3), designs={})
    nodes = np.asarray(scattered(drawn(found), "Where")[-1].get_offsets())
    order = np.argsort(nodes[:, 0])
    assert nodes[order, 0] == pytest.approx(np.linspace(-1, 1, 12))
    assert nodes[order, 1] == pytest.approx((places[:, 1] - 1) * 2 / 11)


def test_only_laws_of_designs_that_were_compared_are_drawn(
    ring: Diagnosis, drawn: Callable[[Diagnosis], Figure]
) -> None:
    def labels(found: Diagnosis) -> list[str]:
        return [str(one.get_label()).split(":")[0] for one in scattered(drawn(found), "Does")]

    two = {label: ring.forecasts[label] for label in (UNIFORM, IMPORTANCE)}
    assert labels(ring) == [IMPORTANCE, "MHLJ, jump 0.1"]
    assert labels(replace(ring, forecasts=two)) == [IMPORTANCE]
    jumps = [replace(ring.forecasts[f"MHLJ, jump {jump}"], label=label) for label, jump in (("mine", 0.1), ("x", 0.5))]
    assert labels(replace(ring, forecasts={**two, **{one.label: one for one in jumps}})) == [IMPORTANCE, "mine"]
    unknown = replace(jumps[0], distance=np.nan)
    assert labels(replace(ring, forecasts={**two, "mine": unknown, "x": jumps[1]})) == [IMPORTANCE, "x"]


def test_the_legend_of_the_laws_is_beside_the_points(ring: Diagnosis, drawn: Callable[[Diagnosis], Figure]) -> None:
    figure = drawn(ring)
    figure.draw_without_rendering()
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left").startswith("Does"))
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= axes.get_window_extent().y1
    (title,) = (text for text in axes.get_children() if getattr(text, "get_text", str)().startswith("Does"))
    assert title.get_window_extent().y0 >= legend.get_window_extent().y1


# Where the nodes go.


def test_a_ring_is_recognized_whatever_its_numbers() -> None:
    order = np.random.default_rng(1).permutation(30)
    graph = fw.graphs.from_edges(list(zip(order, np.roll(order, 1), strict=True)))
    placed = layout.layout(graph, [4], np.ones(30))
    assert placed.kind == "ring"
    lengths = np.linalg.norm(np.diff(placed.positions[placed.pairs], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(placed.positions, axis=1), 1.0, atol=0.01)
    assert placed.positions[4] @ (0.0, 1.0) > 0.99  # the focus is at the top


def test_a_path_and_a_grid_keep_their_neighbours_near() -> None:
    for graph in (fw.graphs.path(15), fw.graphs.grid(4, 7)):
        placed = layout.layout(graph, [0], np.ones(graph.n))
        assert placed.whole
        lengths = np.linalg.norm(np.diff(placed.positions[placed.pairs], axis=1)[:, 0], axis=1)
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)
        assert len(placed.pairs) == graph.edges
    liar = fw.graphs.path(28)
    named = Graph(liar.indptr, liar.indices, name="grid(4, 7)")
    assert layout.kind_of(named) == "path"
    assert layout.kind_of(Graph(*_arrays(fw.graphs.ring(28)), name="grid(4, 7)")) == "ring"


def _arrays(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    return graph.indptr, graph.indices


def test_of_a_large_graph_the_nodes_around_the_focus_are_shown() -> None:
    weights = np.ones(3000)
    graph = fw.graphs.watts_strogatz(3000, 6, 0.1, seed=3)
    placed = layout.layout(graph, [10, 11], weights)
    assert not placed.whole
    assert placed.nodes.size == layout.NEARBY
    assert {10, 11, *graph.neighbours(10).tolist()} <= set(placed.nodes.tolist())
    for a, b in placed.nodes[placed.pairs]:
        assert b in graph.neighbours(int(a))
    near = layout.layout(fw.graphs.grid(60, 60), [1830], np.ones(3600))
    lengths = np.linalg.norm(np.diff(near.positions[near.pairs], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)
    star = fw.graphs.star(3000)
    weights[2000] = 9.0
    assert 2000 in layout.layout(star, [7], weights).nodes  # of the farthest, the most important


@pytest.mark.parametrize("focus", [range(1000, 1200), [*range(200), *range(1500, 1700)], [7, 1500]], ids=len)
def test_what_is_shown_is_connected(focus: list[int]) -> None:
    importance = np.random.default_rng(0).exponential(size=3000)
    graph = fw.graphs.watts_strogatz(3000, 4, 0.05, seed=1)
    placed = layout.layout(graph, focus, importance)  # refuses a part that is not connected
    assert placed.nodes.size == layout.NEARBY
    assert max(focus, key=importance.__getitem__) in placed.nodes
    assert len(focus) != 200 or set(placed.nodes.tolist()) <= set(focus)


def test_of_equally_near_nodes_the_most_important_are_shown() -> None:
    importance = np.random.default_rng(0).exponential(size=3000)
    graph, focus = fw.graphs.watts_strogatz(3000, 4, 0.05, seed=1), list(range(1000, 1140))
    best = np.lexsort((-importance, graph.distances(focus)))[: layout.NEARBY]
    assert layout.layout(graph, focus, importance).nodes.tolist() == sorted(best.tolist())

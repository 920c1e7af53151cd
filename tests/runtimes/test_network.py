"""A kernel as flat arrays: what is shared, and that no edge of positive probability is rounded away."""

import numpy as np
import pytest

import freewalk as fw
from freewalk import rng
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, FromMatrix, Metropolis, SimpleWalk
from freewalk.designs.local import choose, outcome
from freewalk.jobs import job
from freewalk.runtimes.step import moves_and_messages
from freewalk.runtimes.step.arrays import HOPS, LAW, RATIO, ROWS, ROWS_A_HOP, DrawKey, MoveWords
from freewalk.runtimes.step.inputs import flattened

GRAPHS = [fw.graphs.ring(12), fw.graphs.star(9), fw.graphs.barabasi_albert(40, 3, seed=2)]


def heavy(graph):
    """Importance over twelve orders of magnitude, with heavy nodes that are neighbours."""
    importance = np.ones(graph.n)
    importance[[0, 1]] = 1e12
    return importance


def lazy(graph):
    return 0.5 * np.eye(graph.n) + 0.5 * graph.adjacency().toarray() / graph.degrees[:, None]


def test_moves_point_to_their_ratios_matrices_and_laws():
    graph = fw.graphs.ring(6)
    importance = np.arange(1.0, 7.0)
    network = flattened(ClosedFormMHLJ(0.5, 0.5, 3).kernel(graph, importance))
    assert network.moves[:, HOPS].tolist() == [1, 1, 2, 3]
    assert network.moves[:, RATIO].tolist() == [0, -1, -1, -1]
    assert network.moves[:, ROWS].tolist() == [-1, 0, 1, 3]
    assert network.moves[:, ROWS_A_HOP].tolist() == [0, 0, 1, 1]
    assert network.moves[:, LAW].tolist() == [-1] * 4
    assert network.row_indptr.shape == (6, 7)
    assert np.array_equal(network.spans >> np.uint64(32), graph.indptr[:-1])
    assert np.array_equal(network.spans & np.uint64(0xFFFFFFFF), graph.degrees)
    assert np.array_equal(network.edges & np.uint64(0xFFFFFFFF), graph.indices)
    assert flattened(Centralized().kernel(graph)).moves[0, LAW] == 0


def test_corrected_jumps_share_one_ratio():
    network = flattened(MHLJ(0.5, 0.5, 3, corrected=True).kernel(fw.graphs.ring(6), np.arange(1.0, 7.0)))
    assert network.moves[:, RATIO].tolist() == [0, 0, 0, 0]
    assert network.ratios.shape == (1, 6)


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_rows_become_the_intervals_of_their_nodes(graph):
    """Rows of different length are made together, and are what `rng.ends` and `kernel.local` say one by one."""
    kernel = Metropolis(power=1, proposal=lazy(graph)).kernel(graph, heavy(graph))
    network = flattened(kernel)
    matrix = kernel.moves[0].rows[0]
    for node in range(graph.n):
        entries = slice(*network.row_indptr[0, node : node + 2])
        nodes, ends = kernel.local(node).moves[0].rows[0]
        assert np.array_equal(network.row_indices[entries], nodes)
        assert np.array_equal(network.row_ends[0, entries], ends)
        assert np.array_equal(ends, rng.ends(matrix.data[matrix.indptr[node] : matrix.indptr[node + 1]]))


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_rows_with_ratios_of_1e12_leave_every_edge_a_word(graph):
    for design in (
        Metropolis(power=1, proposal=lazy(graph)),
        FromMatrix(Metropolis(power=1).kernel(graph, heavy(graph)).matrix()),
    ):
        network = flattened(design.kernel(graph, heavy(graph)))
        for node in range(graph.n):
            first, last = network.row_indptr[0, node : node + 2]
            widths = np.diff(np.concatenate([[np.uint64(0)], network.row_ends[0, first:last]]))
            assert set(graph.neighbours(node)) <= set(network.row_indices[first:last])
            assert widths.min() >= 1
            expected = design.kernel(graph, heavy(graph)).moves[0].rows[0].data[first:last] * 2.0**64
            assert widths.astype(float) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
@pytest.mark.parametrize(
    "design", [Metropolis(power=1), MHLJ(1e-9, 0.5, 3), MHLJ(0.1, 0.5, 3, corrected=True)], ids=repr
)
def test_ratios_of_1e12_leave_every_edge_a_word(graph, design):
    """Each move owns words, its first word accepts whatever the ratio, and a hop reaches every neighbour."""
    kernel = design.kernel(graph, heavy(graph))
    network = flattened(kernel)
    ends = rng.ends(kernel.probabilities(0))[0]
    widths = np.diff(np.concatenate([[np.uint64(0)], ends])).astype(float)
    assert widths.min() >= 1
    assert network.ratios[0].max() / network.ratios[0].min() > 1e10
    for node in range(graph.n):
        for neighbour in graph.neighbours(node):
            start, end = network.ratios[0, [node, neighbour]]
            share = min(1.0, end / start) * widths[0]
            assert share >= 1
            assert rng.accepts(np.uint64(0), widths[0], start, end)
            assert rng.accepts(np.uint64(int(share * (1 - 1e-9))), widths[0], start, end)
            if share < 0.5 * widths[0]:
                assert not rng.accepts(np.uint64(int(share * (1 + 1e-9)) + 1), widths[0], start, end)


def test_a_law_may_leave_nodes_out():
    graph = fw.graphs.ring(4)
    kernel = fw.Kernel(graph, [fw.Move(1.0, law=[0, 1, 0, 1])], np.ones(4))
    data = fw.walk(kernel, steps=200, walks=20, start=1).data
    assert data.visits.sum("walk").values[[0, 2]].tolist() == [0, 0]
    assert (data.visits.sum("walk").values[[1, 3]] > 1000).all()


def test_a_kernel_without_ratios_rows_or_laws_has_empty_tables():
    network = flattened(SimpleWalk().kernel(fw.graphs.ring(4)))
    assert network.ratios.shape == (0, 4)
    assert network.row_indptr.shape == (0, 5)
    assert network.law_ends.shape == (0, 4)
    assert network.row_ends.shape == (1, 0)


def edges_of(ends):
    """Words at the edges of intervals, and beside them."""
    near = {int(end) + shift for end in ends for shift in (-1, 0, 1)} | {0, 1, 2**64 - 1}
    return [np.uint64(word) for word in sorted(near) if 0 <= word < 2**64]


@pytest.mark.parametrize(
    "probabilities",
    [[1.0], [0.5, 0.5], [0.25, 0.0, 0.75], [0.0, 0.3, 0.0, 0.7], [1e-18, 1.0, 0.0], [0.1] * 10],
    ids=repr,
)
def test_a_word_at_the_edge_of_an_interval_decides_alike_everywhere(probabilities):
    """The scalar functions that are compiled, and those of `reference`: no draw ever hits an edge by chance."""
    ends = rng.ends(probabilities)
    for draw in edges_of(ends):
        assert moves_and_messages.search(ends[None], 0, 0, ends.size, draw) == outcome(ends, draw)
        exact = [k for k in range(ends.size) if (int(ends[k - 1]) if k else 0) <= int(draw) < int(ends[k])]
        assert outcome(ends, draw) == (exact[0] if exact else ends.size - 1)


def test_a_word_at_the_edge_between_two_moves_chooses_alike_everywhere():
    graph = fw.graphs.ring(7)
    kernel = fw.Kernel(graph, [fw.Move(0.25, hops=0), fw.Move(0.5, hops=1), fw.Move(0.25, hops=2)], np.ones(7))
    network, ends = flattened(kernel), rng.ends(kernel.probabilities(0))
    words = np.uint64(1), np.uint64(2), np.uint64(3)
    for decision in edges_of(ends[0]):
        _, sent, _ = moves_and_messages.far_move(
            network, ends, 0, DrawKey(*words), np.uint32(0), MoveWords(decision, *words)
        )
        assert sent == kernel.moves[choose(ends[0], decision)[0]].hops


def first_word(seed, walk):
    return int(rng.word(np.uint64(seed), rng.MOVE, np.uint64(walk), np.uint64(0), np.uint64(0)))


@pytest.mark.parametrize("shift", [-(2.0**-35), -(2.0**-50), 0.0, 2.0**-50, 2.0**-35])
@pytest.mark.parametrize("walks", [1, 5, 64, 70])
def test_a_word_so_near_to_the_limit_that_its_upper_half_does_not_decide(walks, shift):
    """An edge keeps the upper half of its limit only, so that ratios are looked up when a word begins with it."""
    graph, seed, walk = fw.graphs.ring(5), 3, walks - 1
    word = first_word(seed, walk)
    ratio = np.full(5, word / 2.0**64 * (1 + shift))
    ratio[0] = 1.0
    kernel = fw.Kernel(graph, [fw.Move(1.0, hops=1, ratio=ratio)], np.ones(5))
    edge = flattened(kernel).edges[0]
    assert int(edge) >> 32 == word >> 32  # else this tests nothing
    ways = [
        fw.walk(kernel, steps=1, every=1, walks=walks, start=0, seed=seed, paths=walks, runtime=runtime)
        for runtime in ("reference", "cpu")
    ]
    moved = [record.data.messages.values[walk, -1] for record in ways]
    assert moved == [int(shift >= 0)] * 2
    assert ways[0].data.path.equals(ways[1].data.path)


@pytest.mark.parametrize("design", [Metropolis(power=1), SimpleWalk(), MHLJ(0.1, 0.5, 3)], ids=repr)
def test_near_moves_take_the_words_that_are_accepted(design):
    graph = fw.graphs.barabasi_albert(40, 3, seed=2)
    kernel = design.kernel(graph, np.random.default_rng(1).lognormal(0, 2, graph.n))
    network, width = flattened(kernel), rng.ends(kernel.probabilities(0))[0, 0]
    for node in range(graph.n):
        neighbour, first = graph.neighbours(node)[0], np.uint64(0)  # which picks the first edge
        limit = width - np.uint64(1)
        if network.ratios.size:
            accepted = rng.largest_accepted(float(width), *network.ratios[0, [[node], [neighbour]]])
            limit = min(accepted[0], limit)
        for decision in edges_of([limit, limit | np.uint64(2**32 - 1), limit & ~np.uint64(2**32 - 1)]):
            if decision < width:
                end, taken = moves_and_messages.near_move(network, width, np.uint32(node), decision, first)
                assert (bool(taken), int(end)) == (decision <= limit, neighbour if decision <= limit else node)


@pytest.mark.parametrize("threads", [1, 2])
def test_visits_beyond_what_a_narrow_counter_holds(monkeypatch, threads):
    kernel, runtime = SimpleWalk().kernel(fw.graphs.ring(3)), fw.runtimes.CPU(threads)
    by_walk = fw.walk(kernel, steps=1500, walks=1000, every=500, runtime=runtime).data.visits
    assert (by_walk.sum("walk") > threads * 2**16).all()
    monkeypatch.setattr(job, "_VISITS_BY_WALK", 0)
    summed = fw.walk(kernel, steps=1500, walks=1000, every=500, runtime=runtime).data.visits
    assert summed.values.ravel().tolist() == by_walk.sum("walk").values.tolist()

"""What every design must do, the user's too."""

import numpy as np
import pytest
from catalogue import DESIGNS, GRAPHS, designs_on, importance_of, kernel_of
from scipy.sparse.csgraph import connected_components

import freewalk as fw
from freewalk.errors import KernelError


@pytest.fixture(params=[(design, graph) for design in DESIGNS for graph in GRAPHS], ids=" on ".join, name="kernel")
def compiled_design(request):
    return kernel_of(*request.param)


def test_moves_are_a_valid_table(kernel):
    assert all(isinstance(move, fw.Move) for move in kernel.moves)
    assert sum(move.probability for move in kernel.moves) == pytest.approx(1, abs=1e-9)
    assert np.allclose(kernel.probabilities(np.arange(50)).sum(axis=1), 1, atol=1e-12)
    assert kernel.probabilities(np.arange(50)).min() >= 0


@pytest.mark.parametrize("step", [0, 1, 40])
def test_the_matrix_is_stochastic_and_irreducible(kernel, step):
    matrix = kernel.without_memory().matrix(step)
    assert matrix.shape == (kernel.graph.n, kernel.graph.n)
    assert matrix.data.min() >= 0
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    parts = kernel.graph.n if kernel.label == "Stay" else 1  # a token that never leaves its node
    assert connected_components(matrix, directed=True, connection="strong")[0] == parts


def test_the_target_is_a_positive_law_and_gives_the_weights(kernel):
    assert kernel.target.shape == (kernel.graph.n,)
    assert kernel.target.min() > 0
    assert kernel.target.sum() == pytest.approx(1, abs=1e-12)
    assert kernel.weights @ kernel.target == pytest.approx(1)


def arrays_in(thing):
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from arrays_in(part)
    elif hasattr(thing, "__dict__"):
        for part in vars(thing).values():
            yield from arrays_in(part)


def test_a_node_knows_its_share_and_no_more(kernel):
    """No array that a node holds is longer than its neighbourhood with itself, and none is a view of a longer one."""
    if not kernel.is_local:
        with pytest.raises(KernelError, match="no node can act on its own"):
            kernel.local(0)
        return
    for node in range(kernel.graph.n):
        local = kernel.local(node)
        degree = kernel.graph.degrees[node]
        assert np.array_equal(local.neighbours, kernel.graph.neighbours(node))
        assert local.weight == kernel.weights[node]
        assert len(local.moves) == len(kernel.moves)
        held = list(arrays_in(local))
        assert max(array.size for array in held) <= degree + 1
        owners = [array if array.base is None else array.base for array in held]
        assert max(owner.nbytes for owner in owners) <= 8 * (degree + 1)


def test_only_designs_that_draw_from_all_nodes_or_count_visits_are_not_local(kernel):
    assert kernel.is_local != kernel.label.startswith(("Centralized", "SelfRepellent", "HistoryDriven"))


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_can_be_used_again(name):
    """A design holds no state: two kernels from it are alike, and so are those from an equal importance."""
    graph = GRAPHS["random"]
    design = designs_on(graph)[name]
    first = design.kernel(graph, importance_of(graph))
    design.kernel(GRAPHS["random"], 2 * importance_of(graph))
    second = design.kernel(graph, list(importance_of(graph)))
    assert np.array_equal(first.without_memory().matrix().toarray(), second.without_memory().matrix().toarray())
    assert first.memory == second.memory
    assert np.array_equal(first.target, second.target)

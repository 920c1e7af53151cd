"""Trees of dataclasses and arrays as JSON and named arrays, and back."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

import freewalk as fw
from freewalk.archive import Packed, name_of, pack, unpack
from freewalk.errors import RecordError


@dataclass(frozen=True, eq=False)
class Leaf:
    """Some values."""

    values: np.ndarray
    name: str = "leaf"
    square: float = field(init=False, default=0.0)

    def __post_init__(self):
        object.__setattr__(self, "square", float(np.sum(self.values**2)))


@dataclass
class Tree:
    """Some leaves."""

    leaves: list
    depth: int | None = None


TYPES = {name_of(kind): kind for kind in (Leaf, Tree)}


def through_text(packed):
    """As a file keeps it."""
    return Packed(json.loads(json.dumps(packed.tree)), packed.arrays)


@pytest.mark.parametrize(
    "value", [None, True, 3, -2.5, 1e-300, 0.1, "text", "", [], {}, [1, [2, None]], {"a": {"b": 1}}]
)
def test_plain_values_come_back(value):
    assert unpack(through_text(pack(value)), {}) == value


def test_numbers_come_back_to_the_last_bit():
    values = np.random.default_rng(1).random(100).tolist()
    assert unpack(through_text(pack(values)), {}) == values


def test_floats_that_are_not_finite_come_back():
    values = unpack(through_text(pack([np.inf, -np.inf, np.nan])), {})
    assert values[:2] == [np.inf, -np.inf]
    assert np.isnan(values[2])


@pytest.mark.parametrize(("given", "expected"), [(np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True)])
def test_numpy_scalars_become_plain(given, expected):
    tree = pack(given).tree
    assert tree == expected
    assert type(tree) is type(expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_arrays_keep_their_type_and_shape(dtype, shape):
    array = np.ones(shape, dtype=dtype)
    back = unpack(through_text(pack({"x": array})), {})["x"]
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)
    assert back.shape == shape


def test_tuples_become_lists():
    assert unpack(through_text(pack((1, (2, 3)))), {}) == [1, [2, 3]]


def test_sparse_matrices_come_back():
    matrix = csr_array(np.array([[0.0, 0.1], [0.7, 0.0]]))
    back = unpack(through_text(pack([matrix])), {})[0]
    assert isinstance(back, csr_array)
    assert back.shape == (2, 2)
    assert np.array_equal(back.toarray(), matrix.toarray())


def test_dataclasses_inside_dataclasses_come_back():
    tree = Tree([Leaf(np.arange(3.0), "a"), Leaf(np.arange(4.0))], depth=2)
    packed = through_text(pack(tree))
    assert len(packed.arrays) == 2
    back = unpack(packed, TYPES)
    assert isinstance(back, Tree)
    assert back.depth == 2
    assert [leaf.name for leaf in back.leaves] == ["a", "leaf"]
    assert [leaf.square for leaf in back.leaves] == [5.0, 14.0]  # made anew, not stored
    assert np.array_equal(back.leaves[1].values, np.arange(4.0))


def test_a_kernel_comes_back_to_the_last_bit():
    graph = fw.graphs.star(20)
    importance = np.random.default_rng(3).random(20) + 0.1
    known = {"Kernel": fw.Kernel, "Graph": fw.Graph, "Move": fw.Move, "Inverse": fw.schedules.Inverse}
    for design in (
        fw.designs.Decaying(fw.designs.MHLJ(0.3, 0.5, 3, corrected=True), fw.schedules.Inverse(1.0, scale=10)),
        fw.designs.ClosedFormMHLJ(0.3, 0.5, 3),
        fw.designs.Centralized(power=1),
    ):
        kernel = design.kernel(graph, importance)
        back = unpack(through_text(pack(kernel)), known)
        assert back.graph == kernel.graph
        assert back.graph.name == "star(20)"
        assert back.label == kernel.label
        assert np.array_equal(back.target, kernel.target)
        assert np.array_equal(back.weights, kernel.weights)
        for step in (0, 25):
            assert np.array_equal(back.matrix(step).toarray(), kernel.matrix(step).toarray())


class Ordinary:
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Ordinary(), "Ordinary"),
        ({1, 2}, "set"),
        (1j, "complex"),
        (lambda x: x, "function"),
        (Tree, "type"),
        (b"bytes", "bytes"),
        (csr_matrix(np.eye(2)), "csr_matrix"),
    ],
)
def test_what_cannot_be_stored_is_named(value, name):
    with pytest.raises(
        RecordError, match=f"archive: cannot store a {name}; expected dataclasses, arrays and plain values"
    ):
        pack(Tree([value]))


def test_only_the_classes_that_are_given_are_ever_made():
    packed = pack(Tree([Leaf(np.arange(3.0))]))
    with pytest.raises(RecordError, match=r"your own class 'Leaf'; pass it: fw.resume\(record, types=\[Leaf\]\)"):
        unpack(packed, {name_of(Tree): Tree})
    with pytest.raises(RecordError, match=r"your own class 'Popen'"):
        unpack(Packed({"type": "Popen", "fields": {"args": "true"}}), {})

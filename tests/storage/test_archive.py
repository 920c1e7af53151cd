"""Trees of dataclasses and arrays as JSON and named arrays, and back."""

import json
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.storage.archive import Packed, name_of, pack, plain, same, unpack


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
    assert [leaf.square for leaf in back.leaves] == [5.0, 14.0]  # recomputed, not stored
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


def test_an_array_that_occurs_several_times_is_stored_once():
    values = np.arange(3.0)
    matrix = csr_array(np.eye(2))
    packed = pack([Leaf(values, "a"), Leaf(values, "b"), {"x": values}, matrix, matrix])
    assert len(packed.arrays) == 4
    assert len(pack([np.arange(3.0), np.arange(3.0)]).arrays) == 2  # alike is not the same
    back = unpack(through_text(packed), TYPES)
    assert [leaf.name for leaf in back[:2]] == ["a", "b"]
    assert back[0].values is back[1].values


def test_what_is_stored_elsewhere_is_named_and_put_back():
    leaf = Leaf(np.arange(3.0))
    packed = pack([Tree([leaf]), leaf], {"leaf": leaf})
    assert packed.arrays == {}
    back = unpack(packed, TYPES)
    assert back[0].leaves[0] is leaf
    assert back[1] is leaf
    with pytest.raises(RecordError, match=r"does not contain the objective, which is code; pass fw.resume"):
        unpack(Packed(packed.tree), TYPES)


@pytest.mark.parametrize("texts", [["näme"] * 2000, [""] * 2000, ["a\0b"] * 2000, ["\ud800"] * 2000, ["a", 1] * 1000])
def test_many_texts_come_back(texts):
    packed = pack(texts)
    assert len(packed.arrays) == (1 if "\0" not in str(texts[0]) and texts[1] != 1 else 0)
    assert unpack(through_text(packed), {}) == texts


@pytest.mark.parametrize("key", ["array", "csr", "texts", "given", "type"])
def test_a_mapping_that_would_be_taken_for_something_else_is_not_stored(key):
    with pytest.raises(RecordError, match=rf"cannot store a mapping with the keys \['{key}'\]"):
        pack(Tree([{key: 1}]))


def test_plain_values_have_no_arrays_inside():
    assert plain({"a": (np.float32(0.5), [np.arange(2)]), 3: None}) == {"a": [0.5, [[0, 1]]], "3": None}
    for value in (1j, np.complex128(1j), object(), {"a": {1}}):
        with pytest.raises(RecordError, match=r"archive: cannot store a"):
            plain(value)


@dataclass
class Newer:
    """It had a field `old` once."""

    values: list
    formerly: ClassVar = {"old": None, "numbers": "values"}


def test_a_field_that_a_class_had_formerly_is_left_out_or_renamed():
    tree = {"type": "own Newer", "fields": {"values": [1], "old": {"array": "gone"}}}
    assert unpack(Packed(tree), {"own Newer": Newer}) == Newer([1])
    renamed = {"type": "own Newer", "fields": {"numbers": [2]}}
    assert unpack(Packed(renamed), {"own Newer": Newer}) == Newer([2])
    tree["fields"]["other"] = 1
    with pytest.raises(RecordError, match=r"record: field = 'other', expected the fields of own Newer"):
        unpack(Packed(tree), {"own Newer": Newer})


def csr(data=(1.0, 1.0), indices=(0, 1), indptr=(0, 1, 2), shape=(2, 2)):
    arrays = {"d": np.array(data), "i": np.array(indices), "p": np.array(indptr)}
    return Packed({"csr": ["d", "i", "p"], "shape": shape}, arrays)


MALFORMED = {
    "no fields": Packed({"type": "own Tree"}),
    "a missing field": Packed({"type": "own Tree", "fields": {}}),
    "fields a list": Packed({"type": "own Tree", "fields": []}),
    "a class that is a list": Packed({"type": [], "fields": {}}),
    "a class that is a number": Packed({"type": 3, "fields": {}}),
    "a missing array": Packed({"array": "a0"}),
    "an array that is a number": Packed({"array": 3}),
    "an array that is a list": Packed([{"array": []}]),
    "something stored elsewhere": Packed({"given": {}}),
    "texts that are none": Packed({"texts": "a0"}, {"a0": np.array([255, 255], dtype=np.uint8)}),
    "a constructor that fails": Packed({"type": "own Leaf", "fields": {"values": "three"}}),
    "a matrix of no parts": Packed({"csr": [], "shape": [2, 2]}),
    "a matrix of a number": Packed({"csr": 3, "shape": [2, 2]}),
    "a matrix without a shape": csr(shape=None),
    "a matrix with three dimensions": csr(shape=[2, 2, 2]),
    "a matrix below 0": csr(shape=[-2, 2]),
    "a matrix without end": csr(shape=[10**30, 2]),
    "indices beyond": csr(indices=(0, 2)),
    "indices below 0": csr(indices=(0, -1)),
    "indices of floats": csr(indices=(0.0, 1.0)),
    "too few indices": csr(indices=(0,)),
    "indptr beyond": csr(indptr=(0, 1, 3)),
    "indptr falls": csr(indptr=(0, 2, 1)),
    "indptr too short": csr(indptr=(0, 2)),
    "entries of texts": csr(data=("a", "b")),
    "entries in two dimensions": csr(data=((1.0,), (1.0,))),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_trees_that_pack_never_makes(name):
    with pytest.raises(RecordError):
        unpack(MALFORMED[name], TYPES)


def test_a_tree_that_is_too_deep():
    tree = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(RecordError, match=r"does not fit together \(RecursionError"):
        unpack(Packed(tree), {})


def test_only_the_classes_that_are_given_are_ever_made():
    packed = pack(Tree([Leaf(np.arange(3.0))]))
    with pytest.raises(RecordError, match=r"your own class 'Leaf'; pass it: fw.resume\(record, types=\[Leaf\]\)"):
        unpack(packed, {name_of(Tree): Tree})
    with pytest.raises(RecordError, match=r"your own class 'Popen'"):
        unpack(Packed({"type": "Popen", "fields": {"args": "true"}}), {})


def test_trees_that_are_stored_alike():
    assert same({"nodes": np.arange(2)}, {"nodes": np.arange(2)})
    assert not same([np.zeros(2)], [np.ones(2)])
    assert not same(print, print)  # which cannot be stored

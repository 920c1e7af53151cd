"""The samples of an objective and the nodes that own them, checked on input."""

from collections import Counter
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from freewalk.blocks import blocks
from freewalk.checks import LARGEST, Checks, Floats, Ints, guess
from freewalk.errors import ProblemError
from freewalk.graphs import Graph
from freewalk.storage.mapped import adopted

check = Checks(ProblemError)

_LONGEST = 1e150  # a feature or a target; the squares of larger ones overflow
_NODE = 100.0  # maximum number of bytes that a list entry takes while it is looked up
_SHOWN = 5
_BLOCK = 2**21  # floats of the nodes that are solved at once: 16 MB


def table(who: str, features: Any, targets: Any) -> tuple[Floats, Floats]:
    """Features (N, d) and targets (N,) that belong together: copies, unless they are read-only."""
    remedy = "give one row of finite numbers per sample, features.reshape(-1, 1) for a single feature"
    rows = check.floats(who, "features", adopted(features), (None, None), remedy=remedy, keep=True)
    if rows.size == 0:
        raise ProblemError(f"{who}: features has shape {rows.shape}, expected at least one sample and one feature")
    remedy = "give one finite number for each row of features, targets.reshape(-1) for a column"
    answers = check.floats(who, "targets", adopted(targets), (len(rows),), remedy=remedy, keep=True)
    for name, array in (("features", rows), ("targets", answers)):
        longest = max(float(array.max()), -float(array.min()))
        if longest > _LONGEST:
            expected = f"at most {_LONGEST:g}, whose squares fit into float64; rescale them"
            raise ProblemError(f"{who}: {name} holds numbers up to {longest:g} in size, expected {expected}")
    return rows, answers


@dataclass(frozen=True)
class Nodes:
    """The nodes that a problem may refer to: their number, if known, and their names."""

    who: str
    n: int | None
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, who: str, graph: Any) -> "Nodes":
        """The nodes of a graph or of a list of names; without either, numbers with an unknown maximum."""
        if graph is None:
            return cls(who, None)
        if issubclass(type(graph), Graph):
            return cls(who, graph.n, graph.node_names)
        expected = "a graph, or a list with the names of its nodes in order"
        given = _listed(who, "graph", graph, expected)
        fine = (isinstance(one, (str, int, np.integer)) and not isinstance(one, bool) for one in given)
        if not len(given) or not all(fine):
            raise check.fail(who, "graph", graph, expected)
        names = tuple(check.text(who, "a name in graph", str(one)) for one in given)
        if len(set(names)) != len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise ProblemError(f"{who}: graph names {twice!r} twice, expected different names")
        return cls(who, len(names), names)

    def numbers(self, name: str, values: Any) -> Ints:
        """The numbers of nodes given by name; or by number, if no name is a number."""
        given = _listed(self.who, name, adopted(values), "a list of nodes")
        if self.names is None or self._by_number(given):
            others = "or name them together with graph=" if self.n is None else "they have no names here"
            others = others if self.names is None else f"or give their names, such as {self.names[0]!r}"
            remedy = f"number the nodes from 0, {others}"
            high = LARGEST if self.n is None else self.n - 1
            return check.integers(self.who, name, given, (None,), low=0, high=high, remedy=remedy, keep=np.int64)
        places = {known: number for number, known in enumerate(self.names)}
        found = [places.get(str(one), places.get(_whole(one), -1)) for one in given]
        if -1 in found:
            place = found.index(-1)
            remedy = guess(given[place], self.names[:1000]) or f"such as {self.names[0]!r}"
            raise check.fail(self.who, f"{name}[{place}]", given[place], f"one of {self.n} names of nodes", remedy)
        return np.array(found, dtype=np.int64)

    def _by_number(self, given: Any) -> bool:
        """Whether whole numbers are given that cannot be meant as names."""
        if isinstance(given, np.ndarray):
            whole = given.dtype.kind in "iu"
        else:
            whole = all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in given)
        return whole and len(given) > 0 and not any(map(_is_number, self.names or ()))

    def members(self, name: str, values: Any) -> tuple[int, ...]:
        """Some of the nodes, sorted and without duplicates."""
        return tuple(int(node) for node in np.unique(self.numbers(name, values)))

    def owners(self, values: Any, count: int) -> Ints:
        """The node of each of `count` samples; None means that every sample is its own node, in order."""
        if values is None:
            if self.n is not None and count > self.n:
                expected = f"at most one for each of {self.n} nodes; pass nodes= to assign each row to a node"
                raise ProblemError(f"{self.who}: features has {count} rows, expected {expected}")
            return np.arange(count, dtype=np.int64)
        if isinstance(values, Set):
            raise check.fail(self.who, "nodes", values, "a list, since a set has no order")
        array = self.numbers("nodes", values)
        if array.shape != (count,):
            expected = f"({count},), the node of each row of features"
            raise ProblemError(f"{self.who}: nodes has shape {array.shape}, expected {expected}")
        return array

    def relays(self, values: Any, owners: Ints) -> "tuple[Nodes, tuple[int, ...]]":
        """All nodes, now that the owners of the samples are known, and the relays among them."""
        owned = owners[np.append(True, np.diff(owners) > 0)]
        if isinstance(values, (bool, np.bool_)) and values:
            if self.n is None:
                expected = "graph= with it, which knows the nodes without data"
                raise check.fail(self.who, "relays", values, expected, "or list the relays")
            return self, tuple(np.setdiff1d(np.arange(self.n), owned, assume_unique=True).tolist())
        relays = () if isinstance(values, (bool, np.bool_)) else self.members("relays", values)
        busy = np.intersect1d(relays, owned, assume_unique=True) if relays else np.empty(0)
        if busy.size:
            named = f"relays names node {self._called(busy[0])}, which has data"
            raise ProblemError(f"{self.who}: {named}, expected nodes without any")
        n = max(int(owned[-1]), *relays, -1) + 1 if self.n is None else self.n
        missing = n - len(owned) - len(relays)
        if missing:
            # Of this many first numbers, at least five are not nodes: a stray huge number costs no memory.
            first = np.arange(min(n, len(owned) + len(relays) + _SHOWN))
            bare = np.setdiff1d(np.setdiff1d(first, owned), relays)[:_SHOWN]
            names = ", ".join(map(self._called, bare)) + (", ..." if missing > _SHOWN else "")
            both, other = (" and graph=", ", or renumber those that have data") if self.n is None else ("", "")
            given = f"no data at {missing} of {n} nodes ({names}), expected a sample or more at every node"
            remedy = f"pass relays=True{both} if these only forward the model{other}"
            raise ProblemError(f"{self.who}: {given}; {remedy}")
        return replace(self, n=n), relays

    def _called(self, node: Any) -> str:
        return str(int(node)) if self.names is None else self.names[int(node)]


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _whole(node: Any) -> str:
    """The name 3 of a node given as 3.0: pandas converts a column with gaps to floats."""
    return str(int(node)) if isinstance(node, float) and node.is_integer() else ""


def _listed(who: str, name: str, values: Any, expected: str) -> Any:
    """A finite one-dimensional sequence: a list, unless it is an array of numbers."""
    try:
        fine = isinstance(values, Collection) and not isinstance(values, (str, bytes, Mapping))
        size = len(values) if fine and getattr(values, "ndim", 1) == 1 else -1
    except (TypeError, OverflowError):
        size = -1
    if size < 0:
        raise check.fail(who, name, values, expected)
    if getattr(getattr(values, "dtype", None), "kind", "O") in ("b", "i", "u", "f"):
        return np.asanyarray(values)
    check.room(who, name, _NODE * size)
    return values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind == "U" else list(values)


def by_node(values: Floats, offsets: Ints) -> Floats:
    """Sum rows of numbers, one per sample, over the samples of each node; 0 at a relay."""
    owning = np.flatnonzero(np.diff(offsets))
    result = np.zeros((len(offsets) - 1, *values.shape[1:]))
    result[owning] = np.add.reduceat(values, offsets[owning], axis=0)
    return result


def largest_eigenvalues(features: Floats, offsets: Ints | None, block: int = _BLOCK) -> Floats:
    """Compute λ_max(A_vᵀA_v / m_v) for every node v, 0 without samples; None for offsets means one sample per node.

    The nodes are grouped by their number of samples m, and each group is solved at once, in blocks, from the smaller of
    A_vᵀA_v and A_vA_vᵀ, which share their largest eigenvalue.
    """
    dim = features.shape[1]
    if offsets is None:
        result = np.empty(len(features))
        for some in blocks(len(features), dim, block):
            rows = features[some][:, None]
            result[some] = np.einsum("vsi,vsi->v", rows, rows)
        return result
    counts = np.diff(offsets)
    result = np.zeros(len(counts))
    for count in np.unique(counts[counts > 0]):
        nodes = np.flatnonzero(counts == count)
        side = min(int(count), dim)
        for some in blocks(len(nodes), int(count) * dim + side * side, block):
            part = nodes[some]
            rows = features[offsets[part, None] + np.arange(count)]
            if count == 1:
                result[part] = np.einsum("vsi,vsi->v", rows, rows)
            else:
                turned = rows.transpose(0, 2, 1)
                gram = rows @ turned if count <= dim else turned @ rows
                result[part] = np.linalg.eigvalsh(gram)[:, -1] / count
    return result

"""Samples from files: CSV, Parquet and .npz. Errors give the line and the column."""

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, show, suggestion
from freewalk.errors import FreewalkError, MissingExtra, SpecError
from freewalk.graphs import Graph
from freewalk.storage.files import regular

check = Checks(SpecError)
_WHOLE = re.compile(r"(-?[0-9]{1,18})(\.0*)?")  # programs that only have floats write 3 as 3.0

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")  # a number with a decimal comma


class Samples(NamedTuple):
    """Samples as objectives take them."""

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    nodes: NDArray[Any]


def read_samples(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    node: str | None = None,
    features: str | Sequence[str] | None = None,
    graph: Graph | None = None,
) -> Samples:
    r"""Read samples from a file: CSV with a header, Parquet (`.parquet`) or arrays (`.npz`).

    The result is for `LeastSquares(*samples, graph=graph)`: nodes are strings, or integers if all of them are and the
    graph has no names. An error names the line and the column.

    Parameters
    ----------
    path
        The file. Parquet needs pyarrow: pip install ".[parquet]".
    target
        The column of targets or labels. Default: "target", or in a `.npz` file the array "targets".
    node
        The column with the node that holds a sample. Default: "node", or in a `.npz` file the array "nodes".
    features
        The columns of features. Default: all other numeric columns, or in a `.npz` file the array "features".
    graph
        The graph that has the nodes; with it, an unknown node is reported with its line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "flats.csv")
    ...     _ = file.write_text("node,area,price\nOslo,1.5,3\nRome,2,4\n")
    ...     read_samples(file, target="price")
    Samples(features=array([[1.5], [2. ]]), targets=array([3., 4.]), nodes=array(['Oslo', 'Rome'], dtype='<U4'))
    """
    file = check.path("read_samples", "path", path)
    listed = [features] if isinstance(features, str) or features is None else features
    named = check.items("read_samples", "features", listed, "names of columns")
    for key, value in (("target", target), ("node", node), *(("features", one) for one in named)):
        if value is not None:
            check.text("read_samples", key, value)
    table = _read(file)
    called = table.file
    plural = "s" if table.what == "array" else ""
    answers, owners = target or f"target{plural}", node or f"node{plural}"
    targets, words = table.numbers(answers, "target"), table.texts(owners, "node")
    if features is not None:
        chosen = named
    elif table.what == "array":
        chosen = ["features"]
    else:
        chosen = [name for name in table.columns if name not in (answers, owners) and table.holds_numbers(name)]
    if not chosen:
        raise SpecError(f"{called}: has no column of features; expected one or more besides {answers!r} and {owners!r}")
    if answers in chosen:
        raise SpecError(f"{called}: {answers!r} is among the features and is the target, expected one or the other")
    columns = [table.numbers(name, "features", wide=True) for name in chosen]
    for name, rows in zip([*chosen, owners], [*map(len, columns), len(words)], strict=True):
        if rows != len(targets):
            raise SpecError(f"{called}: {name} has {rows} rows and {answers} {len(targets)}, expected the same number")
    return Samples(np.column_stack(columns), targets, _nodes(table, words, graph))


def _nodes(table: "_Table", words: list[str], graph: Graph | None) -> NDArray[Any]:
    """The node of each sample; with a graph, it must exist there."""
    names = None if graph is None else graph.node_names
    known = set(names or ())
    wholes = [None if word in known else _WHOLE.fullmatch(word) for word in words]
    nodes = [word if found is None else int(found[1]) for word, found in zip(words, wholes, strict=True)]
    for node in dict.fromkeys(nodes):
        try:
            if graph is not None:
                graph.node(node)
        except FreewalkError as error:
            raise SpecError(f"{table.place(nodes.index(node))}: {error}") from error
    if names is None and all(isinstance(node, int) for node in nodes):
        return np.array(nodes, dtype=np.int64)
    return np.array([str(node) for node in nodes])


@dataclass(frozen=True)
class _Table:
    """Cells by column, and the line of each row if the file has lines."""

    file: str
    what: str
    columns: Mapping[str, Sequence[Any] | NDArray[Any]]
    lines: Sequence[int] = ()

    def place(self, row: int) -> str:
        return f"{self.file}, line {self.lines[row]}" if self.lines else f"{self.file}, row {row + 1}"

    def cells(self, name: str, key: str, kinds: str, expected: str, wide: bool = False) -> Any:
        """The cells of a column; an array must be of one of the given kinds."""
        if name not in self.columns:
            hint = suggestion(name, self.columns, f"its {self.what}s are")
            raise SpecError(f"{self.file}: has no {self.what} {show(name)}; {hint} (choose it with {key} = ...)")
        if not len(self.columns[name]):
            raise SpecError(f"{self.file}: has no rows, expected one for each sample")
        cells = self.columns[name]
        if isinstance(cells, np.ndarray) and (cells.dtype.kind not in kinds or cells.ndim > 1 + wide):
            raise SpecError(f"{self.file}: {name} is {show(cells)}, expected {expected}")
        return cells

    def numbers(self, name: str, key: str, wide: bool = False) -> NDArray[np.float64]:
        """A column of finite numbers; `wide`: an array may have several columns."""
        cells = self.cells(name, key, "biuf", "one finite number per sample", wide)
        try:
            values = np.array(cells, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array([_number(cell) for cell in cells])
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            found = "is empty" if _is_empty(cells[row]) else f"is {show(cells[row])}"
            raise SpecError(f"{self.place(row)}: {name} {found}, expected a finite number")
        return values

    def texts(self, name: str, key: str) -> list[str]:
        """A column of names or numbers of nodes."""
        cells, words = self.cells(name, key, "iufU", "the name of a node for each sample"), []
        for row, cell in enumerate(cells.tolist() if isinstance(cells, np.ndarray) else cells):
            if _is_empty(cell):
                raise SpecError(f"{self.place(row)}: {name} is empty, expected the name or the number of a node")
            words.append(str(cell).strip())
        return words

    def holds_numbers(self, name: str) -> bool:
        """Whether a column is numeric: a column without numbers that is not empty holds text."""
        if not name:
            number = list(self.columns).index(name) + 1
            raise SpecError(
                f"{self.file}: column {number} has no name, expected one for each in the first line (pandas writes its "
                "index there unless told index=False), or name the features: features = [...]"
            )
        cells = self.columns[name]
        comma = next((cell for cell in cells if isinstance(cell, str) and _COMMA.fullmatch(cell.strip())), None)
        if comma is not None:
            place = self.place(list(cells).index(comma))
            raise SpecError(f"{place}: {name} is {show(comma)}, expected a number with a point, as in 1.5")
        return bool(np.isfinite(list(map(_number, cells))).any()) or all(map(_is_empty, cells))


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return float("nan")


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def _read(file: Path) -> _Table:
    called = str(file)
    if not called.isprintable() or len(called) > 300:  # the name comes from a spec that others may have written
        called = show(called)
    readers = {".npz": _read_arrays, ".parquet": _read_parquet, ".pq": _read_parquet}
    try:
        return readers.get(file.suffix.lower(), _read_csv)(regular(file), called)
    except FreewalkError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise SpecError(f"{called}: cannot be read ({reason}), expected a CSV, Parquet or .npz file") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{called}: is not UTF-8 text; save it again in this encoding") from error
    except Exception as error:  # each format fails in its own ways
        words = " ".join(str(error).split())[:200]
        words = words if words.isprintable() else show(words)
        raise SpecError(f"{called}: is not a {file.suffix or 'CSV'} file that can be read ({words})") from error


def _read_csv(file: Path, called: str) -> _Table:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        first = stream.readline()
        stream.seek(0)
        reader = csv.reader(stream, delimiter=max(",;\t", key=first.count), skipinitialspace=True, strict=True)
        header = [cell.strip() for cell in next(reader, [])]
        twice = [name for name in header if header.count(name) > 1]
        if not header or twice:
            found = f"names {show(twice[0])} twice" if twice else "is empty"
            raise SpecError(f"{called}: the first line {found}, expected the names of the columns")
        rows: dict[int, list[str]] = {}  # by their line
        for row in reader:
            if row and len(row) != len(header):
                place = f"{called}, line {reader.line_num}"
                raise SpecError(f"{place}: has {len(row)} cells, expected {len(header)} as in the first line")
            if row:
                rows[reader.line_num] = row
    columns = zip(*rows.values(), strict=True) if rows else ([] for _ in header)
    return _Table(called, "column", dict(zip(header, columns, strict=True)), list(rows))


def _read_parquet(file: Path, called: str) -> _Table:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    table = parquet.read_table(file)
    return _Table(called, "column", {name: table[name].to_pylist() for name in table.column_names})


def _read_arrays(file: Path, called: str) -> _Table:
    with np.load(file, allow_pickle=False) as arrays:
        found = {}
        for name in arrays.files:
            try:
                found[name] = np.atleast_1d(arrays[name])
            except ValueError as error:  # a pickle, which is not loaded
                expected = "numbers or strings; save the names of nodes with .astype(str)"
                raise SpecError(f"{called}: {name} holds Python objects or is broken, expected {expected}") from error
    return _Table(called, "array", found)

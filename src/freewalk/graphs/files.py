"""Graphs from files: edge lists, GraphML, GML, and files written by `Graph.save`."""

import csv
import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import show
from freewalk.errors import GraphError
from freewalk.graphs import mapped
from freewalk.graphs.conversion import distinct, names_of, networkx_graph
from freewalk.graphs.edges import by_size, end_columns, first_seen, from_pairs, is_whole, unless_numbers
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import check, check_size
from freewalk.storage.files import regular
from freewalk.storage.mapped import is_ours

_LONGEST = 100_000  # characters per line: a file that is not text need not have lines
_SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma", "": "blanks"}
_NOT_TEXT = re.compile("[\0-\x08\x0e-\x1f\x7f\ufffd]")


def read(path: str | os.PathLike[str], *, verify: bool = True) -> Graph:
    r"""Read a graph from a file.

    A file written by `Graph.save`, recognized by its first bytes, is mapped into memory: it stays on disk and is shared
    by all processes on the machine.

    Files ending in `.graphml` or `.gml` are read by networkx and converted as in `from_networkx`: nodes in file order,
    directions ignored, positions kept. Nodes are named by their `label` if all labels are different, otherwise by their
    id.

    Any other file is an edge list: UTF-8 text with two nodes per line, separated by blanks, commas, semicolons or tabs
    (the first line decides which). Names that contain a separator are in double quotes. `#` starts a comment, and blank
    lines are skipped. Further columns, such as a weight, are ignored. The first line is a header if it contains the
    words `source` and `target` (or `src, dst`; `from, to`; `u, v`; `node1, node2`), which then determine the columns to
    read; or if all other lines contain whole numbers and it does not. Self-loops are dropped and duplicate edges, in
    either direction, are merged.

    In an edge list, nodes that are the whole numbers 0 to n - 1 without gaps keep these numbers and have no names. All
    others become names, numbered in order of first appearance or, if all are whole numbers, in numerical order.

    Parameters
    ----------
    path
        The file. Its name becomes the name of the graph, unless the file contains one.
    verify
        Whether to read a mapped file once, to compare its checksums and to check that all edges are within the graph:
        about one second per gigabyte if it is in the page cache. Without it the file opens immediately; use that for
        your own files only, since an analysis of a damaged graph may crash. The header and the size are always checked.

    Raises
    ------
    GraphError
        If the file cannot be read or parsed (the message names the line), there are fewer than two nodes, or the graph
        is disconnected.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "roads.csv"
    ...     _ = file.write_text("from,to,km\nBerlin,Hamburg,289\nHamburg,Kiel,97\n")
    ...     graph = read(file)
    >>> graph
    Graph(roads.csv: 3 nodes, 2 edges)
    >>> graph.node_names
    ('Berlin', 'Hamburg', 'Kiel')
    """
    file = check.path("read", "path", path)
    check.flag("read", "verify", verify)
    try:
        if is_ours(regular(file)):
            return Graph._as_saved(*mapped.opened(file, verify=verify))
        if file.suffix.lower() in (".graphml", ".gml"):
            return _read_markup(file)
        # Bytes that are not UTF-8 are found, with their line, by the replacement character.
        with file.open(encoding="utf-8-sig", errors="replace") as stream:
            names, ends = first_seen(chain.from_iterable(_edges(file, stream)))
    except OSError as error:
        expected = "an edge list, GraphML, GML or a file written by Graph.save"
        why = error.strerror or error
        raise GraphError(f"read: {_shown(file)}: cannot be read ({why}), expected {expected}") from error
    header = _is_header(names, ends)
    if header:
        words = len(set(ends[:2].tolist()))
        names, ends = names[words:], ends[2:] - words
    ordered, ends = by_size(names, ends)
    check_size(_title(file), len(ordered), len(ends) / 2)
    try:
        return from_pairs(ends[0::2], ends[1::2], len(ordered), _title(file), unless_numbers(ordered))
    except GraphError as error:
        if not header and len(names) > 2 and ends.size > 2 and not np.isin(ends[2:], ends[:2]).any():
            first, second = (ordered[end] for end in ends[:2])
            remedy = f"if {show(first)} and {show(second)} in the first line are a header"
            raise GraphError(f"{error}; or, {remedy}, call these columns source and target") from error
        raise


def _edges(file: Path, stream: TextIO) -> Iterator[tuple[str, str]]:
    """Yield the two words of each line that are the ends of an edge, including those of a header."""
    lines = _lines(file, stream)
    head = next(lines, None)
    if head is None:
        return
    unquoted = re.sub('"[^"]*"', "", head[1])
    separator = next(separator for separator in _SEPARATORS if separator in unquoted)
    first, second = end_columns(_split(head[1], separator)) or (0, 1)
    last = max(first, second)
    for number, content in chain([head], lines):
        words = _split(content, separator)
        if len(words) > last and words[first] and words[second]:
            yield words[first], words[second]
        elif any(words):
            expected = f"two nodes, separated by {_SEPARATORS[separator]} as in the first line"
            raise GraphError(f"read: {_shown(file)}, line {number}: got {show(content)}, expected {expected}")


def _lines(file: Path, stream: TextIO) -> Iterator[tuple[int, str]]:
    """Yield the content of the lines with their numbers, without comments and the attributes that networkx writes."""
    for number, line in enumerate(iter(partial(stream.readline, _LONGEST), ""), start=1):
        if len(line) >= _LONGEST or _NOT_TEXT.search(line):
            raise GraphError(f"read: {_shown(file)}, line {number}: got {show(line)}, expected lines of text in UTF-8")
        content = line.rstrip("\n")
        if "#" in content:
            content = re.sub(r'^((?:"[^"]*"|[^"#])*)#.*', r"\1", content)
        if "{" in content and content.rstrip().endswith("}"):
            content = re.split(r"\s\{", content, maxsplit=1)[0]
        if content and not content.isspace():
            yield number, content


def _split(content: str, separator: str) -> list[str]:
    words = content.split(separator or None)
    if '"' in content:
        words = next(csv.reader([content.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    return [word.strip() for word in words]


def _is_header(names: list[str], ends: NDArray[np.int64]) -> bool:
    """Whether the first edge is the header of the table; never if its words occur again."""
    if not names:
        return False
    first = [names[end] for end in ends[:2]]
    others = [name for name in names if name not in first]
    if np.any(ends[2:] <= ends[1]):
        return False
    only_numbers = bool(others) and all(map(is_whole, others)) and not any(map(is_whole, first))
    return only_numbers or end_columns(first) is not None


def _read_markup(file: Path) -> Graph:
    from xml.etree.ElementTree import ParseError

    import networkx

    is_gml = file.suffix.lower() == ".gml"
    try:
        graph = networkx.read_gml(file, label="id") if is_gml else networkx.read_graphml(file)
    except ParseError as error:
        raise GraphError(f"read: {_shown(file)}, line {error.position[0]}: not well-formed XML ({error})") from error
    except OSError:
        raise
    except Exception as error:  # networkx raises many kinds
        kind = "GML" if is_gml else "GraphML"
        raise GraphError(f"read: {_shown(file)}: not {kind} that networkx can read ({show(str(error))})") from error
    labels = tuple(str(label) for _, label in graph.nodes(data="label", default=""))
    names = labels if distinct(labels) else names_of(_title(file), graph)
    return networkx_graph(graph, _title(file), unless_numbers(names))


def _title(file: Path) -> str:
    """Return the name of a file as text, even if its characters are in no known encoding."""
    return file.name.encode(errors="replace").decode()


def _shown(file: Path) -> str:
    return str(file).encode(errors="replace").decode()[-200:]

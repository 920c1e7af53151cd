"""Graphs from files: lists of edges and GraphML."""

import os
from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import GraphError
from freewalk.graphs.convert import edge_graph, networkx_graph
from freewalk.graphs.graph import Graph


def read(path: str | os.PathLike[str]) -> Graph:
    """Read the graph in a file.

    A name that ends in `.graphml` is GraphML, read by networkx and converted as `from_networkx` does: nodes
    in the order of the file, direction ignored. Any other file is a list of edges: text, two whole numbers
    from 0 a line, separated by blanks; `#` starts a comment, blank lines are skipped. Self-loops are dropped
    and duplicate edges, in either direction, merged.

    Parameters
    ----------
    path
        The file. Its name becomes the name of the graph.

    Raises
    ------
    GraphError
        If the file cannot be read or understood (the message names the line), there are less than two nodes,
        or the graph is disconnected.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "triangle.txt"
    ...     np.savetxt(file, [(0, 1), (1, 2), (2, 0)], fmt="%d", header="three roads")
    ...     read(file)
    Graph(triangle.txt: 3 nodes, 3 edges)
    """
    try:
        file = Path(path)
    except TypeError as error:
        raise GraphError(f"read: got {path!r}, expected the path of a file") from error
    try:
        if file.suffix.lower() == ".graphml":
            return _read_graphml(file)
        return edge_graph(file.name, _read_edges(file))
    except OSError as error:
        raise GraphError(
            f"read: {file}: cannot be read ({error.strerror or error}), expected a list of edges or GraphML"
        ) from error


def _read_edges(file: Path) -> NDArray[np.int64]:
    ends = array("q")
    # What is not UTF-8 text is no number either: the check below names its line.
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            content = line.partition("#")[0]
            words = content.split()
            if not words:
                continue
            try:
                # int() alone would take '-1', '1_000' and digits of other scripts.
                if len(words) != 2 or not (content.isascii() and "".join(words).isdigit()):
                    raise ValueError("not two whole numbers")
                ends.extend((int(words[0]), int(words[1])))
            except (ValueError, OverflowError) as error:
                raise GraphError(
                    f"read: {file}, line {number}: got {line.strip()[:60]!r}, expected two whole numbers "
                    "from 0, separated by a blank"
                ) from error
    return np.frombuffer(ends, dtype=np.int64).reshape(-1, 2) if ends else np.empty((0, 2), dtype=np.int64)


def _read_graphml(file: Path) -> Graph:
    from xml.etree.ElementTree import ParseError

    import networkx

    try:
        graph = networkx.read_graphml(file)
    except ParseError as error:
        raise GraphError(f"read: {file}, line {error.position[0]}: not well-formed XML ({error})") from error
    except (networkx.NetworkXException, LookupError, TypeError, ValueError) as error:
        raise GraphError(f"read: {file}: not GraphML that networkx can read ({error!r})") from error
    return networkx_graph(graph, file.name)

"""Real networks from the collections in the topohub package."""

import json
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from typing import Any

import numpy as np

from freewalk.checks import guess, show
from freewalk.errors import GraphError, MissingExtra
from freewalk.graphs.edges import from_pairs
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import check

_DEPTH = 3  # of "caida/2024-08/1103"


@dataclass(frozen=True)
class Collection:
    """What the networks of a source are, who made them, and what is known about their terms of use."""

    about: str
    source: str
    licence: str


COLLECTIONS = {
    "topozoo": Collection(
        "networks of operators and research networks, as they publish them",
        "Knight, Nguyen, Falkner, Bowden, Roughan, The Internet Topology Zoo, IEEE JSAC 29 (2011), "
        "https://topology-zoo.org",
        "topohub names no licence of the collection; cite the paper",
    ),
    "sndlib": Collection(
        "networks of the Survivable Network Design Library",
        "Orlowski, Wessäly, Pióro, Tomaszewski, SNDlib 1.0, Networks 55 (2010), https://sndlib.put.poznan.pl",
        "topohub names no licence of the collection; cite the paper",
    ),
    "caida": Collection(
        "networks of single providers, by the number of the autonomous system, measured with traceroute in 2024",
        "CAIDA, Macroscopic Internet Topology Data Kit, release 2024-08, "
        "https://www.caida.org/catalog/datasets/internet-topology-data-kit",
        "CAIDA asks for its Acceptable Use Agreement to be accepted: cite the kit and report publications",
    ),
    "backbone": Collection(
        "synthetic backbones between real cities, with sea cables (those ending in _nosc: without)",
        "topohub's authors, after https://doi.org/10.1109/ICC.2015.7249292",
        "MIT, as part of topohub; it names no licence of the map they are made from",
    ),
    "gabriel": Collection(
        "synthetic Gabriel graphs, gabriel/NODES/NUMBER, which resemble long-haul networks",
        "Jurkiewicz, TopoHub, SoftwareX 24 (2023), https://www.topohub.org",
        "MIT, as part of topohub",
    ),
}


def topology(name: str) -> Graph:
    """Return a real network by name, such as "topozoo/Abilene", with node names and positions.

    Networks come with the package topohub: pip install ".[topologies]". `topologies` lists them. The collections
    are the Internet Topology Zoo ("topozoo"), SNDlib ("sndlib"), providers as measured by CAIDA ("caida"), and
    synthetic "backbone" and "gabriel" graphs. topohub is under the MIT licence and states no licence for the data it
    took from the first three: cite their sources, and for "caida" accept CAIDA's Acceptable Use Agreement. `freewalk
    list topozoo` shows source and terms.

    Nodes are numbered in file order. Positions are longitude and latitude if the collection has them (all but "gabriel"
    and some of "sndlib"). A repeated node name gets a number, "London (2)", and a node without a name is called, for
    example, "node 17". Directions are ignored, parallel links merged and self-loops dropped. All networks in topohub
    1.5 are connected; a disconnected one would be rejected.

    Parameters
    ----------
    name
        The collection and the name of the network in it. It becomes the name of the graph, which records keep.

    Raises
    ------
    GraphError
        If there is no such network.
    MissingExtra
        If topohub is not installed.

    Examples
    --------
    >>> graph = topology("topozoo/Abilene")
    >>> graph
    Graph(topozoo/Abilene: 11 nodes, 14 edges)
    >>> [graph.node_name(node) for node in graph.neighbours(graph.node("New York"))]
    ['Chicago', 'Washington DC']
    """
    known = topologies()
    asked = check.text("topology", "name", name)
    if asked not in known:
        raise GraphError(f"topology: there is no {show(asked)}; {_hint(asked, known)}")
    found = json.loads(_folder().joinpath(*f"{asked}.json".split("/")).read_text(encoding="utf-8"))
    nodes, edges = found["nodes"], found["edges"]
    number = {node["id"]: place for place, node in enumerate(nodes)}
    ends = np.array([(number[edge["source"]], number[edge["target"]]) for edge in edges], dtype=np.int64)
    names = _different([node.get("name") for node in nodes])
    positions = np.array([node["pos"] for node in nodes], dtype=np.float64)
    return from_pairs(ends[:, 0], ends[:, 1], len(nodes), asked, names, positions)


def topologies(collection: str | None = None) -> list[str]:
    """List the names that `topology` accepts.

    Parameters
    ----------
    collection
        "topozoo", "sndlib", "caida", "backbone" or "gabriel"; None lists all of them.

    Examples
    --------
    >>> topologies("sndlib")[:3]
    ['sndlib/abilene', 'sndlib/atlanta', 'sndlib/brain']
    """
    wanted = COLLECTIONS if collection is None else [check.choice("topologies", "collection", collection, COLLECTIONS)]
    return [name for one in wanted for name in _listed(_folder() / one, one)]


def _folder() -> Any:
    try:
        return files("topohub") / "data"
    except ImportError:
        raise MissingExtra("topohub", "topologies") from None


def _listed(folder: Any, prefix: str) -> list[str]:
    """The files in a folder without their suffixes, numbers in numerical order."""
    if not folder.is_dir():
        return [prefix.removesuffix(".json")] if prefix.endswith(".json") else []
    if prefix.count("/") > _DEPTH:
        return []
    entries = sorted(folder.iterdir(), key=lambda entry: (len(entry.name) * entry.name[0].isdigit(), entry.name))
    return [name for entry in entries for name in _listed(entry, f"{prefix}/{entry.name}")]


def _hint(asked: str, known: list[str]) -> str:
    """What was probably meant; a name without its collection is also found."""
    last = asked.rpartition("/")[2].lower()
    same = [name for name in known if name.rpartition("/")[2].lower() == last][:3]
    if same:
        return f"did you mean {' or '.join(map(repr, same))}?"
    listed = f"topologies() lists all {len(known)}, topologies('topozoo') those of a collection"
    return guess(asked, known) or f"{listed}: {', '.join(COLLECTIONS)}"


def _different(names: list[Any]) -> tuple[str, ...]:
    """Distinct names for all nodes."""
    taken, used = set(filter(None, names)), dict[str, None]()
    for place, name in enumerate(names):
        called = first = name or f"node {place}"
        number = count(2)
        while called in used or (called in taken and called != name):
            called = f"{first} ({next(number)})"
        used[called] = None
    return tuple(used)

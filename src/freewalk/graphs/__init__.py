"""Immutable, undirected, connected graphs: generators, readers and conversions."""

from freewalk.graphs.conversion import from_networkx, from_scipy
from freewalk.graphs.edges import from_edges
from freewalk.graphs.files import read
from freewalk.graphs.graph import Graph
from freewalk.graphs.lattices import complete, grid, path, ring, star
from freewalk.graphs.preferential import barabasi_albert
from freewalk.graphs.random_graphs import erdos_renyi, watts_strogatz
from freewalk.graphs.topohub import topologies, topology

__all__ = [
    "Graph",
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "from_edges",
    "from_networkx",
    "from_scipy",
    "grid",
    "path",
    "read",
    "ring",
    "star",
    "topologies",
    "topology",
    "watts_strogatz",
]

"""Immutable, undirected, connected graphs: where a walk walks.

- `graph.py`: the class `Graph`, compressed sparse rows that are read-only and never change.
- `structure.py`: the checks behind it (sorted rows, reverse edges, connected), block by block and in O(n + edges).
- `edges.py`: `from_edges`, and `from_pairs`, with which everything else here builds a graph from pairs of numbers.
- `lattices.py`, `random_graphs.py`: generators. `topohub.py`: real networks by name.
- `conversion.py`: networkx and scipy. `files.py`: edge lists, GraphML and GML.
- `mapped.py`: the binary file of `Graph.save`, mapped into memory instead of loaded.

The neighbours of a node are in ascending order, and that order is a contract: the k-th neighbour is the same one on
every runtime. Draws come from `freewalk.rng`, so a seed gives the same graph for ever; the numbers that separate them
must never change. Nodes are int32, so 2^31 - 1 is the largest number of nodes. A node may have a name, which messages,
tables and figures then use; arithmetic uses its number only. Names and positions are ignored when graphs are compared.
"""

from freewalk.graphs.conversion import from_networkx, from_scipy
from freewalk.graphs.edges import from_edges
from freewalk.graphs.files import read
from freewalk.graphs.graph import Graph
from freewalk.graphs.lattices import complete, grid, path, ring, star
from freewalk.graphs.random_graphs import barabasi_albert, erdos_renyi, watts_strogatz
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

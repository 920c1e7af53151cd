"""Real topologies: names, places, and what is said about names that do not exist."""

import sys

import numpy as np
import pytest

from freewalk import graphs
from freewalk import specs as experiment
from freewalk.errors import GraphError, MissingExtra
from freewalk.graphs.topohub import COLLECTIONS, _different


def test_abilene():
    graph = graphs.topology("topozoo/Abilene")
    assert (graph.n, graph.edges, graph.name) == (11, 14, "topozoo/Abilene")
    assert "Kansas City" in graph.node_names
    longitude, latitude = graph.positions[graph.node("New York")]
    assert (longitude, latitude) == pytest.approx((-74, 40.7), abs=0.1)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_collections_are_listed_and_the_graphs_can_be_walked(collection):
    names = graphs.topologies(collection)
    assert len(names) == len(set(names)) >= 20
    assert all(name.startswith(f"{collection}/") for name in names)
    for name in names[:: max(len(names) // 8, 1)]:
        graph = graphs.topology(name)
        assert len(set(graph.node_names)) == graph.n
        assert np.isfinite(graph.positions).all()


def test_all_are_those_of_the_collections():
    assert graphs.topologies() == [name for one in COLLECTIONS for name in graphs.topologies(one)]
    assert graphs.topologies("gabriel")[10] == "gabriel/10/0"  # after those of 5 nodes


def test_names_that_repeat_get_numbers():
    names = graphs.topology("topozoo/BtEurope").node_names
    assert {"London", "London (2)"} <= set(names)
    unnamed = graphs.topology("caida/2024-08/17557").node_names
    assert any(name.startswith("node ") for name in unnamed)
    numbered = _different(["London", None, "London", "London (2)"])
    assert numbered == ("London", "node 1", "London (3)", "London (2)")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Abilene", "did you mean 'topozoo/Abilene' or 'sndlib/abilene'"),
        ("topozoo/Abilen", "did you mean 'topozoo/Abilene'"),
        ("../../etc", r"topologies\(\) lists all \d+"),
        ("topozoo/../topozoo/Abilene", "there is no"),
        (3, "name = 3, expected a string"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(GraphError, match=message):
        graphs.topology(name)


def test_an_unknown_collection():
    with pytest.raises(GraphError, match=r"collection = 'topozo', expected .*did you mean 'topozoo'"):
        graphs.topologies("topozo")


def test_without_topohub_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "topohub", None)
    for ask in (lambda: graphs.topology("topozoo/Abilene"), graphs.topologies):
        with pytest.raises(MissingExtra, match=r'pip install "\.\[topologies\]"'):
            ask()


def test_a_spec_names_a_topology_and_starts_at_one_of_its_nodes():
    spec = experiment.parse(
        """
[graph]
kind = "topology"
name = "topozoo/Abilene"
[problem]
kind = "LeastSquares"
dim = 2
[run]
steps = 10
walks = 1
start = "Denver"
[[walk]]
label = "MH"
design = { kind = "Metropolis" }
rule = { kind = "SGD", step = 0.01 }
""",
        "spec",
    )
    plan = spec.plan()
    assert (plan.graph.name, plan.graph.n, plan.problem.n) == ("topozoo/Abilene", 11, 11)

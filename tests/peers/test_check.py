"""`node check` asks the neighbours: whether they answer, are who they should be, and mean the same network."""

import asyncio
import re

import pytest
from networks import nodes, written
from typer.testing import CliRunner

from freewalk.cli import app
from freewalk.peers.network.certificates import Authority, write
from freewalk.peers.network.config import OPERATOR, Address, NodeConfig
from freewalk.peers.network.init import listening
from freewalk.peers.node import check
from freewalk.peers.node.check import findings, reach

WALK = 'design = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 3e-3 }'


@pytest.fixture
def network(tmp_path):
    return written(tmp_path, graph='kind = "ring"\nn = 4', walk=WALK)


def edited(network, node, *pairs):
    """The configuration of a node, with words replaced; the folder has it from now on."""
    text = network.path(node).read_text()
    for old, new in pairs:
        changed = re.sub(old, new, text)
        assert changed != text, old
        text = changed
    network.path(node).write_text(text)
    return NodeConfig.read(network.path(node))


def asked(network, *configs):
    """What each check says while all nodes of the network run."""

    async def play():
        async with nodes(network):
            return [await asyncio.to_thread(reach, config) for config in configs]

    return asyncio.run(play())


@pytest.mark.parametrize("plain", [False, True])
def test_all_is_well(tmp_path, plain):
    network = written(tmp_path, graph='kind = "ring"\nn = 4', walk=WALK, plain=plain)
    assert asked(network, network.config(0), network.config(3)) == [[], []]


def test_nobody_answers(network):
    wrong = reach(network.config(1))
    assert len(wrong) == 2
    assert re.fullmatch(r"node-0000 at 127.0.0.1:\d+ does not answer \(.+\); start that node, or .*", wrong[0])


def test_somebody_else_listens(network, monkeypatch):
    monkeypatch.setattr(check, "_PATIENCE", 1.0)
    with listening("127.0.0.1", Address.of(network.nodes[0].address).port):
        assert "do not accept each other's certificates" in reach(network.config(1))[0]


def test_what_differs(network, monkeypatch):
    sound = network.config(0)
    text = network.path(0).read_text()
    seed = edited(network, 0, (r"\bseed = 3\b", "seed = 4"), (r"\bsteps = 100\b", "steps = 99"))
    network.path(0).write_text(text)
    first, third = (re.escape(network.nodes[node].address) for node in (1, 3))
    swapped = edited(network, 0, (first, "A"), (third, network.nodes[1].address), ("A", network.nodes[3].address))
    network.path(0).write_text(text)
    found = asked(network, seed, swapped)
    assert [re.search(r"has (.*?), expected", wrong)[1] for wrong in found[0]] == [
        "seed in [run] = 3, but this node 4",
        "steps in [run] = 100, but this node 99",
    ] * 2
    assert len(found[1]) == 2
    assert "is not that of 'node-0001'" in found[1][0]
    monkeypatch.setattr(check, "__version__", "0.0.1")
    (versions,) = asked(network, sound)
    assert "but this node 0.0.1, expected the same at all nodes" in versions[0]


def test_an_edge_that_one_side_knows(network):
    """The other side has no such neighbour, and tells nothing else."""
    sound = network.config(0)
    number = r"\[\[neighbour\]\]\s+number = 0\b(?:.|\n)*?(?=\n\[)"
    edited(network, 1, (number, ""))
    (wrong,) = asked(network, sound)
    assert len(wrong) == 1
    assert "node-0001 at" in wrong[0]
    assert "does not list 'node-0000' as a neighbour: the edge is configured on this side only" in wrong[0]
    result = CliRunner().invoke(app, ["node", "check", str(network.path(0))])
    assert result.exit_code == 1
    assert "wrong  neighbours: node-0001" in result.stdout


def test_a_certificate_that_expires_soon_is_named_and_stops_nothing(network):
    """The node runs until the end, and others accept it; the check says that it is time for a new one."""
    issued = Authority.read(network.folder / OPERATOR).issue("node-0002", years=10 / 365.25, number=2)
    certificate, key, _ = network.config(2).credentials
    write(certificate, issued.certificate)
    write(key, issued.key, secret=True)
    assert asked(network, network.config(1), network.config(2)) == [[], []]
    (wrong,) = findings(network.config(2))["certificate"][1]
    assert "in 9 days; issue a new one with the authority of this network" in wrong

"""The commands of a network, with nodes that are processes."""

import asyncio
import json
import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest
import tomlkit
from commands import call
from networks import written

import freewalk as fw
from freewalk.errors import PeerError
from freewalk.peers.network import supervisor
from freewalk.peers.network.certificates import Authority
from freewalk.peers.network.config import CERTIFICATE, KEY, NETWORK, OPERATOR
from freewalk.peers.network.init import Network
from freewalk.peers.node.store import Store
from freewalk.peers.operator import collect


@pytest.fixture
def network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = written(Path(), walk=WALK, steps=40, every=20, lease=30)
    yield network
    supervisor.end(network.folder)


WALK = 'design = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 3e-3 }'


def said(*arguments, code=0):
    result = call("network", *arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_a_run_from_launch_to_forgetting(network):
    said("up", "net", "--detach")
    told = said("launch", "net", "--run", "second")
    assert "launched 1 token" in told
    assert "next  freewalk network watch net --run second" in told
    assert "run 'second' was launched before; choose another name" in said("launch", "net", "--run", "second", code=2)
    said("watch", "net", "--run", "second")
    said("collect", "net", "--run", "second", "--wait", "60")
    assert "collected" in said("watch", "net", "--run", "second")
    seen = json.loads(said("watch", "net", "--run", "second", "--json", "--once"))
    assert [token["state"] for token in seen["tokens"]] == ["collected"]
    told = said("collect", "net", "--wait", "0", code=2)
    assert "it has not been launched; start it with: freewalk network launch net" in told
    told = said("forget", "net", "--run", "second")
    assert "run 'second': forgotten at 6 of 6 nodes" in told
    assert "was forgotten" in said("launch", "net", "--run", "second", code=2)
    assert "run 'second' was forgotten" in said("watch", "net", "--run", "second")
    assert "nodes are running" in said("init", "net", "--upgrade", code=2)


def test_collecting_after_a_disk_is_lost(network):
    said("up", "net", "--detach")
    said("launch", "net")
    said("watch", "net")
    said("collect", "net")
    kept = Path("net/runs/first/record.npz").read_bytes()
    said("down", "net")
    key = Path("net/operator/authority-key.pem")
    key.chmod(0o644)
    lost = next(one for one in network.nodes if made(network, one.number) and one.number)
    shutil.rmtree(network.config(lost.number).state)
    said("up", "net", "--detach")
    assert "freewalk network collect net --partial` collects what there is" in said("collect", "net", code=2)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    told = said("collect", "net", "--partial")
    assert "gap  walk 0: update" in told
    assert Path("net/runs/first/record.npz").read_bytes() == kept
    record = fw.load("net/runs/first/partial.npz")
    assert (record.data.path.values == -1).any()
    assert record.provenance["gaps"]


def made(network, node):
    """Whether a node has made updates, and none of them at a mark."""
    with closing(Store(network.config(node).state)) as store:
        found = list(store.journal())
    return bool(found) and all(line.token is None for line in found)


def test_a_network_of_an_earlier_version_is_upgraded(network):
    authority = Authority.read(network.folder / OPERATOR)
    for one in network.nodes:  # as an earlier version wrote them: without a number in the certificate, and unsigned
        home, path = network.folder / one.folder, network.path(one.number)
        issued = authority.issue(one.name)
        (home / CERTIFICATE).write_bytes(issued.certificate)
        (home / KEY).write_bytes(issued.key)
        document = tomlkit.parse(path.read_text())
        del document["security"]["signed"]
        path.write_text(tomlkit.dumps(document))
    description = network.folder / NETWORK
    description.write_text(description.read_text().replace("\nsigned = true", "", 1))
    assert not Network.read(network.folder).table.signed
    said("up", "net", "--detach")
    said("launch", "net")
    said("collect", "net", "--wait", "60")
    said("down", "net")
    for log in network.folder.glob("node-*/log"):
        assert log.read_text().count("--upgrade") == 1
        log.unlink()
    assert "give a spec and a folder" in said("init", "net", code=2)
    assert "its nodes sign from now on" in said("init", "--upgrade", "net")
    assert Network.read(network.folder).trust.signs
    said("up", "net", "--detach")
    said("launch", "net", "--run", "second")
    said("collect", "net", "--run", "second", "--wait", "60")
    assert not any("--upgrade" in log.read_text() for log in network.folder.glob("node-*/log"))
    assert "not signed by the operator" in unsigned(network)


def unsigned(network):
    """What becomes of a launch without a permit."""
    again = Network.read(network.folder)
    again.__dict__["signatures"] = None
    with pytest.raises(PeerError) as caught:
        asyncio.run(collect.launch(again, "third"))
    return str(caught.value)

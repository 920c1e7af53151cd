"""The process of a node: what only its owner may open is closed to others when it starts."""

import asyncio
import os
import stat

import pytest
from networks import nodes, written

from freewalk.peers.network.config import KEY
from freewalk.peers.node import process
from freewalk.peers.node.check import findings

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")


@pytest.fixture
def network(tmp_path, monkeypatch):
    monkeypatch.setattr(process.log, "propagate", True)
    mask = os.umask(0o022)
    yield written(tmp_path, graph='kind = "ring"\nn = 3')
    os.umask(mask)


def started(network, caplog):
    """The warnings of all nodes, started and stopped."""

    async def once():
        async with nodes(network):
            pass

    caplog.clear()
    asyncio.run(once())
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_and_states_are_closed_to_others(network, caplog):
    """With one line for each, which says what to do about it."""
    assert started(network, caplog) == []
    state, key = network.config(1).state, network.config(2).folder / KEY
    assert mode(state) == 0o700
    state.chmod(0o755)
    key.chmod(0o604)
    (told,) = findings(network.config(1))["state"][1]
    assert told.endswith(f"(mode 0755), expected 0700; chmod 700 {state}")
    (told,) = findings(network.config(2))["certificate"][1]
    assert told.endswith(f"chmod 600 {key}")
    of_state, of_key = sorted(started(network, caplog))  # of node 1, and of node 2
    assert of_key.startswith(f"{key}: was open to others (mode 0604, now 0600), who may have read it: ")
    assert "issue a new certificate with a new key" in of_key
    assert of_state == f"{state}: was open to others (mode 0755, now 0700), who may have read the models in it"
    assert (mode(state), mode(key)) == (0o700, 0o600)
    assert started(network, caplog) == []

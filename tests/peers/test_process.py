"""The process of a node: closed to others when it starts, and quiet when it ends."""

import asyncio
import os
import stat
import subprocess
import sys

import pytest
from networks import nodes, written

from freewalk.peers.network import supervisor
from freewalk.peers.network.config import KEY
from freewalk.peers.node import process
from freewalk.peers.node.check import findings
from freewalk.peers.node.links import METHOD, STREAMS
from freewalk.peers.operator import collect


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
    assert of_key.startswith(f"{key}: was open to others (mode 0604, now 0600); others may have read it: ")
    assert "issue a new certificate with a new key" in of_key
    assert of_state == f"{state}: was open to others (mode 0755, now 0700); others may have read the models in it"
    assert (mode(state), mode(key)) == (0o700, 0o600)
    assert started(network, caplog) == []


def test_calls_end_before_the_loop(network, monkeypatch):
    """A task of gRPC that the end of the loop cancels writes a traceback."""
    ended = []

    async def call():
        await asyncio.sleep(0.2)
        ended.append(True)

    async def work(config, durable):
        work.call = asyncio.create_task(call())

    monkeypatch.setattr(process, "work", work)
    process.run(network.config(0))
    assert ended == [True]


async def opened(network, streams):
    """Launch a walk, while node 0 opens so many streams to node 1, one after another."""
    identity = process.identity_of(network.config(0))
    async with identity.channel(network.nodes[1]) as channel:
        calls = []
        for _ in range(streams):
            calls.append(channel.stream_unary(METHOD)(metadata=identity.metadata))
            await calls[-1].initial_metadata()
        await collect.launch(network, f"of-{streams}")
        await asyncio.sleep(0.5)
        assert sum(call.done() for call in calls) >= streams - STREAMS
        for call in calls:
            call.cancel()


def test_no_log_has_a_traceback(tmp_path):
    """Nodes are stopped in the middle of a walk, also with streams that newer ones have superseded."""
    network = written(tmp_path, steps=1_000_000, every=1_000_000)
    for streams in (0, STREAMS + 2):
        command = [sys.executable, "-m", "freewalk.cli", "network", "up", str(network.folder), "--detach"]
        subprocess.run(command, check=True, capture_output=True)
        asyncio.run(opened(network, streams))
        assert supervisor.end(network.folder)
    for node in network.nodes:
        text = (network.folder / node.folder / supervisor.LOG).read_text()
        assert "Traceback" not in text
        assert "CancelledError" not in text

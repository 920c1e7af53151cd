"""The supervisor: only its lock tells whether nodes run, and starting waits as long as further nodes answer."""

import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, nullcontext

import pytest
from networks import written

from freewalk.errors import PeerError
from freewalk.peers.network import supervisor
from freewalk.peers.network.config import DATA
from freewalk.peers.network.init import init
from freewalk.peers.operator import operator

THREE = 'kind = "ring"\nn = 3'
KEPT = """
import sys, time
from pathlib import Path
from freewalk.peers.network import supervisor
folder = Path(sys.argv[1])
supervisor.Supervisor(folder, {"deaf": lambda lifeline: time.sleep(60)}, supervisor._claim(folder)).run()
"""


def command(*words):
    return subprocess.run(
        [sys.executable, "-m", "freewalk.cli", "network", *map(str, words)], capture_output=True, text=True
    )


@pytest.fixture
def network(tmp_path):
    made = written(tmp_path, graph=THREE)
    yield made
    supervisor.end(made.folder)


@pytest.fixture
def innocent():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def until(holds, seconds=30):
    late = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.02)


def test_a_list_of_processes_that_a_reboot_left(network, innocent):
    """Its numbers belong to others by now: nobody is ended, and the nodes can be started."""
    told = {"supervisor": innocent.pid, "host": platform.node(), "nodes": {"node-0000": innocent.pid}}
    (network.folder / "up.json").write_text(json.dumps(told))
    assert supervisor.processes(network.folder) == {}
    done = command("down", network.folder)
    assert (done.returncode, "no nodes were running" in done.stdout + done.stderr) == (0, True)
    assert innocent.poll() is None
    done = command("up", network.folder, "--detach")
    assert done.returncode == 0, done.stderr
    number = supervisor.processes(network.folder)["supervisor"]
    assert number != innocent.pid
    again = command("up", network.folder, "--detach")
    assert again.returncode != 0
    assert f"already running, or are being started (process {number} on {platform.node()})" in again.stderr
    assert "all nodes have ended" in command("down", network.folder).stderr
    assert supervisor.processes(network.folder) == {}
    assert innocent.poll() is None


def test_of_two_at_the_same_moment_one_is_told(network):
    """Also before it has started anything."""
    lock = supervisor._claim(network.folder)
    with pytest.raises(PeerError, match=rf"being started \(process {os.getpid()} on .*network down"):
        supervisor.up(network.folder, detach=True, say=print)
    os.close(lock)
    assert supervisor.processes(network.folder) == {}


def test_a_network_that_runs_is_not_replaced(network, tmp_path):
    """Its nodes could not be stopped any more; and their supervisor would remove the list of the new ones."""
    lock = supervisor._claim(network.folder)
    with pytest.raises(PeerError, match="its nodes are running; stop them first with: network down"):
        init(tmp_path / "spec.toml", network.folder, force=True)
    (network.folder / "up.json").unlink()
    with pytest.raises(PeerError, match=r"the process that holds up.lock does not end"):
        supervisor.end(network.folder, patience=0.1)
    os.close(lock)


def test_nodes_do_not_stand_in_for_a_killed_supervisor(tmp_path):
    """A node may still be busy then, and does not hold the lock."""
    with subprocess.Popen([sys.executable, "-c", KEPT, tmp_path]) as killed:
        try:
            until(lambda: supervisor.processes(tmp_path).get("nodes"))
            node = supervisor.processes(tmp_path)["nodes"]["deaf"]
        finally:
            killed.kill()
    assert supervisor.processes(tmp_path) == {}
    os.kill(node, 0)
    assert not supervisor.end(tmp_path)
    os.kill(node, signal.SIGKILL)


def test_processes_of_another_machine_are_left_alone(tmp_path, innocent):
    """Both may see the same folder."""
    lock = supervisor._claim(tmp_path)
    (tmp_path / "up.json").write_text(json.dumps({"supervisor": innocent.pid, "host": "elsewhere", "nodes": {}}))
    with pytest.raises(PeerError, match="run on elsewhere"):
        supervisor.end(tmp_path)
    os.close(lock)
    assert innocent.poll() is None


def test_a_node_that_dies_at_start_is_reported_soon(network):
    """With the end of its log; the others are stopped."""
    home = network.folder / network.nodes[1].folder
    (home / DATA).unlink()
    began = time.monotonic()
    done = command("up", network.folder, "--detach")
    assert done.returncode != 0
    assert time.monotonic() - began < 40
    words = " ".join(done.stderr.split())
    assert "1 of 3 nodes do not answer, among them node-0001, which has ended" in words
    assert f"see {home / 'log'}" in words.replace("log,", "log")
    assert "data.npz cannot be read" in words
    assert supervisor.processes(network.folder) == {}


class Late:
    """An operator for whom node k answers k · 0.2 seconds after the first call, and some never do."""

    def __init__(self, never=()):
        self.never, self.began = never, time.monotonic()

    async def status(self, node, patience):
        return None if node in self.never or time.monotonic() < self.began + 0.2 * node else object()


@pytest.mark.parametrize("never", [(), (2,)])
def test_start_waits_as_long_as_further_nodes_answer(tmp_path, monkeypatch, never):
    network = written(tmp_path)

    @asynccontextmanager
    async def late(network):
        yield Late(never)

    monkeypatch.setattr(operator, "operator_of", late)
    monkeypatch.setattr(supervisor, "processes", lambda folder: {"ended": {}})
    monkeypatch.setattr(supervisor, "end", lambda folder: True)
    monkeypatch.setattr(supervisor, "_PATIENCE", 0.6)
    began = time.monotonic()
    raises = pytest.raises(PeerError, match="1 of 6 nodes do not answer, among them node-0002")
    with raises if never else nullcontext():
        asyncio.run(supervisor._answered(network))
    assert time.monotonic() - began >= 1.0

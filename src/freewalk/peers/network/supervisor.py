"""All nodes of a folder on this machine (`freewalk network up`): one process per node, restarted when it dies.

The supervisor imports everything that nodes need and then forks for each of them, so that a node starts in a few
milliseconds and shares the memory of the imports. It never opens a channel or starts a thread itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from freewalk.errors import PeerError
from freewalk.peers.network.config import NodeConfig
from freewalk.peers.network.init import Network
from freewalk.peers.node import process
from freewalk.storage import files

log = logging.getLogger("freewalk.peers")

LOG = "log"
_STATE = "up.json"
_PATIENCE = 60.0  # seconds until all nodes answer
_GLANCE = 0.05  # seconds between checks for nodes that died
_LONGEST = 10.0  # maximum seconds between restarts of a node that keeps dying


def up(folder: str | os.PathLike[str], detach: bool, say: Callable[[str], Any]) -> None:
    """Start all nodes, and keep them running until Ctrl-C; with `detach`, return as soon as all nodes answer."""
    process.demand()
    network = Network.read(folder, say)
    if told := processes(network.folder):
        number = told["supervisor"]
        raise PeerError(f"{folder}: its nodes are already running (process {number}); stop them with: network down")
    nodes = {one.name: partial(_run, network.config(one.number)) for one in network.nodes}
    _warm(network)
    if not detach:
        say(f"{len(nodes)} nodes are up; Ctrl-C stops them. Each has a log in its folder")
        Supervisor(network.folder, nodes).run()
        return
    if os.fork() == 0:
        os.setsid()
        _redirect(network.folder / "supervisor.log")
        try:
            Supervisor(network.folder, nodes).run()
        finally:
            os._exit(0)
    asyncio.run(_answered(network))
    say(f"{len(nodes)} nodes are up; each has a log in its folder")


def _warm(network: Network) -> None:
    """Import what nodes need, once for all of them."""
    from freewalk.peers.node import server

    assert server  # and all that it imports
    if any(network.config(one.number).node.data.object for one in network.nodes) and find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)


def _run(config: NodeConfig, lifeline: int) -> None:
    """A node, in its own process."""
    from threadpoolctl import threadpool_limits

    _redirect(config.folder / LOG)
    process.log_to(config.folder / LOG)
    with threadpool_limits(1):
        process.run(config, lifeline=lifeline)


def _redirect(file: Path) -> None:
    """Redirect output to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(handle, stream)


async def _answered(network: Network) -> None:
    """Wait until all nodes answer."""
    from freewalk.peers.operator.operator import operator_of

    until = time.monotonic() + _PATIENCE
    async with operator_of(network) as operator:
        while silent := [node for node, status in (await operator.statuses(1.0)).items() if status is None]:
            if time.monotonic() > until:
                end(network.folder)
                first = network.nodes[silent[0]]
                log = network.folder / first.folder / LOG
                raise PeerError(f"{len(silent)} nodes do not answer, among them {first.name}; see {log}")
            await asyncio.sleep(0.1)


class Supervisor:
    """Starts nodes, and restarts those that die; lists the running processes in the folder of the network.

    Each node runs a function, which never returns; it receives a pipe that closes with the supervisor.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Callable[[int], Any]]) -> None:
        self.folder, self.nodes = folder, dict(nodes)
        self.running: dict[int, str] = {}
        self.deaths = dict.fromkeys(nodes, 0)
        self._began: dict[str, float] = {}
        self._due: dict[str, float] = {}
        # Held only by the supervisor: a node that reads the end of it knows that its supervisor is gone.
        self._lifeline, self._held = os.pipe()

    def run(self) -> None:
        """Keep all nodes up until SIGTERM or SIGINT, then end them."""
        told: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: told.append(number))
        try:
            for name in self.nodes:
                self._start(name)
            self._note()
            while not told:
                if self._reap() | self._restart():
                    self._note()
                time.sleep(_GLANCE)
        finally:
            self._stop()
            (self.folder / _STATE).unlink(missing_ok=True)

    def _start(self, name: str) -> None:
        self._began[name] = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                os.close(self._held)
                self.nodes[name](self._lifeline)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        self.running[child] = name

    def _reap(self) -> bool:
        """Record which nodes have died, and when to restart them: soon, with increasing delays for quick deaths."""
        changed = False
        while self.running:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return changed
            if child == 0:
                return changed
            name = self.running.pop(child, None)
            if name is None:
                continue
            changed = True
            lived = time.monotonic() - self._began[name]
            self.deaths[name] = self.deaths[name] + 1 if lived < 1.0 else 0
            wait = 0.0 if self.deaths[name] < 3 else min(0.1 * 2 ** self.deaths[name], _LONGEST)
            self._due[name] = time.monotonic() + wait
            log.warning("node %s ended (%s); restarting it", name, os.waitstatus_to_exitcode(status))
        return changed

    def _restart(self) -> bool:
        due = [name for name, when in self._due.items() if when <= time.monotonic()]
        for name in due:
            del self._due[name]
            self._start(name)
        return bool(due)

    def _note(self) -> None:
        """Write the running processes to a file, for `down` and for information."""
        told = {"supervisor": os.getpid(), "nodes": {name: child for child, name in self.running.items()}}
        files.write(self.folder / _STATE, json.dumps(told))

    def _stop(self) -> None:
        for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, math.inf)):
            for child in self.running:
                os.kill(child, number)
            until = time.monotonic() + patience
            while self.running and time.monotonic() < until:
                self._reap()
                time.sleep(0.01)


def processes(folder: Path) -> dict[str, Any]:
    """The running processes: {"supervisor": its process, "nodes": {name: process}}; empty if there are none."""
    try:
        told = json.loads((folder / _STATE).read_text())
        os.kill(int(told["supervisor"]), 0)
    except (OSError, ValueError, KeyError):
        return {}
    return dict(told)


def end(folder: Path, patience: float = 15.0) -> bool:
    """End the supervisor of a network, and with it all nodes; returns False if none was running."""
    told = processes(folder)
    if not told:
        return False
    os.kill(told["supervisor"], signal.SIGTERM)
    until = time.monotonic() + patience
    while processes(folder):
        if time.monotonic() > until:
            raise PeerError(f"process {told['supervisor']} does not end; see {folder}")
        time.sleep(0.02)
    return True

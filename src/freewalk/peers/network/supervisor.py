"""All nodes of a folder on this machine (`freewalk network up`): one process per node, restarted when it dies.

The supervisor imports everything that nodes need and then forks for each of them, so that a node starts in a few
milliseconds and shares the memory of the imports. It never opens a channel or starts a thread itself.

The supervisor holds a lock, which the system releases when it ends, however it ends. Only the lock tells whether nodes
are running: a list of processes survives kill -9 and reboots, and its numbers may belong to others by then.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import math
import os
import platform
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from freewalk.errors import PeerError
from freewalk.peers.network.config import NodeConfig, attempted
from freewalk.peers.network.init import Network
from freewalk.peers.node import process
from freewalk.specs import catalogue
from freewalk.storage import files

log = logging.getLogger("freewalk.peers")

LOG = "log"
_STATE, _LOCK = "up.json", "up.lock"
_PATIENCE = 60.0  # seconds without a further node that answers
_TOGETHER = 32  # nodes that are asked at the same time, so that most of the machine is left to them
_DEATHS = 5  # after as many without an answer, a node does not come up
_RELEASED = 0.5  # seconds until a lock is released that another process tries for a moment
_GLANCE = 0.05  # seconds between checks for nodes that died
_LONGEST = 10.0  # maximum seconds between restarts of a node that keeps dying


def up(folder: str | os.PathLike[str], detach: bool, say: Callable[[str], Any]) -> None:
    """Start all nodes, and keep them running until Ctrl-C; with `detach`, return as soon as all nodes answer."""
    process.demand()
    network = Network.read(folder, say)
    lock = _claim(network.folder)
    try:
        configs = [network.config(one.number) for one in network.nodes]
        nodes = {one.node.name: partial(_run, one) for one in configs}
        _warm(configs)
        if not detach:
            say(f"{len(nodes)} nodes are up; Ctrl-C stops them. Each has a log in its folder")
            Supervisor(network.folder, nodes, lock).run()
            return
        if os.fork() == 0:
            os.setsid()
            _redirect(network.folder / "supervisor.log")
            try:
                Supervisor(network.folder, nodes, lock).run()
            finally:
                os._exit(0)
    finally:
        os.close(lock)  # the supervisor keeps its own
    asyncio.run(_answered(network))
    say(f"{len(nodes)} nodes are up; each has a log in its folder")


def _claim(folder: Path) -> int:
    """Lock a network for this process and those that it forks; returns the handle."""
    path, until = folder / _LOCK, time.monotonic() + _RELEASED
    with attempted(f"{path}: cannot be locked", "move the network to a disk of this machine"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        while not (ours := _locked(handle, shared=False)) and time.monotonic() < until:
            time.sleep(_GLANCE)
    if ours:
        _note(folder, {}, {})  # instead of what a killed supervisor has left
        return handle
    os.close(handle)
    who = processes(folder)
    number = f" (process {who['supervisor']} on {who['host']})" if who else ""
    words = f"its nodes are already running, or are being started{number}"
    raise PeerError(f"{folder}: {words}; stop them with: network down")


def _locked(handle: int, shared: bool) -> bool:
    """Lock an open file, unless another process has."""
    import fcntl

    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held(folder: Path) -> bool:
    """Whether a supervisor of this network is alive."""
    try:
        with open(folder / _LOCK) as lock:
            return not _locked(lock.fileno(), shared=True)
    except OSError:
        return False


def _note(folder: Path, nodes: Mapping[str, int], ended: Mapping[str, int]) -> None:
    """Write down the running processes, and how often they have ended, for `down` and for information."""
    who = {"supervisor": os.getpid(), "host": platform.node()}
    files.write(folder / _STATE, json.dumps({**who, "nodes": nodes, "ended": ended}))


def _warm(configs: Sequence[NodeConfig]) -> None:
    """Import and prepare what nodes need, once for all of them; nothing of the user."""
    import numpy.ma  # noqa: F401 - imported by numpy when it is first used
    import threadpoolctl  # noqa: F401

    from freewalk.peers.node import server  # noqa: F401 - and all that it imports

    catalogue.families()
    if any(one.node.data.object for one in configs) and find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # a collection in a node would copy the memory that it shares


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
    """Wait until all nodes answer, as long as further ones do."""
    from freewalk.peers.operator.operator import operator_of

    silent, until = deque(one.number for one in network.nodes), time.monotonic() + _PATIENCE
    async with operator_of(network) as operator:
        while silent:
            asked = [silent.popleft() for _ in range(min(_TOGETHER, len(silent)))]
            found = await asyncio.gather(*(operator.status(node, 1.0) for node in asked))
            silent.extend(node for node, status in zip(asked, found, strict=True) if status is None)
            if any(found):
                until = time.monotonic() + _PATIENCE
            if wrong := _wrong(network, silent, late=time.monotonic() > until):
                end(network.folder)
                raise PeerError(wrong)
            await asyncio.sleep(0.1 if silent else 0.0)


def _wrong(network: Network, silent: Sequence[int], late: bool) -> str:
    """Why silent nodes will not come up; "" if they still may."""
    told, home = processes(network.folder), network.folder
    if not told:
        return f"{home}: the supervisor has ended; see {home / 'supervisor.log'}"
    ended = {node: told["ended"].get(network.nodes[node].name, 0) for node in silent}
    first = max(ended, key=ended.__getitem__, default=-1)
    if first < 0 or not (late or ended[first] >= _DEATHS):
        return ""
    node, many = network.nodes[first], f"{len(silent)} of {len(network.nodes)} nodes do not answer"
    log = home / node.folder / LOG
    why = f"{node.name}, which has ended {ended[first]} times" if ended[first] else node.name
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return f"{home}: {many}, among them {why}; see {log}, at the end: {''.join(lines[-1:])[-300:]}"


class Supervisor:
    """Starts nodes, and restarts those that die; lists the running processes in the folder of the network.

    Each node runs a function, which never returns; it receives a pipe that closes with the supervisor.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Callable[[int], Any]], lock: int) -> None:
        self.folder, self.nodes, self._lock = folder, dict(nodes), lock
        self.running: dict[int, str] = {}
        self.deaths = dict.fromkeys(nodes, 0)  # that came quickly, one after another
        self.ended = Counter[str]()
        self._began: dict[str, float] = {}
        self._due = dict.fromkeys(nodes, 0.0)  # when to start those that do not run
        # Held only by the supervisor: a node that reads the end of it knows that its supervisor is gone.
        self._lifeline, self._held = os.pipe()

    def run(self) -> None:
        """Keep all nodes up until SIGTERM or SIGINT, then end them."""
        told: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: told.append(number))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if they are ignored, as a parent may have left it, none is seen
        try:
            _note(self.folder, {}, {})
            noted = dict[int, str]()
            while not told:
                self._reap()
                for name in [name for name, when in self._due.items() if when <= time.monotonic()]:
                    self._start(name)
                if noted != self.running:
                    noted = dict(self.running)
                    _note(self.folder, {name: child for child, name in noted.items()}, self.ended)
                time.sleep(_GLANCE)
        finally:
            self._stop()
            (self.folder / _STATE).unlink(missing_ok=True)

    def _start(self, name: str) -> None:
        del self._due[name]
        self._began[name] = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                os.close(self._held)
                os.close(self._lock)
                self.nodes[name](self._lifeline)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        self.running[child] = name

    def _reap(self) -> None:
        """Record which nodes have died, and when to restart them: soon, with increasing delays for quick deaths."""
        while self.running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            if (name := self.running.pop(child, None)) is None:  # a child of what this process was before
                continue
            self.ended[name] += 1
            lived = time.monotonic() - self._began[name]
            self.deaths[name] = self.deaths[name] + 1 if lived < 1.0 else 0
            wait = 0.0 if self.deaths[name] < 3 else min(0.1 * 2 ** self.deaths[name], _LONGEST)
            self._due[name] = time.monotonic() + wait
            log.warning("node %s ended (%s)", name, os.waitstatus_to_exitcode(status))

    def _stop(self) -> None:
        for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, math.inf)):
            for child in self.running:
                os.kill(child, number)
            until = time.monotonic() + patience
            while self.running and time.monotonic() < until:
                self._reap()
                time.sleep(0.01)


def processes(folder: Path) -> dict[str, Any]:
    """The processes: {"supervisor": its process, "host": its machine, "nodes": {name: process}}; empty if none runs."""
    if not _held(folder):
        return {}
    try:
        return dict(json.loads((folder / _STATE).read_text()))
    except (OSError, ValueError):  # it begins or ends at this moment
        return {}


def end(folder: Path, patience: float = 15.0) -> bool:
    """End the supervisor of a network, and with it all nodes; returns False if none was running."""
    who, until = "", time.monotonic() + patience
    while _held(folder):
        if not who and (told := processes(folder)):
            who = f"process {told['supervisor']}"
            if told["host"] != platform.node():
                raise PeerError(f"{folder}: its nodes run on {told['host']} ({who}); stop them there")
            os.kill(told["supervisor"], signal.SIGTERM)
        if time.monotonic() > until:
            raise PeerError(f"{who or f'the process that holds {_LOCK}'} does not end; see {folder}")
        time.sleep(0.02)
    return bool(who)

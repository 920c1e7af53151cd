"""All nodes of a network on this machine: one process per node, restarted when it dies.

The supervisor imports everything that nodes need and then forks for each of them, so that a node starts in a few
milliseconds and shares the memory of the imports. It never opens a channel or starts a thread itself.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from freewalk.errors import PeerError
from freewalk.storage import files

log = logging.getLogger("freewalk.peers")

_STATE = "up.json"
_GLANCE = 0.05  # seconds between checks for nodes that died
_LONGEST = 10.0  # maximum seconds between restarts of a node that keeps dying


class Supervisor:
    """Starts nodes, and restarts those that die.

    Parameters
    ----------
    folder
        The folder of the network; the running processes are listed there.
    nodes
        The function that each node runs, by name. It never returns; it receives a pipe that closes with the supervisor.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Callable[[int], Any]]) -> None:
        self.folder, self.nodes = folder, dict(nodes)
        self.running: dict[int, str] = {}
        self.deaths = dict.fromkeys(nodes, 0)
        self._began: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._ending = False
        # Held only by the supervisor: a node that reads the end of it knows that its supervisor is gone.
        self._lifeline, self._held = os.pipe()

    def run(self) -> None:
        """Keep all nodes up until SIGTERM or SIGINT, then end them."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        try:
            for name in self.nodes:
                self._start(name)
            self._note()
            while not self._ending:
                if self._reap() | self._restart():
                    self._note()
                time.sleep(_GLANCE)
        finally:
            self._stop()
            (self.folder / _STATE).unlink(missing_ok=True)

    def _end(self, *_: Any) -> None:
        self._ending = True

    def _start(self, name: str) -> None:
        self._began[name] = time.monotonic()
        process = os.fork()
        if process == 0:
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                os.close(self._held)
                self.nodes[name](self._lifeline)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        self.running[process] = name

    def _reap(self) -> bool:
        """Record which nodes have died, and when to restart them: soon, with increasing delays for quick deaths."""
        changed = False
        while self.running:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return changed
            if process == 0:
                return changed
            name = self.running.pop(process, None)
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
        told = {"supervisor": os.getpid(), "nodes": {name: process for process, name in self.running.items()}}
        files.write(self.folder / _STATE, json.dumps(told))

    def _stop(self) -> None:
        for process in self.running:
            os.kill(process, signal.SIGTERM)
        until = time.monotonic() + 5.0
        while self.running and time.monotonic() < until:
            self._reap()
            time.sleep(0.01)
        for process in self.running:
            os.kill(process, signal.SIGKILL)
        while self.running:
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
    """End the supervisor of a network, and with it all nodes; returns False if none was running.

    Raises
    ------
    PeerError
        If it does not end.
    """
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

"""`freewalk network up`: run all nodes of a folder on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from freewalk.errors import PeerError
from freewalk.peers.network import supervisor
from freewalk.peers.network.config import NodeConfig
from freewalk.peers.network.init import Network
from freewalk.peers.node import process

_PATIENCE = 60.0  # seconds until all nodes answer
LOG = "log"


def up(folder: str | os.PathLike[str], detach: bool = False, say: Callable[[str], Any] | None = None) -> None:
    """Start all nodes, and keep them running.

    Parameters
    ----------
    folder
        The folder of the network.
    detach
        Whether to return as soon as all nodes answer; otherwise it runs until Ctrl-C.
    say
        Called with progress messages, and before user code is executed.

    Raises
    ------
    PeerError
        If nodes are up already, or do not answer.
    """
    process.demand()
    network = Network.read(folder, say)
    told = supervisor.processes(network.folder)
    if told:
        raise PeerError(
            f"{folder}: its nodes are already running (process {told['supervisor']}); stop them with: network down"
        )
    nodes = {one.name: partial(_run, network.config(one.number)) for one in network.nodes}
    _warm(network)
    if not detach:
        if say is not None:
            say(f"{len(nodes)} nodes are up; Ctrl-C stops them. Each has a log in its folder")
        supervisor.Supervisor(network.folder, nodes).run()
        return
    if os.fork() == 0:
        os.setsid()
        _redirect(network.folder / "supervisor.log")
        try:
            supervisor.Supervisor(network.folder, nodes).run()
        finally:
            os._exit(0)
    asyncio.run(_answered(network))
    if say is not None:
        say(f"{len(nodes)} nodes are up; each has a log in its folder")


def _warm(network: Network) -> None:
    """Import what nodes need, once for all of them."""
    from freewalk.peers.node import learner, parts, server, store

    assert all((learner, server, store, parts))
    if any(network.config(one.number).node.data.object for one in network.nodes):
        import importlib.util

        if importlib.util.find_spec("torch") is not None:
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
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(handle, 1)
    os.dup2(handle, 2)


async def _answered(network: Network) -> None:
    """Wait until all nodes answer."""
    from freewalk.peers.operator.collect import operator_of

    until = time.monotonic() + _PATIENCE
    async with operator_of(network) as operator:
        while True:
            silent = [node for node, status in (await operator.statuses(1.0)).items() if status is None]
            if not silent:
                return
            if time.monotonic() > until:
                supervisor.end(network.folder)
                first = network.nodes[silent[0]]
                log = network.folder / first.folder / LOG
                raise PeerError(f"{len(silent)} nodes do not answer, among them {first.name}; see {log}")
            await asyncio.sleep(0.1)

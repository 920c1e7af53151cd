"""A node as a process: runs what its configuration describes until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from freewalk.errors import MissingExtra, PeerError
from freewalk.peers.network.config import NodeConfig

if TYPE_CHECKING:
    from freewalk.peers.node.server import Identity

log = logging.getLogger("freewalk.peers")


def demand() -> None:
    """Raise an error that says what to install if a package that peers need is missing.

    Raises
    ------
    MissingExtra
        If a package is missing.
    """
    for package in ("grpc", "google.protobuf", "safetensors", "cryptography"):
        try:
            __import__(package)
        except ImportError:
            name = {"grpc": "grpcio", "google.protobuf": "protobuf"}.get(package, package)
            raise MissingExtra(name, "peers") from None


def log_to(file: Path | None, level: int = logging.INFO) -> None:
    """Write the log to a file, or to standard error."""
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False


def identity_of(config: NodeConfig) -> Identity:
    """The identity that a node presents to others.

    Raises
    ------
    PeerError
        If its certificate cannot be read.
    """
    from freewalk.peers.node.server import Identity

    try:
        pems = [path.read_bytes() for path in config.credentials or ()]
    except OSError as error:
        raise PeerError(f"{error.filename}: cannot be read ({error.strerror or error}); name another file") from error
    certificate, key, authority = pems or (None, None, None)
    return Identity(config.node.name, certificate, key, authority)


async def work(config: NodeConfig, ready: Callable[[int], Awaitable[None]] | None = None, durable: bool = True) -> None:
    """Run a node until cancelled."""
    from freewalk.peers.node.learner import Learner
    from freewalk.peers.node.links import Neighbour
    from freewalk.peers.node.parts import Parts
    from freewalk.peers.node.parts import work as at_work
    from freewalk.peers.node.store import Store

    local, run = config.kernel(), config.run
    with Store(config.state, durable) as store:
        share, rule = config.share(), config.rule
        learner = Learner(
            share, rule, local.weight, config.table.walk.n, run.seed, run.dim, run.precision, store.models, durable
        )
        parts = Parts(
            identity=identity_of(config),
            address=config.node.listen,
            operator=config.security.operator,
            neighbours=[Neighbour(one.number, one.name, one.address) for one in config.neighbours],
            local=local,
            settings=config.settings(),
            learner=learner,
            store=store,
        )
        log.info("node %s begins; its state is in %s", config.node.name, config.node.state)
        await at_work(parts, ready)


def run(config: NodeConfig, durable: bool = True, lifeline: int | None = None) -> None:
    """Run a node until SIGTERM or SIGINT, or until its supervisor's end of a pipe is closed."""

    async def until_told() -> None:
        task = asyncio.ensure_future(work(config, durable=durable))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        if lifeline is not None:
            loop.add_reader(lifeline, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            pass
        except BaseExceptionGroup as errors:  # the first part of a node that fails ends the others
            first: BaseException = errors
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            log.error("node %s ends: %s: %s", config.node.name, type(first).__name__, first)
            raise first from errors

    demand()
    from freewalk.peers.node.quiet import few_lines

    with few_lines(log):
        asyncio.run(until_told())

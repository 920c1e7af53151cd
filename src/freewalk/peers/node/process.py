"""A node as a process: assembles what its configuration describes, and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from freewalk.errors import MissingExtra
from freewalk.peers.network.config import NodeConfig
from freewalk.peers.node.complaints import few_lines
from freewalk.peers.protocol.token import Trust

if TYPE_CHECKING:
    from freewalk.peers.node.server import Identity

log = logging.getLogger("freewalk.peers")

_ENDING = 2.0  # seconds for calls that are ended


def demand() -> None:
    """Raise an error that says what to install if a package that peers need is missing."""
    modules = {"grpcio": "grpc", "protobuf": "google.protobuf", "safetensors": "safetensors"}
    for package, module in {**modules, "cryptography": "cryptography"}.items():
        try:
            __import__(module)
        except ImportError:
            raise MissingExtra(package, "peers") from None


def log_to(file: Path | None) -> None:
    """Write the log to a file, or to standard error."""
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


def identity_of(config: NodeConfig) -> Identity:
    """The identity that a node presents to others."""
    from freewalk.peers.node.server import Identity

    return Identity.read(config.node.name, config.credentials)


def trust_of(config: NodeConfig) -> Trust:
    """Whom a node believes what is signed; without signatures it believes its neighbours."""
    if config.security.signed and config.credentials is not None:
        from freewalk.peers.network.certificates import Signatures

        return Signatures.read(*config.credentials, config.security.operator, config.node.number)
    option = "without --plain" if config.credentials is None else "--upgrade"
    words = "neighbours are believed what they say of runs, since nothing is signed; `freewalk network init` %s"
    log.warning(f"{words} makes the operator sign runs, and nodes what they re-issue", option)
    return Trust()


def exposed(path: Path) -> str:
    """The mode of a file or folder that others than its owner may open, or "" (on Windows always)."""
    mode = 0 if os.name == "nt" or not path.exists() else stat.S_IMODE(path.stat().st_mode)
    return f"{mode:04o}" if mode & 0o077 else ""


def seclude(kept: Mapping[Path, str], tell: Callable[[str], object] = log.warning) -> None:
    """Close files and folders to others, and say so, since they may have read them before."""
    for path, what in kept.items():
        if before := exposed(path):
            mode = 0o700 if path.is_dir() else 0o600
            with suppress(OSError):  # somebody else owns it
                path.chmod(mode)
            now = exposed(path) or f"{mode:04o}"
            tell(f"{path}: was open to others (mode {before}, now {now}); others may have read {what}")


async def work(config: NodeConfig, durable: bool = True) -> None:
    """Run a node until cancelled: the protocol, with a disk, its data, a server, and links to its neighbours."""
    from freewalk.peers.node.data import Updater
    from freewalk.peers.node.links import Gate, Link
    from freewalk.peers.node.server import Handlers, serve
    from freewalk.peers.node.service import Service
    from freewalk.peers.node.store import Store
    from freewalk.peers.protocol.custody import Node

    with suppress(OSError):  # the store says what is wrong with the folder
        config.state.mkdir(0o700, parents=True, exist_ok=True)
    seclude({config.state: "the models in it"})
    if config.credentials is not None:
        seclude({config.credentials[1]: "it: if others use this machine, issue a new certificate with a new key"})
    local, run = config.kernel(), config.run
    with Store(config.state, durable) as store:
        share, settings, models = config.share(), config.settings(), store.models
        updater = Updater(share, config.rule, local.weight, settings, run.dim, run.precision, models, durable)
        identity, links = identity_of(config), dict[int, Link]()
        node = Node(local, settings, store.load(), trust_of(config), store.forgotten)
        service = Service(node, store, updater, links)
        for one in config.neighbour:
            links[one.number] = Link(one, identity.channel, identity.metadata, service.tell, settings.patience)
        handlers = Handlers(identity, config.security.operator, service, Gate(config.neighbour, service))
        log.info("node %s begins; its state is in %s", config.node.name, config.node.state)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve(identity, config.node.listen, handlers))
            for link in links.values():
                tasks.create_task(link.run())
            tasks.create_task(service.run())


def run(config: NodeConfig, durable: bool = True, lifeline: int | None = None) -> None:
    """Run a node until SIGTERM or SIGINT, or until its supervisor's end of a pipe is closed."""

    async def until_told() -> None:
        task = asyncio.ensure_future(work(config, durable))
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
        finally:
            # gRPC ends calls in tasks of its own; each writes a traceback if the end of the loop cancels it.
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=_ENDING)

    demand()
    gc.freeze()  # what is imported stays: it need not be looked at again and again
    with few_lines(log):
        asyncio.run(until_told())

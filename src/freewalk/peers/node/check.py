"""Checks of a node before it starts, with remedies."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from freewalk._version import __version__
from freewalk.errors import FreewalkError
from freewalk.peers.network import certificates
from freewalk.peers.network.config import NodeConfig
from freewalk.peers.network.names import listening
from freewalk.peers.node.database import in_use

#: The packages that a node needs, and their minimum versions.
PACKAGES = {"grpcio": (1, 80), "protobuf": (6, 31), "safetensors": (0, 4), "cryptography": (44,)}


class Finding(NamedTuple):
    """The result of one check.

    Attributes
    ----------
    name
        What was checked.
    words
        The result, if nothing is wrong.
    problems
        The problems, with remedies.
    done
        Whether the check could be done.
    """

    name: str
    words: str
    problems: tuple[str, ...] = ()
    done: bool = True


def findings(config: NodeConfig) -> list[Finding]:
    """Check everything that a node needs; nothing is changed, and messages go only to its neighbours."""
    looks: dict[str, Callable[[NodeConfig], tuple[str, list[str]]]] = {
        "packages": _packages,
        "certificate": _certificate,
        "port": _port,
        "data": _data,
        "rule": _rule,
        "state": _state,
        "neighbours": _neighbours,
    }
    found = []
    for name, look in looks.items():
        try:
            words, problems = look(config)
        except FreewalkError as error:
            words, problems = "", [str(error)]
        found.append(Finding(name, words, tuple(problems)))
    return found


def reach(config: NodeConfig) -> list[str]:
    """Ask all neighbours whether they are reachable, admit this node, and agree on the edge and the run.

    Returns
    -------
    list[str]
        The problems, each with a remedy.

    """
    from freewalk.peers.node.greeting import greet

    return greet(config)


def _packages(config: NodeConfig) -> tuple[str, list[str]]:
    found, wrong = [f"freewalk {__version__}"], []
    for name, first in PACKAGES.items():
        try:
            there = version(name)
        except PackageNotFoundError:
            wrong.append(f'{name} is not installed; install it with: pip install "freewalk[peers]"')
            continue
        found.append(f"{name} {there}")
        if tuple(int(part) for part in re.findall(r"\d+", there)[:3]) < first:
            needed = ".".join(map(str, first))
            wrong.append(f'{name} is {there}, expected {needed} or newer; pip install --upgrade "freewalk[peers]"')
    if config.run.version not in (None, __version__):
        wrong.append(
            f"freewalk is {__version__}, but the network was made for {config.run.version}, expected the same at all "
            f"nodes; pip install freewalk=={config.run.version}"
        )
    return ", ".join(found), wrong


def _certificate(config: NodeConfig) -> tuple[str, list[str]]:
    if config.credentials is None:
        return "none: connections are plain, on this machine only", []
    wrong = certificates.problems(*config.credentials, config.node.name)
    if wrong:
        return "", wrong
    described = certificates.describe(config.credentials[0].read_bytes())
    return f"{described.name}, signed by {described.issuer}, valid until {described.ends:%Y-%m-%d}", []


def _port(config: NodeConfig) -> tuple[str, list[str]]:
    address = config.listen
    try:
        listening(address.host, address.port).close()
    except OSError as error:
        if in_use(config.state):
            return f"{address}, where this node is running", []
        return "", [
            f"cannot listen at {address} ({error.strerror or error}); stop the process that listens there, or give "
            "[node] another address and tell its neighbours"
        ]
    return f"{address} is free", []


def _data(config: NodeConfig) -> tuple[str, list[str]]:
    share = config.share()
    wrong = []
    file = config.node.data.file
    if file is not None and os.name != "nt" and (config.folder / file).stat().st_mode & 0o077:
        wrong.append(f"{config.folder / file}: others than its owner may read it; chmod 600 {config.folder / file}")
    if share.samples == 0:
        return f"none: this node is a relay for models of {config.run.dim:,} numbers", wrong
    count = share.samples
    words = f"{count:,} sample{'s' * (count != 1)}, models of {config.run.dim:,} numbers"
    return f"{type(share.objective).__name__}: {words}", wrong


def _rule(config: NodeConfig) -> tuple[str, list[str]]:
    settings = config.settings()
    return (
        f"{config.rule}, {settings.steps:,} updates of {config.run.tokens:,} token{'s' * (config.run.tokens != 1)}",
        [],
    )


def _state(config: NodeConfig) -> tuple[str, list[str]]:
    place = config.state
    home = next(one for one in (place, *place.parents) if one.exists())
    try:
        if not home.is_dir():
            raise NotADirectoryError(20, "it is not a folder")
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return "", [f"{place}: cannot be written ({error.strerror or error}); give [node] another folder `state`"]
    return f"{place} {'exists' if place.exists() else 'can be created'}", []


def _neighbours(config: NodeConfig) -> tuple[str, list[str]]:
    many = len(config.neighbours)
    return f"{many}, and all answer" if many else "none", reach(config)

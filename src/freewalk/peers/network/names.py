"""Names of nodes that are valid in certificates, and free addresses."""

from __future__ import annotations

import errno
import os
import re
import socket
import unicodedata
from collections import Counter
from contextlib import ExitStack
from secrets import randbelow

from freewalk.checks import Checks
from freewalk.errors import PeerError
from freewalk.graphs import Graph
from freewalk.peers.network.config import Address

_LONGEST = 50  # letters, so that a number can follow
_FIRST_PORT, _FIRST_PORTS = 20_000, 8_000  # the range of the first port
_LAST_PORT = 2**16 - 1
_RESERVED = "operator"

check = Checks(PeerError)


def safe(name: str) -> str:
    """A name in the letters that DNS allows, or "" if nothing remains."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST].strip("-")


def names_of(graph: Graph) -> list[str]:
    """The names of the nodes of a graph: their own names, made safe and distinct, or their numbers."""
    numbered = [f"node-{node:04d}" for node in range(graph.n)]
    if graph.node_names is None:
        return numbered
    names = [safe(name) for name in graph.node_names]
    unsure = {name for name, times in Counter(names).items() if times > 1} | {"", _RESERVED}
    found = [name if name not in unsure else f"{name or 'node'}-{node:04d}" for node, name in enumerate(names)]
    return found if len(set(found)) == len(found) else numbered  # "a" twice, and one that is called "a-0001"


def free_addresses(host: str, count: int, first_port: int | None = None) -> list[Address]:
    """Free addresses: all were held at the same time, then released."""
    if first_port is not None:
        check.whole("network init", "first_port", first_port, 1, _LAST_PORT)
    port, found = first_port or _FIRST_PORT + randbelow(_FIRST_PORTS), list[Address]()
    with ExitStack() as held:
        while len(found) < count:
            if port > _LAST_PORT:
                raise PeerError(
                    f"network init: {len(found)} ports from {first_port} are free, expected {count}; start at a "
                    "lower one"
                )
            try:
                found.append(Address(host, held.enter_context(listening(host, port)).getsockname()[1]))
            except OSError as error:
                if error.errno == errno.EMFILE:
                    raise PeerError(
                        f"network init: {count} ports cannot be held at the same time ({error.strerror}); allow more "
                        f"open files: ulimit -n {2 * count + 100}"
                    ) from error
                if isinstance(error, socket.gaierror) or not _is_here(host):
                    raise PeerError(
                        f"network init: cannot listen at {host} ({error.strerror or error}), expected an address of "
                        "this machine, such as 127.0.0.1"
                    ) from error
            port += 1
    return found


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens, to be closed by the caller."""
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if os.name != "nt":  # recently closed connections do not block the port; listening sockets do
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
        opened.listen()
    except BaseException:
        opened.close()
        raise
    return opened


def _is_here(host: str) -> bool:
    try:
        listening(host, 0).close()
        return True
    except OSError:
        return False

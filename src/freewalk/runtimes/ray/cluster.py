"""A Ray cluster: joined, once its machines are known to run the same versions, or started; and its tasks."""

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from freewalk.checks import Checks, cores, in_bytes, said
from freewalk.errors import FreewalkError, MissingExtra

_check = Checks(FreewalkError)
_LEAST_STORE = 2**28  # bytes of the object store that we start; untouched pages cost nothing
_SHARE = 0.9  # fraction of the free shared memory
_LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by an address that others can reach
_ANSWER = 10  # seconds that an address may take to answer
_SECONDS = 60  # that a machine may take to report its versions
_RETRIES = 16  # how many deaths of workers a task survives
# By default Ray sends usage reports, warns about a changing default, and prints errors twice.
_QUIET = dict.fromkeys(("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"), "0")
_QUIET["RAY_IGNORE_UNHANDLED_ERRORS"] = "1"


@dataclass
class _Session:
    """The state of this process's connection to a cluster."""

    started: int = 0  # bytes of the object store of a cluster that we started; 0 if it is not ours
    address: str = ""
    checked: frozenset[str] = frozenset()  # the machines whose versions match ours


_session = _Session()
_one_at_a_time = threading.RLock()  # points of a sweep may call at the same time


@dataclass(frozen=True)
class Machine:
    """A machine of a cluster, and what it offers."""

    name: str
    cpus: int
    gpus: int


def ray_module() -> ModuleType:
    """Ray, or an error with the line that installs it."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    logging.getLogger("ray").setLevel(logging.ERROR)  # before `init`, which sets the level only at its end
    return ray  # type: ignore[no-any-return]


def connect(address: str | None = None, room: int = 0) -> list[Machine]:
    """Connect this process to a cluster, and return the machines that are alive.

    Without an address, it is the cluster that this process has already joined or that $RAY_ADDRESS names, else one on
    this machine alone, with an object store for `room` bytes, which is started here and stopped with the process.
    """
    if address is not None and "://" in _check.text("Ray", "address", address):
        remedy = "run the script on a machine of the cluster"
        raise _check.fail("Ray", "address", address, '"host:port" or "auto"', remedy)
    ray = ray_module()
    with _one_at_a_time:
        _connect(ray, address, room)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        if not _session.started:
            _check_versions(ray, nodes)
    offers = [(node["NodeManagerHostname"], node["Resources"]) for node in nodes]
    return [Machine(name, int(offer.get("CPU", 0)), int(offer.get("GPU", 0))) for name, offer in offers]


def _connect(ray: ModuleType, address: str | None, room: int) -> None:
    here = str(ray.get_runtime_context().gcs_address) if ray.is_initialized() else ""
    if here != _session.address:  # other code has joined or left a cluster
        _session.started, _session.address, _session.checked = 0, here, frozenset()
    if _session.started and address is None and (_session.started < room or not _answers(here)):
        ray.shutdown()  # ours, but too small or shut down
    if not ray.is_initialized():
        _session.started, _session.checked = 0, frozenset()
        with _handlers_kept():
            if address is None and not os.environ.get("RAY_ADDRESS"):
                _session.started = _start(ray, room)
            else:
                _join(ray, address)
        _session.address = str(ray.get_runtime_context().gcs_address)
    elif address not in (None, "auto") and not _is_same(str(address), here):
        remedy = "leave the address out, or call ray.shutdown() first"
        raise FreewalkError(f"Ray: address = {address!r}, but this process has joined the cluster at {here}; {remedy}")


def _start(ray: ModuleType, room: int) -> int:
    """Start a cluster of this machine alone, on loopback, without a dashboard; returns the size of its object store."""
    free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 2**62
    most = int(_SHARE * free)
    if room > most:
        left = f"the shared memory of this machine (/dev/shm) has {in_bytes(free)} left"
        remedy = "enlarge it, or use mapped files (fw.graphs.read)"
        raise FreewalkError(f"Ray: its object store must hold {in_bytes(room)}, but {left}; {remedy}")
    store = min(max(_LEAST_STORE, room), most)
    # Ray's own deadlines for its processes are short for a busy machine, so that it gets a second chance.
    why = _init(ray, store) and _init(ray, store)
    if why:
        raise FreewalkError(f"Ray: cannot be started on this machine: {why}")
    return store


def _init(ray: ModuleType, store: int) -> str:
    """Start Ray; returns why it failed, if it did."""
    try:
        with _sigterm_blocked() if hasattr(signal, "pthread_sigmask") else nullcontext():
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=store,
                num_cpus=cores(),
                log_to_driver=True,
                logging_level="ERROR",
                **({"_node_ip_address": _LOOPBACK} if sys.platform == "linux" else {}),
            )
    except Exception as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):  # Ray forgets the processes of a start that failed
            node: Any = frame.f_locals.get("self")
            if hasattr(node, "kill_all_processes"):
                node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        return said(error)
    return ""


def _join(ray: ModuleType, address: str | None) -> None:
    where = address or os.environ["RAY_ADDRESS"]
    remedy = "start one with `ray start --head`, or leave the address out for one on this machine alone"
    if where != "auto":
        host, _, port = where.rpartition(":")
        if not host or not port.isdecimal():
            raise _check.fail("Ray", "address", where, '"host:port" or "auto"')
        if not _answers(where):  # Ray itself would wait for minutes
            raise FreewalkError(f"Ray: no cluster answers at {where}; {remedy}")
    try:
        ray.init(address=where, log_to_driver=True, logging_level="ERROR")
    except RuntimeError as error:
        what, remedy = f"cannot join the cluster at {where}", ""
        if "ersion mismatch" in str(error):
            what, remedy = f"the cluster at {where} runs other versions", "; install the same on all machines"
        raise FreewalkError(f"Ray: {what}: {said(error)}{remedy}") from error
    except Exception as error:
        raise FreewalkError(f"Ray: no cluster answers at {where} ({said(error)}); {remedy}") from error


def _answers(address: str) -> bool:
    """Whether anything listens at an address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError):
        return False
    return True


def _is_same(address: str, other: str) -> bool:
    """Whether two addresses are the same."""
    (host, _, port), (other_host, _, other_port) = address.rpartition(":"), other.rpartition(":")
    try:
        return port == other_port and (host == other_host or _resolved(host) & _resolved(other_host) != set())
    except OSError:
        return False


def _resolved(host: str) -> set[str]:
    """The addresses of a host; for this machine, all of its addresses."""
    found = {str(info[4][0]) for info in socket.getaddrinfo(host.strip("[]"), None)}
    here = found & {"127.0.0.1", "::1"}
    return found | ({str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)} if here else set())


def _check_versions(ray: ModuleType, nodes: list[dict[str, Any]]) -> None:
    """Ask each machine once for its versions."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    new = [node for node in nodes if node["NodeID"] not in _session.checked and node["Resources"].get("CPU")]
    ours, asked = _versions(), []
    _versions.__module__ = "__main__"  # sent by value, because the module may not exist there
    for node in new:
        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked.append(ray.remote(_versions).options(num_cpus=0, max_retries=2, scheduling_strategy=here).remote())
    for node, answer in zip(new, asked, strict=True):
        name = node["NodeManagerHostname"]
        with _check.attempt(f"Ray: the machine {name} does not report its versions"):
            theirs = ray.get(answer, timeout=_SECONDS)
        other = [f"{package} {theirs[package]}, here {own}" for package, own in ours.items() if theirs[package] != own]
        if other:
            remedy = "install the same versions on all machines of the cluster"
            raise FreewalkError(f"Ray: the machine {name} runs {'; '.join(other)}; {remedy}")
    _session.checked |= {node["NodeID"] for node in new}


def _versions() -> dict[str, str]:
    """The versions that all machines of a cluster must share; also runs where freewalk is not installed."""
    import sys
    from importlib import import_module

    found, names = {}, {"freewalk": "freewalk._version", "Ray": "ray", "numpy": "numpy", "numba": "numba"}
    for package, module in names.items():
        try:
            found[package] = str(import_module(module).__version__)
        except ImportError:
            found[package] = "(none)"
    return {"freewalk": found["freewalk"], "Python": ".".join(map(str, sys.version_info[:2]))} | found


@contextmanager
def _sigterm_blocked() -> Iterator[None]:
    """Processes started during the block ignore SIGTERM; Ray already makes them ignore Ctrl-C."""
    # Job schedulers send SIGTERM to all processes; without its workers, this process could not fetch the walks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore our SIGTERM handler, which Ray replaces."""
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if here else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def task_options(cpus: int, cards: float) -> dict[str, Any]:
    """Options for a task that may be rerun elsewhere, with the same result."""
    return {"num_cpus": cpus, "num_gpus": cards, "max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}


def slots(machines: Sequence[Machine], cpus: int, cards: float = 0) -> int:
    """The number of such tasks that run at a time; an error if none can, since Ray would wait forever."""
    found = sum(min(one.cpus // cpus, int(one.gpus / cards) if cards else one.cpus) for one in machines)
    if not found:
        offered = ", ".join(f"{one.name}: {one.cpus} cores, {one.gpus} cards" for one in machines)
        needed = f"{cpus} cores" + (f" and {cards:g} cards" if cards else "")
        raise FreewalkError(f"Ray: a task needs {needed}, but no machine of the cluster offers that ({offered})")
    return found


def cause_of(error: BaseException) -> BaseException:
    """The error raised on a worker, with a note on where; an error of Ray itself, in one line."""
    from ray.exceptions import RayError, RayTaskError

    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause if isinstance(error.cause, Exception) else error
        cause.add_note(f"Ray: raised on a worker:\n{error}")
        return cause
    if isinstance(error, RayError):
        return FreewalkError(f"Ray: {said(error)}")
    return error

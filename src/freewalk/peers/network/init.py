"""A network of peers made from a spec: a folder for each node, and one with the operator's description."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import randbelow
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tomlkit
from numpy.typing import NDArray

from freewalk._version import __version__
from freewalk.errors import PeerError
from freewalk.graphs import Graph
from freewalk.peers.network import config
from freewalk.peers.network.admission import Admitted, admit
from freewalk.peers.network.config import Address, MemberTable, NetworkTable, NodeConfig
from freewalk.peers.network.toml import choice_values, walk_values, write_config, write_network
from freewalk.peers.node import data
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.token import Trust
from freewalk.rules.rule import begun
from freewalk.specs.keys import names_in
from freewalk.specs.own import Importer, Tell
from freewalk.specs.plan import Plan
from freewalk.specs.spec import INPUTS, SPEC, Spec, load, parse
from freewalk.storage import files

if TYPE_CHECKING:
    from freewalk.peers.network.certificates import Signatures

_SLOW = 1e6  # bytes per second of a slow link: a model must arrive before its lease expires
_LONGEST = 50  # letters, so that a number can follow
_FIRST_PORT, _FIRST_PORTS = 20_000, 8_000  # the range of the first port
_LAST_PORT = 2**16 - 1
check = config.check


@dataclass(frozen=True)
class Network:
    """A network, for its operator."""

    folder: Path
    table: NetworkTable
    tell: Tell | None = None

    @staticmethod
    def read(folder: str | os.PathLike[str], tell: Tell | None = None) -> Network:
        """The network in a folder created by `init`; nothing that its spec names is imported yet."""
        path = check.path("network", "folder", folder)
        if not (path / config.NETWORK).is_file():
            missing = f"is not the folder of a network (no {config.NETWORK})"
            raise PeerError(f"{path}: {missing}; create one with: network init")
        source = str(path / config.NETWORK)
        table = config.checked(config.load(source), NetworkTable, source)
        numbers, tokens = [one.number for one in table.node], table.run.tokens
        if numbers != list(range(len(numbers))):
            raise PeerError(f"{source}: the numbers of [[node]] are {numbers}, expected 0, 1, 2, … in order")
        if max(table.starts) >= len(numbers) or len(table.starts) != tokens:
            expected = f"{tokens} nodes below {len(numbers)}: one for each token"
            raise PeerError(f"{source}: starts = {table.starts}, expected {expected}")
        return Network(path, table, tell)

    @property
    def nodes(self) -> list[MemberTable]:
        """All nodes, by number."""
        return self.table.node

    @property
    def starts(self) -> list[int]:
        """The initial node of each token: token t of replica w has the number w · tokens + t."""
        return self.table.starts

    def path(self, node: int) -> Path:
        """The path of a node's configuration."""
        return self.folder / self.nodes[node].folder / config.CONFIG

    def config(self, node: int) -> NodeConfig:
        """The configuration of a node."""
        return NodeConfig.read(self.path(node), self.tell)

    @property
    def credentials(self) -> tuple[Path, Path, Path] | None:
        """The operator's certificate and key, and the certificate of the authority; None if connections are plain."""
        home = self.folder / config.OPERATOR
        return None if self.table.plain else (home / config.CERTIFICATE, home / config.KEY, home / config.AUTHORITY)

    @property
    def secrets(self) -> dict[Path, str]:
        """What nobody but the operator may read, and what others could do with it."""
        home, what = self.folder / config.OPERATOR, "it, and can call all nodes, or issue certificates"
        return {} if self.table.plain else dict.fromkeys((home / config.KEY, home / config.AUTHORITY_KEY), what)

    @cached_property
    def signatures(self) -> Signatures | None:
        """What the operator signs with; None if connections are plain."""
        if self.credentials is None:
            return None
        from freewalk.peers.network.certificates import Signatures

        return Signatures.read(*self.credentials, self.table.operator)

    @property
    def trust(self) -> Trust:
        """Whom the operator believes what it says of generations."""
        return (self.signatures if self.table.signed else None) or Trust()

    @cached_property
    def plan(self) -> Plan:
        """The plan of the spec, by which models are measured; user classes are imported."""
        spec = parse(self.table.spec, str(self.folder / config.NETWORK), Path(self.table.folder))
        return spec.plan(self.tell)

    @cached_property
    def task(self) -> Admitted:
        """The walk that the network runs: objective, kernel, rule, and initial nodes and models."""
        return admit(self.plan, str(self.folder / config.NETWORK), self.table.label)

    def vectors(self) -> list[dict[str, NDArray[np.floating]]]:
        """The initial vectors of each token: the model "x", and what its rule carries."""
        task = self.task
        named = {"x": task.models, **begun(task.rule, task.models)}
        return [{name: named[name][row] for name in ("x", *task.rule.carries)} for row in range(len(task.models))]


def init(
    spec: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    label: str | None = None,
    host: str = "127.0.0.1",
    first_port: int | None = None,
    plain: bool = False,
    lease: float | None = None,
    force: bool = False,
    tell: Tell | None = None,
) -> Network:
    """Create the folders of all nodes of a network, and of its operator, from a spec."""
    path = check.path("network init", "folder", folder)
    times: dict[str, float] = {}
    if lease is not None:  # times that are shorter by default stay shorter
        seconds = check.real("network init", "lease", lease, above=0.0, high=1e6)
        less = min(1.0, seconds / Settings.lease)
        times = {"lease": seconds, "patience": less * Settings.patience, "retry": less * Settings.retry}
    if plain and not Address(host, 0).is_loopback:
        raise check.fail(
            "network init", "host", host, "127.0.0.1 for plain connections", "leave out --plain for certificates"
        )
    if path.exists() or path.is_symlink():
        if not force:
            raise PeerError(f"{path} exists already; choose another folder, or replace it with --force")
        if path.is_symlink() or not (path / config.NETWORK).is_file():
            raise PeerError(f"{path} is not the folder of a network, so it is not replaced; choose another")
        _demand_stopped(path)
    loaded = load(spec)
    plan = loaded.plan(tell)
    task = admit(plan, loaded.source, label)
    if lease is None and (slow := task.job.message_bytes(task.rule) / _SLOW) > 1.0:
        times = {"lease": Settings.lease + slow}
    importer, fade = Importer(loaded.folder, loaded.source), task.kernel.fade
    faded = None if fade is None else choice_values(fade, "schedule", importer)
    run = _run(loaded, plan, task, faded, importer)
    names = names_of(task.kernel.graph)
    made = _Made(loaded, plan, task, names, run, times, faded, plain)
    if made.is_written:
        task.objective.local(0)  # raises all errors before anything is written
    addresses = free_addresses(host, len(names), first_port)
    with _whole(path) as temporary:
        _write(made, addresses, temporary)
    return Network.read(path, tell)


def upgrade(folder: str | os.PathLike[str], tell: Tell | None = None) -> Network:
    """Let a network of an earlier version sign: new certificates, with the numbers of nodes, and `signed` for all."""
    from freewalk.peers.network.certificates import Authority, describe

    network = Network.read(folder, tell)
    if network.credentials is None:
        raise PeerError(f"{folder}: connections are plain, so nothing can be signed; create it without --plain")
    _demand_stopped(network.folder)
    authority = Authority.read(network.folder / config.OPERATOR)
    for member in network.nodes:
        home, path = network.folder / member.folder, network.path(member.number)
        before = describe((home / config.CERTIFICATE).read_bytes())
        authority.equip(home, member.name, (*before.names, *before.addresses), member.number)
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
        document["security"]["signed"] = True
        files.write(path, tomlkit.dumps(document))
    write_network(network.table.model_copy(update={"signed": True}), network.folder / config.NETWORK)
    return Network.read(folder, tell)


def _demand_stopped(folder: Path) -> None:
    from freewalk.peers.network.supervisor import processes

    if processes(folder):
        raise PeerError(f"{folder}: its nodes are running; stop them first with: network down")


class _Made(NamedTuple):
    """The parts of a network, except its addresses."""

    spec: Spec
    plan: Plan
    task: Admitted
    names: list[str]
    run: dict[str, Any]  # the table [run], the same for all nodes
    times: dict[str, float]
    fade: dict[str, Any] | None  # the schedule of the kernel
    plain: bool

    @property
    def is_written(self) -> bool:
        """Whether the data of a node are written to a file; if not, it builds them from the spec."""
        return type(self.task.objective) in data.KINDS.values()


def _run(spec: Spec, plan: Plan, task: Admitted, fade: dict[str, Any] | None, importer: Importer) -> dict[str, Any]:
    """The table [run]; its rule is as written in the spec, unless values were filled in or a method created it."""
    walk = spec.tables.walk[list(plan.jobs).index(task.label)]
    written = walk.phase[0].rule if walk.phase else walk.rule
    as_written = written is not None and plan.methods[task.label][0].rule is task.rule
    rule = written if as_written else choice_values(task.rule, "rule", importer)
    path, start = str(spec.folder.resolve()) if names_in(rule) or names_in(fade or {}) else None, task.start
    long = {"seed": task.job.seed, "steps": start.steps, "every": start.every, "tokens": len(task.models)}
    model = {"rule": rule, "path": path, "precision": task.job.precision, "dim": task.objective.dim}
    return {**long, **model, "version": __version__}


def _write(made: _Made, addresses: list[Address], folder: Path) -> None:
    task, name = made.task, safe(made.spec.name) or "network"
    authority, hosts = None, tuple[str, ...]()
    security: dict[str, Any] = {"plain": True}
    if not made.plain:
        from freewalk.peers.network.certificates import LOOPBACK, Authority

        authority = Authority.new(f"freewalk {name}")
        hosts = LOOPBACK if addresses[0].is_loopback else (addresses[0].host,)
        security = {"certificate": config.CERTIFICATE, "key": config.KEY, "authority": config.AUTHORITY}
        security |= {"operator": config.OPERATOR, "signed": True}
    members: list[dict[str, Any]] = [
        {"number": node, "name": one, "address": str(address), "folder": f"node-{node:04d}"}
        for node, (one, address) in enumerate(zip(made.names, addresses, strict=True))
    ]
    importance, degrees = task.objective.known_smoothness, task.kernel.graph.degrees

    def neighbour(node: int) -> dict[str, Any]:
        known = None if importance is None else float(importance[node])
        place = {key: members[node][key] for key in ("number", "name", "address")}
        return {**place, "degree": int(degrees[node]), "importance": known}

    for node, member in enumerate(members):
        home, local = folder / member["folder"], task.kernel.local(node)
        home.mkdir(0o700)
        own = {"name": member["name"], "number": node, "listen": member["address"], "data": _data(made, node, home)}
        around = [neighbour(int(one)) for one in local.neighbours]
        tables = {"run": made.run, "times": made.times, "security": security}
        values = {"node": own, "neighbour": around, "walk": walk_values(local, len(members), made.fade), **tables}
        if authority is not None:
            authority.equip(home, member["name"], hosts, node)
        write_config(NodeConfig.of(values, home, str(home / config.CONFIG)), home / config.CONFIG)
    if authority is not None:
        operator = folder / config.OPERATOR
        operator.mkdir(0o700)
        authority.equip(operator, config.OPERATOR, hosts)
        authority.write(operator)
    known = {"name": name, "label": task.label, "folder": str(made.spec.folder.resolve()), "spec": made.spec.text}
    more = {"starts": task.start.nodes.tolist(), "operator": config.OPERATOR}
    more |= {"plain": made.plain, "signed": not made.plain}
    values = {**known, **more, "run": made.run, "times": made.times, "node": members}
    write_network(config.checked(values, NetworkTable, config.NETWORK), folder / config.NETWORK)


def _data(made: _Made, node: int, home: Path) -> dict[str, Any]:
    """Write the data of a node, and return its table `data`."""
    objective: Any = made.task.objective
    if not made.is_written:
        files.write(home / SPEC, made.spec.text)
        inputs = {"folder": str(made.spec.folder.resolve()), "files": made.plan.files}
        files.write(home / INPUTS, json.dumps(inputs, indent=2, ensure_ascii=False) + "\n")
        return {"object": data.FROM_SPEC}
    share = objective.local(node)
    if share.factor == 0:
        return {"relay": True, "dim": objective.dim}
    data.write_samples(share, home / config.DATA)
    kind, ridge = type(objective).__name__, float(objective.ridge)
    return {"file": config.DATA, "kind": kind, "ridge": ridge, "factor": share.factor}


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A new folder that is moved into place at the end of the block, or removed if the block fails."""
    with config.attempted(f"{path}: cannot be written", "choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as home:
            temporary, old = Path(home) / "new", Path(home) / "old"
            temporary.mkdir(0o700)
            yield temporary
            try:
                if path.exists():
                    path.rename(old)
                temporary.rename(path)
            finally:
                if old.exists() and not path.exists():
                    old.rename(path)


# Names of nodes that are valid in certificates, and free addresses.


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
    unsure = {name for name, times in Counter(names).items() if times > 1} | {"", config.OPERATOR}
    found = [name if name not in unsure else f"{name or 'node'}-{node:04d}" for node, name in enumerate(names)]
    return found if len(set(found)) == len(found) else numbered  # "a" twice, and one that is called "a-0001"


def free_addresses(host: str, count: int, first_port: int | None = None) -> list[Address]:
    """Free addresses: all were held at the same time, then released."""
    if first_port is not None:
        check.whole("network init", "first_port", first_port, 1, _LAST_PORT)
    with config.attempted(f"network init: cannot listen at {host}", "give an address of this machine"):
        listening(host, 0).close()
    port, found = first_port or _FIRST_PORT + randbelow(_FIRST_PORTS), list[Address]()
    with ExitStack() as held:
        while len(found) < count:
            if port > _LAST_PORT:
                missing = f"{len(found)} ports from {first_port} are free, expected {count}"
                raise PeerError(f"network init: {missing}; start at a lower one")
            try:
                found.append(Address(host, held.enter_context(listening(host, port)).getsockname()[1]))
            except OSError as error:
                if error.errno == errno.EMFILE:
                    remedy = f"allow more open files: ulimit -n {2 * count + 100}"
                    raise PeerError(f"network init: {count} ports cannot be held at once; {remedy}") from error
            port += 1
    return found


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens, to be closed by the caller."""
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(place, family=family)

"""The configuration of a node and of a network: its tables, checked by pydantic, with errors in plain words.

`NodeConfig` is all that one node knows: its name and address, its data, its neighbours, its share of the walk.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, PrivateAttr

from freewalk.checks import LARGEST, LAST_SEED, Checks
from freewalk.designs.local import LocalKernel, LocalMove, LocalRow
from freewalk.errors import PeerError
from freewalk.objectives.objective import Share
from freewalk.peers.node import data
from freewalk.peers.protocol.messages import LINEAGE, Settings
from freewalk.rules import Rule
from freewalk.specs import catalogue
from freewalk.specs.keys import Count, Part, SpecTable, Structure, Whole, validated
from freewalk.specs.own import Importer, Tell
from freewalk.storage.files import regular

#: The files in the folder of a node, and in that of the operator.
NETWORK, CONFIG, DATA, OPERATOR = "network.toml", "config.toml", "data.npz", "operator"
CERTIFICATE, KEY, AUTHORITY, AUTHORITY_KEY = "certificate.pem", "key.pem", "authority.pem", "authority-key.pem"

check = Checks(PeerError)
_TOLERANCE = 1e-9  # for a sum of probabilities
_LARGEST_FILE = 100_000_000  # bytes
_LONGEST_NAME = 63  # letters of a part of a DNS name
_MOST_HOPS = 1_000_000
_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_WORD = "^0x_?[0-9a-fA-F]+(_[0-9a-fA-F]+)*$"
_A_NAME = "a name of up to 63 small letters, digits and hyphens, such as node-0007"
_A_NODE = "the number of a node, from 0"
_AN_ADDRESS = 'an address such as "127.0.0.1:7000" or "[::1]:7000"'
_SECONDS = "a number of seconds > 0"
_AROUND = "expected neighbours or the node itself as nodes, and as many ascending ends"


class Address(NamedTuple):
    """The address at which a node listens."""

    host: str
    port: int

    @staticmethod
    def of(words: str) -> Address:
        """Read an address."""
        host, colon, port = words.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = str(ip_address(host[1:-1]))
        elif ":" in host:
            raise ValueError("an IPv6 address stands in brackets")
        if not colon or not host or not host.isascii() or not host.isprintable() or " " in host or "/" in host:
            raise ValueError("no host")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 2**16):
            raise ValueError("no port")
        return Address(host, int(port))

    def __str__(self) -> str:
        """As `of` reads it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


Name = Annotated[str, Field(pattern=_NAME, max_length=_LONGEST_NAME)]
Title = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=_LONGEST_NAME)]
Place = Annotated[str, Field(min_length=1, max_length=4096)]
Where = Annotated[str, Field(max_length=300), AfterValidator(lambda words: str(Address.of(words)))]
Node = Annotated[Whole, Field(ge=0, lt=2**31)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, Field(pattern=_WORD, max_length=18)]  # 64 bits, more than integers of TOML must support


# In the tables below, the description of a field is what errors say was expected.
class DataTable(SpecTable):
    """The data of a node: a file of samples, an object of the user, or nothing."""

    file: Place | None = Field(None, description="an .npz file with the arrays features and targets")
    kind: str | None = Field(None, pattern="^(LeastSquares|Logistic)$", description='"LeastSquares" or "Logistic"')
    ridge: Real | None = Field(None, ge=0, description="a number >= 0")
    factor: Real | None = Field(None, gt=0, description="a number > 0: the weight of this node, on average 1")
    object: Place | None = Field(None, description='a function as "module:name" that returns the share of a node')
    path: Place | None = Field(None, description="the folder of its module")
    options: Part | None = Field(None, description="a table with further arguments of the function")
    relay: bool | None = Field(None, description="true")
    dim: Count | None = Field(None, description="how many numbers a model has")


class NodeTable(SpecTable):
    """Who the node is."""

    name: Name = Field(description=_A_NAME)
    number: Node = Field(description=_A_NODE)
    listen: Where = Field(description=_AN_ADDRESS)
    state: Place = Field("state", description="a folder, relative to this file")
    data: DataTable = Field(description='a table such as { file = "data.npz", kind = "LeastSquares" }')


class PeerTable(SpecTable):
    """Where a node can be reached."""

    number: Node = Field(description=_A_NODE)
    name: Name = Field(description=_A_NAME)
    address: Where = Field(description=_AN_ADDRESS)


class NeighbourTable(PeerTable):
    """A neighbour, and what it has told this node."""

    degree: Count | None = Field(None, description="how many neighbours it has")
    importance: Real | None = Field(None, gt=0, description="a number > 0, its smoothness L_v")


class RowTable(SpecTable):
    """A row of a matrix: the possible next nodes, and the ends of their intervals of words."""

    nodes: list[Node] = Field(min_length=1, description="the numbers of nodes")
    ends: list[Word] = Field(min_length=1, description='words of 64 bits such as "0x7fffffffffffffff"')


class RecallTable(RowTable):
    """The outcomes of a step, for a walk that remembers where it came from."""

    others: list[NotNegative] = Field(
        min_length=1, description="numbers >= 0: for each node, the probability of the others"
    )
    recalls: Word = Field(description='a word such as "0xffffffffffffffff", below which words remember')


class MoveTable(SpecTable):
    """The node's share of a move."""

    hops: Whole = Field(ge=0, le=_MOST_HOPS, description="a whole number >= 0")
    ratio: Real | None = Field(None, gt=0, description="a number > 0")
    neighbour_ratios: list[Positive] | None = Field(None, description="a list of numbers > 0, one per neighbour")
    rows: list[RowTable] | None = Field(None, description="tables such as { nodes = [1, 2], ends = [...] }")


class WalkTable(SpecTable):
    """The node's share of the kernel."""

    n: Count = Field(description="the total number of nodes")
    weight: Positive = Field(description="a number > 0: 1 / (n · target)")
    probabilities: list[Real] = Field(min_length=1, description="a list of probabilities, one per move")
    fade: Part | None = Field(None, description='a schedule such as { kind = "Inverse", initial = 1.0, scale = 100 }')
    row: RecallTable | None = Field(
        None, description="a table such as { nodes = [1, 2], ends = [...], others = [...] }"
    )
    move: list[MoveTable] = Field(min_length=1, description="one or more tables [[walk.move]]")


class RunTable(SpecTable):
    """What all nodes agree on."""

    seed: Whole = Field(ge=0, le=LAST_SEED, description="a whole number from 0 to 2^64 - 1")
    steps: Count = Field(description="a whole number >= 1")
    every: Count = Field(description="a whole number >= 1")
    tokens: Count = Field(description="a whole number >= 1: the tokens of all walks")
    rule: Part = Field(description='a table such as { kind = "SGD", step = 1e-3 }')
    path: Place | None = Field(None, description="the folder with modules of your own that the rule names")
    precision: str = Field(pattern="^float(64|32)$", description='"float64" or "float32"')
    dim: Count = Field(description="how many numbers a model has")
    version: str | None = Field(None, max_length=100, description="the version of freewalk that all nodes run")


class TimesTable(SpecTable):
    """How long a node waits; defaults are those of `Settings`."""

    lease: Positive = Field(Settings.lease, description=_SECONDS)
    patience: Positive = Field(Settings.patience, description=_SECONDS)
    retry: Positive = Field(Settings.retry, description=_SECONDS)
    generations: Count = Field(Settings.generations, le=LARGEST, description="how often a token may be re-issued")
    versions: Count = Field(Settings.versions, description="how many earlier stays a node keeps the stored vectors of")


class SecurityTable(SpecTable):
    """The credentials of the node, and whom it trusts."""

    certificate: Place | None = Field(None, description="a file .pem, relative to this file")
    key: Place | None = Field(None, description="a file .pem, relative to this file")
    authority: Place | None = Field(None, description="a file .pem, relative to this file")
    operator: Name = Field("operator", description=_A_NAME)
    signed: bool = Field(False, description="true or false: whether runs must be signed by the operator")
    plain: bool = Field(False, description="true or false")


class MemberTable(PeerTable):
    """A node of a network."""

    folder: Place = Field(description="its folder, relative to this file")


class NetworkTable(SpecTable):
    """A whole network, for its operator."""

    name: Title = Field(description="a name of letters, digits, dots and hyphens")
    label: str = Field(description="the label of one of the walks of the spec")
    folder: Place = Field(description="the folder of the files and modules that the spec names")
    starts: list[Node] = Field(min_length=1, description="the first node of each token")
    operator: Name = Field("operator", description=_A_NAME)
    plain: bool = Field(False, description="true or false")
    signed: bool = Field(False, description="true or false: whether nodes sign what they re-issue")
    spec: str = Field(description="the text of a spec")
    run: RunTable = Field(description="a table [run]")
    times: TimesTable = Field(default_factory=lambda: TimesTable.model_validate({}), description="a table [times]")
    node: list[MemberTable] = Field(min_length=1, description="tables [[node]]")


@contextmanager
def attempted(words: str, remedy: str) -> Iterator[None]:
    """Report errors of the system, with a remedy."""
    try:
        yield
    except OSError as error:
        raise PeerError(f"{words} ({error.strerror or error}); {remedy}") from error


def read(path: Path) -> bytes:
    """A certificate or a key."""
    with attempted(f"{path}: cannot be read", "`freewalk network init` writes it"):
        return regular(path).read_bytes()


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The values of a TOML file."""
    file = check.path("peers", "path", path)
    try:
        with regular(file).open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"it has more than {_LARGEST_FILE:,} bytes")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise PeerError(f"{file}: cannot be read ({error.strerror or error}), expected a TOML file") from error
    except (ValueError, RecursionError) as error:
        raise PeerError(f"{file}: is not TOML in UTF-8: {' '.join(str(error).split())}") from error


def checked(values: Mapping[str, Any], structure: type[Structure], source: str) -> Structure:
    """Check the structure of values, which errors name `source`."""
    try:
        return validated(values, structure, _place)
    except ValueError as error:
        raise PeerError(f"{source}: {error}") from None


def _place(path: Sequence[str | int]) -> str:
    """The name of a table in an error."""
    words = "".join(f" {one + 1}" if isinstance(one, int) else f".{one}" for one in path)
    return f"[{words[1:]}]" if words else "the top of the file"


class NodeConfig(SpecTable):
    """All that one node knows; `read` reads it from a file, and nothing that it names is read or imported yet."""

    node: NodeTable = Field(description="a table [node]")
    neighbour: list[NeighbourTable] = Field([], description="tables [[neighbour]]")
    walk: WalkTable = Field(description="a table [walk]")
    run: RunTable = Field(description="a table [run]")
    times: TimesTable = Field(default_factory=lambda: TimesTable.model_validate({}), description="a table [times]")
    security: SecurityTable = Field(description="a table [security]")
    _folder: Path = PrivateAttr()
    _source: str = PrivateAttr()
    _tell: Tell | None = PrivateAttr()

    @staticmethod
    def of(
        values: Mapping[str, Any], folder: Path = Path(), source: str = "config", tell: Tell | None = None
    ) -> NodeConfig:
        """A configuration from TOML values, checked; `tell` is called before user code is executed."""
        config = checked(values, NodeConfig, source)
        config._folder, config._source, config._tell = folder, source, tell
        for wrong in chain(_wrong_neighbours(config), _wrong_moves(config), _wrong_security(config)):
            raise PeerError(f"{source}: {wrong}")
        data.check(config.node.data, f"{source}: [node]: data", config.run.dim)
        return config

    @staticmethod
    def read(path: str | os.PathLike[str], tell: Tell | None = None) -> NodeConfig:
        """Read a configuration from a TOML file."""
        return NodeConfig.of(load(path), Path(path).resolve().parent, str(path), tell)

    @property
    def folder(self) -> Path:
        """The folder to which its paths are relative."""
        return self._folder

    @property
    def source(self) -> str:
        """Its name in error messages."""
        return self._source

    @property
    def state(self) -> Path:
        """The folder of its durable state."""
        return self.folder / self.node.state

    @property
    def credentials(self) -> tuple[Path, Path, Path] | None:
        """Its certificate, its key and the certificate of the authority; None if connections are plain."""
        one = self.security
        if one.certificate is None or one.key is None or one.authority is None:
            return None
        return self.folder / one.certificate, self.folder / one.key, self.folder / one.authority

    # Objects built from it.

    def kernel(self) -> LocalKernel:
        """The node's share of the kernel, the same as `kernel.local(node)` to the last bit."""
        walk, where = self.walk, f"{self.source}: [walk]: fade"
        return LocalKernel(
            node=self.node.number,
            neighbours=np.array([one.number for one in self.neighbour], dtype=np.int32),
            weight=walk.weight,
            moves=tuple(map(_move, walk.move)),
            probabilities=tuple(walk.probabilities),
            fade=None if walk.fade is None else catalogue.build("schedule", walk.fade, where, self._importer),
            row=None if walk.row is None else _recall(walk.row),
        )

    @cached_property
    def rule(self) -> Rule:
        """The node's update rule; a user's rule is imported, which executes its code."""
        made: Rule = catalogue.build("rule", self.run.rule, f"{self.source}: [run]: rule", self._importer)
        return made

    def share(self) -> Share:
        """The data of the node: read from its file, or created by user code, which is imported."""
        where = f"{self.source}: [node]: data"
        return data.make(self.node.data, self.node.number, self.run.dim, where, self.folder, self._tell)

    def settings(self) -> Settings:
        """The settings of the protocol."""
        run, stores = self.run, bool(self.rule.stores) or self.rule.counts_visits
        times = self.times.model_dump()
        times["generations"] = min(times["generations"], LINEAGE)  # earlier versions wrote more
        return Settings(run.seed, run.steps, run.every, self.walk.n, stores, **times)

    @property
    def _importer(self) -> Importer:
        return Importer(self.folder / (self.run.path or ""), self.source, self._tell)


def _move(table: MoveTable) -> LocalMove:
    ratios = None if table.neighbour_ratios is None else np.array(table.neighbour_ratios, dtype=np.float64)
    return LocalMove(table.hops, table.ratio, ratios, None if table.rows is None else tuple(map(_row, table.rows)))


def _row(table: RowTable) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    ends = [int(end, 16) for end in table.ends]
    return np.array(table.nodes, dtype=np.int32), np.array(ends, dtype=np.uint64)


def _recall(table: RecallTable) -> LocalRow:
    return LocalRow(*_row(table), np.array(table.others, dtype=np.float64), np.uint64(int(table.recalls, 16)))


# What is wrong with a configuration although each of its tables is fine.


def _wrong_neighbours(config: NodeConfig) -> Iterator[str]:
    """Neighbours are other nodes, in ascending order, with distinct names."""
    number, numbers, n = config.node.number, [one.number for one in config.neighbour], config.walk.n
    if numbers != sorted(set(numbers)):
        yield f"[[neighbour]] numbers are {numbers}, expected distinct, ascending ones"
    if number in numbers or max([number, *numbers]) >= n:
        yield f"node {number} has the neighbours {numbers}, expected other nodes below n = {n} in [walk]"
    names = [config.node.name, config.security.operator, *(one.name for one in config.neighbour)]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        yield (
            f"the name {twice[0]!r} occurs twice, expected distinct names for all neighbours, the node itself and the "
            "operator; certificates are identified by name"
        )


def _wrong_moves(config: NodeConfig) -> Iterator[str]:
    """Moves fit the probabilities and the neighbours."""
    walk, probabilities = config.walk, config.walk.probabilities
    if len(probabilities) != len(walk.move) or min(probabilities) < 0 or abs(sum(probabilities) - 1) > _TOLERANCE:
        moves = f"{len(walk.move)} that add up to 1, one for each [[walk.move]]"
        yield f"[walk]: probabilities = {probabilities}, expected {moves}"
    around = {config.node.number, *(one.number for one in config.neighbour)}
    for place, move in enumerate(walk.move, start=1):
        yield from (f"[walk.move {place}]: {wrong}" for wrong in _wrong_move(move, around))
    if (row := walk.row) is not None:
        distinct = len(set(row.nodes)) == len(row.nodes) == len(row.others)
        if not (_fits(row, around) and distinct and (len(row.nodes) == 1 or min(row.others) > 0)):
            yield f"[walk.row]: {_AROUND}, each once, and as many others, above 0 unless there is only one node"
        if walk.fade is not None or max(move.hops for move in walk.move) > 1:
            yield "[walk.row]: expected moves of at most one hop and no fade: such a walk remembers one node"


def _wrong_move(move: MoveTable, around: set[int]) -> Iterator[str]:
    ratios, rows, degree = move.neighbour_ratios, move.rows, len(around) - 1
    if ratios is not None and len(ratios) != degree:
        yield f"neighbour_ratios has {len(ratios)} numbers, expected {degree}: one per [[neighbour]], in their order"
    if (ratios is not None) != (move.ratio is not None and move.hops == 1):
        yield "expected neighbour_ratios if and only if there is a ratio and hops is 1"
    if rows is None and move.hops > 0 and not degree:
        yield f"hops = {move.hops}, but there is no [[neighbour]] to move to; add one"
    if rows is not None and len(rows) not in (1, move.hops):
        yield f"has {len(rows)} rows, expected one, or one for each of the {move.hops} hops"
    if not all(_fits(row, around) for row in rows or ()):
        yield f"rows: {_AROUND}"


def _fits(row: RowTable, around: set[int]) -> bool:
    ends = [int(end, 16) for end in row.ends]
    return len(ends) == len(row.nodes) and ends == sorted(ends) and set(row.nodes) <= around


def _wrong_security(config: NodeConfig) -> Iterator[str]:
    """There are certificates, or plain connections on this machine only."""
    security = config.security
    missing = [name for name in ("certificate", "key", "authority") if getattr(security, name) is None]
    if missing and not security.plain:
        yield f"[security] needs the key {missing[0]!r}: {SecurityTable.model_fields[missing[0]].description}"
    if security.plain and len(missing) < 3:
        yield "[security]: plain = true, but there is also a certificate; leave out one of them"
    for name, address in {"listen": config.node.listen, **{one.name: one.address for one in config.neighbour}}.items():
        if security.plain and not Address.of(address).is_loopback:
            yield (
                f"[security]: plain = true, but {name} is {address!r}, expected an address of this machine only, such "
                "as 127.0.0.1; plain connections are for trying things out: name a certificate, a key and an authority"
            )

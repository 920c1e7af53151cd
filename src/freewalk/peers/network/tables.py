"""The structure of a node's configuration and of a network, checked by pydantic, with errors in plain words."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, Field, ValidationError

from freewalk.checks import LARGEST, LAST_SEED, Checks, suggestion
from freewalk.errors import PeerError
from freewalk.peers.protocol.messages import Settings
from freewalk.specs.tables import Count, Part, SpecTable, Whole, as_toml

check = Checks(PeerError)
_LARGEST_FILE = 100_000_000  # bytes
_LONGEST_NAME = 63  # letters of a part of a DNS name
_MOST_HOPS = 1_000_000
_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_A_NAME = "a name of up to 63 small letters, digits and hyphens, such as node-0007"
_A_NODE = "the number of a node, from 0"
_AN_ADDRESS = 'an address such as "127.0.0.1:7000" or "[::1]:7000"'
_SECONDS = "a number of seconds > 0"

Structure = TypeVar("Structure", bound=SpecTable)


class Address(NamedTuple):
    """The address at which a node listens.

    Examples
    --------
    >>> Address.of("[::1]:7000"), str(Address("::1", 7000)), Address.of("127.0.0.1:0").is_loopback
    (Address(host='::1', port=7000), '[::1]:7000', True)
    """

    host: str
    port: int

    @staticmethod
    def of(words: str) -> Address:
        """Read an address.

        Raises
        ------
        ValueError
            If it is not an address.
        """
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


def _address(words: str) -> str:
    return str(Address.of(words))


def _hexadecimal(words: str) -> str:
    if not words.startswith("0x") or not 2 < len(words) <= 18 or int(words, 16) < 0:
        raise ValueError("no word")
    return words


Name = Annotated[str, Field(pattern=_NAME, max_length=_LONGEST_NAME)]
Place = Annotated[str, Field(min_length=1, max_length=4096)]
Where = Annotated[str, Field(max_length=300), AfterValidator(_address)]
Node = Annotated[Whole, Field(ge=0, lt=2**31)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Word = Annotated[str, AfterValidator(_hexadecimal)]  # 64 bits, more than integers of TOML must support


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


class NeighbourTable(SpecTable):
    """A neighbour, and what it has told this node."""

    number: Node = Field(description=_A_NODE)
    name: Name = Field(description=_A_NAME)
    address: Where = Field(description=_AN_ADDRESS)
    degree: Count | None = Field(None, description="how many neighbours it has")
    importance: Real | None = Field(None, gt=0, description="a number > 0, its smoothness L_v")


class RowTable(SpecTable):
    """A row of a matrix: the possible next nodes, and the ends of their intervals of words."""

    nodes: list[Node] = Field(min_length=1, description="the numbers of nodes")
    ends: list[Word] = Field(min_length=1, description='words of 64 bits such as "0x7fffffffffffffff"')


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
    plain: bool = Field(False, description="true or false")


class ConfigTable(SpecTable):
    """A whole configuration."""

    node: NodeTable = Field(description="a table [node]")
    neighbour: list[NeighbourTable] = Field([], description="tables [[neighbour]]")
    walk: WalkTable = Field(description="a table [walk]")
    run: RunTable = Field(description="a table [run]")
    times: TimesTable = Field(default_factory=lambda: TimesTable.model_validate({}), description="a table [times]")
    security: SecurityTable = Field(description="a table [security]")


class MemberTable(SpecTable):
    """A node of a network, and the tokens that start there."""

    number: Node = Field(description=_A_NODE)
    name: Name = Field(description=_A_NAME)
    address: Where = Field(description=_AN_ADDRESS)
    folder: Place = Field(description="its folder, relative to this file")


class NetworkTable(SpecTable):
    """A whole network, for its operator."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=_LONGEST_NAME)] = Field(
        description="a name of letters, digits, dots and hyphens"
    )
    label: str = Field(description="the label of one of the walks of the spec")
    folder: Place = Field(description="the folder of the files and modules that the spec names")
    starts: list[Node] = Field(min_length=1, description="the first node of each token")
    operator: Name = Field("operator", description=_A_NAME)
    plain: bool = Field(False, description="true or false")
    spec: str = Field(description="the text of a spec")
    run: RunTable = Field(description="a table [run]")
    times: TimesTable = Field(default_factory=lambda: TimesTable.model_validate({}), description="a table [times]")
    node: list[MemberTable] = Field(min_length=1, description="tables [[node]]")


def load(path: str | os.PathLike[str], structure: type[Structure]) -> Structure:
    """Read a TOML file and check its structure.

    Raises
    ------
    PeerError
        If it cannot be read, a key is unknown or missing, or a value is not of the expected form; the message names the
        file and the key.
    """
    file = check.path("peers", "path", path)
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise PeerError(f"{file}: has more than {_LARGEST_FILE:,} bytes, expected a configuration")
        values = tomllib.loads(content.decode())
    except OSError as error:
        raise PeerError(f"{file}: cannot be read ({error.strerror or error}), expected a TOML file") from error
    except UnicodeDecodeError as error:
        raise PeerError(f"{file}: is not a text in UTF-8, expected a TOML file") from error
    except (ValueError, RecursionError) as error:
        raise PeerError(f"{file}: is not TOML: {' '.join(str(error).split())}") from error
    return checked(values, structure, str(file))


def checked(values: Mapping[str, Any], structure: type[Structure], source: str) -> Structure:
    """Check the structure of values, which errors name `source`.

    Examples
    --------
    >>> checked({"node": {"nmae": "node-0001"}}, ConfigTable, "config.toml")
    Traceback (most recent call last):
    freewalk.errors.PeerError: config.toml: [node] has no key 'nmae'; did you mean 'name'?
    """
    try:
        return structure.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
    worst = min(found, key=lambda one: (one["type"] != "extra_forbidden", one["type"] == "missing"))
    raise PeerError(f"{source}: {_in_words(worst['type'], worst['loc'], worst['input'], structure)}")


def _in_words(problem: str, path: Sequence[str | int], got: Any, structure: type[SpecTable]) -> str:
    """One problem that pydantic found, as a sentence."""
    where, table, depth = "", structure, 0
    # Follow the path down to the field; levels below it add nothing.
    while depth < len(path) - 1 and (inner := _table_of(table, path[depth])) is not None:
        several = isinstance(path[depth + 1], int)
        if depth + 1 + several >= len(path):
            break
        where += f"{'.' if where else ''}{path[depth]}{f' {int(path[depth + 1]) + 1}' if several else ''}"
        table, depth = inner, depth + 1 + several
    place, key = f"[{where}]" if where else "the top of the file", str(path[depth]) if path else ""
    if problem == "extra_forbidden":
        return f"{place} has no key {key!r}; {suggestion(key, table.model_fields, 'its keys are')}"
    expected = table.model_fields[key].description if key in table.model_fields else "a table"
    if problem == "missing":
        return f"{place} needs the key {key!r}: {expected}"
    if isinstance(got, (list, dict)):
        return f"{place}: {key} is a {'list' if isinstance(got, list) else 'table'}, expected {expected}"
    return f"{place}: {key} = {as_toml(got)}, expected {expected}"


def _table_of(table: type[SpecTable], key: str | int) -> type[SpecTable] | None:
    """The table, or the tables of a list, at a key."""
    field = table.model_fields.get(str(key))
    kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
    kinds += [inner for kind in kinds for inner in get_args(kind)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, SpecTable)), None)

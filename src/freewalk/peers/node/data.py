"""The data of a node, which never leave it: where they come from, and the updates that it makes with them."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import takes
from freewalk.errors import FreewalkError, PeerError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.objectives.objective import Share
from freewalk.peers.protocol.messages import Compute, Computed, Settings
from freewalk.peers.protocol.payload import Form, Payload
from freewalk.rules import Rule
from freewalk.rules.rule import begun
from freewalk.runtimes.visit import Occasion, at_once, numbers_of, visit
from freewalk.specs.own import Importer, Tell, blame
from freewalk.storage.archive import reading_arrays, write_arrays

if TYPE_CHECKING:
    from freewalk.peers.network.config import DataTable

KINDS = {"LeastSquares": LeastSquares, "Logistic": Logistic}
FROM_SPEC = "freewalk.peers.node.data:from_spec"
_MOVED = {"freewalk.peers.shares:from_spec": FROM_SPEC}  # as networks of earlier versions have it
_KEYS = {"file": ("kind", "ridge", "factor"), "object": ("path", "options"), "relay": ("dim",)}
_FORMS = '{ file = "data.npz", kind = "LeastSquares" }, { object = "module:name" } or { relay = true, dim = 10 }'


def from_spec(number: int, folder: Path, spec: str = "spec.toml") -> Share:
    """The share of one node of the objective that the file `spec` in a folder describes.

    It builds the whole objective, with the data of all nodes, and takes one share of it. Use it only to try things on
    one machine; a real node gets its data from a file, or from a function that reads nothing else.
    """
    from freewalk.specs.spec import load

    return load(folder / spec).plan().problem.local(number)


def check(table: DataTable, where: str, dim: int) -> None:
    """Check that a table specifies exactly one source of data, without reading or importing anything."""
    given = {key for key, value in table.model_dump().items() if value is not None}
    forms = [form for form in _KEYS if form in given]
    if len(forms) != 1 or table.relay is False:
        raise PeerError(f"{where} has the keys {', '.join(sorted(given)) or '(none)'}, expected one of {_FORMS}")
    stray = given - {forms[0], *_KEYS[forms[0]]}
    if stray:
        raise PeerError(f"{where} has the key {min(stray)!r} as well as {forms[0]!r}; leave it out")
    if table.file is not None and table.kind is None:
        raise PeerError(f"{where} needs the key 'kind': {' or '.join(map(repr, KINDS))}")
    if table.object is not None and (":" not in table.object or not table.object.partition(":")[2].isidentifier()):
        raise PeerError(f'{where}: object = {table.object!r}, expected a function as "module:name"')
    if table.dim is not None and table.dim != dim:
        raise PeerError(f"{where}: dim = {table.dim}, expected {dim}, the dim in [run]")


def make(table: DataTable, number: int, dim: int, where: str, folder: Path, tell: Tell | None = None) -> Share:
    """The share that a node learns from; `where` is the table in error messages, `folder` that of its paths."""
    if table.file is not None:
        share = _from_file(table, number, where, folder / table.file)
    elif table.object is not None:
        share = _from_object(table, number, where, folder, tell)
    else:
        share = Share(LeastSquares(np.zeros((1, dim)), np.zeros(1), np.zeros(1, dtype=np.int64)), number, 0, 0.0)
    if share.objective.dim != dim:
        raise PeerError(f"{where}: models have {share.objective.dim:,} numbers, expected {dim:,}, the dim in [run]")
    return share


def write_samples(share: Share, path: Path) -> None:
    """Write the samples of a node to a file that only its owner can read."""
    alone: Any = share.objective
    path.touch(0o600)
    path.chmod(0o600)
    write_arrays(path, {"features": np.asarray(alone.features), "targets": np.asarray(alone.targets)})


def _from_file(table: DataTable, number: int, where: str, file: Path) -> Share:
    try:
        with reading_arrays(file) as reader:
            features, targets = reader.read("features"), reader.read("targets")
        alone = KINDS[str(table.kind)](features, targets, np.zeros(len(targets), dtype=np.int64), table.ridge or 0.0)
    except OSError as error:
        raise PeerError(f"{where}: {file} cannot be read ({error.strerror or error})") from error
    except FreewalkError as error:
        raise PeerError(f"{where}: {file}: {error}") from error
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        words = " ".join(str(error).split())[:200]
        raise PeerError(f"{where}: {file} is no .npz file with the arrays features and targets ({words})") from error
    return Share(alone, number, 0, 1.0 if table.factor is None else float(table.factor))


def _from_object(table: DataTable, number: int, where: str, folder: Path, tell: Tell | None) -> Share:
    importer, name = Importer(folder / (table.path or ""), where, tell), str(table.object)
    function = importer.find("share", _MOVED.get(name, name), where)
    options = {"folder": folder} if takes(function, "folder") else {}
    try:
        share = function(number, **options, **(table.options or {}))
    except FreewalkError as error:
        raise PeerError(f"{where}: {name}: {error}") from error
    except Exception as error:
        raise PeerError(f"{where}: {name} fails ({blame(error)})") from error
    if not isinstance(share, Share):
        expected = "a freewalk.objectives.objective.Share, as objective.local(node) gives it"
        raise PeerError(f"{where}: {name} returns a {type(share).__name__}, expected {expected}")
    if share.node != number:
        raise PeerError(f"{where}: {name} returns the share of node {share.node}, expected that of {number}")
    return share


@dataclass(frozen=True, eq=False)
class Updater:
    """Makes the updates of a node with its share of the data."""

    share: Share
    rule: Rule
    weight: float  # 1 / (n · target) of the node
    settings: Settings
    dim: int
    precision: str
    folder: Path  # where large models are stored
    durable: bool = True  # whether they are flushed to disk after an update

    @cached_property
    def form(self) -> Form:
        """The form of a token's payload."""
        names = ("x", *self.rule.carries)
        return Form(names, ((self.dim,),) * len(names), np.dtype(self.precision))

    @cached_property
    def first(self) -> dict[str, NDArray[Any]]:
        """The vectors that the rule stores here before the first visit."""
        vectors = begun(self.rule, np.zeros((1, self.dim), dtype=self.precision))
        return {name: vectors[name][0] for name in self.rule.stores}

    @cached_property
    def _numbers(self) -> Any:
        """The rule's parameters."""
        return numbers_of(self.rule, self.precision)

    @cached_property
    def _rate(self) -> float | None:
        """The step size, if it is the same at all steps."""
        return float(self.rule.rates(np.array([0]))[0]) if self.rule.constant else None

    def update(self, asked: Compute) -> Computed:
        """Make the update that the protocol requests."""
        rule, token, version = self.rule, asked.token, asked.version
        kept = self.first if version is None or version.payload is None else version.payload.arrays()
        found = {**token.payload.arrays(), **kept}
        vectors = {name: np.array(found[name]) for name in ("x", *rule.carries, *rule.stores)}
        visits = 1 + (0 if version is None else version.visits) if rule.counts_visits else 0
        step = token.point.step
        rate = float(rule.rates(np.array([step]))[0]) if self._rate is None else self._rate
        occasion = Occasion(self.settings.seed, asked.key.walk, step, rate, 0, self.settings.nodes, self.weight, visits)
        visit(rule, self._numbers, self.share, vectors, occasion, at_once)
        finite = all(bool(np.isfinite(vector).all()) for vector in vectors.values())

        def payload(*names: str) -> Payload:
            return Payload.of({name: vectors[name] for name in names}, self.folder, self.durable)

        sent = payload("x", *rule.carries)
        return Computed(asked.key, token.point, sent, payload(*rule.stores) if rule.stores else None, finite)

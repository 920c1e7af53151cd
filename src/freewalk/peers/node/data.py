"""The data of a node: a file of samples, a function of the user, or nothing."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from freewalk.checks import takes
from freewalk.errors import FreewalkError, PeerError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.objectives.objective import Share
from freewalk.peers.network.tables import DataTable
from freewalk.specs.own import Importer, Tell, blame
from freewalk.storage import npz

KINDS = {"LeastSquares": LeastSquares, "Logistic": Logistic}
FROM_SPEC = "freewalk.peers.node.data:from_spec"
_KEYS = {"file": ("kind", "ridge", "factor"), "object": ("path", "options"), "relay": ("dim",)}
_FORMS = '{ file = "data.npz", kind = "LeastSquares" }, { object = "module:name" } or { relay = true, dim = 10 }'


def from_spec(number: int, folder: Path, spec: str = "spec.toml") -> Share:
    """The share of one node of the objective that a spec describes.

    It builds the whole objective, with the data of all nodes, and takes one share of it. Use it only to try things on
    one machine; a real node gets its data from a file, or from a function that reads nothing else.

    Parameters
    ----------
    number
        The number of the node.
    folder
        The folder of the spec.
    spec
        The name of its file.
    """
    from freewalk.specs.spec import load

    return load(folder / spec).plan().problem.local(number)


def check(table: DataTable, where: str, dim: int) -> None:
    """Check that a table specifies exactly one source of data, without reading or importing anything.

    Raises
    ------
    PeerError
        If it does not.
    """
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
    """The share that a node learns from.

    Parameters
    ----------
    table
        Its table.
    number
        The number of the node.
    dim
        The size of a model.
    where
        The name of the table in error messages.
    folder
        The folder to which paths are relative.
    tell
        Called before code is executed.

    Raises
    ------
    PeerError
        If it cannot be read or created, or has the wrong form.
    """
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
    npz.write(path, {"features": np.asarray(alone.features), "targets": np.asarray(alone.targets)})


def _from_file(table: DataTable, number: int, where: str, file: Path) -> Share:
    try:
        with npz.reading(file) as reader:
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
    importer = Importer(folder / (table.path or ""), where, tell)
    function = importer.find_maker("share", str(table.object), where)
    options = {"folder": folder} if takes(function, "folder") else {}
    try:
        share = function(number, **options, **(table.options or {}))
    except FreewalkError as error:
        raise PeerError(f"{where}: {table.object}: {error}") from error
    except Exception as error:
        raise PeerError(f"{where}: {table.object} fails ({blame(error)})") from error
    if not isinstance(share, Share):
        raise PeerError(
            f"{where}: {table.object} returns a {type(share).__name__}, expected a "
            "freewalk.objectives.objective.Share, as objective.local(node) gives it"
        )
    if share.node != number:
        raise PeerError(f"{where}: {table.object} returns the share of node {share.node}, expected that of {number}")
    return share

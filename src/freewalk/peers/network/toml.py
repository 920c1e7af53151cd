"""Configurations as commented TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from numpy.typing import NDArray

from freewalk.designs.local import LocalKernel, LocalMove, LocalRow
from freewalk.errors import PeerError
from freewalk.peers.network.config import NetworkTable, NodeConfig
from freewalk.rules import Rule
from freewalk.schedules import Schedule
from freewalk.specs import catalogue
from freewalk.specs.own import Importer
from freewalk.storage import files

_CONFIG = """\
The configuration of one node of a freewalk network. `freewalk node check` checks it.
Paths are relative to this file. An unknown key is an error."""
_NETWORK = "A freewalk network, for its operator: every node has its own folder and knows only its neighbours."
#: Comments above a table or after a key.
_COMMENTS = {
    "node": "This node. Its name is that of its certificate; its data never leave it.",
    "neighbour": "Its neighbours, and what neighbours tell each other: their degree and their importance.",
    "walk": "The node's share of the walk; it contains nothing about nodes further away.",
    "walk.weight": "1 / (n · target), the factor of its gradients. The target depends on a sum over all nodes, the "
    "one\nnumber that no node knows by itself: `freewalk network init` computes it; if you write a configuration by "
    "hand,\nthe operator sets it.",
    "walk.row": "A walk that remembers where it came from: how it goes on from here. Versions that know no such walk\n"
    "refuse this file, since they would go elsewhere.",
    "walk.move": 'Words of 64 bits are written as "0x…": TOML\'s whole numbers are signed.',
    "run": "What all nodes agree on.",
    "times": "Seconds without a sign of life until a token is re-issued (lease), until an offer counts as refused "
    "(patience),\nand until a message is repeated (retry).",
    "security": "Only neighbours and the operator are admitted, by certificates of one authority. plain = true uses "
    "none,\nand is allowed only at addresses of this machine.",
}


def walk_values(local: LocalKernel, n: int, fade: Mapping[str, Any] | None) -> dict[str, Any]:
    """A node's share of a kernel as the table [walk]; `fade` is its schedule as a table. None is not written."""
    moves, row = [_move_values(move) for move in local.moves], local.row and _recall_values(local.row)
    own = {"n": n, "weight": local.weight, "probabilities": list(local.probabilities)}
    return {**own, "fade": fade, "row": row, "move": moves}


def _recall_values(row: LocalRow) -> dict[str, Any]:
    recalls = f"{int(row.recalls):#018x}"
    return {**_row_values(row.nodes, row.ends), "others": row.others.tolist(), "recalls": recalls}


def _row_values(nodes: NDArray[np.int32], ends: NDArray[np.uint64]) -> dict[str, Any]:
    return {"nodes": nodes.tolist(), "ends": [f"{end:#018x}" for end in ends.tolist()]}


def _move_values(move: LocalMove) -> dict[str, Any]:
    ratios = None if move.neighbour_ratios is None else move.neighbour_ratios.tolist()
    rows = move.rows and [_row_values(*row) for row in move.rows]
    return {"hops": move.hops, "ratio": move.ratio, "neighbour_ratios": ratios, "rows": rows}


def choice_values(choice: Rule | Schedule, family: str, importer: Importer) -> dict[str, Any]:
    """A rule or a schedule as a table from which `catalogue.build` rebuilds it."""
    kind = type(choice)
    listed = catalogue.families()[family].get(kind.__name__)
    ours = listed is not None and listed.make is kind
    table: dict[str, Any] = {"kind": kind.__name__ if ours else f"{kind.__module__}:{kind.__name__}"}
    listed_fields: tuple[Any, ...] = fields(choice) if is_dataclass(choice) else ()
    for field in listed_fields:
        value = getattr(choice, field.name)
        if isinstance(value, Schedule):
            value = choice_values(value, "schedule", importer)
        elif isinstance(value, np.generic):
            value = value.item()
        if field.init and value is not None:
            table[field.name] = value
    try:
        if catalogue.build(family, table, family, importer) == choice:
            return table
        why = "its fields do not describe it completely"
    except Exception as error:
        why = str(error)
    raise PeerError(
        f"{kind.__name__}: cannot be written to the configuration of a node ({why}), expected a frozen dataclass of "
        "plain values in a module that can be imported"
    )


def write_config(config: NodeConfig, path: Path) -> None:
    """Write a configuration to a file, with comments."""
    _write(config.model_dump(exclude_none=True), _CONFIG, _COMMENTS, path)


def write_network(table: NetworkTable, path: Path) -> None:
    """Write the operator's description of a network to a file."""
    _write(table.model_dump(exclude_none=True), _NETWORK, {}, path)


def _write(values: Mapping[str, Any], words: str, comments: Mapping[str, str], path: Path) -> None:
    document = tomlkit.document()
    _comment(document, words)
    document.add(tomlkit.nl())
    files.write(path, _filled(document, values, comments).as_string())


def _filled(container: Any, values: Mapping[str, Any], comments: Mapping[str, str], place: str = "") -> Any:
    """A document or a table with values; in a document, and for moves, there are tables for what is nested."""
    for key, value in values.items():
        name, several = f"{place}{key}", value if isinstance(value, list) else [value]
        words = comments.get(name, "")
        if not (place or several):  # there are no tables
            continue
        if several and isinstance(several[0], Mapping) and (not place or name == "walk.move"):
            container.add(tomlkit.nl())
            tables = [_filled(tomlkit.table(), one, comments, f"{name}.") for one in several]
            item = tomlkit.items.AoT(tables) if isinstance(value, list) else tables[0]
            words = words if name != "walk.move" or any("rows" in move for move in several) else ""
        elif not place and isinstance(value, str) and "\n" in value and "\r" not in value:
            item = tomlkit.string(value, multiline=True)  # readers may change other line endings
        else:
            item = _inline(value)
        _comment(container, words)
        container.add(key, item)
    return container


def _inline(value: Any) -> Any:
    """A value on one line, including nested tables."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(inner) for key, inner in value.items() if inner is not None})
        return table
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        array.extend(map(_inline, value))
        return array
    return value


def _comment(container: Any, words: str) -> None:
    for line in words.splitlines():
        container.add(tomlkit.comment(line))

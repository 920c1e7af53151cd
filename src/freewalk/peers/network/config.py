"""The configuration of one node: its name and address, its data, its neighbours, its share of the walk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from freewalk.designs.local import LocalKernel, LocalMove
from freewalk.errors import PeerError
from freewalk.objectives.objective import Share
from freewalk.peers.network.tables import (
    Address,
    ConfigTable,
    MoveTable,
    NeighbourTable,
    NodeTable,
    RunTable,
    SecurityTable,
    TimesTable,
    checked,
    load,
)
from freewalk.peers.network.toml import write_config
from freewalk.peers.node import data
from freewalk.peers.protocol.messages import Settings
from freewalk.rules import Rule
from freewalk.schedules import Schedule
from freewalk.specs import catalogue
from freewalk.specs.own import Importer, Tell

_TOLERANCE = 1e-9  # for a sum of probabilities


@dataclass(frozen=True)
class NodeConfig:
    """The configuration of a node; `read` reads one from a file.

    Parameters
    ----------
    table
        Its contents.
    folder
        The folder to which its paths are relative.
    source
        Its name in error messages.
    tell
        Called before user code is executed.

    Raises
    ------
    PeerError
        If its parts do not fit each other; the message names the file and the key.
    """

    table: ConfigTable
    folder: Path = Path()
    source: str = "config"
    tell: Tell | None = None

    def __post_init__(self) -> None:
        _check_neighbours(self)
        _check_walk(self)
        _check_security(self)
        data.check(self.node.data, f"{self.source}: [node]: data", self.run.dim)

    @staticmethod
    def of(values: dict[str, Any], folder: Path = Path(), source: str = "config") -> NodeConfig:
        """A configuration from TOML values, checked."""
        return NodeConfig(checked(values, ConfigTable, source), folder, source)

    @staticmethod
    def read(path: str | os.PathLike[str], tell: Tell | None = None) -> NodeConfig:
        """Read a configuration from a TOML file; nothing that it names is read or imported yet.

        Raises
        ------
        PeerError
            If it cannot be read, or is not valid.
        """
        table = load(path, ConfigTable)
        return NodeConfig(table, Path(path).resolve().parent, str(path), tell)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as a commented TOML file, atomically."""
        write_config(self.table, Path(path))

    # Its contents.

    @property
    def node(self) -> NodeTable:
        """The node itself."""
        return self.table.node

    @property
    def neighbours(self) -> list[NeighbourTable]:
        """Its neighbours, in ascending order."""
        return self.table.neighbour

    @property
    def run(self) -> RunTable:
        """What all nodes agree on."""
        return self.table.run

    @property
    def times(self) -> TimesTable:
        """Its time limits."""
        return self.table.times

    @property
    def security(self) -> SecurityTable:
        """Its credentials, and whom it trusts."""
        return self.table.security

    @property
    def listen(self) -> Address:
        """The address at which it listens."""
        return Address.of(self.node.listen)

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
        walk = self.table.walk
        return LocalKernel(
            node=self.node.number,
            neighbours=np.array([one.number for one in self.neighbours], dtype=np.int32),
            weight=float(walk.weight),
            moves=tuple(_move(move) for move in walk.move),
            probabilities=tuple(float(one) for one in walk.probabilities),
            fade=self._fade,
        )

    @cached_property
    def rule(self) -> Rule:
        """The node's update rule; a user's rule is imported, which executes its code."""
        made: Rule = catalogue.build("rule", self.run.rule, f"{self.source}: [run]: rule", self._importer)
        return made

    @cached_property
    def _fade(self) -> Schedule | None:
        if self.table.walk.fade is None:
            return None
        where = f"{self.source}: [walk]: fade"
        made: Schedule = catalogue.build("schedule", self.table.walk.fade, where, self._importer)
        return made

    def share(self) -> Share:
        """The data of the node: read from its file, or created by user code, which is imported.

        Raises
        ------
        PeerError
            If it cannot be read or created, or does not fit.
        """
        where = f"{self.source}: [node]: data"
        return data.make(self.node.data, self.node.number, self.run.dim, where, self.folder, self.tell)

    def settings(self) -> Settings:
        """The settings of the protocol."""
        run, stores = self.run, bool(self.rule.stores) or self.rule.counts_visits
        times = self.times.model_dump()
        return Settings(run.seed, run.steps, run.every, self.table.walk.n, stores, **times)

    @property
    def _importer(self) -> Importer:
        return Importer(self.folder / (self.run.path or ""), self.source, self.tell)


def _move(table: MoveTable) -> LocalMove:
    ratios, rows = table.neighbour_ratios, table.rows
    return LocalMove(
        hops=table.hops,
        ratio=None if table.ratio is None else float(table.ratio),
        neighbour_ratios=None if ratios is None else np.array(ratios, dtype=np.float64),
        rows=None
        if rows is None
        else tuple(
            (np.array(row.nodes, dtype=np.int32), np.array([int(end, 16) for end in row.ends], dtype=np.uint64))
            for row in rows
        ),
    )


def _check_neighbours(config: NodeConfig) -> None:
    """Check that neighbours are other nodes, in ascending order, with distinct names and addresses."""
    numbers = [one.number for one in config.neighbours]
    if numbers != sorted(set(numbers)):
        raise PeerError(f"{config.source}: [[neighbour]] numbers are {numbers}, expected distinct, ascending ones")
    everybody = [config.node.number, *numbers]
    if config.node.number in numbers or max(everybody) >= config.table.walk.n:
        raise PeerError(
            f"{config.source}: node {config.node.number} has the neighbours {numbers}, expected other nodes below n = "
            f"{config.table.walk.n} in [walk]"
        )
    names = [config.node.name, config.security.operator, *(one.name for one in config.neighbours)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PeerError(
            f"{config.source}: the name {twice!r} occurs twice, expected distinct names for all neighbours, the node "
            "itself and the operator; certificates are identified by name"
        )


def _check_walk(config: NodeConfig) -> None:
    """Check that the moves fit the probabilities and the neighbours."""
    walk, where = config.table.walk, f"{config.source}: [walk]"
    data = walk.probabilities
    if len(data) != len(walk.move) or min(data) < 0 or abs(sum(data) - 1) > _TOLERANCE:
        raise PeerError(
            f"{where}: probabilities = {data}, expected {len(walk.move)} that add up to 1, one for each [[walk.move]]"
        )
    around = {config.node.number, *(one.number for one in config.neighbours)}
    for number, move in enumerate(walk.move, start=1):
        place = f"{config.source}: [walk.move {number}]"
        if move.neighbour_ratios is not None and len(move.neighbour_ratios) != len(around) - 1:
            raise PeerError(
                f"{place}: neighbour_ratios has {len(move.neighbour_ratios)} numbers, expected {len(around) - 1}: one "
                "for each [[neighbour]], in their order"
            )
        if (move.neighbour_ratios is not None) != (move.ratio is not None and move.hops == 1):
            raise PeerError(f"{place}: expected neighbour_ratios if and only if there is a ratio and hops is 1")
        if move.rows is None:
            if move.hops > 0 and len(around) < 2:
                raise PeerError(f"{place}: hops = {move.hops}, but there is no [[neighbour]] to move to; add one")
            continue
        if len(move.rows) not in (1, move.hops):
            raise PeerError(
                f"{place}: has {len(move.rows)} rows, expected one, or one for each of the {move.hops} hops"
            )
        for row in move.rows:
            ends = [int(end, 16) for end in row.ends]
            if len(ends) != len(row.nodes) or ends != sorted(ends) or not set(row.nodes) <= around:
                raise PeerError(
                    f"{place}: rows: expected neighbours or the node itself as nodes, and as many ascending ends"
                )


def _check_security(config: NodeConfig) -> None:
    """Check that there are certificates, or plain connections on this machine only."""
    one, where = config.security, f"{config.source}: [security]"
    files = {"certificate": one.certificate, "key": one.key, "authority": one.authority}
    missing = [name for name, file in files.items() if file is None]
    if not one.plain:
        if missing:
            raise PeerError(
                f"{where} needs the key {missing[0]!r}: {SecurityTable.model_fields[missing[0]].description}"
            )
        return
    if len(missing) < len(files):
        raise PeerError(f"{where}: plain = true, but there is also a certificate; leave out one of them")
    addresses = {"listen": config.node.listen, **{one.name: one.address for one in config.neighbours}}
    for name, address in addresses.items():
        if not Address.of(address).is_loopback:
            raise PeerError(
                f"{where}: plain = true, but {name} is {address!r}, expected an address of this machine only, such as "
                "127.0.0.1; plain connections are for trying things out: name a certificate, a key and an authority"
            )

"""The status of a run of a network: positions and progress of its tokens, and the state of the nodes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freewalk.errors import PeerError
from freewalk.objectives.objective import measured
from freewalk.peers.network.init import Network
from freewalk.peers.operator.collect import forgotten
from freewalk.peers.operator.operator import Operator, Whereabouts
from freewalk.peers.protocol.payload import SMALL

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 8  # silent nodes listed by name
_SAID = {"moving": "on its way", "collected": "collected", "silent": "no answer", "lost": "nowhere"}


class Glance(NamedTuple):
    """A run at one moment."""

    tokens: list[Whereabouts]
    measures: dict[int, float]  # the primary measure of each token's model, by walk, if the model is small enough
    statuses: dict[int, Any]  # of each node, or None
    forgotten: bool = False  # whether a node was told to forget it

    @property
    def over(self) -> bool:
        """Whether all tokens found have finished, are collected or lost, or cannot continue."""
        return self.forgotten or (bool(self.tokens) and all(one.over for one in self.tokens))


async def glance(operator: Operator, network: Network, run: str) -> Glance:
    """Get the status of a run."""
    statuses, tokens = await operator.located(run)
    measures, objective = {}, network.task.objective
    for one in tokens:
        if one.node is not None and 0 < one.told.size <= SMALL:
            # a PeerError: it has moved in the meantime, or is not what was announced
            with suppress(PeerError), np.errstate(all="ignore"):
                vectors = await operator.fetch(one.node, one.told.digest, one.told.size, one.told.diverged)
                values = measured(objective, vectors[network.task.rule.reports])
                measures[one.key.walk] = float(values[objective.primary])
    return Glance(tokens, measures, statuses, forgotten(run, statuses))


def as_json(network: Network, run: str, seen: Glance) -> str:
    """A status as one line of JSON."""
    names = [node.name for node in network.nodes]
    tokens = [
        {"walk": one.key.walk, "node": None if one.node is None else names[one.node], "stage": one.told.stage}
        | {"state": one.state, "finished": one.finished, "updates": one.point.step}
        | {"generation": one.point.generation.number, "failure": one.told.failure or None}
        | {name: getattr(one.told, name) for name in ("messages", "probes", "diverged")}
        | {network.task.objective.primary: seen.measures.get(one.key.walk)}
        for one in seen.tokens
    ]
    nodes = [
        {"node": names[number], "up": status is not None} | ({} if status is None else _health(status))
        for number, status in seen.statuses.items()
    ]
    return json.dumps({"run": run, "steps": network.table.run.steps, "tokens": tokens, "nodes": nodes})


def _health(status: Any) -> dict[str, Any]:
    up, sent = sum(edge.up for edge in status.edges), sum(edge.sent for edge in status.edges)
    said = {"process": status.process, "updates": status.updates, "links": up, "of": len(status.edges)}
    sizes = {"sent_bytes": sent, "received_bytes": status.received}
    return said | sizes | {"refused": status.refused, "closed": status.closed or None}


def table(network: Network, run: str, seen: Glance) -> RenderableType:
    """A status for a terminal."""
    from rich.console import Group
    from rich.table import Column, Table
    from rich.text import Text

    primary, steps = network.task.objective.primary, network.table.run.steps
    names = ("token", "at", "doing", "updates", "messages", "probes", primary, "re-issued")
    heads = [Column(name, justify="left" if name in ("at", "doing") else "right") for name in names]
    shown = Table(*heads, box=None, pad_edge=False, header_style="bold")
    for one in seen.tokens:
        told, value, held = one.told, seen.measures.get(one.key.walk), one.node is not None
        place = network.nodes[one.last].name if held else _SAID[one.state]
        doing = Text((told.failure or ("diverged" if told.diverged else told.stage)) if held else "")
        sent = [f"{many:,}" if told.digest else "" for many in (told.messages, told.probes)]  # "" if no token tells
        more = ("" if value is None else f"{value:.4g}", str(one.point.generation.number or ""))
        shown.add_row(str(one.key.walk), place, doing, f"{one.point.step:,} of {steps:,}", *sent, *more)
    up = {node: status for node, status in seen.statuses.items() if status is not None}
    down = [network.nodes[node].name for node in seen.statuses if node not in up]
    broken = sum(not edge.up for status in up.values() for edge in status.edges)
    hidden = f" and {len(down) - _SHOWN} more" if len(down) > _SHOWN else ""
    refused = sum(status.refused for status in up.values())
    closed = [f"{network.nodes[node].name} accepts no tokens: {one.closed}" for node, one in up.items() if one.closed]
    others = f" (and {len(closed) - 1} more)" if len(closed) > 1 else ""
    words = {
        f"run {run!r} was forgotten": seen.forgotten,
        f"run {run!r} has not been launched": not (seen.tokens or seen.forgotten),
        **{one.words(network): one.state == "lost" for one in seen.tokens},
        f"{len(up)} of {len(seen.statuses)} nodes answer": True,
        f"silent: {', '.join(down[:_SHOWN])}{hidden}": down,
        f"{broken} links down": broken,
        f"{refused:,} calls or messages refused": refused,
        f"{''.join(closed[:1])}{others}": closed,
    }
    return Group(shown, Text("; ".join(said for said, holds in words.items() if holds)))

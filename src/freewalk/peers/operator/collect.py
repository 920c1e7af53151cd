"""Launch the walks of a network, wait for them, and assemble their record from the journals of all nodes.

The journals prove that nothing is missing: each update of the lineage that survived is in exactly one of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import PeerError
from freewalk.jobs.phase import marks_in
from freewalk.peers.network.init import Network
from freewalk.peers.node.store import Line
from freewalk.peers.operator.operator import operator_of, whereabouts
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Key
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record
from freewalk.runtimes import Reference, State
from freewalk.runtimes.reference import ReferenceLearning
from freewalk.runtimes.step.arrays import Stretch

_GLANCE = 0.2  # seconds between polls of a run


def keys(network: Network, run: str) -> list[Key]:
    """The tokens of a run."""
    return [Key(run, walk) for walk in range(network.table.run.tokens)]


async def launch(network: Network, run: str) -> None:
    """Launch all tokens of a run; those already launched are left alone."""
    with TemporaryDirectory() as folder:
        async with operator_of(network) as operator:
            signatures = network.signatures
            for key, start, vectors in zip(keys(network, run), network.starts, network.vectors(), strict=True):
                permit = b"" if signatures is None else signatures.permit(key, start)
                await operator.launch(start, key, Payload.of(vectors, Path(folder)), permit)


async def finished(network: Network, run: str, patience: float) -> None:
    """Wait until all tokens of a run have finished, or fail after some seconds, or if one cannot continue."""
    until = time.monotonic() + patience
    async with operator_of(network) as operator:
        while True:
            here = whereabouts(run, await operator.statuses())
            for one in here:
                if one.told.failure:
                    raise PeerError(f"walk {one.key.walk} is stuck at node {one.node}: {one.told.failure}")
            waiting = [one.key.walk for one in here if not one.told.finished]
            if len(here) == network.table.run.tokens and not waiting:
                return
            if time.monotonic() > until:
                raise PeerError(f"run {run!r} has not finished after {patience:g} s: walks {waiting} are still running")
            await asyncio.sleep(_GLANCE)


class Story(NamedTuple):
    """The history of one token."""

    updates: list[Line]  # of the update that led to each step, from step 1
    end: Line  # with which it finished
    departures: list[tuple[int, int]]  # (step, node) of the moves that ended elsewhere than in a simulation
    reissues: int
    discarded: int  # updates that these re-issues discarded

    @property
    def path(self) -> list[int]:
        """The nodes that it visited."""
        return [*(line.node for line in self.updates), self.end.node]


class Collected(NamedTuple):
    """A run of peers: its record, and the history of each token."""

    record: Record
    stories: list[Story]

    @property
    def departures(self) -> tuple[tuple[int, int, int], ...]:
        """(row, step, node) each, as `fw.runtimes.Reference(departures=…)` takes them."""
        return tuple((row, *one) for row, story in enumerate(self.stories) for one in story.departures)


async def collect(network: Network, run: str) -> Collected:
    """Collect a finished run; the nodes may release its tokens afterwards."""
    steps = network.table.run.steps
    async with operator_of(network) as operator:
        journals = await asyncio.gather(*(operator.journal(node.number, run) for node in network.nodes))
        lines = [line for journal in journals for line in journal]
        stories = [tell(key, lines, steps) for key in keys(network, run)]
        with TemporaryDirectory() as folder:
            updates = [line for story in stories for line in story.updates]
            models = {}  # that the journals kept at the marks
            for line, kept in ((line, line.token.payload) for line in updates if line.token is not None):
                payload = await operator.fetch(line.node, kept.digest, kept.size, Path(folder))
                models[line] = {name: np.array(vector) for name, vector in payload.arrays().items()}
            launched = min(line.time - line.seconds for line in lines)
            collected = Collected(_record(network, stories, launched, models), stories)
        statuses = await operator.statuses()
        sent = sum(status.sent[run] for status in statuses.values() if status is not None)
        collected.record.provenance["wire_bytes"] = int(sent)
        for key, story in zip(keys(network, run), stories, strict=True):
            await operator.collect(story.end.node, key, story.end.point)
    return collected


def tell(key: Key, lines: Iterable[Line], steps: int) -> Story:
    """The history of one token from the journals, checked: no update of its lineage was lost or made twice."""
    own = [line for line in lines if line.key == key]
    ends = [line for line in own if line.kind == "finish"]
    if not ends:
        raise PeerError(f"walk {key.walk} of run {key.run} has not finished")
    end = max(ends, key=lambda line: line.point)
    newest = max(line.point.generation for line in own if line.kind in ("re-issue", "finish"))
    if newest != end.point.generation or end.token is None:
        why = f"generation {newest.number} of node {newest.issuer} is still running"
        raise PeerError(f"walk {key.walk} of run {key.run} has not finished: {why}")
    lived = [line for line in own if end.token.descends(line.point)]
    by_step: dict[int, list[Line]] = defaultdict(list)
    for line in lived:
        if line.kind == "update":
            by_step[line.point.step].append(line)
    last = end.point.step
    for step in range(1, last + 1):
        if len(by_step[step]) != 1:
            found = ", ".join(str(line.node) for line in by_step[step]) or "none"
            raise PeerError(f"walk {key.walk}: update {step} should be in one journal, found it in {found}")
    if last < steps and end.note != "diverged":
        raise PeerError(f"walk {key.walk}: finished after {last} updates, expected {steps}")
    discarded = sum(line.kind == "update" for line in own) - last
    departures = sorted({(line.point.step - 1, line.node) for line in lived if line.kind == "departure"})
    return Story([by_step[step][0] for step in range(1, last + 1)], end, departures, len(end.token.lineage), discarded)


def _record(
    network: Network, stories: Sequence[Story], launched: float, models: Mapping[Line, Mapping[str, NDArray[Any]]]
) -> Record:
    """Measure the models that the journals kept, and assemble the record; `launched` in seconds since 1970."""
    task = network.task
    job, rule, steps, every = task.job, task.rule, task.start.steps, task.start.every
    starts = np.array([story.path[0] for story in stories], dtype=np.int32)
    state = State.begin(job, starts, task.models.astype(job.precision), steps, np.arange(len(stories), dtype=np.int64))
    marks = marks_in(-1, steps, every, steps)
    learning = ReferenceLearning(job, task.objective, state, job.passage(0, steps, marks))
    whole = Stretch(first=0, last=state.rows, start=0, stop=steps, mark=0)
    counts = {name: np.zeros((state.rows, marks.size), dtype=np.int64) for name in ("messages", "probes")}
    seconds = np.zeros((state.rows, marks.size))
    for place, mark in enumerate(marks.tolist()):
        for row, story in enumerate(stories):
            at = min(mark, len(story.updates))
            if at > 0:
                vectors = models[story.updates[at - 1]]
                state.models[row] = vectors["x"]
                for index, name in enumerate(rule.carries):
                    state.carried[index, row] = vectors[name]
                seconds[row, place] = story.updates[at - 1].seconds
            after = story.updates[at] if at < len(story.updates) else story.end
            for name, values in counts.items():
                values[row, place] = getattr(after, name) if mark > 0 else 0
        learning.measure(whole._replace(mark=place))
    for row, story in enumerate(stories):
        path = story.path + [story.end.node] * (steps + 1 - len(story.path))
        state.paths[row], state.nodes[row] = path, path[-1]
        np.add.at(state.visits[0 if state.visits_are_summed else row], story.path[:-1], 1)
        state.messages[row], state.probes[row] = story.end.messages, story.end.probes
    state.step = steps
    run = Continuation(job, state, steps, every, Reference())
    summed = {name: state.summed(values) for name, values in counts.items()}
    sent = state.bytes_sent(job, summed["messages"], summed["probes"])
    run.measures = {name: [values] for name, values in {**summed, "bytes": sent, **learning.measures}.items()}
    run.started = datetime.fromtimestamp(launched, UTC).isoformat(timespec="seconds")
    run.seconds = max(story.end.seconds for story in stories)
    latest = seconds.reshape(state.walks, state.tokens, -1).max(axis=1)
    attrs = {"long_name": "time since the launch", "units": "s"}
    data = run.data().assign(seconds=(("walk", "step"), latest, attrs))
    provenance = run.story() | {
        "runtime": "peers",
        "departures": [[row, *one] for row, story in enumerate(stories) for one in story.departures],
        "reissues": sum(story.reissues for story in stories),
        "discarded_updates": sum(story.discarded for story in stories),
    }
    return Record(data, provenance, graph=task.kernel.graph)

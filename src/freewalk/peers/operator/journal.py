"""Assemble the record of a run from the journals of all nodes, and check that nothing is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import PeerError
from freewalk.jobs.phase import marks_in
from freewalk.peers.protocol.token import Generation, Key, Position, Token
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record
from freewalk.runtimes import Job, Reference, State
from freewalk.runtimes.reference import ReferenceLearning
from freewalk.runtimes.step.arrays import Stretch


class Line(NamedTuple):
    """A line of the journal of a node.

    Attributes
    ----------
    node, number, time
        Its node, its number, and its time (seconds since 1970).
    key, kind, point, note, messages, probes
        What happened, as in `messages.Journal`.
    digest, size
        Digest and size of the model, if it was kept.
    origin, lineage
        Origin and lineage of the token, if it was kept.
    """

    node: int
    number: int
    time: float
    key: Key
    kind: str
    point: Position
    note: str = ""
    digest: str = ""
    size: int = 0
    messages: int = 0
    probes: int = 0
    origin: Generation = Generation(0, -1)
    lineage: tuple[Position, ...] = ()


class Story(NamedTuple):
    """The history of one token.

    Attributes
    ----------
    updates
        The line of the update that led to each step, from step 1.
    end
        The line with which it finished.
    departures
        (step, node) of the moves that ended elsewhere than in a simulation.
    reissues
        The number of re-issues.
    discarded
        The number of updates that these re-issues discarded.
    """

    updates: list[Line]
    end: Line
    departures: list[tuple[int, int]]
    reissues: int
    discarded: int

    @property
    def path(self) -> list[int]:
        """The nodes that it visited."""
        return [*(line.node for line in self.updates), self.end.node]


def tell(key: Key, lines: Iterable[Line], steps: int) -> Story:
    """The history of one token from the journals, checked: no update of its lineage was lost or made twice.

    Raises
    ------
    PeerError
        If it has not finished, or the journals are inconsistent.
    """
    own = [line for line in lines if line.key == key]
    ends = [line for line in own if line.kind == "finish"]
    if not ends:
        raise PeerError(f"walk {key.walk} of run {key.run} has not finished")
    end = max(ends, key=lambda line: line.point)
    newest = max(line.point.generation for line in own if line.kind in ("re-issue", "finish"))
    if newest != end.point.generation:
        raise PeerError(
            f"walk {key.walk} of run {key.run} has not finished: generation {newest.number} of node {newest.issuer} is "
            "still running"
        )
    token = Token(end.point, None, True, end.origin, end.lineage)
    lived = [line for line in own if token.descends(line.point)]
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
    updates = sum(line.kind == "update" for line in own)
    departures = sorted({(line.point.step - 1, line.node) for line in lived if line.kind == "departure"})
    return Story([by_step[step][0] for step in range(1, last + 1)], end, departures, len(end.lineage), updates - last)


class Collected(NamedTuple):
    """A run of peers.

    Attributes
    ----------
    record
        As `fw.learn` gives it, with `seconds` since the launch by (walk, step).
    stories
        By row (token).
    """

    record: Record
    stories: list[Story]

    @property
    def departures(self) -> tuple[tuple[int, int, int], ...]:
        """(row, step, node) each, as `fw.runtimes.Reference(departures=…)` takes them."""
        return tuple((row, *one) for row, story in enumerate(self.stories) for one in story.departures)


def join(
    job: Job,
    steps: int,
    every: int,
    first: NDArray[Any],
    stories: Sequence[Story],
    launched: float,
    model: Callable[[Line], Mapping[str, NDArray[Any]]],
) -> Collected:
    """Measure the models that the journals kept, and assemble the record.

    Parameters
    ----------
    job
        What was run.
    steps, every
        The length of the run, and how often a model was kept.
    first
        The initial model of each token.
    stories
        The history of each token.
    launched
        The time of the launch, in seconds since 1970.
    model
        Returns the vectors that a line of a journal kept.
    """
    rule, objective = job.phases[0].rule, job.objective
    if rule is None or objective is None:
        raise ValueError("peers always learn")
    starts = np.array([story.path[0] for story in stories], dtype=np.int32)
    state = State.begin(job, starts, first.astype(job.precision), steps, np.arange(len(stories), dtype=np.int64))
    marks = marks_in(-1, steps, every, steps)
    learning = ReferenceLearning(job, objective, state, job.passage(0, steps, marks))
    whole = Stretch(first=0, last=state.rows, start=0, stop=steps, mark=0)
    counts = {name: np.zeros((state.rows, marks.size), dtype=np.int64) for name in ("messages", "probes")}
    seconds = np.zeros((state.rows, marks.size))
    for place, mark in enumerate(marks.tolist()):
        for row, story in enumerate(stories):
            at = min(mark, len(story.updates))
            if at > 0:
                vectors = model(story.updates[at - 1])
                state.models[row] = vectors["x"]
                for index, name in enumerate(rule.carries):
                    state.carried[index, row] = vectors[name]
                seconds[row, place] = story.updates[at - 1].time - launched
            after = story.updates[at] if at < len(story.updates) else story.end
            for name, values in counts.items():
                values[row, place] = getattr(after, name) if mark > 0 else 0
        learning.measure(whole, place)
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
    run.seconds = max(story.end.time for story in stories) - launched
    data = run.data()
    latest = seconds.reshape(state.walks, state.tokens, -1).max(axis=1)
    attrs = {"long_name": "time since the launch", "units": "s"}
    data = data.assign(seconds=(("walk", "step"), latest, attrs))
    story_told = run.story() | {
        "runtime": "peers",
        "departures": [[row, *one] for row, story in enumerate(stories) for one in story.departures],
        "reissues": sum(story.reissues for story in stories),
        "discarded_updates": sum(story.discarded for story in stories),
    }
    return Collected(Record(data, story_told, graph=job.kernel.graph), list(stories))

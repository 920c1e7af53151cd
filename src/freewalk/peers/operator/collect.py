"""Launch the walks of a network, wait for them, assemble their record from the journals of all nodes, forget them.

The journals prove that nothing is missing: each update of the lineage that survived is in exactly one of them.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Sequence
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
from freewalk.peers.operator.journal import Book, Story, copy_of, doubts, name_of, ranges, tell
from freewalk.peers.operator.operator import Operator, SilentNode, Whereabouts, operator_of, whereabouts
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Generation, Key
from freewalk.peers.protocol.wire import from_point
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record
from freewalk.runtimes import Reference, State
from freewalk.runtimes.reference import ReferenceLearning
from freewalk.runtimes.step.arrays import Stretch

__all__ = ["collect", "finished", "forget", "launch", "operator_of", "whereabouts"]
_GLANCE = 0.2  # seconds between polls of a run


def command(name: str, folder: Path, run: str, *options: str) -> str:
    """A command about a run, to be typed next."""
    about = [] if run == "first" else ["--run", run]
    return shlex.join(["freewalk", "network", name, str(folder), *about, *options])


def keys(network: Network, run: str) -> list[Key]:
    """The tokens of a run."""
    return [Key(run, walk) for walk in range(network.table.run.tokens)]


async def launch(network: Network, run: str) -> int:
    """Launch the tokens of a run of which no node has heard; returns how many."""
    async with operator_of(network) as operator:
        statuses, here = await operator.located(run)
        if forgotten(run, statuses):
            raise PeerError(f"run {run!r} was forgotten; choose another name: --run {_another(run)}")
        known, count = {one.key for one in here}, 0
        signatures = network.signatures
        with TemporaryDirectory() as folder:
            for key, start, vectors in zip(keys(network, run), network.starts, network.vectors(), strict=True):
                if key not in known:
                    permit = b"" if signatures is None else signatures.permit(key, start)
                    count += await operator.launch(start, key, Payload.of(vectors, Path(folder)), permit)
    return count


def launched(network: Network, run: str, count: int) -> str:
    """What a launch has done, in words; a run of which nothing was left to launch is an error."""
    many = network.table.run.tokens
    if not count:
        raise PeerError(f"run {run!r} was launched before; choose another name: --run {_another(run)}")
    if count < many:
        return f"run {run!r}: launched {count} of {many} tokens; the others had been launched before"
    return f"run {run!r}: launched {many} token{'s' * (many != 1)}"


def _another(run: str) -> str:
    return "second" if run == "first" else f"{run}-again"


def forgotten(run: str, statuses: dict[int, Any]) -> bool:
    """Whether any node has been told to forget a run."""
    return any(status is not None and run in status.forgotten for status in statuses.values())


def _unfinished(network: Network, run: str, here: Sequence[Whereabouts]) -> list[str]:
    """Which walks have not finished, and why."""
    found = {one.key: one for one in here}
    words = [
        f"walk {key.walk} has not been launched" if (one := found.get(key)) is None else one.words(network)
        for key in keys(network, run)
        if (one := found.get(key)) is None or not (one.told.finished or one.state == "collected")
    ]
    nothing = [f"it has not been launched; start it with: {command('launch', network.folder, run)}"]
    return words if here else nothing


async def finished(network: Network, run: str, patience: float) -> None:
    """Wait until all tokens of a run have finished, or fail after some seconds, or if one cannot continue."""
    until = time.monotonic() + patience
    async with operator_of(network) as operator:
        while True:
            statuses, here = await operator.located(run)
            if forgotten(run, statuses):
                raise PeerError(f"run {run!r} was forgotten")
            for one in here:
                if one.told.failure or one.state == "lost":
                    raise PeerError(one.words(network))
            if not (waiting := _unfinished(network, run, here)):
                return
            if time.monotonic() > until:
                raise PeerError(f"run {run!r} has not finished after {patience:g} s: {'; '.join(waiting)}")
            await asyncio.sleep(_GLANCE)


async def forget(network: Network, run: str, force: bool = False) -> list[str]:
    """Have all nodes forget a run that is over, or any run with `force`; returns why some have not."""
    async with operator_of(network) as operator:
        statuses, here = await operator.located(run)
        again = forgotten(run, statuses)
        if not (here or again or force):
            raise PeerError(f"no node that answers knows the run {run!r}; give its name with --run")
        if walking := [one.words(network) for one in here if not (one.over or again or force)]:
            remedy = "wait until it has finished, or forget it nevertheless with --force"
            raise PeerError(f"run {run!r} is not over: {'; '.join(walking)}; {remedy}")
        calls = (operator.forget(node, run) for node in operator.nodes)
        answers = await asyncio.gather(*calls, return_exceptions=True)
    return _errors(answers)


def _errors(answers: Sequence[Any]) -> list[str]:
    """The errors among answers of nodes; others than theirs are raised."""
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, PeerError):
            raise answer
    return [str(answer) for answer in answers if isinstance(answer, PeerError)]


class Collected(NamedTuple):
    """A run of peers: its record, and the history of each token."""

    record: Record
    stories: list[Story]

    @property
    def departures(self) -> tuple[tuple[int, int, int], ...]:
        """(row, step, node) each, as `fw.runtimes.Reference(departures=…)` takes them."""
        return tuple((row, *one) for row, story in enumerate(self.stories) for one in story.departures)


async def collect(network: Network, run: str, partial: bool = False) -> Collected:
    """Collect a finished run; the nodes may release its tokens afterwards.

    `partial` collects what there is: "gaps" in the provenance says what is missing. "doubts" prevent nothing.
    """
    async with operator_of(network) as operator:
        statuses, here = await operator.located(run)  # first: the journals then have all updates of these tokens
        calls = (operator.journal(node, run) for node in operator.nodes)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        errors, books = _errors(answers), [answer for answer in answers if isinstance(answer, Book)]
        silent = [str(answer) for answer in answers if isinstance(answer, SilentNode)]
        copies = _copies(run, statuses) if partial else []
        floors = _floors(run, statuses)
        stories = [tell(network, key, books, copies, floors) for key in keys(network, run)]
        gaps = [error for error in errors if partial or error not in silent]
        gaps += [book.changed for book in books if book.changed]
        gaps += [f"walk {story.key.walk}: {gap}" for story in stories for gap in story.gaps]
        gaps += [_missing(network, story, here) for story in stories if not story.finished]
        if gaps and not partial:
            offer = f"`{command('collect', network.folder, run, '--partial')}`"
            raise PeerError(f"run {run!r}: {'; '.join([*gaps, *silent])}; {offer} collects what there is")
        with TemporaryDirectory() as folder:
            models = [await _models(operator, story, Path(folder), gaps if partial else None) for story in stories]
        doubtful = [f"{one}; what it did, and sent, is not known here" for one in silent]
        if all(story.finished for story in stories):  # lines of a run under way come while others are read
            doubtful += doubts(network, books)
        started = min((book.launched for book in books), default=np.inf)
        answered = [book.node for book in books]
        del answers, calls, books  # a million lines take as much memory as the record of their run
        record = _record(network, stories, started if np.isfinite(started) else time.time(), models)
        sent = sum(int(status.sent.get(run, 0)) for status in statuses.values() if status is not None)
        record.provenance |= {"wire_bytes": sent, "doubts": doubtful} | ({"gaps": gaps} if partial else {})
        await asyncio.gather(*(_release(operator, node, stories) for node in answered))
    return Collected(record, stories)


async def _release(operator: Operator, node: int, stories: Sequence[Story]) -> None:
    """Tell a node which tokens are safe here, if it still answers."""
    try:
        for story in stories:
            if story.finished:
                await operator.collect(node, story.key, story.end.point)
    except PeerError:
        pass


def _copies(run: str, statuses: dict[int, Any]) -> list[Line]:
    """The tokens that nodes hold, and their copies of those that they have lent."""
    found = []
    for node, status in statuses.items():
        for walk in () if status is None else status.walks:
            if walk.run == run and walk.HasField("point"):
                token, note = copy_of(from_point(walk.point), walk), "diverged" if walk.diverged else ""
                counts, key = (walk.messages, walk.probes), Key(run, walk.walk)
                found.append(Line(0, 0.0, key, "copy", token.point, token, note, *counts, node))
    return found


def _floors(run: str, statuses: dict[int, Any]) -> dict[int, Generation]:
    """The newest generation of each walk of which a node has heard."""
    found: dict[int, Generation] = {}
    for status in statuses.values():
        for walk in () if status is None else status.walks:
            if walk.run == run:
                floor = from_point(walk.floor).generation
                found[walk.walk] = max(floor, found.get(walk.walk, floor))
    return found


def _missing(network: Network, story: Story, here: Sequence[Whereabouts]) -> str:
    """Why a walk has no final model, and which one there is."""
    words = [one.words(network) for one in here if one.key == story.key] or ["no node that answers has heard of it"]
    said = f"walk {story.key.walk} of run {story.key.run} has not finished: {words[0]}"
    if story.end.token is None:
        return said
    which = f"after update {story.updates:,}, from {name_of(network, story.end.node)}, and not the final one"
    return f"{said}; the model here is that {which}"


async def _models(operator: Operator, story: Story, folder: Path, gaps: list[str] | None) -> dict[int, Any]:
    """The vectors of a token at the marks, and at its end, by step; those that cannot be had are gaps."""
    table, found, lost = operator.network.table.run, dict[int, Any](), list[int]()
    marks = marks_in(-1, table.steps, table.every, table.steps)
    for step in sorted({min(mark, story.updates) for mark in marks.tolist()} - {0}):
        last = step == story.updates
        lines = [*([story.kept[step]] if step in story.kept else []), *([story.end] if last else [])]
        for line in lines:
            if line.token is None:
                continue
            asked = (line.node, line.token.payload.digest, line.token.payload.size, folder)
            try:
                vectors = await operator.fetch(*asked, diverged=last and story.end.note == "diverged")
            except PeerError:
                if gaps is None:
                    raise
                continue
            found[step] = {name: np.array(vector) for name, vector in vectors.items()}
            break
        else:
            lost.append(step)
    if lost:
        words = f"walk {story.key.walk}: the models after {ranges(np.array(lost))} are lost, and their measures are NaN"
        if gaps is None:
            raise PeerError(words)
        gaps.append(words)
    return found


def _record(
    network: Network, stories: Sequence[Story], launched: float, models: Sequence[dict[int, dict[str, NDArray[Any]]]]
) -> Record:
    """Measure the models that the journals kept, and assemble the record; `launched` in seconds since 1970."""
    task = network.task
    job, rule, steps, every = task.job, task.rule, task.start.steps, task.start.every
    starts = np.array(network.starts, dtype=np.int32)
    state = State.begin(job, starts, task.models.astype(job.precision), steps, np.arange(len(stories), dtype=np.int64))
    marks = marks_in(-1, steps, every, steps)
    learning = ReferenceLearning(job, task.objective, state, job.passage(0, steps, marks))
    whole = Stretch(first=0, last=state.rows, start=0, stop=steps, mark=0)
    counts = {name: np.zeros((state.rows, marks.size), dtype=np.int64) for name in ("messages", "probes")}
    seconds, unknown = np.zeros((state.rows, marks.size)), np.zeros((state.walks, marks.size), dtype=bool)
    for place, mark in enumerate(marks.tolist()):
        for row, story in enumerate(stories):
            at = min(mark, story.updates)
            if (vectors := models[row].get(at)) is not None:
                state.models[row] = vectors["x"]
                for index, name in enumerate(rule.carries):
                    state.carried[index, row] = vectors[name]
            lost = (at > 0 and vectors is None) or (mark > at and not story.finished)
            unknown[row // state.tokens, place] |= lost
            if mark > 0:  # where lines are lost, the counts before
                after, now = story.told.get(at + 1), story.told.get(at)
                before = seconds[row, place - 1], *(values[row, place - 1] for values in counts.values())
                seconds[row, place] = now[2] if now else before[0]
                for value, values in zip(after or before[1:], counts.values(), strict=False):
                    values[row, place] = value
        learning.measure(whole._replace(mark=place))
    _trace(state, stories)
    state.step = steps
    run = Continuation(job, state, steps, every, Reference())
    summed = {name: state.summed(values) for name, values in counts.items()}
    sent = state.bytes_sent(job, summed["messages"], summed["probes"])
    run.measures = {name: [values] for name, values in {**summed, "bytes": sent, **learning.measures}.items()}
    run.started = datetime.fromtimestamp(max(launched, 0.0), UTC).isoformat(timespec="seconds")
    run.seconds = max(story.told[story.updates + 1][2] for story in stories)
    latest = seconds.reshape(state.walks, state.tokens, -1).max(axis=1)
    attrs = {"long_name": "time since the launch", "units": "s"}
    data = run.data().assign(seconds=(("walk", "step"), latest, attrs))
    for name in learning.measures:
        data[name].values[unknown] = np.nan
    provenance = run.story() | {
        "runtime": "peers",
        "departures": [[row, *one] for row, story in enumerate(stories) for one in story.departures],
        "reissues": sum(story.reissues for story in stories),
        "discarded_updates": sum(story.discarded for story in stories),
    }
    return Record(data, provenance, graph=task.kernel.graph)


def _trace(state: State, stories: Sequence[Story]) -> None:
    """Where the tokens have been: -1 where nobody knows."""
    for row, story in enumerate(stories):
        state.paths[row], state.nodes[row] = story.end.node if story.finished else -1, story.end.node
        state.paths[row, : story.path.size] = story.path
        known = story.path[:-1][story.path[:-1] >= 0]
        np.add.at(state.visits[0 if state.visits_are_summed else row], known, 1)
        state.messages[row], state.probes[row] = story.end.messages, story.end.probes

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

from freewalk.errors import PeerError
from freewalk.jobs.phase import marks_in
from freewalk.peers.network.config import check
from freewalk.peers.network.init import Network
from freewalk.peers.operator.journal import Book, Story, doubts, name_of, ranges, tell
from freewalk.peers.operator.operator import Operator, SilentNode, Whereabouts, operator_of, whereabouts
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Key
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record
from freewalk.runtimes import Reference, State
from freewalk.runtimes.reference import ReferenceLearning
from freewalk.runtimes.step.arrays import Stretch

__all__ = ["collect", "finished", "forget", "launch", "operator_of", "whereabouts"]
_GLANCE = 0.2  # seconds between polls of a run
_BYTES = 2**53  # sent by a node for a run


def command(name: str, folder: Path, run: str, *options: str) -> str:
    """A command about a run, to be typed next."""
    about = () if run == "first" else ("--run", run)
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
        known, count, signatures = {one.key for one in here if one.floor.issuer >= 0}, 0, network.signatures
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
    """Whether most nodes that answer have been told to forget a run: one alone may not tell the truth."""
    said = [run in status.forgotten for status in statuses.values() if status is not None]
    return 2 * sum(said) > len(said)


async def finished(network: Network, run: str, patience: float) -> None:
    """Wait until all tokens of a run have finished, or fail after some seconds, or if one cannot continue."""
    until = time.monotonic() + check.real("network collect", "wait", patience, 0.0)
    async with operator_of(network) as operator:
        while True:
            statuses, here = await operator.located(run)
            if forgotten(run, statuses):
                raise PeerError(f"run {run!r} was forgotten")
            for one in here:
                if one.told.failure or one.state == "lost":
                    raise PeerError(one.words(network))
            missing = sorted(set(keys(network, run)) - {one.key for one in here})
            waiting = [f"walk {key.walk} has not been launched" for key in missing]
            waiting += [one.words(network) for one in here if not one.finished]
            if not waiting:
                return
            if not here:
                waiting = [f"it has not been launched; start it with: {command('launch', network.folder, run)}"]
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
        books = [answer for answer in answers if isinstance(answer, Book)]
        silent = [str(answer) for answer in answers if isinstance(answer, SilentNode)]
        if not (here or any(book.lines.size for book in books)):
            known = "was forgotten" if forgotten(run, statuses) else "is not known to any node that answers"
            raise PeerError("; ".join([f"run {run!r} {known}", *_errors(answers)[:1]]))
        copies = [one.copy for one in here if one.copy is not None] if partial else None
        floors = {one.key.walk: one.floor for one in here}
        stories = [tell(network, key, books, copies, floors) for key in keys(network, run)]
        gaps = [error for error in _errors(answers) if partial or error not in silent]
        gaps += [book.changed for book in books if book.changed]
        gaps += [f"walk {story.key.walk}: {gap}" for story in stories for gap in story.gaps]
        gaps += [_missing(network, story, here) for story in stories if not story.finished]
        if gaps and not partial:
            offer = f"`{command('collect', network.folder, run, '--partial')}`"
            raise PeerError(f"run {run!r}: {'; '.join([*gaps, *silent])}; {offer} collects what there is")
        models = [await _models(operator, story, gaps if partial else None) for story in stories]
        doubtful = [f"{one}; what it did, and sent, is not known here" for one in silent]
        for one in here:
            words = f"it has no proof of what it says of walk {one.key.walk}"
            doubtful += [f"{name_of(network, node)}: {words}" for node in one.unproven]
        over = all(story.finished for story in stories)  # or else lines come while others are read
        doubtful += doubts(network, books) if over else []
        launched = min((book.launched for book in books if book.lines.size), default=time.time())
        answered = [book.node for book in books]
        del answers, calls, books  # a million lines take as much memory as the record of their run
        record = _record(network, stories, launched, models)
        sent = sum(size for one in statuses.values() if one is not None and (size := one.sent.get(run, 0)) <= _BYTES)
        record.provenance |= {"wire_bytes": sent, "doubts": doubtful} | ({"gaps": gaps} if partial else {})
        # Where the end is in doubt, or its model is not here, nodes keep what they have.
        safe = [one for one, some in zip(stories, models, strict=True) if one.settled and one.updates in some]
        ends = [(story.key, story.end.point) for story in safe]
        _errors(await asyncio.gather(*(operator.collect(node, ends) for node in answered), return_exceptions=True))
    return Collected(record, stories)


def _missing(network: Network, story: Story, here: Sequence[Whereabouts]) -> str:
    """Why a walk has no final model, and which one there is."""
    words = [one.words(network) for one in here if one.key == story.key] or ["no node that answers has heard of it"]
    which = f"after update {story.updates:,}, from {name_of(network, story.end.node)}, and not the final one"
    model = f"; the model here is that {which}" if story.end.token is not None else ""
    return f"walk {story.key.walk} of run {story.key.run} has not finished: {words[0]}{model}"


async def _models(operator: Operator, story: Story, gaps: list[str] | None) -> dict[int, Any]:
    """The vectors of a token at the marks, and at its end, by step; those that cannot be had are gaps."""
    table, end = operator.network.table.run, story.end
    marks = set(np.minimum(marks_in(0, table.steps, table.every, table.steps), story.updates).tolist())
    found: dict[int, Any] = {}
    for line in [*story.kept, end]:
        step, token = line.point.step, line.token
        if token is not None and step in marks and step not in found:
            diverged = step == story.updates and end.note == "diverged"
            try:
                found[step] = await operator.fetch(line.node, token.payload.digest, token.payload.size, diverged)
            except PeerError:
                if gaps is None:
                    raise
    if lost := ranges(np.array(sorted(marks - {0, *found}))):
        words = f"walk {story.key.walk}: the models after {lost} cannot be had, and their measures are NaN"
        if gaps is None:
            raise PeerError(words)
        gaps.append(words)
    return found


def _record(network: Network, stories: list[Story], launched: float, models: list[dict[int, Any]]) -> Record:
    """Measure the models that the journals kept, and assemble the record; `launched` in seconds since 1970."""
    task = network.task
    job, rule, steps, every = task.job, task.rule, task.start.steps, task.start.every
    starts, rows = np.array(network.starts, dtype=np.int32), np.arange(len(stories), dtype=np.int64)
    state = State.begin(job, starts, task.models.astype(job.precision), steps, rows)
    marks = marks_in(-1, steps, every, steps)
    learning = ReferenceLearning(job, task.objective, state, job.passage(0, steps, marks))
    figures = np.zeros((3, state.rows, marks.size))  # messages, probes and seconds
    unknown = np.zeros((state.walks, marks.size), dtype=bool)
    for place, mark in enumerate(marks.tolist()):
        for row, story in enumerate(stories):
            at = min(mark, story.updates)
            if (vectors := models[row].get(at)) is not None:
                state.models[row] = vectors["x"]
                for index, name in enumerate(rule.carries):
                    state.carried[index, row] = vectors[name]
            lost = (at > 0 and vectors is None) or (mark > at and not story.finished)
            unknown[row // state.tokens, place] |= lost
            if mark > 0:  # where lines are lost, the figures before
                figures[:, row, place] = figures[:, row, place - 1]
                figures[:2, row, place] = story.told.get(at + 1, figures[:, row, place])[:2]
                figures[2, row, place] = story.told.get(at, figures[:, row, place])[2]
        learning.measure(Stretch(first=0, last=state.rows, start=0, stop=steps, mark=place))
    for row, story in enumerate(stories):
        state.paths[row], state.nodes[row] = story.end.node if story.finished else -1, story.end.node
        state.paths[row, : story.path.size] = story.path  # -1 where nobody knows
        known = story.path[:-1][story.path[:-1] >= 0]
        np.add.at(state.visits[0 if state.visits_are_summed else row], known, 1)
        state.messages[row], state.probes[row] = story.end.messages, story.end.probes
    state.step = steps
    run = Continuation(job, state, steps, every, Reference())
    messages, probes = (state.summed(values) for values in figures[:2].astype(np.int64))
    counts = {"messages": messages, "probes": probes, "bytes": state.bytes_sent(job, messages, probes)}
    run.measures = {name: [values] for name, values in {**counts, **learning.measures}.items()}
    run.started = datetime.fromtimestamp(max(launched, 0.0), UTC).isoformat(timespec="seconds")
    run.seconds = max(story.told[story.updates + 1][2] for story in stories)
    latest = figures[2].reshape(state.walks, state.tokens, -1).max(axis=1)
    seconds = (("walk", "step"), latest, {"long_name": "time since the launch", "units": "s"})
    data = run.data().assign(seconds=seconds)
    for name in learning.measures:
        data[name].values[unknown] = np.nan
    departures = [[row, *one] for row, story in enumerate(stories) for one in story.departures]
    reissues, discarded = sum(one.reissues for one in stories), sum(one.discarded for one in stories)
    found = {"runtime": "peers", "departures": departures, "reissues": reissues, "discarded_updates": discarded}
    return Record(data, run.story() | found, graph=task.kernel.graph)

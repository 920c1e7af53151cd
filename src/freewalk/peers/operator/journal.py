"""The journals of nodes as the operator reads them, checked line by line, and the story of a token that they tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.jobs.phase import marks_in
from freewalk.peers.network.init import Network
from freewalk.peers.node.store import CHAIN, WITNESS, Line, chain_of
from freewalk.peers.protocol.messages import LINEAGE, SENT
from freewalk.peers.protocol.payload import Payload, is_digest
from freewalk.peers.protocol.token import Generation, Key, Position, Token
from freewalk.peers.protocol.wire import from_point, require

KINDS = ("update", "departure", "re-issue", "discard", "finish")
_UPDATE, _DEPARTURE, _REISSUE, _, _FINISH = range(len(KINDS))
_MOST, _MORE = 8, 100_000  # lines of a journal for each update of the run, and besides
_ON_A_PAGE = 2**16  # lines
_LARGEST, _LATEST = 2**62, 2.0**37  # of numbers, and of seconds since 1970
_NOTED, _NOTES, _ISSUED = 2**26, 64, 128  # room for notes and lineages: in all, of each, of each point of a lineage
_SHOWN = 5  # ranges of updates
#: The numbers of which the chain of a line is computed, in the order of `Line.chained`, and the others of a page.
_CHAINED = ("times", "seconds", "walks", "generations", "issuers", "steps", "hops", "messages", "probes")
_COLUMNS = (*_CHAINED, "kinds", "numbers")
_NAMES = (*_CHAINED, "sender", "witness", "rest", "kinds", "numbers", "chain")
_TYPES = {"times": "<f8", "seconds": "<f8", "issuers": "<i8"}  # the others are not negative
#: A line. Half of a chain is enough to find it: all of it has been computed anew by then.
_LINE = np.dtype([(name, _TYPES.get(name, "<u8")) for name in _NAMES])


class Book:
    """The journal of a node for one run, by columns: nothing that it says is believed without a look."""

    def __init__(self, network: Network, node: int, run: str) -> None:
        self.network, self.node, self.run = network, node, run
        self.lines = np.zeros(0, _LINE)
        self.kept: list[Line] = []  # with a note or a model
        self.launched = np.inf  # in seconds since 1970, by the clock of this node
        self.changed = ""  # the first line that is not as it was written
        self.unchained = 0  # lines that an earlier version wrote
        self._data, self._head, self._last, self._noted = bytearray(), b"", 0, 0
        table, most = network.table.run, SENT * (network.table.run.steps + 1)
        self._limits = dict.fromkeys(_COLUMNS, _LARGEST) | dict.fromkeys(("times", "seconds"), _LATEST)
        self._limits |= {"walks": table.tokens - 1, "issuers": len(network.nodes) - 1, "generations": LINEAGE}
        self._limits |= {"steps": table.steps, "hops": 2**31 - 1, "messages": most, "probes": most}

    def add(self, page: Any) -> None:
        """Add a page, unless it is wrong."""
        count, table = len(page.numbers), self.network.table.run
        total, most = len(self._data) // _LINE.itemsize + count, _MOST * (table.steps + 1) * table.tokens + _MORE
        require(0 < count <= _ON_A_PAGE and total <= most, f"{total:,} lines, or an empty page")
        columns = {name: np.asarray(getattr(page, name), _LINE[name]) for name in _COLUMNS}
        sizes = {len(page.chains) / CHAIN, len(page.witnesses) / WITNESS, *(one.size for one in columns.values())}
        require(sizes == {count}, "a column is cut off")
        require({*page.names} <= {*KINDS} and max(page.kinds) < len(page.names), "lines of an unknown kind")
        columns["kinds"] = np.array([KINDS.index(name) for name in page.names])[columns["kinds"]]
        lines = np.zeros(count, _LINE)
        for name, column in columns.items():
            lines[name] = column
        lines["sender"], lines["witness"], lines["rest"] = np.frombuffer(page.witnesses, "<u8").reshape(-1, 3).T
        lines["chain"] = np.frombuffer(page.chains, "<u8")[::2]
        within = all(bool(lines[name].max() <= most) for name, most in self._limits.items())  # nor is any of them NaN
        least = min(lines["times"].min(), lines["seconds"].min(), lines["issuers"].min() + 1)
        require(within and bool(least >= 0), "a number that is impossible in this run")
        ascends = np.diff(lines["numbers"].astype("i8"), prepend=self._last) > 0
        require(bool(ascends.all()), "lines that are not in order")
        require(all(one.place < count for one in page.kept), "a note on no line")
        self._noted += sum(_NOTES + len(one.note) + _ISSUED * len(one.lineage) for one in page.kept)
        room = _NOTED + 2 * _NOTES * (table.steps + 1) * table.tokens
        require(self._noted <= room, "more notes and lineages than a run can have")
        kept = {one.place: self._kept(lines[one.place].tolist(), one) for one in page.kept}
        self._follow(lines, page.chains, kept)
        self.kept.extend(kept.values())
        self.launched = min(self.launched, float((lines["times"] - lines["seconds"]).min()))
        self._last = int(lines["numbers"][-1])
        self._data += lines.tobytes()

    def finish(self) -> Book:
        """Itself, with all lines."""
        self.lines = np.frombuffer(self._data, _LINE)
        return self

    def _kept(self, line: tuple[Any, ...], one: Any) -> Line:
        time, seconds, walk, generation, issuer, step, hop, messages, probes, *_, kind, number, _ = line
        point = Position(Generation(generation, issuer), step, hop)
        named = not one.digest or (is_digest(one.digest) and len(one.lineage) <= LINEAGE)
        require(named, "a model without a digest, or a long lineage")
        token = copy_of(point, one) if one.digest else None
        counts = (messages, probes, self.node, seconds)
        return Line(number, time, Key(self.run, walk), KINDS[kind], point, token, one.note, *counts)

    def _follow(self, lines: NDArray[Any], chains: bytes, kept: dict[int, Line]) -> None:
        """Compute the chain anew: an edit of a line shows there."""
        data, size, last = lines.tobytes(), _LINE.itemsize, 8 * len(_CHAINED) + WITNESS
        words = [f"{self.run}\0{kind}\0\0".encode() for kind in KINDS]
        for place, kind in enumerate(lines["kinds"].tolist()):
            told = chains[CHAIN * place : CHAIN * (place + 1)]
            if not self._head and not any(told):
                self.unchained += 1
                continue
            own = kept[place].words if place in kept else words[kind]
            if chain_of(self._head, data[size * place : size * place + last], own) != told and not self.changed:
                line, whose = lines[place], f"the journal of {name_of(self.network, self.node)}"
                what = f"line {line['numbers']} (update {line['steps']} of walk {line['walks']})"
                self.changed = f"{what} of {whose} was changed"
            self._head = told


def name_of(network: Network, node: int) -> str:
    """The name of a node, which may be -1 for none."""
    return network.nodes[node].name if 0 <= node < len(network.nodes) else "an unknown node"


def copy_of(point: Position, told: Any) -> Token:
    """A token as a status or a journal tells of it; its model is only announced."""
    lineage = tuple(from_point(one) for one in told.lineage)
    return Token(point, Payload(told.digest, told.size), True, from_point(told.origin).generation, lineage)


def doubts(network: Network, books: Sequence[Book]) -> list[str]:
    """What journals say of each other that does not fit: a receiver has witnessed lines that the sender lacks."""
    found = []
    for book in books:
        name = name_of(network, book.node)
        if book.unchained:
            found.append(f"{name}: {book.unchained:,} lines of an earlier version, in which edits do not show")
        lacks = dict[str, int]()  # by who says so
        for one in books:
            told = one.lines["witness"][(one.lines["sender"] == book.node) & (one.lines["witness"] != 0)]
            if missing := int((~np.isin(told, book.lines["chain"])).sum()):
                lacks[name_of(network, one.node)] = missing
        if lacks:
            what = f"its journal lacks lines that it had when it sent tokens ({sum(lacks.values()):,} times)"
            why = "it was changed, its disk is an old one, or they wrote what is not true"
            found.append(f"{name}: by what {', '.join(lacks)} wrote, {what}: {why}")
    return found


class Story(NamedTuple):
    """The history of one token."""

    key: Key
    end: Line  # with which it finished, or its newest copy
    path: NDArray[np.int32]  # the nodes that made the updates, and its last one; -1 where no journal says so
    told: dict[int, tuple[int, int, float]]  # messages, probes and seconds at the updates around marks, and at the end
    kept: list[Line]  # updates whose models the journals kept
    departures: list[tuple[int, int]]  # (step, node) of the moves that ended elsewhere than in a simulation
    reissues: int
    discarded: int  # updates that these re-issues discarded
    gaps: list[str]  # what the journals do not prove
    settled: bool  # whether it has finished, and none of that is about its end

    @property
    def updates(self) -> int:
        """How many it has had."""
        return self.end.point.step

    @property
    def finished(self) -> bool:
        """Whether it made all its updates, or diverged."""
        return self.end.kind == "finish"

    def words(self, network: Network) -> str:
        """How it ended, in words."""
        ended = "ended" if self.finished else "not finished, newest model"
        how, where = "diverged" if self.end.note == "diverged" else ended, name_of(network, self.end.node)
        words = f"{self.updates:,} updates, {how} at {where}, {self.end.messages:,} messages"
        again = f", re-issued {self.reissues} times, {self.discarded:,} updates discarded" if self.reissues else ""
        return f"{words}, {len(self.departures)} departures{again}"


def tell(
    network: Network, key: Key, books: list[Book], copies: list[Line] | None, floors: dict[int, Generation]
) -> Story:
    """The history of one token from the journals; `gaps` has each update of its lineage that was lost or made twice.

    `copies` are of tokens that have not finished; without any, a model that a journal kept is the newest. `floors` are
    the newest generations of which nodes have heard.
    """
    noted = [line for book in books for line in book.kept if line.key == key and line.token]
    ends = [*(line for line in noted if line.kind == "finish"), *(line for line in copies or () if line.key == key)]
    ends = ends or (noted if copies is not None else [])
    nothing = Line(0, 0.0, key, "nothing", Position(Generation(0, -1), 0, 0), None, "", 0, 0)
    end = max(ends, key=lambda line: (line.point.generation, line.kind == "finish", line.point), default=nothing)
    run, made = network.table.run, 0
    token, last, newest = end.token, end.point.step, [end.point.generation]
    path, times = np.full(last + 1, -1, np.int32), np.zeros(last, np.int32)
    marks = np.minimum(marks_in(-1, run.steps, run.every, run.steps), last)
    told, departures, goes_on = dict[int, tuple[int, int, float]](), set[tuple[int, int]](), set[int]()
    places = dict[int, NDArray[Any]]()  # of the updates of each node
    newest += [floors[key.walk]] if key.walk in floors else []
    for book in books:
        lines, own = book.lines, book.lines["walks"] == key.walk
        steps, update = lines["steps"].astype("i8"), own & (lines["kinds"] == _UPDATE)
        ended, lived = lines[own & np.isin(lines["kinds"], (_REISSUE, _FINISH))], own & _descends(token, lines)
        newest += map(Generation, ended["generations"].tolist(), ended["issuers"].tolist())
        made += int(update.sum())
        departures |= {(step - 1, book.node) for step in steps[lived & (lines["kinds"] == _DEPARTURE)].tolist()}
        lived &= update & (steps >= 1)
        goes_on |= {book.node} if (steps[lived] > last).any() else set()
        lived &= steps <= last
        where = places[book.node] = steps[lived] - 1
        np.add.at(times, where, 1)
        path[where] = book.node
        shown = lines[lived & np.isin(steps, (marks, marks + 1))]
        told.update(zip(shown["steps"].tolist(), shown[["messages", "probes", "seconds"]].tolist(), strict=True))
    path[last], told[last + 1] = end.node, (end.messages, end.probes, end.seconds)
    gaps = []
    if lost := ranges(np.flatnonzero(times == 0) + 1):
        gaps.append(f"{lost} should be in one journal, found in none")
    if several := ranges(np.flatnonzero(times > 1) + 1):
        names = ", ".join(name_of(network, node) for node, where in places.items() if (times[where] > 1).any())
        gaps.append(f"{several} should be in one journal, found more than once at {names}")
    missing = len(gaps)
    goes_on |= {one.node for one in ends if one.kind == "finish" and token and token.descends(one.point)} - {end.node}
    if goes_on and end.kind == "finish":
        others = ", ".join(name_of(network, node) for node in sorted(goes_on))
        gaps.append(f"ended at {name_of(network, end.node)}, but also ended or went on at {others}")
    if token and (latest := max(newest)) > end.point.generation:
        gaps.append(f"generation {latest.number} of {name_of(network, latest.issuer)} is newer than what was found")
    if last < run.steps and end.kind == "finish" and end.note != "diverged":
        gaps.append(f"finished after {last} updates, expected {run.steps}")
    kept = [line for line in noted if line.kind == "update" and token and token.descends(line.point)]
    reissues, discarded = len(token.lineage) if token else 0, made - int((times > 0).sum())
    settled = end.kind == "finish" and len(gaps) == missing
    return Story(key, end, path, told, kept, sorted(departures), reissues, discarded, gaps, settled)


def _descends(token: Token | None, lines: NDArray[Any]) -> NDArray[np.bool_]:
    """`Token.descends` for many lines: the limit of each generation is looked up."""
    if token is None:
        return np.zeros(lines.size, dtype=bool)
    generations = [token.origin, *(issued.generation for issued in token.lineage)]
    places = [*(issued.place for issued in token.lineage), (_LARGEST, _LARGEST)]
    limits = dict(zip(reversed(generations), reversed(places), strict=True))  # of one that is there twice, the first
    found, where = np.unique(lines["generations"].astype("i8") << 32 | lines["issuers"] + 1, return_inverse=True)
    pairs = [limits.get(Generation(one >> 32, (one & 0xFFFFFFFF) - 1), (-1, -1)) for one in found.tolist()]
    step, hop = np.array(pairs, dtype="i8").reshape(-1, 2)[where].T
    steps, hops = lines["steps"].astype("i8"), lines["hops"].astype("i8")
    return np.asarray((steps < step) | ((steps == step) & (hops <= hop)))


def ranges(steps: NDArray[np.int64]) -> str:
    """Updates in few words: "updates 3, 531 to 540"; "" for none."""
    groups = [list(group) for _, group in groupby(enumerate(steps.tolist()), lambda pair: pair[1] - pair[0])]
    words = [f"{one[0][1]:,}" + (f" to {one[-1][1]:,}" if len(one) > 1 else "") for one in groups[:_SHOWN]]
    more = f" and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return f"update{'s' * (len(steps) > 1)} {', '.join(words)}{more}" if words else ""

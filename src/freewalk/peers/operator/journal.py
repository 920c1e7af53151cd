"""The journals of nodes as the operator reads them, checked line by line, and the story of a token that they tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.jobs.phase import marks_in
from freewalk.peers.network.init import Network
from freewalk.peers.node.store import CHAIN, WITNESS, Line, chain_of
from freewalk.peers.protocol.messages import LINEAGE
from freewalk.peers.protocol.payload import Payload, is_digest
from freewalk.peers.protocol.token import Generation, Key, Position, Token
from freewalk.peers.protocol.wire import from_point, require

KINDS = ("update", "departure", "re-issue", "discard", "finish")
_UPDATE, _DEPARTURE, _REISSUE, _, _FINISH = range(len(KINDS))
_MOST, _MORE = 8, 100_000  # lines of a journal for each update of the run, and besides
_ON_A_PAGE = 2**16  # lines
_LARGEST, _LATEST = 2**62, 2**37  # of numbers, and of seconds since 1970
_SHOWN = 5  # ranges of updates
#: The whole numbers of a line, by their names in a page, with their types there and here.
_WHOLE = {"numbers": "u8", "walks": "u8", "generations": "u8", "issuers": "i8", "steps": "u8", "hops": "u8"}
_WHOLE |= {"kinds": "u4", "messages": "u8", "probes": "u8"}
_NARROW = {"walks": "i4", "generations": "i4", "issuers": "i4", "hops": "i4", "kinds": "i1"}
#: What is kept of a line. Half of a chain is enough to find it: all of it has been computed anew by then.
_REST = {"seconds": "f8", "chain": "u8", "sender": "i4", "witness": "u8"}
_LINE = np.dtype([(name, _NARROW.get(name, "i8")) for name in _WHOLE if name != "numbers"] + list(_REST.items()))
_HASHED = ("times", "seconds", "walks", "generations", "issuers", "steps", "hops", "messages", "probes")
_NUMBERS = np.dtype([(name, "<f8" if name in _HASHED[:2] else "<i8") for name in _HASHED] + [("w", f"V{WITNESS}")])


class Book:
    """The journal of a node for one run, by columns: nothing that it says is believed without a look."""

    def __init__(self, network: Network, node: int, run: str, file: IO[bytes]) -> None:
        self.network, self.node, self.run = network, node, run
        self._file = file  # for the columns: many small arrays would leave memory in pieces
        self.lines = np.zeros(0, _LINE)
        self.kept: list[Line] = []  # with a note or a model
        self.launched = np.inf  # in seconds since 1970, by the clock of this node
        self.changed = ""  # the first line that is not as it was written
        self.unchained = 0  # lines that an earlier version wrote
        self._count, self._head, self._last = 0, b"", 0
        table = network.table.run
        self._limits = {"walks": table.tokens - 1, "generations": LINEAGE, "steps": table.steps, "hops": 2**31 - 1}
        self._limits |= {"kinds": len(KINDS) - 1, "issuers": len(network.nodes) - 1}
        self._most = _MOST * (table.steps + 1) * table.tokens + _MORE

    def add(self, page: Any) -> None:
        """Add a page, unless it is wrong."""
        count = len(page.numbers)
        self._count += count
        require(0 < count <= _ON_A_PAGE and self._count <= self._most, f"{self._count:,} lines, or an empty page")
        known = [KINDS.index(name) for name in page.names if name in KINDS]
        columns = {name: np.asarray(getattr(page, name), kind) for name, kind in _WHOLE.items()}
        times, seconds = np.asarray(page.times, "f8"), np.asarray(page.seconds, "f8")
        sizes = {column.size for column in (*columns.values(), times, seconds)}
        data = {len(page.chains): CHAIN, len(page.witnesses): WITNESS}
        require(sizes == {count} and all(size == count * one for size, one in data.items()), "a column is cut off")
        require(len(known) == len(page.names) > int(columns["kinds"].max()), "lines of an unknown kind")
        columns["kinds"] = np.array(known)[columns["kinds"]]
        within = all(int(one.max()) <= self._limits.get(name, _LARGEST) for name, one in columns.items())
        finite = np.isfinite(times + seconds).all() and min(times.min(), seconds.min()) >= 0 and times.max() < _LATEST
        issued = int(columns["issuers"].min()) >= -1
        require(bool(within and finite and issued), "a number that is impossible in this run")
        ascends = (np.diff(columns["numbers"].astype("i8"), prepend=self._last) > 0).all()
        require(bool(ascends), "lines that are not in order")
        lines = np.zeros(count, _LINE)
        for name in _LINE.names or ():
            if name in columns:
                lines[name] = columns[name]
        lines["seconds"], lines["chain"] = seconds, np.frombuffer(page.chains, "<u8")[::2]
        witnesses = np.frombuffer(page.witnesses, "<u8").reshape(-1, 3)
        lines["sender"], lines["witness"] = np.minimum(witnesses[:, 0], 2**31 - 1), witnesses[:, 1]
        kept = {one.place: self._kept(lines, page, one) for one in page.kept}
        self._follow(lines, page, kept)
        self.kept.extend(kept.values())
        self.launched = min(self.launched, float((times - seconds).min()))
        self._last = int(columns["numbers"][-1])
        self._file.write(lines.tobytes())

    def finish(self) -> Book:
        """Itself, with all lines."""
        self._file.seek(0)
        self.lines = np.fromfile(self._file, _LINE)
        return self

    def _kept(self, lines: NDArray[Any], page: Any, one: Any) -> Line:
        require(one.place < lines.size, "a note on no line")
        line, place, token = lines[one.place], one.place, None
        generation = Generation(int(line["generations"]), int(line["issuers"]))
        point = Position(generation, int(line["steps"]), int(line["hops"]))
        if one.digest:
            token = copy_of(point, one)
        key, kind = Key(self.run, int(line["walks"])), KINDS[line["kinds"]]
        counts = (int(line["messages"]), int(line["probes"]), self.node, float(line["seconds"]))
        witness = page.witnesses[WITNESS * place : WITNESS * (place + 1)]
        return Line(page.numbers[place], page.times[place], key, kind, point, token, one.note, *counts, witness)

    def _follow(self, lines: NDArray[Any], page: Any, kept: dict[int, Line]) -> None:
        """Compute the chain anew: an edit of a line shows there."""
        rows = np.zeros(lines.size, _NUMBERS)
        for name in _HASHED[1:]:
            rows[name] = lines[name]
        rows["times"], rows["w"] = np.asarray(page.times), np.frombuffer(page.witnesses, f"V{WITNESS}")
        data, size, head, chains = rows.tobytes(), rows.itemsize, self._head, page.chains
        words = [f"{self.run}\0{kind}\0\0".encode() for kind in KINDS]
        for place, kind in enumerate(lines["kinds"].tolist()):
            told = chains[CHAIN * place : CHAIN * (place + 1)]
            if not head and not any(told):
                self.unchained += 1
                continue
            own = kept[place].words if place in kept else words[kind]
            head = chain_of(head, data[size * place : size * (place + 1)], own)
            if head != told:
                line, whose = lines[place], f"the journal of {name_of(self.network, self.node)} was changed"
                where = f"line {page.numbers[place]} (update {line['steps']} of walk {line['walks']})"
                self.changed = self.changed or f"{where} of {whose}"
                head = told
        self._head = head


def name_of(network: Network, node: int) -> str:
    """The name of a node, which may be -1 for none."""
    return network.nodes[node].name if 0 <= node < len(network.nodes) else "an unknown node"


def copy_of(point: Position, told: Any) -> Token:
    """A token as a status or a journal tells of it; its model is only announced."""
    require(is_digest(told.digest) and len(told.lineage) <= LINEAGE, "a model without a digest, or a long lineage")
    lineage = tuple(from_point(one) for one in told.lineage)
    return Token(point, Payload(told.digest, told.size), True, from_point(told.origin).generation, lineage)


def doubts(network: Network, books: Sequence[Book]) -> list[str]:
    """What journals say of each other that does not fit: a receiver has witnessed lines that the sender lacks."""
    found, chains = [], {book.node: book.lines["chain"] for book in books}
    for book in books:
        name = name_of(network, book.node)
        if book.unchained:
            found.append(f"{name}: {book.unchained:,} lines of an earlier version, in which edits do not show")
        missing = 0
        for other in books:
            told = other.lines[(other.lines["sender"] == book.node) & (other.lines["witness"] != 0)]
            missing += int((~np.isin(told["witness"], chains[book.node])).sum())
        if missing:
            why = "it was changed, or its disk is an old one"
            found.append(f"{name}: its journal lacks lines that it had when it sent tokens ({missing:,} times): {why}")
    return found


class Story(NamedTuple):
    """The history of one token."""

    key: Key
    end: Line  # with which it finished, or its newest copy
    path: NDArray[np.int32]  # the nodes that made the updates, and its last one; -1 where no journal says so
    told: dict[int, tuple[int, int, float]]  # messages, probes and seconds at the updates around marks, and at the end
    kept: dict[int, Line]  # updates whose models the journals kept, by step
    departures: list[tuple[int, int]]  # (step, node) of the moves that ended elsewhere than in a simulation
    reissues: int
    discarded: int  # updates that these re-issues discarded
    gaps: list[str]  # what the journals do not prove

    @property
    def updates(self) -> int:
        """How many it has had."""
        return self.end.point.step

    @property
    def finished(self) -> bool:
        """Whether it made all its updates, or diverged."""
        return self.end.kind == "finish"


def tell(
    network: Network,
    key: Key,
    books: Sequence[Book],
    copies: Sequence[Line] = (),
    floors: Mapping[int, Generation] = MappingProxyType({}),
) -> Story:
    """The history of one token from the journals; `gaps` has each update of its lineage that was lost or made twice.

    `floors` are the newest generations of which nodes have heard, by walk.
    """
    newer = [line for book in books for line in book.kept if line.key == key and line.kind == "finish" and line.token]
    newer += [line for line in copies if line.key == key]
    nothing = Line(0, 0.0, key, "nothing", Position(Generation(0, -1), 0, 0), None, "", 0, 0)
    end = max(newer, key=lambda line: line.point, default=nothing)
    last, newest, made = end.point.step, max(end.point.generation, floors.get(key.walk, end.point.generation)), 0
    path, times, departures = np.full(last + 1, -1, np.int32), np.zeros(last + 1, np.int32), set[tuple[int, int]]()
    run = network.table.run
    marks = np.minimum(marks_in(-1, run.steps, run.every, run.steps), last)
    told = dict[int, tuple[int, int, float]]()
    places = dict[int, NDArray[Any]]()  # of the updates of each node
    for book in books:
        lines, own = book.lines, book.lines["walks"] == key.walk
        ends = lines[own & np.isin(lines["kinds"], (_REISSUE, _FINISH))]
        newest = max(newest, newest, *map(Generation, ends["generations"].tolist(), ends["issuers"].tolist()))
        lived, update = own & _descends(end.token, lines), lines["kinds"] == _UPDATE
        made += int((own & update).sum())
        departed = lines["steps"][lived & (lines["kinds"] == _DEPARTURE)]
        departures |= {(step - 1, book.node) for step in departed.tolist()}
        lived &= update & (lines["steps"] >= 1) & (lines["steps"] <= last)
        where = places[book.node] = lines["steps"][lived] - 1
        np.add.at(times, where, 1)
        path[where] = book.node
        shown = lines[lived & np.isin(lines["steps"], (marks, marks + 1))]
        told.update(zip(shown["steps"].tolist(), shown[["messages", "probes", "seconds"]].tolist(), strict=True))
    path[last], told[last + 1] = end.node, (end.messages, end.probes, end.seconds)
    gaps = _gaps(network, times[:last], places)
    if newest > end.point.generation and end.token is not None:
        gaps.append(f"generation {newest.number} of {name_of(network, newest.issuer)} is newer than what was found")
    if last < run.steps and end.kind == "finish" and end.note != "diverged":
        gaps.append(f"finished after {last} updates, expected {run.steps}")
    kept = [line for book in books for line in book.kept if line.key == key and line.kind == "update" and line.token]
    models = {line.point.step: line for line in kept if end.token is not None and end.token.descends(line.point)}
    reissues, discarded = len(end.token.lineage) if end.token else 0, made - int((times[:last] > 0).sum())
    return Story(key, end, path, told, models, sorted(departures), reissues, discarded, gaps)


def _gaps(network: Network, times: NDArray[np.int32], places: Mapping[int, NDArray[Any]]) -> list[str]:
    """The updates that are in no journal or in several, given how often each was found, and where."""
    found = []
    if lost := ranges(np.flatnonzero(times == 0) + 1):
        found.append(f"{lost} should be in one journal, found in none")
    if several := ranges(np.flatnonzero(times > 1) + 1):
        names = ", ".join(name_of(network, node) for node, where in places.items() if (times[where] > 1).any())
        found.append(f"{several} should be in one journal, found more than once at {names}")
    return found


def _descends(token: Token | None, lines: NDArray[Any]) -> NDArray[np.bool_]:
    """`Token.descends` for many lines: the limit of each generation is looked up."""
    if token is None:
        return np.zeros(lines.size, dtype=bool)
    limits, generation = dict[Generation, tuple[int, int]](), token.origin
    for issued in token.lineage:
        limits.setdefault(generation, issued.place)
        generation = issued.generation
    limits.setdefault(generation, (_LARGEST, _LARGEST))
    found, where = np.unique(lines["generations"].astype("i8") << 32 | lines["issuers"] + 1, return_inverse=True)
    pairs = [limits.get(Generation(one >> 32, (one & 0xFFFFFFFF) - 1), (-1, -1)) for one in found.tolist()]
    steps, hops = np.array(pairs, dtype="i8").reshape(-1, 2).T
    step, hop = steps[where], hops[where]
    return np.asarray((lines["steps"] < step) | ((lines["steps"] == step) & (lines["hops"] <= hop)))


def ranges(steps: NDArray[np.int64]) -> str:
    """Updates in few words: "updates 3, 531 to 540"; "" for none."""
    groups = [list(group) for _, group in groupby(enumerate(steps.tolist()), lambda pair: pair[1] - pair[0])]
    words = [f"{one[0][1]:,}" + (f" to {one[-1][1]:,}" if len(one) > 1 else "") for one in groups[:_SHOWN]]
    more = f" and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return f"update{'s' * (len(steps) > 1)} {', '.join(words)}{more}" if words else ""

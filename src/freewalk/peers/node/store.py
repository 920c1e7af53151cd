"""The disk of a node: its custody of each walk, its journal, and the models that they refer to."""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from itertools import takewhile
from operator import eq
from pathlib import Path
from threading import RLock
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple

from freewalk.errors import PeerError
from freewalk.peers.node.database import FILE, connect, sync, told, transaction
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.messages import Erase, Journal, Save
from freewalk.peers.protocol.payload import SUFFIX, Payload, discard
from freewalk.peers.protocol.token import Custody, Generation, Key, Position, Token, Version

_PAGE = 4000  # lines of the journal read at a time
_OFTEN_ENOUGH = 1.0  # seconds between writes of the clock
_BROKEN = "the folder is broken: what is known of a walk"
CHAIN = 16  # bytes
WITNESS = 8 + CHAIN
_NONE: Mapping[str, int] = MappingProxyType({})
_OFTEN = 10_000  # writes between sweeps; most payloads are removed as soon as nothing refers to them


class Line(NamedTuple):
    """A line of the journal of a node: what `messages.Journal` says, and where and when it was written."""

    number: int  # later lines have greater ones
    time: float  # in seconds since 1970
    key: Key
    kind: str
    point: Position
    token: Token | None
    note: str
    messages: int
    probes: int
    node: int = -1  # known to the operator, who reads the journals of many
    seconds: float = 0.0  # since the launch, by the clocks of the nodes that had the token, each for its own time
    witness: bytes = b""  # the node that sent the token, and the chain of its journal at that time; empty if none did
    chain: bytes = b""  # of this line and all before it of its run; empty in lines of earlier versions

    def chained(self, before: bytes) -> bytes:
        """The chain of this line after that of the line before: an edit of either changes it."""
        (generation, issuer), step, hop = self.point
        counts = (self.key.walk, generation, issuer, step, hop, self.messages, self.probes)
        data = _CHAINED.pack(self.time, self.seconds, *counts)
        return chain_of(before, data + self.witness.ljust(WITNESS, b"\0"), self.words)

    @property
    def words(self) -> bytes:
        """What it says besides its numbers."""
        words = f"{self.key.run}\0{self.kind}\0{self.note}\0"
        if (token := self.token) is not None:
            lineage = [(*point.generation, point.step, point.hop) for point in token.lineage]
            words += repr((token.payload.digest, token.payload.size, tuple(token.origin), lineage))
        return words.encode()


def chain_of(before: bytes, numbers: bytes, words: bytes) -> bytes:
    """The chain of a line from its parts, for those who have many lines by columns."""
    return blake2b(before + numbers + words, digest_size=CHAIN).digest()


class _Known(NamedTuple):
    """The state of a walk on disk: its number there, its custody as bytes, if there is one, and its versions."""

    number: int
    state: bytes = b""
    token: Payload | None = None
    first: int = 0  # the place of the first version
    versions: tuple[Version, ...] = ()


class Store(AbstractContextManager["Store"]):
    """A folder with the durable state of a node; one process has it open at a time."""

    def __init__(self, folder: str | os.PathLike[str], durable: bool = True) -> None:
        self.folder, self.durable = Path(folder).absolute(), durable
        self.models = self.folder / "models"
        self._path = self.folder / FILE
        self._lock = RLock()
        with told(self._path):
            self.models.mkdir(parents=True, exist_ok=True)
        self._connection = connect(self._path, durable)
        self._known: dict[Key, _Known] = {}
        self._uses: Counter[str] = Counter()  # by tokens and versions; the journal is queried
        self._writes = 0
        self._stale: set[str] = set()  # files that only this process may still use
        self._now = 0.0  # the time of the clock on the disk
        self._heads: dict[str, bytes] = {}  # the last chain of each run
        self.sent: Counter[str] = Counter()  # bytes, by run
        self.forgotten: set[str] = set()  # runs
        try:
            with told(self._path):
                if durable:
                    for one in (self.models, self.folder, self.folder.parent):
                        sync(one)
                self._set_clock(_boot(), monotonic())
                self._read()
            self.sweep()
        except BaseException:
            self._connection.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it, so that others can open it."""
        with self._lock:
            self._connection.close()
            self._known.clear()  # the files of its payloads are no longer in use

    def load(self) -> dict[Key, Custody]:
        """The custody of each walk."""
        with self._lock, told(self._path):
            return {
                key: wire.from_custody(wire.pb.Custody.FromString(known.state), known.versions, self._find)
                for key, known in self._known.items()
                if known.state
            }

    def head(self, run: str) -> bytes:
        """The chain of the last line of a run."""
        if run not in self._heads:
            with self._lock, told(self._path):
                row = self._connection.execute(_HEAD, (run,)).fetchone()
            self._heads[run] = row[0] if row else b""
        return self._heads[run]

    def write(
        self, actions: Sequence[Save | Journal | Erase], time: float, now: float = 0.0, sent: Mapping[str, int] = _NONE
    ) -> None:
        """Write all actions in one transaction, and flush it to disk.

        `time` is in seconds since 1970, `now` by the clock of the node; `sent` are further bytes by run.
        """
        erased = {action.run for action in actions if isinstance(action, Erase)}
        if erased:
            actions = [one for one in actions if not isinstance(one, Erase) and one.key.run not in erased]
        latest = {action.key: action.custody for action in actions if isinstance(action, Save)}
        with self._lock, told(self._path):
            change = _Change(self)
            with transaction(self._connection):
                for key, custody in latest.items():
                    change.save(key, custody)
                for action in actions:
                    if isinstance(action, Journal):
                        change.note(action, time, now)
                for counted in sent.items():
                    change.execute(_SENT, counted)
                for run in erased:
                    change.erase(run)
                if now > self._now + _OFTEN_ENOUGH:
                    change.execute(_NOW, (now,))
                    self._now = now
                dropped = change.end()
            self._heads.update(change.heads)
            self.sent.update(sent)
            if erased:
                self._known = {key: known for key, known in self._known.items() if key.run not in erased}
                self.sent = Counter({run: size for run, size in self.sent.items() if run not in erased})
                self.forgotten |= erased
            self._known.update(change.known)
            for digest, more in change.uses.items():
                self._uses[digest] += more
                if not self._uses[digest]:
                    del self._uses[digest]
            self._remove(dropped)
            self._writes += 1
            if self._writes % _OFTEN == 0:
                self.sweep()

    def journal(self, after: int = 0, run: str | None = None) -> Iterator[Line]:
        """The lines of the journal, or of one run, with numbers greater than `after`, in order."""
        for rows in self.rows(after, run):
            with self._lock, told(self._path):
                lines = [self._line(row) for row in rows]
            yield from lines

    def rows(self, after: int = 0, run: str | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """The same as in the file, with `COLUMNS`, and many at a time."""
        while True:
            with self._lock, told(self._path):
                rows = self._connection.execute(_LINES, {"after": after, "run": run, "most": _PAGE}).fetchall()
            if rows:
                yield rows
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def payload(self, digest: str) -> Payload | None:
        """A model that the journal names, or None."""
        with self._lock, told(self._path):
            row = self._connection.execute(_PAYLOAD, (bytes.fromhex(digest),)).fetchone()
            return None if row is None else self._find(digest, row[0])

    def unneeded(self, digest: str) -> bool:
        """Remove the file of a payload unless something refers to it; returns False while this process still does."""
        with self._lock, told(self._path):
            self._remove({digest})
            return digest not in self._stale

    def sweep(self) -> None:
        """Remove the payloads that nothing refers to, including those that a crash has left."""
        with self._lock, told(self._path):
            noted = self._connection.execute("SELECT DISTINCT payload FROM journal WHERE payload IS NOT NULL")
            used = {row[0].hex() for row in noted}.union(self._uses)
            rows = self._connection.execute("SELECT digest, data IS NULL FROM payloads").fetchall()
            with transaction(self._connection):
                self._connection.executemany(_DROP, [(digest,) for digest, _ in rows if digest.hex() not in used])
            kept = {digest.hex() + SUFFIX for digest, large in rows if large and digest.hex() in used}
            for path in list(self.models.iterdir()):
                if path.name not in kept:
                    discard(path)
            self._stale &= {path.stem for path in self.models.iterdir()}

    def _set_clock(self, boot: str, now: float) -> None:
        """After another boot the clock of this node began anew: tokens were launched so long ago as when it stopped."""
        before, then = self._connection.execute("SELECT * FROM clock").fetchone()
        with transaction(self._connection):
            for walk, state in self._connection.execute("SELECT walk, state FROM custody").fetchall():
                custody = wire.parsed(wire.pb.Custody, state, _BROKEN)
                if custody.HasField("token") and (before != boot or now < then):
                    custody.token.began += now - then
                    row = (custody.SerializeToString(deterministic=True), walk)
                    self._connection.execute("UPDATE custody SET state = ? WHERE walk = ?", row)
            self._connection.execute("UPDATE clock SET boot = ?, now = ?", (boot, now))

    def _read(self) -> None:
        """Read the state of all walks from disk."""
        self.sent = Counter(dict(self._connection.execute("SELECT * FROM sent")))
        self.forgotten = {run for (run,) in self._connection.execute("SELECT * FROM forgotten")}
        versions: dict[int, dict[int, Version]] = defaultdict(dict)
        for walk, place, state in self._connection.execute("SELECT * FROM versions ORDER BY walk, place"):
            versions[walk][place] = wire.from_version(wire.parsed(wire.pb.Version, state, _BROKEN), self._find)
        for run, walk, number, state in self._connection.execute(_WALKS):
            kept, first = tuple(versions[number].values()), min(versions[number], default=0)
            custody = (
                wire.from_custody(wire.parsed(wire.pb.Custody, state, _BROKEN), kept, self._find) if state else None
            )
            payload = custody.token.payload if custody and custody.token else None
            self._known[Key(run, walk)] = _Known(number, state or b"", payload, first, kept)
            used = (payload, *(one.payload for one in kept))
            self._uses.update(one.digest for one in used if one is not None)

    def _find(self, digest: str, size: int) -> Payload:
        """A payload that something on the disk refers to."""
        rows = self._connection.execute(_PAYLOAD, (bytes.fromhex(digest),))
        stored, data = rows.fetchone() or (None, None)
        if data is not None:
            payload = Payload.holding(data)
        else:
            path = self.models / (digest + SUFFIX)
            payload = Payload(digest, path.stat().st_size if path.exists() else -1, None, path)
        if (payload.digest, payload.size, stored) != (digest, size, size):
            raise PeerError(f"{self._path}: a model is missing or broken ({digest[:12]}…); the folder is broken")
        return payload

    def _line(self, row: tuple[Any, ...]) -> Line:
        number, time, run, walk, kind, generation, issuer, step, hop, state, note, messages, probes, *last = row
        token = None if state is None else wire.from_token(wire.parsed(wire.pb.Token, state, _BROKEN), self._find)
        point = Position(Generation(generation, issuer), step, hop)
        return Line(number, time, Key(run, walk), kind, point, token, note, messages, probes, -1, *last)

    def _remove(self, dropped: set[str]) -> None:
        """Remove the files of dropped payloads; those that this process may still use stay for now."""
        self._stale |= dropped
        for digest in list(self._stale):
            needed = self._uses[digest] > 0 or self._connection.execute(_PAYLOAD, (bytes.fromhex(digest),)).fetchone()
            if needed or discard(self.models / (digest + SUFFIX)):
                self._stale.remove(digest)


class _Change:
    """The changes of a transaction: in the tables at once, and in the store when it is committed."""

    def __init__(self, store: Store) -> None:
        self.store, self.execute = store, store._connection.execute
        self.known: dict[Key, _Known] = {}
        self.uses: Counter[str] = Counter()  # by how much they change
        self.new: dict[str, Payload] = {}
        self.files: set[str] = set()
        self.heads: dict[str, bytes] = {}

    def save(self, key: Key, custody: Custody) -> None:
        """Write the changes of a walk's custody."""
        old = self.walk(key)
        state = wire.to_custody(custody).SerializeToString(deterministic=True)
        if old.state != state:
            self.execute("INSERT OR REPLACE INTO custody VALUES (?, ?)", (old.number, state))
        payload = None if custody.token is None else custody.token.payload
        if old.token != payload:
            self._use(old.token, -1)
            self._use(payload, 1)
        first = self._versions(old, custody.versions)
        self.known[key] = _Known(old.number, state, payload, first, custody.versions)

    def note(self, line: Journal, time: float, now: float) -> None:
        """Write a line of the journal, unless it exists."""
        (generation, issuer), step, hop = line.point
        token, run = line.token, line.key.run
        digest = state = None
        if token is not None:
            digest = bytes.fromhex(token.payload.digest)
            state = wire.to_token(token, wire.reference).SerializeToString()
        place = (time, self.walk(line.key).number, line.kind, generation, issuer, step, hop)
        more = (digest, state, line.note, line.messages, line.probes)
        last = (max(now - line.began, 0.0), line.witness)
        written = Line(0, time, *line[:7], -1, *last)
        head = written.chained(self.heads.get(run) or self.store.head(run))
        if self.execute(_NOTE, (*place, *more, *last, head)).rowcount:
            self.heads[run] = head
            if token is not None:
                self.new[token.payload.digest] = token.payload

    def erase(self, run: str) -> None:
        """Remove all that is known of a run, and remember its name."""
        for old in [known for key, known in self.store._known.items() if key.run == run]:
            walk = (old.number,)
            for payload in (old.token, *(one.payload for one in old.versions)):
                self._use(payload, -1)
            for (digest,) in self.execute("SELECT payload FROM journal WHERE payload IS NOT NULL AND walk = ?", walk):
                self.uses[digest.hex()] += 0
                self.files.add(digest.hex())
            for table in ("custody", "versions", "journal"):
                self.execute(f"DELETE FROM {table} WHERE walk = ?", walk)
            self.execute("DELETE FROM walks WHERE number = ?", walk)
        self.execute("DELETE FROM sent WHERE run = ?", (run,))
        self.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (run,))

    def walk(self, key: Key) -> _Known:
        """What is on disk of a walk; a new one gets a number."""
        known = self.known.get(key) or self.store._known.get(key)
        if known is None:
            row = self.execute("INSERT INTO walks (run, walk) VALUES (?, ?)", key)
            known = self.known[key] = _Known(int(row.lastrowid or 0))
        return known

    def end(self) -> set[str]:
        """Write the new payloads and drop the old ones; returns those whose files remain."""
        files = [payload.path for payload in self.new.values() if self._add(payload) and payload.path is not None]
        if files and self.store.durable:
            for path in [*files, self.store.models]:
                sync(path)
        dropped = set()
        for digest, more in self.uses.items():
            key, noted = (bytes.fromhex(digest),), "SELECT 1 FROM journal WHERE payload = ? LIMIT 1"
            if self.store._uses[digest] + more == 0 and self.execute(noted, key).fetchone() is None:
                self.execute(_DROP, key)
                dropped.add(digest)
        return dropped & self.files

    def _add(self, payload: Payload) -> bool:
        """Add a payload; returns whether it is new."""
        path = payload.path
        if not payload.here or (path is not None and (path.parent != self.store.models or not path.exists())):
            raise PeerError(f"{self.store.folder}: a model to be written is not in its folder 'models'")
        row = (bytes.fromhex(payload.digest), payload.size, payload.data)
        return bool(self.execute("INSERT OR IGNORE INTO payloads VALUES (?, ?, ?)", row).rowcount)

    def _versions(self, old: _Known, new: tuple[Version, ...]) -> int:
        """Write new versions and remove old ones; returns the place of the first."""
        first, before = old.first, old.versions
        if before == new:
            return first
        gone = before.index(new[0]) if new and new[0] in before else len(before)
        same = sum(takewhile(bool, map(eq, before[gone:], new)))
        last = gone + same
        for index in (*range(gone), *range(last, len(before))):
            self.execute("DELETE FROM versions WHERE walk = ? AND place = ?", (old.number, first + index))
            self._use(before[index].payload, -1)
        for place, version in enumerate(new[same:], first + last):
            state = wire.to_version(version).SerializeToString(deterministic=True)
            self.execute("INSERT INTO versions VALUES (?, ?, ?)", (old.number, place, state))
            self._use(version.payload, 1)
        return first + gone

    def _use(self, payload: Payload | None, more: int) -> None:
        """Count references to a payload."""
        if payload is not None:
            self.uses[payload.digest] += more
            if more > 0:
                self.new[payload.digest] = payload
            if payload.path is not None:
                self.files.add(payload.digest)


def _boot() -> str:
    """What differs after the machine has been started again, where the system tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


_PAYLOAD = "SELECT size, data FROM payloads WHERE digest = ?"
_WALKS = "SELECT run, walks.walk, number, state FROM walks LEFT JOIN custody ON custody.walk = number"
_DROP = "DELETE FROM payloads WHERE digest = ?"
_NOTE = f"INSERT OR IGNORE INTO journal VALUES (NULL{', ?' * 15})"
_NOW = "UPDATE clock SET now = ?"
_SENT = "INSERT INTO sent VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes"
#: Of the rows of the journal; `operator.Page` has most of them.
COLUMNS: tuple[str, ...] = ("numbers", "times", "runs", "walks", "kinds", "generations", "issuers", "steps", "hops")
COLUMNS += ("states", "notes", "messages", "probes", "seconds", "witnesses", "chains")
_LINES = """SELECT journal.number, time, run, walks.walk, kind, generation, issuer, step, hop, token, note, messages,
probes, seconds, witness, chain FROM journal JOIN walks ON walks.number = journal.walk
WHERE journal.number > :after AND (:run IS NULL OR run = :run) ORDER BY journal.number LIMIT :most"""
_HEAD = """SELECT chain FROM journal JOIN walks ON walks.number = journal.walk
WHERE run = ? ORDER BY journal.number DESC LIMIT 1"""
_CHAINED = struct.Struct("<dd7q")

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk.errors import PeerError
from freewalk.peers.node import database
from freewalk.peers.node import store as module
from freewalk.peers.node.store import Store
from freewalk.peers.protocol.messages import Erase, Journal, Save
from freewalk.peers.protocol.payload import SMALL, Payload
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Position, Token, Version

KEY, OTHER = Key("first", 0), Key("first", 1)
LAUNCH = Generation(0, 3)


def at(step, hop=0):
    return Position(LAUNCH, step, hop)


def token(store, step, size=10):
    return Token(at(step), Payload.of({"x": np.full(size, float(step))}, store.models), due=False, origin=LAUNCH)


def custody(store, step, size=10, **more):
    one = token(store, step, size)
    return Custody(LAUNCH, one.point, one, source=Loan(2, at(1)), arrived=at(1), **more)


def save(store, *custodies, key=KEY):
    store.write([Save(key, one) for one in custodies], time=1.0)


def rows(store, table):
    return store._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def files(store):
    return sorted(path.name for path in store.models.iterdir())


LARGE = SMALL // 4


def test_what_was_written_is_there_after_opening_it_again(tmp_path):
    with Store(tmp_path) as store:
        version = Version(at(1), at(2), Payload.of({"memory": np.ones(3)}, store.models), 7)
        counted = Version(at(3), at(4), None, 8)
        lent = custody(store, 5, lent=Loan(9, at(5, 1)), owed=(Loan(1, at(2)), Loan(4, at(3))))
        states = {KEY: lent._replace(versions=(version, counted)), OTHER: custody(store, 3, LARGE)}
        store.write([Save(*one) for one in states.items()], time=1.0)
        assert store.load() == states
    with Store(tmp_path) as store:
        found = store.load()
        assert found == states
        np.testing.assert_array_equal(found[OTHER].token.payload.arrays()["x"], np.full(LARGE, 3.0))
        assert found[KEY].versions[0].payload.data == version.payload.data


def test_an_empty_one(tmp_path):
    with Store(tmp_path / "new" / "folder") as store:
        assert store.load() == {}
        assert list(store.journal()) == []
        store.write([], time=0.0)
        store.sweep()


def test_the_last_of_several_saves_counts(tmp_path):
    with Store(tmp_path) as store:
        last = custody(store, 3)
        save(store, custody(store, 1), custody(store, 2), last)
        assert store.load() == {KEY: last}
        assert rows(store, "payloads") == 1


@pytest.mark.parametrize("size", [10, LARGE])
def test_payloads_go_with_the_last_that_refers_to_them(tmp_path, size):
    with Store(tmp_path) as store:
        first = custody(store, 1, size)
        save(store, first)
        save(store, first, key=OTHER)
        store.write([Journal(KEY, "update", at(1), first.token)], time=1.0)
        del first
        assert rows(store, "payloads") == 1
        for key in (KEY, OTHER):
            save(store, Custody(LAUNCH), key=key)
            assert rows(store, "payloads") == 1
        assert next(store.journal()).token.payload.size > size * 8
        for step in range(2, 6):
            save(store, custody(store, step, size))
            assert rows(store, "payloads") == 2
        store.write([], time=0.0)
        assert len(files(store)) == (0 if size == 10 else 2)
    with Store(tmp_path) as store:
        assert rows(store, "payloads") == 2
        assert len(files(store)) == (0 if size == 10 else 2)


def test_a_file_that_is_still_in_use_goes_later(tmp_path):
    with Store(tmp_path) as store:
        used = custody(store, 1, LARGE)
        save(store, used)
        save(store, Custody(LAUNCH))
        store.sweep()
        assert files(store) == [used.token.payload.path.name]
        np.testing.assert_array_equal(used.token.payload.arrays()["x"], 1.0)
        del used
        save(store, Custody(LAUNCH))
        assert files(store) == []


def test_a_payload_comes_back_before_its_file_went(tmp_path):
    with Store(tmp_path) as store:
        one = custody(store, 1, LARGE)
        save(store, one)
        save(store, Custody(LAUNCH))
        save(store, one)
        name = one.token.payload.path.name
        del one
        save(store, Custody(LAUNCH), key=OTHER)
        assert files(store) == [name]
    with Store(tmp_path) as store:
        assert store.load()[KEY].token.payload.path.name == name


def test_opening_and_sweeping_remove_what_a_crash_left(tmp_path):
    with Store(tmp_path) as store:
        save(store, custody(store, 1, LARGE))
        (name,) = files(store)
    for left in (".1-2.tmp", "0" * 64 + ".safetensors"):
        (tmp_path / "models" / left).write_bytes(b"left")
    with Store(tmp_path) as store:
        assert files(store) == [name]
        store._connection.execute("INSERT INTO payloads VALUES (x'00', 1, x'00')")
        (store.models / "left").write_bytes(b"left")
        store.sweep()
        assert files(store) == [name]
        assert rows(store, "payloads") == 1


def test_it_sweeps_every_so_often(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_OFTEN", 3)
    with Store(tmp_path) as store:
        (store.models / "left").write_bytes(b"left")
        for left in (1, 1, 0):
            store.write([], time=0.0)
            assert len(files(store)) == left


def test_what_did_not_change_is_not_written_again(tmp_path):
    with Store(tmp_path) as store:
        kept = tuple(Version(at(n), at(n), Payload.of({"m": np.full(2, n)}, store.models), n) for n in range(100))
        statements = []
        save(store, custody(store, 100, versions=kept[:50]))
        store._connection.set_trace_callback(statements.append)
        save(store, custody(store, 100, versions=kept[:50]))
        assert not [one for one in statements if one.startswith(("INSERT", "DELETE"))]
        save(store, custody(store, 101, versions=kept[1:51]))
        written = [one.split("(")[0] for one in statements if one.startswith(("INSERT", "DELETE"))]
        assert len([one for one in written if "versions" in one]) == 2
        assert len(written) == 2 + 1 + 2 + 2  # the state; two payloads come, two go
        store._connection.set_trace_callback(None)
        assert store.load()[KEY].versions == kept[1:51]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 8), max_size=8), max_size=6))
def test_any_change_of_versions(tmp_path_factory, lists):
    folder = tmp_path_factory.mktemp("store")
    for numbers in lists:
        with Store(folder, durable=False) as store:
            for some in (numbers, numbers[::-1], numbers):
                kept = tuple(
                    Version(at(n), at(n), Payload.of({"m": np.full(2, n // 2)}, store.models), n) for n in some
                )
                save(store, Custody(LAUNCH, versions=kept))
                assert store.load()[KEY].versions == kept
                assert rows(store, "payloads") == len({n // 2 for n in some})
        with Store(folder, durable=False) as store:
            assert store.load()[KEY].versions == kept


def test_the_journal(tmp_path):
    with Store(tmp_path) as store:
        kept = token(store, 2)
        lines = [
            Journal(KEY, "update", at(1)),
            Journal(KEY, "update", at(2), kept, messages=5, probes=6),
            Journal(OTHER, "departure", at(2, 1), None, "no answer from node 3"),
        ]
        store.write(lines[:2], time=10.0)
        store.write(lines, time=11.0)  # the first two say nothing new
        store.write([Journal(KEY, "departure", at(2))], time=12.0)
        found = list(store.journal())
        assert [one.number for one in found] == [1, 2, 3, 4]
        assert [one.time for one in found] == [10.0, 10.0, 11.0, 12.0]
        assert [(one.key, one.kind, one.point, one.note) for one in found[:3]] == [
            (one.key, one.kind, one.point, one.note) for one in lines
        ]
        assert [one.token and one.token.payload for one in found] == [None, kept.payload, None, None]
        assert (found[1].messages, found[1].probes, found[0].messages) == (5, 6, 0)
        assert [one.number for one in store.journal(after=3)] == [4]


def test_a_journal_of_several_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PAGE", 7)
    with Store(tmp_path) as store:
        store.write([Journal(KEY, "update", at(step)) for step in range(21)], time=0.0)
        found = store.journal()
        assert next(found).point == at(0)
        store.write([Journal(KEY, "update", at(21))], time=0.0)  # while it is being read
        assert [line.point.step for line in found] == list(range(1, 22))


def test_lines_are_chained(tmp_path):
    """By run, over restarts; whatever is edited afterwards, the chain no longer fits."""
    second = Key("second", 0)
    with Store(tmp_path) as store:
        lines = [Journal(KEY, "update", at(step), None, f"note {step}", step, 2, began=5.0) for step in range(4)]
        store.write([*lines[:3], Journal(second, "update", at(1))], time=10.0, now=7.5)
        store.write(lines[:3], time=11.0, now=8.0)  # says nothing new, and adds nothing to the chain
        issued = Position(Generation(1, 5), 2, 0)
        end = token(store, 4)._replace(point=issued._replace(step=4), lineage=(issued,))
        store.write([Journal(KEY, "finish", end.point, end)], time=12.0, now=8.0)
    with Store(tmp_path) as store:
        store.write([lines[3]._replace(witness=bytes(range(24)))], time=13.0, now=9.0)
        for run, count in {"first": 5, "second": 1, None: 6}.items():
            found = list(store.journal(run=run))
            assert len(found) == count
            if run is not None:
                assert chained(found)
                assert store.head(run) == found[-1].chain
        found = list(store.journal(run="first"))
    assert [line.seconds for line in found] == [2.5, 2.5, 2.5, 8.0, 4.0]
    changes = {"time": 1.0, "seconds": 1.0, "messages": 9, "probes": 9, "note": "x", "kind": "departure"}
    changes |= {"point": at(9), "key": OTHER, "witness": b"", "token": None}
    for name, value in changes.items():
        place = 4 if name == "witness" else 3 if name == "token" else 1
        edited = [*found[:place], found[place]._replace(**{name: value}), *found[place + 1 :]]
        assert not chained(edited), name
    moved = found[3].token._replace(lineage=(issued._replace(step=1),))
    assert not chained([*found[:3], found[3]._replace(token=moved), found[4]])
    assert not chained(found[1:])
    assert not chained([*found[:2], *found[3:]])


def chained(lines):
    heads = [b"", *(line.chain for line in lines)]
    return all(line.chained(before) == line.chain for before, line in zip(heads, lines, strict=False))


def test_what_was_sent_is_counted_over_restarts(tmp_path):
    with Store(tmp_path) as store:
        store.write([], 1.0, 1.0, {"first": 100, "second": 5})
        store.write([], 1.0, 1.0, {"first": 11})
    with Store(tmp_path) as store:
        assert store.sent == {"first": 111, "second": 5}


def test_a_run_is_forgotten_and_nothing_else(tmp_path):
    shared = {"x": np.full(LARGE, 7.0)}
    with Store(tmp_path) as store:
        other = Key("second", 0)
        for key in (KEY, OTHER, other):
            kept = token(store, 2, LARGE)._replace(payload=Payload.of(shared, store.models))
            store.write([Save(key, custody(store, key.walk, LARGE)), Journal(key, "update", at(2), kept)], time=1.0)
        before = list(store.journal(run="second"))
        store.write([], 1.0, 1.0, {"first": 100, "second": 5})
        late = [Save(KEY, custody(store, 9)), Erase("first"), Journal(KEY, "update", at(3))]
        store.write(late, 2.0, 2.0, {"first": 11})
        assert list(store.load()) == [other]
        assert store.forgotten == {"first"}
        assert store.sent == {"second": 5}
    with Store(tmp_path) as store:
        assert list(store.load()) == [other]
        assert list(store.journal()) == before
        assert store.forgotten == {"first"}
        assert store.sent == {"second": 5}
        assert len(files(store)) == rows(store, "payloads") == 2  # the model of the other walk, and what was shared
        np.testing.assert_array_equal(before[0].token.payload.arrays()["x"], shared["x"])


def test_the_age_of_a_token_outlives_its_process_and_its_boot(tmp_path, monkeypatch):
    """In the same boot the clock goes on while the node is down; another boot has another clock."""
    clock = {"now": 1000.0}
    monkeypatch.setattr(module, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(module, "_boot", lambda: clock.get("boot", "one"))

    def age(store):
        return clock["now"] - store.load()[KEY].token.began

    with Store(tmp_path) as store:
        one = custody(store, 2)
        store.write([Save(KEY, one._replace(token=one.token._replace(began=900.0)))], 0.0, 1000.0)
    clock["now"] = 1060.0
    for _ in range(2):
        with Store(tmp_path) as store:
            assert age(store) == 160.0
    for boot, now in (("two", 5.0), ("three", 2000.0), ("three", 1.0)):  # the last one did not say that it was another
        clock.update(boot=boot, now=now)
        with Store(tmp_path) as store:
            assert age(store) == 160.0


def test_a_store_of_the_first_version_goes_on(tmp_path):
    with sqlite3.connect(tmp_path / "node.sqlite") as connection:
        connection.executescript(database._TABLES)
        connection.execute("INSERT INTO walks VALUES (1, 'first', 0)")
        connection.execute("INSERT INTO journal VALUES (1, 5.0, 1, 'update', 0, 3, 1, 0, NULL, NULL, '', 7, 0)")
        connection.execute(f"PRAGMA application_id = {database.APPLICATION}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for _ in range(2):
        with Store(tmp_path) as store:
            store.write([Journal(KEY, "update", at(2), messages=8)], time=6.0)
            first, second = store.journal()
            assert (first.point, first.messages, first.chain, first.witness) == (at(1), 7, b"", b"")
            assert second.chained(b"") == second.chain


def test_a_repeated_line_brings_no_payload(tmp_path):
    with Store(tmp_path) as store:
        store.write([Journal(KEY, "finish", at(1), token(store, 1))], time=0.0)
        store.write([Journal(KEY, "finish", at(1), token(store, 2)._replace(point=at(1)))], time=0.0)
        assert rows(store, "payloads") == 1
        assert len(list(store.journal())) == 1


def test_a_second_process_is_refused(tmp_path):
    command = [
        sys.executable,
        "-c",
        "import sys; from freewalk.peers.node.store import Store; Store(sys.argv[1])",
        tmp_path,
    ]
    with Store(tmp_path) as store:
        save(store, custody(store, 1))
        with pytest.raises(PeerError, match="another process has it open"):
            Store(tmp_path)
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 1
        assert "PeerError" in ended.stderr
        assert "another process has it open" in ended.stderr
        save(store, custody(store, 2))
    subprocess.run(command, check=True)


def test_files_that_are_not_ours(tmp_path):
    for name, content in {"broken": b"nonsense" * 1000, "short": b"nonsense"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "node.sqlite").write_bytes(content)
        with pytest.raises(PeerError, match="not the file of a node"):
            Store(tmp_path / name)
    (tmp_path / "foreign").mkdir()
    with sqlite3.connect(tmp_path / "foreign" / "node.sqlite") as connection:
        connection.execute("CREATE TABLE things (name TEXT)")
    connection.close()
    with pytest.raises(PeerError, match="belongs to another program"):
        Store(tmp_path / "foreign")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(PeerError, match="cannot be written"):
        Store(tmp_path / "file")


def test_a_newer_version(tmp_path):
    with Store(tmp_path) as store:
        store._connection.execute("PRAGMA user_version = 3")
    with pytest.raises(PeerError, match="its version is 3, expected 2; it needs another freewalk"):
        Store(tmp_path)


def test_contents_that_are_broken(tmp_path):
    with Store(tmp_path) as store:
        save(store, custody(store, 1, LARGE))
    (path,) = (tmp_path / "models").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PeerError, match="missing or broken"):
        Store(tmp_path)
    path.unlink()
    with pytest.raises(PeerError, match="missing or broken"):
        Store(tmp_path)
    with sqlite3.connect(tmp_path / "node.sqlite") as connection:
        connection.execute("UPDATE custody SET state = x'ff'")
    connection.close()
    with pytest.raises(PeerError, match="cannot be read"):
        Store(tmp_path)


def test_a_full_disk_changes_nothing(tmp_path):
    with Store(tmp_path) as store:
        first = custody(store, 1)
        save(store, first)
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(PeerError, match="is the disk full"):
            save(store, custody(store, 2, 10_000))
        assert store.load() == {KEY: first}
        store._connection.execute("PRAGMA max_page_count = 100000")
        second = custody(store, 3, 10_000)
        save(store, second)
        assert store.load() == {KEY: second}
        assert rows(store, "payloads") == 1


def test_payloads_must_be_in_its_folder(tmp_path):
    with Store(tmp_path / "store") as store:
        elsewhere = Payload.of({"x": np.zeros(LARGE)}, tmp_path)
        announced = Payload("0" * 64, 10**6)
        for payload in (elsewhere, announced):
            with pytest.raises(PeerError, match="models"):
                save(store, custody(store, 1)._replace(token=token(store, 1)._replace(payload=payload)))
        assert store.load() == {}
        save(store, custody(store, 1))


class Crash(Exception):
    """The machine fails."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(5))
def test_a_crash_at_each_file_operation(tmp_path, monkeypatch, nth, after):
    """Before and after each fsync and rename of a large payload: what was there before stays, or all of the new is."""
    with Store(tmp_path) as store:
        before = custody(store, 1, LARGE)
        save(store, before)
    operations = []

    def crashing(real):
        def operation(*arguments):
            operations.append(real.__name__)
            crash = len(operations) == nth + 1
            if crash and not after:
                raise Crash
            real(*arguments)
            if crash:
                raise Crash

        return operation

    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        for name in ("fsync", "replace"):
            patch.setattr(os, name, crashing(getattr(os, name)))
        try:
            save(store, custody(store, 2, LARGE))
        except Crash:
            crashed = True
        else:
            crashed = False
    assert crashed == (nth < 4)
    assert operations[:4] == ["fsync", "replace", "fsync", "fsync"][: len(operations)]
    store.close()
    del store
    with Store(tmp_path) as store:
        found = store.load()[KEY]
        assert found.token.point.step == (1 if crashed else 2)
        np.testing.assert_array_equal(found.token.payload.arrays()["x"], 1.0 if crashed else 2.0)
        save(store, custody(store, 3, LARGE))
        del found, before
        store.sweep()
        assert len(files(store)) == 1

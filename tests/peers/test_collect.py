"""What the operator believes: journals that prove a run, and nothing of what a node only says."""

import asyncio
import io
import json
import shutil
import socket
import sqlite3
import tracemalloc
from contextlib import asynccontextmanager, closing

import numpy as np
import pytest
from attackers import refusals, sent_by_neighbour
from hypothesis import given
from hypothesis import strategies as st
from networks import nodes, written
from rich.console import Console

from freewalk.errors import PeerError
from freewalk.peers.network.init import Network
from freewalk.peers.node import server
from freewalk.peers.node.data import Updater
from freewalk.peers.node.store import Store
from freewalk.peers.operator import collect, journal, watch
from freewalk.peers.operator import operator as operating
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Generation, Key, Position, Token, Trust
from freewalk.report.page import section

KEY = Key("first", 0)
STEPS, EVERY = 60, 20


async def begun(network, run="first"):
    async with nodes(network):
        await collect.launch(network, run)
        await collect.finished(network, run, 120)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A network whose first run has finished, and is not collected."""
    network = written(tmp_path_factory.mktemp("collected"), steps=STEPS, every=EVERY, lease=60)
    asyncio.run(begun(network))
    return network.folder


@pytest.fixture
def network(template, tmp_path):
    shutil.copytree(template, tmp_path / "net")
    return Network.read(tmp_path / "net")


def collected(network, partial=False, without=()):
    """The first run, collected with some nodes down."""

    async def play():
        async with nodes(network) as tasks:
            for node in without:
                tasks[node].cancel()
                await asyncio.gather(tasks[node], return_exceptions=True)
            return await collect.collect(network, "first", partial)

    return asyncio.run(asyncio.wait_for(play(), 120))


def sql(network, node, *statements):
    with closing(sqlite3.connect(network.config(node).state / "node.sqlite")) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def names(network):
    """The nodes by name."""
    return [one.name for one in network.nodes]


def lines(network, node):
    with Store(network.config(node).state) as store:
        return list(store.journal(run="first"))


def busiest(network, kind="update"):
    """The node that made most updates, but did not finish."""
    count = {one.number: lines(network, one.number) for one in network.nodes}
    ends = {node for node, some in count.items() if any(line.kind == "finish" for line in some)}
    return max((node for node in count if node not in ends), key=lambda node: len(count[node]))


# Journals as columns.


def written_journal(folder, lineage=0):
    launch = Generation(0, 2)
    points = tuple(Position(Generation(number + 1, number % 4), 2, number) for number in range(lineage))
    with Store(folder) as store:
        for step in range(1, 30):
            model = Payload.of({"x": np.full(4, float(step))}, store.models)
            origin, newest = launch, points[-1].generation if points else launch
            token = Token(Position(newest, step, 0), model, False, origin, points) if step % 5 == 0 else None
            kind, note = ("departure", "node 3 is down") if step % 7 == 0 else ("update", "")
            line = say.Journal(KEY, kind, Position(newest, step, 0), token, note, step, 2 * step, 1.0, b"w" * 24)
            store.write([line], time=1000.0 + step, now=1.0 + step / 10)
    return folder


@pytest.mark.parametrize("lineage", [0, 3, 400])
def test_columns_say_what_lines_say_and_chains_are_computed_anew(lineage, network, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_LONG_PAGE", 2**13)
    with Store(written_journal(tmp_path / "state", lineage)) as store:
        pages = [page for rows in store.rows(0, "first") for page in server._pages(rows)]
        kept = list(store.journal(run="first"))
    assert (len(pages) > 1) == (lineage == 400)  # a page with long lineages is halved
    book = journal.Book(network, 2, "first")
    for page in pages:
        book.add(page)
    book.finish()
    assert book.changed == ""
    assert book.unchained == 0
    assert book.launched == pytest.approx(1000.0 + 29 - 2.9 - 26 + 0, abs=30)
    assert book.lines["steps"].tolist() == [line.point.step for line in kept]
    assert book.lines["seconds"].tolist() == [line.seconds for line in kept]
    assert book.lines["messages"].tolist() == [line.messages for line in kept]
    assert [journal.KINDS[kind] for kind in book.lines["kinds"]] == [line.kind for line in kept]
    told = [line for line in kept if line.note or line.token is not None]
    assert [(line.point, line.note) for line in book.kept] == [(line.point, line.note) for line in told]
    assert [line.words for line in book.kept] == [line.words for line in told]


def test_a_long_journal_takes_little_memory(network, tmp_path):
    """A million lines are to fit into 300 MB, together with everything else that the operator needs."""
    count, launch = 20_000, Generation(0, 2)
    with Store(tmp_path / "state", durable=False) as store:
        updates = [say.Journal(KEY, "update", Position(launch, 1 + step, 0), messages=step) for step in range(count)]
        store.write(updates, time=1000.0, now=1.0)
        pages = [page for rows in store.rows(0, "first") for page in server._pages(rows)]
    network.table.run.__dict__["steps"] = count
    tracemalloc.start()
    book = journal.Book(network, 2, "first")
    for page in pages:
        book.add(page)
    book.finish()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert book.lines["steps"].tolist() == list(range(1, count + 1))
    assert kept < 150 * count


GENERATIONS = st.tuples(st.integers(0, 3), st.integers(-1, 2)).map(lambda pair: Generation(*pair))
POINTS = st.builds(Position, GENERATIONS, st.integers(0, 4), st.integers(0, 3))


@given(GENERATIONS, st.lists(POINTS, max_size=5), st.lists(POINTS, max_size=20))
def test_descent_of_many_lines_is_that_of_each(origin, lineage, points):
    token = Token(Position(origin, 0, 0), None, True, origin, tuple(lineage))
    rows = np.zeros(len(points), journal._LINE)
    for row, point in zip(rows, points, strict=True):
        (row["generations"], row["issuers"]), row["steps"], row["hops"] = point
    assert journal._descends(token, rows).tolist() == [token.descends(point) for point in points]


def test_updates_are_named_in_few_words():
    assert journal.ranges(np.array([], dtype=int)) == ""
    assert journal.ranges(np.array([7])) == "update 7"
    assert journal.ranges(np.array([3, 531, 532, 1540])) == "updates 3, 531 to 532, 1,540"
    assert journal.ranges(np.arange(1, 20, 2)).endswith("9 and 5 more")


# Edits after the fact.


@pytest.mark.parametrize(
    "edit",
    [
        "time = time + 1",
        "seconds = 0",
        "messages = messages + 1",
        "note = 'of course'",
        "hop = hop + 1",
        "token = NULL",
    ],
)
def test_an_edited_line_shows(edit, network):
    node = busiest(network)
    which = "NOT NULL" if "token" in edit else "NULL"
    if "token" in edit:
        found = [(one.number, line) for one in network.nodes for line in lines(network, one.number)]
        node = next(node for node, line in found if line.kind == "update" and line.token is not None)
    (((number,),),) = sql(network, node, f"SELECT max(number) FROM journal WHERE kind = 'update' AND token IS {which}")
    sql(network, node, f"UPDATE journal SET {edit} WHERE number = {number}")
    told = rf"line {number} \(update \d+ of walk 0\) of the journal of {names(network)[node]} was changed"
    with pytest.raises(PeerError, match=rf"{told}.*freewalk network collect .* --partial` collects what there is"):
        collected(network)
    record = collected(network, partial=True).record
    assert any("was changed" in gap for gap in record.provenance["gaps"])


def test_a_deleted_line_shows(network):
    node = busiest(network)
    sql(network, node, "DELETE FROM journal WHERE number = 1 + (SELECT min(number) FROM journal)")
    with pytest.raises(PeerError, match=r"was changed.*walk 0: update \d+ should be in one journal, found in none"):
        collected(network)


@pytest.fixture(scope="module")
def departed(tmp_path_factory):
    """A network that finished while a node was down, so that moves to it ended elsewhere."""
    network = written(tmp_path_factory.mktemp("departed"), steps=STEPS, every=EVERY, lease=60)
    for one in network.nodes:
        config = network.path(one.number)
        config.write_text(config.read_text().replace("patience = 3.0", "patience = 0.2"))

    async def play():
        async with nodes(network) as tasks:
            tasks[1].cancel()
            await asyncio.gather(tasks[1], return_exceptions=True)
            await collect.launch(network, "first")
            await collect.finished(network, "first", 120)

    asyncio.run(play())
    return network.folder


@pytest.mark.parametrize("edit", ["DELETE FROM journal", "UPDATE journal SET note = 'the operator said so'"])
def test_an_edited_departure_shows(edit, departed, tmp_path):
    """Nothing else of a run says where it left the path of a simulation."""
    shutil.copytree(departed, tmp_path / "net")
    network = Network.read(tmp_path / "net")
    assert collected(network).departures
    node = next(n for n in range(6) if any(one.kind == "departure" for one in lines(network, n)[:-1]))
    sql(network, node, f"{edit} WHERE number = (SELECT min(number) FROM journal WHERE kind = 'departure')")
    with pytest.raises(PeerError, match=rf"of the journal of {names(network)[node]} was changed"):
        collected(network)


def test_a_journal_that_was_edited_and_chained_anew_lacks_what_others_witnessed(network):
    node = busiest(network)
    sql(network, node, "UPDATE journal SET time = time + 1 WHERE number = (SELECT min(number) FROM journal)")
    head, chains = b"", []
    for line in lines(network, node):
        head = line.chained(head)
        chains.append((head, line.number))
    with closing(sqlite3.connect(network.config(node).state / "node.sqlite")) as connection, connection:
        connection.executemany("UPDATE journal SET chain = ? WHERE number = ?", chains)
    found = collected(network)
    (doubt,) = found.record.provenance["doubts"]
    told = doubt.removeprefix(f"{names(network)[node]}: by what ")
    witnesses, _, lacks = told.partition(" wrote, ")
    assert set(witnesses.split(", ")) < {*names(network)} - {names(network)[node]}
    assert lacks.startswith("its journal lacks lines that it had when it sent tokens")


def test_an_undisturbed_run_leaves_no_doubt(network):
    found = collected(network)
    assert found.record.provenance["doubts"] == []
    assert "gaps" not in found.record.provenance
    assert collected(network, partial=True).record.provenance["gaps"] == []


def test_lines_of_an_earlier_version_are_one_doubt_per_node(network):
    for one in network.nodes:
        sql(network, one.number, "UPDATE journal SET chain = x'', witness = x'', seconds = 0")
    found = collected(network).record.provenance["doubts"]
    with_lines = [one.name for one in network.nodes if lines(network, one.number)]
    assert [doubt.partition(":")[0] for doubt in found] == with_lines
    assert all("lines of an earlier version" in doubt for doubt in found)


# Nodes that lie.


def lying(monkeypatch, name, liar, lie):
    """One node answers a call as `lie` says, which may ask what the truth is."""
    truth = getattr(server.Handlers, name)

    def said(handlers, request, context):
        own = truth(handlers, request, context)
        return lie(own, request) if handlers.at_work.node.me == liar else own

    async def streamed(handlers, request, context):
        async for part in said(handlers, request, context):
            yield part

    async def told(handlers, request, context):
        return await said(handlers, request, context)

    monkeypatch.setattr(server.Handlers, name, told if name == "status" else streamed)


async def _pages(change, own):
    async for page in own:
        change(page)
        yield page


def _set(name, place, value):
    def change(page):
        getattr(page, name)[place] = value

    return change


def _shorter(page):
    del page.steps[-1]


def _stranger(page):
    page.names[0] = "rumour"


def _note_on_no_line(page):
    page.kept.add(place=10**6, note="x")


def _no_digest(page):
    page.kept.add(place=0, digest="../../etc/passwd", size=10)


PAGES = {
    "short": _shorter,
    "kind": _stranger,
    "step": _set("steps", 0, 10**9),
    "walk": _set("walks", 0, 7),
    "issuer": _set("issuers", 0, 77),
    "generation": _set("generations", 0, 10**9),
    "time": _set("times", 0, float("nan")),
    "seconds": _set("seconds", 0, -1.0),
    "messages": _set("messages", 0, 2**64 - 1),
    "order": _set("numbers", 0, 10**6),
    "kept": _note_on_no_line,
    "digest": _no_digest,
}


@pytest.mark.parametrize("change", PAGES.values(), ids=PAGES)
def test_a_journal_that_cannot_be_one(change, network, monkeypatch):
    node = busiest(network)
    lying(monkeypatch, "journal", node, lambda own, _: _pages(change, own))
    with pytest.raises(
        PeerError, match=rf"what node {names(network)[node]} at .* says is wrong: a message is not valid"
    ):
        collected(network)
    assert any(names(network)[node] in gap for gap in collected(network, partial=True).record.provenance["gaps"])


def test_a_journal_without_end(network, monkeypatch):
    node, number = busiest(network), iter(range(1, 10**9))
    monkeypatch.setattr(journal, "_MORE", 10_000)

    async def pages(own):
        (page,) = [page async for page in own][:1]
        while True:
            some = ask.Page()
            some.CopyFrom(page)
            some.numbers[:] = [next(number) for _ in page.numbers]
            yield some

    lying(monkeypatch, "journal", node, lambda own, _: pages(own))
    with pytest.raises(PeerError, match=rf"{names(network)[node]}.* 10,\d\d\d lines, or an empty page"):
        collected(network)


@pytest.mark.parametrize(
    "more", [{"note": "x" * 10**6}, {"lineage": [ask.Point(step=1)] * 10**4}], ids=["note", "lineage"]
)
def test_notes_without_end(more, network, monkeypatch):
    """There are few lines, but each brings as much as fits into a page."""
    node, number, sent = busiest(network), iter(range(1, 10**9)), []

    async def pages(own):
        (page,) = [page async for page in own][:1]
        while True:
            some = ask.Page()
            some.CopyFrom(page)
            some.numbers[:] = [next(number) for _ in page.numbers]
            del some.kept[:]
            some.kept.add(place=0, digest="0" * 64, size=1, **more)
            sent.append(some.ByteSize())
            yield some

    monkeypatch.setattr(journal, "_NOTED", 2**24)
    lying(monkeypatch, "journal", node, lambda own, _: pages(own))
    with pytest.raises(PeerError, match=rf"{names(network)[node]}.* more notes and lineages than a run can have"):
        collected(network)
    assert sum(sent) < 2**26


async def _hangs():
    await asyncio.sleep(600)
    yield


def test_a_journal_that_comes_by_drops(network, monkeypatch):
    """Each of its pages comes in time."""
    node = busiest(network)

    async def pages(own):
        async for page in own:
            for number in range(1, 1000):
                some = ask.Page()
                some.CopyFrom(page)
                some.numbers[:] = [number * len(page.numbers) + place for place in range(len(page.numbers))]
                yield some
                await asyncio.sleep(0.1)

    monkeypatch.setattr(operating, "_PIECE", 2.0)
    lying(monkeypatch, "journal", node, lambda own, _: pages(own))
    with pytest.raises(PeerError, match=f"node {names(network)[node]} at .* does not answer"):
        collected(network)


@pytest.mark.parametrize("call", ["journal", "fetch"])
def test_a_call_that_hangs(call, network, monkeypatch):
    node = busiest(network) if call == "journal" else collected(network).stories[0].end.node
    monkeypatch.setattr(operating, "_PATIENCE", 1.0)
    monkeypatch.setattr(operating, "_PIECE", 1.0)
    lying(monkeypatch, call, node, lambda *_: _hangs())
    with pytest.raises(PeerError, match=f"node {names(network)[node]} at .* does not answer: it takes too long"):
        collected(network)


async def _streamed(*datas):
    for data in datas:
        yield ask.Piece(data=data)


async def _endless():
    while True:
        yield ask.Piece(data=b"0" * 2**20)


def forged(network, **vectors):
    return Payload.of({"x": np.zeros(4)} | vectors, network.folder).data


MODELS = {
    "another": (lambda network: _streamed(forged(network)), "another one than was announced"),
    "endless": (lambda network: _endless(), "longer than the .* bytes announced"),
    "nothing": (lambda network: _streamed(), "another one than was announced"),
}


@pytest.mark.parametrize(("made", "why"), MODELS.values(), ids=MODELS)
def test_a_model_that_is_another(made, why, network, monkeypatch):
    node = collected(network).stories[0].end.node
    lying(monkeypatch, "fetch", node, lambda *_: made(network))
    with pytest.raises(PeerError, match=f"what node {names(network)[node]} .*{why}"):
        collected(network)
    found = collected(network, partial=True).record
    assert any("the models after update" in gap and "cannot be had" in gap for gap in found.provenance["gaps"])
    assert np.isnan(found.data.loss.values[0, -1])


WRONG = {
    "shape": {"x": np.zeros(5)},
    "rank": {"x": np.zeros((2, 2))},
    "name": {"y": np.zeros(4)},
    "type": {"x": np.zeros(4, dtype="f4")},
    "values": {"x": np.full(4, np.nan)},
}


@pytest.mark.parametrize("vectors", WRONG.values(), ids=WRONG)
def test_a_model_of_another_form(vectors, network, monkeypatch):
    """Its journal announces what it sends, so that the digest is right."""
    node, payload = collected(network).stories[0].end.node, Payload.of(vectors, network.folder)

    async def announced(own):
        async for page in own:
            for kept in page.kept:
                if kept.digest:
                    kept.digest, kept.size = payload.digest, payload.size
            page.chains = bytes(len(page.chains))
            yield page

    lying(monkeypatch, "journal", node, lambda own, _: announced(own))
    lying(monkeypatch, "fetch", node, lambda *_: _streamed(payload.data))
    with pytest.raises(PeerError, match=f"what node {names(network)[node]} .*a model"):
        collected(network)


def test_a_status_that_cannot_be_one(network, monkeypatch):
    node = busiest(network)

    async def lie(own):
        status = await own
        status.closed = "\x1b[31m[/red] closed\n" * 100
        status.sent["first"] = 2**64 - 1
        known = {"held": True, "failure": "[/red]\x1b[31m", "stage": "[bold", "digest": "0" * 64}
        for walk, step, more in (
            (0, 10**12, {}),
            (10**12, 1, {}),
            (0, 1, {"digest": "x"}),
            (0, STEPS, {"messages": 2**64 - 1}),
            (0, STEPS, {"probes": 2**63}),
        ):
            told = status.walks.add(run="first", walk=walk, **known | more)
            told.point.step = step
        return status

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            seen = await watch.glance(operator, network, "first")
            json.loads(watch.as_json(network, "first", seen))
            shown = Console(file=io.StringIO(), width=200)
            shown.print(watch.table(network, "first", seen))
            assert all(letter.isprintable() or letter == "\n" for letter in shown.file.getvalue())
            assert [one.key for one in seen.tokens] == [KEY]
            assert seen.tokens[0].told.messages < 2**20 * STEPS
            assert (await collect.collect(network, "first")).record.provenance["wire_bytes"] < 2**53

    lying(monkeypatch, "status", node, lambda own, _: lie(own))
    asyncio.run(play())


NEWEST = {
    "generation": {"floor": ask.Point(number=9999, issuer=3)},
    "collected": {"floor": ask.Point(number=9999, issuer=3), "collected": True},
    "token": {"floor": ask.Point(number=9999, issuer=3), "point": ask.Point(number=9999, issuer=3), "held": True},
    "later token": {"point": ask.Point(number=1, issuer=1, step=STEPS), "held": True},
    "failure": {"floor": ask.Point(number=9999, issuer=3), "stage": "failed", "failure": "no"},
}


@pytest.mark.parametrize("change", NEWEST.values(), ids=NEWEST)
def test_what_a_node_cannot_prove_is_a_doubt(change, network, monkeypatch):
    """What one node said of a generation was enough to make a finished run uncollectable."""
    end = collected(network).stories[0].end.node
    node = next(node for node in range(6) if node != end and lines(network, node))

    async def lie(own):
        status = await own
        (walk,) = [walk for walk in status.walks if walk.run == "first"]
        walk.MergeFrom(ask.Walk(digest="0" * 64, size=10, **change))
        return status

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            _, (one,) = await operator.located("first")
            assert one.floor == Generation(0, network.starts[0])
            assert one.unproven == [node]
            await collect.finished(network, "first", 30)
            assert await collect.launch(network, "first") == 0
            return [await collect.collect(network, "first", partial) for partial in (True, False)]

    lying(monkeypatch, "status", node, lambda own, _: lie(own))
    for found in asyncio.run(play()):
        assert found.stories[0].end.node == end
        assert found.record.provenance.get("gaps", []) == []
        (doubt,) = found.record.provenance["doubts"]
        assert doubt == f"{names(network)[node]}: it has no proof of what it says of walk 0"


def test_a_copy_of_the_end_that_a_node_invents_is_not_the_end(network, monkeypatch):
    """Within a generation that exists, so that nothing has to be proved."""
    end = collected(network).stories[0].end
    node = next(node for node in range(6) if node != end.node and lines(network, node))

    async def lie(own):
        status = await own
        (walk,) = [walk for walk in status.walks if walk.run == "first"]
        point = ask.Point(issuer=network.starts[0], step=STEPS, hop=9)
        walk.MergeFrom(ask.Walk(point=point, held=True, digest="0" * 64, size=10))
        return status

    lying(monkeypatch, "status", node, lambda own, _: lie(own))
    for partial in (True, False):
        found = collected(network, partial)
        assert found.stories[0].end.point == end.point
        assert found.record.provenance.get("gaps", []) == []


@pytest.mark.parametrize("lie", ["known", "forgotten"])
def test_one_node_cannot_use_up_the_name_of_a_run(lie, network, monkeypatch):
    async def told(own):
        status = await own
        status.walks.add(run="second", walk=0).floor.issuer = network.starts[0]
        status.forgotten.extend(["second"] * (lie == "forgotten"))
        return status

    async def play():
        async with nodes(network):
            assert await collect.launch(network, "second") == 1
            await collect.finished(network, "second", 60)
            return await collect.collect(network, "second")

    lying(monkeypatch, "status", busiest(network), lambda own, _: told(own))
    assert asyncio.run(play()).stories[0].updates == STEPS


def test_a_run_that_diverged_is_collected(tmp_path):
    walk = 'design = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 1e200 }'
    network = written(tmp_path, walk=walk, steps=STEPS, every=EVERY, lease=60)
    asyncio.run(begun(network))
    found = collected(network)
    assert found.stories[0].end.note == "diverged"
    assert found.stories[0].updates < STEPS
    assert not np.isfinite(found.record.data.final).all()
    assert found.record.data.diverged.all()


def test_a_token_that_is_never_where_it_was_does_not_hold_up_the_operator(network, monkeypatch):
    node, step = busiest(network), iter(range(1, 10**9))

    async def lie(own):
        status = await own
        status.walks.add(run="second", walk=0).seen.step = next(step) % STEPS
        return status

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            return await asyncio.wait_for(operator.located("second"), 30)

    monkeypatch.setattr(operating, "_AGAIN", 0.01)
    lying(monkeypatch, "status", node, lambda own, _: lie(own))
    _, (one,) = asyncio.run(play())
    assert one.state == "moving"


@pytest.mark.parametrize("before", [0, 10])
def test_a_run_that_ends_twice(before, network, monkeypatch):
    """Whoever writes an end of its own into its journal cannot replace the model: others ended it, or went on."""
    end = collected(network).stories[0].end
    liar = busiest(network)
    with Store(network.config(liar).state) as store:
        payload = Payload.of({"x": np.full(4, 1e3)}, store.models)
        point = end.point._replace(step=STEPS - before, hop=end.point.hop + 1)
        token = Token(point, payload, True, end.token.origin)
        store.write([say.Journal(KEY, "finish", point, token, "diverged" if before else "")], time=1e9, now=1.0)
    if before:
        shutil.rmtree(network.config(end.node).state)
    ended = rf"ended at {names(network)[liar]}, but also ended or went on at .*node-000\d"
    with pytest.raises(PeerError, match=ended):
        collected(network)
    told = []
    monkeypatch.setattr(operating.Operator, "collect", lambda operator, node, ends: noted(told, ends))
    gaps = collected(network, partial=True).record.provenance["gaps"]
    assert any("also ended or went on" in gap or (before and "not the final one" in gap) for gap in gaps)
    assert {*told} == {()}  # the nodes have to keep what they have


async def noted(told, ends):
    told.append(tuple(ends))


def test_a_model_that_cannot_be_had_is_not_released(network, monkeypatch):
    """Its node may still have it, when it can be asked again."""
    end, told = collected(network).stories[0].end, []
    monkeypatch.setattr(operating, "_PIECE", 1.0)
    lying(monkeypatch, "fetch", end.node, lambda *_: _streamed(b"cut"))
    monkeypatch.setattr(operating.Operator, "collect", lambda operator, node, ends: noted(told, ends))
    assert any("cannot be had" in gap for gap in collected(network, partial=True).record.provenance["gaps"])
    assert {*told} == {()}


# What there is.


def test_a_lost_disk_leaves_gaps_with_names(network):
    whole, node = collected(network), busiest(network)
    shutil.rmtree(network.config(node).state)
    with pytest.raises(PeerError, match=r"should be in one journal, found in none.* --partial` collects what there is"):
        collected(network)
    found = collected(network, partial=True)
    path, true = found.record.data.path.values[0], whole.record.data.path.values[0]
    assert (path[:-1] == -1).sum() == (true[:-1] == node).sum()
    assert np.array_equal(path[path >= 0], true[path >= 0])
    np.testing.assert_array_equal(found.record.data.final, whole.record.data.final)
    (missing,) = [gap for gap in found.record.provenance["gaps"] if "found in none" in gap]
    first = int(np.flatnonzero(path == -1)[0]) + 1
    assert str(first) in missing
    assert found.record.data.visits.values.sum() == (path[:-1] >= 0).sum()
    loss = found.record.data.loss.values[0]
    known = ~np.isnan(loss)
    np.testing.assert_array_equal(loss[known], whole.record.data.loss.values[0][known])
    assert not found.record.data.diverged.any()
    assert (np.diff(found.record.data.messages.values[0]) >= 0).all()
    found.record.save(network.folder / "record.npz")
    assert section._kept(found.record.data)[0].tolist() == path[: first - 1].tolist()


def test_an_old_disk_leaves_gaps_with_names(tmp_path, monkeypatch):
    """A copy that was made in the middle of the run comes back after its end: what the node did since is missing."""
    network, update = written(tmp_path, steps=STEPS, every=EVERY, lease=60), Updater.update

    def raising(updater, asked):
        if asked.token.point.step == 30:
            raise ValueError("no")
        return update(updater, asked)

    async def until_then():
        async with nodes(network):
            await collect.launch(network, "first")
            with pytest.raises(PeerError, match="is stuck"):
                await collect.finished(network, "first", 60)

    with monkeypatch.context() as patch:
        patch.setattr(Updater, "update", raising)
        asyncio.run(until_then())
    for one in network.nodes:
        shutil.copytree(network.config(one.number).state, network.folder / f"copy-{one.number}")
    asyncio.run(begun_again(network))
    whole, node = collected(network), busiest(network)
    true = whole.record.data.path.values[0]
    state = network.config(node).state
    shutil.rmtree(state)
    (network.folder / f"copy-{node}").rename(state)
    with pytest.raises(PeerError, match=r"should be in one journal, found in none.* --partial` collects what there is"):
        collected(network)
    found = collected(network, partial=True).record
    since = np.flatnonzero((true[:-1] == node) & (np.arange(STEPS) >= 30))
    assert since.size
    assert np.flatnonzero(found.data.path.values[0] == -1).tolist() == since.tolist()
    assert any(f"{journal.ranges(since + 1)} should be in one journal" in gap for gap in found.provenance["gaps"])
    np.testing.assert_array_equal(found.data.final, whole.record.data.final)
    assert any("its disk is an old one" in doubt for doubt in found.provenance["doubts"])


def test_an_update_in_two_journals(network, monkeypatch):
    node = busiest(network)

    def told(network, key, books, *more):
        return journal.tell(network, key, [*books, twin(books)], *more)

    def twin(books):
        (book,) = [book for book in books if book.node == node]
        other = journal.Book(network, (node + 1) % 6, "first")
        other.lines = book.lines
        return other

    monkeypatch.setattr(collect, "tell", told)
    with pytest.raises(PeerError, match=r"should be in one journal, found more than once at node-000\d, node-000\d"):
        collected(network)


@asynccontextmanager
async def frozen(network, tasks, node):
    """A node that does not answer, while its connections are taken."""
    tasks[node].cancel()
    await asyncio.gather(tasks[node], return_exceptions=True)
    host, _, port = network.nodes[node].address.rpartition(":")
    while True:  # its own server may take a moment to let go of the port
        try:
            server = socket.create_server((host, int(port)))
            break
        except OSError:
            await asyncio.sleep(0.02)
    with server:
        yield


def test_a_frozen_node_of_which_nothing_is_needed(tmp_path, monkeypatch):
    network = written(tmp_path, steps=3, every=1, lease=60)
    asyncio.run(begun(network))
    (node, *_) = [one.number for one in network.nodes if not lines(network, one.number)]
    monkeypatch.setattr(operating, "_PATIENCE", 3.0)

    async def play():
        async with nodes(network) as tasks, frozen(network, tasks, node):
            return await collect.collect(network, "first")

    record = asyncio.run(asyncio.wait_for(play(), 60)).record
    (doubt,) = record.provenance["doubts"]
    assert doubt.startswith(f"node {names(network)[node]} at")
    assert "does not answer" in doubt
    assert record.provenance["wire_bytes"] > 0


def test_a_frozen_node_that_is_needed(network, monkeypatch):
    node = busiest(network)
    monkeypatch.setattr(operating, "_PATIENCE", 3.0)

    async def play(partial):
        async with nodes(network) as tasks, frozen(network, tasks, node):
            return await collect.collect(network, "first", partial)

    with pytest.raises(PeerError, match=f"found in none.*node {names(network)[node]} at .* does not answer"):
        asyncio.run(asyncio.wait_for(play(False), 60))
    gaps = asyncio.run(asyncio.wait_for(play(True), 60)).record.provenance["gaps"]
    assert any("does not answer" in gap for gap in gaps)


def test_a_walk_that_has_not_finished_gives_its_newest_model(tmp_path, monkeypatch):
    network, update = written(tmp_path, steps=STEPS, every=EVERY, lease=60), Updater.update

    def raising(updater, asked):
        if asked.token.point.step == 37:
            raise ValueError("no")
        return update(updater, asked)

    async def play():
        async with nodes(network):
            await collect.launch(network, "first")
            with pytest.raises(PeerError, match=r"walk 0 is stuck at node-000\d \(update 37 of 60\)"):
                await collect.finished(network, "first", 60)
            with pytest.raises(PeerError, match="walk 0 of run first has not finished: walk 0 is stuck"):
                await collect.collect(network, "first")
            return await collect.collect(network, "first", partial=True)

    monkeypatch.setattr(Updater, "update", raising)
    found = asyncio.run(play())
    assert found.stories[0].updates == 37
    assert not found.stories[0].finished
    (gap,) = found.record.provenance["gaps"]
    assert "after update 37" in gap
    assert "not the final one" in gap
    data = found.record.data
    assert np.isnan(data.loss.values[0]).tolist() == [False, False, True, True]
    assert (data.path.values[0, 38:] == -1).all()
    assert np.isfinite(data.final).all()
    assert not data.diverged.any()
    monkeypatch.setattr(Updater, "update", update)
    asyncio.run(begun_again(network))  # nobody was told that it is safe here
    assert collected(network).stories[0].updates == STEPS


def test_where_no_copy_is_left_a_model_of_the_journals_is_the_newest(network):
    """The holder and its predecessor are lost, with their disks."""
    (node,) = [one for one in range(6) if any(line.token and line.point.step == EVERY for line in lines(network, one))]
    sql(network, node, "DELETE FROM custody", f"DELETE FROM journal WHERE step > {EVERY}")
    for other in set(range(6)) - {node}:
        shutil.rmtree(network.config(other).state)
    with pytest.raises(PeerError, match="walk 0 of run first has not finished: no node that answers has heard of it"):
        collected(network)
    found = collected(network, partial=True)
    assert (found.stories[0].updates, found.stories[0].end.node) == (EVERY, node)
    assert np.isfinite(found.record.data.loss.values[0]).tolist() == [True, True, False, False]
    assert any(f"the model here is that after update {EVERY}" in gap for gap in found.record.provenance["gaps"])


async def begun_again(network):
    async with nodes(network):
        await collect.finished(network, "first", 60)


# Where tokens are.


def status(*walks):
    told = ask.Status()
    for seen, more in walks:
        walk = told.walks.add(run="first", walk=0, **more)
        walk.seen.step = seen
        if "held" in more or more.get("stage") in ("lent", "kept"):
            walk.point.step = seen
    return told


HELD, LENT, KEPT = {"held": True, "stage": "due"}, {"stage": "lent"}, {"stage": "kept"}
SEEN = {
    "held": ([status((5, HELD)), status((4, LENT))], "walk 0 is at node-0000"),
    "moving": ([status((5, {})), status((4, LENT))], "walk 0 was last seen at node-0000"),
    "lost": ([status((5, {})), status((4, KEPT))], "no node holds the token of walk 0: the last one known"),
    "silent": ([status((5, {})), None], "walk 0 was last seen by the nodes that answer at node-0000"),
    "collected": ([status((5, {"collected": True})), status((4, {}))], "walk 0 has finished at node-0000, and is"),
}
HIDDEN = [
    ("held", [status((4, HELD)), status((3, {"collected": True}))]),
    ("moving", [status((4, LENT)), status((3, {"collected": True}))]),
    ("collected", [status((4, LENT | {"collected": True})), status((5, {"collected": True}))]),
]


@pytest.mark.parametrize(("state", "statuses"), HIDDEN)
def test_one_node_cannot_say_that_a_token_is_collected(state, statuses):
    """While another has it."""
    (one,) = operating.whereabouts("first", dict(enumerate(statuses)), Trust())
    assert one.state == state
    assert one.over == (state == "collected")


@pytest.mark.parametrize(("state", "statuses", "words"), [(state, *one) for state, one in SEEN.items()], ids=SEEN)
def test_where_a_token_is(state, statuses, words, network):
    (one,) = operating.whereabouts("first", dict(enumerate(statuses)), Trust())
    assert one.state == state
    assert one.words(network).startswith(words)
    assert one.over == (state in ("lost", "collected"))
    assert one.point.step == 5


def test_a_lost_token_ends_watching_and_waiting(network, monkeypatch):
    async def lost(operator, patience=2.0, run=""):
        return dict.fromkeys(operator.nodes, status((41, {})))

    async def play():
        async with collect.operator_of(network) as operator:
            seen = await watch.glance(operator, network, "first")
            assert seen.over
            shown = Console(file=io.StringIO(), width=300)
            shown.print(watch.table(network, "first", seen))
            assert "no node holds the token of walk 0" in shown.file.getvalue()
            with pytest.raises(PeerError, match=r"the last one known was at .* \(update 41 of 60\)"):
                await collect.finished(network, "first", 60)

    monkeypatch.setattr(operating.Operator, "statuses", lost)
    asyncio.run(play())


# Launching, releasing, forgetting.


def test_a_run_that_is_collected_is_not_launched_again(network):
    async def play():
        async with nodes(network):
            await collect.collect(network, "first")
            assert await collect.launch(network, "first") == 0
            await collect.finished(network, "first", 5)

    asyncio.run(play())


def test_a_run_whose_token_is_lost_is_not_launched_again(network):
    """With the disks of all nodes that have the token, also of the node where it would start anew."""

    async def having():
        async with nodes(network), collect.operator_of(network) as operator:
            found = await operator.statuses()
            return {node for node, status in found.items() if any(one.HasField("point") for one in status.walks)}

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            assert await collect.launch(network, "first") == 0
            seen = await watch.glance(operator, network, "first")
            assert [one.state for one in seen.tokens] == ["lost"]
            assert seen.over
            with pytest.raises(PeerError, match="no node holds the token of walk 0: the last one known was at"):
                await collect.finished(network, "first", 60)
            with pytest.raises(PeerError, match=r"has not finished: no node holds the token .* --partial` collects"):
                await collect.collect(network, "first")
            return await collect.collect(network, "first", partial=True)

    for node in asyncio.run(having()) | {network.starts[0]}:
        shutil.rmtree(network.config(node).state)
    found = asyncio.run(play())
    assert not found.stories[0].finished
    assert any("no node holds the token" in gap for gap in found.record.provenance["gaps"])


def test_a_name_is_used_once(tmp_path):
    network = written(tmp_path, walk=networks_walk(2), steps=40, every=20, lease=60)

    async def play():
        async with nodes(network):
            async with collect.operator_of(network) as operator:  # a launch that was interrupted
                payload = Payload.of(network.vectors()[1], network.folder)
                permit = network.signatures.permit(Key("first", 1), network.starts[1])
                await operator.launch(network.starts[1], Key("first", 1), payload, permit)
            with pytest.raises(PeerError, match="walk 0 has not been launched"):
                await collect.finished(network, "first", 2.0)
            count = await collect.launch(network, "first")
            assert collect.launched(network, "first", count) == (
                "run 'first': launched 1 of 2 tokens; the others had been launched before"
            )
            await collect.finished(network, "first", 120)
            assert await collect.launch(network, "first") == 0
            with pytest.raises(PeerError, match="run 'first' was launched before; choose another name: --run second"):
                collect.launched(network, "first", 0)
            assert collect.launched(network, "second", await collect.launch(network, "second")).endswith("2 tokens")
            with pytest.raises(PeerError, match=r"has not been launched; start it with: .* --run third"):
                await collect.finished(network, "third", 0.1)

    asyncio.run(play())


def networks_walk(tokens):
    return f'design = {{ kind = "SimpleWalk" }}\nrule = {{ kind = "SGD", step = 3e-3 }}\ntokens = {tokens}'


def test_all_nodes_hear_that_a_run_is_collected(network):
    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            await collect.collect(network, "first")
            statuses, (one,) = await operator.located("first")
            assert one.state == "collected"
            assert all(walk.collected for status in statuses.values() for walk in status.walks)
            assert sum(len(status.walks) for status in statuses.values()) > 1
            seen = await watch.glance(operator, network, "first")
            assert seen.over
            assert json.loads(watch.as_json(network, "first", seen))["tokens"][0]["finished"]
            await collect.finished(network, "first", 5)
            found = await collect.collect(network, "first")  # the journals still have everything
            assert found.record.provenance["wire_bytes"] >= sum(status.sent["first"] for status in statuses.values())

    asyncio.run(play())


def test_bytes_on_the_wire_are_counted_over_restarts(tmp_path):
    network = written(tmp_path, steps=STEPS, every=EVERY, lease=60)

    async def play():
        async with nodes(network):
            await collect.launch(network, "first")
            await collect.finished(network, "first", 120)
            return await collect.collect(network, "first")

    before = asyncio.run(play()).record.provenance["wire_bytes"]
    assert collected(network).record.provenance["wire_bytes"] >= before > STEPS


def test_a_run_is_forgotten_everywhere(network, monkeypatch):
    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            await collect.launch(network, "second")
            await collect.finished(network, "second", 120)
            await collect.finished(network, "first", 120)  # its node asks its neighbours after the restart
            assert await collect.forget(network, "first") == []
            with pytest.raises(PeerError, match="run 'first' was forgotten; choose another name: --run second"):
                await collect.launch(network, "first")
            with pytest.raises(PeerError, match="run 'first' was forgotten"):
                await collect.finished(network, "first", 1)
            seen = await watch.glance(operator, network, "first")
            assert seen.over
            shown = Console(file=io.StringIO(), width=300)
            shown.print(watch.table(network, "first", seen))
            assert "run 'first' was forgotten" in shown.file.getvalue()
            with pytest.raises(PeerError, match=r"run 'first' was forgotten$"):  # or what was collected is replaced
                await collect.collect(network, "first", partial=True)
            with pytest.raises(PeerError, match=r"run 'third' is not known to any node that answers$"):
                await collect.collect(network, "third")
            before, late = await refusals(network), wire.encode(say.Ask(KEY))
            await sent_by_neighbour(network, [late])
            assert await refusals(network) == before + 1
            with pytest.raises(PeerError, match="no node that answers knows the run 'third'"):
                await collect.forget(network, "third")
            return await collect.collect(network, "second")

    before = len(lines(network, 0))
    assert asyncio.run(play()).stories[0].updates == STEPS
    assert before + sum(len(lines(network, one.number)) for one in network.nodes) == before
    for one in network.nodes:
        runs = sql(network, one.number, "SELECT DISTINCT run FROM walks", "SELECT run FROM forgotten")
        assert runs[0] in ([("second",)], [])
        assert runs[1] == [("first",)]
        used = "SELECT digest FROM payloads WHERE digest NOT IN (SELECT payload FROM journal WHERE payload IS NOT NULL)"
        assert len(sql(network, one.number, used)[0]) <= 1  # a copy of the second


def test_a_run_that_walks_is_forgotten_only_by_force(tmp_path, monkeypatch):
    network, update = written(tmp_path, steps=STEPS, every=EVERY, lease=60), Updater.update

    def slow(updater, asked):
        import time

        time.sleep(0.05)
        return update(updater, asked)

    monkeypatch.setattr(Updater, "update", slow)

    async def play():
        async with nodes(network) as tasks:
            await collect.launch(network, "first")
            with pytest.raises(PeerError, match=r"run 'first' is not over: walk 0 .*; wait until .* with --force"):
                await collect.forget(network, "first")
            tasks[3].cancel()
            await asyncio.gather(tasks[3], return_exceptions=True)
            (missed,) = await collect.forget(network, "first", force=True)
            assert names(network)[3] in missed
        async with nodes(network):
            assert await collect.forget(network, "first") == []

    asyncio.run(play())
    for one in network.nodes:
        assert sql(network, one.number, "SELECT count(*) FROM journal, custody")[0] == [(0,)]

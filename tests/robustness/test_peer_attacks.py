"""Strangers, and neighbours whose key was stolen: refused, logged in few words, and the walk unharmed."""

import asyncio
import logging
import os
import random
import shutil
import subprocess
import sys

import grpc
import numpy as np
import pytest
from attackers import (
    FAR,
    NEIGHBOUR,
    TARGET,
    Log,
    Tap,
    attacked,
    calm,
    disk,
    finish,
    identity,
    known,
    lies,
    refusals,
    sent,
)
from attackers import sent_by_neighbour as by_neighbour
from networks import MHLJ, nodes, patient, written
from safetensors.numpy import save

from freewalk.errors import PeerError
from freewalk.peers.network.certificates import Authority
from freewalk.peers.network.config import PeerTable
from freewalk.peers.network.init import Network
from freewalk.peers.node import links, process, server, service
from freewalk.peers.node.complaints import Complaints, few_lines
from freewalk.peers.node.links import HELLO, METHOD, Link
from freewalk.peers.node.server import OPERATE, Identity
from freewalk.peers.operator import collect, watch
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol import payload as payloads
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Generation, Key, Position, Token, Warrant
from freewalk.peers.protocol.wire import pb

DENIED, INVALID = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT
UNAVAILABLE, EXHAUSTED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED
METHODS = ("Launch", "Status", "Journal", "Fetch", "Collect", "Forget")
KEY = Key("attack", 0)
HUGE = 10 * 10**9


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    patient(written(folder, walk=MHLJ, steps=40, every=20, lease=60))
    return folder / "net"


@pytest.fixture
def network(template, tmp_path):
    shutil.copytree(template, tmp_path / "net")
    return Network.read(tmp_path / "net")


@pytest.fixture
def log(monkeypatch):
    handler = Log()
    logger = logging.getLogger("freewalk.peers")
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.manager._clear_cache()
    yield handler
    logger.manager._clear_cache()


def token(number=0, issuer=NEIGHBOUR, step=1, hop=1, payload=None, **more):
    point = Position(Generation(number, issuer), step, hop)
    payload = Payload.holding(save({"x": np.zeros(4)})) if payload is None else payload
    return Token(point, payload, False, Generation(0, issuer), (point,) if number else (), **more)


def test_strangers(network, log, capfd):
    """No certificate, another authority, no neighbour, no operator, the operator as a neighbour, and no TLS at all."""
    root = identity(network).authority
    other = Authority.new("freewalk network").issue("node-0000")

    async def channels():
        nobody = grpc.ssl_channel_credentials(root)
        foreign = grpc.ssl_channel_credentials(root, other.key, other.certificate)
        target, options = known(network), [("grpc.ssl_target_name_override", known(network).name)]
        yield grpc.aio.secure_channel(target.address, nobody, options=options), UNAVAILABLE
        yield grpc.aio.secure_channel(target.address, foreign, options=options), UNAVAILABLE
        yield grpc.aio.insecure_channel(target.address), UNAVAILABLE

    async def attack():
        async for channel, expected in channels():
            async with channel:
                for method in (METHOD, HELLO, OPERATE + "Status"):
                    assert await sent(channel, [b""], method) == expected
        before = await refusals(network)
        async with identity(network, FAR).channel(known(network)) as channel:
            assert await sent(channel, [], METHOD) == DENIED
            assert await sent(channel, [b""], HELLO) == DENIED
        for name in (NEIGHBOUR, FAR):
            async with identity(network, name).channel(known(network)) as channel:
                for method in METHODS:
                    assert await sent(channel, [b""], OPERATE + method) == DENIED
                assert await sent(channel, [b""], OPERATE + "Shutdown") == grpc.StatusCode.UNIMPLEMENTED
        async with collect.operator_of(network) as operator:
            channel = operator.identity.channel(known(network))
            async with channel:
                assert await sent(channel, [], METHOD) == DENIED
                assert await sent(channel, [b""], HELLO) == DENIED
        assert await refusals(network) - before == 16
        assert any("turned away 'node-0004'" in line for line in log.lines)
        assert any("turned away 'operator'" in line for line in log.lines)

    async def play():
        async with attacked(network, log, idle=attack):
            await attack()

    finish(play())
    assert "BEGIN" not in capfd.readouterr().err


def test_replays(network, log, monkeypatch):
    """All that a neighbour has ever said is said again, after the walk and during the next one."""
    tap = Tap(monkeypatch, network)

    async def again():
        datas = [wire.encode(message) for message in tap.messages]
        random.Random(1).shuffle(datas)
        assert await by_neighbour(network, datas) == grpc.StatusCode.OK

    async def play():
        async with attacked(network, log, idle=again):
            while len(tap.messages) < 40:
                await again()
        assert len({type(message) for message in tap.messages}) > 4
        async with nodes(network):
            await calm(network)
            before = disk(network)
            await again()
            assert disk(network) == before

    finish(play())


def test_generations_and_points_that_cannot_be(network, log):
    """A generation of 2^63, in whatever message, as large as bytes or the protocol allow; and steps out of range."""
    key, point = pb.Key(run="walk-0", walk=0), pb.Point(number=2**63, issuer=0, step=1, hop=1)
    huge = pb.Generation(number=2**63, issuer=0)
    envelopes = [pb.Envelope(known=pb.Known(key=key, floor=huge)), pb.Envelope(last=pb.Last(key=key, floor=huge))]
    handing = pb.Handing(key=key, point=point)
    for name in ("offer", "accept", "received", "renew", "query", "release", "released"):
        envelopes.append(pb.Envelope(**{name: handing}))
    below = Position(Generation(2**63 - 1, 0), 1, 1)
    fair, said = Generation(0, 0), []
    for run in ("walk-0", "attack"):
        key = Key(run, 0)
        said += [kind(key, below) for kind in say.HANDINGS]
        said += [say.Known(key, below.generation), say.Last(key, below.generation, None), say.Last(key, fair, below)]
        said += [say.Transfer(key, token(2**63 - 1)), say.Transfer(key, token(step=0)), say.Transfer(key, token(hop=0))]
        said += [
            say.Transfer(key, token(step=10**9)),
            say.Offer(key, Position(fair, 0, 1)),
            say.Known(key, Generation(1, 10**6)),
        ]
    lies = [wire.encode(message) for message in said]

    async def attack():
        for envelope in envelopes:
            assert await by_neighbour(network, [envelope.SerializeToString()]) == INVALID
        before = await refusals(network)
        assert await by_neighbour(network, lies) == grpc.StatusCode.OK
        while await refusals(network) < before + len(lies):
            await asyncio.sleep(0.01)

    async def play():
        async with attacked(network, log, idle=attack):
            await attack()
        assert any("that is not true" in line for line in log.lines)

    finish(play())


def test_a_neighbour_that_lies(network, log, monkeypatch):
    """It ends no walk with a generation that others issued, invents none, and has no token erased."""
    tap = Tap(monkeypatch, network)
    own = process.trust_of(network.config(NEIGHBOUR))

    def invented(count):
        for number in range(count):
            key = Key(f"invented-{number}", 0)
            warrant = Warrant(own.permit(key, NEIGHBOUR), own.sign(key, Generation(1, NEIGHBOUR)))
            yield say.Known(key, Generation(1, NEIGHBOUR), warrant)
            yield say.Transfer(key, token(1), warrant=warrant)

    async def idle():
        assert await by_neighbour(network, map(wire.encode, invented(1000))) == grpc.StatusCode.OK

    async def play():
        async with attacked(network, log, idle=idle, few=200):
            for _ in range(30):
                said = [one for one in tap.messages if hasattr(one, "point")][-3:]
                for key in {one.key for one in said}:
                    told = lies(network, NEIGHBOUR, key, [one.point for one in said if one.key == key])
                    assert await by_neighbour(network, map(wire.encode, told)) == grpc.StatusCode.OK
                await asyncio.sleep(0.02)
        async with nodes(network), collect.operator_of(network) as operator:
            assert not [walk for walk in (await operator.status(TARGET)).walks if walk.run.startswith("invented")]

    finish(play())


def fuzzed(messages, draw):
    """Bytes that are like messages, and are none."""
    while True:
        data = bytearray(wire.encode(draw.choice(messages)))
        kind = draw.randrange(6)
        if kind == 0:
            del data[draw.randrange(len(data)) :]
        elif kind == 1:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        elif kind == 2:
            data.insert(draw.randrange(len(data)), draw.randrange(256))
        elif kind == 3:
            first = draw.randrange(len(data))
            data += data[first : first + draw.randrange(1, 40)]
        elif kind == 4:
            data[draw.randrange(len(data)) :] = draw.randbytes(draw.randrange(200))
        else:
            data = bytearray(draw.randbytes(draw.randrange(1000)))
        try:
            wire.decode(bytes(data))  # a neighbour does not lie, but may garble
        except PeerError:
            yield bytes(data)


@pytest.mark.parametrize("times", [180, pytest.param(10_002, marks=pytest.mark.long)])
def test_fuzzed_messages(network, log, monkeypatch, times):
    tap = Tap(monkeypatch, network)

    async def attack():
        while not tap.messages:
            await asyncio.sleep(0.01)
        garbled = fuzzed(list(tap.messages), random.Random(times))
        before = await refusals(network)
        together = links.STREAMS - 1  # more would push out the neighbour's own
        for part in range(0, times, 10 * together):  # grpcio 1.80 refuses a connection all streams after 63 such ends
            async with identity(network).channel(known(network)) as channel:
                for _ in range(part, min(part + 10 * together, times), together):
                    codes = await asyncio.gather(*(sent(channel, [next(garbled)]) for _ in range(together)))
                    assert set(codes) == {INVALID}
        assert await refusals(network) - before == times

    async def play():
        async with attacked(network, log, idle=None):
            await attack()
        async with nodes(network):
            await calm(network)
            before = disk(network)
            await attack()
            assert disk(network) == before

    finish(play())


def transfer(arrays, key=KEY):
    return wire.encode(say.Transfer(key, token(payload=Payload.holding(save(arrays)))))


def test_models_that_do_not_fit(network, log):
    """Refused by name, shape, type and value; and a header that says it is 10 GB long."""
    nan, infinite = np.array([0, 0, 0, np.nan]), np.array([0, 0, 0, np.inf])
    models = [{"y": np.zeros(4)}, {"x": np.zeros(5)}, {"x": np.zeros(8, np.float32)}, {"x": nan}, {"x": infinite}]
    models += [{"x": np.zeros(2), "y": np.zeros(2)}, {"x\n2026 ERROR forged": np.zeros(4)}, {"x": np.zeros((2, 2))}]
    datas = [transfer(arrays) for arrays in models]
    header = HUGE.to_bytes(8, "little") + b"{}" + bytes(100)
    datas.append(wire.encode(say.Transfer(KEY, token(payload=Payload.holding(header)))))

    async def attack():
        before = await refusals(network)
        assert await by_neighbour(network, datas) == grpc.StatusCode.OK
        assert await refusals(network) - before == len(datas)
        too_long = [transfer({"x": np.zeros(20_000)})]
        assert await by_neighbour(network, too_long) == INVALID

    async def play():
        async with attacked(network, log, idle=attack):
            await attack()

    finish(play())


@pytest.fixture
def chunked(monkeypatch):
    """Every model travels in chunks, and is a file."""
    for module in (payloads, wire, server, watch):
        monkeypatch.setattr(module, "SMALL", 16)


def announced(size, digest="00" * 32, run="attack"):
    point = pb.Point(number=0, issuer=0, step=1, hop=1)
    told = pb.Payload(reference=pb.Reference(digest=bytes.fromhex(digest), size=size))
    one = pb.Token(point=point, payload=told, origin=pb.Generation(number=0, issuer=0))
    return pb.Envelope(transfer=pb.Transfer(key=pb.Key(run=run), token=one)).SerializeToString(deterministic=True)


def test_chunks(network, log, chunked):
    """10 GB announced, another digest, more than announced, nothing announced, two at once, cut off, slow."""
    model = save({"x": np.zeros(4)})
    wrong = save({"y": np.full(4, np.nan)})
    right, digest = Payload.holding(model).digest, Payload.holding(wrong).digest
    unfit = [announced(len(wrong), digest), wire.encode(wire.Chunk(wrong))]
    whole, piece, size = wire.encode(wire.Chunk(model)), wire.encode(wire.Chunk(b"12345678")), len(model)
    refused = [
        [announced(HUGE), piece],
        [announced(2**62)],
        [announced(size), whole],
        [*unfit, piece],
        [announced(size, right), wire.encode(wire.Chunk(model + b"1"))],
        [piece],
        [announced(size, right), announced(size, right)],
    ]

    async def attack():
        for datas in refused:
            assert await by_neighbour(network, datas) == INVALID
        assert await by_neighbour(network, [announced(size, right), piece]) == grpc.StatusCode.OK  # and nothing is left
        before = await refusals(network)
        assert await by_neighbour(network, unfit) == grpc.StatusCode.OK
        assert await refusals(network) == before + 1

    async def slow():
        async with identity(network).channel(known(network)) as channel:
            datas = [announced(size, right), *[wire.encode(wire.Chunk(b"1"))] * (size - 1)]
            return await sent(channel, datas, pause=lambda: asyncio.sleep(0.02))

    async def play():
        async with attacked(network, log, idle=attack):
            slowly = asyncio.create_task(slow())
            await attack()
            assert await slowly == grpc.StatusCode.OK
        async with nodes(network):  # a model that is complete, and whose token is not taken, leaves nothing
            async with collect.operator_of(network) as operator:
                run = (await operator.status(TARGET)).walks[0].run
            await calm(network)
            before = disk(network)
            assert await by_neighbour(network, [announced(size, right, run), whole]) == grpc.StatusCode.OK
            while disk(network) != before:
                await asyncio.sleep(0.01)

    finish(play())
    assert not [file for file in (network.config(TARGET).state / "models").iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"", marks=pytest.mark.long),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", marks=pytest.mark.long),
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
    ids=["silent", "no TLS", "stalled handshake"],
)
def test_a_thousand_connections(network, log, monkeypatch, first):
    """They say nothing, or no TLS, or begin a handshake and stall: they are closed in the end, and the walk goes on."""
    monkeypatch.setitem(server.__dict__, "_STRANGERS", [("grpc.server_handshake_timeout_ms", 3000)])
    resource = pytest.importorskip("resource")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    many = 1000 if most == resource.RLIM_INFINITY else min(1000, (most - 500) // 2)
    target = known(network)
    host, port = target.address.rsplit(":", 1)

    async def one():
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(first)
        return reader, writer

    async def play():
        async with attacked(network, log, idle=None):
            opened = await asyncio.gather(*(one() for _ in range(many)))
            async with collect.operator_of(network) as operator:
                assert (await operator.status(TARGET)) is not None  # with all of them open, or refused
            for reader, writer in opened:
                try:
                    while await asyncio.wait_for(reader.read(2**16), 120):
                        pass
                except ConnectionError:
                    pass
                writer.close()

    finish(play())


def test_silent_streams(network, log):
    """Streams of a neighbour that say nothing push each other out; those of the operator are counted."""

    async def play():
        async with attacked(network, log, idle=None):
            async with identity(network).channel(known(network)) as channel:
                calls = [channel.stream_unary(METHOD)(metadata=(links.VERSION,)) for _ in range(40)]
                for call in calls:
                    await call.initial_metadata()
                over = [call async for call in _ended(calls, 40 - links.STREAMS)]
                assert {await call.code() for call in over} == {grpc.StatusCode.OK}
            async with collect.operator_of(network) as operator:
                channel = operator._channel(TARGET)
                unread = [channel.unary_stream(OPERATE + "Journal")(b"") for _ in range(5)]
                launches = [channel.stream_unary(OPERATE + "Launch")() for _ in range(server._OWN_CALLS + 8)]
                over = [call async for call in _ended(launches, 8)]
                assert EXHAUSTED in {await call.code() for call in over}
                for call in (*unread, *launches):
                    call.cancel()

    finish(play())


async def _ended(calls, count):
    """The calls that have ended, as soon as there are so many."""
    while sum(call.done() for call in calls) < count:
        await asyncio.sleep(0.01)
    for call in calls:
        if call.done():
            yield call


def test_a_neighbour_that_never_reads():
    """What waits for it is bounded, in messages and in bytes."""

    async def play():
        link = Link(PeerTable(number=0, name="node-0000", address="127.0.0.1:1"), None, (), None, 3.0)
        link.up = True
        large = say.Transfer(KEY, token(payload=Payload.holding(bytes(payloads.SMALL))))
        for _ in range(1000):
            link.send(large)
        assert 10 < len(link._small) <= links._ROOM // payloads.SMALL
        for message in (say.Release(KEY, large.token.point), say.Ask(KEY)):
            for _ in range(20_000):
                link.send(message)
        assert len(link._small) + len(link._patient) <= links._QUEUED
        assert sum(map(len, link._small)) <= links._ROOM

    finish(play())


def test_a_neighbour_that_is_not_there(network):
    """It is not taken to be reachable, and is tried less and less often."""
    told, waits, sleep = [], [], asyncio.sleep

    async def play():
        link = Link(known(network), identity(network).channel, (), told.append, 3.0)
        running = asyncio.create_task(link.run())
        while len(waits) < 3:
            await sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def noted(seconds):
        waits.append(seconds)
        await sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links.asyncio, "sleep", noted)
        finish(play())
    assert not told
    assert waits[:3] == [0.05, 0.1, 0.2]

    async def given_up():
        running = asyncio.create_task(Link(known(network), identity(network).channel, (), told.append, 0.2).run())
        while not told:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    finish(given_up())
    assert told == [say.Disconnected(TARGET)]  # once


def test_another_version_of_the_protocol(network, log):
    """Both ends compare when a link opens, and say what is wrong."""

    async def accepting(stream, context):
        await context.send_initial_metadata((("freewalk-protocol", "1"),))
        async for _ in stream:
            pass
        return b""

    class Older(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_unary_rpc_method_handler(accepting)

    async def play():
        async with nodes(network), identity(network).channel(known(network)) as channel:
            for metadata in ((), (("freewalk-protocol", "1"),)):
                call = channel.stream_unary(METHOD)(metadata=metadata)
                assert await call.code() == grpc.StatusCode.FAILED_PRECONDITION
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Older(),))
        identity(network, TARGET).listen(server, known(network).address)
        await server.start()
        running = asyncio.create_task(Link(known(network), identity(network).channel, (), [].append, 60.0).run())
        while not any("lost node node-0001: it speaks another version" in line for line in log.lines):
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop(0)

    finish(play())
    assert any("refused node node-0000: it speaks another version" in line for line in log.lines)


def test_the_operator_may_err(network, log):
    """A name that cannot travel, a digest that is none: an answer, and no node ends."""

    async def play():
        async with attacked(network, log, idle=None), collect.operator_of(network) as operator:
            permits = network.signatures
            payload = Payload.holding(save({"x": np.zeros(4)}))
            for run, walk in (("two words", 0), ("", 0), ("a" * 65, 0), ("run", 2**63)):
                with pytest.raises(PeerError, match="does not launch"):
                    await operator.launch(TARGET, Key(run, walk), payload, permits.permit(Key(run, walk), TARGET))
            channel = operator._channel(TARGET)
            stub = channel.stream_unary(OPERATE + "Launch", None, ask.Done.FromString)
            done = await stub(_one(ask.Launch(run="run", walk=0, size=HUGE).SerializeToString()))
            assert "a model of 10,000,000,000 bytes" in done.problem
            assert await sent(channel, [ask.Fetch(digest="no").SerializeToString()], OPERATE + "Fetch") == (
                grpc.StatusCode.NOT_FOUND
            )

    finish(play())


async def _one(data):
    yield data


async def operator_status(network):
    async with collect.operator_of(network) as operator:
        return await operator.status(TARGET)


def test_plain_connections(template, tmp_path):
    """Without certificates names are told, by nodes and by the operator; a neighbour cannot tell of too many walks."""
    network = written(tmp_path, steps=20, every=20, plain=True)

    async def play():
        async with nodes(network):
            await collect.launch(network, "run")
            await collect.finished(network, "run", 120)
            assert len((await collect.collect(network, "run")).stories) == 1
            async with Identity("stranger").channel(known(network)) as channel:
                assert await sent(channel, []) == DENIED
            known_before = len((await operator_status(network)).walks)
            lies = [say.Known(Key(f"invented-{run}", 0), Generation(1, NEIGHBOUR)) for run in range(3000)]
            assert await by_neighbour(network, map(wire.encode, lies)) == grpc.StatusCode.OK
            assert len((await operator_status(network)).walks) == known_before + service._WALKS

    finish(play())


def test_what_grpc_writes_itself(network, tmp_path):
    """A node as a process: many handshakes that fail are few lines of its log, and nothing else is lost."""
    written = tmp_path / "log"
    command = [sys.executable, "-m", "freewalk.cli", "node", str(network.path(TARGET)), "--log", str(written)]
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(command, stderr=err)
    nobody = grpc.ssl_channel_credentials(identity(network).authority)

    async def once():
        options = [("grpc.ssl_target_name_override", known(network).name), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(known(network).address, nobody, options=options) as channel:
            assert await sent(channel, [b""]) == UNAVAILABLE

    async def play():
        async with collect.operator_of(network) as operator:
            while await operator.status(TARGET, 2.0) is None:
                assert process.poll() is None
                await asyncio.sleep(0.1)
        for _ in range(10):
            await asyncio.gather(*(once() for _ in range(10)))

    try:
        finish(play())
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    lines = [line for line in written.read_text().splitlines() if "its handshake failed (peer did not return" in line]
    assert 1 <= len(lines) <= 3  # one in ten seconds
    assert "Handshake failed" not in (tmp_path / "err").read_text()


def test_all_else_on_standard_error_goes_on(capfd):
    handler, logger = Log(), logging.Logger("test")
    logger.addHandler(handler)
    with few_lines(logger):
        os.write(2, b"before\n")
        for _ in range(50):
            os.write(2, b"I0 ssl.cc:1] Handshake failed with error: OPENSSL_internal:WRONG_VERSION_NUMBER: more\n")
        os.write(2, b"after\n")
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "before\nafter\nlater\n"
    assert handler.lines == ["refused a connection: its handshake failed (wrong version number)"]


def test_complaints_are_few():
    now, lines = [0.0], []
    logger = logging.Logger("test")
    handler = Log()
    logger.addHandler(handler)
    lines = handler.lines
    complaints = Complaints(logger, lambda: now[0])
    for number in range(1000):
        complaints.about("one", "one said %d", number)
        complaints.about(f"other {number}", "another")
    assert lines[0] == "one said 0"
    assert len(lines) == 64
    now[0] = 11.0
    complaints.about("one", "one said %d", 1000)
    assert lines[64:] == ["one: 999 more times within 10 seconds", "937 more refusals, of others", "one said 1000"]

import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world import World

import freewalk as fw
from freewalk.errors import PeerError
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol import wire_pb2 as pb
from freewalk.peers.protocol.payload import SMALL, Payload
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Position, Token, Version, Warrant
from freewalk.peers.protocol.wire import (
    LIMIT,
    OLDEST,
    TOGETHER,
    TRAIL,
    Bundle,
    Chunk,
    announced,
    decode,
    encode,
    from_custody,
    from_token,
    from_version,
    to_custody,
    to_token,
    to_version,
    together,
)

SOURCE = Path(fw.__file__).parent
LARGEST = 2**63 - 1
KEY, POINT = Key("first", 1), Position(Generation(2, 3), 4, 5)
HANDINGS = [say.Offer, say.Accept, say.Received, say.Renew, say.Query, say.Released]

wholes = st.integers(0, 5) | st.integers(0, LARGEST)
keys = st.builds(Key, st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", fullmatch=True), wholes)
generations = st.builds(Generation, wholes, st.integers(-1, 5) | wholes)
points = st.builds(Position, generations, wholes, wholes)
trails = st.lists(wholes, max_size=20).map(tuple)
payloads = st.one_of(
    st.binary(max_size=200).map(Payload.holding),
    st.builds(Payload, st.from_regex("[0-9a-f]{64}", fullmatch=True), st.integers(SMALL + 1, LARGEST)),
)
models = st.just("") | st.from_regex("[0-9a-f]{64}", fullmatch=True)
loans = st.builds(Loan, wholes, points, models)
previous = st.integers(-1, 5) | st.integers(-1, LARGEST - 1)
warrant = st.builds(Warrant, st.binary(max_size=50), st.binary(max_size=50))


@st.composite
def tokens(draw):
    ages = sorted(draw(st.sets(generations, min_size=1, max_size=5)))
    lineage = tuple(Position(age, draw(wholes), draw(wholes)) for age in ages[1:])
    kept = tuple(sorted(draw(st.dictionaries(wholes, wholes, max_size=5)).items()))
    counts = (draw(wholes), draw(wholes), draw(st.booleans()))
    point = Position(ages[-1], draw(wholes), draw(wholes))
    more = (kept, draw(st.floats(0, OLDEST)), draw(st.binary(max_size=24)), draw(previous))
    return Token(point, draw(payloads), draw(st.booleans()), ages[0], lineage, *counts, *more)


versions = st.builds(Version, points, points, payloads | st.none(), wholes)
custodies = st.builds(
    Custody,
    generations,
    st.none() | points,
    st.none() | tokens(),
    st.none() | loans,
    st.none() | loans,
    st.none() | points,
    st.lists(loans, max_size=3).map(tuple),
    st.just(()),
    warrant,
    st.booleans(),
)
messages = st.one_of(
    *(st.builds(kind, keys, points) for kind in HANDINGS),
    st.builds(say.Refuse, keys, points, st.text(max_size=50).filter(str.isprintable)),
    st.builds(say.Release, keys, points, models),
    st.builds(say.Transfer, keys, tokens(), st.booleans(), warrant),
    st.builds(say.Ask, keys),
    st.builds(say.Last, keys, generations, points | st.none(), warrant),
    st.builds(say.Known, keys, generations, warrant),
    st.builds(say.Probe, keys, points, st.floats(0, allow_infinity=False), trails),
    st.builds(say.Answer, keys, points, st.booleans(), trails),
    st.builds(Chunk, st.binary(min_size=1, max_size=100)),
)


@given(messages)
def test_round_trip(message):
    again = decode(encode(message))
    assert again == message
    assert type(again) is type(message)
    if isinstance(message, say.Transfer):
        assert again.token.payload.data == message.token.payload.data


@given(custodies, st.lists(versions, max_size=3).map(tuple))
def test_what_is_written_to_the_disk(custody, kept):
    def find(digest, size):
        return Payload(digest, size)

    states = [to_version(one).SerializeToString() for one in kept]
    found = tuple(from_version(pb.Version.FromString(state), find) for state in states)
    assert found == kept
    state = to_custody(custody).SerializeToString()
    assert from_custody(pb.Custody.FromString(state), (), find) == custody


@given(st.binary(max_size=300))
def test_any_bytes(data):
    with pytest.raises(PeerError):  # to be valid by chance is next to impossible
        decode(data)


@settings(max_examples=500)
@given(messages, st.data())
def test_messages_that_were_tampered_with(message, data):
    sent = bytearray(encode(message))
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(sent)))
        sent[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    sent = bytes(sent[: data.draw(st.integers(0, len(sent)) | st.just(len(sent)))])
    try:
        found = decode(sent)
    except PeerError:
        return
    plain = pb.Envelope.FromString(sent)
    plain.DiscardUnknownFields()
    assert encode(found) == plain.SerializeToString(deterministic=True)  # nothing of it was overlooked


@given(messages)
def test_every_truncation(message):
    sent = encode(message)
    for end in range(len(sent)):
        with pytest.raises(PeerError):
            decode(sent[:end])
    with pytest.raises(PeerError):
        decode(sent + sent)


@given(messages)
def test_what_a_later_version_adds_is_ignored(message):
    """A field that this version does not know, in the envelope or within the message, changes nothing else."""
    added = b"\xfa\x07\x05later"  # field 127
    if isinstance(message, Chunk):
        with pytest.raises(PeerError):
            decode(encode(message) + added)
        return
    assert decode(encode(message) + added) == message
    found = pb.Envelope.FromString(encode(message))
    getattr(found, found.WhichOneof("kind")).MergeFromString(added)
    assert decode(found.SerializeToString()) == message


def envelope(**parts):
    return pb.Envelope(**parts).SerializeToString()


def token(**changes):
    message = to_token(Token(POINT, Payload.holding(b""), False, POINT.generation), lambda one: pb.Payload(data=b"1"))
    for name, value in changes.items():
        if isinstance(value, list):
            getattr(message, name).extend(value)
        elif value is None:
            message.ClearField(name)
        elif isinstance(value, (int, float, bytes)):
            setattr(message, name, value)
        else:
            getattr(message, name).CopyFrom(value)
    return envelope(transfer=pb.Transfer(key=pb.Key(run="a"), token=message))


KEYED, POINTED = pb.Key(run="a", walk=1), pb.Point(step=1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        envelope(chunk=b""),
        envelope(offer=pb.Handing()),
        envelope(offer=pb.Handing(key=KEYED)),
        envelope(offer=pb.Handing(point=POINTED)),
        envelope(offer=pb.Handing(key=KEYED, point=pb.Point(step=2**63))),
        envelope(offer=pb.Handing(key=KEYED, point=pb.Point(number=2**64 - 1))),
        envelope(offer=pb.Handing(key=KEYED, point=pb.Point(issuer=-2))),
        envelope(offer=pb.Handing(key=KEYED, point=pb.Point(hop=2**63))),
        envelope(ask=pb.Ask(key=pb.Key(run="a", walk=2**63))),
        envelope(ask=pb.Ask(key=pb.Key(run=""))),
        envelope(ask=pb.Ask(key=pb.Key(run="a" * 65))),
        envelope(ask=pb.Ask(key=pb.Key(run="a/b"))),
        envelope(ask=pb.Ask(key=pb.Key(run=".."))),
        envelope(ask=pb.Ask(key=pb.Key(run=".a"))),
        envelope(ask=pb.Ask(key=pb.Key(run="a\n"))),
        envelope(ask=pb.Ask(key=pb.Key(run="é"))),
        envelope(known=pb.Known(key=KEYED)),
        envelope(known=pb.Known(key=KEYED, floor=pb.Generation(number=2**63))),
        envelope(last=pb.Last(key=KEYED, floor=pb.Generation(issuer=-2))),
        envelope(known=pb.Known(key=KEYED, floor=pb.Generation(), warrant=pb.Warrant())),
        envelope(known=pb.Known(key=KEYED, floor=pb.Generation(), warrant=pb.Warrant(proof=bytes(5000)))),
        envelope(release=pb.Handing(key=KEYED, point=POINTED, model=b"short")),
        token(began=math.nan),
        token(began=-1.0),
        token(began=1e300),
        token(witness=bytes(25)),
        envelope(refuse=pb.Refuse(key=KEYED, point=POINTED, reason="a" * 501)),
        envelope(refuse=pb.Refuse(key=KEYED, point=POINTED, reason="\x1b[2J")),
        envelope(probe=pb.Probe(key=KEYED, point=POINTED, ratio=math.nan)),
        envelope(probe=pb.Probe(key=KEYED, point=POINTED, ratio=math.inf)),
        envelope(probe=pb.Probe(key=KEYED, point=POINTED, ratio=-1.0)),
        envelope(probe=pb.Probe(key=KEYED, point=POINTED, trail=[1] * (TRAIL + 1))),
        envelope(answer=pb.Answer(key=KEYED, point=POINTED, trail=[2**63])),
        envelope(transfer=pb.Transfer(key=KEYED)),
        token(payload=None),
        token(origin=None),
        token(point=None),
        token(messages=2**63),
        token(previous=2**63),
        token(payload=pb.Payload()),
        token(payload=pb.Payload(data=bytes(SMALL + 1))),
        token(payload=pb.Payload(reference=pb.Reference(digest=bytes(32), size=SMALL))),
        token(payload=pb.Payload(reference=pb.Reference(digest=bytes(31), size=SMALL + 1))),
        token(payload=pb.Payload(reference=pb.Reference(digest=bytes(32), size=2**63))),
        token(origin=pb.Generation(number=1)),
        token(numbers=[3]),
        token(numbers=[3], issuers=[0], steps=[0], hops=[0]),
        token(numbers=[2, 2], issuers=[4, 3], steps=[0, 0], hops=[0, 0]),
        token(numbers=[2**63], issuers=[0], steps=[0], hops=[0]),
        token(kept_nodes=[1]),
        token(kept_nodes=[2, 1], kept_steps=[0, 0]),
        token(kept_nodes=[1, 1], kept_steps=[0, 0]),
        token(kept_nodes=[1], kept_steps=[2**63]),
        token() + token(),
        envelope(offer=pb.Handing(key=KEYED, point=POINTED)) + envelope(accept=pb.Handing(key=KEYED, point=POINTED)),
        envelope(chunk=bytes(LIMIT)),
        pb.Token(numbers=[1] * 1_000_001).SerializeToString(),
    ],
    ids=range(58),
)
def test_what_is_not_exactly_right(data):
    with pytest.raises(PeerError):
        decode(data)


def test_the_token_of_these_is_right_itself():
    assert isinstance(decode(token()), say.Transfer)


def test_messages_that_are_sent_together():
    several = [say.Received(KEY, POINT), say.Offer(KEY, POINT), say.Ask(KEY)]
    data = [encode(one) for one in several]
    assert decode(together(data)) == Bundle(tuple(several))
    assert together(data[:1]) == data[0]
    assert decode(_bundle(data)) == Bundle(tuple(several))
    assert together(data) == _bundle(data)
    wrong = [[], data[:1], [*data, b""], [*data, encode(Chunk(b"x"))], [*data, together(data)], data * TOGETHER]
    for messages in wrong:
        with pytest.raises(PeerError):
            decode(_bundle(messages))


def _bundle(messages):
    """A bundle as protocol buffers make it."""
    return pb.Envelope(bundle=pb.Bundle(messages=map(pb.Envelope.FromString, messages))).SerializeToString()


def test_chunks_are_what_protocol_buffers_make_of_them():
    for size in (1, 127, 128, 16_383, 16_384, 2**20, 2**21 - 1, 2**21):
        data = pb.Envelope(chunk=bytes(size)).SerializeToString()
        assert encode(Chunk(bytes(size))) == data
        assert decode(data) == Chunk(bytes(size))
        for wrong in (data[:-1], data + b"x", pb.Envelope(chunk=b"").SerializeToString(), data + data):
            with pytest.raises(PeerError):
                decode(wrong)


def test_large_payloads_are_announced(tmp_path):
    payload = Payload.of({"x": np.zeros(SMALL)}, tmp_path)
    sent = encode(say.Transfer(KEY, Token(POINT, payload, True, POINT.generation)))
    assert len(sent) < 200
    found = decode(sent).token.payload
    assert found == payload
    assert not found.here
    chunks = [decode(encode(Chunk(data))).data for data in payload.chunks()]
    assert b"".join(chunks) == payload.path.read_bytes()


@pytest.mark.parametrize(
    "message",
    [
        say.Ask(Key("a b", 0)),
        say.Ask(Key("..", 0)),
        say.Ask(Key("a", -1)),
        say.Ask(Key("a", 2**64)),
        say.Offer(KEY, Position(Generation(-1, 0), 0, 0)),
        say.Offer(KEY, None),
        say.Probe(KEY, POINT, "one", ()),
        Chunk(bytes(LIMIT)),
        say.Packet(1, say.Ask(KEY)),
    ],
)
def test_what_cannot_be_sent(message):
    with pytest.raises(PeerError, match=r"cannot be sent|not valid|at most"):
        encode(message)


def test_reasons_are_cut_and_can_be_sent():
    assert decode(encode(say.Refuse(KEY, POINT, "\n" + "a" * 1000))).reason == "?" + "a" * 499


def test_a_long_lineage():
    lineage = tuple(Position(Generation(number, 3), number, 0) for number in range(1, say.LINEAGE + 1))
    sent = Token(lineage[-1], Payload.holding(b"1"), True, Generation(0, 3), lineage)
    assert decode(encode(say.Transfer(KEY, sent))).token == sent
    assert from_token(to_token(sent, lambda one: pb.Payload(data=b"1")), announced) == sent
    lineage += (Position(Generation(say.LINEAGE + 1, 3), say.LINEAGE + 1, 0),)
    with pytest.raises(PeerError, match="a lineage is broken"):  # it would slow down everybody who has it
        decode(encode(say.Transfer(KEY, sent._replace(point=lineage[-1], lineage=lineage))))


def test_all_that_nodes_say_can_be_sent():
    """Every message of a network with lost packets, crashes and re-issues comes through as it was."""
    kernel = fw.designs.MHLJ(0.3, 0.5, 3, corrected=True).kernel(fw.graphs.ring(6), np.array([1.0, 5, 1, 1, 5, 1]))
    seen = set()

    class Sending(World):
        def deliver(self, index, keep=False):
            message = self.wires[index][2]
            if isinstance(message, say.Transfer):
                message = message._replace(token=_real(message.token))
            assert decode(encode(message)) == message
            seen.add(type(message))
            super().deliver(index, keep)

    random = np.random.default_rng(1)
    for stores in (False, True):
        world = Sending(kernel, say.Settings(seed=1, steps=30, every=5, nodes=6, stores=stores), [0, 3])
        for turn in range(600):
            if world.wires:
                drop = random.random() < 0.05
                (world.drop if drop else world.deliver)(int(random.integers(len(world.wires))))
            for node in range(6):
                if world.pending[node]:
                    world.commit(node)
                if world.works[node]:
                    world.compute(node)
            if turn % 50 == 49:
                node = int(random.integers(6))
                world.crash(node)
                world.restart(node)
            for node in range(6):
                if world.timers[node] and random.random() < 0.02:
                    world.alarm(node, sorted(world.timers[node], key=repr)[0])
        world.settle()
    assert len(seen) >= 12


def _real(one):
    return one._replace(payload=Payload.holding(repr(one.payload).encode()))


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="grpcio-tools is not installed: pip install grpcio-tools")
def test_the_generated_module_is_that_of_the_proto_file(tmp_path):
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCE.parent}", f"--python_out={tmp_path}"]
    subprocess.run([*command, f"--pyi_out={tmp_path}", "freewalk/peers/protocol/wire.proto"], check=True)
    for name in ("wire_pb2.py", "wire_pb2.pyi"):
        here, there = ((folder / "peers" / "protocol" / name).read_text() for folder in (SOURCE, tmp_path / "freewalk"))
        assert _without_version(here) == _without_version(there)


def _without_version(text):
    """A generated module without what depends on the version of its generator."""
    text = text.replace("_Optional[bool]", "bool")
    return re.sub(r"(?m)^(# Protobuf Python Version: .*|    \d+,)$", "", text)


def test_it_was_generated_for_the_oldest_protobuf_that_is_allowed():
    numbers = re.findall(r"(?m)^    (\d+),$", (SOURCE / "peers" / "protocol" / "wire_pb2.py").read_text())
    assert [int(number) for number in numbers] <= [6, 31, 1]

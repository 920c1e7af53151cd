"""Messages, tokens and custody as protocol buffers, for connections and disks; anything invalid is rejected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from operator import lt
from typing import Any, NamedTuple, TypeVar, get_args

from freewalk.errors import MissingExtra, PeerError
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.messages import LINEAGE, Message
from freewalk.peers.protocol.payload import SMALL, Payload
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Position, Token, Version, Warrant

try:
    from freewalk.peers.protocol import wire_pb2
except ImportError:
    raise MissingExtra("protobuf", "peers") from None

#: The generated messages.
pb: Any = wire_pb2
#: Raised when nodes of the version before would misunderstand a message; mere additions are ignored by them.
PROTOCOL = 2
#: The longest message, in bytes.
LIMIT = 2**22
TOGETHER = 64  # messages in a bundle
TRAIL = 1024  # nodes
OLDEST = 2.0**32  # seconds since the launch of a token, as a neighbour tells it
#: The name of a run, which is also that of a folder: neither the one above nor hidden.
RUN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_LARGEST = 2**63 - 1
_DIGEST = 32  # bytes
_PROOF = 4096  # bytes of each part of a warrant
_WITNESS = 24  # bytes at most
_REASON = 500  # letters
_WRONG = "a part is missing, or a number out of range"

Finder = Callable[[str, int], Payload]
Kind = TypeVar("Kind", bound=NamedTuple)


def require(truth: bool, wrong: str) -> None:
    """Reject an invalid message."""
    if not truth:
        raise PeerError(f"a message is not valid: {wrong}; does the sender run another version?")


def parsed(kind: Any, data: bytes, what: str) -> Any:
    """A message of protocol buffers."""
    try:
        return kind.FromString(data)
    except Exception as error:  # its own DecodeError, which depends on how the package was built
        raise PeerError(f"{what} cannot be read ({error})") from None


# Tuples and messages, whose fields have the same names. What a tuple has by default is missing in its message.


class _Part(NamedTuple):
    """A part of a tuple: its name, its form, and what it is by default (an ellipsis: nothing)."""

    name: str
    form: _Form
    default: Any


@cache
def _parts(kind: Any) -> tuple[_Part, ...]:
    """The parts of a kind of tuple, looked up once: a hop reads and writes dozens of tuples."""
    return tuple(_Part(name, _FORMS.get(name, _OTHER), kind._field_defaults.get(name, ...)) for name in kind._fields)


def _fields(value: Any, *others: str) -> dict[str, Any]:
    """A tuple as the fields of its message, except for `others`, which its message has in another form."""
    return {
        name: form.write(part)
        for (name, form, default), part in zip(_parts(value.__class__), value, strict=True)
        if part != default and name not in others
    }


def _tuple(kind: type[Kind], message: Any, **others: Any) -> Kind:
    """The tuple of a message, with `others` from elsewhere."""
    values = []
    for name, form, default in _parts(kind):
        if name in others:
            values.append(others[name])
        elif form.is_message and not message.HasField(name):
            require(default is not ..., f"its {name} is missing")
            values.append(default)
        else:
            value = getattr(message, name)
            if form.fine is not None:
                require(form.fine(value), form.wrong)
            values.append(value if form.read is None else form.read(value))
    return kind(*values)


# What has another form, or is checked.


def reference(payload: Payload) -> Any:
    """A payload as its digest and size."""
    return pb.Payload(reference=pb.Reference(digest=bytes.fromhex(payload.digest), size=payload.size))


def _inside(payload: Payload) -> Any:
    """A payload as its bytes; a large one as its digest and size."""
    return reference(payload) if payload.data is None else pb.Payload(data=payload.data)


def announced(digest: str, size: int) -> Payload:
    """A payload that will follow: a large one."""
    require(size > SMALL, "a small payload is announced")
    return Payload(digest, size)


def _from_payload(message: Any, find: Finder) -> Payload:
    """The payload of a message; `find` returns payloads that are elsewhere."""
    place = message.WhichOneof("place")
    if place == "data":
        require(len(message.data) <= SMALL, "a large payload is within a message")
        return Payload.holding(message.data)
    require(place is not None, "a payload is missing")
    digest, size = message.reference.digest, message.reference.size
    require(len(digest) == _DIGEST and size <= _LARGEST, "a payload has no digest or size")
    return find(digest.hex(), size)


def to_point(point: Position, kind: Any = pb.Point) -> Any:
    """A point as a message."""
    (number, issuer), step, hop = point
    return kind(number=number, issuer=issuer, step=step, hop=hop)


def from_point(message: Any) -> Position:
    """The point of a message."""
    require(max(message.step, message.hop) <= _LARGEST, _WRONG)
    return Position(_from_generation(message), message.step, message.hop)


def _from_generation(message: Any) -> Generation:
    require(message.number <= _LARGEST and message.issuer >= -1, _WRONG)
    return Generation(message.number, message.issuer)


def to_token(token: Token, payload: Callable[[Payload], Any]) -> Any:
    """A token as a message; `payload` encodes its payload."""
    tables: dict[str, Any] = {}  # most are empty
    if token.lineage:
        generations = [point.generation for point in token.lineage]
        tables |= {"numbers": [one.number for one in generations], "issuers": [one.issuer for one in generations]}
        tables |= {"steps": [one.step for one in token.lineage], "hops": [one.hop for one in token.lineage]}
    if token.kept:
        tables |= {"kept_nodes": [node for node, _ in token.kept], "kept_steps": [step for _, step in token.kept]}
    return pb.Token(**_fields(token, "payload", "lineage", "kept"), payload=payload(token.payload), **tables)


def from_token(message: Any, find: Finder) -> Token:
    """The token of a message; `find` returns a payload that is elsewhere."""
    numbers, issuers, steps, hops = _columns(message.numbers, message.issuers, message.steps, message.hops)
    require(len(issuers) <= LINEAGE and min(issuers, default=0) >= -1, "a lineage is broken")
    lineage = tuple(map(Position, map(Generation, numbers, issuers), steps, hops))
    kept = _columns(message.kept_nodes, message.kept_steps)
    require(_ascends(kept[0]), "what is kept is not sorted, or has repeats")
    token = _tuple(Token, message, payload=None, lineage=lineage, kept=tuple(zip(*kept, strict=True)))
    generations = [token.origin, *(one.generation for one in lineage)]
    leads = _ascends(generations) and generations[-1] == token.point.generation
    require(leads, "a lineage does not lead to its token")
    return token._replace(payload=_from_payload(message.payload, find))


def _columns(*columns: Any) -> tuple[Any, ...]:
    """The columns of a table; most tables are empty."""
    if any(columns):
        require(len({len(column) for column in columns}) == 1, "a table is broken")
        require(all(max(column) <= _LARGEST for column in columns), _WRONG)
    return columns


def _ascends(values: Sequence[Any]) -> bool:
    return all(map(lt, values, values[1:]))


def to_custody(custody: Custody) -> Any:
    """The custody of a walk as a message, without its versions and payloads."""
    token = None if custody.token is None else to_token(custody.token, reference)
    return pb.Custody(**_fields(custody, "token", "versions"), token=token)


def from_custody(message: Any, versions: tuple[Version, ...], find: Finder) -> Custody:
    """The custody of a walk."""
    token = from_token(message.token, find) if message.HasField("token") else None
    return _tuple(Custody, message, token=token, versions=versions)


def to_version(version: Version) -> Any:
    """A version of what a rule keeps as a message, without its payload."""
    payload = None if version.payload is None else reference(version.payload)
    return pb.Version(**_fields(version, "payload"), payload=payload)


def from_version(message: Any, find: Finder) -> Version:
    """A version of what a rule keeps."""
    payload = _from_payload(message.payload, find) if message.HasField("payload") else None
    return _tuple(Version, message, payload=payload)


def printable(text: str, most: int = 300) -> str:
    """The beginning of a text from elsewhere, for people."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])


@lru_cache(1024)
def _key(run: str, walk: int) -> Key:
    require(RUN.fullmatch(run) is not None and walk <= _LARGEST, "its run or walk cannot be")
    return Key(run, walk)


def _to_key(key: Key) -> dict[str, Any]:
    return _key(*key)._asdict()


def _from_key(message: Any) -> Key:
    return _key(message.run, message.walk)


class _Form(NamedTuple):
    """How a part of a tuple is written and read (None: as it is), and what is valid (None: anything)."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any] | None
    fine: Callable[[Any], bool] | None = None
    wrong: str = _WRONG
    is_message: bool = False


_POINT = _Form(to_point, from_point)
_GENERATION = _Form(Generation._asdict, _from_generation)
_LOANS = partial(_tuple, Loan)
_LOAN = _Form(_fields, _LOANS)
_COUNT = _Form(int, None, _LARGEST.__ge__)
_FLAG = _Form(bool, None)
_WARRANT = _Form(
    Warrant._asdict,
    lambda message: Warrant(message.permit, message.proof),
    lambda message: 0 < max(len(message.permit), len(message.proof)) <= _PROOF,
    "its warrant is empty, or too long",
)
_TRAIL = _Form(
    tuple,
    tuple,
    lambda trail: len(trail) <= TRAIL and max(trail, default=0) <= _LARGEST,
    "its trail is too long, or leads to no node",
)
_CUT = _Form(
    partial(printable, most=_REASON),
    str,
    lambda reason: len(reason) <= _REASON and reason.isprintable(),
    "its reason is too long, or not for people",
)
_MODEL = _Form(bytes.fromhex, bytes.hex, lambda digest: len(digest) in (0, _DIGEST), "a digest has another length")
#: The parts that are messages themselves, and then all.
_MESSAGES = {
    "key": _Form(_to_key, _from_key),
    "warrant": _WARRANT,
    "token": _Form(
        partial(to_token, payload=_inside), partial(from_token, find=announced), lambda one: 0 <= one.began <= OLDEST
    ),
    **dict.fromkeys(("point", "seen", "arrived"), _POINT),
    **dict.fromkeys(("floor", "origin"), _GENERATION),
    **dict.fromkeys(("lent", "source"), _LOAN),
}
_FORMS = {name: form._replace(is_message=True) for name, form in _MESSAGES.items()} | {
    "owed": _Form(lambda owed: list(map(_fields, owed)), lambda owed: tuple(map(_LOANS, owed))),
    "ratio": _Form(lambda ratio: ratio + 0.0, float, lambda ratio: 0 <= ratio < math.inf),  # no negative zero
    "began": _Form(float, float, math.isfinite),
    "witness": _Form(bytes, bytes, lambda witness: len(witness) <= _WITNESS),
    "trail": _TRAIL,
    "reason": _CUT,
    "model": _MODEL,
    "previous": _Form(lambda node: node + 1, lambda number: number - 1, _LARGEST.__ge__),  # missing: not known
    **dict.fromkeys(("messages", "probes", "peer", "visits"), _COUNT),
    **dict.fromkeys(("accepted", "again", "due", "diverged", "collected"), _FLAG),
}
_OTHER = _Form(bytes, None)  # stands for what a message has in another form
_KINDS: dict[str, type[Message]] = {kind.__name__.lower(): kind for kind in (*say.HANDINGS, *get_args(Message))}


# What a connection carries: one envelope per message.


class Chunk(NamedTuple):
    """A piece of the large payload that was announced by the `Transfer` before it, in order."""

    data: bytes | memoryview


class Bundle(NamedTuple):
    """Several messages sent as one, in order."""

    messages: tuple[Message, ...]


def _varint(number: int) -> bytes:
    """A number as a varint of protocol buffers: seven bits per byte, the lowest first."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*result, number))


def _tag(field: int) -> bytes:
    """The tag that precedes the length and the bytes of a field in protocol buffers."""
    return _varint(field << 3 | 2)


# Chunks and bundles are put together by hand: protocol buffers would copy the bytes of a large model several times.
_CHUNK, _BUNDLE = _tag(pb.Envelope.CHUNK_FIELD_NUMBER), _tag(pb.Envelope.BUNDLE_FIELD_NUMBER)
_MESSAGE = _tag(pb.Bundle.MESSAGES_FIELD_NUMBER)


def together(several: Sequence[bytes]) -> bytes:
    """Several encoded messages as one, which costs only one send."""
    if len(several) == 1:
        return several[0]
    inner = b"".join(part for data in several for part in (_MESSAGE, _varint(len(data)), data))
    return b"".join((_BUNDLE, _varint(len(inner)), inner))


def encode(message: Message | Chunk) -> bytes:
    """A message as bytes; a small payload of a `Transfer` is included, a large one follows as chunks."""
    kind = type(message)
    if isinstance(message, Chunk):
        data = b"".join((_CHUNK, _varint(len(message.data)), message.data))
    else:
        try:
            data = pb.Envelope(**{kind.__name__.lower(): _fields(message)}).SerializeToString(deterministic=True)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise PeerError(f"a {kind.__name__} cannot be sent: {error}") from error
    if len(data) > LIMIT:
        raise PeerError(f"a {kind.__name__} has {len(data):,} bytes, expected at most {LIMIT:,}")
    return bytes(data)


def decode(data: bytes) -> Message | Chunk | Bundle:
    """The message in some bytes, which must be those of `encode` or `together`, here or in a later version.

    A large payload of a `Transfer` is only announced (`Payload.here`).
    """
    if len(data) > LIMIT:
        raise PeerError(f"a message has {len(data):,} bytes, expected at most {LIMIT:,}")
    if data[:1] == _CHUNK:
        return _chunk(data)
    envelope = parsed(pb.Envelope, data, f"a message of {len(data):,} bytes")
    # A reader ignores what is repeated or out of order, but that changes the bytes. What later versions add does not.
    require(envelope.SerializeToString(deterministic=True) == data, "it has parts that are repeated or out of order")
    if envelope.WhichOneof("kind") != "bundle":
        return _read(envelope)
    several = envelope.bundle.messages
    require(2 <= len(several) <= TOGETHER, "a bundle has too few messages, or too many")
    return Bundle(tuple(_read(one) for one in several))


def _read(envelope: Any) -> Message:
    name = envelope.WhichOneof("kind")
    require(name is not None, "its kind is not known")
    require(name in _KINDS, "a bundle holds what does not belong there")
    return _tuple(_KINDS[name], getattr(envelope, name))


def _chunk(data: bytes) -> Chunk:
    """A chunk, which has one field: its tag, the length and the bytes."""
    for place in range(2, min(7, len(data))):
        if data[1:place] == _varint(len(data) - place):
            return Chunk(memoryview(data)[place:])
    raise PeerError(f"a chunk of {len(data):,} bytes is empty, or longer or shorter than it says")

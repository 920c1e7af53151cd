"""Messages as bytes: one envelope each; anything invalid is rejected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from freewalk.errors import PeerError
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.codec import (
    LARGEST,
    announced,
    from_generation,
    from_point,
    from_token,
    inside,
    pb,
    require,
    to_generation,
    to_point,
    to_token,
)
from freewalk.peers.protocol.messages import Message
from freewalk.peers.protocol.token import Key

#: The longest message, in bytes.
LIMIT = 2**22
TOGETHER = 64  # messages in a bundle
TRAIL = 1024  # nodes
REASON = 500  # letters
_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WRONG = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


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


_CHUNK, _BUNDLE = _tag(pb.Envelope.CHUNK_FIELD_NUMBER), _tag(pb.Envelope.BUNDLE_FIELD_NUMBER)
_MESSAGE = _tag(pb.Bundle.MESSAGES_FIELD_NUMBER)


class Chunk(NamedTuple):
    """A piece of the large payload that was announced by the `Transfer` before it, in order."""

    data: bytes | memoryview


class Bundle(NamedTuple):
    """Several messages sent as one, in order."""

    messages: tuple[Message, ...]


def together(several: Sequence[bytes]) -> bytes:
    """Several encoded messages as one, which costs only one send.

    Examples
    --------
    >>> messages = (say.Ask(Key("first", 3)), say.Ask(Key("second", 0)))
    >>> decode(together([encode(message) for message in messages])) == Bundle(messages)
    True
    """
    if len(several) == 1:
        return several[0]
    inner = b"".join(part for data in several for part in (_MESSAGE, _varint(len(data)), data))
    return b"".join((_BUNDLE, _varint(len(inner)), inner))


def encode(message: Message | Chunk) -> bytes:
    r"""A message as bytes; a small payload of a `Transfer` is included, a large one follows as chunks.

    Parameters
    ----------
    message
        The message.

    Raises
    ------
    PeerError
        If it cannot be sent because it is too long or has numbers out of range.

    Examples
    --------
    >>> message = say.Ask(Key("first", 3))
    >>> encode(message), decode(encode(message)) == message
    (b'R\x0b\n\t\n\x05first\x10\x03', True)
    """
    if isinstance(message, Chunk):
        data = b"".join((_CHUNK, _varint(len(message.data)), message.data))
    else:
        try:
            name, write = _WRITERS[type(message)]
            data = pb.Envelope(**{name: write(message)}).SerializeToString(deterministic=True)
        except _WRONG as error:
            raise PeerError(f"a {type(message).__name__} cannot be sent: {error}") from error
    if len(data) > LIMIT:
        raise PeerError(f"a {type(message).__name__} has {len(data):,} bytes, expected at most {LIMIT:,}")
    return bytes(data)


def decode(data: bytes) -> Message | Chunk | Bundle:
    """The message in some bytes; a large payload of a `Transfer` is only announced (`Payload.here`).

    Raises
    ------
    PeerError
        If they are not exactly the output of `encode` for a valid message, or of `together` for several.
    """
    if len(data) > LIMIT:
        raise PeerError(f"a message has {len(data):,} bytes, expected at most {LIMIT:,}")
    if data[:1] == _CHUNK:  # avoids extra copies of the bytes of a large model
        return _chunk(data)
    envelope = pb.Envelope()
    try:
        envelope.ParseFromString(data)
    except Exception as error:  # its own DecodeError, which depends on how the package was built
        raise PeerError(f"a message of {len(data):,} bytes cannot be read: {error}") from None
    # A reader ignores parts that are unknown, repeated or out of order, but they change the bytes.
    envelope.DiscardUnknownFields()
    require(envelope.SerializeToString(deterministic=True) == data, "it has parts that are unknown or repeated")
    return _read(envelope)


def _read(envelope: Any) -> Message | Chunk | Bundle:
    kind = envelope.WhichOneof("kind")
    require(kind is not None, "its kind is not known")
    message: Message | Chunk | Bundle = _READERS[kind](getattr(envelope, kind))
    return message


def _to_key(key: Key) -> Any:
    require(_RUN.fullmatch(key.run) is not None, "the name of a run has other letters, or too many")
    return pb.Key(run=key.run, walk=key.walk)


def _from_key(message: Any) -> Key:
    require(message.HasField("key"), "its key is missing")
    run, walk = message.key.run, message.key.walk
    require(_RUN.fullmatch(run) is not None and walk <= LARGEST, "its run or walk cannot be")
    return Key(run, walk)


def _point_of(message: Any) -> Any:
    require(message.HasField("point"), "its point is missing")
    return from_point(message.point)


def _floor_of(message: Any) -> Any:
    require(message.HasField("floor"), "its generation is missing")
    return from_generation(message.floor)


def _trail_of(message: Any) -> tuple[int, ...]:
    trail = message.trail
    require(len(trail) <= TRAIL and max(trail, default=0) <= LARGEST, "its trail is too long, or leads to no node")
    return tuple(trail)


def _handing(message: Any) -> Any:
    return pb.Handing(key=_to_key(message.key), point=to_point(message.point))


def _reader(kind: Callable[..., Message]) -> Callable[[Any], Message]:
    return lambda message: kind(_from_key(message), _point_of(message))


def _refuse(message: say.Refuse) -> Any:
    reason = "".join(letter if letter.isprintable() else "?" for letter in message.reason[:REASON])
    return pb.Refuse(key=_to_key(message.key), point=to_point(message.point), reason=reason)


def _refused(message: Any) -> Message:
    require(len(message.reason) <= REASON and message.reason.isprintable(), "its reason is too long, or not for people")
    return say.Refuse(_from_key(message), _point_of(message), message.reason)


def _transfer(message: say.Transfer) -> Any:
    return pb.Transfer(key=_to_key(message.key), token=to_token(message.token, inside), again=message.again)


def _transferred(message: Any) -> Message:
    require(message.HasField("token"), "its token is missing")
    return say.Transfer(_from_key(message), from_token(message.token, announced), message.again)


def _last(message: say.Last) -> Any:
    seen = None if message.seen is None else to_point(message.seen)
    return pb.Last(key=_to_key(message.key), floor=to_generation(message.floor), seen=seen)


def _lasted(message: Any) -> Message:
    seen = from_point(message.seen) if message.HasField("seen") else None
    return say.Last(_from_key(message), _floor_of(message), seen)


def _probe(message: say.Probe) -> Any:
    ratio = message.ratio + 0.0  # no negative zero
    return pb.Probe(key=_to_key(message.key), point=to_point(message.point), ratio=ratio, trail=message.trail)


def _probed(message: Any) -> Message:
    require(math.isfinite(message.ratio) and message.ratio >= 0, "its ratio is no finite number >= 0")
    return say.Probe(_from_key(message), _point_of(message), message.ratio, _trail_of(message))


def _answer(message: say.Answer) -> Any:
    trail, point = message.trail, to_point(message.point)
    return pb.Answer(key=_to_key(message.key), point=point, accepted=message.accepted, trail=trail)


def _answered(message: Any) -> Message:
    return say.Answer(_from_key(message), _point_of(message), message.accepted, _trail_of(message))


def _chunk(data: bytes) -> Chunk:
    """A chunk, which has one field: its tag, the length and the bytes."""
    for place in range(2, min(7, len(data))):
        if data[1:place] == _varint(len(data) - place):
            return Chunk(memoryview(data)[place:])
    raise PeerError(
        f"a message of {len(data):,} bytes is not valid: a chunk is empty, or longer or shorter than it says"
    )


def _bundled(message: Any) -> Bundle:
    require(2 <= len(message.messages) <= TOGETHER, "a bundle has too few messages, or too many")
    kinds = {one.WhichOneof("kind") for one in message.messages}
    require(not kinds & {"chunk", "bundle"}, "a bundle holds what does not belong there")
    return Bundle(tuple(_read(one) for one in message.messages))  # type: ignore[misc]  # kinds were checked


_HANDINGS = (say.Offer, say.Coming, say.Accept, say.Received, say.Renew, say.Query, say.Release, say.Released)

_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    **{kind: (kind.__name__.lower(), _handing) for kind in _HANDINGS},
    say.Refuse: ("refuse", _refuse),
    say.Transfer: ("transfer", _transfer),
    say.Ask: ("ask", lambda message: pb.Ask(key=_to_key(message.key))),
    say.Last: ("last", _last),
    say.Known: ("known", lambda message: pb.Known(key=_to_key(message.key), floor=to_generation(message.floor))),
    say.Probe: ("probe", _probe),
    say.Answer: ("answer", _answer),
}

_READERS: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__.lower(): _reader(kind) for kind in _HANDINGS},
    "refuse": _refused,
    "transfer": _transferred,
    "ask": lambda message: say.Ask(_from_key(message)),
    "last": _lasted,
    "known": lambda message: say.Known(_from_key(message), _floor_of(message)),
    "probe": _probed,
    "answer": _answered,
    "bundle": _bundled,
}

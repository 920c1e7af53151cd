"""Points, tokens and custody to and from protocol buffers; anything invalid is rejected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from freewalk.errors import MissingExtra, PeerError
from freewalk.peers.protocol.payload import SMALL, Payload
from freewalk.peers.protocol.token import Custody, Generation, Loan, Point, Token, Version

try:
    from freewalk.peers.protocol import wire_pb2
except ImportError:
    raise MissingExtra("protobuf", "peers") from None

#: The generated messages.
pb: Any = wire_pb2
LARGEST = 2**63 - 1
LINEAGE = 1_000_000  # entries
_DIGEST = 32  # bytes

Finder = Callable[[str, int], Payload]


def reference(payload: Payload) -> Any:
    """A payload as its digest and size."""
    return pb.Payload(reference=pb.Reference(digest=bytes.fromhex(payload.digest), size=payload.size))


def inside(payload: Payload) -> Any:
    """A payload as its bytes; a large one as its digest and size."""
    return reference(payload) if payload.data is None else pb.Payload(data=payload.data)


def announced(digest: str, size: int) -> Payload:
    """A payload that will follow: a large one."""
    require(size > SMALL, "a small payload is announced")
    return Payload(digest, size)


def from_payload(message: Any, find: Finder) -> Payload:
    """The payload of a message; `find` returns payloads that are elsewhere."""
    place = message.WhichOneof("place")
    if place == "data":
        require(len(message.data) <= SMALL, "a large payload is within a message")
        return Payload.holding(message.data)
    require(place is not None, "a payload is missing")
    digest, size = message.reference.digest, message.reference.size
    require(len(digest) == _DIGEST and size <= LARGEST, "a payload has no digest or size")
    return find(digest.hex(), size)


def to_point(point: Point) -> Any:
    """A point as a message."""
    (number, issuer), step, hop = point
    return pb.Point(number=number, issuer=issuer, step=step, hop=hop)


def from_point(message: Any) -> Point:
    """The point of a message."""
    point = Point(Generation(message.number, message.issuer), message.step, message.hop)
    require(point.generation.issuer >= -1 and max(point.generation.number, point.step, point.hop) <= LARGEST, _RANGE)
    return point


def to_generation(generation: Generation) -> Any:
    """A generation as a message."""
    return pb.Generation(number=generation.number, issuer=generation.issuer)


def from_generation(message: Any) -> Generation:
    """The generation of a message."""
    require(message.number <= LARGEST and message.issuer >= -1, _RANGE)
    return Generation(message.number, message.issuer)


def to_token(token: Token, payload: Callable[[Payload], Any]) -> Any:
    """A token as a message; `payload` encodes its payload."""
    message = pb.Token(
        point=to_point(token.point),
        payload=payload(token.payload),
        due=token.due,
        origin=to_generation(token.origin),
        messages=token.messages,
        probes=token.probes,
        diverged=token.diverged,
    )
    if token.lineage:
        message.numbers.extend([point.generation.number for point in token.lineage])
        message.issuers.extend([point.generation.issuer for point in token.lineage])
        message.steps.extend([point.step for point in token.lineage])
        message.hops.extend([point.hop for point in token.lineage])
    if token.kept:
        message.kept_nodes.extend([node for node, _ in token.kept])
        message.kept_steps.extend([step for _, step in token.kept])
    return message


def from_token(message: Any, find: Finder) -> Token:
    """The token of a message; `find` returns a payload that is elsewhere."""
    require(message.HasField("point") and message.HasField("payload") and message.HasField("origin"), _MISSING)
    require(max(message.messages, message.probes) <= LARGEST, _RANGE)
    point, origin = from_point(message.point), from_generation(message.origin)
    lineage = _lineage(message) if message.numbers or message.issuers or message.steps or message.hops else ()
    generations = [origin, *(one.generation for one in lineage)]
    ordered = all(older < newer for older, newer in pairwise(generations))
    require(ordered and generations[-1] == point.generation, "a lineage does not lead to its token")
    return Token(
        point,
        from_payload(message.payload, find),
        message.due,
        origin,
        lineage,
        message.messages,
        message.probes,
        message.diverged,
        _kept(message) if message.kept_nodes or message.kept_steps else (),
    )


def to_custody(custody: Custody) -> Any:
    """The custody of a walk as a message, without its versions and payloads."""
    message = pb.Custody(floor=to_generation(custody.floor), owed=[to_loan(loan) for loan in custody.owed])
    if custody.seen is not None:
        message.seen.CopyFrom(to_point(custody.seen))
    if custody.token is not None:
        message.token.CopyFrom(to_token(custody.token, reference))
    if custody.lent is not None:
        message.lent.CopyFrom(to_loan(custody.lent))
    if custody.source is not None:
        message.source.CopyFrom(to_loan(custody.source))
    if custody.arrived is not None:
        message.arrived.CopyFrom(to_point(custody.arrived))
    return message


def from_custody(message: Any, versions: tuple[Version, ...], find: Finder) -> Custody:
    """The custody of a walk."""
    require(message.HasField("floor"), _MISSING)
    return Custody(
        from_generation(message.floor),
        from_point(message.seen) if message.HasField("seen") else None,
        from_token(message.token, find) if message.HasField("token") else None,
        from_loan(message.lent) if message.HasField("lent") else None,
        from_loan(message.source) if message.HasField("source") else None,
        from_point(message.arrived) if message.HasField("arrived") else None,
        tuple(from_loan(loan) for loan in message.owed),
        versions,
    )


def to_loan(loan: Loan) -> Any:
    """A hand-over as a message."""
    return pb.Loan(peer=loan.peer, point=to_point(loan.point))


def from_loan(message: Any) -> Loan:
    """The hand-over of a message."""
    require(message.HasField("point") and message.peer <= LARGEST, _MISSING)
    return Loan(message.peer, from_point(message.point))


def to_version(version: Version) -> Any:
    """A version of what a rule keeps as a message, without its payload."""
    payload = None if version.payload is None else reference(version.payload)
    return pb.Version(
        arrived=to_point(version.arrived), point=to_point(version.point), visits=version.visits, payload=payload
    )


def from_version(message: Any, find: Finder) -> Version:
    """A version of what a rule keeps."""
    require(message.HasField("arrived") and message.HasField("point") and message.visits <= LARGEST, _MISSING)
    payload = from_payload(message.payload, find) if message.HasField("payload") else None
    return Version(from_point(message.arrived), from_point(message.point), payload, message.visits)


def require(truth: bool, wrong: str) -> None:
    """Reject an invalid message."""
    if not truth:
        raise PeerError(f"a message is not valid: {wrong}; does the sender run another version?")


_RANGE = "a number is out of range"
_MISSING = "a part is missing, or a number out of range"


def _lineage(message: Any) -> tuple[Point, ...]:
    columns = (message.numbers, message.issuers, message.steps, message.hops)
    require(len({len(column) for column in columns}) == 1 and len(columns[0]) <= LINEAGE, "a lineage is broken")
    numbers, issuers, steps, hops = columns
    require(max(max(numbers), max(steps), max(hops)) <= LARGEST and min(issuers) >= -1, _RANGE)
    return tuple(
        Point(Generation(number, issuer), step, hop) for number, issuer, step, hop in zip(*columns, strict=True)
    )


def _kept(message: Any) -> tuple[tuple[int, int], ...]:
    nodes, steps = list(message.kept_nodes), list(message.kept_steps)
    require(len(nodes) == len(steps) and max(nodes[-1], max(steps)) <= LARGEST, "what is kept is broken")
    require(all(one < two for one, two in pairwise(nodes)), "what is kept is not sorted, or has repeats")
    return tuple(zip(nodes, steps, strict=True))

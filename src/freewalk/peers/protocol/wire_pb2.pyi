from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Key(_message.Message):
    __slots__ = ("run", "walk")
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    run: str
    walk: int
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ...) -> None: ...

class Generation(_message.Message):
    __slots__ = ("number", "issuer")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    number: int
    issuer: int
    def __init__(self, number: _Optional[int] = ..., issuer: _Optional[int] = ...) -> None: ...

class Point(_message.Message):
    __slots__ = ("number", "issuer", "step", "hop")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    number: int
    issuer: int
    step: int
    hop: int
    def __init__(self, number: _Optional[int] = ..., issuer: _Optional[int] = ..., step: _Optional[int] = ..., hop: _Optional[int] = ...) -> None: ...

class Reference(_message.Message):
    __slots__ = ("digest", "size")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    size: int
    def __init__(self, digest: _Optional[bytes] = ..., size: _Optional[int] = ...) -> None: ...

class Payload(_message.Message):
    __slots__ = ("data", "reference")
    DATA_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    reference: Reference
    def __init__(self, data: _Optional[bytes] = ..., reference: _Optional[_Union[Reference, _Mapping]] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("point", "payload", "due", "origin", "numbers", "issuers", "steps", "hops", "messages", "probes", "diverged", "kept_nodes", "kept_steps", "began", "witness", "previous")
    POINT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    ISSUERS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    KEPT_NODES_FIELD_NUMBER: _ClassVar[int]
    KEPT_STEPS_FIELD_NUMBER: _ClassVar[int]
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    point: Point
    payload: Payload
    due: bool
    origin: Generation
    numbers: _containers.RepeatedScalarFieldContainer[int]
    issuers: _containers.RepeatedScalarFieldContainer[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    hops: _containers.RepeatedScalarFieldContainer[int]
    messages: int
    probes: int
    diverged: bool
    kept_nodes: _containers.RepeatedScalarFieldContainer[int]
    kept_steps: _containers.RepeatedScalarFieldContainer[int]
    began: float
    witness: bytes
    previous: int
    def __init__(self, point: _Optional[_Union[Point, _Mapping]] = ..., payload: _Optional[_Union[Payload, _Mapping]] = ..., due: bool = ..., origin: _Optional[_Union[Generation, _Mapping]] = ..., numbers: _Optional[_Iterable[int]] = ..., issuers: _Optional[_Iterable[int]] = ..., steps: _Optional[_Iterable[int]] = ..., hops: _Optional[_Iterable[int]] = ..., messages: _Optional[int] = ..., probes: _Optional[int] = ..., diverged: bool = ..., kept_nodes: _Optional[_Iterable[int]] = ..., kept_steps: _Optional[_Iterable[int]] = ..., began: _Optional[float] = ..., witness: _Optional[bytes] = ..., previous: _Optional[int] = ...) -> None: ...

class Warrant(_message.Message):
    __slots__ = ("permit", "proof")
    PERMIT_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    permit: bytes
    proof: bytes
    def __init__(self, permit: _Optional[bytes] = ..., proof: _Optional[bytes] = ...) -> None: ...

class Signed(_message.Message):
    __slots__ = ("certificate", "signature", "start")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    certificate: bytes
    signature: bytes
    start: int
    def __init__(self, certificate: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., start: _Optional[int] = ...) -> None: ...

class Handing(_message.Message):
    __slots__ = ("key", "point", "model")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    key: Key
    point: Point
    model: bytes
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., model: _Optional[bytes] = ...) -> None: ...

class Refuse(_message.Message):
    __slots__ = ("key", "point", "reason")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    key: Key
    point: Point
    reason: str
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class Transfer(_message.Message):
    __slots__ = ("key", "token", "again", "warrant")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    WARRANT_FIELD_NUMBER: _ClassVar[int]
    key: Key
    token: Token
    again: bool
    warrant: Warrant
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., again: bool = ..., warrant: _Optional[_Union[Warrant, _Mapping]] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: Key
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ...) -> None: ...

class Last(_message.Message):
    __slots__ = ("key", "floor", "seen", "warrant")
    KEY_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    WARRANT_FIELD_NUMBER: _ClassVar[int]
    key: Key
    floor: Generation
    seen: Point
    warrant: Warrant
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., floor: _Optional[_Union[Generation, _Mapping]] = ..., seen: _Optional[_Union[Point, _Mapping]] = ..., warrant: _Optional[_Union[Warrant, _Mapping]] = ...) -> None: ...

class Known(_message.Message):
    __slots__ = ("key", "floor", "warrant")
    KEY_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    WARRANT_FIELD_NUMBER: _ClassVar[int]
    key: Key
    floor: Generation
    warrant: Warrant
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., floor: _Optional[_Union[Generation, _Mapping]] = ..., warrant: _Optional[_Union[Warrant, _Mapping]] = ...) -> None: ...

class Probe(_message.Message):
    __slots__ = ("key", "point", "ratio", "trail")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    TRAIL_FIELD_NUMBER: _ClassVar[int]
    key: Key
    point: Point
    ratio: float
    trail: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., ratio: _Optional[float] = ..., trail: _Optional[_Iterable[int]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("key", "point", "accepted", "trail")
    KEY_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    TRAIL_FIELD_NUMBER: _ClassVar[int]
    key: Key
    point: Point
    accepted: bool
    trail: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., accepted: bool = ..., trail: _Optional[_Iterable[int]] = ...) -> None: ...

class Bundle(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Envelope]
    def __init__(self, messages: _Optional[_Iterable[_Union[Envelope, _Mapping]]] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("offer", "accept", "refuse", "transfer", "received", "renew", "query", "release", "released", "ask", "last", "known", "probe", "answer", "chunk", "bundle", "coming")
    OFFER_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    REFUSE_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    COMING_FIELD_NUMBER: _ClassVar[int]
    offer: Handing
    accept: Handing
    refuse: Refuse
    transfer: Transfer
    received: Handing
    renew: Handing
    query: Handing
    release: Handing
    released: Handing
    ask: Ask
    last: Last
    known: Known
    probe: Probe
    answer: Answer
    chunk: bytes
    bundle: Bundle
    coming: Handing
    def __init__(self, offer: _Optional[_Union[Handing, _Mapping]] = ..., accept: _Optional[_Union[Handing, _Mapping]] = ..., refuse: _Optional[_Union[Refuse, _Mapping]] = ..., transfer: _Optional[_Union[Transfer, _Mapping]] = ..., received: _Optional[_Union[Handing, _Mapping]] = ..., renew: _Optional[_Union[Handing, _Mapping]] = ..., query: _Optional[_Union[Handing, _Mapping]] = ..., release: _Optional[_Union[Handing, _Mapping]] = ..., released: _Optional[_Union[Handing, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., last: _Optional[_Union[Last, _Mapping]] = ..., known: _Optional[_Union[Known, _Mapping]] = ..., probe: _Optional[_Union[Probe, _Mapping]] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., chunk: _Optional[bytes] = ..., bundle: _Optional[_Union[Bundle, _Mapping]] = ..., coming: _Optional[_Union[Handing, _Mapping]] = ...) -> None: ...

class Loan(_message.Message):
    __slots__ = ("peer", "point", "model")
    PEER_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    peer: int
    point: Point
    model: bytes
    def __init__(self, peer: _Optional[int] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., model: _Optional[bytes] = ...) -> None: ...

class Custody(_message.Message):
    __slots__ = ("floor", "seen", "token", "lent", "source", "arrived", "owed", "warrant", "collected")
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ARRIVED_FIELD_NUMBER: _ClassVar[int]
    OWED_FIELD_NUMBER: _ClassVar[int]
    WARRANT_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    floor: Generation
    seen: Point
    token: Token
    lent: Loan
    source: Loan
    arrived: Point
    owed: _containers.RepeatedCompositeFieldContainer[Loan]
    warrant: Warrant
    collected: bool
    def __init__(self, floor: _Optional[_Union[Generation, _Mapping]] = ..., seen: _Optional[_Union[Point, _Mapping]] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., lent: _Optional[_Union[Loan, _Mapping]] = ..., source: _Optional[_Union[Loan, _Mapping]] = ..., arrived: _Optional[_Union[Point, _Mapping]] = ..., owed: _Optional[_Iterable[_Union[Loan, _Mapping]]] = ..., warrant: _Optional[_Union[Warrant, _Mapping]] = ..., collected: bool = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("arrived", "point", "visits", "payload")
    ARRIVED_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    VISITS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    arrived: Point
    point: Point
    visits: int
    payload: Payload
    def __init__(self, arrived: _Optional[_Union[Point, _Mapping]] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., visits: _Optional[int] = ..., payload: _Optional[_Union[Payload, _Mapping]] = ...) -> None: ...

from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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

class Launch(_message.Message):
    __slots__ = ("run", "walk", "digest", "size", "data", "permit")
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    PERMIT_FIELD_NUMBER: _ClassVar[int]
    run: str
    walk: int
    digest: str
    size: int
    data: bytes
    permit: bytes
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ..., digest: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ..., permit: _Optional[bytes] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("problem", "known")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    problem: str
    known: bool
    def __init__(self, problem: _Optional[str] = ..., known: bool = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class Walk(_message.Message):
    __slots__ = ("run", "walk", "stage", "held", "point", "floor", "finished", "diverged", "messages", "probes", "peer", "failure", "digest", "size", "origin", "lineage", "seen", "collected", "permit", "proof")
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    DIVERGED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    PERMIT_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    run: str
    walk: int
    stage: str
    held: bool
    point: Point
    floor: Point
    finished: bool
    diverged: bool
    messages: int
    probes: int
    peer: int
    failure: str
    digest: str
    size: int
    origin: Point
    lineage: _containers.RepeatedCompositeFieldContainer[Point]
    seen: Point
    collected: bool
    permit: bytes
    proof: bytes
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ..., stage: _Optional[str] = ..., held: bool = ..., point: _Optional[_Union[Point, _Mapping]] = ..., floor: _Optional[_Union[Point, _Mapping]] = ..., finished: bool = ..., diverged: bool = ..., messages: _Optional[int] = ..., probes: _Optional[int] = ..., peer: _Optional[int] = ..., failure: _Optional[str] = ..., digest: _Optional[str] = ..., size: _Optional[int] = ..., origin: _Optional[_Union[Point, _Mapping]] = ..., lineage: _Optional[_Iterable[_Union[Point, _Mapping]]] = ..., seen: _Optional[_Union[Point, _Mapping]] = ..., collected: bool = ..., permit: _Optional[bytes] = ..., proof: _Optional[bytes] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("number", "up", "sent")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    number: int
    up: bool
    sent: int
    def __init__(self, number: _Optional[int] = ..., up: bool = ..., sent: _Optional[int] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("number", "name", "version", "process", "started", "updates", "received", "refused", "walks", "edges", "closed", "sent", "forgotten")
    class SentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    WALKS_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    number: int
    name: str
    version: str
    process: int
    started: float
    updates: int
    received: int
    refused: int
    walks: _containers.RepeatedCompositeFieldContainer[Walk]
    edges: _containers.RepeatedCompositeFieldContainer[Edge]
    closed: str
    sent: _containers.ScalarMap[str, int]
    forgotten: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., process: _Optional[int] = ..., started: _Optional[float] = ..., updates: _Optional[int] = ..., received: _Optional[int] = ..., refused: _Optional[int] = ..., walks: _Optional[_Iterable[_Union[Walk, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., closed: _Optional[str] = ..., sent: _Optional[_Mapping[str, int]] = ..., forgotten: _Optional[_Iterable[str]] = ...) -> None: ...

class Lines(_message.Message):
    __slots__ = ("after", "run")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    after: int
    run: str
    def __init__(self, after: _Optional[int] = ..., run: _Optional[str] = ...) -> None: ...

class Page(_message.Message):
    __slots__ = ("numbers", "times", "walks", "kinds", "generations", "issuers", "steps", "hops", "messages", "probes", "seconds", "chains", "witnesses", "names", "kept")
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    WALKS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    ISSUERS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    numbers: _containers.RepeatedScalarFieldContainer[int]
    times: _containers.RepeatedScalarFieldContainer[float]
    walks: _containers.RepeatedScalarFieldContainer[int]
    kinds: _containers.RepeatedScalarFieldContainer[int]
    generations: _containers.RepeatedScalarFieldContainer[int]
    issuers: _containers.RepeatedScalarFieldContainer[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    hops: _containers.RepeatedScalarFieldContainer[int]
    messages: _containers.RepeatedScalarFieldContainer[int]
    probes: _containers.RepeatedScalarFieldContainer[int]
    seconds: _containers.RepeatedScalarFieldContainer[float]
    chains: bytes
    witnesses: bytes
    names: _containers.RepeatedScalarFieldContainer[str]
    kept: _containers.RepeatedCompositeFieldContainer[Kept]
    def __init__(self, numbers: _Optional[_Iterable[int]] = ..., times: _Optional[_Iterable[float]] = ..., walks: _Optional[_Iterable[int]] = ..., kinds: _Optional[_Iterable[int]] = ..., generations: _Optional[_Iterable[int]] = ..., issuers: _Optional[_Iterable[int]] = ..., steps: _Optional[_Iterable[int]] = ..., hops: _Optional[_Iterable[int]] = ..., messages: _Optional[_Iterable[int]] = ..., probes: _Optional[_Iterable[int]] = ..., seconds: _Optional[_Iterable[float]] = ..., chains: _Optional[bytes] = ..., witnesses: _Optional[bytes] = ..., names: _Optional[_Iterable[str]] = ..., kept: _Optional[_Iterable[_Union[Kept, _Mapping]]] = ...) -> None: ...

class Kept(_message.Message):
    __slots__ = ("place", "note", "digest", "size", "origin", "lineage")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    place: int
    note: str
    digest: str
    size: int
    origin: Point
    lineage: _containers.RepeatedCompositeFieldContainer[Point]
    def __init__(self, place: _Optional[int] = ..., note: _Optional[str] = ..., digest: _Optional[str] = ..., size: _Optional[int] = ..., origin: _Optional[_Union[Point, _Mapping]] = ..., lineage: _Optional[_Iterable[_Union[Point, _Mapping]]] = ...) -> None: ...

class Fetch(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: str
    def __init__(self, digest: _Optional[str] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Collect(_message.Message):
    __slots__ = ("run", "walk", "point")
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    run: str
    walk: int
    point: Point
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ..., point: _Optional[_Union[Point, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("number", "name", "version", "nodes", "seed", "steps", "known")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    number: int
    name: str
    version: str
    nodes: int
    seed: int
    steps: int
    known: bool
    def __init__(self, number: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., nodes: _Optional[int] = ..., seed: _Optional[int] = ..., steps: _Optional[int] = ..., known: bool = ...) -> None: ...

class Forget(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

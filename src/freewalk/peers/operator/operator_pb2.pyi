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
    __slots__ = ("run", "walk", "digest", "size", "data")
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    run: str
    walk: int
    digest: str
    size: int
    data: bytes
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ..., digest: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("problem",)
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    problem: str
    def __init__(self, problem: _Optional[str] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Walk(_message.Message):
    __slots__ = ("run", "walk", "stage", "held", "point", "floor", "finished", "diverged", "messages", "probes", "peer", "failure", "digest", "size")
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
    def __init__(self, run: _Optional[str] = ..., walk: _Optional[int] = ..., stage: _Optional[str] = ..., held: bool = ..., point: _Optional[_Union[Point, _Mapping]] = ..., floor: _Optional[_Union[Point, _Mapping]] = ..., finished: bool = ..., diverged: bool = ..., messages: _Optional[int] = ..., probes: _Optional[int] = ..., peer: _Optional[int] = ..., failure: _Optional[str] = ..., digest: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("number", "name", "version", "process", "started", "updates", "received", "refused", "walks", "edges", "closed")
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
    def __init__(self, number: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., process: _Optional[int] = ..., started: _Optional[float] = ..., updates: _Optional[int] = ..., received: _Optional[int] = ..., refused: _Optional[int] = ..., walks: _Optional[_Iterable[_Union[Walk, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., closed: _Optional[str] = ...) -> None: ...

class Lines(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class Line(_message.Message):
    __slots__ = ("number", "time", "run", "walk", "kind", "point", "note", "digest", "messages", "probes", "lineage", "origin", "size")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    number: int
    time: float
    run: str
    walk: int
    kind: str
    point: Point
    note: str
    digest: str
    messages: int
    probes: int
    lineage: _containers.RepeatedCompositeFieldContainer[Point]
    origin: Point
    size: int
    def __init__(self, number: _Optional[int] = ..., time: _Optional[float] = ..., run: _Optional[str] = ..., walk: _Optional[int] = ..., kind: _Optional[str] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., note: _Optional[str] = ..., digest: _Optional[str] = ..., messages: _Optional[int] = ..., probes: _Optional[int] = ..., lineage: _Optional[_Iterable[_Union[Point, _Mapping]]] = ..., origin: _Optional[_Union[Point, _Mapping]] = ..., size: _Optional[int] = ...) -> None: ...

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

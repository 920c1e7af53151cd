"""What a node does with tokens, without sockets, clock or disk.

- `custody.py`: `Node`, the state machine. Here it is decided that a token is never lost: its stages and why stand at
  the top.
- `messages.py`: messages between nodes, events that reach a node, actions that it requests, and its settings.
- `token.py`: the token that is handed over; `Mover`, where it goes by the draws of a step and the node's share of the
  kernel; and `Custody`, what a node knows durably about a walk. All are immutable. `Trust` says whose word counts.
- `payload.py`: models as safetensors. Up to 256 KiB they travel within messages; larger ones are files named by their
  hash, sent in chunks.
- `wire.py`: all of this as protocol buffers (`wire.proto`). Whatever is not exactly what a node would have written is
  refused.

`wire_pb2.py` is generated, in src:
python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. freewalk/peers/protocol/wire.proto
"""

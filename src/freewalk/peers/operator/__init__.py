"""What the operator of a network does: launch runs, watch them, collect their results.

- `operator.py`: the calls to nodes (`operator.proto`), and where the tokens are by what nodes say.
- `journal.py`: the journals as the operator reads them: by columns, checked, their chains computed anew; and the story
  of a token that they tell.
- `collect.py`: launch a run, wait for it, assemble its record, forget it. The journals of all nodes prove that each
  update of the lineage that survived was made exactly once; if not, collecting fails and says which.
- `watch.py`: the status of a run, as a table or as JSON.

`operator_pb2.py` is generated like `protocol/wire_pb2.py`.
"""

from freewalk.peers.node.process import demand

demand()  # before the modules here import them

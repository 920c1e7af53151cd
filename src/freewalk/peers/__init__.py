"""A walk between real processes: every node is a process with its own data, disk and neighbours.

`protocol` is what a node does, as a pure state machine: events go in, actions come out; no sockets, no clock, no disk.
`node` gives it a disk, a clock, connections and data. `network` writes the folders of a network from a spec, and keeps
its nodes up on one machine. `operator` launches runs, watches them, and collects their records.

Two ideas hold it together. Where a token goes depends only on draws, which every node can repeat, so a run of peers
visits the nodes of a simulation and ends with its model (`runtimes/visit.py` makes the updates of both). And a token
is never lost: `protocol/custody.py` says why, docs/explanation/custody.md explains it at length, and
tests/robustness/schedules.py tries schedules of failures on the very class that runs between machines.

No node reads anything about nodes further away than its neighbours: `kernel.local(node)` and `objective.local(node)`
are all that it gets. Exchanges between tokens are refused, since they would have to wait for each other.
"""

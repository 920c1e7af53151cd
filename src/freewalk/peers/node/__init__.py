"""One running node: the protocol with a disk, a clock, connections and data.

- `process.py` assembles the parts below from a configuration, and runs them until it is told to stop.
- `service.py` handles events as they come and makes quick updates soon after. It writes everything in one transaction
  as soon as somebody waits for it, then sends the messages that had to wait (`Send.durable`); all others leave at once.
  A node that cannot write to its disk closes itself and tries again.
- `store.py` (on `database.py`) keeps custody, journal and models in SQLite and a folder of files.
- `links.py`: one stream to each neighbour, reopened when it breaks, and the gate for their streams. What cannot be sent
  is dropped, since the protocol repeats it.
- `server.py`: who may call a node. The name in a certificate is the name of its owner: neighbours may open a stream,
  the operator may ask and launch.
- `data.py`: where the data of a node come from, and the updates that it makes with them.
- `check.py` is `freewalk node check`; `complaints.py` keeps strangers from filling the log.
"""

"""The folders of a network: made from a spec, read by its nodes and its operator, and kept running.

- `init.py`: `init` writes a folder for every node and one for the operator, with names that certificates can hold and
  free addresses; `Network` is what the operator reads.
- `admission.py` refuses, with reasons, what peers cannot run.
- `config.py` reads: the tables of a node and of a network, checked by pydantic. `toml.py` writes them, with comments.
- `certificates.py`: a private authority, whose certificates are how nodes know each other.
- `supervisor.py` keeps all nodes of a folder up on one machine. It imports everything once and forks for each node, so
  that a node starts in milliseconds.
"""

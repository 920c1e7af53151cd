"""What collecting costs the operator: python benchmarks/collect.py [--updates 1000000] [--nodes 10] [--json FILE]

The journals of a simple walk on a ring are made up, with their chains and witnesses, and are served by real nodes, each
a process. `freewalk network collect` then runs once, in a process of its own: seconds and peak memory are those of that
process. The nodes share the machine with it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from timing import machine

from freewalk.peers.network import supervisor
from freewalk.peers.network.init import Network, init
from freewalk.peers.node.store import Store
from freewalk.peers.protocol.messages import Journal
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Generation, Key, Position, Token

SPEC = """
[graph]
kind = "ring"
n = {nodes}
[problem]
kind = "LeastSquares"
dim = 10
[[walk]]
label = "walk"
design = {{ kind = "SimpleWalk" }}
rule = {{ kind = "SGD", step = 1e-3 }}
[run]
steps = {updates}
walks = 1
every = {every}
seed = 1
start = 0
"""
MARKS = 20
TOGETHER = 10_000  # updates between writes
KEY = Key("first", 0)
COMMAND = [sys.executable, "-m", "freewalk.cli", "network"]


def fill(network: Network, updates: int, every: int) -> None:
    """Write the journals."""
    count = len(network.nodes)
    moves = np.random.default_rng(1).choice([-1, 1], updates)
    path = np.concatenate([[0], np.cumsum(moves)]) % count
    stores = [Store(network.config(node).state, durable=False) for node in range(count)]
    launch, model = Generation(0, 0), Payload.of(network.vectors()[0], network.folder)
    for first in range(0, updates, TOGETHER):
        heads = [node.to_bytes(8, "little") + store.head(KEY.run) for node, store in enumerate(stores)]
        lines: list[list[Journal]] = [[] for _ in stores]
        for step in range(first + 1, min(first + TOGETHER, updates) + 1):
            node = int(path[step - 1])
            point = Position(launch, step, 0)
            token = Token(point, model, False, launch) if step % every == 0 or step == updates else None
            sender = heads[int(path[step - 2])] if step > 1 else b""
            witness = sender if len(sender) > 8 else b""
            lines[node].append(Journal(KEY, "update", point, token, "", step - 1, 0, 0.0, witness))
        for store, some in zip(stores, lines, strict=True):
            store.write(some, time=1e9 + first * 1e-3, now=first * 1e-3)
    point = Position(launch, updates, 1)
    end = Journal(KEY, "finish", point, Token(point, model, True, launch), "", updates, 0, 0.0)
    stores[int(path[updates])].write([end], time=2e9, now=updates * 1e-3)
    for store in stores:
        store.close()


def main() -> None:
    """Make up the journals, serve them, and collect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    every = max(given.updates // MARKS, 1)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        spec = folder / "ring.toml"
        spec.write_text(SPEC.format(nodes=given.nodes, updates=given.updates, every=every))
        network = init(spec, folder / "net")
        fill(network, given.updates, every)
        subprocess.run([*COMMAND, "up", str(network.folder), "--detach"], check=True)
        try:
            began = time.perf_counter()
            process = subprocess.Popen([*COMMAND, "collect", str(network.folder)])
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
        finally:
            supervisor.end(network.folder)
    assert status == 0, "it could not be collected"
    found = {"updates": given.updates, "seconds": round(seconds, 2), "megabytes": round(used.ru_maxrss / 1024)}
    print(json.dumps(found | {"machine": machine()}))
    if given.json:
        given.json.write_text(json.dumps(found | {"machine": machine()}))


if __name__ == "__main__":
    main()

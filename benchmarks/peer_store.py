"""What a write to the store of a node costs, and what its messages cost: microseconds each.

    python benchmarks/peer_store.py [FOLDER]

CPU time is that of the process, without durability; the time with it is that of the disk under FOLDER.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from freewalk.peers.node.store import Store
from freewalk.peers.protocol.messages import Journal, Offer, Save, Transfer
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Position, Token, Version
from freewalk.peers.protocol.wire import decode, encode

WRITES = 2000
KEY = Key("first", 0)
GENERATION = Generation(0, 3)


def token(step, folder, size=10):
    payload = Payload.of({"x": np.full(size, float(step))}, folder)
    return Token(Position(GENERATION, step, 0), payload, due=False, origin=GENERATION)


def custody(one, versions=()):
    return Custody(GENERATION, one.point, one, None, Loan(2, one.point), one.point, (), versions)


def timed(function, items):
    """CPU and wall-clock microseconds per item."""
    cpu, wall = time.process_time(), time.perf_counter()
    for item in items:
        function(item)
    return (time.process_time() - cpu) * 1e6 / len(items), (time.perf_counter() - wall) * 1e6 / len(items)


def writes(folder, durable, journal=False, versions=0):
    with Store(folder, durable) as store:
        tokens = [token(step, store.models) for step in range(WRITES)]
        kept = [Version(one.point, one.point, one.payload, 1) for one in tokens]
        batches = [
            [Save(KEY, custody(one, tuple(kept[max(0, index - versions) : index])))]
            + [Journal(KEY, "update", one.point)] * journal
            for index, one in enumerate(tokens)
        ]
        return timed(lambda batch: store.write(batch, 0.0), batches)


def shown(pair):
    return f"{pair[0]:8.1f} {pair[1]:8.1f}"


def main(where):
    with TemporaryDirectory(dir=where) as folder:
        root = Path(folder)
        print("microseconds                                   CPU    wall")
        writes(root / "first", durable=False)  # what is done once
        for name, options in {
            "write, not durable": {"durable": False},
            "write and journal, not durable": {"durable": False, "journal": True},
            "write, 256 versions, not durable": {"durable": False, "versions": 256},
            "write, durable": {"durable": True},
        }.items():
            print(f"{name:40} {shown(writes(root / name, **options))}")
        tokens = [token(step, root) for step in range(WRITES)]
        for name, messages in {
            "Offer": [Offer(KEY, one.point) for one in tokens],
            "Transfer": [Transfer(KEY, one) for one in tokens],
        }.items():
            sent = [encode(message) for message in messages]
            print(f"{'encode ' + name:40} {shown(timed(encode, messages))}")
            print(f"{'decode ' + name:40} {shown(timed(decode, sent))}")
        print(f"{'Payload.of, d = 10':40} {shown(timed(lambda step: token(step, root), range(WRITES)))}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

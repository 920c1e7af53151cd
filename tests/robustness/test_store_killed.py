"""A process that writes without end is killed at random instants: its disk holds one of its last two states, whole."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from freewalk.peers.node.store import Store
from freewalk.peers.protocol.token import Key

# One process imports everything, and forks a writer for each line that it reads.
WRITERS = """
import os
import sys
from freewalk.peers.protocol.messages import Journal, Save
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.node.store import Store
from freewalk.peers.protocol.token import Custody, Generation, Key, Position, Token, Version
import numpy as np

def write(folder, size):
    key, launch = Key("first", 0), Generation(0, 0)
    store = Store(folder)
    known = store.load().get(key)
    step = 0 if known is None else known.token.point.step
    os.write(1, b"%d\\n%d\\n" % (os.getpid(), step))
    while True:
        step += 1
        point = Position(launch, step, 0)
        token = Token(point, Payload.of({"x": np.full(size, float(step))}, store.models), False, launch)
        kept = tuple(
            Version(*[Position(launch, one, 0)] * 2, Payload.of({"m": np.full(3, one)}, store.models), one)
            for one in range(max(1, step - 4), step + 1)
        )
        journal = Journal(key, "update", point, token if step % 5 == 0 and size < 100 else None)
        store.write([Save(key, Custody(launch, point, token, versions=kept)), journal], time=float(step))
        os.write(1, b"%d\\n" % step)

for line in sys.stdin:
    folder, size = line.rstrip().rsplit(" ", 1)
    child = os.fork()
    if child == 0:
        try:
            write(folder, int(size))
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    os.write(1, b"ended\\n")
"""


@pytest.fixture(scope="module")
def writers():
    command = [sys.executable, "-c", WRITERS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize(("size", "kills"), [(10, 12), (100_000, 8)])
def test_killed_at_random_instants(tmp_path, writers, size, kills):
    draw, step = random.Random(size), 0
    for _ in range(kills):
        writers.stdin.write(f"{tmp_path} {size}\n")
        writer = int(writers.stdout.readline())
        time.sleep(draw.uniform(0, 0.15))
        os.kill(writer, signal.SIGKILL)
        told = [int(line) for line in iter(writers.stdout.readline, "ended\n")]
        assert told[0] == step
        with Store(tmp_path) as store:
            step = _checked(store, size)
        assert step in (told[-1], told[-1] + 1)
    assert step > kills


def _checked(store, size):
    """The step of what is there, which must be whole."""
    known = store.load().get(Key("first", 0))
    if known is None:
        return 0
    step = known.token.point.step
    assert known.seen == known.token.point
    np.testing.assert_array_equal(known.token.payload.arrays()["x"], np.full(size, float(step)))
    assert [one.visits for one in known.versions] == list(range(max(1, step - 4), step + 1))
    assert all((one.payload.arrays()["m"] == one.visits).all() for one in known.versions)
    lines = list(store.journal())
    assert [line.point.step for line in lines] == list(range(1, step + 1))
    marked = [line for line in lines if line.token is not None]
    assert all((line.token.payload.arrays()["x"] == line.point.step).all() for line in marked)
    assert len(list(store.models.iterdir())) == (0 if size == 10 else 1)
    return step

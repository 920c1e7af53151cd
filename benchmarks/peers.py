"""The cost of a hop between processes: python benchmarks/peers.py [--json FILE] [--folder FOLDER] [--beside REPO]

Two nodes on a path hand one token back and forth, offers included, over mutual TLS. A small model (d = 10) gives hops
per second with and without durability, and what a hop is made of. A model of 100 MB, which relays forward, gives MB/s
per hop and the memory that a node takes while it forwards, beside what it takes when idle.

Machines are shared and noisy: cases take turns, and the best tenth of all runs of a case counts. The disk is that of
FOLDER. `--profile FILE` writes what the nodes did, as cProfile saw it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from timeit import repeat

import grpc
import numpy as np
from timing import machine

from freewalk.peers.network.config import NodeConfig, PeerTable
from freewalk.peers.network.init import Network, init
from freewalk.peers.network.toml import write_config
from freewalk.peers.node import process as running
from freewalk.peers.node.data import Updater
from freewalk.peers.node.server import Identity
from freewalk.peers.node.store import Store
from freewalk.peers.operator import collect
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol.messages import Compute, Journal, Save
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Custody, Generation, Key, Loan, Position, Token

SPEC = """
[graph]
kind = "path"
n = 2
[problem]
kind = "LeastSquares"
dim = 10
samples = 2
[run]
steps = {steps}
every = {steps}
seed = 1
[[walk]]
label = "hops"
design = {{ {design} }}
rule = {{ kind = "SGD", step = 0.001 }}
"""
WALK = 'kind = "SimpleWalk"'
JUMPS = 'kind = "MHLJ", jump = 0.999, stop = 0.001, hops = 30'  # with seed 1, one move of 27 hops
SMALL, LARGE = 10, 12_500_000  # numbers of a model
KEY = Key("first", 0)
STEPS = count(1)
PARTS = 10  # of a run, of which the best counts
SENT = 1  # messages of gRPC that a token waits for: its own. Offers and answers travel while updates are made
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """A run of two nodes.

    Parameters
    ----------
    hops
        How often the model was handed over.
    rate, mean
        Hops a second in the best tenth of the run, and in all of it.
    cpu
        Processor seconds of both nodes per hop.
    memory
        Bytes that a node took at its peak, beside what it took before the run.
    """

    hops: int
    rate: float
    mean: float
    cpu: float
    memory: int


def measure(folder: Path | None, steps: int, durable=True, plain=False, size=SMALL, profile="") -> Measured:
    """Two new nodes, one token of so many updates; those of a large model are relays."""
    with TemporaryDirectory(dir=folder) as temporary:
        network = made(Path(temporary), steps, plain, size)
        with nodes(network, durable, profile) as processes:
            return asyncio.run(hand_over(network, processes, size))


def made(folder: Path, steps: int, plain: bool, size: int = SMALL) -> Network:
    """The folders of two nodes."""
    spec = folder / "hops.toml"
    spec.write_text(SPEC.format(steps=steps, design=WALK if size == SMALL else JUMPS))
    network = init(spec, folder / "net", plain=plain, lease=60.0)
    for node in (0, 1) if size != SMALL else ():
        values = network.config(node).model_dump(exclude_none=True)
        values["node"]["data"] = {"relay": True, "dim": size}
        values["run"]["dim"] = size
        write_config(NodeConfig.of(values, network.path(node).parent), network.path(node))
    return network


@contextlib.contextmanager
def nodes(network: Network, durable: bool, profile: str) -> Iterator[list[int]]:
    """The processes of a network."""
    started = []
    try:
        for node in network.nodes:
            into = ["--profile", f"{profile}-{node.number}"] if profile else []
            more = [*into, *([] if durable else ["--not-durable"])]
            started.append(child("--node", str(network.path(node.number)), *more))
        yield [process.pid for process in started]
    finally:
        end(started)


def child(*arguments: str) -> subprocess.Popen:
    """This program once more, in a process of its own."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, __file__, *arguments], env={**os.environ, **one_thread})


def end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()


async def hand_over(network: Network, processes: list[int], size: int) -> Measured:
    """Launch one token and see it through."""
    other = processes[1 - network.starts[0]]  # after one step it has forwarded, and made no update
    with TemporaryDirectory(dir=network.folder) as folder:
        payload = Payload.of({"x": np.zeros(size)}, Path(folder))
        async with collect.operator_of(network) as operator:
            while None in (await operator.statuses(1.0)).values():
                await asyncio.sleep(0.05)
            cpu, memory = sum(map(spent, processes)), resident(other, "VmRSS")
            permit = b"" if network.signatures is None else network.signatures.permit(KEY, network.starts[0])
            await operator.launch(network.starts[0], KEY, payload, permit)
            here = []
            while not here or not here[0].told.finished:
                await asyncio.sleep(0.2)
                here = collect.whereabouts("first", await operator.statuses(), network.trust)
            cpu, memory = sum(map(spent, processes)) - cpu, resident(other, "VmHWM") - memory
            calls = [operator._call(node, "Journal", ask.Lines(run=KEY.run)) for node in (0, 1)]
            pages = [page for call in calls async for page in call]
    # One clock for both nodes; the age of a token leaves out what a message takes.
    lines = sorted((time, messages) for page in pages for time, messages in zip(page.times, page.messages, strict=True))
    span = max(1, len(lines) // PARTS)
    best = max(rate(*lines[first : first + span + 1 : span]) for first in range(0, len(lines) - span, span))
    hops = lines[-1][1] - lines[0][1]
    return Measured(hops, best, rate(lines[0], lines[-1]), cpu / hops, memory)


def rate(before, after) -> float:
    """Hops a second between two lines of the journals."""
    return (after[1] - before[1]) / (after[0] - before[0])


def spent(process: int) -> float:
    """Processor seconds of a process until now."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(process: int, name: str) -> int:
    """Bytes of a process: "VmRSS" now, "VmHWM" at the peak."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


# The parts of a hop, each by itself.


def round_trip(folder: Path | None, plain: bool, many: int = 200, rounds: int = 10) -> float:
    """Seconds in which a message of 200 bytes goes there and back on a bare stream."""
    with TemporaryDirectory(dir=folder) as temporary:
        network = made(Path(temporary), 1, plain)
        echo = child("--echo", str(network.path(0)))
        try:
            one, me = network.nodes[0], identity(network.config(1))
            return asyncio.run(_ping(me, one, many, rounds))
        finally:
            echo.kill()
            echo.wait()


async def _ping(me: Identity, peer: PeerTable, many: int, rounds: int) -> float:
    async with me.channel(peer) as channel:
        call, best = channel.stream_stream("/benchmark/Echo")(wait_for_ready=True), float("inf")
        for _ in range(rounds):
            began = time.perf_counter()
            for _ in range(many):
                await call.write(bytes(200))
                await call.read()
            best = min(best, (time.perf_counter() - began) / many)
        call.cancel()
        return best


def identity(config: NodeConfig) -> Identity:
    certificate, key, authority = [path.read_bytes() for path in config.credentials or ()] or (None, None, None)
    return Identity(config.node.name, certificate, key, authority)


async def echo(config: NodeConfig) -> None:
    """Send back whatever comes, until killed."""

    async def back(stream, context):
        async for data in stream:
            yield data

    class Handlers(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.stream_stream_rpc_method_handler(back)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Handlers(),))
    identity(config).listen(server, config.node.listen)
    await server.start()
    await server.wait_for_termination()


def by_itself(folder: Path | None) -> dict[str, float]:
    """Seconds of an update, and of a write to the store with and without the disk."""
    with TemporaryDirectory(dir=folder) as temporary:
        root = Path(temporary)
        config = made(root, 1, plain=True).config(0)
        updater = Updater(config.share(), config.rule, 1.0, config.settings(), SMALL, "float64", root)
        point = Position(Generation(0, 0), 1, 0)
        token = Token(point, Payload.of({"x": np.zeros(SMALL)}, root), True, point.generation)
        found = {"update": best(lambda: updater.update(Compute(KEY, token, None)))}
        for name, durable in {"store": False, "fsync": True}.items():
            with Store(root / name, durable) as store:
                found[name] = best(lambda store=store: store.write(_next_write(root), 0.0))
        return {**found, "fsync": found["fsync"] - found["store"]}


def _next_write(folder: Path) -> list[Save | Journal]:
    point = Position(Generation(0, 0), next(STEPS), 0)
    token = Token(point, Payload.of({"x": np.full(SMALL, float(point.step))}, folder), True, point.generation)
    custody = Custody(point.generation, point, token, None, Loan(1, point), point)
    return [Save(KEY, custody), Journal(KEY, "update", point)]


def best(work, number: int = 100) -> float:
    return min(repeat(work, number=number, repeat=10)) / number


def split(folder: Path | None, durable: Measured) -> dict[str, float]:
    """Microseconds of a durable hop by what they were spent on; the rest is Python and waiting for the processor,
    which the two nodes also need for all messages that the token does not wait for.
    """
    secured, plain, alone = round_trip(folder, False), round_trip(folder, True), by_itself(folder)
    parts = {"gRPC": SENT / 2 * plain, "TLS": SENT / 2 * max(0.0, secured - plain), **alone}
    parts["rest"] = 1 / durable.rate - sum(parts.values())
    return {name: 1e6 * seconds for name, seconds in parts.items()}


CASES = {
    "durable, mutual TLS": {},
    "not durable, mutual TLS": {"durable": False},
    "durable, plain": {"plain": True},
    "not durable, plain": {"durable": False, "plain": True},
}


def compare(folder: Path | None, steps: int, rounds: int, profile: str) -> dict[str, object]:
    """All of it, in one run."""
    found: dict[str, list[Measured]] = {name: [] for name in [*CASES, "100 MB, durable, mutual TLS"]}
    for _ in range(rounds):
        for name, case in CASES.items():
            found[name].append(measure(folder, steps, profile=profile, **case))
    for _ in range(min(2, rounds)):
        found["100 MB, durable, mutual TLS"].append(measure(folder, 1, size=LARGE))
    chosen = {name: max(several, key=lambda one: one.rate) for name, several in found.items()}
    print(f"{'':30} {'hops/s':>8} {'mean':>8} {'CPU µs/hop':>11} {'of the first':>13}")
    first = chosen["durable, mutual TLS"]
    for name in CASES:
        one = chosen[name]
        cpu = min(other.cpu for other in found[name])
        print(f"{name:30} {one.rate:8.0f} {one.mean:8.0f} {1e6 * cpu:11.0f} {one.rate / first.rate:13.2f}")
    parts = split(folder, first)
    print("\na durable hop, µs: " + ", ".join(f"{name} {value:.0f}" for name, value in parts.items()))
    large = chosen["100 MB, durable, mutual TLS"]
    speed, mean = (8e-6 * LARGE * value for value in (large.rate, large.mean))
    print(f"100 MB: {speed:.0f} MB/s per hop (mean {mean:.0f}), {large.memory / 1e6:.0f} MB beside an idle node")
    return {"machine": machine(), "parts": parts, "cases": {name: one.__dict__ for name, one in chosen.items()}}


def beside(other: Path, rounds: int, options: list[str]) -> None:
    """How this checkout compares with another, whose own benchmark runs in turns with this one."""
    here, found = Path(__file__).parents[1], defaultdict[tuple[Path, str], list[dict[str, float]]](list)
    with TemporaryDirectory() as folder:
        for root in (here, other) * rounds:
            command = [
                sys.executable,
                str(root / "benchmarks/peers.py"),
                "--rounds=1",
                f"--json={folder}/found",
                *options,
            ]
            environment = {**os.environ, "PYTHONPATH": str(root / "src")}
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
            for name, one in json.loads(Path(folder, "found").read_text())["cases"].items():
                found[root, name].append(one)
    print(f"{'of the other checkout':30} {'hops/s':>8} {'mean':>8} {'CPU per hop':>12}")
    for name in [*CASES, "100 MB, durable, mutual TLS"]:
        best = [[max(one["rate"] for one in found[root, name]) for root in (here, other)]]
        best += [[median(one["mean"] for one in found[root, name]) for root in (here, other)]]
        best += [[min(one["cpu"] for one in found[root, name]) for root in (here, other)]]
        print(f"{name:30} " + " ".join(f"{ours / theirs:8.2f}" for ours, theirs in best))


def work(config: NodeConfig, durable: bool, profile: str) -> None:
    """One node, in a process of its own."""
    if not profile:
        running.run(config, durable)
        return
    import cProfile

    profiler = cProfile.Profile()
    profiler.runcall(running.run, config, durable)
    profiler.dump_stats(profile)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, help="where nodes keep their state")
    options.add_argument("--steps", type=int, default=3000, help="hops of a run with a small model")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--json", type=Path, help="where to write the figures")
    options.add_argument("--profile", default="")
    options.add_argument("--beside", type=Path, help="another checkout, which takes turns with this one")
    options.add_argument("--not-durable", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--node", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--echo", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.node:
        work(NodeConfig.read(given.node), not given.not_durable, given.profile)
    elif given.echo:
        asyncio.run(echo(NodeConfig.read(given.echo)))
    elif given.beside:
        beside(
            given.beside,
            given.rounds,
            [f"--steps={given.steps}", *(f"--folder={one}" for one in [given.folder] if one)],
        )
    else:
        found = compare(given.folder, given.steps, given.rounds, given.profile)
        if given.json:
            given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

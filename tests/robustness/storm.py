"""A network of processes in a storm: nodes are killed (-9) and stopped, links are cut, and nothing may be lost.

`python tests/robustness/storm.py --nodes 30 --steps 5000 --kills 200` is the long version.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import tomlkit
from networks import MHLJ, assert_same, repeated, written

from freewalk.errors import PeerError
from freewalk.peers.network import supervisor
from freewalk.peers.network.config import CONFIG
from freewalk.peers.operator import collect

COMMAND = [sys.executable, "-m", "freewalk.cli"]
SAG = 'design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 3 }\nrule = { kind = "SAG", step = 1e-3 }'


class Cable:
    """One direction of an edge, which can be cut: whatever passes goes through this process."""

    def __init__(self, target):
        self.target, self.cut, self.ends = target, False, set()

    async def lay(self):
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def carry(self, reader, writer):
        try:
            if self.cut:
                return
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            self.ends |= {writer, back}
            await asyncio.gather(self.pump(reader, back), self.pump(there, writer))
        except OSError:
            pass
        finally:
            writer.close()

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def sever(self):
        self.cut = True
        for end in self.ends:
            end.transport.abort()
        self.ends.clear()


@asynccontextmanager
async def cables(network, rng, share):
    """Some of the edges, both ways, lead through cables from now on; by node."""
    laid = {}
    for member in network.nodes:
        path = network.folder / member.folder / CONFIG
        config = tomlkit.parse(path.read_text())
        for neighbour in config["neighbour"]:
            if rng.random() < share:
                cable = Cable(int(neighbour["address"].rpartition(":")[2]))
                neighbour["address"] = f"127.0.0.1:{await cable.lay()}"
                laid.setdefault(member.number, []).append(cable)
        path.write_text(tomlkit.dumps(config))
    try:
        yield laid
    finally:
        for some in laid.values():
            for cable in some:
                cable.sever()
                cable.server.close()


def up(network):
    """Start all nodes, as processes."""
    done = subprocess.run([*COMMAND, "network", "up", str(network.folder), "--detach"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def down(network):
    supervisor.end(network.folder)


class Storm:
    """What happens to the nodes of a network while a run is under way.

    Parameters
    ----------
    network
        The network.
    laid
        Its cables, by node.
    rng
        Of the faults.
    pause
        The mean number of seconds between two of them.
    """

    def __init__(self, network, laid, rng, pause):
        self.network, self.laid, self.rng, self.pause = network, laid, rng, pause
        self.lease = network.config(0).times.lease
        self.counts = Counter()

    async def rage(self, operator, run, kills):
        """Let so many nodes be killed, and others stopped or cut off in between; ends early if the run does."""
        near = []
        while self.counts["kills"] < kills:
            await asyncio.sleep(self.rng.expovariate(1 / self.pause))
            statuses = await operator.statuses(0.5)
            here = collect.whereabouts(run, statuses)
            if here and all(one.told.finished for one in here):
                return
            near = self.aim(run, statuses) or near
            await self.strike(near)

    def aim(self, run, statuses):
        """Who holds a token of the run, or a copy, or is about to get one."""
        found = set()
        for node, status in statuses.items():
            for walk in () if status is None else status.walks:
                if walk.run == run and walk.HasField("point"):
                    found |= {node} | ({walk.peer} if walk.peer >= 0 else set())
        return sorted(found)

    async def strike(self, near):
        processes = supervisor.processes(self.network.folder).get("nodes", {})
        # Those that are aimed at are often down already, so that the others must wait for their turn.
        enough = self.counts["aimed"] >= 0.6 * self.counts["kills"]
        aimed = bool(near) and not (enough and self.rng.random() < 0.5)
        node = self.rng.choice(near if aimed else range(len(self.network.nodes)))
        process = processes.get(self.network.nodes[node].name)
        if process is None:
            return
        kind = self.rng.choices(["kill", "pair", "stop", "cut"], [8, 2, 1, 1])[0]
        if kind == "cut" and node in self.laid:
            asyncio.get_running_loop().create_task(self._cut(self.laid[node]))
            self.counts["cuts"] += 1
        elif kind == "stop":
            if _signal(process, signal.SIGSTOP):
                self.counts["stops"] += 1
                seconds = self.rng.uniform(0.1, 4 * self.lease)
                asyncio.get_running_loop().call_later(seconds, _signal, process, signal.SIGCONT)
        else:
            victims = [process]
            if kind == "pair" and near:
                victims.append(processes.get(self.network.nodes[self.rng.choice(near)].name))
            for victim in {one for one in victims if one is not None}:
                if _signal(victim, signal.SIGKILL):
                    self.counts["kills"] += 1
                    self.counts["aimed"] += aimed

    async def _cut(self, some):
        for cable in some:
            cable.sever()
        await asyncio.sleep(self.rng.uniform(0.1, 3 * self.lease))
        for cable in some:
            cable.cut = False


def _signal(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


async def weather(network, laid, rng, run, kills, pause, patience):
    """One run through a storm: launched, collected and repeated."""
    storm = Storm(network, laid, rng, pause)
    async with collect.operator_of(network) as operator:
        for _ in range(50):
            try:
                await collect.launch(network, run)
                break
            except PeerError:  # its first node is down
                await asyncio.sleep(0.2)
        await storm.rage(operator, run, kills)
    await collect.finished(network, run, patience)
    for attempt in range(50):
        try:
            collected = await collect.collect(network, run)
            break
        except PeerError as error:
            if attempt == 49 or "answer" not in str(error):
                raise
            await asyncio.sleep(0.2)
    assert_same(collected, repeated(network, collected))
    told = collected.record.provenance
    storm.counts.update(
        departures=len(told["departures"]), reissues=told["reissues"], discarded=told["discarded_updates"]
    )
    return storm.counts


def times(network, lease, patience, retry):
    """Have all nodes be as impatient as a test."""
    for member in network.nodes:
        path = network.folder / member.folder / CONFIG
        config = tomlkit.parse(path.read_text())
        config["times"] = {**config.get("times", {}), "lease": lease, "patience": patience, "retry": retry}
        path.write_text(tomlkit.dumps(config))


async def soak(folder, nodes, steps, kills, seed, walk, tokens=1, pause=0.15):
    """The long version."""
    rng = random.Random(seed)
    graph = f'kind = "ring"\nn = {nodes}'
    options = {"steps": steps, "every": max(1, steps // 20), "seed": seed}
    network = written(folder, graph=graph, walk=f"{walk}\ntokens = {tokens}", **options)
    times(network, lease=2.0, patience=1.0, retry=0.2)
    async with cables(network, rng, 0.2) as laid:
        await asyncio.to_thread(up, network)
        try:
            return await weather(network, laid, rng, "soak", kills, pause, patience=1800)
        finally:
            await asyncio.to_thread(down, network)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A network of processes in a storm.")
    for name, value in {"nodes": 30, "steps": 5000, "kills": 200, "seed": 1, "tokens": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--pause", type=float, default=0.15)
    parser.add_argument("--sag", action="store_true")
    given = vars(parser.parse_args())
    given["walk"] = SAG if given.pop("sag") else MHLJ
    home = Path(tempfile.mkdtemp())
    began = time.time()
    try:
        counts = asyncio.run(soak(home, **given))
    except BaseException:
        print(f"what is left is in {home}")
        raise
    shutil.rmtree(home)
    print(json.dumps({**counts, "seconds": round(time.time() - began)}))

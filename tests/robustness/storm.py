"""A network of processes in a storm: nodes are killed (-9) and stopped, links are cut, and nothing may be lost.

`python tests/robustness/storm.py --nodes 30 --steps 5000 --kills 200` is the long version. With `--disks 20`, disks are
taken away from nodes, or replaced by old ones: what is then missing must be named. With `--liar`, a node lies; with
`--remembers`, walks remember where they came from.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path

import numpy as np
import tomlkit

sys.path.append(str(Path(__file__).parents[1] / "peers"))  # where pytest does not do it
from attackers import lies, sent
from networks import MHLJ, REMEMBERS, assert_same, repeated, written

import freewalk as fw
from freewalk.errors import PeerError
from freewalk.peers.network import supervisor
from freewalk.peers.network.config import CONFIG
from freewalk.peers.node import process
from freewalk.peers.operator import collect
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.token import Key
from freewalk.peers.protocol.wire import from_point
from freewalk.runtimes import Reference

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
    run
        The name of the run.
    laid
        Its cables, by node.
    rng
        Of the faults.
    pause
        The mean number of seconds between two of them.
    """

    def __init__(self, network, run, laid, rng, pause, disks=0):
        self.network, self.run, self.laid, self.rng, self.pause = network, run, laid, rng, pause
        self.lease = network.config(0).times.lease
        self.disks, self.copies = disks, {}
        self.lost = set()  # updates, (walk, step) each, whose lines went with a disk
        self.gone = defaultdict(list)  # by walk: the points of the tokens that went with a disk
        self.counts = Counter()

    async def rage(self, operator, kills):
        """Let so many nodes be killed, and others stopped or cut off in between; ends early if the run does."""
        near = []
        while self.counts["kills"] < kills:
            await asyncio.sleep(self.rng.expovariate(1 / self.pause))
            statuses = await operator.statuses(0.5)
            here = collect.whereabouts(self.run, statuses, self.network.trust)
            if here and all(one.told.finished for one in here):
                return
            near = self.aim(statuses) or near
            if self.counts["disks"] < self.disks * self.counts["kills"] / kills:
                anybody = range(len(self.network.nodes))  # if both copies of a token were taken, little would follow
                await asyncio.to_thread(
                    self.take, self.rng.choice(near if near and self.rng.random() < 0.3 else anybody)
                )
            await self.strike(near)

    def aim(self, statuses):
        """Who holds a token of the run, or a copy, or is about to get one."""
        found = set()
        for node, status in statuses.items():
            for walk in () if status is None else status.walks:
                if walk.run == self.run and walk.HasField("point"):
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

    def take(self, node):
        """Take the disk of a node away, or give it an old one; both while it is not running."""
        running = supervisor.processes(self.network.folder)
        process, state = running.get("nodes", {}).get(self.network.nodes[node].name), self.network.config(node).state
        if process is None:
            return
        copy = self.network.folder / f"copy-{node}"
        if copy.exists() or self.rng.random() < 0.5:  # lost, or replaced by the copy that was made before
            os.kill(running["supervisor"], signal.SIGSTOP)
            try:
                while _stage(running["supervisor"]) != "T":
                    time.sleep(0.001)
                if not (_runs(process) and state.exists()):  # another has been started, or this one just now
                    return
                _signal(process, signal.SIGKILL)
                while _runs(process):
                    time.sleep(0.01)
                self.lost |= noted(state, self.run) - (noted(copy, self.run) if copy.exists() else set())
                for walk, point in held(state, self.run):
                    self.gone[walk].append(point)
                shutil.rmtree(state)
                if copy.exists():
                    copy.rename(state)
                    self.counts["old disks"] += 1
                else:
                    self.counts["lost disks"] += 1
            finally:
                os.kill(running["supervisor"], signal.SIGCONT)
            self.counts["disks"] += 1
        elif _signal(process, signal.SIGSTOP):
            while _stage(process) not in ("T", "Z", ""):
                time.sleep(0.001)
            if state.exists():  # or it was taken a moment ago
                shutil.copytree(state, copy)
            _signal(process, signal.SIGCONT)

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


def _runs(process):
    """Whether a process has not ended; its parent may not know yet that it has."""
    return _stage(process) not in ("", "Z")


def _stage(process):
    """What the system says that a process does, as a letter."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def noted(state, run):
    """The updates of a run in the journal of a node that is not running."""
    lines = "SELECT walks.walk, step FROM journal JOIN walks ON walks.number = journal.walk"
    return set(rows(state, f"{lines} WHERE kind = 'update' AND run = ?", run))


def held(state, run):
    """The tokens of a run on the disk of a node that is not running, as (walk, point)."""
    known = rows(state, "SELECT walks.walk, state FROM custody JOIN walks ON number = custody.walk WHERE run = ?", run)
    custody = [(walk, wire.pb.Custody.FromString(data)) for walk, data in known]
    return [(walk, from_point(one.token.point)) for walk, one in custody if one.HasField("token")]


def rows(state, statement, run):
    with tempfile.TemporaryDirectory() as folder:
        for file in state.glob("node.sqlite*"):
            shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder, "node.sqlite"))) as connection:
            made = connection.execute("SELECT name FROM sqlite_master").fetchall()  # or killed as it began
            return connection.execute(statement, (run,)).fetchall() if made else []


@asynccontextmanager
async def lying(network, liar, run):
    """A node that lies to its neighbours, besides doing its duty."""
    me = process.identity_of(network.config(liar))

    async def lie():
        async with collect.operator_of(network) as operator:
            while True:
                walks = [walk for one in (await operator.statuses(0.5)).values() if one for walk in one.walks]
                points = {Key(run, walk.walk): from_point(walk.point) for walk in walks if walk.HasField("point")}
                said = [wire.encode(one) for key, point in points.items() for one in lies(network, liar, key, [point])]
                for neighbour in network.config(liar).neighbour:
                    async with me.channel(network.nodes[neighbour.number]) as channel:
                        await asyncio.wait([asyncio.create_task(sent(channel, said))], timeout=5)
                await asyncio.sleep(0.2)

    task = asyncio.create_task(lie())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def weather(network, laid, rng, run, kills, pause, patience, disks=0, liar=None):
    """One run through a storm: launched, collected and repeated."""
    storm = Storm(network, run, laid, rng, pause, disks)
    async with collect.operator_of(network) as operator:
        for _ in range(50):
            try:
                await collect.launch(network, run)
                break
            except PeerError:  # its first node is down
                await asyncio.sleep(0.2)
        async with nullcontext() if liar is None else lying(network, liar, run):
            await storm.rage(operator, kills)
    if disks:
        return await reported(network, run, storm, patience)
    for attempt in range(50):
        await collect.finished(network, run, patience)
        try:
            collected = await collect.collect(network, run)
            break
        except PeerError as error:  # a node is not back yet, or was just now, and re-issued what it had sent
            if attempt == 49 or not any(words in str(error) for words in ("answer", "is newer than")):
                raise
            await asyncio.sleep(0.2)
    assert_same(collected, repeated(network, collected))
    told = collected.record.provenance
    storm.counts.update(
        departures=len(told["departures"]), reissues=told["reissues"], discarded=told["discarded_updates"]
    )
    return storm.counts


async def reported(network, run, storm, patience):
    """After a storm that took disks: whatever is missing went with one of them, and is named; the rest is true."""
    async with collect.operator_of(network) as operator:
        _, here = await operator.located(run)
    if vanished := set(collect.keys(network, run)) - {one.key for one in here}:
        assert all(storm.gone[key.walk] for key in vanished), vanished  # with the disks of all who had heard of it
        storm.counts["walks lost"] += len(vanished)
        return storm.counts
    try:
        await collect.finished(network, run, patience)
    except PeerError as error:
        if "no node holds" not in str(error):  # the only token of a walk went with a disk
            raise
        async with collect.operator_of(network) as operator:
            _, here = await operator.located(run)
        for one in here:
            if one.state == "lost":
                storm.counts["walks lost"] += 1
                assert max(storm.gone[one.key.walk], default=()) >= one.point, (storm.gone, one)
    collected = await collect.collect(network, run, partial=True)
    wrong = "found more than once", "was changed", "also ended or went on"
    gaps = collected.record.provenance["gaps"]
    assert not [gap for gap in gaps if any(words in gap for words in wrong)], gaps
    await replay(network, collected)
    paths = collected.record.data.path.values
    missing = {(row, step + 1) for row, path in enumerate(paths) for step in np.flatnonzero(path[:-1] < 0)}
    steps = {row: story.end.point.step for row, story in enumerate(collected.stories)}
    missing = {(row, step) for row, step in missing if step <= steps[row]}
    assert missing <= storm.lost, missing - storm.lost
    lost = [f"no node holds the token of walk {one.key.walk}" for one in here if one.state == "lost"]
    assert all(any(words in gap for gap in gaps) for words in lost), gaps
    named = [gap for gap in gaps if "found in none" in gap]
    assert {row for row, _ in missing} == {row for row in steps if any(gap.startswith(f"walk {row}:") for gap in named)}
    storm.counts.update(missing=len(missing), gaps=len(gaps), updates=sum(steps.values()))
    return storm.counts


async def replay(network, collected):
    """A simulation, which is led over what is missing, goes where the walks went, and learns what they learned."""
    paths, ways = collected.record.data.path.values, {(row, step): node for row, step, node in collected.departures}
    for row, (path, story) in enumerate(zip(paths, collected.stories, strict=True)):
        last = story.updates - (not story.finished)  # a copy has not moved since its last update
        unknown = [step for step in range(path.size - 1) if step >= last or min(path[step : step + 2]) < 0]
        ways |= {(row, step): max(int(path[step + 1]), 0) for step in unknown}
    led = Reference(departures=tuple((row, step, node) for (row, step), node in ways.items()))
    task, (_, _, steps, every) = network.task, network.task.start
    options = {"steps": steps, "every": every, "seed": task.job.seed, "start": 0}  # each token as a walk of its own
    many = {"walks": len(paths), "paths": len(paths)}
    reference = fw.learn(task.objective, task.kernel, task.rule, runtime=led, **options, **many).data
    assert np.array_equal(np.where(paths < 0, paths, reference.path.values), paths)
    async with collect.operator_of(network) as operator:
        for path, story, model in zip(paths, collected.stories, reference.final.values, strict=True):
            if story.finished and path.min() >= 0:
                payload = story.end.token.payload
                found = await operator.fetch(story.end.node, payload.digest, payload.size)
                np.testing.assert_allclose(found["x"], model, rtol=1e-9, atol=1e-12)


def times(network, lease, patience, retry):
    """Have all nodes be as impatient as a test."""
    for member in network.nodes:
        path = network.folder / member.folder / CONFIG
        config = tomlkit.parse(path.read_text())
        config["times"] = {**config.get("times", {}), "lease": lease, "patience": patience, "retry": retry}
        path.write_text(tomlkit.dumps(config))


async def soak(folder, nodes, steps, kills, seed, walk, tokens=1, pause=0.15, disks=0, liar=False):
    """The long version: runs, one after the other, until there were so many kills."""
    rng = random.Random(seed)
    graph = f'kind = "ring"\nn = {nodes}'
    options = {"steps": steps, "every": max(1, steps // 20), "seed": seed}
    network = written(folder, graph=graph, walk=f"{walk}\ntokens = {tokens}", **options)
    times(network, lease=2.0, patience=1.0, retry=0.2)
    total = Counter()
    async with cables(network, rng, 0.2) as laid:
        await asyncio.to_thread(up, network)
        try:
            while total["kills"] < kills:  # the next run, if one is over before
                left = {"kills": kills - total["kills"], "disks": max(0, disks - total["disks"])}
                more = {**left, "liar": nodes // 3 if liar else None, "pause": pause, "patience": 1800}
                total.update(await weather(network, laid, rng, f"soak-{total['runs']}", **more))
                total["runs"] += 1
        finally:
            await asyncio.to_thread(down, network)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A network of processes in a storm.")
    for name, value in {"nodes": 30, "steps": 5000, "kills": 200, "seed": 1, "tokens": 1, "disks": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--pause", type=float, default=0.15)
    parser.add_argument("--sag", action="store_true")
    parser.add_argument("--remembers", action="store_true")
    parser.add_argument("--liar", action="store_true")
    given = vars(parser.parse_args())
    sag, remembers = given.pop("sag"), given.pop("remembers")
    if remembers and given["disks"]:  # a simulation that is led remembers nothing after it was
        parser.error("--remembers goes without --disks")
    given["walk"] = SAG if sag else REMEMBERS if remembers else MHLJ
    home = Path(tempfile.mkdtemp())
    began = time.time()
    try:
        counts = asyncio.run(soak(home, **given))
    except BaseException:
        print(f"what is left is in {home}")
        raise
    shutil.rmtree(home)
    print(json.dumps({**counts, "seconds": round(time.time() - began)}))

"""Schedules of what can go wrong: all short ones of a small world, and random ones of larger worlds.

`python tests/robustness/schedules.py 1000000` follows a million of them.
"""

import argparse
import os
import random as randomness
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "peers"))  # where pytest does not do it
from world import Violation, World

import freewalk as fw
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings


@dataclass(frozen=True)
class Faults:
    """How many faults of each kind a schedule may still have; a `deadline` is a timer that runs out too early."""

    crash: int = 0
    drop: int = 0
    twice: int = 0
    deadline: int = 0
    retry: int = 0
    old: int = 0
    die: int = 0

    def less(self, kind):
        return replace(self, **{kind: getattr(self, kind) - 1})


def choices(world, faults):
    """All that can happen next: (kind, arguments) each; kinds that are faults are named as in `Faults`."""
    found, seen = [], set()
    for index, packet in enumerate(world.wires):
        if packet in seen:
            continue
        seen.add(packet)
        found.append(("deliver", index))
        found.extend((kind, index) for kind in ("drop", "twice") if getattr(faults, kind))
    for node, machine in enumerate(world.nodes):
        if machine is None:
            if node not in world.dead:
                found.append(("restart", node))
            continue
        if world.pending[node]:
            found.append(("commit", node))
        found.extend(("compute", node, index) for index in range(len(world.works[node])))
        for timer in sorted(world.timers[node], key=repr):
            kind = "deadline" if timer[1] == "deadline" else "retry"
            if getattr(faults, kind):
                found.append((kind, node, timer))
        if faults.crash:
            found.append(("crash", node))
            if world.pending[node]:
                found.append(("crash", node, "after the commit"))
        if faults.die:
            found.append(("die", node))
    return found


def happen(world, choice, faults):
    """Let it happen; returns the faults that are left."""
    kind, *arguments = choice
    if kind == "twice":
        world.deliver(*arguments, keep=True)
    elif kind in ("deadline", "retry"):
        world.alarm(*arguments)
    elif kind == "crash":
        if len(arguments) > 1:
            world.commit(arguments[0])
            world.wires = tuple(one for one in world.wires if one[0] != arguments[0])  # what it was about to send
        world.crash(arguments[0])
    else:
        getattr(world, kind)(*arguments)
    return faults.less(kind) if hasattr(faults, kind) else faults


def settled(world):
    """Whether a world comes to a good end from here."""
    end = world.copy()
    end.settle()
    end.verify()
    return end


def search(world, faults, most, depth=10**9):
    """Follow every schedule, worlds that are alike only once; returns how many ends were seen, and how many worlds."""
    seen, ends = set(), 0
    stack = [(world, faults, ())]
    while stack and len(seen) < most:
        world, faults, story = stack.pop()
        mark = (world.print(), faults)
        if mark in seen:
            continue
        seen.add(mark)
        try:
            world.check()
            options = choices(world, faults) if len(story) < depth else []
            if faults == Faults() or not options:
                settled(world)
                ends += 1
                continue
            for choice in options:
                after = world.copy()
                stack.append((after, happen(after, choice, faults), (*story, choice)))
        except Violation as violation:
            raise Violation(f"{violation}\nafter {story}") from None
    return ends, len(seen), not stack


def chance(random, make, faults, length, aim=0.0):
    """One random schedule; `aim` is the share of crashes that are aimed at those that hold a token or a copy."""
    world = make()
    disks = [[disk] for disk in world.disks]
    story = []
    try:
        for _ in range(length):
            options = choices(world, faults)
            if not options:
                break
            choice = pick(random, options)
            if choice[0] == "crash" and random.random() < aim:
                holders = [node for node, disk in enumerate(world.disks) if any(one.token for one in disk.values())]
                holders = [node for node in holders if world.nodes[node] is not None]
                if holders:
                    choice = ("crash", random.choice(holders))
            if choice[0] == "restart" and faults.old and random.random() < 0.3:
                node = choice[1]
                choice = ("old", node, len(disks[node]) - 1)
                story.append(choice)
                world.restart(node, random.choice(disks[node]))
                faults = faults.less("old")
            else:
                story.append(choice)
                faults = happen(world, choice, faults)
            if choice[0] == "commit":
                disks[choice[1]].append(world.disks[choice[1]])
            world.check()
        return settled(world)
    except Violation as violation:
        raise Violation(f"{violation}\nafter {story}") from None


def pick(random, options):
    """An event: what is normal ten times as often as a fault."""
    normal = [one for one in options if one[0] in ("deliver", "commit", "compute", "restart")]
    strange = [one for one in options if one not in normal]
    if normal and (not strange or random.random() < 0.9):
        return random.choice(normal)
    return random.choice(strange)


PAIR = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
TRIANGLE = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
HEAVY = [1.0, 5.0, 1.0, 1.0, 1.0]
LARGER = [
    design.kernel(fw.graphs.ring(5), HEAVY)
    for design in (
        fw.designs.SimpleWalk(),
        fw.designs.MHLJ(0.3, 0.5, 3),
        fw.designs.MHLJ(0.5, 0.5, 3, corrected=True),
        fw.designs.NonBacktracking(fw.designs.Metropolis(power=0.5), forget=0.1),
    )
]
REMEMBERS = fw.designs.NonBacktracking(fw.designs.Metropolis(power=0.5)).kernel(fw.graphs.path(2), HEAVY[:2])
SMALL = [PAIR, TRIANGLE, REMEMBERS]
#: Which faults are combined in every possible way, from the smallest to the largest search.
COMBINED = [
    Faults(crash=1),
    Faults(deadline=1),
    Faults(die=1),
    Faults(crash=1, deadline=1),
    Faults(drop=1, deadline=1),
    Faults(twice=1, deadline=1),
    Faults(crash=2),
    Faults(crash=1, deadline=1, drop=1),
    Faults(crash=1, deadline=2, twice=1),
    Faults(crash=2, deadline=1),
    Faults(die=1, crash=1, deadline=1),
]


CHUNK = 250  # random schedules of a task


def every(kernel, steps=2, make=Node):
    """A small world, for all schedules."""
    nodes = kernel.graph.n
    return World(kernel, Settings(seed=1, steps=steps, every=5, nodes=nodes, stores=True), [0], make)


def some(seed, old=False, make=Node):
    """One random schedule of a larger world: 3 to 5 nodes, one walk or two, with or without memory at the nodes."""
    random = randomness.Random(seed)
    kernel = [TRIANGLE, *LARGER][seed // 4 % (1 + len(LARGER))]
    most = {"crash": 8, "drop": 8, "twice": 8, "deadline": 5}
    faults = Faults(**{kind: random.randrange(count) for kind, count in most.items()}, retry=20)
    faults = replace(faults, old=int(old), die=int(not old and seed % 5 == 0))
    settings = Settings(seed=seed, steps=8, every=5, nodes=kernel.graph.n, stores=seed % 2 == 0)
    return chance(random, lambda: World(kernel, settings, [0, 2][: 1 + seed // 2 % 2], make), faults, 400, aim=0.5)


def follow(count, processes=1, tell=None):
    """Follow so many schedules: combined faults first, up to half of them, then random ones; returns how many."""
    searches = [("search", place, faults, count // 10) for faults in COMBINED for place in range(len(SMALL))]
    ends = 0
    with ProcessPoolExecutor(processes) if processes > 1 else nullcontext() as pool:
        for found, words in _done(pool, searches):
            ends += found
            if tell:
                tell(words)
            if ends >= count // 2:
                break
    chunks = [("random", first, min(first + CHUNK, count - ends)) for first in range(0, count - ends, CHUNK)]
    with ProcessPoolExecutor(processes) if processes > 1 else nullcontext() as pool:
        for number, (found, words) in enumerate(_done(pool, chunks)):
            ends += found
            if tell and number % 100 == 99:
                tell(f"{words}: {ends:,} ends")
    return ends


def _done(pool, tasks):
    """What becomes of some tasks, as they end; those that have not begun when nobody asks any more are left out."""
    if pool is None:
        yield from map(_do, tasks)
        return
    futures = [pool.submit(_do, task) for task in tasks]
    try:
        yield from (future.result() for future in as_completed(futures))
    finally:
        for future in futures:
            future.cancel()


def _do(task):
    kind, *arguments = task
    if kind == "random":
        for seed in range(*arguments):
            some(seed, old=seed % 3 == 2)
        return arguments[1] - arguments[0], "random schedules"
    place, faults, most = arguments
    kernel = SMALL[place]
    ends, worlds, whole = search(every(kernel), faults, most=most)
    return ends, f"{kernel.graph.name}, {faults}: {ends:,} ends, {worlds:,} worlds{'' if whole else ', in part'}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Follow schedules of what can go wrong with the custody of tokens.")
    parser.add_argument("schedules", type=int)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    print(f"{follow(given.schedules, given.processes, tell=print):,} schedules, none of which broke a promise")

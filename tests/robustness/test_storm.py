"""A storm over a small network of processes: twenty runs, each with its own faults, and nothing is lost."""

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from networks import MHLJ, nodes, written
from storm import SAG, cables, down, replay, soak, times, up, weather

import freewalk as fw
from freewalk.peers.operator import collect


async def _storms(network, seeds, kills, pause):
    total = Counter()
    rng = random.Random(0)
    async with cables(network, rng, 0.3) as laid:
        await asyncio.to_thread(up, network)
        try:
            for seed in seeds:
                run = f"seed-{seed}"
                total += await weather(network, laid, random.Random(seed), run, kills, pause, patience=120)
        finally:
            await asyncio.to_thread(down, network)
    return total


def test_twenty_storms(tmp_path):
    """With memory at the nodes, so that what re-issues discard has to be undone as well."""
    network = written(tmp_path, walk=SAG + "\ntokens = 2", steps=60, every=30)
    times(network, lease=1.0, patience=0.5, retry=0.1)
    counts = asyncio.run(_storms(network, range(20), kills=4, pause=0.08))
    assert counts["kills"] >= 40
    assert counts["aimed"] >= counts["kills"] / 2


def test_a_storm_that_takes_disks_while_a_node_lies(tmp_path):
    """What is missing afterwards went with a disk, and is named; nothing else is lost or doubled."""
    more = {"tokens": 2, "pause": 0.05, "disks": 4, "liar": True}
    counts = asyncio.run(soak(tmp_path, nodes=6, steps=1000, kills=8, seed=3, walk=MHLJ, **more))
    assert counts["kills"] >= 4
    assert counts["lost disks"] + counts["old disks"] >= 1


def test_a_simulation_is_led_over_what_is_missing_and_nothing_else(tmp_path):
    """Or the storms above would not notice what is wrong."""
    network = written(tmp_path, walk=MHLJ + "\ntokens = 2", steps=40, every=20)

    async def check():
        async with nodes(network):
            await collect.launch(network, "first")
            await collect.finished(network, "first", 120)
            collected = await collect.collect(network, "first")
            path = collected.record.data.path.values
            await replay(network, collected)
            wrong = (path[1, 20] + 3) % 6
            path[0, 7:10] = -1
            await replay(network, collected)
            path[1, 20] = wrong
            with pytest.raises(AssertionError):
                await replay(network, collected)

    asyncio.run(check())


@pytest.mark.parametrize("script", ["storm.py", "schedules.py"])
def test_the_long_versions_start(script):
    """As `make soak` starts them, which nobody does every day."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(Path(fw.__file__).parents[1])
    command = [sys.executable, str(Path(__file__).with_name(script)), "--help"]
    assert "usage" in subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

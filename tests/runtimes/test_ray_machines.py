"""Clusters of two machines, each a raylet of its own on this one: joined, checked, and surviving the death of one."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import freewalk

pytest.importorskip("ray")
COMMON = """
import os, threading, time
import freewalk as fw
from freewalk.runtimes.ray.cluster import ray_module
ray = ray_module()
from ray.cluster_utils import Cluster

graph = fw.graphs.ring(100)
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=4, heavy=2, seed=1)
kernel = fw.designs.MHLJ(0.1, 0.5, 3).kernel(graph, problem.smoothness)
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})


def learn(runtime, steps):
    return fw.learn(problem, kernel, fw.SGD(1e-3), steps=steps, walks=32, every=steps // 20, paths=1, runtime=runtime)
"""


def run(script, **environment):
    """Execute a script in a process of its own; what it prints."""
    found = subprocess.run(
        [sys.executable, "-c", COMMON + textwrap.dedent(script) + "\nray.shutdown()\ncluster.shutdown()\n"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.long
def test_one_of_two_machines_dies():
    said = run(
        """
        from processes import at_work

        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        runtime = fw.runtimes.Ray(tasks=2, address=cluster.address)
        learn(runtime, 1000)  # both have what they need
        steps, seen = 6_000_000, []


        def kill():
            time.sleep(1)
            while len(at_work()) < 2:  # between two intervals they are not
                time.sleep(0.002)
            seen.append(2)
            cluster.remove_node(second, allow_graceful=False)


        thread = threading.Thread(target=kill)
        thread.start()
        record = learn(runtime, steps)
        thread.join()
        alive = sum(node["Alive"] for node in ray.nodes())
        print("alive", alive, "at work", seen, "same", record.data.identical(learn("cpu", steps).data))
        print(record.provenance["cluster"])
        """
    )
    assert "alive 1 at work [2] same True" in said
    assert "2 machines, 2 tasks at a time" in said


@pytest.mark.long
def test_machines_with_another_version_are_refused(tmp_path):
    other = tmp_path / "freewalk"
    other.mkdir()
    (other / "__init__.py").write_text("")
    (other / "_version.py").write_text('__version__ = "0.0.7"\n')
    said = run(
        """
        cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": os.environ["OTHER"]})
        cluster.wait_for_nodes()
        try:
            learn(fw.runtimes.Ray(address=cluster.address), 100)
        except fw.FreewalkError as error:
            print(error)
        """,
        OTHER=str(tmp_path),
    )
    assert f"freewalk 0.0.7, here {freewalk.__version__}" in said
    assert "install the same versions on all machines" in said


@pytest.mark.long
def test_addresses():
    said = run(
        """
        def attempt(address):
            try:
                learn(fw.runtimes.Ray(address=address), 100)
            except fw.FreewalkError as error:
                print(error)

        os.environ["RAY_gcs_rpc_server_connect_timeout_s"] = "1"
        attempt("ray://127.0.0.1:10001")
        attempt(7)
        record = learn(fw.runtimes.Ray(address=cluster.address), 100)
        attempt("127.0.0.1:1")
        os.environ["RAY_ADDRESS"] = cluster.address
        print("again", record.data.identical(learn("ray", 100).data))
        print("same", record.data.identical(learn("cpu", 100).data))
        """
    )
    assert '\'ray://127.0.0.1:10001\', expected "host:port" or "auto"' in said
    assert "address = 7, expected" in said
    assert "has joined the cluster at" in said
    assert "again True\nsame True" in said


@pytest.mark.quick("nobody", "empty")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:9", r"no cluster answers at 127.0.0.1:9; .*ray start --head"),
        ("nowhere", 'address = .nowhere., expected "host:port"'),
        ("127.0.0.1:99999999", "no cluster answers"),
        ("", "address = "),
    ],
    ids=["nobody", "no address", "no port", "empty"],
)
def test_nobody_answers(address, words):
    script = f"""
import freewalk as fw
kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
fw.walk(kernel, steps=3, runtime=fw.runtimes.Ray(address={address!r}))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1
    assert re.search(words, found.stderr.splitlines()[-1]), found.stderr

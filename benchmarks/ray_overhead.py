"""What Ray costs on one machine: `python benchmarks/ray_overhead.py`.

The same run on the same cores, by `cpu` and by `ray`, in turns; how long a local Ray takes to start and answer; and
where the graph and the data lie: in the object store once, mapped by the workers.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np

import freewalk as fw
from freewalk.checks import cores
from freewalk.runtimes.ray.cluster import ray_module


def workers() -> dict[int, str]:
    """By number: the command lines of Ray's workers on this machine that belong to this process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if line.startswith("ray::"):
                found[int(folder.name)] = line
        except OSError:
            continue
    return found


def memory(process: int) -> dict[str, float]:
    """What a process has in memory, in MB: of its own, and of shared memory."""
    text = Path(f"/proc/{process}/smaps").read_text().splitlines()
    total = {"own": 0.0, "shared": 0.0}
    kind = "own"
    for line in text:
        if "-" in line.split(" ")[0]:
            kind = "shared" if "plasma" in line or "/dev/shm" in line else "own"
        elif line.startswith("Anonymous:") and kind == "own":
            total["own"] += int(line.split()[1]) / 1024
        elif line.startswith("Rss:") and kind == "shared":
            total["shared"] += int(line.split()[1]) / 1024
    return total


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30.0, help="of one run")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--walks", type=int, default=1000)
    options.add_argument("--large", type=int, default=2_000_000, help="nodes of the graph whose copies are counted")
    given = options.parse_args()
    graph = fw.graphs.watts_strogatz(given.nodes, 4, 0.1, seed=1)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=10, heavy=3, seed=1)
    kernel = fw.designs.MHLJ(0.1, 0.5, 3).kernel(graph, problem.smoothness)

    began = time.perf_counter()
    fw.walk(kernel, steps=10, runtime="ray")
    print(f"a local Ray starts and answers: {time.perf_counter() - began:.1f} s")

    def seconds(runtime: str, steps: int) -> float:
        start = time.perf_counter()
        fw.learn(problem, kernel, fw.SGD(1e-3), steps=steps, walks=given.walks, every=steps // 50, runtime=runtime)
        return time.perf_counter() - start

    for runtime in ("cpu", "ray"):
        seconds(runtime, 1000)
    trial = 20_000
    steps = int(given.seconds / seconds("cpu", trial) * trial)
    print(f"{given.walks} walks of {steps:,} steps on {cores()} cores, {given.repeat} times in turns")
    ratios = []
    for _ in range(given.repeat):
        plain, sent = seconds("cpu", steps), seconds("ray", steps)
        ratios.append(sent / plain)
        print(f"  cpu {plain:6.2f} s   ray {sent:6.2f} s   ratio {ratios[-1]:.3f}")
    print(f"overhead of ray: {100 * (median(ratios) - 1):+.1f} % (median)")

    graph = fw.graphs.ring(given.large)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=10, seed=1)
    kernel = fw.designs.Metropolis().kernel(graph)
    engine = fw.runtimes.Ray(cpus=1, tasks=cores()).engine(fw.runtimes.Job(problem, _phases(kernel), 0))
    from freewalk.runtimes.ray.shipment import pack

    job = pack((engine.job, engine.inner.engine(engine.job))).bytes / 2**20
    models = np.zeros((4 * cores(), problem.dim))
    state = fw.runtimes.State.begin(engine.job, np.arange(len(models), dtype=np.int32), models)
    engine.advance(state, 100, np.array([100]))
    ray = ray_module()
    time.sleep(2)  # it is told from time to time
    name = "object_store_memory"
    store = (ray.cluster_resources()[name] - ray.available_resources()[name]) / 2**20
    print(f"graph, tables and data of {given.large:,} nodes, d = 10: {job:,.0f} MB")
    print(f"  used in the object store: {store:,.0f} MB")
    for process, line in workers().items():
        found = memory(process)
        print(f"  {line.split()[0]:10s} own {found['own']:7,.0f} MB   mapped from the store {found['shared']:7,.0f} MB")


def _phases(kernel: fw.Kernel) -> tuple[fw.Phase, ...]:
    return (fw.Phase(None, kernel, fw.SGD(1e-3)),)


if __name__ == "__main__":
    main()

"""How many files and functions does a call cross? python benchmarks/flow.py [--list] [--source FOLDER]

Each call is made twice in a process of its own: once to import and compile, and once under a tracer that notes every
function of the package that is entered, in any thread of that process. Bodies of modules and classes, lambdas and
generator expressions do not count. Both commands are given the spec that `freewalk example --kind sweep` writes.
`--source` counts another checkout of the package.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

SOURCE = Path(__file__).resolve().parents[1] / "src"
CALLS = ("fw.learn", "freewalk run", "freewalk sweep")


def prepared(name: str, folder: Path) -> Callable[[], object]:
    """A call, with all that it needs made before."""
    if name == "fw.learn":
        import freewalk as fw

        graph = fw.graphs.ring(20)
        problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
        kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
        return lambda: fw.learn(problem, kernel, fw.SGD(step=0.01), steps=2000, walks=10, every=1000, start=0)
    entered("example", "--kind", "sweep", str(folder / "spec.toml"))
    return lambda: entered(name.split()[1], str(folder / "spec.toml"), "--out", str(folder / "out"))


def entered(*words: str) -> None:
    """Run a command of the command line, which ends by SystemExit."""
    from freewalk.cli import main

    sys.argv = ["freewalk", *words]
    try:
        main()
    except SystemExit as ended:
        if ended.code not in (0, None):
            raise


def crossed(name: str) -> set[tuple[str, str]]:
    """The functions that a call enters, by file."""
    root = f"{os.environ['PYTHONPATH']}/freewalk/"
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root) or code.co_name in ("<lambda>", "<genexpr>"):
            return
        if code.co_flags & CO_OPTIMIZED:
            seen.add((code.co_filename.removeprefix(root), code.co_qualname))

    for round_ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            call = prepared(name, Path(folder))
            if round_:
                threading.setprofile(note)
                sys.setprofile(note)
            call()
    sys.setprofile(None)
    return seen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--list", action="store_true", help="name the files and functions")
    options.add_argument("--source", type=Path, default=SOURCE, help="the folder that holds the package")
    options.add_argument("--trace", choices=CALLS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.trace:
        for file, function in sorted(crossed(chosen.trace)):
            print(f"crossed {file} {function}")
        return
    for name in CALLS:
        command = [sys.executable, __file__, "--trace", name]
        environment = os.environ | {"PYTHONPATH": str(chosen.source.resolve())}
        output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        found = [line.split()[1:3] for line in output.splitlines() if line.startswith("crossed ")]
        print(f"{name}: {len({file for file, _ in found})} files, {len(found)} functions")
        if chosen.list:
            print(*(f"    {file} {function}" for file, function in found), sep="\n")


if __name__ == "__main__":
    main()

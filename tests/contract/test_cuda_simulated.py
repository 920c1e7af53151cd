"""The CUDA runtime without a card: its kernels in numba's simulator, and what it says where there is none."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.runtimes import CUDA

HERE = Path(__file__).parent
TESTS = {
    "test_cuda_kernels.py": "",
    "test_paths.py": "every_design_on_every_runtime and random and 15",
    "test_lessons.py": "every_design or in_phases",
    "test_tokens.py": "one_coordinate",
    "test_node_weights.py": "runtimes_agree and relays and float64 or divides",
}


@pytest.mark.long
@pytest.mark.skipif(os.environ.get("FREEWALK_TEST_RUNTIME") == "CUDA", reason="is what it would start")
@pytest.mark.parametrize("name", TESTS)
def test_the_contract_in_the_simulator(name):
    """In a process of its own, since numba decides when it is imported whether there is a card."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "FREEWALK_TEST_RUNTIME": "CUDA"}
    quiet = "ignore::RuntimeWarning"  # simulated kernels compute with numpy's scalars, which warn of what cards do not
    options = ["-x", "-W", quiet, "-p", "no:cacheprovider", "-k", TESTS[name], str(HERE / name)]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is not None, reason="numba-cuda is installed here")
def test_without_numba_cuda_it_says_what_to_install():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    with pytest.raises(FreewalkError, match=r"cuda: the package numba-cuda is not installed.*pip install .\.\[cuda\]"):
        fw.walk(kernel, steps=3, runtime="cuda")


def test_without_a_card_it_says_so(monkeypatch):
    from numba import cuda

    def refuse():
        raise RuntimeError("no driver\nand more")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(cuda, "current_context", refuse)
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    with pytest.raises(FreewalkError, match=r"no GPU can be used here; .* numba says: no driver$"):
        fw.walk(kernel, steps=3, runtime="cuda")


@pytest.mark.parametrize("given", [0, -1, 2.5, True, "all"])
def test_walks_at_once_is_a_whole_number(given):
    with pytest.raises(FreewalkError, match=r"CUDA: walks_at_once = .*, expected a whole number >= 1"):
        CUDA(walks_at_once=given)

"""Prepare what a graphics card runs: the kernels of a phase, and how many threads share a walk."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from freewalk import compiling
from freewalk.engine import arrays, build, cuda
from freewalk.engine.table import compile_kernel
from freewalk.kernel import Kernel
from freewalk.learning import Rule
from freewalk.objectives import Predictor

_CALLS = ("far_move", "word")
_REGISTERS = 256  # bytes of a model that a thread can hold; a larger one is shared by a warp

_WRITTEN_OUT = 64  # loops over so many coordinates


class Program(NamedTuple):
    """A phase made ready: its kernels, the arrays they read, and how many threads share a walk."""

    advance: Any
    measure: Any
    table: arrays.Table
    data: arrays.Data | None
    share: int
    shared: int  # bytes of what the threads of a block share


def program(
    problem: Predictor | None,
    kernel: Kernel,
    rule: Rule | None,
    optimum: NDArray[np.float64],
    precision: str,
    shared: int,
) -> Program:
    """Make a phase ready for a card whose blocks share up to so many bytes."""
    table = compile_kernel(kernel)
    if problem is None or rule is None:
        still: dict[str, Any] = {
            "stage": cuda.stage_graph,
            "learn_visit": cuda.learn_nothing,
            "measure": cuda.measure_nothing,
        }
        return Program(_kernel(cuda.advance, still), _kernel(cuda.measure_all, still), table, None, 1, 0)
    data = build.samples(problem, kernel, rule, optimum, precision)
    share = cuda.WARP if problem.dim * data.features.itemsize > _REGISTERS else 1
    functions = {
        **build.functions_of(problem, rule),
        "SHARE": share,
        "DIM": -(-problem.dim // share),
        "COORDINATES": problem.dim,
        "BYTES": data.features.itemsize,
        "read": cuda.read_flat,
        "CARRIES": max(rule.carries, 1),
    }
    if share > 1:
        simulated = bool(config.ENABLE_CUDASIM)
        functions |= {
            "place": cuda.place_in_warp,
            "read": cuda.read_in_warp,
            "predict": cuda.predict_in_warp,
            "total": cuda.total_in_block if simulated else cuda.total_in_warp,
        }
        data = data._replace(curvature=np.empty((0, 0)))  # samples are many and can be shared, unlike its rows
    data = data._replace(features=data.features.reshape(-1), curvature=data.curvature.reshape(-1))
    needed = _bytes_a_step_reads(table, data)
    staged = share == 1 and needed <= shared
    if staged:
        functions |= {"stage": cuda.stage_in_shared, "unstage": cuda.unstage_counts}
    kernels = _kernel(cuda.advance, functions), _kernel(cuda.measure_all, functions)
    return Program(*kernels, table, data, share, needed if staged else 0)


def _bytes_a_step_reads(table: arrays.Table, data: arrays.Data) -> int:
    """The size of what `cuda.stage_in_shared` copies."""
    read = (table.spans, table.tails, table.limits, data.features, data.targets, data.weights)
    return sum(array.nbytes for array in read) + 4 * table.spans.size


def _kernel(entry: Callable[..., None], functions: dict[str, Any]) -> Any:
    target = compiling.SIMULATOR if config.ENABLE_CUDASIM else compiling.CUDA
    # A function that takes a place is not called by its own name as well: only what the entry reaches is compiled.
    # Written out, the coordinates of a model are numbered variables, which live in registers.
    held = functions.get("DIM", 1)
    unroll = {"DIM": held, "dim": held} if held <= _WRITTEN_OUT else None
    return compiling.compile_functions({entry.__name__: entry, **functions}, entry.__name__, _CALLS, target, unroll)

"""Prepare what a GPU runs: the kernels of a phase, and the number of threads that share a walk."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from freewalk import rng
from freewalk.compiled import compiler
from freewalk.jobs.phase import Phase
from freewalk.objectives import Predictor
from freewalk.runtimes.cuda import kernels
from freewalk.runtimes.step import arrays, inputs
from freewalk.runtimes.step.network import flattened

_CALLS = ("far_move", "word")
_LARGEST = 256  # bytes of a model that a thread can hold; a larger one is shared by a warp
# By maximum bytes of a model: registers per thread, and threads per block.
_SIZES = ((48, 64, 512), (160, 128, 512), (math.inf, 255, 256))

_WRITTEN_OUT = 64  # loops over up to this many coordinates are unrolled


class Launch(NamedTuple):
    """A prepared phase: its kernels, the arrays they read, and how to launch them."""

    advance: Any
    measure: Any
    network: arrays.Network
    data: arrays.Data | None
    share: int  # threads that share a walk
    threads: int  # per block
    shared: int  # bytes of shared memory per block


def launch(
    objective: Predictor | None, phase: Phase, optimum: NDArray[np.float64], precision: str, shared: int
) -> Launch:
    """Prepare a phase for a GPU with this much shared memory per block."""
    kernel, rule = phase.kernel, phase.rule
    network = flattened(kernel)
    if objective is None or rule is None:
        still: dict[str, Any] = {"learn_visit": kernels.learn_nothing, "measure": kernels.measure_nothing}
        _, registers, threads = _SIZES[0]
        advance, measure = (_kernel(entry, still, registers) for entry in (kernels.advance, kernels.measure_all))
        return Launch(advance, measure, network, None, 1, threads, 0)
    data = inputs.samples(objective, kernel, rule, optimum, precision)
    share = kernels.WARP if objective.dim * data.features.itemsize > _LARGEST else 1
    functions = {
        **inputs.functions_of(objective, rule),
        "SHARE": share,
        "DIM": -(-objective.dim // share),
        "COORDINATES": objective.dim,
        "CARRIES": len(rule.carries),
        "KEPT": max(len(rule.carries), 1),
        "HELD": max(len(rule.stores), 1),
        "REPORTED": inputs.reported(rule),
        "BYTES": data.features.itemsize,
        "STRIDE": objective.dim,
        "read": kernels.read_flat,
        "counted": kernels.counted_after,
    }
    if share > 1:
        simulated = bool(config.ENABLE_CUDASIM)
        functions |= {
            "coordinate": kernels.coordinate_in_warp,
            "read": kernels.read_in_warp,
            "predict": kernels.predict_in_warp,
            "total": kernels.total_in_block if simulated else kernels.total_in_warp,
            "together": kernels.together_in_block if simulated else kernels.together_in_warp,
        }
        data = data._replace(curvature=np.empty((0, 0)))  # samples can be read from shared memory, unlike its rows
    needed = 0
    if share == 1 and data.features.nbytes <= shared:
        odd = objective.dim | 1  # an odd row stride avoids bank conflicts in shared memory
        padded = data._replace(features=_padded(data.features, odd), curvature=_padded(data.curvature, odd))
        if _bytes_read_per_step(network, padded) <= shared:
            data, needed = padded, _bytes_read_per_step(network, padded)
            functions |= {"STRIDE": odd, "stage": kernels.stage_in_shared, "unstage": kernels.unstage_counts}
    held = functions["DIM"] * data.features.itemsize * (1 + len(rule.carries) + len(rule.stores))
    registers, threads = next(sizes for limit, *sizes in _SIZES if held <= limit)
    if not needed:  # memory-bound code gains nothing from more threads, and loses by register spills
        registers, threads = max(registers, 128), 256
    data = data._replace(features=data.features.reshape(-1), curvature=data.curvature.reshape(-1))
    advance, measure = (_kernel(entry, functions, registers) for entry in (kernels.advance, kernels.measure_all))
    return Launch(advance, measure, network, data, share, threads, needed)


def _padded(rows: NDArray[Any], width: int) -> NDArray[Any]:
    """Rows padded with zeros."""
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) if rows.size else rows


def _bytes_read_per_step(network: arrays.Network, data: arrays.Data) -> int:
    """The size of what `cuda.stage_in_shared` copies."""
    read = (network.spans, network.tails, network.limits, data.features, data.targets, data.weights)
    return int(sum(array.nbytes for array in read)) + 4 * int(network.spans.size)


def _kernel(entry: Callable[..., None], functions: dict[str, Any], registers: int) -> Any:
    target = compiler.SIMULATOR if config.ENABLE_CUDASIM else compiler.cuda_target(registers)
    # When unrolled, the coordinates of a model are numbered variables, which stay in registers.
    held = functions.get("DIM", 1)
    vectors = {name: functions.get(name, 0) for name in ("CARRIES", "STORES")}
    unroll = {"ROUNDS": rng.ROUNDS, **vectors} | ({"DIM": held, "dim": held} if held <= _WRITTEN_OUT else {})
    return compiler.compile_functions({entry.__name__: entry, **functions}, entry.__name__, _CALLS, target, unroll)

"""Prepare what a GPU runs: the kernels of a phase, the number of threads that share a walk, and work on all tokens."""

import math
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from freewalk import rng
from freewalk.compiled import compiler
from freewalk.jobs.job import Job
from freewalk.jobs.phase import Passage, Phase
from freewalk.objectives import Predictor
from freewalk.runtimes.cuda import kernels
from freewalk.runtimes.step import arrays, inputs

_CALLS = ("far_move", "is_taken_exactly", "word")
_LARGEST = 256  # bytes of a model that a thread can hold; a larger one is shared by a warp
# By maximum bytes of a model: registers per thread, and threads per block.
_SIZES = ((48, 64, 512), (160, 128, 512), (math.inf, 255, 256))
_WRITTEN_OUT = 64  # loops over up to this many coordinates are unrolled
_TOKEN_REGISTERS, _TOKEN_THREADS = 64, 128  # of a kernel that works on all tokens of a walk


class PreparedPhase(NamedTuple):
    """A prepared phase: its kernels, the arrays they read, and how to launch them."""

    advance: Any
    measure: Any
    network: arrays.FlatKernel
    data: arrays.NodeData | None
    share: int  # threads that share a walk
    threads: int  # per block
    shared: int  # bytes of shared memory per block


def prepare(job: Job, objective: Predictor | None, phase: Phase, shared: int) -> PreparedPhase:
    """Prepare a phase for a GPU with this much shared memory per block."""
    kernel, rule = phase.kernel, phase.rule
    network = inputs.flattened(kernel)
    remembering = inputs.functions_of_memory(inputs.kind_of_memory(kernel))
    entries = kernels.advance, kernels.measure_all
    if kernel.memory is not None:
        entries = kernels.advance_remembering, kernels.measure_all
        remembering |= {"keep": kernels.keep_nothing, "total_again": kernels.total_computed_again}
    if objective is None or rule is None:
        still: dict[str, Any] = {"learn_visit": kernels.learn_nothing, "measure": kernels.measure_nothing}
        still |= remembering
        _, registers, threads = _SIZES[0]
        advance, measure = (_kernel(entry, still, registers) for entry in entries)
        return PreparedPhase(advance, measure, network, None, 1, threads, 0)
    data = inputs.samples(job, objective, kernel, rule)
    share = kernels.WARP if objective.dim * data.features.itemsize > _LARGEST else 1
    functions = {
        **inputs.functions_of(objective, rule),
        **remembering,
        "SHARE": share,
        "DIM": -(-objective.dim // share),
        "COORDINATES": objective.dim,
        "CARRIES": len(rule.carries),
        "KEPT": max(len(rule.carries), 1),
        "HELD": max(len(rule.stores), 1),
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
    advance, measure = (_kernel(entry, functions, registers) for entry in entries)
    return PreparedPhase(advance, measure, network, data, share, threads, needed)


def _padded(rows: NDArray[Any], width: int) -> NDArray[Any]:
    """Rows padded with zeros."""
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) if rows.size else rows


def _bytes_read_per_step(network: arrays.FlatKernel, data: arrays.NodeData) -> int:
    """The size of what `cuda.stage_in_shared` copies."""
    read = (network.spans, network.edges, data.features, data.targets, data.weights)
    return int(sum(array.nbytes for array in read)) + 4 * int(network.spans.size)


def _target(registers: int) -> compiler.Target:
    return compiler.SIMULATOR if config.ENABLE_CUDASIM else compiler.cuda_target(registers)


def _kernel(entry: Callable[..., None], functions: dict[str, Any], registers: int) -> Any:
    # When unrolled, the coordinates of a model are numbered variables, which stay in registers.
    held = functions.get("DIM", 1)
    vectors = {name: functions.get(name, 0) for name in ("CARRIES", "STORES")}
    unroll = {"ROUNDS": rng.ROUNDS, **vectors} | ({"DIM": held, "dim": held} if held <= _WRITTEN_OUT else {})
    functions = {entry.__name__: entry, **functions}
    return compiler.compile_functions(functions, entry.__name__, _CALLS, _target(registers), unroll)


@cache
def _token_kernel(entry: Callable[..., None]) -> Any:
    return compiler.compile_functions({entry.__name__: entry}, entry.__name__, (), _target(_TOKEN_REGISTERS))


class TokenKernels:
    """Operations on all tokens of a walk: exchanges, and the mean model and sums for measures."""

    def __init__(self, cuda: ModuleType, passage: Passage, here: Any, tokens: int) -> None:
        self.here, self.tokens, self.exchange_by = here, tokens, passage.phase.exchange
        self.walks = here.walkers.nodes.size // tokens
        self.spread: Any = None
        if tokens == 1:
            return
        rule = passage.phase.rule
        self.reported = -1 if rule is None or rule.reports == "x" else rule.carries.index(rule.reports)
        vectors = here.vectors
        shape = max(self.reported, 0) + 1, self.walks, vectors.models.shape[1]
        self.means = cuda.device_array(shape, dtype=vectors.models.dtype)
        self.squares = cuda.device_array(shape[1:])
        self.counts = cuda.device_array((3, self.walks), dtype=np.int64)
        self.spread = cuda.device_array((max(passage.marks.size, 1), self.walks))

    def exchanges(self, now: int, stop: int) -> range:
        """The steps after `now`, up to `stop`, that an exchange follows."""
        every = 0 if self.exchange_by is None else int(self.exchange_by.every)
        return range((now // every + 1) * every, stop + 1, every) if every else range(0)

    def exchange(self) -> None:
        """Replace all tokens of a walk, and what they carry, by their mean."""
        models, carried = self.here.vectors.models, self.here.vectors.carried
        count = carried.shape[0] if carried.shape[1] == models.shape[0] else 0  # else it is a placeholder
        for rows in (models, *(carried[index] for index in range(count))):
            self._launch(kernels.average_tokens, rows.shape[1], rows, self.tokens)

    def measured(self, number: int) -> tuple[Any, Any]:
        """What is measured instead of walkers and vectors: sums and means over the tokens of each walk."""
        walkers, vectors = self.here.walkers, self.here.vectors
        if self.tokens == 1:
            return walkers, vectors
        rows = vectors.models if self.reported < 0 else vectors.carried[self.reported]
        mean = self.means[max(self.reported, 0)]
        self._launch(kernels.gather_tokens, rows.shape[1], rows, self.tokens, mean, self.squares)
        self._launch(kernels.total_of_tokens, 1, walkers, self.tokens, self.squares, self.counts, self.spread, number)
        summed = walkers._replace(nodes=self.counts[0], messages=self.counts[0], probes=self.counts[1])
        summed = summed._replace(freight=self.counts[2])
        return summed, vectors._replace(models=mean, carried=self.means)

    def _launch(self, entry: Callable[..., None], columns: int, *given: Any) -> None:
        threads = self.walks * columns
        width = min(threads, _TOKEN_THREADS)
        _token_kernel(entry)[-(-threads // width), width](*given)

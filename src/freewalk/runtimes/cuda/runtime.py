"""Walks on an NVIDIA GPU, compiled from the same functions as on the CPU."""

import importlib
import importlib.util
import warnings
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, install_line
from freewalk.jobs.job import Job, Measures, State
from freewalk.jobs.phase import Passage, Phase
from freewalk.objectives import Predictor
from freewalk.rules import SGD
from freewalk.runtimes.cpu.runtime import measured_in_python, not_compiled, predictor
from freewalk.runtimes.engine import WALKS, Engine, Runtime, counted, joined
from freewalk.runtimes.mixer import Mixer
from freewalk.runtimes.step import arrays, inputs

_SHARED_UNASKED = 48 * 1024  # bytes of shared memory per block available by default
_REMOVED = "row_stack"
_SHARE_OF_MEMORY = 0.8  # fraction of the free memory that walks may use


@dataclass(frozen=True)
class CUDA(Runtime):
    """Compiled walks on an NVIDIA GPU: one thread per walk, or one warp per walk for large models.

    Needs a GPU and the package numba-cuda: pip install '.[cuda]'. The walks stay on the GPU while they run; only
    measurements are copied back. Walks that do not fit into its memory at once run in several parts.

    Parameters
    ----------
    walks_at_once
        The number of walks on the GPU at a time. Default: as many as fit.

    Raises
    ------
    FreewalkError
        If it is below 1.
    """

    walks_at_once: int | None = None

    cards = 1

    def __post_init__(self) -> None:
        if self.walks_at_once is not None:
            Checks(FreewalkError).whole("CUDA", "walks_at_once", self.walks_at_once, 1, remedy="None takes all")

    def engine(self, job: Job) -> "CUDAEngine":
        """Prepare a job; its objective must have a slope."""

        def refusal(part: object, why: str) -> FreewalkError:
            return FreewalkError(f"cuda: {type(part).__name__} {why}; pass runtime='cpu'")

        objective = predictor("cuda", job)
        own = [] if objective is None else measured_in_python(objective)
        if own:
            raise refusal(objective, f"measures {', '.join(own)} in Python, which a GPU cannot do")
        for phase in job.phases:
            if phase.exchange is not None and phase.exchange.means != "all":
                raise refusal(phase.exchange, "is not available on a GPU, expected none or fw.exchanges.Average")
            if job.tokens > 1 and phase.rule is not None and phase.rule.shared:
                why = "shares what is stored at a node between tokens in turn, and a GPU does not keep their order"
                raise refusal(phase.rule, why)
        return CUDAEngine(job, objective, cuda_module(), self.walks_at_once)


def cuda_module() -> ModuleType:
    """numba.cuda, or an error that says what is missing."""
    from numba.core import config

    remedy = f"pass runtime='cpu', or {install_line('cuda')} on a machine with an NVIDIA GPU"
    if not config.ENABLE_CUDASIM and importlib.util.find_spec("numba_cuda") is None:
        raise FreewalkError(f"cuda: the package numba-cuda is not installed; {remedy}")
    # numba-cuda 0.30 registers np.row_stack, which numpy 2.5 has removed: define it during the import.
    lent = not hasattr(np, _REMOVED)
    if lent:
        setattr(np, _REMOVED, np.vstack)
    try:
        from numba import cuda

        if lent and not config.ENABLE_CUDASIM:
            importlib.import_module("numba.cuda.np.arrayobj")  # where it does so
    finally:
        if lent:
            delattr(np, _REMOVED)
    try:
        cuda.current_context()
    except Exception as error:  # a driver that is missing, too old or broken, each with its own error
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FreewalkError(f"cuda: no GPU can be used here; {remedy}. numba says: {said}") from error
    module: ModuleType = cuda
    return module


def _ask_for_shared_memory(kernel: Any, launch: Any) -> None:
    """Request the shared memory with which a kernel is launched; more than 48 kB must be requested explicitly."""
    from cuda.bindings import driver
    from numba import cuda

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    function = kernel._codelibrary.get_cufunc()
    (status,) = driver.cuKernelSetAttribute(attribute, launch.sharedmem, function.handle, cuda.get_current_device().id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise FreewalkError(f"cuda: the GPU refuses {launch.sharedmem} bytes of shared memory per block: {status}")


@dataclass
class _Walks:
    """The walks of a state on the GPU."""

    walkers: Any
    vectors: Any
    differences: Any


class CUDAEngine(Engine):
    """A job on a GPU: its kernels compiled, its samples and networks in GPU memory."""

    def __init__(self, job: Job, objective: Predictor | None, cuda: ModuleType, walks_at_once: int | None) -> None:
        from numba.core import config

        from freewalk.runtimes.cuda import launch

        self.job, self.objective, self.cuda, self.walks_at_once = job, objective, cuda, walks_at_once
        self.simulated, self.launches = bool(config.ENABLE_CUDASIM), {}
        for phase in job.phases:
            made = launch.prepare(job, objective, phase, self._most_shared())
            data = (0,) if made.data is None else self._upload(made.data)
            self.launches[phase] = made, self._upload(made.network), data
        self.resident: tuple[State, _Walks] | None = None  # the state whose walks are all on the GPU

    def settle(self, state: State) -> None:
        """Copy the walks back from the GPU."""
        if self.resident is not None and self.resident[0] is state:
            self._bring_back(state, self.resident[1])
            self.resident = None

    def _run(self, state: State, passage: Passage) -> Measures:
        ranges = self._ranges(state, passage.marks.size)
        if len(ranges) == 1:
            if self.resident is None or self.resident[0] is not state:
                self.resident = state, self._on_card(state)
            return self._advance(state, passage, self.resident[1])
        self.settle(state)  # it may have fitted before: other programs use memory too
        parts, measured = [state.part(*walks) for walks in ranges], []
        for part in parts:
            here = self._on_card(part)
            measured.append(self._advance(part, passage, here))
            self._bring_back(part, here)
        state.join(parts)
        return joined(measured, WALKS)

    def _advance(self, state: State, passage: Passage, here: _Walks) -> Measures:
        """Move walks on the GPU along a passage, and measure them at its marks."""
        launch, _, _ = self.launches[passage.phase]
        learns = launch.data is not None
        bare = passage._replace(marks=passage.marks[:0])
        if not learns:  # code that does not learn still takes a lesson
            bare = bare._replace(phase=Phase(None, passage.phase.kernel, SGD(step=1.0)))
        route = self._upload(inputs.route(self.job, state, bare, launch.network))
        lesson = self._upload(inputs.lesson(self.job, state, bare))
        exchange = passage.phase.exchange
        mixer = None if exchange is None else Mixer(self.job, state, passage, exchange, {})
        size = passage.marks.size, state.walks
        found = {name: self.cuda.device_array(size) for name in ("fit", "penalty", "distance")}
        try:
            with warnings.catch_warnings():  # few walks are not a mistake
                warnings.filterwarnings("ignore", message=".*under-utilization")
                counts, spread = self._launch(passage, here, route, lesson._replace(**found))
        except Exception as error:
            if not any(kind.__name__ == "NumbaError" for kind in type(error).__mro__):  # numba-cuda has its own
                raise
            raise not_compiled("cuda", self.job, passage.phase, error) from error
        if not passage.marks.size:
            self.cuda.synchronize()  # the caller measures how long this chunk took
            return {}
        found_counts = zip(("messages", "probes", "freight"), counts.copy_to_host(), strict=True)
        measures: Measures = {name: count.T for name, count in found_counts if name in counted(passage)}
        if self.objective is not None and learns:
            fit, penalty, distance = (array.copy_to_host().T for array in found.values())
            with np.errstate(all="ignore"):  # a walk may have diverged
                measures |= {**self.objective.measures_of(fit, penalty), "distance": distance}
            if spread is not None:
                measures["consensus"] = spread.copy_to_host().T
        return measures if mixer is None else measures | {"exchanged": mixer.exchanged}

    def _launch(self, passage: Passage, here: _Walks, route: Any, lesson: Any) -> Any:
        """Launch the kernels from mark to mark; returns the counts at the marks, on the GPU, and the consensus."""
        from freewalk.runtimes.cuda.launch import TokenKernels

        launch, network, data = self.launches[passage.phase]
        threads = launch.share if self.simulated else launch.threads  # a simulated block has as few as possible
        rows = here.walkers.nodes.size
        grid = -(-rows * launch.share // threads), threads
        advance = launch.advance[(*grid, 0, launch.shared)]
        asked = _ask_for_shared_memory in getattr(advance, "pre_launch_callbacks", ())  # numba keeps configurations
        if not self.simulated and not asked and launch.shared > _SHARED_UNASKED:
            advance.pre_launch_callbacks.append(_ask_for_shared_memory)
        counts = self.cuda.device_array((3, passage.marks.size, rows // self.job.tokens), dtype=np.int64)
        together = TokenKernels(self.cuda, passage, here, self.job.tokens)
        stops = [passage.start, *(int(mark) for mark in passage.marks), passage.until]
        for number, (now, stop) in enumerate(pairwise(stops)):
            due = together.exchanges(now, stop)
            for begin, end in pairwise(sorted({now, *due, stop})):
                advance(network, route, here.walkers, data, lesson, here.vectors, (begin, end))
                if end in due:
                    together.exchange()
            if number < passage.marks.size:
                walkers, vectors = together.measured(number)
                launch.measure[grid](data, lesson, walkers, vectors, here.differences, counts, number)
        return counts, together.spread

    def _most_shared(self) -> int:
        """The maximum shared memory of a block, in bytes."""
        if self.simulated:
            return _SHARED_UNASKED
        return int(self.cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)

    def _ranges(self, state: State, marks: int) -> list[tuple[int, int]]:
        """The walks in parts that fit into the memory of the GPU."""
        arrays = [state.models, state.carried, state.stored, state.seen, state.paths, state.counters]
        arrays += [] if state.visits_are_summed else [state.visits]
        row = sum(array.nbytes for array in arrays) // state.rows + 8 * (2 * state.dim + 4)
        walk = row * state.tokens + 8 * 6 * max(marks, 1)
        free = self.cuda.current_context().get_memory_info().free
        if self.resident is not None and self.resident[0] is state:
            free = free + state.walks * walk  # what it uses now
        fit = state.walks if free == float("inf") else int(_SHARE_OF_MEMORY * free / walk)
        width = min(self.walks_at_once or state.walks, max(fit, 1), state.walks)
        return [(first, min(first + width, state.walks)) for first in range(0, state.walks, width)]

    def _on_card(self, state: State) -> _Walks:
        """The walks of a state on the GPU."""
        # An empty array cannot be sent, so a minimal one replaces it.
        some = {name: getattr(state, name) for name in ("carried", "seen", "paths", "counters")}
        some["models"] = state.models if state.models.size else np.zeros((state.rows, 1))  # read even if nothing learns
        some["stored"] = state.stored.reshape(-1, max(state.dim, 1))
        ones = {name: array if array.size else np.zeros((1,) * array.ndim, array.dtype) for name, array in some.items()}
        visits = np.zeros_like(state.visits) if state.visits_are_summed else state.visits
        remembered = state.previous, ones["counters"], state.known, state.freight
        walkers = (state.nodes, state.messages, state.probes, visits, state.path_of, ones["paths"], *remembered)
        vectors = (ones["models"], ones["carried"], ones["stored"], ones["seen"].reshape(-1))
        return _Walks(
            self._upload(arrays.Walkers(*walkers)),
            self._upload(arrays.Vectors(*vectors)),
            self.cuda.device_array((state.rows, max(state.dim, 1))),
        )

    def _bring_back(self, state: State, here: _Walks) -> None:
        walkers, vectors = here.walkers, here.vectors
        for name in ("nodes", "messages", "probes", "previous", "known", "freight"):
            getattr(state, name)[:] = getattr(walkers, name).copy_to_host()
        visits = walkers.visits.copy_to_host()
        state.visits[:] = state.visits + visits if state.visits_are_summed else visits
        for name in ("paths", "counters"):
            if getattr(state, name).size:
                getattr(state, name)[:] = getattr(walkers, name).copy_to_host()
        for name in ("models", "carried", "stored", "seen"):
            array = getattr(state, name)
            if array.size:
                array[:] = getattr(vectors, name).copy_to_host().reshape(array.shape)

    def _upload(self, group: Any) -> Any:
        """A group of arrays, on the GPU."""
        parts = (self.cuda.to_device(np.ascontiguousarray(p)) if isinstance(p, np.ndarray) else p for p in group)
        return type(group)(*parts)

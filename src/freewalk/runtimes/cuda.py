"""The walks on a graphics card, compiled from the same functions as on the processor."""

import importlib
import importlib.util
import warnings
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.objectives import LeastSquares, Predictor
from freewalk.phases import Phase
from freewalk.rules import SGD
from freewalk.runtimes.runtime import Job, Measures, PhaseEngine, Runtime, State, known_optimum, not_compiled

_SHARED_UNASKED = 48 * 1024  # bytes that the threads of a block may share without asking
_REMOVED = "row_stack"
_SHARE_OF_MEMORY = 0.8  # what walks may take of the memory that is free


@dataclass(frozen=True)
class CUDA(Runtime):
    """Compiled walks on a graphics card of NVIDIA: a thread a walk, or a warp a walk where models are large.

    Needs a card and the package numba-cuda: pip install 'freewalk[cuda]'. The walks stay on the card while they run,
    and only what is measured comes back. Walks that do not fit into its memory together run one part after the other.

    Parameters
    ----------
    walks_at_once
        How many walks are on the card at a time; None is as many as fit.

    Raises
    ------
    FreewalkError
        If that number is below 1.
    """

    walks_at_once: int | None = None

    def __post_init__(self) -> None:
        if self.walks_at_once is not None:
            Checks(FreewalkError).whole("CUDA", "walks_at_once", self.walks_at_once, 1, remedy="None takes all")

    def engine(self, job: Job) -> "CUDAEngine":
        """Make a job ready; an objective must give a slope."""
        if job.problem is not None and not isinstance(job.problem, Predictor):
            raise FreewalkError(
                f"cuda: {type(job.problem).__name__} gives a gradient but no slope, so it cannot be compiled; "
                "pass runtime='reference'"
            )
        return CUDAEngine(job, cuda_module(), self.walks_at_once)


def cuda_module() -> ModuleType:
    """numba.cuda, or an error that says what is missing."""
    from numba.core import config

    remedy = "pass runtime='cpu', or pip install 'freewalk[cuda]' on a machine with a card"
    if not config.ENABLE_CUDASIM and importlib.util.find_spec("numba_cuda") is None:
        raise FreewalkError(f"cuda: the package numba-cuda is not installed; {remedy}")
    # numba-cuda 0.30 registers np.row_stack, which numpy 2.5 has removed: lend it the name while it is imported.
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
    except Exception as error:  # a driver that is missing, too old or broken, each with an error of its own
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FreewalkError(f"cuda: no graphics card can be used here; {remedy}. numba says: {said}") from error
    module: ModuleType = cuda
    return module


def _ask_for_shared_memory(kernel: Any, launch: Any) -> None:
    """Let a kernel have the shared memory with which it is launched: more than 48 kB must be asked for."""
    from cuda.bindings import driver
    from numba import cuda

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    function = kernel._codelibrary.get_cufunc()
    (status,) = driver.cuKernelSetAttribute(attribute, launch.sharedmem, function.handle, cuda.get_current_device().id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise FreewalkError(f"cuda: the card refuses {launch.sharedmem} bytes of shared memory a block: {status}")


@dataclass
class _Walks:
    """A range of walks on the card: what a state holds of them."""

    first: int
    last: int
    walkers: Any
    models: Any
    carried: Any
    differences: Any


class CUDAEngine(PhaseEngine):
    """A job on a graphics card: its kernels compiled, its samples and tables on the card."""

    def __init__(self, job: Job, cuda: ModuleType, walks_at_once: int | None) -> None:
        from numba.core import config

        from freewalk.engine import cuda_build

        self.job = job
        self.cuda = cuda
        self.walks_at_once = walks_at_once
        self.simulated = bool(config.ENABLE_CUDASIM)
        problem = job.problem if isinstance(job.problem, Predictor) else None
        optimum = np.zeros(0) if problem is None else known_optimum(problem)
        self.programs = {}
        for phase in job.phases:
            made = cuda_build.program(problem, phase.kernel, phase.rule, optimum, job.precision, self._most_shared())
            data = made.data if made.data is None else self._upload(made.data)
            self.programs[id(phase)] = made, self._upload(made.table), data
        self.resident: tuple[State, _Walks] | None = None  # the state whose walks are all on the card

    def settle(self, state: State) -> None:
        """Bring the walks back from the card."""
        if self.resident is not None and self.resident[0] is state:
            self._bring_back(state, self.resident[1])
            self.resident = None

    def _run(self, phase: Phase, state: State, until: int, marks: NDArray[np.int64], began: int) -> Measures:
        from freewalk.engine import build

        program, table, data = self.programs[id(phase)]
        none = marks[:0]
        route = self._upload(build.route(self.job.seed, phase.kernel, program.table, state.step, until, none, 0))
        lesson = build.lesson(self.job.seed, phase.rule or SGD(step=1.0), state.step, until, none, 0, began)
        ranges = self._ranges(state, marks.size)
        if len(ranges) > 1:
            self.settle(state)  # it may have been small enough before: other programs need memory too
        parts: list[Measures] = []
        for first, last in ranges:
            here = self._on_card(state, first, last, alone=len(ranges) == 1)
            launch = program, table, route, data or (0,), self._upload(lesson), here
            try:
                with warnings.catch_warnings():  # few walks are no mistake
                    warnings.filterwarnings("ignore", message=".*under-utilization")
                    parts.append(self._advance_walks(*launch, state.step, until, marks))
            except Exception as error:
                if not any(kind.__name__ == "NumbaError" for kind in type(error).__mro__):  # numba-cuda has its own
                    raise
                raise not_compiled("cuda", self.job, phase, error) from error
            if len(ranges) > 1:
                self._bring_back(state, here)
        state.step = until
        return (
            parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        )

    def _advance_walks(
        self,
        program: Any,
        table: Any,
        route: Any,
        data: Any,
        lesson: Any,
        here: _Walks,
        start: int,
        until: int,
        marks: NDArray[np.int64],
    ) -> Measures:
        """Move a range of walks, and measure it at the marks."""
        cuda, walks = self.cuda, here.last - here.first
        threads = program.share if self.simulated else program.threads  # a simulated block has as few as can be
        grid = -(-walks * program.share // threads), threads
        advance = program.advance[(*grid, 0, program.shared)]
        asked = _ask_for_shared_memory in getattr(advance, "pre_launch_callbacks", ())  # numba keeps configurations
        if not self.simulated and not asked and program.shared > _SHARED_UNASKED:
            advance.pre_launch_callbacks.append(_ask_for_shared_memory)
        counts = cuda.device_array((2, marks.size, walks), dtype=np.int64)
        found = {name: cuda.device_array((marks.size, walks)) for name in ("loss", "penalty", "distance")}
        lesson = lesson._replace(**found)
        for number, (now, stop) in enumerate(pairwise([start, *(int(mark) for mark in marks), until])):
            if stop > now:
                span = (here.first, now, stop)
                advance(table, route, here.walkers, data, lesson, here.models, here.carried, span)
            if number < marks.size:
                program.measure[grid](
                    data, lesson, here.walkers, here.models, here.carried, here.differences, counts, number
                )
        if not marks.size:
            cuda.synchronize()  # who waits for this chunk, and measures how long it took, must not go on before
            return {}
        messages, probes = counts.copy_to_host()
        columns: Measures = {"messages": messages.T, "probes": probes.T}
        if program.data is not None:
            loss, penalty, distance = (found[name].copy_to_host() for name in ("loss", "penalty", "distance"))
            columns |= {"loss": (loss + penalty).T, "distance": distance.T}
            if isinstance(self.job.problem, LeastSquares):
                columns["mse"] = (2.0 * loss).T
        return columns

    def _most_shared(self) -> int:
        """How many bytes the threads of a block can share."""
        if self.simulated:
            return _SHARED_UNASKED
        return int(self.cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)

    def _ranges(self, state: State, marks: int) -> list[tuple[int, int]]:
        """The walks in parts that fit into the memory of the card."""
        visits = 0 if state.visits_are_summed else state.visits[0].nbytes
        numbers = state.models[0].nbytes + state.carried[:, 0].nbytes + 8 * state.models.shape[1]
        walk = visits + numbers + 8 * (5 * max(marks, 1) + 4)
        free = self.cuda.current_context().get_memory_info().free
        if self.resident is not None and self.resident[0] is state:
            free = free + state.walks * walk  # what it takes now
        fit = state.walks if free == float("inf") else int(_SHARE_OF_MEMORY * free / walk)
        width = min(self.walks_at_once or state.walks, max(fit, 1), state.walks)
        return [(first, min(first + width, state.walks)) for first in range(0, state.walks, width)]

    def _on_card(self, state: State, first: int, last: int, alone: bool) -> _Walks:
        """A range of walks on the card; one that holds all of them stays there until the state is settled."""
        from freewalk.engine import arrays

        if alone and self.resident is not None and self.resident[0] is state:
            return self.resident[1]
        to_device, rows = self.cuda.to_device, slice(first, last)
        visits = np.zeros_like(state.visits) if state.visits_are_summed else state.visits[rows]
        walkers = arrays.Walkers(
            nodes=to_device(np.ascontiguousarray(state.nodes[rows])),
            messages=to_device(np.ascontiguousarray(state.messages[rows])),
            probes=to_device(np.ascontiguousarray(state.probes[rows])),
            visits=to_device(np.ascontiguousarray(visits)),
            path_of=to_device(np.ascontiguousarray(state.path_of[rows])),
            paths=to_device(state.paths if state.paths.size else np.zeros((1, 1), dtype=np.int32)),
        )
        models = state.models[rows] if state.models.size else np.zeros((last - first, 1))
        carried = state.carried[:, rows] if state.carried.size else np.zeros((0, last - first, models.shape[1]))
        here = _Walks(
            first,
            last,
            walkers,
            to_device(np.ascontiguousarray(models)),
            to_device(np.ascontiguousarray(carried.astype(models.dtype))),
            self.cuda.device_array((last - first, max(state.models.shape[1], 1))),
        )
        if alone:
            self.resident = state, here
        return here

    def _bring_back(self, state: State, here: _Walks) -> None:
        rows, walkers = slice(here.first, here.last), here.walkers
        for name in ("nodes", "messages", "probes"):
            getattr(state, name)[rows] = getattr(walkers, name).copy_to_host()
        if state.visits_are_summed:
            state.visits += walkers.visits.copy_to_host()
        else:
            state.visits[rows] = walkers.visits.copy_to_host()
        if state.paths.size:
            kept = state.path_of[rows]
            kept = kept[kept >= 0]
            state.paths[kept] = walkers.paths.copy_to_host()[kept]
        if state.models.size:
            state.models[rows] = here.models.copy_to_host()
        if state.carried.size:
            state.carried[:, rows] = here.carried.copy_to_host()

    def _upload(self, group: Any) -> Any:
        """A group of arrays, on the card."""
        parts = (self.cuda.to_device(part) if isinstance(part, np.ndarray) else part for part in group)
        return type(group)(*parts)

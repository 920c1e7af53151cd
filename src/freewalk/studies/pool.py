"""Processes for the searches and sweeps behind what is stored beside the specs."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

#: Called with what is being done, how much of it is, and how much there is.
Tell = Callable[[str, int, int], None]

_THREADS = "OPENBLAS_NUM_THREADS"  # read by a process when it loads numpy


@contextmanager
def processes(workers: int | None) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, one for each core if None; linear algebra has one thread in each, as more would compete."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        # Not forked: a status line has a thread of its own.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before


def told(results: Iterable[Any], total: int, what: str, tell: Tell | None) -> Iterator[Any]:
    """The results as they come, with a word about each to `tell`."""
    for done, result in enumerate(results, start=1):
        if tell is not None:
            tell(what, done, total)
        yield result

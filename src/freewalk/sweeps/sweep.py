"""fw.sweep: what `freewalk sweep` does, in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xarray

    from freewalk.specs import Spec
    from freewalk.sweeps.points import Sweep


def sweep(
    spec: str | os.PathLike[str] | Spec | Sweep,
    over: Mapping[str, Any] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    on: Literal["threads", "processes", "ray"] = "threads",
    workers: int | None = None,
    address: str | None = None,
    walks: Literal["all", "mean"] = "all",
    progress: Callable[[int, int], None] | None = None,
) -> xarray.Dataset:
    """Run a spec at every point of a sweep, and combine the results.

    Every point is written to `folder` as soon as it is finished, under a hash of everything that it depends on.
    Finished points are not computed again: an interrupted sweep resumes, and after a change only the changed points are
    computed. Several processes can work on the same folder at the same time; no point is computed twice.

    User classes that a spec names are imported, which executes their code: do not run a spec that you do not trust.

    Parameters
    ----------
    spec
        A TOML file, or a spec from `freewalk.specs.load`.
    over
        What to vary instead of the table [sweep] of the spec: lists, arrays, or ranges as in a spec, by dotted key.
        Keys in `{"zip": [{…}]}` vary together.
    folder
        Where results are stored. Default: runs/<name of the spec>.
    on
        Where points are computed: in "threads" of this process, in "processes", which is faster for runs in plain
        Python, or on a "ray" cluster. With processes, a script must call this under `if __name__ == "__main__":`.
    workers
        The number of points computed at the same time. Default: one per core.
    address
        The address of a Ray cluster. Default: $RAY_ADDRESS if set, else a local cluster.
    walks
        Return "all" walks, or, much smaller, their "mean" with `<name>_half_width`, half of its 95 % confidence
        interval.
    progress
        Called with the number of finished points and the number of all points.

    Returns
    -------
    xarray.Dataset
        With one dimension per key, named after it, followed by design, walk and step, as in a record. Keys that vary
        together share a dimension, named after the first. After Ctrl-C, missing points are NaN and
        `attrs["partial"]` is 1.

    Raises
    ------
    SpecError
        If the spec cannot be run or varied this way, or some points cannot be computed; the others are kept.
    RecordError
        If a result cannot be written; finished points are kept.
    KeyboardInterrupt
        If no point was finished.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from freewalk.specs import shipped
    >>> over = {"walk.MHLJ.design.jump": [0.1, 0.5], "problem.seed": [1, 2, 3]}
    >>> with TemporaryDirectory() as folder:
    ...     data = sweep(shipped("sweep.toml"), over, folder=folder)
    >>> dict(data.mse.sizes)
    {'walk.MHLJ.design.jump': 2, 'problem.seed': 3, 'design': 2, 'walk': 20, 'step': 21}
    """
    from freewalk.checks import Checks
    from freewalk.errors import FreewalkError
    from freewalk.sweeps.crews import check_crew
    from freewalk.sweeps.folder import SweepFolder
    from freewalk.sweeps.points import sweep_of

    check = Checks(FreewalkError)
    check.choice("sweep", "walks", walks, ("all", "mean"))
    check.function("sweep", "progress", progress, ("finished", "points"))
    check_crew(on, workers, address)
    made = sweep_of(spec, over)
    path = None if folder is None else check.path("sweep", "folder", folder)
    place = SweepFolder.create(path, made)
    tell = None if progress is None else lambda there, total, done, whole: progress(there, total)
    stopped: dict[str, str] = {}
    try:
        place.run(on, workers, address, tell)
    except KeyboardInterrupt as interrupt:
        if not place.finished:
            raise
        stopped = {"interrupted_by": str(interrupt) or "SIGINT"}
    return place.gather(walks).assign_attrs(stopped)

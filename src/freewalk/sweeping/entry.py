"""fw.sweep: what `freewalk sweep` does, in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xarray

    from freewalk.experiment import Spec
    from freewalk.sweeping.points import Sweep


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
    """Run a spec at every point of a sweep, and put the results side by side.

    Every point is written to `folder` as soon as it is finished, under the hash of all that it depends on. What is
    there is not computed again: a sweep that was interrupted continues, and of one that was changed only what changed
    is computed. Several processes may work on the same folder at the same time; no point is computed by two of them.

    Classes of the user's own that a spec names are imported, which executes their code: run no spec that you do not
    trust.

    Parameters
    ----------
    spec
        A TOML file, or what `freewalk.experiment.load` made of one.
    over
        What to vary, in place of the table [sweep] of the spec: lists, arrays, or ranges as in a spec, by dotted key.
        Keys in `{"zip": [{…}]}` advance together.
    folder
        Where results are kept; None: runs/<name of the spec>.
    on
        Where points are computed: on "threads" of this process, on "processes", which is quicker for what runs in plain
        Python, or on a "ray" cluster. A script that uses processes does so under `if __name__ == "__main__":`.
    workers
        How many points at the same time; None: one for each core.
    address
        Of a Ray cluster; None: the one that $RAY_ADDRESS names, else a local one.
    walks
        "all" walks, or their "mean" with `<name>_half_width`, half of its 95 % confidence interval: much smaller.
    progress
        Called with the number of points that are there, and that of all points.

    Returns
    -------
    xarray.Dataset
        By one dimension per key, named by it, then by design, walk and step, as in a record. Keys that advance together
        share a dimension, named by the first. After Ctrl-C missing points are NaN, and `attrs["partial"]` is 1.

    Raises
    ------
    SpecError
        If the spec cannot be run or varied so, or some points could not be computed; the others are kept.
    RecordError
        If a result cannot be written; what was finished is kept.
    KeyboardInterrupt
        If no point was finished.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from freewalk.experiment import shipped
    >>> over = {"walk.MHLJ.design.jump": [0.1, 0.5], "problem.seed": [1, 2, 3]}
    >>> with TemporaryDirectory() as folder:
    ...     data = sweep(shipped("sweep.toml"), over, folder=folder)
    >>> dict(data.mse.sizes)
    {'walk.MHLJ.design.jump': 2, 'problem.seed': 3, 'design': 2, 'walk': 20, 'step': 21}
    """
    from freewalk.checks import Checks
    from freewalk.errors import FreewalkError
    from freewalk.sweeping.crews import check_crew
    from freewalk.sweeping.folder import SweepFolder, sweep_of

    check = Checks(FreewalkError)
    check.choice("sweep", "walks", walks, ("all", "mean"))
    check.function("sweep", "progress", progress, ("finished", "points"))
    check_crew(on, workers, address)
    made = sweep_of(spec, over)
    path = None if folder is None else check.path("sweep", "folder", folder)
    place = SweepFolder.create(path, made)
    tell = None if progress is None else lambda there, total, done, whole: progress(there, total)
    try:
        place.run(on=on, workers=workers, address=address, tell=tell)
    except KeyboardInterrupt as interrupt:
        if not place.finished:
            raise
        data = place.gather(walks)
        data.attrs["interrupted_by"] = str(interrupt) or "SIGINT"
        return data
    return place.gather(walks)

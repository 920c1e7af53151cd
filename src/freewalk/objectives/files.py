"""Read problems from files written by `save`."""

import os
from collections.abc import Sequence

from freewalk.errors import ProblemError
from freewalk.objectives import mapped
from freewalk.objectives.least_squares import LeastSquares
from freewalk.objectives.logistic import Logistic
from freewalk.objectives.predictor import Predictor
from freewalk.objectives.samples import check
from freewalk.storage.archive import name_of


def read(path: str | os.PathLike[str], *, verify: bool = True, types: Sequence[type[Predictor]] = ()) -> Predictor:
    """Map a problem from a file written by `save`, such as `LeastSquares(...).save(path)`.

    The samples stay on disk, are shared by all processes on the machine, and need no additional memory. A pickle of the
    problem contains only the path of the file.

    Parameters
    ----------
    path
        The file.
    verify
        Whether to read the file once, to compare its checksums and to check that all numbers are finite: about one
        second per gigabyte if it is in the page cache. Without it a file with one sample per node opens immediately;
        the header and the size are always checked.
    types
        Your own subclass of `Predictor`, if the file contains a problem of that class.

    Returns
    -------
    Predictor
        The problem, such as a `LeastSquares`. If the file has no `nodes`, its field `nodes` is None: every sample is
        its own node, in order.

    Raises
    ------
    ProblemError
        If the file is missing, truncated, modified or not a problem file, or its class is unknown.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0]).save(f"{folder}/prices.data")
    ...     problem = read(f"{folder}/prices.data")
    >>> problem.optimum()
    array([3., 2.])
    """
    check.flag("read", "verify", verify)
    own = check.items("read", "types", types, "a list of subclasses of fw.Predictor")
    for kind in own:
        if not isinstance(kind, type) or not issubclass(kind, Predictor):
            raise check.fail("read", "types", kind, "a list of subclasses of fw.Predictor")
    parts = mapped.opened(path, verify=verify)
    known: dict[str, type[Predictor]] = {name_of(kind): kind for kind in (LeastSquares, Logistic, *own)}
    if parts.kind not in known:
        word = parts.kind.removeprefix("own ")
        raise ProblemError(f"{path}: contains a problem of your own class {word}; pass it: read(path, types=[{word}])")
    # The rows of each node are checked in any case: compiled code relies on them.
    return known[parts.kind]._of_parts(parts, checked=verify or parts.nodes is not None)

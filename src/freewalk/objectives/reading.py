"""Problems from the files that `save` wrote."""

import os
from collections.abc import Sequence

from freewalk.archive import name_of
from freewalk.errors import ProblemError
from freewalk.objectives import storing
from freewalk.objectives.least_squares import LeastSquares
from freewalk.objectives.logistic import Logistic
from freewalk.objectives.predictor import Predictor
from freewalk.objectives.samples import check


def read(path: str | os.PathLike[str], *, verify: bool = True, types: Sequence[type[Predictor]] = ()) -> Predictor:
    """Map the problem in a file that `save` wrote, such as `LeastSquares(...).save(path)`.

    The samples stay where they are, are shared by all processes of the machine, and need no memory beside the file. A
    pickle of the problem holds the place of the file.

    Parameters
    ----------
    path
        The file.
    verify
        Whether it is read once to compare its checksums and to see that all numbers are finite: about a second for each
        gigabyte, if it is in the page cache. Without it a file with one sample per node is open at once; the header and
        the size are checked in any case.
    types
        Your own subclass of `Predictor`, if the file holds a problem of that class.

    Returns
    -------
    Predictor
        The problem, such as a `LeastSquares`. Without `nodes` in the file, its field `nodes` is None: every sample is a
        node, in order.

    Raises
    ------
    ProblemError
        If the file is missing, truncated, changed or no such file, or of a class that is not known.

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
    parts = storing.opened(path, verify=verify)
    known: dict[str, type[Predictor]] = {name_of(kind): kind for kind in (LeastSquares, Logistic, *own)}
    if parts.kind not in known:
        word = parts.kind.removeprefix("own ")
        raise ProblemError(f"{path}: holds a problem of your own class {word}; pass it: read(path, types=[{word}])")
    # Which rows belong to a node is looked at in any case: compiled code trusts it.
    return known[parts.kind]._of_parts(parts, checked=verify or parts.nodes is not None)

"""Exceptions and warnings: each message names who objects, what it got, what it expected and what to do."""


class FreewalkError(ValueError):
    """Base class of all errors that freewalk raises deliberately."""


class GraphError(FreewalkError):
    """A graph that cannot be walked: it is empty, disconnected or malformed."""


class KernelError(FreewalkError):
    """A table of moves that is not a Markov chain on its graph."""


class ProblemError(FreewalkError):
    """Data or a model that an objective cannot use."""


class SpecError(FreewalkError):
    """A spec file that does not define a valid run."""


class RecordError(FreewalkError):
    """A record that cannot be read, joined or resumed."""


class AnalysisError(FreewalkError):
    """A question without an exact answer for this chain, problem or problem size."""


class PeerError(FreewalkError):
    """A problem between peers: a configuration, a certificate or a message."""


class MissingExtra(FreewalkError):
    """An optional package is required but not installed.

    Parameters
    ----------
    package
        The module that could not be imported.
    extra
        The name of the extra that installs it.

    Examples
    --------
    >>> print(MissingExtra("torch", "torch"))
    'torch' is not installed; install it with: pip install ".[torch]" (in the checkout of freewalk)
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"'{package}' is not installed; install it with: {install_line(extra)}")


def install_line(extra: str) -> str:
    """The command that installs an extra: in a checkout, because freewalk is not published."""
    return f'pip install ".[{extra}]" (in the checkout of freewalk)'


class FreewalkWarning(UserWarning):
    """Base class of all freewalk warnings: the call works, but perhaps not as intended."""


class TargetWarning(FreewalkWarning):
    """A walk does not sample the distribution from which its gradient weights are computed."""


class LoopWarning(FreewalkWarning):
    """Walks are trained one after another because their module does not support batching: correct, but slower."""


class CacheWarning(FreewalkWarning):
    """The compilation cache cannot be used: its folder is not writable, or other users could modify it."""

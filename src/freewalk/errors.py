"""The errors a user can meet: each says who objects, what it got, what it expected and what to do."""


class FreewalkError(ValueError):
    """Base class of every error that freewalk raises on purpose."""


class GraphError(FreewalkError):
    """A graph that cannot be walked: empty, disconnected, malformed."""


class KernelError(FreewalkError):
    """A table of moves that is not a Markov chain on its graph."""


class ProblemError(FreewalkError):
    """Data or a model that an objective cannot use."""


class SpecError(FreewalkError):
    """A spec file that does not say what to run."""


class RecordError(FreewalkError):
    """A record that cannot be read, joined or resumed."""


class AnalysisError(FreewalkError):
    """A question that has no exact answer here: the chain, the problem or its size does not allow one."""


class PeerError(FreewalkError):
    """Something between peers is wrong: a configuration, a certificate, a message."""


class MissingExtra(FreewalkError):
    """An optional package is needed.

    Parameters
    ----------
    package
        The module that could not be imported.
    extra
        The name of the extra that installs it.

    Examples
    --------
    >>> print(MissingExtra("torch", "torch"))
    'torch' is not installed; install it with: pip install "freewalk[torch]"
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"'{package}' is not installed; install it with: pip install \"freewalk[{extra}]\"")


class FreewalkWarning(UserWarning):
    """Base class of every warning of freewalk: something works, but perhaps not as it was meant."""


class TargetWarning(FreewalkWarning):
    """A walk does not sample the distribution from which its weights come."""


class LoopWarning(FreewalkWarning):
    """Many walks are learned one after the other, since their module does not allow a batch: right, but slower."""


class CacheWarning(FreewalkWarning):
    """Compiled code cannot be kept where it was meant to be: others could change it there, or it cannot be written."""

"""The contestants of `make bench`: one file an idea, all held to the same problem and to the same loss."""

from collections.abc import Sequence

from contestants import freewalk_cpu, freewalk_cuda, gossipy_push, jax_scan, numba_loop, numpy_loop, tvopt_gradient
from contestants.contestant import Contestant


def everyone(walks: int, steps: int) -> Sequence[Contestant]:
    """Every contestant, in the order of the table."""
    makers = (freewalk_cpu, freewalk_cuda, numpy_loop, numba_loop, jax_scan, gossipy_push, tvopt_gradient)
    return [contestant for maker in makers for contestant in maker.contestants(walks, steps)]

"""Jumps as a perturbation: the two chains that MHLJ mixes, and the bias of its stationary distribution, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freewalk.analysis.chain.chain import check_constant, stationary
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats, Matrix
from freewalk.linear.elimination import PLAIN
from freewalk.linear.stationary import Flows, leaving_rates

_ROUNDS = 4  # each reduces the error by five digits
_KEEPS = 1e-9  # how much, in total, one step may change a distribution that counts as invariant


@dataclass(frozen=True, eq=False)
class Pieces:
    """P = (1 − p_J) P_IS + p_J P_Lévy."""

    jump: float  # p_J
    metropolis: Matrix  # P_IS: the chain that preserves the target
    levy: Matrix  # P_IS without jumps
    distance: float  # ‖P_IS − P_Lévy‖, the largest absolute row sum; 0 without jumps


def pieces_of(who: str, kernel: Kernel) -> Pieces:
    """Split a kernel of the form that the paper analyses into the chain that preserves its target and the jumps."""
    from scipy.sparse import csr_array

    check_constant(who, kernel)
    first, rest = kernel.moves[0], kernel.moves[1:]

    def refused(why: str) -> AnalysisError:
        return AnalysisError(
            f"{who}: {kernel.label} {why}. fw.designs.MHLJ makes such kernels, Metropolis those without jumps; "
            "stationary, accumulated_error and exact_curve take any kernel"
        )

    if rest and (first.ratio is None or first.hops != 1):
        raise refused(f"begins with {first!r}, expected a Metropolis hop, then jumps")
    for move in rest:
        if move.ratio is not None:
            raise refused(f"has the jump {move!r}, which can be rejected (so adds no bias), expected no ratio")
    powers: list[Matrix] = []
    metropolis = kernel.move_matrix(first, powers)
    target = np.asarray(kernel.target)
    moved = float(np.abs(metropolis.T @ target - target).sum())
    if moved > _KEEPS:
        raise refused(f"does not preserve its target without jumps, expected one that does ({moved:.3g} of it moves)")
    jumps = [move for move in rest if move.probability > 0]
    if not jumps:
        return Pieces(0.0, metropolis, metropolis, 0.0)
    jump = float(sum(move.probability for move in jumps))
    parts = [(move.probability / jump) * kernel.move_matrix(move, powers) for move in jumps]
    levy = csr_array(sum(parts[1:], parts[0]))
    return Pieces(jump, metropolis, levy, float(abs(metropolis - levy).sum(axis=1).max()))


@dataclass(frozen=True, eq=False)
class BiasIdentity:
    """Both sides of ν − π = p_J π (P_Lévy − P_IS) Z, and the paper's bound.

    Parameters
    ----------
    law
        ν, the stationary distribution of the walk.
    target
        π, the distribution it was meant to have.
    predicted
        p_J π (P_Lévy − P_IS) Z with Z = (I − P + 1ν)⁻¹.
    error
        The largest difference between ν − π and `predicted`: rounding.
    total_variation
        ½ Σ_v |ν_v − π_v|.
    jump
        p_J.
    distance
        ‖P_IS − P_Lévy‖, the largest absolute row sum. It is at most 2.
    constant
        The smallest C with total variation ≤ C p_J ‖P_IS − P_Lévy‖; NaN without jumps. It is not universal: it grows
        with the time the walk takes to mix, and never exceeds the mixing time.
    printed_limit
        n², the paper's bound on `distance`.
    """

    law: Floats
    target: Floats
    predicted: Floats
    error: float
    total_variation: float
    jump: float
    distance: float
    constant: float
    printed_limit: float

    def __str__(self) -> str:
        """The bias, and how tight the bound is."""
        return (
            f"bias of the walk   total variation {self.total_variation:.4g}; both sides agree to {self.error:.1g}\n"
            f"the paper's bound  C · p_J · norm with p_J = {self.jump:.4g}, norm = {self.distance:.4g} "
            f"(≤ 2; printed: ≤ {self.printed_limit:.4g}), smallest C = {self.constant:.4g}"
        )


def bias_identity(kernel: Kernel) -> BiasIdentity:
    """Compute how far jumps move the stationary distribution from the target, exactly and by the paper's bound.

    From ν = νP and π = πP_IS: (ν − π)(I − P) = π(P − P_IS) = p_J π(P_Lévy − P_IS), and Z inverts I − P on vectors that
    add up to 0.

    Parameters
    ----------
    kernel
        A Metropolis hop, and jumps that are always accepted.

    Raises
    ------
    AnalysisError
        If the kernel is not of that form.

    References
    ----------
    Seneta, *Perturbation of the stationary distribution measured by ergodicity coefficients*, 1988.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> found = bias_identity(kernel)
    >>> found.law.round(4)
    array([0.7065, 0.0677, 0.0791, 0.0791, 0.0677])
    >>> found.error < 1e-12
    True
    """
    pieces = pieces_of("bias_identity", kernel)
    target = np.asarray(kernel.target)
    law = stationary(kernel, who="bias_identity")
    source = pieces.jump * ((pieces.levy - pieces.metropolis).T @ target)
    predicted = _through_fundamental(kernel, law, source)
    variation = 0.5 * float(np.abs(law - target).sum())
    size = pieces.jump * pieces.distance
    return BiasIdentity(
        law=law,
        target=target,
        predicted=predicted,
        error=float(np.abs(law - target - predicted).max()),
        total_variation=variation,
        jump=pieces.jump,
        distance=pieces.distance,
        constant=variation / size if size > 0 else np.nan,
        printed_limit=float(kernel.graph.n) ** 2,
    )


def _through_fundamental(kernel: Kernel, law: Floats, source: Floats) -> Floats:
    """Multiply a row that adds up to 0 by Z: solve r (I − P) = source for an r that adds up to 0."""
    steps = Flows(leaving_rates(kernel.matrix()))
    if law.size > PLAIN:  # factors of large matrices fill in
        solve = steps.solver(law)
        row = np.zeros(law.size)
        for _ in range(_ROUNDS):
            row = row + solve(source + steps.change(row))
            row = row - row.sum() * law
        return row
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import spsolve

    equations = csc_array(eye_array(law.size) - kernel.matrix().T)
    # The equations leave a multiple of ν undetermined: start with r = 0 at one node. The node where the distribution is
    # largest keeps the rounding small.
    rest = np.delete(np.arange(law.size), int(np.argmax(law)))
    row = np.zeros(law.size)
    row[rest] = spsolve(equations[rest][:, rest], source[rest])
    return np.asarray(row - row.sum() * law)

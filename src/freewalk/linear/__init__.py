"""Linear algebra of Markov chains, exact or refused: stationary distributions, hitting times, absorption.

A chain is given by its *leaving rates*, the positive probabilities of going from one node to another. Its diagonal is
never read: where a walk seldom leaves, 1 − P(v, v) has lost its digits. `stationary.py` has the rates, and chooses how
a stationary distribution is computed: a guess in detailed balance is the answer; small and narrow chains are eliminated
(`elimination.py`: without subtraction, so every component has nearly all its digits, whatever the orders of magnitude;
dense matrices block by block, narrow ones by compiled code); all others are corrected until the residual is at rounding
level, by `krylov.py` (GMRES and BiCGSTAB of scipy) on the levels of `aggregation.py`. What does not converge is an
error, never a number.

`deadline.py` is a time limit that a caller sets around a computation and long loops check.
"""

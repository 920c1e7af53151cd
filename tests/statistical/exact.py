"""Exact laws of small chains, and tests of counts against them.

LEVEL is the chance that one test rejects a walk that is right, for a seed drawn at random. The seeds are fixed, so a
test that has passed once passes always; with new seeds, all the tests of this folder together (fewer than 200 of them,
by the sum of their levels) would fail less than once in 5000 times.
"""

import numpy as np
from scipy import stats

LEVEL = 1e-6


def law_after(kernel, start, steps):
    """The law of the node after some steps from a node or a law, by the matrix of each step."""
    n = kernel.graph.n
    law = np.eye(n)[start] if np.ndim(start) == 0 else np.asarray(start)
    matrix = kernel.matrix()
    for step in range(steps):
        law = law @ (kernel.matrix(step) if kernel.fade is not None else matrix)
    return np.where(law < 1e-15, 0.0, law)


def stationary(kernel):
    n = kernel.graph.n
    equations = np.vstack([kernel.matrix().toarray().T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0]


def p_value(nodes, law):
    """Chi-square test of independent nodes against their exact law; cells with fewer than 10 expected are joined."""
    counts = np.bincount(nodes, minlength=law.size)
    if counts[law == 0].any():
        return 0.0
    expected = nodes.size * law
    small = expected < 10
    groups = np.append(counts[~small], counts[small].sum()), np.append(expected[~small], expected[small].sum())
    observed, expected = (values[groups[1] > 0] for values in groups)
    if observed.size == 1:
        return 1.0
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def mean_p_value(samples, expectation):
    """Student's test of each column's mean over independent rows, with Bonferroni's correction over the columns."""
    rows, columns = samples.shape
    error = samples.std(axis=0, ddof=1) / np.sqrt(rows)
    scores = np.abs(samples.mean(axis=0) - expectation) / np.maximum(error, 1e-12)
    return float(min(1.0, columns * 2 * stats.t.sf(scores.max(), rows - 1)))

"""Designs say what they cannot do: who, what they got, what they expected."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import FreewalkError, KernelError

RING = fw.graphs.ring(5)
ONES = np.ones(5)
NEEDY = [Metropolis(power=1), MHLJ(0.1, 0.5, 3), ClosedFormMHLJ(0.1, 0.5, 3), Centralized(power=1)]


def fails(message, action):
    with pytest.raises(KernelError, match=message):
        action()


def test_kernel_errors_are_freewalk_errors_and_value_errors():
    assert issubclass(KernelError, FreewalkError)
    assert issubclass(FreewalkError, ValueError)


@pytest.mark.parametrize("design", NEEDY, ids=repr)
def test_missing_importance(design):
    fails(
        r"needs the importance of the nodes; pass it: .kernel\(graph, problem.smoothness\)", lambda: design.kernel(RING)
    )


@pytest.mark.parametrize("design", [SimpleWalk(), Metropolis(), Metropolis(target=ONES), Centralized()], ids=repr)
def test_importance_may_be_left_out_where_it_is_not_used(design):
    assert np.allclose(design.kernel(RING).target, 0.2)


@pytest.mark.parametrize("design", [SimpleWalk(), *NEEDY], ids=repr)
@pytest.mark.parametrize(
    ("importance", "message"),
    [
        ([1, 1, 1], r"importance has shape \(3,\), expected \(5,\): one number per node"),
        (np.ones((5, 1)), r"importance has shape \(5, 1\), expected \(5,\)"),
        (2.0, r"importance has shape \(\), expected \(5,\)"),
        ([1, 1, 0, 1, 1], r"importance of node 2 is 0.0, expected a finite number > 0; a node without"),
        ([1, 1, 1, -2, 1], r"importance of node 3 is -2.0, expected a finite number > 0"),
        ([1, np.nan, 1, 1, 1], r"importance of node 1 is nan, expected a finite number > 0"),
        ([1, 1, 1, 1, np.inf], r"importance of node 4 is inf, expected a finite number > 0"),
    ],
)
def test_bad_importance(design, importance, message):
    fails(re.escape(repr(design)) + ".*" + message, lambda: design.kernel(RING, importance))


@pytest.mark.parametrize("kind", [MHLJ, ClosedFormMHLJ])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((-0.1, 0.5, 3), r"MHLJ: jump = -0.1, expected a probability from 0 to 1"),
        ((1.1, 0.5, 3), r"MHLJ: jump = 1.1, expected a probability from 0 to 1"),
        ((np.nan, 0.5, 3), r"MHLJ: jump = nan"),
        ((0.1, 0.0, 3), r"MHLJ: stop = 0.0, expected a probability above 0 and up to 1"),
        ((0.1, 1.5, 3), r"MHLJ: stop = 1.5, expected a probability above 0 and up to 1"),
        ((0.1, 0.5, 0), r"MHLJ: hops = 0, expected a whole number from 1 to 10000; jump=0 makes no jumps"),
        ((0.1, 0.5, -2), r"MHLJ: hops = -2, expected a whole number from 1"),
        ((0.1, 0.5, 2.5), r"MHLJ: hops = 2.5, expected a whole number from 1"),
        ((0.1, 0.5, True), r"MHLJ: hops = True, expected a whole number from 1"),
    ],
)
def test_parameters_of_jumps(kind, parameters, message):
    fails(message, lambda: kind(*parameters))


@pytest.mark.parametrize("power", [np.nan, np.inf])
@pytest.mark.parametrize(
    "kind", [lambda p: Metropolis(power=p), lambda p: MHLJ(0.1, 0.5, 3, p), lambda p: Centralized(p)]
)
def test_powers_are_finite(kind, power):
    fails(
        r"power = .*, expected a finite number; 0 is uniform, 1 is importance",
        lambda: kind(power).kernel(RING, ONES),
    )


@pytest.mark.parametrize("design", [Metropolis(target=[1, 2]), FromMatrix(np.eye(5), target=[1, 2])], ids=repr)
def test_targets_have_a_number_a_node(design):
    fails(r"has shape \(2,\), expected \(5,\)", lambda: design.kernel(RING))


@pytest.mark.parametrize("law", [[1, 0, 1, 1, 1], [1, -1, 1, 1, 1], [1, np.nan, 1, 1, 1]], ids=repr)
@pytest.mark.parametrize("kind", [lambda law: Metropolis(target=law), lambda law: FromMatrix(np.eye(5), target=law)])
def test_targets_are_positive(kind, law):
    fails(r"of node 1 is .*, expected a finite number > 0", lambda: kind(law).kernel(RING))


MATRICES = [
    (np.eye(4), r"got a matrix of shape \(4, 4\), expected \(5, 5\) as the graph"),
    (np.eye(5) * 0.5, r"row 0 of its matrix adds up to 0.5, expected 1; divide each row by its sum"),
    (np.full((5, 5), 0.2), r"goes from node 0 to node 2, which is not an edge of ring\(5\)"),
    (
        2 * np.eye(5) - RING.adjacency().toarray() / 2,
        r"entries that are negative or not finite; expected probabilities",
    ),
    (np.eye(5) * np.nan, r"entries that are negative or not finite; expected probabilities"),
]


@pytest.mark.parametrize(("matrix", "message"), MATRICES, ids=["shape", "sum", "edges", "negative", "nan"])
@pytest.mark.parametrize(
    "kind",
    [FromMatrix, lambda matrix: FromMatrix(matrix, target=ONES), lambda matrix: Metropolis(proposal=matrix)],
    ids=["FromMatrix", "FromMatrix with a target", "Metropolis"],
)
def test_matrices(kind, matrix, message):
    fails(message, lambda: kind(matrix).kernel(RING))


def test_a_bad_proposal_is_called_so():
    fails(
        r"Metropolis\(power=0, proposal=…\): proposal: row 0", lambda: Metropolis(proposal=np.eye(5) * 0.5).kernel(RING)
    )


def test_a_matrix_has_two_dimensions():
    fails(r"FromMatrix: P:? has shape \(5,\), expected a square matrix", lambda: FromMatrix(ONES))


def test_a_reducible_matrix_needs_a_target():
    fails(
        r"FromMatrix: P is reducible \(5 strongly connected parts\), so its stationary distribution is not unique.* "
        "pass target=",
        lambda: FromMatrix(np.eye(5)).kernel(RING),
    )


@pytest.mark.parametrize("arguments", [("MHLJ", fw.schedules.Constant(1.0)), (SimpleWalk(), 0.5)], ids=repr)
def test_decaying_takes_a_design_and_a_schedule(arguments):
    fails(r"Decaying: (design|schedule) = .*, expected a (design|schedule), as in", lambda: Decaying(*arguments))


def test_decaying_does_not_decay_twice():
    once = Decaying(MHLJ(0.1, 0.5, 3), fw.schedules.Inverse(1.0, 10))
    fails(r"Decaying: the design decays already; multiply the schedules", lambda: Decaying(once, once.schedule))


def test_a_design_of_ones_own_is_checked_like_any_other():
    @dataclass(frozen=True)
    class Leaky(fw.Design):
        def moves(self, graph, importance):
            return [fw.Move(0.5), fw.Move(0.4, hops=2)]

        def target(self, graph, importance):
            return graph.degrees

    fails(r"Leaky\(\): the probabilities of its moves add up to 0.9, expected 1", lambda: Leaky().kernel(RING))


def test_a_design_must_say_its_moves_and_its_target():
    with pytest.raises(TypeError, match="abstract"):
        fw.Design()


def test_labels():
    assert MHLJ(0.1, 0.5, 3).kernel(RING, ONES).label == "MHLJ(jump=0.1, stop=0.5, hops=3, power=1.0, corrected=False)"
    assert SimpleWalk().kernel(RING, label="simple").label == "simple"
    assert repr(Metropolis(target=ONES)) == "Metropolis(target=…)"
    assert repr(FromMatrix(np.eye(5), target=ONES)) == "FromMatrix(P, target=…)"

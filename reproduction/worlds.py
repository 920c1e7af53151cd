"""Settings ("worlds") in which a figure of the paper may have been made, and their distance from its printed curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.designs import MHLJ, ClosedFormMHLJ, Design
from freewalk.designs.kernel import Move
from freewalk.graphs import Graph
from reproduction.search import Tried, graph_of, simulate, spec_of

Floats = NDArray[np.float64]

FIGURES = ("3", "5a", "5b", "6")  # those that print a curve of MHLJ
JUMPS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)  # that are fitted to all figures
D_HOPS, ONE_MORE, CLOSED_FORM = "d hops", "d + 1 hops", "closed form"
#: The factors of a world, besides a draw of the data; the noise is a multiple of that of the spec.
VALUES: dict[str, tuple[Any, ...]] = {
    "jump": (0.1, 0.3, 0.5, 0.7, 0.9),
    "stop": (0.3, 0.5, 0.7, 0.9),
    "hops": (1, 2, 3, 5, 10),
    "noise": (0.5, 0.707107, 1.0, 1.414214, 2.0),
    "heavy": (1, 2, 3, 5, 8),
    "reading": (D_HOPS, ONE_MORE, CLOSED_FORM),
}
DIVERGED = 10.0  # decades, where every step of a curve diverges
_SEED = 20_260_101  # of the draws of worlds


class Score(NamedTuple):
    """The distance of a world from the printed curves: the smallest RMS over all steps, in decades.

    Attributes
    ----------
    worst
        Of the worst of MH uniform, MH importance and MHLJ, the last two with the same step.
    jumping
        Of MHLJ alone, with the step that suits it best.
    """

    worst: float
    jumping: float


@dataclass(frozen=True)
class World:
    """Everything that is varied, apart from the steps, which are fitted to each world.

    Attributes
    ----------
    seed
        The draw of the data.
    jump, stop, hops
        p_J, p_d and r of MHLJ.
    noise
        Its standard deviation, in multiples of that of the figure's published spec.
    heavy
        The number of heavy nodes.
    reading
        What a jump is: "d hops", "d + 1 hops" (Algorithm 1 to the letter) or "closed form" (the printed matrix).
    """

    seed: int
    jump: float
    stop: float
    hops: int
    noise: float
    heavy: int
    reading: str

    def design(self) -> Design:
        """The design that represents MHLJ in this world."""
        if self.reading == CLOSED_FORM:
            return ClosedFormMHLJ(self.jump, self.stop, self.hops)
        hopping = MHLJ(self.jump, self.stop, self.hops)
        return OneHopMore(hopping) if self.reading == ONE_MORE else hopping


@dataclass(frozen=True)
class OneHopMore(Design):
    """MHLJ whose jumps are one hop longer: the loop of Algorithm 1 as it is printed, `while d >= 0`.

    Examples
    --------
    >>> import freewalk as fw
    >>> OneHopMore(MHLJ(0.1, 0.5, 2)).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1]).moves
    (Move(0.9, hops=1, ratio=…), Move(0.0666667, hops=2), Move(0.0333333, hops=3))
    """

    design: MHLJ

    @property
    def biased(self) -> bool:
        """As the design."""
        return self.design.biased

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """Those of the design, each jump with one hop more."""
        step, *jumps = self.design.moves(graph, importance)
        return [step, *(replace(jump, hops=jump.hops + 1) for jump in jumps)]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """That of the design."""
        return self.design.target(graph, importance)


def draw(figure: str, worlds: int, seeds: int) -> list[World]:
    """Random worlds for a figure: the values of each factor equally often, in a random order."""
    generator = np.random.default_rng([_SEED, FIGURES.index(figure)])
    # On a regular graph the closed form is the same as hops, so drawing it would be useless.
    regular = len(set(graph_of(figure).degrees.tolist())) == 1
    choices = {"seed": range(1, seeds + 1), **VALUES, "reading": VALUES["reading"][: 2 if regular else 3]}
    columns = [generator.permutation(np.resize(np.array(values), worlds)).tolist() for values in choices.values()]
    return [World(*row) for row in zip(*columns, strict=True)]


def point(figure: str, jump: float, seed: int) -> Score:
    """One score of the joint fit: of one figure, jump probability and draw of the data."""
    return points(figure, seed, (jump,))[jump]


def score(figure: str, world: World) -> Score:
    """The score of one world."""
    noise = world.noise * spec_of(figure).tables.problem["noise"]
    return _least(simulate(figure, world.seed, {world.jump: world.design()}, noise=noise, heavy=world.heavy))


def points(figure: str, seed: int, jumps: Sequence[float] = JUMPS) -> dict[float, Score]:
    """The scores of one draw of the data by jump probability, with p_d = 0.5 and r = 3, as stated."""
    trial = simulate(figure, seed, {jump: MHLJ(jump, 0.5, 3) for jump in jumps})
    return {jump: _least([tried for tried in trial if tried.setting.jump == jump]) for jump in jumps}


def _least(trial: list[Tried]) -> Score:
    least = (min(tried.worst for tried in trial), min(tried.jumping for tried in trial))
    return Score(*(float(f"{min(value, DIVERGED):.7g}") for value in least))  # further digits are rounding errors

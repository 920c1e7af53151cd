"""What the printed curves tell about MHLJ's parameters: one jump probability for all figures, and all factors varied.

The search in `search` takes each figure by itself, with the stopping probability and the longest jump as stated. Here
the figures share one jump probability, and everything that a spec takes for granted is varied at the same time.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import SpecError
from freewalk.paper.fit import SPACES, WALKS
from freewalk.report.page import Table
from freewalk.run.loop import Progress
from freewalk.storage import files
from reproduction.calls import calling
from reproduction.search import spec_of
from reproduction.worlds import FIGURES, JUMPS, VALUES, Score, World, draw, points, score

Floats = NDArray[np.float64]
#: The result that the documentation shows.
STORED = Path(__file__).with_suffix(".json")
#: What is scored: the worst of MH uniform, MH importance and MHLJ, or MHLJ alone.
Kind = Literal["worst", "jumping"]

NAMES = {
    "seed": "draw of the data",
    "jump": "jump probability p_J",
    "stop": "stopping probability p_d",
    "hops": "longest jump r",
    "noise": "noise / that of the spec",
    "heavy": "number of heavy nodes",
    "reading": "hops of a jump",
}
WITHIN = 0.15  # decades, a factor of 1.4
FAR = 1.0  # decades; beyond that, worlds count as equally wrong
_SHUFFLES = 1000  # to find out how much chance explains
_SEED = 20_260_102  # of the shuffles


@dataclass(frozen=True)
class Sensitivity:
    """The result of `explore`: scores, from which everything else is computed.

    Attributes
    ----------
    joint
        By figure and jump probability: a score for each draw of the data, seeds 1, 2, 3, …
    worlds
        By figure: random worlds and their scores.
    """

    joint: dict[str, dict[float, list[Score]]]
    worlds: dict[str, list[tuple[World, Score]]]

    def save(self, path: Path) -> None:
        """Write it as JSON, with one line for each list of scores and for each world."""
        joint = {
            figure: {str(jump): _columns(scores) for jump, scores in row.items()} for figure, row in self.joint.items()
        }
        worlds = {figure: [(*astuple(world), *score) for world, score in row] for figure, row in self.worlds.items()}
        files.write(path, _written({"joint": joint, "worlds": worlds}) + "\n")

    @staticmethod
    def load(path: Path) -> "Sensitivity":
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        joint = {
            figure: {
                float(jump): [Score(*pair) for pair in zip(one["worst"], one["jumping"], strict=True)]
                for jump, one in row.items()
            }
            for figure, row in values["joint"].items()
        }
        split = len(NAMES)
        worlds = {
            figure: [(World(*line[:split]), Score(*line[split:])) for line in row]
            for figure, row in values["worlds"].items()
        }
        return Sensitivity(joint, worlds)

    def scores(self, kind: Kind = "worst") -> Floats:
        """The joint fit, by figure, jump probability and draw of the data."""
        return np.array([[_columns(scores)[kind] for scores in row.values()] for row in self.joint.values()])

    @property
    def jumps(self) -> list[float]:
        """The jump probabilities of the joint fit."""
        return list(next(iter(self.joint.values())))

    def joint_best(
        self, over_draws: Callable[..., Any] = np.median, over_figures: Callable[..., Any] = np.mean
    ) -> float:
        """The one jump probability whose worst RMS is least.

        Parameters
        ----------
        over_draws
            What makes one number of the draws of the data: `np.median`, or `np.min` for the best of them.
        over_figures
            What makes one number of the figures: `np.mean` or `np.max`.
        """
        return self.jumps[int(over_figures(over_draws(self.scores(), axis=2), axis=0).argmin())]

    def resampled(self) -> Floats:
        """How often each jump probability is the joint best, by the mean of the medians, if data are drawn again."""
        scores, generator = self.scores(), np.random.default_rng(_SEED)
        figures, jumps, draws = scores.shape
        wins = np.zeros(jumps)
        for _ in range(_SHUFFLES):
            # Each figure has data of its own, which all its jump probabilities share.
            chosen = generator.integers(draws, size=(figures, 1, draws))
            wins[np.median(np.take_along_axis(scores, chosen, axis=2), axis=2).mean(axis=0).argmin()] += 1
        return wins / _SHUFFLES

    def explained(self, figure: str, kind: Kind = "worst") -> dict[str, tuple[float, float]]:
        """How much of the variance of log RMS over the worlds each factor explains alone.

        The noise sets the floor of all curves and would hide the rest. So its share is that of the whole variance, and
        those of the other factors are shares of what the noise leaves. An RMS of more than a decade counts as one.

        Returns
        -------
        dict
            By factor: the share, corrected for the number of values so that chance gives 0 on average (adjusted R²),
            and the share that shuffled worlds exceed once in a hundred times.
        """
        worlds = [world for world, _ in self.worlds[figure]]
        values = {factor: _indices([getattr(world, factor) for world in worlds]) for factor in NAMES}
        whole = np.log([min(getattr(score, kind), FAR) for _, score in self.worlds[figure]])
        left = whole - _means(whole[None], values["noise"])[0]
        generator, found = np.random.default_rng(_SEED), {}
        for factor, groups in values.items():
            logs = whole if factor == "noise" else left
            shuffled = generator.permuted(np.tile(logs, (_SHUFFLES, 1)), axis=1)
            share, *by_chance = _share(np.vstack([logs, shuffled]), groups)
            found[factor] = (float(share), float(np.quantile(by_chance, 0.99)))
        return found

    def having(self, figure: str, factor: str, value: Any, kind: Kind = "worst") -> Floats:
        """The scores of the worlds that have this value of a factor."""
        row = self.worlds[figure]
        return np.array([getattr(score, kind) for world, score in row if getattr(world, factor) == value])

    def tables(self) -> list[Table]:
        """What it says, for people."""
        wins = (f"{jump:g} ({share:.0%})" for jump, share in zip(self.jumps, self.resampled(), strict=True) if share)
        again = f"With the draws resampled {_SHUFFLES} times, the mean is least at {', '.join(wins)}."
        return [
            self._joint_table("worst", np.min, "the best of the draws"),
            self._joint_table("worst", np.median, "the median over the draws", again),
            self._joint_table("jumping", np.median, "the median over the draws"),
            self._near_table(),
            self._share_table(),
            self._value_table("worst"),
            self._value_table("jumping"),
        ]

    def _joint_table(self, kind: Kind, over_draws: Callable[..., Any], words: str, more: str = "") -> Table:
        values = over_draws(self.scores(kind), axis=2).T
        each = [f"{values[i, figure]:.3f} at {self.jumps[i]:g}" for figure, i in enumerate(values.argmin(axis=0))]
        rows = [
            [f"{jump:g}", *(f"{value:.3f}" for value in (*row, row.max(), row.mean()))]
            for jump, row in zip(self.jumps, values, strict=True)
        ]
        least = values.min(axis=0)
        rows.append(["each its own", *each, f"{least.max():.3f}", f"{least.mean():.3f}"])
        return Table(
            ["p_J", *_titles(self.joint), "largest", "mean"],
            rows,
            f"One jump probability for all figures: the RMS of {_WHAT[kind]}, in decades, {words} of the data (seeds 1 "
            f"to {self.scores().shape[2]}), each with the steps that suit it best; p_d = 0.5 and r = 3, by simulation "
            f"with {WALKS} walks. {more}".strip(),
        )

    def _near_table(self) -> Table:
        draws = self.scores().shape[2]
        near = (self.scores() <= WITHIN).sum(axis=2).T
        return Table(
            ["p_J", *_titles(self.joint), "all, in a million"],
            [
                [f"{jump:g}", *map(str, row), f"{1e6 * np.prod(row / draws):.0f}"]
                for jump, row in zip(self.jumps, near, strict=True)
            ],
            f"How many of the {draws} draws of the data have some steps with which {_WHAT['worst']} is within {WITHIN} "
            "decades RMS of the print; the last column is the product of the shares, as each figure has its own data.",
        )

    def _share_table(self) -> Table:
        rows = []
        kinds: tuple[Kind, ...] = ("worst", "jumping")
        for kind in kinds:
            found = [self.explained(figure, kind) for figure in self.worlds]
            # The noise first: the others have shares of what it leaves.
            for factor in sorted(NAMES, key=lambda name: name != "noise"):
                cells = [f"{one[factor][0]:.0%}" if one[factor][0] > one[factor][1] else "–" for one in found]
                rows.append([_WHAT[kind], NAMES[factor], *cells])
        counts = ", ".join(map(str, sorted({len(row) for row in self.worlds.values()})))
        return Table(
            ["RMS of", "factor", *_titles(self.worlds)],
            rows,
            f"What decides how near a world comes to the print, if all factors are drawn at once, at random ({counts} "
            "worlds for each figure, each with the steps that suit it best): the share of the variance of log RMS that "
            "the noise explains, and the share of the rest that each other factor explains alone. –: no more than what "
            "shuffled worlds exceed once in a hundred times.",
        )

    def _value_table(self, kind: Kind) -> Table:
        rows = []
        for factor, value in ((factor, value) for factor, values in VALUES.items() for value in values):
            found = [self.having(figure, factor, value, kind) for figure in self.worlds]
            cells = [f"{one.min():.3f}, {np.quantile(one, 0.1):.2f} ({len(one)})" if len(one) else "" for one in found]
            rows.append([NAMES[factor], f"{value:.2g}" if factor == "noise" else str(value), *cells])
        return Table(
            ["factor", "value", *_titles(self.worlds)],
            rows,
            f"Random worlds by the value of one factor, with all others drawn too: the least RMS of {_WHAT[kind]}, "
            "in decades, its 10 % quantile, and the number of worlds. On rings the closed form is the same as d hops. "
            "The paper's probabilities of a heavy node, .002 in figure 3 and .005 elsewhere, give 2 and 5 of them on "
            "average.",
        )


def explore(
    worlds: int = 300,
    seeds: int = 50,
    *,
    workers: int | None = None,
    folder: Path | None = None,
    tell: Progress | None = None,
) -> Sensitivity:
    """Fit one jump probability to all figures, and vary everything that the specs take for granted, several at a time.

    It uses other processes, so a script must call it under `if __name__ == "__main__":`.
    """
    if worlds < 1 or seeds < 1:
        raise SpecError(f"explore: worlds = {worlds} and seeds = {seeds}, expected at least 1 of each")
    draws = [(figure, seed) for figure in FIGURES for seed in range(1, seeds + 1)]
    jobs = [(figure, world) for figure in FIGURES for world in draw(figure, worlds, seeds)]
    inputs = [WALKS, *((spec_of(figure).text, asdict(SPACES[figure])) for figure in FIGURES)]
    with calling(folder, workers, inputs=inputs, tell=tell) as caller:
        fits = caller.each("joint fit", points, draws)
        scores = caller.each("random worlds", score, jobs)
    found = Sensitivity(
        {figure: {jump: [] for jump in JUMPS} for figure in FIGURES}, {figure: [] for figure in FIGURES}
    )
    for (figure, _), fit in zip(draws, fits, strict=True):
        for jump, one in fit.items():
            found.joint[figure][float(jump)].append(Score(*one))
    for (figure, world), one in zip(jobs, scores, strict=True):
        found.worlds[figure].append((world, Score(*one)))
    return found


def _indices(values: list[Any]) -> NDArray[np.intp]:
    return np.unique(values, return_inverse=True)[1]


def _means(rows: Floats, groups: NDArray[np.intp]) -> Floats:
    """The mean over its group in place of each number of a row."""
    members = np.eye(groups.max() + 1)[groups]
    return np.asarray((rows @ members / members.sum(axis=0))[:, groups])


def _share(rows: Floats, groups: NDArray[np.intp]) -> Floats:
    """The adjusted R² of the means of the groups, for each row."""
    many, few = len(groups), groups.max() + 1
    within = ((rows - _means(rows, groups)) ** 2).sum(axis=1) / (many - few)
    return np.asarray(1.0 - within / rows.var(axis=1, ddof=1))


_WHAT = {"worst": "the worst of MH uniform, MH importance and MHLJ", "jumping": "MHLJ alone"}


def _titles(by_figure: Iterable[str]) -> list[str]:
    return [f"figure {figure}" for figure in by_figure]


def _columns(scores: Iterable[Score]) -> dict[str, tuple[float, ...]]:
    return dict(zip(Score._fields, zip(*scores, strict=True), strict=True))


def _written(value: Any, indent: str = "") -> str:
    """JSON with one line for each entry of an object or a list, and tuples on one line: files that can be compared."""
    if isinstance(value, Mapping):
        parts = [f"{json.dumps(key)}: {_written(one, indent + '  ')}" for key, one in value.items()]
    elif isinstance(value, list):
        parts = [_written(one, indent + "  ") for one in value]
    else:
        return json.dumps(value)
    first, last = "[]" if isinstance(value, list) else "{}"
    inner = ",\n".join(f"{indent}  {part}" for part in parts)
    return f"{first}\n{inner}\n{indent}{last}"

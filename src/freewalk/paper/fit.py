"""The values fitted to the printed curves: what the search has found, and how near the curves of a figure come."""

import json
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np

from freewalk.paper.claims import OUTCOMES
from freewalk.paper.evidence import LABELS, Evidence
from freewalk.report.page import Table, Verdict
from freewalk.storage import files

WALKS = 128  # enough to tell a good setting from a bad one; the winner is computed exactly
OTHERS = range(1_000_001, 1_000_051)  # data that no search looks at
#: How far a curve may be from the printed one, in decades RMS. A curve that is off by a factor of 1.6, .204 decades, is
#: farther away than that wherever the right one is within .104.
NEAR = 0.1


@dataclass(frozen=True)
class Space:
    """The settings tried for a figure: all combinations of steps and jump probabilities (none without MHLJ).

    MHLJ shares the steps of importance MH: that much the paper states.
    """

    uniform: tuple[float, ...]
    importance: tuple[float, ...]
    jump: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)

    def __len__(self) -> int:
        """The number of settings."""
        return len(self.uniform) * len(self.importance) * max(len(self.jump), 1)


_SPARSE = Space(uniform=(4e-4, 5e-4, 6e-4, 7e-4), importance=(2e-3, 3e-3, 4e-3, 5e-3, 6e-3))
SPACES = {
    "3": Space(uniform=(7e-4, 8e-4, 9e-4, 1e-3, 1.2e-3), importance=(8e-3, 1e-2, 1.2e-2, 1.5e-2, 2e-2, 2.5e-2, 3e-2)),
    "4a": Space(uniform=(4e-3, 5e-3, 6e-3, 7e-3), importance=(4e-3, 5e-3, 6e-3, 7e-3), jump=()),
    "4b": replace(_SPARSE, jump=()),
    "5a": _SPARSE,
    "5b": _SPARSE,
    "6": _SPARSE,
}


@dataclass(frozen=True)
class Fitted:
    """One choice of everything that is fitted."""

    seed: int
    uniform: float
    importance: float
    jump: float | None


@dataclass(frozen=True)
class Fit:
    """The result of a search.

    Attributes
    ----------
    figure
        The figure.
    seeds, settings
        The number of draws of the data, and of settings with each.
    setting
        The best of all.
    distances
        RMS of its exact curves to the printed ones, in decades, by label.
    readings
        By reading: the least that the worst curve of a figure came to (by simulation), over all seeds and settings, and
        its median over the seeds; also with the jump probability that the paper states.
    spread
        By label: the 10, 50 and 90 % quantiles of the RMS over draws of the data that the search did not look at.
    """

    figure: str
    seeds: int
    settings: int
    setting: Fitted
    distances: dict[str, float]
    readings: dict[str, tuple[float, float]]
    spread: dict[str, tuple[float, float, float]]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        files.write(path, json.dumps(asdict(self), indent=2) + "\n")

    @staticmethod
    def load(path: Path) -> "Fit":
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        for name in ("readings", "spread"):
            values[name] = {label: tuple(numbers) for label, numbers in values[name].items()}
        return Fit(**{**values, "setting": Fitted(**values["setting"])})

    def tables(self) -> list[Table]:
        """What it says, for people."""
        order = list(LABELS.values())
        tried = f"{self.seeds} draws of the data × {self.settings} settings of steps and jump probability were tried"
        rows = [
            [label, f"{self.distances[label]:.3f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"]
            for label, (low, middle, high) in sorted(self.spread.items(), key=lambda item: order.index(item[0]))
        ]
        # What is the least or the largest that was tried: a better one may lie beyond.
        space, setting = vars(SPACES[self.figure]), vars(self.setting)
        edges = [name for name, values in space.items() if values and setting[name] in (min(values), max(values))]
        if edges:
            tried += f" (at the edge of what was tried: {', '.join(edges)})"
        near = Table(
            ["curve", "RMS, decades", "other data: median", "10 to 90 %"],
            rows,
            f"How far the exact curve is from the printed one. {tried}; the best one is data seed {self.setting.seed}. "
            f"Other data: the same setting with {len(OTHERS)} draws that the search did not look at.",
        )
        readings = Table(
            ["reading", "best", "median over the data"],
            [[name, f"{best:.3f}", f"{middle:.3f}"] for name, (best, middle) in self.readings.items()],
            "The worst RMS of MH uniform, MH importance and MHLJ, in decades, with other readings of what the paper "
            f"leaves open; by simulation, with {WALKS} walks.",
        )
        return [near, readings]


def nearness(evidence: Evidence) -> list[Verdict]:
    """Whether each curve is the printed one, and whether the curves can be told from each other.

    The parameters were fitted to the printed curves: this measures the fit, and is no claim of the paper.
    """
    if not evidence.published:
        return []
    labels = list(evidence.published)
    own = {label: evidence.curve(label) for label in labels}
    apart = {
        (ours, theirs): printed.decades(own[ours].updates, own[ours].error)
        for theirs, printed in evidence.published.items()
        for ours in labels
    }
    found = []
    for label in labels:
        decades = apart[label, label]
        rms = float(np.sqrt(np.mean(decades**2)))
        words = f"{rms:.3f} decades RMS, at most {np.abs(decades).max():.2f} at one checkpoint"
        text = f"the curve of {label} is within {NEAR:g} decades RMS of the printed one"
        found.append(Verdict(text, OUTCOMES[rms <= NEAR], words, "" if rms <= NEAR else "It is too far away"))
    by_name, *others = (
        float(np.sqrt(np.mean([np.mean(apart[pair] ** 2) for pair in zip(labels, order, strict=True)])))
        for order in permutations(labels)
    )
    holds = by_name < min(others)
    words = f"{by_name:.3f} decades RMS, in the best other order {min(others):.3f}"
    text = "no two curves can be exchanged: in any other order they are farther from the printed ones"
    return [*found, Verdict(text, OUTCOMES[holds], words, "" if holds else "Another order is nearer")]

"""The claims of a figure in many settings, when a single setting would not be a fair test.

`stated`: the appendix asks for the largest step that converges; at that limit itself nothing settles, so some fraction
of it must be used. Every fraction is combined with every draw of the data, and with both the stated start and the one
that the printed curves suggest. `published`: the data were fitted to the curves, so the claims are tested on fresh
draws. The findings are stored next to the specs; `python -m reproduction sweep` computes them again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from freewalk.paper.claims import ClaimShare
from freewalk.paper.files import Variant
from freewalk.report.page import Table
from freewalk.storage import files

Setting = dict[str, Any]
_NAMES = {"fraction": "step {} of the limit", "start": "start: {}", "seed": "draw {}"}


@dataclass(frozen=True)
class ClaimRow:
    """The findings on one claim.

    Attributes
    ----------
    text, threshold, looks_at
        The claim.
    holds
        Whether it holds, by setting; None if it cannot be tested.
    values
        The number behind it, by setting; None if there is none.
    """

    text: str
    threshold: float
    looks_at: tuple[str, ...]
    holds: tuple[bool | None, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class ClaimSweep:
    """The claims of a figure in many settings.

    Attributes
    ----------
    figure, variant
        The spec that the settings are based on.
    settings
        The values that each of them sets: the draw of the data ("seed"), and for "stated" also the start and the step
        of the uniform walk as a fraction of the stability limit.
    rows
        One for each claim.
    """

    figure: str
    variant: Variant
    settings: tuple[Setting, ...]
    rows: tuple[ClaimRow, ...]

    def save(self, path: Path) -> None:
        """Write it as JSON, a line for each setting and each row."""
        lists = {"settings": self.settings, "rows": [asdict(row) for row in self.rows]}
        parts = [f'"{name}": [\n  ' + ",\n  ".join(map(json.dumps, items)) + "\n]" for name, items in lists.items()]
        head = f'"figure": {json.dumps(self.figure)},\n"variant": {json.dumps(self.variant)}'
        files.write(path, "{\n" + ",\n".join([head, *parts]) + "\n}\n")

    @staticmethod
    def load(path: Path) -> "ClaimSweep":
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        lists = ("looks_at", "holds", "values")
        rows = tuple(ClaimRow(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in values["rows"])
        return ClaimSweep(**{**values, "settings": tuple(values["settings"]), "rows": rows})

    def shares(self, **only: Any) -> dict[str, ClaimShare]:
        """The settings in which each claim holds, by its text; `only` those with some values.

        Settings that do not differ in what a claim depends on count as one.
        """
        return {row.text: self._share(row, [number for number, _ in self.distinct(row, **only)]) for row in self.rows}

    def distinct(self, row: ClaimRow, **only: Any) -> list[tuple[int, Setting]]:
        """The settings that differ for a claim: the index of the first of each, and what the claim depends on."""
        keys = [key for key in self.settings[0] if key == "seed" or key in row.looks_at]
        found: dict[tuple[Any, ...], int] = {}
        for number, setting in enumerate(self.settings):
            if all(setting[key] == value for key, value in only.items()):
                found.setdefault(tuple(setting[key] for key in keys), number)
        return [(number, dict(zip(keys, values, strict=True))) for values, number in found.items()]

    def _share(self, row: ClaimRow, numbers: Sequence[int]) -> ClaimShare:
        holds = [row.holds[n] for n in numbers]
        values = [value for n in numbers if row.holds[n] is not None and (value := row.values[n]) is not None]
        ends = min(values, default=np.nan), max(values, default=np.nan)
        what = "fresh draws" if self.variant == "published" else "settings" if row.looks_at else "draws"
        return ClaimShare(holds.count(True), len(holds) - holds.count(None), len(holds), *ends, what)

    def tables(self) -> list[Table]:
        """Where each claim holds, by what was varied; only if more than the draw was varied."""
        varied = [(key, value) for key in self.settings[0] for value in self.values(key) if key != "seed"]
        if not varied:
            return []
        parts = [self.shares(**{key: value}) for key, value in varied]
        rows = [[text, *(f"{part[text].holds} of {part[text].tested}" for part in parts)] for text in parts[0]]
        fractions, draws = ", ".join(map(str, self.values("fraction"))), len(self.values("seed"))
        caption = (
            "In how many settings each claim holds, of those in which it can be tested: steps of the uniform walk that "
            f"are {fractions} × the largest at which it converges, the others' matched to its steady error, with "
            f"{draws} draws of the data each, from a uniformly random node and from the heaviest. A claim that looks "
            "at neither step nor start is counted once for each draw. Each setting is simulated as its spec says."
        )
        return [Table(["test", *(_NAMES[key].format(value) for key, value in varied)], rows, caption)]

    def values(self, key: str) -> list[Any]:
        """The values of one varied quantity, in the order of the settings; empty if it is not varied."""
        return list(dict.fromkeys(setting[key] for setting in self.settings if key in setting))

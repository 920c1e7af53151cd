"""The number of settings in which a claim holds, when a single setting would not be a fair test.

`stated`: the appendix asks for the largest step that converges; at that limit itself nothing settles, so some fraction
of it must be used. Every fraction is combined with every draw of the data, and with both the stated start and the one
that the printed curves suggest. `published`: the data were fitted to the curves, so the claims are tested on fresh
draws.

A setting is the spec of its figure with other numbers. The findings are stored next to the specs;
`freewalk reproduce --sweep` recomputes them.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from freewalk.analysis import matched_steps, stability_limit
from freewalk.designs.kernel import Kernel
from freewalk.errors import SpecError
from freewalk.objectives import LeastSquares
from freewalk.paper.claims import Share
from freewalk.paper.curves import IMPORTANCE, UNIFORM
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import OF_THE_PAPER, Variant, spec_path
from freewalk.paper.fit import OTHERS
from freewalk.paper.published import FIGURES
from freewalk.paper.registry import STUDIES
from freewalk.report.page import Table
from freewalk.specs.spec import Spec, load
from freewalk.specs.tables import read_tables
from freewalk.storage import files
from freewalk.sweeps.calls import Tell, calling

Setting = dict[str, Any]

FRACTIONS, SEEDS, STARTS = (0.5, 0.75, 0.9), tuple(range(1, 11)), ("uniform", "heaviest")
FRESH = tuple(OTHERS[:20])
_NAMES = {"fraction": "step {} of the limit", "start": "start: {}", "seed": "draw {}"}


@dataclass(frozen=True)
class Row:
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
class Sweep:
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
    rows: tuple[Row, ...]

    def save(self, path: Path) -> None:
        """Write it as JSON, a line for each setting and each row."""
        lists = {"settings": self.settings, "rows": [asdict(row) for row in self.rows]}
        parts = [f'"{name}": [\n  ' + ",\n  ".join(map(json.dumps, items)) + "\n]" for name, items in lists.items()]
        head = f'"figure": {json.dumps(self.figure)},\n"variant": {json.dumps(self.variant)}'
        files.write(path, "{\n" + ",\n".join([head, *parts]) + "\n}\n")

    @staticmethod
    def load(path: Path) -> "Sweep":
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        lists = ("looks_at", "holds", "values")
        rows = tuple(Row(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in values["rows"])
        return Sweep(**{**values, "settings": tuple(values["settings"]), "rows": rows})

    def shares(self, **only: Any) -> dict[str, Share]:
        """The settings in which each claim holds, by its text.

        Settings that do not differ in what a claim depends on count as one.

        Parameters
        ----------
        only
            Only settings with these values, such as `start="uniform"`.
        """
        return {row.text: self._share(row, self.distinct(row, **only)) for row in self.rows}

    def distinct(self, row: Row, **only: Any) -> list[tuple[int, Setting]]:
        """The settings that differ for a claim: the index of the first of each, and what the claim depends on."""
        keys = [key for key in self.settings[0] if key == "seed" or key in row.looks_at]
        found: dict[tuple[Any, ...], int] = {}
        for number, setting in enumerate(self.settings):
            if all(setting[key] == value for key, value in only.items()):
                found.setdefault(tuple(setting[key] for key in keys), number)
        return [(number, dict(zip(keys, values, strict=True))) for values, number in found.items()]

    def _share(self, row: Row, distinct: Sequence[tuple[int, Setting]]) -> Share:
        holds = [row.holds[n] for n, _ in distinct]
        values = [value for n, _ in distinct if row.holds[n] is not None and (value := row.values[n]) is not None]
        low, high = (min(values), max(values)) if values else (np.nan, np.nan)
        stated = "settings" if row.looks_at else "draws"
        what = "fresh draws" if self.variant == "published" else stated
        return Share(holds.count(True), len(holds) - holds.count(None), len(holds), low, high, what)

    def tables(self) -> list[Table]:
        """Where each claim holds, by what was varied; only if more than the draw was varied."""
        varied = [(key, value) for key in self.settings[0] for value in self.values(key) if key != "seed"]
        if not varied:
            return []
        parts = [self.shares(**{key: value}) for key, value in varied]
        rows = [
            [row.text, *(f"{part[row.text].holds} of {part[row.text].tested}" for part in parts)] for row in self.rows
        ]
        caption = (
            "In how many settings each claim holds, of those in which it can be tested: steps of the uniform walk that "
            f"are {', '.join(map(str, FRACTIONS))} × the largest at which it converges, the others' matched to its "
            f"steady error, with {len(SEEDS)} draws of the data each, from a uniformly random node and from the "
            "heaviest. A claim that looks at neither step nor start is counted once for each draw. Each setting is "
            "simulated as its spec says."
        )
        return [Table(["test", *(_NAMES[key].format(value) for key, value in varied)], rows, caption)]

    def values(self, key: str) -> list[Any]:
        """The values of one varied quantity, in the order of the settings; empty if it is not varied."""
        return list(dict.fromkeys(setting[key] for setting in self.settings if key in setting))


def settings_of(variant: Variant) -> tuple[Setting, ...]:
    """The settings; those of one draw are consecutive."""
    if variant == "published":
        return tuple({"seed": seed} for seed in FRESH)
    return tuple(
        {"seed": seed, "fraction": fraction, "start": start}
        for seed, fraction, start in product(SEEDS, FRACTIONS, STARTS)
    )


def varied(figure: str, variant: Variant, setting: Setting) -> Spec:
    """The spec of a figure with the numbers of a setting in it.

    Parameters
    ----------
    figure, variant
        The spec.
    setting
        One of `settings_of`. For a fraction, all steps are recomputed: those equal to the uniform walk's stay equal
        to it, and all others become the step at which importance MH settles at the same error.

    Returns
    -------
    Spec
        Its text is that of the spec it was made from.
    """
    spec = load(spec_path(figure, variant))
    values = tomllib.loads(spec.text)
    values["problem"]["seed"] = setting["seed"]
    values["run"].update({key: value for key, value in setting.items() if key == "start"}, paths=0)
    if "fraction" in setting:
        uniform = next(walk["rule"]["step"] for walk in values["walk"] if walk["label"] == UNIFORM)
        first, second = _steps(figure, setting["seed"], setting["fraction"])
        for walk in values["walk"]:
            for part in walk.get("phase", [walk]):
                part["rule"]["step"] = first if part["rule"]["step"] == uniform else second
    return replace(spec, tables=read_tables(values, spec.source))


@cache
def _steps(figure: str, seed: int, fraction: float) -> tuple[float, float]:
    """The steps of the uniform walk and of the others, by the rule of the appendix."""
    problem, uniform, importance = _made(figure, seed)
    found = matched_steps(problem, uniform, importance, fraction=fraction, limit=_limit(figure, seed))
    return found.first, found.second


@cache  # most of the work, and the same for every fraction
def _limit(figure: str, seed: int) -> float:
    problem, uniform, _ = _made(figure, seed)
    return stability_limit(problem, uniform)


def _made(figure: str, seed: int) -> tuple[LeastSquares, Kernel, Kernel]:
    plan = varied(figure, "stated", {"seed": seed}).plan()
    if not isinstance(plan.problem, LeastSquares):
        raise SpecError(f"figure {figure}: [problem] is {plan.problem!r}, expected least squares")
    return plan.problem, plan.walks[UNIFORM][0].kernel, plan.walks[IMPORTANCE][0].kernel


Measured = list[tuple[bool | None, float | None]]


def measured(figure: str, variant: Variant, setting: Setting) -> Measured:
    """Run one setting and measure every claim: whether it holds, and by which number.

    Parameters
    ----------
    figure, variant
        The spec and its claims.
    setting
        One of `settings_of`.
    """
    spec = varied(figure, variant, setting)
    plan = spec.plan()
    if "heavy_probability" in spec.tables.problem and not plan.problem.heavy:
        return [(None, None)] * len(STUDIES[figure].claims)  # a draw without heavy nodes, which all claims are about
    evidence = Evidence(plan, spec.run(plan=plan), None, {}, variant)
    found = [claim.measure(evidence) for claim in STUDIES[figure].claims]
    return [(one.holds, float(f"{one.value:.6g}") if np.isfinite(one.value) else None) for one in found]


def sweep(
    figures: Sequence[str] = (),
    variant: Variant | None = None,
    *,
    workers: int | None = None,
    folder: Path | None = None,
    tell: Tell | None = None,
) -> Iterator[Sweep]:
    """Test the claims of figures in all their settings.

    It uses other processes, so a script must call it under `if __name__ == "__main__":`.

    Parameters
    ----------
    figures
        Figures with printed curves. Default: all.
    variant
        "stated" or "published". Default: both.
    workers
        The number of processes. Default: one per core.
    folder
        Where the findings of each draw are stored, so that an interrupted call can resume; None: nowhere.
    tell
        Called with the progress.

    Yields
    ------
    Sweep
        One for each figure and variant, as soon as it is complete.

    Raises
    ------
    SpecError
        If there is no such figure, or its variant has no settings.
    """
    chosen = [(figure, one) for figure in figures or FIGURES for one in OF_THE_PAPER if variant in (None, one)]
    for figure, _ in chosen:
        if figure not in FIGURES:
            raise SpecError(f"sweep: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    if not chosen:
        raise SpecError(f"sweep: variant = {variant!r}, expected one of {', '.join(OF_THE_PAPER)}")
    with calling(folder, workers, tell=tell) as caller:
        for figure, one in chosen:
            settings, spec = settings_of(one), load(spec_path(figure, one))
            draws = [(figure, one, list(group)) for _, group in groupby(settings, key=lambda setting: setting["seed"])]
            parts = replace(caller, inputs=spec.text).each(f"figure {figure}, {one}", _draw, draws)
            yield _together(figure, one, settings, [found for part in parts for found in part])


def _draw(figure: str, variant: Variant, settings: list[Setting]) -> list[Measured]:
    """All settings of one draw, which share its stability limit."""
    return [measured(figure, variant, setting) for setting in settings]


def _together(figure: str, variant: Variant, settings: tuple[Setting, ...], found: list[Measured]) -> Sweep:
    rows = []
    for number, claim in enumerate(STUDIES[figure].claims):
        holds, values = zip(*(one[number] for one in found), strict=True)
        rows.append(Row(claim.text, round(claim.threshold, 6), claim.looks_at, holds, values))
    return Sweep(figure, variant, settings, tuple(rows))

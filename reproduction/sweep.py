"""The sweeps behind the stored shares: every claim of a figure, measured in many settings.

A setting is the spec of its figure with other numbers; `freewalk.paper.claim_sweep` says which, and why.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, product
from pathlib import Path

import numpy as np

from freewalk.analysis import matched_steps, stability_limit
from freewalk.designs.kernel import Kernel
from freewalk.errors import SpecError
from freewalk.objectives import LeastSquares
from freewalk.paper.claim_sweep import ClaimRow, ClaimSweep, Setting
from freewalk.paper.evidence import FIGURES, Evidence
from freewalk.paper.files import OF_THE_PAPER, Variant, spec_path
from freewalk.paper.fit import OTHERS
from freewalk.paper.study import STUDIES
from freewalk.run.loop import Progress
from freewalk.specs.keys import read_tables
from freewalk.specs.spec import Spec, load
from reproduction.calls import calling

FRACTIONS, SEEDS, STARTS = (0.5, 0.75, 0.9), tuple(range(1, 11)), ("uniform", "heaviest")
FRESH = tuple(OTHERS[:20])


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

    For a fraction, all steps are computed again: those equal to the uniform walk's stay equal to it, and all others
    become the step at which importance MH settles at the same error.
    """
    spec = load(spec_path(figure, variant))
    values = tomllib.loads(spec.text)
    values["problem"]["seed"] = setting["seed"]
    values["run"].update({key: value for key, value in setting.items() if key == "start"}, paths=0)
    if "fraction" in setting:
        uniform = next(walk["rule"]["step"] for walk in values["walk"] if walk["label"] == "MH uniform")
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
    return plan.problem, plan.walks["MH uniform"][0].kernel, plan.walks["MH importance"][0].kernel


Measured = list[tuple[bool | None, float | None]]


def measured(figure: str, variant: Variant, setting: Setting) -> Measured:
    """Run one setting and measure every claim: whether it holds, and by which number."""
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
    tell: Progress | None = None,
) -> Iterator[ClaimSweep]:
    """Test the claims of figures in all their settings.

    It uses other processes, so a script must call it under `if __name__ == "__main__":`.
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


def _together(figure: str, variant: Variant, settings: tuple[Setting, ...], found: list[Measured]) -> ClaimSweep:
    rows = []
    for number, claim in enumerate(STUDIES[figure].claims):
        holds, values = zip(*(one[number] for one in found), strict=True)
        rows.append(ClaimRow(claim.text, round(claim.threshold, 6), claim.looks_at, holds, values))
    return ClaimSweep(figure, variant, settings, tuple(rows))

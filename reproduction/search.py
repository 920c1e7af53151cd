"""The search behind the `published` specs: steps, jump probability and draw of the data that fit the printed curves."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from freewalk.analysis import exact_curve
from freewalk.designs import MHLJ, Design, Metropolis
from freewalk.errors import SpecError
from freewalk.graphs import Graph
from freewalk.jobs.phase import Phase
from freewalk.objectives import LeastSquares
from freewalk.paper.evidence import FIGURES, published
from freewalk.paper.files import spec_path
from freewalk.paper.fit import OTHERS, SPACES, WALKS, Fit, Fitted
from freewalk.rules import SGD
from freewalk.run.learn import learn
from freewalk.run.loop import Progress
from freewalk.runtimes import CPU
from freewalk.specs import Spec, load
from freewalk.specs.catalogue import build
from reproduction.calls import calling

SWITCH = 2000  # where the two printed curves of MHLJ in figure 6 part


AS_FITTED, AS_STATED = "as in the spec", "jump probability as stated"
#: Other readings of what the paper leaves open: the same search, with one value of the spec changed.
READINGS: dict[str, dict[str, Any]] = {
    AS_FITTED: {},
    "first feature constant": {"constant": True},
    "heavy nodes adjacent": {"adjacent": True},
    "uniformly random start": {"start": "uniform"},
}


def search(
    figure: str,
    seeds: int = 50,
    *,
    finalists: int = 8,
    workers: int | None = None,
    folder: Path | None = None,
    tell: Progress | None = None,
) -> Fit:
    """Search for the setting whose curves are closest to the printed ones, by the worst curve of the figure.

    Every setting is simulated with every draw of the data. The best few are computed exactly, and the best of those
    wins. It uses other processes, so a script must call it under `if __name__ == "__main__":`.
    """
    if figure not in FIGURES:
        raise SpecError(f"search: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    if seeds < 1 or finalists < 1:
        raise SpecError(f"search: seeds = {seeds} and finalists = {finalists}, expected at least 1 of each")
    heavy = "heavy" in spec_of(figure).tables.problem
    jobs = [(figure, seed, name) for name in READINGS for seed in range(1, seeds + 1) if heavy or name in _ANY_DATA]
    inputs = [spec_of(figure).text, asdict(SPACES[figure]), WALKS, READINGS]
    with calling(folder, workers, inputs=inputs, tell=tell) as caller:
        found = [[_tried(*one) for one in trial] for trial in caller.each("trying", _try, jobs)]
        trials = dict(zip(jobs, found, strict=True))
        ranked = sorted((trial[0] for job, trial in trials.items() if job[2] == AS_FITTED), key=_score)
        best = [tried.setting for tried in ranked[:finalists]]
        exact = caller.each("computing exactly", distances, [(figure, one) for one in best])
        winner = int(np.argmin([max(one.values()) for one in exact]))
        others = [replace(best[winner], seed=seed) for seed in OTHERS]
        rest = caller.each("other data", distances, [(figure, one) for one in others])
    spread = {label: np.quantile([one[label] for one in rest], (0.1, 0.5, 0.9)) for label in exact[winner]}
    return Fit(
        figure=figure,
        seeds=seeds,
        settings=len(SPACES[figure]),
        setting=best[winner],
        distances={label: round(value, 6) for label, value in exact[winner].items()},
        readings=_compared(trials),
        spread={label: tuple(values.round(4).tolist()) for label, values in spread.items()},
    )


_ANY_DATA = (AS_FITTED, "first feature constant")  # the readings that say nothing about heavy nodes


class Tried(NamedTuple):
    """How near one setting comes to the printed curves, in decades.

    Attributes
    ----------
    worst
        The largest RMS of the curves; infinite where one of them diverges.
    total
        Their sum.
    jumping
        That of MHLJ alone; 0 where the figure has none.
    setting
        The setting.
    """

    worst: float
    total: float
    jumping: float
    setting: Fitted


def _tried(worst: float, total: float, jumping: float, setting: dict[str, Any]) -> Tried:
    """What JSON makes of it, as it was."""
    return Tried(worst, total, jumping, Fitted(**setting))


def _score(tried: Tried) -> tuple[float, float]:
    return tried[:2]


def _compared(trials: dict[tuple[str, int, str], list[Tried]]) -> dict[str, tuple[float, float]]:
    """By reading: the least worst RMS over all seeds, and the median over the seeds of their least."""
    rows: dict[str, list[float]] = {}
    for (_, _, name), trial in trials.items():
        rows.setdefault(name, []).append(trial[0].worst)
        stated = [tried.worst for tried in trial if tried.setting.jump == 0.1]
        if name == AS_FITTED and stated:
            rows.setdefault(AS_STATED, []).append(stated[0])
    return {name: (round(min(row), 4), round(float(np.median(row)), 4)) for name, row in rows.items()}


@cache
def spec_of(figure: str) -> Spec:
    """The published spec of a figure."""
    return load(spec_path(figure, "published"))


@cache
def graph_of(figure: str) -> Graph:
    """The graph of that spec."""
    graph: Graph = build("graph", spec_of(figure).tables.graph, f"figure {figure}: [graph]")
    return graph


def problem_of(figure: str, seed: int, **change: Any) -> LeastSquares:
    """The data of that spec with another seed, and perhaps read otherwise."""
    table = {**spec_of(figure).tables.problem, "seed": seed, **change}
    problem: LeastSquares = build("problem", table, f"figure {figure}: [problem]", n=graph_of(figure).n)
    return problem


def _start(figure: str, problem: LeastSquares, given: str | None = None) -> Any:
    start = given or spec_of(figure).tables.run.start
    start = "uniform" if start is None else start
    return int(problem.smoothness.argmax()) if start == "heaviest" else start


def _try(figure: str, seed: int, reading: str) -> list[Tried]:
    """Simulate every setting on one draw of the data."""
    change = dict(READINGS[reading])
    start = change.pop("start", None)
    jumping = {jump: MHLJ(jump, 0.5, 3) for jump in SPACES[figure].jump}
    return simulate(figure, seed, jumping, start, **change)


def simulate(
    figure: str, seed: int, jumping: Mapping[float, Design], start: str | None = None, **change: Any
) -> list[Tried]:
    """Simulate designs with jumps, and the two without, with every step of a figure, on one draw of the data.

    `jumping` is what stands for MHLJ, by its jump probability; `change` takes the place of values in the spec's table
    [problem]. One is returned for each setting, the nearest first. The switch that figure 6 prints as well is left out:
    until it switches it is MHLJ, and then the uniform walk.
    """
    space, run, curves = SPACES[figure], spec_of(figure).tables.run, published(figure)
    problem = problem_of(figure, seed, **change)
    first = _start(figure, problem, start)

    def distance(label: str, design: Design, step: float) -> float:
        kernel = design.kernel(graph_of(figure), problem.smoothness)
        options: dict[str, Any] = {"steps": run.steps, "every": run.every, "start": first, "seed": run.seed}
        with np.errstate(over="ignore"):  # a step that diverges is a result
            data = learn(problem, kernel, SGD(step), walks=WALKS, runtime=CPU(threads=1), **options).data
        found = curves[label].distance(data.step.values, data.mse.mean("walk").values)
        return found if np.isfinite(found) else np.inf

    uniform = {step: distance("MH uniform", Metropolis(0), step) for step in space.uniform}
    importance = {step: distance("MH importance", Metropolis(1), step) for step in space.importance}
    jumps: dict[tuple[float | None, float], float] = {
        (jump, step): distance("MHLJ", design, step) for jump, design in jumping.items() for step in space.importance
    } or {(None, step): 0.0 for step in space.importance}
    trial = []
    for slow, (jump, step) in product(uniform, jumps):
        found = np.array([uniform[slow], importance[step], jumps[jump, step]])
        setting = Fitted(seed, slow, step, jump)
        trial.append(Tried(float(found.max()), float(found.sum()), float(found[2]), setting))
    return sorted(trial, key=_score)


def distances(figure: str, setting: Fitted) -> dict[str, float]:
    """The RMS of the exact curves of a setting to the printed ones, in decades."""
    problem, graph, run = problem_of(figure, setting.seed), graph_of(figure), spec_of(figure).tables.run

    def phase(design: Design, step: float, until: int | None = None) -> Phase:
        return Phase(until, design.kernel(graph, problem.smoothness), SGD(step))

    walks = {
        "MH uniform": [phase(Metropolis(0), setting.uniform)],
        "MH importance": [phase(Metropolis(1), setting.importance)],
    }
    if setting.jump is not None:
        jumping = MHLJ(setting.jump, 0.5, 3)
        walks["MHLJ"] = [phase(jumping, setting.importance)]
        switch = [phase(jumping, setting.importance, SWITCH), phase(Metropolis(0), setting.uniform)]
        walks["MHLJ, then uniform"] = switch
    found = {}
    for label, curve in published(figure).items():
        exact = exact_curve(problem, walks[label], steps=run.steps, every=run.every, start=_start(figure, problem))
        found[label] = curve.distance(exact.step.values, exact.mse.values)
    return found

"""One study in one variant: run what is missing, then judge, draw and describe it."""

import json
import threading
import tomllib
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis import exact_curve
from freewalk.objectives import LeastSquares
from freewalk.paper import figures, files
from freewalk.paper.claim_sweep import ClaimSweep
from freewalk.paper.evidence import FIGURES, Evidence, published
from freewalk.paper.files import Variant, fit_path, spec_path, sweep_path
from freewalk.paper.fit import Fit, nearness
from freewalk.paper.study import Study
from freewalk.report.page import Chart, Section, Table, Verdict, Walks, section_of
from freewalk.report.page.payload import MOST_STEPS
from freewalk.report.page.section import meets
from freewalk.run.learn import walk
from freewalk.run.record import Record
from freewalk.specs.own import Tell
from freewalk.specs.spec import Plan, Spec, load
from freewalk.storage.files import write

if TYPE_CHECKING:
    import xarray


class CurveStopped(Exception):
    """Ctrl-C was pressed while another thread computed a curve."""


@dataclass(frozen=True)
class StudyOutcome:
    """The results of a study.

    Attributes
    ----------
    key, name, variant
        The study and its variant.
    verdicts
        The verdicts on its claims.
    section
        Its part of the page.
    folder
        The folder of its files.
    fit
        How close fitted curves are to the printed ones; not counted among the claims.
    tables
        The quality of the fit, the results of the search for the fitted values, and where each claim holds.
    """

    key: str
    name: str
    variant: Variant
    verdicts: Sequence[Verdict]
    section: Section
    folder: Path
    fit: Sequence[Verdict] = ()
    tables: Sequence[Table] = ()


@dataclass
class StudyTask:
    """What all studies have in common: a folder with spec, record, figure and verdicts."""

    study: Study
    variant: Variant
    folder: Path
    quick: bool = False
    runtime: str | None = None

    def __post_init__(self) -> None:
        self.record_path = self.folder / files.RECORD
        self.title = f"{self.study.name}: {self.study.title} ({self.variant})"

    def sources(self) -> dict[str, str]:
        """The first characters of the hashes of what is behind its figure."""
        return {"spec": files.digest(self.folder / files.SPEC), "record": files.digest(self.record_path)}

    def outcome(
        self, section: Section, sources: dict[str, str], fit: Sequence[Verdict] = (), tables: Sequence[Table] = ()
    ) -> StudyOutcome:
        """Write the verdicts as JSON; the results, whose section has the names and the sources of the study."""
        values: dict[str, Any] = {**sources, "verdicts": [asdict(verdict) for verdict in section.verdicts]}
        if fit:
            values["fit"] = [asdict(verdict) for verdict in fit]
        write(self.folder / files.VERDICTS, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        key, name, digests = self.study.key, self.study.name, {f"SHA-256 of the {one}": sources[one] for one in sources}
        shown = replace(
            section,
            details={**digests, **section.details},
            anchor=f"{key}-{self.variant}",
            short=f"{name}, {self.variant}",
            group=f"{name}: {self.study.title}",
            variant=self.variant,
        )
        return StudyOutcome(key, name, self.variant, section.verdicts, shown, self.folder, fit, tables)


@dataclass
class Curves(StudyTask):
    """A study of learning curves, in one variant."""

    _futures: "list[Future[Record]]" = field(default_factory=list)

    @cached_property
    def spec(self) -> Spec:
        """The spec of the study."""
        return load(spec_path(self.study.key, self.variant))

    @cached_property
    def plan(self) -> Plan:
        """The plan of the spec."""
        plan = self.spec.plan()
        return plan if self.runtime is None else replace(plan, options={**plan.options, "runtime": self.runtime})

    def begin(self, pool: Executor, stop: threading.Event) -> None:
        """Compute the missing exact curves in other threads; each is stored as soon as it is finished."""
        write(self.folder / files.SPEC, self.spec.text)
        problem = self.plan.problem
        if not self.quick and isinstance(problem, LeastSquares):
            self._futures = [
                pool.submit(self._exact, problem, number, label, stop) for number, label in enumerate(self.plan.walks)
            ]

    def _exact(self, problem: LeastSquares, number: int, label: str, stop: threading.Event) -> Record:
        def look(*_: int) -> None:
            if stop.is_set():
                raise CurveStopped

        def curve() -> "xarray.Dataset":
            look()
            steps, every, start = (self.plan.options[name] for name in ("steps", "every", "start"))
            first = "uniform" if start is None else start
            found = exact_curve(problem, self.plan.walks[label], steps=steps, every=every, start=first, progress=look)
            return found[["mse", "messages"]].assign_attrs(label=label)

        return files.kept(self.folder / files.EXACT / f"{number:02d}.npz", self.spec.text, curve)

    def finish(self, tell: Tell) -> StudyOutcome:
        """Run the walks if need be, wait for the exact curves, judge, and write figure and verdicts."""
        tell(f"{self.study.name}, {self.variant}")
        record = files.stored(self.record_path, self.spec.text)
        with ThreadPoolExecutor(1) as writer:  # a record is written while its claims are judged
            writing: list[Future[Path]] = []
            if record is None:
                made = self.spec.run(plan=self.plan)
                if made.partial:
                    raise KeyboardInterrupt
                record = files.timeless(made, self.spec.text)
                writing.append(writer.submit(record.save, self.record_path))
                # Ctrl-C at the last moment of a run leaves it complete.
                if any(part["interruptions"] for part in made.provenance["parts"].values()):
                    raise KeyboardInterrupt
            printed = published(self.study.key) if self.study.key in FIGURES else {}
            evidence = Evidence(self.plan, record, self._collect(), printed, self.variant)
            verdicts = self.study.judge(evidence, self._sweep.shares() if self._sweep else {})
            for one in writing:
                one.result()
        return self._shown(evidence, verdicts)

    def _shown(self, evidence: Evidence, verdicts: list[Verdict]) -> StudyOutcome:
        """Draw and describe what was found."""
        sources = self.sources()
        if self._futures:
            sources["exact curves"] = files.digest(*sorted((self.folder / files.EXACT).glob("*.npz")))
        footer = _named(sources)
        figures.draw(evidence, self.folder / files.FIGURE, self.title, f"{_BAND}   {footer}")
        charts = self.study.charts(evidence)
        if charts:
            figures.draw_charts(charts, self.folder / files.CHARTS, footer)
        fit = nearness(evidence) if self.variant == "published" else []
        tables = [*_fitted(fit), *(self._sweep.tables() if self._sweep else ())]
        if self.variant == "published" and fit_path(self.study.key).is_file():
            tables += Fit.load(fit_path(self.study.key)).tables()
        images = {}
        if self._sweep and not self.quick:
            path, where = self.folder / files.SWEEP, _WHERE[self.variant]
            figures.draw_sweep(self._sweep, path, f"{self.study.name}: the claims {where}")
            images = {f"The claims {where}": path.read_bytes()}
        section = self._section(evidence, verdicts, charts)
        section = replace(section, tables=[*section.tables, *tables], images=images)
        return self.outcome(section, sources, fit, tables)

    def _collect(self) -> "xarray.Dataset | None":
        import xarray

        if not self._futures:
            return None
        curves = [future.result().data for future in self._futures]
        together = xarray.concat(curves, dim="design", join="outer", combine_attrs="drop")
        return together.assign_coords(design=np.array(list(self.plan.walks)))

    def _section(self, evidence: Evidence, verdicts: list[Verdict], charts: Sequence[Chart]) -> Section:
        curves = {label: figures.scaled(evidence, label) for label in evidence.published}
        section = section_of(
            evidence.record,
            graph=next(iter(self.plan.walks.values()))[0].kernel.graph,
            exact=evidence.exact,
            published={label: (curve.updates, curve.messages, curve.error) for label, curve in curves.items()},
            verdicts=verdicts,
            title=self.title,
            text=self.study.text,
        )
        chart, note = section.charts[0], section.charts[0].note
        if curves:
            note += " The paper prints no messages: each printed curve uses those of our walk of that design."
        if curves and self.variant == "stated":
            note += " It does not state the scale of the data either: printed curves are scaled to our optimum."
        return replace(section, charts=[replace(chart, note=note), *charts], walks=self._animated(section.walks))

    def _animated(self, walks: Walks | None) -> Walks | None:
        """The walks to animate: if a stored one does not visit a heavy node, others that start at the heaviest."""
        if walks is None or not walks.heavy or all(meets(path, walks.heavy) for path in walks.paths.values()):
            return walks
        importance = np.asarray(walks.importance)
        start = max(walks.heavy, key=lambda node: float(importance[node]))
        settings = {"steps": MOST_STEPS, "every": MOST_STEPS, "start": start, "seed": self.plan.options["seed"]}
        walked = {label: walk(phases, paths=1, **settings) for label, phases in self.plan.walks.items()}
        paths = {label: record.data.path.values[0] for label, record in walked.items()}
        note = (
            f"For this animation only, one more walk of each design was started at node {start}, which is heavy: some "
            "stored walks do not visit a heavy node within the animation."
        )
        return replace(walks, paths=paths, note=note)

    @cached_property
    def _sweep(self) -> ClaimSweep | None:
        """The stored results of the claims in other settings, if any."""
        path = sweep_path(self.study.key, self.variant)
        return ClaimSweep.load(path) if path.is_file() else None


@dataclass
class Numbers(StudyTask):
    """A study with its own module, which computes numbers, judges them and draws them."""

    def begin(self, pool: Executor, stop: threading.Event) -> None:
        """Create the folder, and compute missing numbers in another thread."""
        text = spec_path(self.study.key, self.variant).read_text(encoding="utf-8")
        write(self.folder / files.SPEC, text)
        self._spec = tomllib.loads(text)
        self._record = pool.submit(files.kept, self.record_path, text, lambda: self.study.module.numbers(self._spec))

    def finish(self, tell: Tell) -> StudyOutcome:
        """Wait for the numbers, judge, and write figure and verdicts."""
        tell(f"{self.study.name}, {self.variant}")
        data, sources = self._record.result().data, self.sources()
        image = self.folder / files.FIGURE
        self.study.module.draw(data, image, _named(sources))
        section = Section(
            title=self.title,
            text=self.study.text,
            verdicts=self.study.module.judge(data),
            images={self.study.title: image.read_bytes()},
            tables=[self.study.module.table(self._spec, data)],
        )
        return self.outcome(section, sources)


_WHERE = {"stated": "in other settings", "published": "on fresh draws of the data"}
_BAND = "line: mean over the walks   band: from the 10 % to the 90 % quantile"


def _named(sources: dict[str, str]) -> str:
    """The sources of a figure, for its footer."""
    return "   ".join(f"{name} {value}" for name, value in sources.items())


def _fitted(fit: Sequence[Verdict]) -> list[Table]:
    """The quality of a fit."""
    caption = (
        "How near the curves are to the printed ones. Parameters and data were chosen to make them so, which is why "
        "this is not counted among the claims."
    )
    rows = [[one.claim, one.outcome, one.measured] for one in fit]
    return [Table(["fit", "verdict", "measured"], rows, caption)] if rows else []

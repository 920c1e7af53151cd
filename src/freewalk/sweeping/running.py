"""The work behind one point of a sweep: run its spec, and give the bytes of its record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from freewalk.errors import FreewalkError, SpecError
from freewalk.experiment.own import Tell, blame
from freewalk.experiment.plan import Plan
from freewalk.experiment.spec import Spec
from freewalk.recording import timeless
from freewalk.sweeping.computing import Task
from freewalk.sweeping.crews import Look, Work
from freewalk.sweeping.points import Point


@dataclass(frozen=True)
class RunPoint(Work):
    """Run the spec of a point on one core, unless it asks for more.

    Attributes
    ----------
    spec
        What to run.
    plan
        What it describes, where that was made already.
    """

    spec: Spec
    plan: Plan | None = None

    def shipped(self) -> "RunPoint":
        """The same with all that it describes: its data, and code of the user's."""
        return self if self.plan is not None else replace(self, plan=plan_of(self.spec))

    def needs(self) -> tuple[int, int]:
        """The cores and graphics cards of its runtime; one core unless it asks for more."""
        from freewalk.runtimes import CPU, runtime_for

        plan = self.plan or plan_of(self.spec)
        runtimes = [runtime_for(plan.options["runtime"], plan.problem, phases) for phases in plan.walks.values()]
        threads = [one.threads or 1 for one in runtimes if isinstance(one, CPU)]
        return max(threads, default=1), max(one.cards for one in runtimes)

    def run(self, look: Look | None = None) -> bytes:
        """The record as bytes; nothing in it depends on the hour, or on who runs it where.

        Raises
        ------
        FreewalkError
            If the spec cannot be run, or code of the user's fails.
        """
        spec = replace(self.spec, text=text_of(self.spec))

        def progress(label: str, done: int, total: int, rows: int) -> None:
            if look is not None:
                look(done, total)

        try:
            record = spec.run(progress, plan=self.plan or plan_of(spec))
        except FreewalkError:
            raise
        except Exception as error:
            if not spec.code:
                raise
            raise SpecError(f"{', '.join(spec.code)}: {blame(error)}") from error
        if record.partial:  # Ctrl-C came to this process: whoever leads knows what to do
            raise KeyboardInterrupt(record.provenance.get("interrupted_by", ""))
        kept = timeless(record)
        kept.data.attrs.pop("name", None)  # that of the sweep, which other sweeps may share this point with
        if "files" in kept.provenance:  # where they lie says nothing about what was found
            kept.provenance["files"] = {name: one["sha256"] for name, one in kept.provenance["files"].items()}
        return kept.as_bytes()


def plan_of(spec: Spec, tell: Tell | None = None) -> Plan:
    """What a spec describes, compiled walks on one thread: points are computed at the same time, a core each."""
    from freewalk.runtimes import CPU, runtime_for

    plan = spec.plan(tell)
    asked = plan.options["runtime"]
    if all(runtime_for(asked, plan.problem, phases) == CPU() for phases in plan.walks.values()):
        plan = replace(plan, options={**plan.options, "runtime": CPU(threads=1)})
    return plan


def text_of(spec: Spec) -> str:
    """The spec of a point as TOML: what `freewalk run` takes."""
    import tomlkit

    return tomlkit.dumps(_given(spec.tables.model_dump(exclude_defaults=True, exclude={"name", "sweep", "compare"})))


def _given(value: Any) -> Any:
    """Tables without what is not given, which TOML has no word for."""
    if isinstance(value, Mapping):
        return {key: _given(one) for key, one in value.items() if one is not None}
    return [_given(one) for one in value] if isinstance(value, (list, tuple)) else value


def task_of(point: Point) -> Task:
    """The task that computes a point; its size is the number of updates."""
    run = point.spec.tables.run
    size = run.steps * run.walks * len(point.spec.tables.walk)
    return Task(point.key, RunPoint(point.spec), point.words, size)

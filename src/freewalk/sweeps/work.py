"""The work of one point of a sweep: run its spec, and return its record as bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from freewalk.errors import FreewalkError, SpecError
from freewalk.run.measurements import timeless
from freewalk.specs.own import Tell, blame
from freewalk.specs.plan import Plan
from freewalk.specs.spec import Spec
from freewalk.sweeps.compute import Task
from freewalk.sweeps.crews import Look, Work
from freewalk.sweeps.points import Point


@dataclass(frozen=True)
class RunPoint(Work):
    """Run the spec of a point on one core, unless it asks for more.

    Attributes
    ----------
    spec
        The spec to run.
    plan
        Its plan, if it was already created.
    """

    spec: Spec
    plan: Plan | None = None

    def shipped(self) -> "RunPoint":
        """The same work, including its data and the user's code."""
        return self if self.plan is not None else replace(self, plan=plan_of(self.spec))

    def needs(self) -> tuple[int, int]:
        """The cores and GPUs of its runtime; one core unless the spec asks for more."""
        from freewalk.runtimes import CPU, runtime_for

        plan = self.plan or plan_of(self.spec)
        runtimes = [runtime_for(plan.options["runtime"], plan.problem, phases) for phases in plan.walks.values()]
        threads = [one.threads or 1 for one in runtimes if isinstance(one, CPU)]
        return max(threads, default=1), max(one.cards for one in runtimes)

    def run(self, look: Look | None = None) -> bytes:
        """The record as bytes, independent of the time and the place of the run.

        Raises
        ------
        FreewalkError
            If the spec cannot be run, or user code fails.
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
        if record.partial:  # Ctrl-C reached this process; the leading process handles it
            raise KeyboardInterrupt(record.provenance.get("interrupted_by", ""))
        kept = timeless(record)
        kept.data.attrs.pop("name", None)  # the name of the sweep; other sweeps may share this point
        if "files" in kept.provenance:  # the location of files does not affect the result
            kept.provenance["files"] = {name: one["sha256"] for name, one in kept.provenance["files"].items()}
        return kept.as_bytes()


def plan_of(spec: Spec, tell: Tell | None = None) -> Plan:
    """The plan of a spec, with compiled walks on one thread: points run at the same time, one core each."""
    from freewalk.runtimes import CPU, runtime_for

    plan = spec.plan(tell)
    asked = plan.options["runtime"]
    if all(runtime_for(asked, plan.problem, phases) == CPU() for phases in plan.walks.values()):
        plan = replace(plan, options={**plan.options, "runtime": CPU(threads=1)})
    return plan


def text_of(spec: Spec) -> str:
    """The spec of a point as TOML, as `freewalk run` takes it."""
    import tomlkit

    return tomlkit.dumps(_given(spec.tables.model_dump(exclude_defaults=True, exclude={"name", "sweep", "compare"})))


def _given(value: Any) -> Any:
    """Tables without None, which TOML cannot represent."""
    if isinstance(value, Mapping):
        return {key: _given(one) for key, one in value.items() if one is not None}
    return [_given(one) for one in value] if isinstance(value, (list, tuple)) else value


def task_of(point: Point) -> Task:
    """The task that computes a point; its size is the number of updates."""
    run = point.spec.tables.run
    size = run.steps * run.walks * len(point.spec.tables.walk)
    return Task(point.key, RunPoint(point.spec), point.words, size)

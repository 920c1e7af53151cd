"""`resume`: read what a checkpoint contains, check all of it, and run on to the end."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from freewalk.checks import Checks, show
from freewalk.designs.kernel import Kernel, Move
from freewalk.designs.memory import LastNode, VisitCounts
from freewalk.errors import FreewalkError, RecordError
from freewalk.graphs import Graph
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.run.checkpoint import Continuation
from freewalk.run.loop import Keep, Progress, Watch, run_to_end
from freewalk.run.record import Record
from freewalk.runtimes import Job, Runtime, State, runtime_named
from freewalk.storage.archive import Packed, name_of, same, unpack

_check = Checks(RecordError)


def resume(
    record: Record,
    *,
    runtime: str | Runtime | None = None,
    types: Sequence[type] = (),
    progress: Progress | None = None,
    objective: Objective | None = None,
    rule: Rule | Sequence[Rule | None] | None = None,
    checkpoint: str | os.PathLike[str] | Keep | None = None,
    checkpoint_every: float = 60.0,
    files: Sequence[str | os.PathLike[str]] = (),
) -> Record:
    """Resume an interrupted run from its partial record; the result is identical to an uninterrupted run.

    A record loaded from a file is validated completely first: a damaged or malicious file is rejected.

    Parameters
    ----------
    record
        A partial record, from this process or loaded from a file.
    runtime
        The runtime to continue with; None uses the original one.
    types
        Your own objective, rule or schedule classes, if the loaded record uses any. No other code named in the record
        is ever executed.
    progress, checkpoint, checkpoint_every
        As in `learn`; `checkpoint` may be the file from which the record was loaded.
    objective
        The original objective, if a loaded record cannot contain it: a torch module is code. It is rejected if its data
        or structure differ from those of the run, even if the record contains an objective.
    rule
        The original rule, if a loaded record cannot contain it, such as an `Optimizer` with a function of your own.
        With phases, a list with one rule per phase. It is rejected if it differs from the rule in the record.
    files
        The current paths of the files of a mapped graph or mapped data, if they have moved since the run began. A
        record refers to these files by path and checksum; a file with different content is rejected.

    Returns
    -------
    Record
        The complete record; if the run has a goal, it ends where the goal is reached.

    Raises
    ------
    RecordError
        If the record is complete, was saved without the state needed to resume, or is inconsistent, or if the given
        objective or rule is not the original one.
    """
    _check.instance("resume", "record", record, Record, "a record, as fw.learn returns it or fw.load reads it")
    if not record.partial or record.continuation is None:
        lost = record.provenance.get("not_resumable", "it holds several records side by side; resume each of them")
        why = lost if record.partial else "the run is complete"
        raise RecordError(f"resume: cannot resume {show(record.label)}: {why}")
    watch = Watch.of("resume", progress, checkpoint, checkpoint_every)
    chosen = None if runtime is None else runtime_named(runtime)
    known = _known_types(types)
    listed = _check.items("resume", "files", files, "a list of paths")
    places = [_check.path("resume", "a path in files", path) for path in listed]
    try:
        run = record.continuation
        rules: list[Any] = list(rule) if isinstance(rule, (list, tuple)) else [rule]
        if isinstance(run, Packed):
            given = {"objective": objective} | {f"rule {place}": one for place, one in enumerate(rules)}
            known_parts = {name: one for name, one in given.items() if one is not None}
            if isinstance(run.given.get("graph"), Packed):  # its file was not found when the record was loaded
                known_parts["graph"] = unpack(run.given["graph"], {"Graph": Graph}, places)
            run = unpack(Packed(run.tree, run.arrays, {**run.given, **known_parts}), known, places)
        run = _check.instance("record", "continuation", run, Continuation, "what record.save wrote").checked()
        if objective is not None or any(one is not None for one in rules):
            run = _handed(run, objective, rules)
    except RecordError:
        raise
    except Exception as error:  # the record is inconsistent, or a user-defined class objects
        raise RecordError(f"resume: cannot resume {show(record.label)}: {error}") from error
    run.runtime = run.runtime if chosen is None else chosen
    return run_to_end(run, watch)


def _known_types(more: Sequence[type]) -> dict[str, type]:
    """The classes that a record may contain, by name."""
    from freewalk import exchanges, graphs, objectives, rules, runtimes, schedules

    _check.instance("resume", "types", more, (list, tuple), "a list of dataclasses")
    for kind in more:
        if not isinstance(kind, type) or not is_dataclass(kind):
            raise _check.fail("resume", "types", kind, "a list of dataclasses")
    if "torch" in sys.modules:  # otherwise no rule of a record can need it
        from freewalk.torch import optimizer

        more = [*more, optimizer.Optimizer, optimizer.Slot]
    modules = (exchanges, graphs, objectives, rules, runtimes, schedules)
    listed = [getattr(module, name) for module in modules for name in module.__all__]
    known = [kind for kind in listed if isinstance(kind, type)]
    return {
        name_of(kind): kind
        for kind in [*known, Move, LastNode, VisitCounts, Kernel, Phase, Job, State, Continuation, *more]
    }


def _handed(run: Continuation, objective: Objective | None, rules: Sequence[Rule | None]) -> Continuation:
    """The same run with the given objective and rules, one per phase, in place of those that are code.

    Everything given must equal what the run began with, even if it is not needed: nothing is ignored.
    """
    job, fingerprint = run.job, run.fingerprint
    if objective is not None and objective is not job.objective:
        _check.instance("resume", "objective", objective, Objective, "the objective that it began with")
        if job.objective is None or (job.objective.stored and not same(objective, job.objective)):
            raise _refusal("objective", objective, job.objective)
        if not job.objective.stored:
            fingerprint = fingerprint or job.objective.fingerprint
            job = replace(job, objective=objective)
    if len(rules) > len(job.phases):
        raise _check.fail("resume", "rule", rules, f"at most {len(job.phases)}, one for each phase")
    phases = list(job.phases)
    for place, rule in enumerate(rules):
        if rule is not None:
            phases[place] = replace(phases[place], rule=_same_rule(rule, phases[place], job.objective))
    return replace(run, job=replace(job, phases=tuple(phases)), fingerprint=fingerprint).checked()


def _same_rule(rule: Rule, phase: Phase, objective: Objective | None) -> Rule:
    """A rule passed by the user, with parameters filled in that follow from the objective and the kernel."""
    _check.instance("resume", "rule", rule, Rule, "the rule that it began with; with phases, a list of them")
    own = None if objective is None else phase.rule
    if objective is None or own is None or type(rule) is not type(own):
        raise _refusal("rule", rule, own)
    fitted = rule.fitted(objective, phase.kernel)
    # A function that was defined again is identified by its name only.
    words, known = (re.sub(r" at 0x[0-9a-f]+", "", repr(one)) for one in (fitted, own))
    if not (same(fitted, own) if own.stored else words == known):
        raise _refusal("rule", rule, own)
    return fitted


def _refusal(name: str, got: Any, own: Any) -> FreewalkError:
    if own is None:
        return _check.fail("resume", name, got, "None", "the record is one of fw.walk, which learns nothing")
    expected = f"the {name} that it began with, {'with the same data' if name == 'objective' else show(own)}"
    return _check.fail("resume", name, got, expected, "the record has it, so leave it out")

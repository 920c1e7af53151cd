"""The record of a finished or running run: its data and its provenance."""

import platform
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk._version import __version__
from freewalk.blocks import LARGE, copy_of_counts
from freewalk.jobs.phase import label_of
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record, described
from freewalk.runtimes import State

if TYPE_CHECKING:
    import xarray

_WHEN = ("started", "seconds", "interruptions", "interrupted_by")  # what `story_of` says about time
_BLOWN_UP = 1e4  # times the largest of the first, zero-model and optimal losses: no run that learns gets there


def data_of(run: Continuation) -> "xarray.Dataset":
    """All measurements of a run so far, assembled in place."""
    import xarray

    job, state = run.job, run.state
    for name, values in run.measures.items():  # one at a time: two copies of all of them may not fit in memory
        run.measures[name] = [_side_by_side(values)]
    variables: dict[str, Any] = {name: (("walk", "step"), values[0]) for name, values in run.measures.items()}
    own = np.asarray if run.over else np.array  # a run that may be resumed shares no memory with its record
    alone = not state.visits_are_summed or state.walks == 1
    visits = _counted(state, own)
    variables["visits"] = (("walk", "node"), visits) if alone else ("node", visits[0])
    several = state.tokens > 1
    nodes = own(state.nodes)
    variables["at"] = (("walk", "token"), _by_walk(state, nodes)) if several else ("walk", nodes)
    attrs: dict[str, Any] = {"partial": int(not run.over), "label": label_of(job.phases, job.tokens)}
    objective = job.objective
    if objective is not None:
        models, best = state.reported(job.rule_of(state)), job.optimal
        by_walk = _by_walk(state, models)
        mean = by_walk.mean(axis=1, dtype=np.float64).astype(models.dtype) if several else models
        variables["final"] = (("walk", "coordinate"), own(mean))
        variables["diverged"] = ("walk", _diverged(job.zero_loss, by_walk, variables["loss"][1], best))
        variables["updates"] = ("step", job.updates_at(run.marks))
        if objective.known_smoothness is not None:
            variables["smoothness"] = ("node", objective.known_smoothness)
        attrs |= {"primary": objective.primary, "heavy": list(objective.heavy), **best}
    if state.paths.shape[0]:
        kept = np.flatnonzero(state.path_of >= 0)
        variables["path"] = (("kept", "time"), state.paths[state.path_of[kept], : state.step + 1])
        variables["kept"] = ("kept", kept)
        variables["time"] = ("time", np.arange(state.step + 1))  # so that paths of different lengths can be joined
    graph = job.kernel.graph
    coords: dict[str, Any] = {"step": run.marks, "walk": np.arange(state.walks)}
    if graph.n <= LARGE:  # otherwise nodes are numbered implicitly, without a stored number for each
        coords["node"] = np.arange(graph.n)
    if several:
        coords["token"] = np.arange(state.tokens)
    if graph.node_names is not None:
        coords["node_name"] = ("node", np.array(graph.node_names))
    data = described(xarray.Dataset(variables, coords=coords, attrs=attrs))
    for name in () if objective is None else objective.rising:
        data[name].attrs["better"] = "higher"
    return data


def _counted(state: State, own: Callable[[Any], NDArray[Any]]) -> NDArray[np.int64]:
    if not state.visits_are_summed:
        return own(state.summed(state.visits))
    if own is np.asarray:
        return state.visits
    return copy_of_counts(state.visits)


def _diverged(
    zero: float, models: NDArray[Any], loss: NDArray[np.float64], best: dict[str, float]
) -> NDArray[np.bool_]:
    """Per walk: whether a value is not finite, or the last loss is beyond any reasonable value."""
    scale = np.fmax(np.abs(loss[:, 0]), np.fmax(abs(zero), abs(best.get("optimal_loss", 0.0))))
    finite = np.isfinite(models).all(axis=(1, 2)) & np.isfinite(loss).all(axis=1)
    beyond = (loss[:, -1] > _BLOWN_UP * scale) & (scale > 0)
    return np.asarray(~finite | beyond)


def _side_by_side(values: list[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays of walks × marks; those stored mark by mark stay so, which is much faster."""
    if all(value.flags.f_contiguous for value in values):
        return np.concatenate([value.T for value in values]).T
    return np.concatenate(values, axis=1)


def _by_walk(state: State, values: NDArray[Any]) -> NDArray[Any]:
    """Values per row as values per walk and token."""
    return values.reshape(state.walks, state.tokens, *values.shape[1:])


@cache
def versions() -> dict[str, str]:
    """The versions of freewalk, Python and the packages that affect results."""
    packages = {package: version(package) for package in ("numpy", "scipy", "numba", "xarray")}
    return {"freewalk": __version__, "python": platform.python_version(), **packages}


def story_of(run: Continuation) -> dict[str, Any]:
    """What was run, by which versions, when and for how long."""
    job = run.job
    phases = [
        {"until": phase.until, "kernel": phase.kernel.label, "rule": None if phase.rule is None else repr(phase.rule)}
        | ({} if phase.exchange is None else {"exchange": repr(phase.exchange)})
        for phase in job.phases
    ]
    return {
        "graph": job.kernel.graph.name,
        "problem": None if job.objective is None else repr(job.objective),
        "phases": phases,
        "steps": run.steps,
        "walks": run.state.walks,
        **({"tokens": job.tokens} if job.tokens > 1 else {}),
        "every": run.every,
        **({"goal": dict(run.goal), "reached": run.state.step if run.reached else None} if run.goal else {}),
        "seed": job.seed,
        "precision": job.precision,
        "runtime": repr(run.runtime),
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "interruptions": run.interruptions,
        "versions": dict(versions()),
        "platform": platform.platform(),
        **({} if job.objective is None else job.objective.story()),
    }


def timeless(record: Record) -> Record:
    """Remove times from a record, so that the same run gives the same bytes, whenever and however fast it is made.

    Visits are summed over the walks: they take most of the space, and are only read for all walks together.
    """
    data = record.data
    if "visits" in data and "walk" in data.visits.dims:
        data = data.assign(visits=data.visits.sum("walk"))
    # The memory layout of measurements depends on how a run was divided into chunks, and hence on its speed.
    rows = {name: (one.dims, np.array(one.values, order="C"), one.attrs) for name, one in data.data_vars.items()}
    return Record(data.assign(rows), _without_hour(record.provenance), graph=record.graph)


def _without_hour(story: Any) -> Any:
    if isinstance(story, dict):
        return {key: _without_hour(value) for key, value in story.items() if key not in _WHEN}
    return story

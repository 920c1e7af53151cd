"""What a spec may name: every listed graph, objective, design, rule and so on, and classes of the user."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from freewalk import objectives
from freewalk.checks import show, suggestion
from freewalk.data import Dataset
from freewalk.data.files import read_samples
from freewalk.errors import FreewalkError, MissingExtra, SpecError
from freewalk.graphs import Graph
from freewalk.specs import datasets, models, optimizers
from freewalk.specs.keys import Signature, explanations, parameters_of
from freewalk.specs.own import MADE, Importer, blame, is_own
from freewalk.storage.mapped import is_ours

# They take arguments that a text cannot hold, or are not graphs.
_NOT_IN_SPECS = ("Graph", "from_networkx", "from_pandas", "topologies")
_SAMPLES = ("features", "targets", "nodes", "graph")  # what an objective gets from a file of data


@dataclass(frozen=True, eq=False)
class Kind:
    """Something that a spec can ask for by name."""

    name: str
    make: Callable[..., Any]
    signature: Signature
    summary: str
    explained: Mapping[str, str] = field(repr=False, default_factory=dict)  # the descriptions of its parameters
    given: tuple[str, ...] = ()  # the arguments that do not come from the spec
    in_specs: bool = True  # if not, it is for Python only
    own: bool = False  # whether it is a class of the user
    needs: str = ""  # the extra that it needs, which is also the name of a module

    def demand(self) -> None:
        """Raise an error if the extra is missing, before anything else is created."""
        try:
            if self.needs:
                import_module(self.needs)
        except ImportError:
            raise MissingExtra(self.needs, self.needs) from None


@cache
def families() -> dict[str, dict[str, Kind]]:
    """All listed kinds by family ("graph", "problem", "design", "rule", "exchange", "method", …) and name."""
    from freewalk import baselines, designs, exchanges, graphs, rules, runtimes, schedules
    from freewalk.data import partitioners, shipped

    # Kinds that need PyTorch are described in modules of this package, so that listing them does not import it.
    modules: dict[str, tuple[ModuleType, ...]] = {
        "graph": (graphs,),
        "problem": (objectives, datasets),
        "model": (models,),
        "dataset": (shipped,),
        "partition": (partitioners,),
        "design": (designs,),
        "rule": (rules, optimizers),
        "exchange": (exchanges,),
        "method": (baselines,),
        "schedule": (schedules,),
        "runtime": (runtimes,),
    }
    return {
        family: {name: kind_of(family, name, getattr(module, name)) for module in several for name in module.__all__}
        for family, several in modules.items()
    }


def kind_of(family: str, name: str, listed: Any, own: bool = False) -> Kind:
    """A listed class or function, or a class of the user, as a kind; a problem generates its data if it can."""
    make = getattr(listed, "synthetic", listed) if family == "problem" else listed
    parameters = parameters_of(make)
    if family == "problem" and not own:
        parameters.pop("path", None)  # specs read files but do not write them
    passed = {"problem": ("n", "graph", "origin"), "dataset": ("folder",)}.get(family, ())
    given = tuple(key for key in passed if key in parameters)
    for key in models.SIZES if family == "model" and own else ():  # the data determine them
        if key in parameters and parameters[key].default is inspect.Parameter.empty:
            parameters[key] = parameters[key].replace(default=None)
    explained = explanations(make)
    if any(words.startswith("As for `LeastSquares.synthetic`") for words in explained.values()):
        others = explanations(objectives.LeastSquares.synthetic)
        explained |= {key: others[key] for key, words in explained.items() if words.startswith("As for")}
    return Kind(
        name,
        make,
        Signature(name, {key: value for key, value in parameters.items() if key not in given}),
        (inspect.getdoc(listed) or "").partition("\n")[0],
        explained,
        given,
        name not in _NOT_IN_SPECS,
        own,
        "torch" if listed in (datasets.torch, optimizers.Optimizer) else "",
    )


def on_data(name: str, listed: type, own: bool = False) -> Kind:
    """An objective as a kind that reads its samples from a file."""
    reader, taken = parameters_of(read_samples), parameters_of(listed)
    data = reader.pop("path").replace(name="data", annotation=str)
    reader.pop("graph")
    others = {key: value for key, value in taken.items() if key not in _SAMPLES}

    def make(graph: Any, folder: Path, data: str, **values: Any) -> Any:
        columns = {key: values.pop(key) for key in reader if key in values}
        if "features" not in taken or "targets" not in taken:
            raise SpecError(f"{name}: takes no features and targets, so it cannot learn from a file of data")
        file = folder / data
        if is_ours(file):
            return _saved(listed, file, [key for key in columns if columns[key] is not None], values, graph)
        samples = read_samples(file, **columns, graph=graph)
        nodes = samples.nodes if "graph" in taken else [graph.node(one) for one in samples.nodes.tolist()]
        arguments = {"features": samples.features, "targets": samples.targets, "nodes": nodes, "graph": graph}
        return listed(**{key: value for key, value in arguments.items() if key in taken}, **values)

    described = f"{explanations(read_samples)['path']} Or a problem that `save` wrote, which is mapped into memory."
    words = {"data": described, **explanations(listed), **explanations(read_samples)}
    signature = Signature(name, {"data": data, **reader, **others})
    return Kind(name, make, signature, "", words, ("graph", "folder"), True, own)


def _saved(listed: type, file: Path, columns: list[str], values: dict[str, Any], graph: Graph) -> Any:
    """The problem in a file that `save` wrote, on this graph; options in the spec take precedence."""
    if columns:
        raise SpecError(f"{file}: is a saved problem, which has no columns; leave out {', '.join(columns)}")
    found = objectives.read(file, types=[listed] if issubclass(listed, objectives.Predictor) else [])
    if type(found) is not listed:
        raise SpecError(f"{file}: holds a {type(found).__name__}, expected {listed.__name__}")
    if not values and found.n == graph.n and found.node_names in (None, graph.node_names):
        return found
    said = {key: getattr(found, key) for key in ("ridge", "heavy", "weight_by", "relays")} | values
    return listed(found.features, found.targets, found.nodes, graph=graph, **said)


def on_dataset(name: str, listed: type, own: bool = False) -> Kind:
    """An objective as a kind that takes its samples from a data set, and their nodes from a partition."""
    make, given = datasets.linear(name, listed), ("graph", "origin")
    known = {key: value for key, value in parameters_of(listed).items() if key not in datasets.DETERMINED}
    parameters = {key: value for key, value in (parameters_of(make) | known).items() if key not in given}
    words = {**explanations(listed), **explanations(make)}
    return Kind(name, make, Signature(name, parameters), "", words, given, True, own)


def check(family: str, table: Mapping[str, Any], where: str) -> None:
    """Check the name of a kind and the names and types of its parameters, without creating it.

    The parameters of a class of the user are not checked, because nothing is imported here.
    """
    name = table.get("kind")
    if ":" not in str(name) or not is_own(family, name, where):
        _find(family, table, where, None).signature.read(_values(table), where, check)


def build(family: str, table: Mapping[str, Any], where: str, importer: Importer | None = None, **given: Any) -> Any:
    """Create the object that a table describes."""
    kind = _find(family, table, where, importer)
    kind.demand()
    values = kind.signature.read(_values(table), where, partial(build, importer=importer))
    folder = Path() if importer is None else importer.folder
    if family == "graph" and kind.name == "read":
        values["path"] = folder / values["path"]
    if family == "model":
        return _model(kind, values, where)
    offered = {"folder": folder, "origin": datasets.Origin(), **given}
    try:
        made = kind.make(**{key: offered[key] for key in kind.given}, **values)
        if family == "dataset" and not isinstance(made, Dataset):
            raise SpecError(f"{kind.name} returns a {type(made).__name__}, expected {MADE[family]}")
        return made
    except MissingExtra:
        raise  # its message is complete
    except FreewalkError as error:
        if str(error).startswith(where):
            raise
        raise SpecError(f"{where}: {error}") from error
    except Exception as error:
        if not kind.own and not isinstance(error, (TypeError, ValueError, OverflowError, MemoryError)):
            raise
        words = blame(error) if kind.own else show(str(error))
        raise SpecError(f"{where}: {kind.name} cannot use these values ({words})") from error


def _model(kind: Kind, values: dict[str, Any], where: str) -> models.Model:
    """A module that is created once the data are known."""
    if not kind.own:
        described: models.Model = kind.make(**values)
        return replace(described, where=where)
    takes = tuple(key for key in models.SIZES if key in kind.signature.parameters and key not in values)
    return models.Model(kind.name, values, where, kind.make, takes)


def _find(family: str, table: Mapping[str, Any], where: str, importer: Importer | None) -> Kind:
    kinds = {name: kind for name, kind in families()[family].items() if kind.in_specs}
    name = table.get("kind")
    if name is None:
        raise SpecError(f"{where} needs the key 'kind', one of {', '.join(kinds)}")
    data = table.get("data") if family == "problem" and name != "torch" else None
    wrap = None if data is None else on_dataset if isinstance(data, Mapping) else on_data
    if ":" in str(name) and is_own(family, name, where):
        if importer is None:
            raise SpecError(f"{where}: kind = {show(name)} is user code, which is not imported here")
        own = importer.find(family, name, where)
        return kind_of(family, name, own, own=True) if wrap is None else wrap(name, own, own=True)
    if family == "runtime" and isinstance(name, str):  # elsewhere they are written in lower case
        name = {known.lower(): known for known in kinds}.get(name.lower(), name)
    if not isinstance(name, str) or name not in kinds:
        raise SpecError(f"{where} has no kind {show(name)}; {suggestion(name, kinds, 'there are')}")
    return kinds[name] if wrap is None else wrap(name, getattr(objectives, name))


def _values(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "kind"}

"""Everything that is listed can be named in a spec."""

import inspect

import pytest

from freewalk import designs, graphs, objectives, rules, runtimes, schedules
from freewalk.data import Dataset, Partitioner, partitioners, shipped
from freewalk.errors import SpecError
from freewalk.specs import datasets, models, optimizers
from freewalk.specs.catalogue import build, check, families
from freewalk.specs.keys import Signature, parameters_of

MODULES = {
    "graph": [graphs],
    "dataset": [shipped],
    "partition": [partitioners],
    "problem": [objectives, datasets],
    "model": [models],
    "design": [designs],
    "rule": [rules, optimizers],
    "schedule": [schedules],
    "runtime": [runtimes],
}


@pytest.mark.parametrize("family", MODULES)
def test_every_listed_name_is_there_with_a_summary(family: str) -> None:
    kinds = families()[family]
    assert list(kinds) == [name for module in MODULES[family] for name in module.__all__]
    for kind in kinds.values():
        assert kind.summary.endswith("."), kind.name
        assert inspect.signature(kind.make)


def test_nested_kinds_are_built() -> None:
    inner = {"kind": "MHLJ", "jump": 0.1, "stop": 0.5, "hops": 3}
    table = {"kind": "Decaying", "design": inner, "schedule": {"kind": "Inverse", "initial": 1, "scale": 10}}
    made = build("design", table, "here")
    assert made == designs.Decaying(designs.MHLJ(0.1, 0.5, 3), schedules.Inverse(1, 10))


def test_data_sets_and_partitions_are_built() -> None:
    assert len(build("dataset", {"kind": "wine"}, "here")) == 178
    table = {"kind": "Dirichlet", "alpha": 0.1}
    assert build("partition", table, "here") == partitioners.Dirichlet(0.1, least=1)
    with pytest.raises(SpecError, match=r"^here: Dirichlet: alpha = 0\.0, expected a finite number"):
        build("partition", table | {"alpha": 0.0}, "here")
    with pytest.raises(SpecError, match="has no kind 'Dirichle'; did you mean 'Dirichlet'"):
        check("partition", {"kind": "Dirichle"}, "here")


def test_data_sets_and_partitions_stand_in_place_of_parameters() -> None:
    def make(data: Dataset, partition: Partitioner = partitioners.IID()) -> None:  # noqa: B008
        """Make nothing."""

    signature = Signature("make", parameters_of(make))
    tables = {"data": {"kind": "wine"}, "partition": {"kind": "Shards"}}
    found = signature.read(tables, "here", lambda *nested: build(*nested))
    assert (found["data"].name, found["partition"]) == ("wine", partitioners.Shards())


def test_other_errors_name_the_place() -> None:
    with pytest.raises(SpecError, match=r"^here: "):
        build("graph", {"kind": "from_edges", "edges": [[0, 1], "x"]}, "here")


def test_a_number_that_is_not_whole() -> None:
    with pytest.raises(SpecError, match=r"hops = 2\.5, expected a whole number"):
        check("design", {"kind": "MHLJ", "jump": 0.1, "stop": 0.5, "hops": 2.5}, "here")
    with pytest.raises(SpecError, match="average = 1, expected true or false"):
        check("rule", {"kind": "SGD", "step": 0.1, "average": 1}, "here")

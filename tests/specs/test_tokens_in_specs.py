"""Specs with several tokens, exchanges between them, and methods by name."""

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import freewalk as fw
from freewalk import baselines, cli
from freewalk.errors import SpecError
from freewalk.specs import RunFolder, parse

TOP = """
[graph]
kind = "ring"
n = 6
[problem]
kind = "LeastSquares"
dim = 3
seed = 1
[run]
steps = 40
walks = 2
every = 10
runtime = "reference"
"""
GOSSIP = """
[[walk]]
tokens = "nodes"
exchange = { kind = "Gossip" }
design = { kind = "Stay" }
rule = { kind = "SGD", step = 0.01 }
"""
MEETING = """
[[walk]]
label = "meeting"
tokens = 3
exchange = { kind = "Meet", every = 2 }
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 0.01 }
"""
FEDAVG = '[[walk]]\nmethod = { kind = "fedavg", step = 0.01, local_steps = 5 }\n'
PHASES = """
[[walk]]
label = "phases"
tokens = 2
[[walk.phase]]
until = 20
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 0.01 }
exchange = { kind = "Average", every = 5 }
[[walk.phase]]
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 0.01 }
"""


def test_a_spec_runs_as_learn_does() -> None:
    record = parse(TOP + GOSSIP + MEETING + FEDAVG + PHASES).run()
    names = ["Stay(), 6 tokens, Gossip(every=1)", "meeting", "FedAvg", "phases"]
    assert list(record.data.design.values) == names
    graph = fw.graphs.ring(6)
    problem = fw.objectives.LeastSquares.synthetic(6, dim=3, seed=1)
    options = {"steps": 40, "walks": 2, "every": 10, "runtime": "reference"}
    kernel = fw.designs.SimpleWalk().kernel(graph)
    parked, rule = fw.designs.Stay().kernel(graph), fw.SGD(0.01)
    alone = [
        fw.learn(problem, parked, rule, tokens="nodes", exchange=fw.exchanges.Gossip(), **options),
        fw.learn(problem, kernel, rule, tokens=3, exchange=fw.exchanges.Meet(every=2), **options),
        baselines.fedavg(0.01, local_steps=5).learn(problem, graph, **options),
        fw.learn(
            problem,
            [fw.Phase(20, kernel, rule, fw.exchanges.Average(every=5)), fw.Phase(None, kernel, rule)],
            tokens=2,
            **options,
        ),
    ]
    for name, one in zip(names, alone, strict=True):
        np.testing.assert_array_equal(record.data.sel(design=name).mse, one.data.mse)
        np.testing.assert_array_equal(record.data.sel(design=name).messages, one.data.messages)
        np.testing.assert_array_equal(record.data.sel(design=name).updates, one.data.updates)
        np.testing.assert_array_equal(record.data.sel(design=name).consensus, one.data.consensus)


def test_one_token_beside_several() -> None:
    one = '[[walk]]\nlabel = "one"\ndesign = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 0.01 }\n'
    record = parse(TOP + one + MEETING).run()
    assert np.isnan(record.data.consensus.sel(design="one")).all()
    assert record.data.updates.sel(design="meeting").values[-1] == 120


def test_the_start_is_that_of_tokens_without_a_node_of_their_own() -> None:
    text = TOP.replace("[run]", '[run]\nstart = "heaviest"')
    plan = parse(text + MEETING + FEDAVG).plan()
    assert plan.options_of("meeting")["start"] == "heaviest"
    assert plan.options_of("FedAvg")["start"] is None
    with pytest.raises(SpecError, match=r"\[run\]: start = 'heaviest', expected nothing; leave it out: with tokens ="):
        parse(text + FEDAVG).plan()


def test_a_method_may_take_a_design_and_a_label() -> None:
    design = '{ kind = "MHLJ", jump = 0.5, stop = 0.5, hops = 2 }'
    walk = f'label = "mine"\nmethod = {{ kind = "multi_walk_sgd", step = 0.01, tokens = 2, design = {design} }}\n'
    plan = parse(f"{TOP}[[walk]]\n{walk}").plan()
    assert isinstance(plan.methods["mine"][0].design, fw.designs.MHLJ)
    assert [method.tokens for method in plan.methods["mine"]] == [2]
    assert plan.walks["mine"][0].kernel.label == "mine"
    assert [one.label for one in plan.contestants] == ["mine"]
    with pytest.raises(fw.FreewalkError, match="'phases' has phases, expected one design and one rule"):
        _ = parse(TOP + PHASES).plan().contestants


@pytest.mark.parametrize(
    ("walks", "message"),
    [
        (
            MEETING.replace("= 3", "= 0"),
            r"'meeting': tokens = 0, expected a whole number >= 1, a share of the nodes such as 0.1, or \"nodes\"",
        ),
        (MEETING.replace("= 3", '= "all"'), r"'meeting': tokens = 'all', expected a whole number"),
        (MEETING.replace("tokens = 3", ""), r"'meeting': Meet: there is one token, expected at least two"),
        (MEETING.replace("Meet", "Met"), r"exchange has no kind 'Met'; did you mean 'Meet'\?"),
        (MEETING.replace("every = 2", "evry = 2"), r"exchange: Meet has no parameter 'evry'"),
        (MEETING.replace("every = 2", "every = 0"), r"exchange: Meet: every = 0, expected a whole number >= 1"),
        (GOSSIP.replace("Stay", "SimpleWalk"), r"\[\[walk\]\] 1: Gossip: tokens move by SimpleWalk"),
        (GOSSIP.replace('"nodes"', "6"), r"\[\[walk\]\] 1: Gossip: 6 tokens start on \d of 6 nodes"),
        (FEDAVG + "tokens = 2\n", r"has a method as well as the key 'tokens'; a method sets that itself"),
        (FEDAVG + 'rule = { kind = "SGD", step = 1 }\n', r"has a method as well as the key 'rule'"),
        (FEDAVG.replace("fedavg", "fedprox"), r"method has no kind 'fedprox'; there are centralized_sgd"),
        (FEDAVG.replace("fedavg", "mine:Fed"), r"a method cannot be a class of your own"),
        (FEDAVG.replace("step = 0.01, ", ""), r"method: fedavg needs the parameter 'step'"),
        (FEDAVG.replace("0.01", "-1"), r"method: SGD: step = -1"),
        (FEDAVG + FEDAVG, r"\[\[walk\]\] 2: another \[\[walk\]\] is also called 'FedAvg'"),
        (
            PHASES.replace("tokens = 2", 'exchange = { kind = "Meet" }'),
            r"has phases as well as an exchange; each",
        ),
        (PHASES.replace("tokens = 2", 'method = { kind = "fedavg", step = 1 }'), r"has phases as well as a method"),
        (PHASES.replace("tokens = 2", ""), r"'phases': Average: there is one token"),
        (MEETING.replace("= 3", "= 10_000_000_000"), r"\[run\]: the models of 2 walks × 10,000,000,000 tokens"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(walks: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse(TOP + walks).plan()


PAIR = """
from dataclasses import dataclass
import numpy as np
import freewalk as fw

@dataclass(frozen=True)
class Pair(fw.Exchange):
    '''The first two average.'''
    share: float = 0.5
    def weights(self, gathering):
        weights = np.eye(gathering.nodes.size)
        weights[:2, :2] = [[1 - self.share, self.share], [self.share, 1 - self.share]]
        return weights

@dataclass(frozen=True)
class Broken(fw.Exchange):
    def weights(self, gathering):
        return 1 / 0
"""


def test_an_exchange_of_ones_own(tmp_path) -> None:
    (tmp_path / "pairs_for_tokens.py").write_text(PAIR)
    text = TOP + MEETING.replace('"Meet", every = 2', '"pairs_for_tokens:Pair", share = 0.25')
    spec = parse(text, folder=tmp_path)
    assert spec.code == ["pairs_for_tokens:Pair"]
    try:
        folder = RunFolder.create(tmp_path / "run", spec)
        record = folder.run()
        assert np.isfinite(record.data.mse).all()
        with pytest.raises(SpecError, match=r"Broken fails on these tokens \(ZeroDivisionError"):
            parse(text.replace("Pair", "Broken").replace(", share = 0.25", ""), folder=tmp_path).plan()
        with pytest.raises(SpecError, match=r"pairs_for_tokens:np|has no class 'np'"):
            parse(text.replace("Pair", "np").replace(", share = 0.25", ""), folder=tmp_path).plan()
    finally:
        sys.modules.pop("pairs_for_tokens", None)


def test_exchanges_and_methods_are_listed() -> None:
    shown = CliRunner().invoke(cli.app, ["list"]).stdout
    assert "  Gossip(matrix=None, every=1)\n" in shown
    assert "  fedavg(step, local_steps=10, sampled=False, fraction=1.0)\n" in shown
    assert "in place of design, rule, tokens and exchange" in shown
    assert "The number of local steps of each node per round." in CliRunner().invoke(cli.app, ["list", "method"]).stdout

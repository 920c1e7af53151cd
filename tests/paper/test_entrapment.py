"""Verdicts on entrapment: as `find_traps` judges, at heavy nodes, and able to come out either way."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from handmade import SPEC
from handmade import evidence as curves

import freewalk as fw
from freewalk.analysis import excess_visits, find_traps
from freewalk.analysis.traps.sets import FACTOR, Trap
from freewalk.designs import MHLJ, Metropolis
from freewalk.paper import STUDIES, figure_2
from freewalk.paper.claims import ClaimShare, ends
from freewalk.paper.entrapment import TERMS, entrapped, hold, in_words, is_trap
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import spec_path
from freewalk.report.page import Page, Section, Verdict, write_page
from freewalk.run.record import Record
from freewalk.specs import parse

FLAT = ([0.0, 100.0, 200.0], [10.0, 1.0, 1.0])
PAIR = np.where(np.arange(60) < 2, 100.0, 1.0)


def evidence(text: str) -> Evidence:
    """Evidence that has a plan and no curves."""
    return Evidence(parse(text).plan(), Record(xarray.Dataset()), None, {}, "stated")


def test_a_hold_has_the_numbers_of_find_traps() -> None:
    graph = fw.graphs.ring(60)
    kernel = Metropolis(1).kernel(graph, PAIR)
    found = hold(kernel, Metropolis(0).kernel(graph), (0, 1))
    (trap,) = find_traps(kernel)
    assert found.nodes == trap.nodes == (0, 1)
    assert (found.excess, found.uniform) == pytest.approx((trap.excess, trap.uniform))
    assert (found.factor, found.lost) == pytest.approx((trap.factor, trap.lost))


@pytest.mark.parametrize("design", [Metropolis(1), MHLJ(0.1, 0.5, 3)])
@pytest.mark.parametrize("graph", [fw.graphs.ring(60), fw.graphs.complete(60), fw.graphs.grid(6, 10)])
def test_a_verdict_is_that_of_find_traps(design: fw.Design, graph: fw.Graph) -> None:
    kernel = design.kernel(graph, PAIR)
    found = hold(kernel, Metropolis(0).kernel(graph), (0, 1))
    assert found.excess == excess_visits(kernel, [0, 1])
    assert is_trap(found, graph.n) == bool(find_traps(kernel))


def test_heavy_nodes_are_taken_together_where_edges_connect_them_and_the_worst_are_shown() -> None:
    graph = fw.graphs.ring(60)
    importance = np.ones(60)
    importance[[10, 11, 40]] = 50.0
    kernel, uniform = Metropolis(1).kernel(graph, importance), Metropolis(0).kernel(graph)
    assert hold(kernel, uniform, (10, 11, 40)).nodes == (10, 11)
    importance[40] = 500.0
    assert hold(Metropolis(1).kernel(graph, importance), uniform, (10, 11, 40)).nodes == (40,)


def test_the_claim_holds_on_a_ring_and_fails_on_a_complete_graph() -> None:
    heavier = SPEC.replace("heavy_variance = 10.0", "heavy_variance = 1000.0")
    dense = heavier.replace('"ring"', '"complete"')
    trapped, free = (
        entrapped("MH importance", "MH uniform", why={"stated": "why"}),
        entrapped("MH importance", "MH uniform", holds=False, why={"stated": "why"}),
    )
    assert trapped.judge(evidence(heavier)).outcome == "pass"
    assert free.judge(evidence(heavier)).outcome == "fail"
    verdict = trapped.judge(evidence(dense))
    assert (verdict.outcome, verdict.comment) == ("fail", "why")
    assert free.judge(evidence(dense)).outcome == "pass"
    assert verdict.claim.startswith("MH importance is entrapped: ")
    # The uniform walk has as many excess visits as itself.
    assert "memory 1 × as long, 0 updates more" in entrapped("MH uniform", "MH uniform").judge(evidence(dense)).measured


def test_without_heavy_nodes_there_is_nothing_to_test() -> None:
    verdict = entrapped("MH importance", "MH uniform").judge(evidence(SPEC.replace("heavy = 2", "heavy = 0")))
    assert verdict.outcome == "not testable"
    assert "no heavy node" in verdict.comment


def test_a_trap_takes_both_a_factor_and_as_many_updates_as_nodes() -> None:
    trap = Trap((0, 1), share=0.1, excess=1234.5, uniform=1.5, memory=1371.7, factor=10.0, lost=100.0)
    assert is_trap(trap, 100)
    assert not is_trap(replace(trap, factor=9.9), 100)
    assert not is_trap(replace(trap, lost=99.0), 100)
    assert in_words(replace(trap, factor=0.5, lost=-2.5)) == (
        "nodes 0, 1: 1,234 excess visits, the uniform walk 1.5; memory 0.5 × as long, 2.5 updates less"
    )


def column(verdicts: Sequence[Verdict], place: Path) -> list[str]:
    """The words in the column of verdicts on a page of theirs."""
    text = write_page(Page("A page", [Section("A study", verdicts=verdicts)]), place).read_text("utf-8")
    cells = re.findall(r'data-head="Verdict">(.*?)</td>', text)
    return [" ".join(re.findall(r"[a-z]+", re.sub("<.*?>", "", cell))) for cell in cells]


def test_the_verdict_column_says_by_whose_definition(tmp_path: Path) -> None:
    heavier = SPEC.replace("heavy_variance = 10.0", "heavy_variance = 1000.0")
    dense, even = heavier.replace('"ring"', '"complete"'), SPEC.replace("heavy = 2", "heavy = 0")
    claim = entrapped("MH importance", "MH uniform")
    found = [claim.judge(evidence(text)) for text in (heavier, dense, even)]
    found.append(claim.judge(evidence(heavier), ClaimShare(holds=3, tested=6, of=6, low=0.5, high=2.0)))
    alike = curves({"MH importance": FLAT, "MH uniform": FLAT})
    found.append(ends("MH importance", "MH uniform", most=1.05).judge(alike))
    outcomes = ["pass", "fail", "not testable", "depends"]
    assert [one.outcome for one in found] == [*outcomes, "pass"]
    assert column(found, tmp_path / "page.html") == [*(f"{outcome} by our definition" for outcome in outcomes), "pass"]


def test_every_claim_with_our_limits_says_so(tmp_path: Path) -> None:
    claims = [claim for study in STUDIES.values() for claim in study.claims]
    ours = [claim for claim in claims if "entrapped" in claim.text]
    assert len(ours) == 13
    assert all(claim.terms == (TERMS if claim in ours else "") for claim in claims)
    spec = tomllib.loads(spec_path("2", "stated").read_text("utf-8"))
    verdicts = figure_2.judge(figure_2.numbers(spec))
    limited = [f"{FACTOR:g} × as long" in verdict.claim for verdict in verdicts]
    assert limited == [False] * 5 + [True]
    assert [TERMS in cell for cell in column(verdicts, tmp_path / "page.html")] == limited

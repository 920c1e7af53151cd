"""The page that lists every element of the paper: what it names exists, nothing is left out, and its counts are right.

The first tests are facts that the page cites and no other test shows.
"""

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import freewalk as fw
from freewalk.analysis import theory
from freewalk.designs import MHLJ, Centralized, Metropolis, SimpleWalk
from freewalk.objectives import LeastSquares
from freewalk.paper import KEYS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "paper-map.md"
DIFFERENCES = PAGE.with_name("paper-differences.md")
HEAD = ["element", "implemented", "tested", "judged", "note"]
ABSENT = re.compile(r"(—$|no$|not yet\b)")  # what a cell says where there is nothing to name
BY_TEST = "by its test"
LINK = re.compile(r"\[[^]]+\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


# Facts.


def test_the_designs_of_the_introduction_are_as_printed():
    """Designs 1 to 3, (7) and (8) of the paper, entry by entry, on a graph whose degrees differ."""
    graph = fw.graphs.watts_strogatz(20, 4, 0.5, seed=1)
    importance = np.random.default_rng(1).uniform(1, 10, graph.n)
    kernels = {
        "simple": SimpleWalk().kernel(graph),
        "uniform": Metropolis(0).kernel(graph),
        "any": Metropolis(target=importance).kernel(graph),
        "importance": Metropolis(1).kernel(graph, importance),
    }
    found = {name: kernel.matrix().toarray() for name, kernel in kernels.items()}
    degrees, edges = graph.degrees, np.argwhere(graph.adjacency().toarray())
    assert len(set(degrees.tolist())) > 2
    for v, u in edges:
        printed = {
            "simple": 1 / degrees[v],
            "uniform": min(1, degrees[v] / degrees[u]) / degrees[v],
            "any": min(1 / degrees[v], importance[u] / (degrees[u] * importance[v])),
            "importance": min(1, degrees[v] * importance[u] / (degrees[u] * importance[v])) / degrees[v],
        }
        assert {name: matrix[v, u] for name, matrix in found.items()} == pytest.approx(printed)
        chain = found["importance"]
        assert importance[v] / importance[u] == pytest.approx(chain[u, v] / chain[v, u])


@pytest.mark.parametrize("heavy", [0, 2, 5])
def test_the_papers_own_data_do_not_meet_its_condition(heavy):
    """L_min ≈ L̄ is far from true: with ten Gaussian features one node in a thousand has nearly no norm."""
    for seed in range(1, 11):
        problem = LeastSquares.synthetic(1000, dim=10, heavy=heavy, adjacent=False, seed=seed)
        assert 6 <= theory.importance_pays(problem.smoothness).mean_over_smallest <= 15.1
    assert theory.importance_pays([100, 1, 1, 1, 1]).mean_over_smallest == pytest.approx(20.8)


@pytest.mark.parametrize(
    ("design", "biased"),
    [(Metropolis(0), True), (Metropolis(1), True), (MHLJ(0.1, 0.5, 3), True), (Centralized(1), False)],
)
def test_the_gradient_at_the_next_node_is_biased_unless_nodes_are_drawn_independently(design, biased):
    """E[w ∇f(x) | the node before] against ∇f(x), at any model."""
    problem = LeastSquares.synthetic(50, dim=3, heavy=2, noise=0.5, seed=1)
    kernel = design.kernel(fw.graphs.ring(50), problem.smoothness)
    gradients = np.array([problem.gradient(node, np.ones(3)) for node in range(problem.n)])
    expected = kernel.matrix() @ (kernel.weights[:, None] * gradients)
    away = np.abs(expected - gradients.mean(axis=0)).max(axis=1)
    assert (away > 1e-3).all() if biased else (away < 1e-12).all()


@pytest.mark.parametrize("x", [1e-3, 0.1, 0.5, 0.9, 1.0])
def test_the_sums_of_the_proof_have_their_bounds(x):
    """Σ (1 − x)^t t ≤ 1/x² and Σ (1 − x)^t t² ≤ 2/x³, for every number of terms; 10⁵ of them are nearly all."""
    t = np.arange(1, 100_001)
    terms = (1 - x) ** t
    assert (np.cumsum(terms * t) <= 1 / x**2).all()
    assert (np.cumsum(terms * t**2) <= 2 / x**3).all()
    # And not for much less: the limits are (1 − x)/x² and (1 − x)(2 − x)/x³.
    assert (terms * t).sum() == pytest.approx((1 - x) / x**2)
    assert (terms * t**2).sum() == pytest.approx((1 - x) * (2 - x) / x**3)


@pytest.mark.parametrize("stop", [0.05, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("hops", [2, 3, 10])
@pytest.mark.parametrize("jump", [0.0, 0.1, 1.0])
def test_the_bound_of_remark_1_holds_for_all_jumps(jump, stop, hops):
    found = theory.remark_1(MHLJ(jump, stop, hops).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1]))
    assert found.printed <= 1 + jump * (1 / stop - 1) + 1e-12


# The page.


class Row(NamedTuple):
    """One element of the paper."""

    element: str
    implemented: str
    tested: str
    judged: str
    note: str


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@cache
def rows():
    """All rows of all tables, after their heads."""
    found, inside = [], False
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            inside = False
        elif cells(line) == HEAD:
            inside = True
        elif inside and not re.fullmatch(r"[|\s:-]+", line):
            assert len(cells(line)) == len(HEAD), line
            found.append(Row(*cells(line)))
        else:
            assert inside, f"a table without the head {HEAD}: {line}"
    return found


def codes(cell):
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def code_of(row):
    """What a row names as its implementation."""
    return [] if ABSENT.match(row.implemented) else codes(row.implemented)


def is_judged(row):
    """Whether a study or a section judges it."""
    return bool(codes(row.judged) or LINK.search(row.judged))


@cache
def functions(file):
    tree = ast.parse(file.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def resolve(name):
    """Import a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


@cache
def anchors(page):
    """The headings of a page, as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_row_has_five_cells_and_says_what_is_missing():
    assert len(rows()) > 150
    for row in rows():
        assert all(row), row
        assert code_of(row) or ABSENT.match(row.implemented), row
        assert codes(row.tested) or ABSENT.match(row.tested), row
        assert is_judged(row) or row.judged == BY_TEST or ABSENT.match(row.judged), row
        # What is absent has nothing to name, and what a test judges names the test.
        assert not (is_judged(row) and ABSENT.match(row.judged)), row
        assert row.judged != BY_TEST or codes(row.tested), row
    elements = [row.element for row in rows()]
    assert len(set(elements)) == len(elements)


def test_everything_that_is_named_as_code_exists():
    for row in rows():
        for name in code_of(row):
            if "/" in name:
                assert (ROOT / name).exists(), name
            else:
                assert name.startswith("freewalk."), name
                resolve(name)
    for name in re.findall(r"`(freewalk\.[\w.]+)`", PAGE.read_text()):
        resolve(name)


def test_every_test_exists():
    for row in rows():
        for name in codes(row.tested):
            file, _, function = name.partition("::")
            assert file.startswith("tests/"), name
            assert (ROOT / file).is_file(), name
            assert function in functions(ROOT / file), name


def test_every_fact_of_this_file_is_on_the_page():
    tree = ast.parse(Path(__file__).read_text())
    names = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    facts = {name for name in names[: names.index("Row")] if name.startswith("test_")}
    cited = {name for row in rows() for name in codes(row.tested)}
    assert {f"tests/paper/{Path(__file__).name}::{fact}" for fact in facts} <= cited


def test_every_study_exists_and_none_is_left_out():
    named = [key for row in rows() for key in codes(row.judged)]
    assert set(named) == set(KEYS)


def test_every_link_leads_somewhere():
    links = LINK.findall(PAGE.read_text())
    assert links
    for file, anchor in links:
        assert "://" not in file, file
        target = (PAGE.parent / file).resolve() if file else PAGE
        assert target.is_file(), file
        assert not anchor or anchor in anchors(target), f"{file}#{anchor}"


def test_a_link_to_a_difference_has_the_number_of_its_section():
    links = re.findall(r"\[difference (\d+)\]\(paper-differences\.md#(\d+)-", PAGE.read_text())
    assert all(shown == number for shown, number in links)
    sections = re.findall(r"^## (\d+)\.", DIFFERENCES.read_text(), flags=re.MULTILINE)
    assert {number for row in rows() for number in re.findall(r"\[difference (\d+)\]", row.judged)} == set(sections)


def test_every_equation_figure_and_line_of_the_algorithm_has_a_row():
    elements = [row.element for row in rows()]
    equations = set()
    for element in elements:
        if found := re.match(r"\((\d+)\)(?: to \((\d+)\))?", element):
            equations |= set(range(int(found[1]), int(found[2] or found[1]) + 1))
    assert equations == set(range(1, 19))
    figures = {found[1] for one in elements if (found := re.match(r"Fig\. (\d(?:\([ab]\))?)", one))}
    assert figures == {"1", "2(a)", "2(b)", "3", "4(a)", "4(b)", "5(a)", "5(b)", "6"}
    listing = [one.partition(":")[0] for one in elements if one.startswith("Algorithm 1, ")]
    lines = {int(number) for one in listing if "line" in one for number in re.findall(r"\d+", one)[1:]}
    assert lines == set(range(1, 14))
    for name in (
        "Definition 1",
        "Theorem 1",
        "Lemma 1",
        "Lemma 2",
        "Remark 1",
        *(f"A, Assumption {k}" for k in (1, 2, 3)),
    ):
        assert any(one.startswith(name) for one in elements), name


def test_the_counts_are_those_of_the_tables():
    text = re.sub(r"\s+", " ", PAGE.read_text())
    middle = [row[1:4] for row in rows()]
    counts = {
        "rows": len(rows()),
        "name code": sum(bool(code_of(row)) for row in rows()),
        "name a test": sum(bool(codes(row.tested)) for row in rows()),
        "are judged by a study or a section": sum(is_judged(row) for row in rows()),
        "by their tests": sum(row.judged == BY_TEST for row in rows()),
        "have something that is not yet there": sum(any(cell.startswith("not yet") for cell in one) for one in middle),
        "have nothing in any of the three columns": sum(all(ABSENT.match(cell) for cell in one) for one in middle),
    }
    assert {what: re.findall(rf"\*\*(\d+)\*\* {what}", text) for what in counts} == {
        what: [str(count)] for what, count in counts.items()
    }

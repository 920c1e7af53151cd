"""A page is one file that holds everything, shows what it was given, and runs nothing that it was not."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray
from runs import learned

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.paper import STUDIES
from freewalk.paper.task import Curves
from freewalk.report import Chart, Page, Section, Series, Verdict, Walks, section_of, write_page
from freewalk.report.layout import layout, middle
from freewalk.report.page import Table
from freewalk.report.page.payload import MOST_NODES, MOST_POINTS, MOST_STEPS, OVERLAY, thin
from freewalk.report.page.places import MOST_EDGES, place, views
from freewalk.report.page.section import lead_of
from freewalk.report.summary import summary_of

HOSTILE = "</script><script>alert('x')</script> & \"quoted\" <!-- \u2028 @@data@@"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture(scope="module")
def both() -> fw.Record:
    records = [learned(fw.designs.Metropolis(power=1)), learned(fw.designs.MHLJ(0.5, 0.5, 3))]
    return fw.concat(records, ["MH importance", "MHLJ"])


def test_a_padded_record_shows_each_design_as_it_is_alone() -> None:
    runs = [learned(fw.designs.SimpleWalk(), paths=1), learned(fw.designs.Metropolis(power=1), walks=9, paths=0)]
    section = section_of(fw.concat(runs, ["a", "b"], pad=True))
    alone = [section_of(run) for run in runs]
    for series, one in zip(section.charts[0].series, alone, strict=True):
        expected = one.charts[0].series[0]
        assert series.note == ""
        assert series.y == pytest.approx(expected.y)
        assert series.low == pytest.approx(expected.low)
        assert series.x["messages"] == pytest.approx(expected.x["messages"])
    assert section.charts[0].note.startswith("Line: mean over 5 to 9 walks.")
    assert [row[1:4] for row in section.tables[0].rows] == [one.tables[0].rows[0][1:4] for one in alone]
    assert list(section.walks.paths) == ["a"]


class Parsed(HTMLParser):
    """What a browser would make of it: elements with their attributes, and all text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag in self.raw else ""

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        (self.raw[self.inside] if self.inside else self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self):
        return json.loads(self.raw["script"][0])


def parsed(page: Page, folder: Path) -> Parsed:
    return Parsed(write_page(page, folder / "page.html").read_text(encoding="utf-8"))


def test_one_file_that_needs_nothing_else(both: fw.Record, tmp_path: Path) -> None:
    section = section_of(both, graph=fw.graphs.ring(20))
    path = write_page(Page("A page", [section, section]), tmp_path / "new" / "page.html")
    text = path.read_text(encoding="utf-8")
    assert path == tmp_path / "new" / "page.html"
    assert list(path.parent.iterdir()) == [path]  # nothing is left of the writing
    assert not re.search(r"https?://|@import|url\((?!#)|//\w+\.\w+/", text)
    found = Parsed(text)
    for tag, attributes in found.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    (policy,) = [one["content"] for _, one in found.elements if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert {"base-uri 'none'", "form-action 'none'"} <= set(policy.split("; "))  # default-src does not cover them


def test_the_same_page_is_the_same_bytes(both: fw.Record, tmp_path: Path) -> None:
    pages = [Page("A page", [section_of(both, graph=fw.graphs.ring(20))]) for _ in range(2)]
    first, second = (write_page(page, tmp_path / f"{number}.html") for number, page in enumerate(pages))
    assert first.read_bytes() == second.read_bytes()


def test_any_text_is_text(tmp_path: Path) -> None:
    graph = fw.graphs.ring(4)
    series = [Series(HOSTILE, {HOSTILE: [0, 1]}, [1.0, 2.0], note=HOSTILE)]
    section = Section(
        title=HOSTILE,
        text=[HOSTILE],
        charts=[Chart(HOSTILE, series, HOSTILE, lines={HOSTILE: 1.0}, note=HOSTILE)],
        verdicts=[Verdict(HOSTILE, "pass", HOSTILE, HOSTILE, HOSTILE)],
        walks=Walks(graph, [0], np.ones(4), {HOSTILE: [0, 1, 2]}, {HOSTILE: [1, 1, 1, 0]}),
        images={HOSTILE: PNG},
        details={HOSTILE: HOSTILE},
        anchor=HOSTILE,
        tables=[Table([HOSTILE], [[HOSTILE]], HOSTILE)],
    )
    found = parsed(Page(HOSTILE, [section, section], [HOSTILE]), tmp_path)
    assert len(found.raw["script"]) == 2  # the data and the program: none came with a label
    assert found.data[0]["charts"][0]["series"][0]["label"] == HOSTILE
    assert found.data[0]["walks"]["designs"][0]["label"] == HOSTILE
    assert found.text.count("alert('x')") > 20
    anchors = [one["id"] for tag, one in found.elements if tag == "section"]
    assert len(set(anchors)) == 2
    assert all(re.fullmatch(r"[a-z0-9-]+", anchor) for anchor in anchors)
    assert [one["alt"] for tag, one in found.elements if tag == "img"] == [HOSTILE, HOSTILE]


def test_the_standard_section(both: fw.Record, tmp_path: Path) -> None:
    steps = both.data.step.values
    exact = xarray.Dataset(
        {"mse": (("design", "step"), np.ones((1, steps.size))), "messages": (("design", "step"), 0.5 * steps[None])},
        coords={"design": ["MHLJ"], "step": steps},
    )
    verdicts = [Verdict("MHLJ is faster", "pass", "3 ×", published="2.5 ×"), Verdict("It sings", "not testable", "—")]
    section = section_of(
        both,
        graph=fw.graphs.ring(20),
        exact=exact,
        published={"MHLJ": ([100, 0], [0.5, 1.0]), "another": ([0], [1.0])},
        verdicts=verdicts,
        text=["What was done."],
        title="A ring",
    )
    found = parsed(Page("A page", [section]), tmp_path)
    (chart,), walks = found.data[0]["charts"], found.data[0]["walks"]
    assert chart["axes"] == ["updates", "messages", "bytes"]
    assert [name for name, _ in chart["lines"]] == ["optimum"]
    assert [(one["label"], one["kind"]) for one in chart["series"]] == [
        ("MH importance", "mean"),
        ("MHLJ", "mean"),
        ("MHLJ", "exact"),
        ("MHLJ", "published"),
        ("another", "published"),
    ]
    mean, published = chart["series"][1], chart["series"][3]
    assert mean["y"] == pytest.approx(both.data.mse.sel(design="MHLJ").mean("walk").values, rel=1e-4)
    assert mean["x"]["messages"] == pytest.approx(both.data.messages.sel(design="MHLJ").mean("walk").values, rel=1e-4)
    assert all(low <= high for low, high in zip(mean["low"], mean["high"], strict=True))
    assert (published["x"], published["y"]) == ({"updates": [0, 100]}, [1, 0.5])
    assert len({one["colour"] for one in chart["series"] if one["label"] == "MHLJ"}) == 1
    assert chart["series"][0]["colour"] == walks["designs"][0]["colour"] != mean["colour"]
    for words in ("What was done.", "A ring", "MHLJ is faster", "pass", "not testable", "2.5 ×", "final mse"):
        assert words in found.text
    assert "seed" in found.text


def test_walks_are_those_of_the_record(both: fw.Record, tmp_path: Path) -> None:
    walks = parsed(Page("A page", [section_of(both, graph=fw.graphs.ring(20))]), tmp_path).data[0]["walks"]
    assert walks["heavy"] == [0, 1]
    for number, design in enumerate(walks["designs"]):
        path = np.frombuffer(base64.b64decode(design["path"]["data"]), dtype="<u2")
        assert path.tolist() == both.data.path.values[number, 0].tolist()
        visits = both.data.visits.values[number].sum(axis=0)
        shares = np.frombuffer(base64.b64decode(design["visits"]), dtype="<f4")
        assert shares == pytest.approx(visits / visits.sum(), rel=1e-6)


def test_a_record_of_one_design_without_paths_and_without_its_graph(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk(), walks=1, paths=0)
    found = parsed(Page("A page", [section_of(record)]), tmp_path)
    (series,) = found.data[0]["charts"][0]["series"]
    assert "low" not in series
    assert found.data[0]["walks"]["designs"][0]["path"] is None
    assert "paths = 5 under [run]" in found.text
    assert not [one for tag, one in found.elements if tag == "nav"]


def test_a_diverged_walk_ends_the_line_and_is_counted(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk(), step=50.0)
    (series,) = parsed(Page("A page", [section_of(record)]), tmp_path).data[0]["charts"][0]["series"]
    assert series["y"][-1] is None
    assert series["note"] == "5 of 5 diverged"


def test_an_interrupted_path_ends_where_it_ends(both: fw.Record, tmp_path: Path) -> None:
    cut = fw.Record(both.data.copy(), both.provenance)
    cut.data["path"] = cut.data.path.where((cut.data.time < 100) | (cut.data.design == "MHLJ"))
    walks = parsed(Page("A page", [section_of(cut)]), tmp_path).data[0]["walks"]
    assert [len(base64.b64decode(one["path"]["data"])) // 2 for one in walks["designs"]] == [100, 1001]


def test_long_curves_and_paths_are_cut_down(tmp_path: Path) -> None:
    count, graph = 100_000, fw.graphs.ring(2000)
    series = Series("long", {"updates": np.arange(count)}, np.linspace(1, 2, count), np.zeros(count), np.ones(count))
    walks = Walks(graph, [0, 1], np.ones(2000), {"long": np.arange(count) % 2000}, {"long": np.ones(2000)})
    path = write_page(
        Page("A page", [Section("One", charts=[Chart("A", [series], "y")], walks=walks)]), tmp_path / "p.html"
    )
    data = Parsed(path.read_text(encoding="utf-8")).data[0]
    kept = data["charts"][0]["series"][0]
    assert len(kept["y"]) == len(kept["low"]) == len(kept["x"]["updates"]) <= MOST_POINTS
    assert kept["x"]["updates"][-1] == count - 1
    assert (data["walks"]["steps"], data["walks"]["length"]) == (MOST_STEPS, count - 1)
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize("size", [1, 2, 399, 400, 401, 5000])
def test_thinning_keeps_both_ends_and_the_beginning(size: int) -> None:
    kept = thin(size)
    assert kept[0] == 0
    assert kept[-1] == size - 1
    assert len(kept) <= MOST_POINTS
    assert (np.diff(kept) > 0).all()
    assert set(range(min(size, 20))) <= set(kept.tolist())


def test_numbers_have_few_digits(tmp_path: Path) -> None:
    series = Series("a", {"updates": [0, 1, 2]}, [1 / 3, np.nan, np.inf])
    found = parsed(Page("A page", [Section("One", charts=[Chart("A", [series], "y")])]), tmp_path)
    assert found.data[0]["charts"][0]["series"][0]["y"] == [0.33333, None, None]


GRAPHS = {
    "ring": fw.graphs.ring(1000),
    "path": fw.graphs.path(300),
    "grid": fw.graphs.grid(25, 40),
    "star": fw.graphs.star(30),
    "small world": fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1),
    "dense": fw.graphs.erdos_renyi(1000, 0.1, seed=1),
    "sparse": fw.graphs.barabasi_albert(60, 2, seed=1),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph_has_a_place_for_every_node(name: str) -> None:
    graph = GRAPHS[name]
    found = place(graph, [0, 1], np.arange(graph.n, 0, -1.0))
    assert found.positions.shape == (graph.n, 2)
    assert np.abs(found.positions).max() <= 1 + 1e-9
    assert len(np.unique(found.positions.round(9), axis=0)) == graph.n
    assert found.circle == (name in ("ring", "path", "small world"))
    assert len(found.pairs) == (0 if name == "dense" else graph.edges)


def test_a_crowded_circle_is_magnified_near_the_heavy_nodes_and_says_so() -> None:
    found = place(fw.graphs.ring(1000), [0, 1], np.ones(1000))
    steps = np.linalg.norm(np.diff(found.positions[:502], axis=0), axis=1)
    assert steps[1] > 20 * steps[400]
    assert (np.diff(steps[1:501]) <= 1e-12).all()
    assert "magnified" in found.words
    assert "magnified" not in place(fw.graphs.ring(20), [0], np.ones(20)).words


def test_of_a_large_graph_the_nodes_that_matter_are_shown(tmp_path: Path) -> None:
    n = 30_000
    visits = np.zeros(n)
    visits[:10] = 5
    walks = Walks(fw.graphs.ring(n), [n - 1], np.ones(n), {"a": [0, 29_001]}, {"a": visits})
    data = parsed(Page("A page", [Section("One", walks=walks)]), tmp_path).data[0]["walks"]
    assert {0, 9, 29_001, n - 1} <= set(data["names"])
    assert data["nodes"] <= MOST_NODES
    assert "30,000" in data["words"]


def named(graph: fw.Graph, positions=None) -> fw.Graph:
    names = tuple(f"{HOSTILE} {number}" for number in range(graph.n))
    return fw.Graph(graph.indptr, graph.indices, "sites", names, positions)


def test_the_graph_of_a_record_is_drawn(both: fw.Record, tmp_path: Path) -> None:
    kept = fw.Record(both.data, both.provenance, graph=fw.graphs.ring(20))
    data = parsed(Page("A page", [section_of(kept)]), tmp_path).data[0]["walks"]
    assert len(base64.b64decode(data["edges"]["data"])) == 2 * 2 * 20
    assert data["circle"]
    given = parsed(Page("A page", [section_of(kept, graph=fw.graphs.grid(4, 5))]), tmp_path).data[0]["walks"]
    assert not given["circle"]  # what is given counts
    unknown = parsed(Page("A page", [section_of(fw.Record(both.data))]), tmp_path).data[0]["walks"]
    assert unknown["edges"]["data"] == ""
    assert "does not contain the graph" in unknown["words"]
    assert (given["drawing"], unknown["drawing"]) == (0, None)


def test_nodes_are_called_by_their_names(both: fw.Record, tmp_path: Path) -> None:
    kept = fw.Record(both.data, both.provenance, graph=named(fw.graphs.ring(20)))
    found = parsed(Page("A page", [section_of(kept)]), tmp_path)
    data = found.data[0]["walks"]
    assert data["named"]
    assert all(name.startswith(HOSTILE[:50]) and len(name) <= 60 for name in data["names"])
    assert len(found.raw["script"]) == 2
    assert "Heavy nodes: </script>" in found.text
    numbered = parsed(Page("A page", [section_of(kept, graph=fw.graphs.ring(20))]), tmp_path).data[0]["walks"]
    assert (numbered["named"], numbered["names"]) == (False, None)


def test_nodes_are_where_the_graph_says(tmp_path: Path) -> None:
    spots = np.array([[5e5, 4e6], [5e5 + 300, 4e6], [5e5 + 300, 4e6 + 150], [5e5, 4e6 + 150]])
    graph = named(fw.graphs.ring(4), spots)
    found = place(graph, [0], np.ones(4))
    assert found.positions == pytest.approx(np.array([[-1, -0.5], [1, -0.5], [1, 0.5], [-1, 0.5]]), abs=1e-6)
    assert (found.circle, len(found.pairs)) == (False, 4)
    shown = layout(graph, [0], np.ones(4))
    assert shown.positions == pytest.approx(found.positions)
    assert (shown.kind, shown.whole) == ("other", True)
    together = named(fw.graphs.ring(4), np.ones((4, 2)))  # all in one point: as if it said nothing
    assert place(together, [0], np.ones(4)).circle
    far = place(named(fw.graphs.ring(4), 1.7e308 * ((spots - spots[0]) / 150 - 1)), [0], np.ones(4))
    assert far.positions == pytest.approx(found.positions)


def test_of_a_large_graph_with_positions_the_part_that_matters_is_laid_out() -> None:
    ring = fw.graphs.ring(5000)
    turns = np.linspace(0, 2 * np.pi, 5000, endpoint=False)
    shown = layout(named(ring, np.column_stack([np.cos(turns), np.sin(turns)])), [7], np.ones(5000))
    assert not shown.whole
    assert 7 in shown.nodes
    assert shown.nodes.size == len(shown.positions) == 150


def test_a_page_names_its_band(both: fw.Record, tmp_path: Path) -> None:
    words = {"quantiles": "10 % to the 90 % quantile", "confidence": "95 % confidence interval of the mean."}
    bands = {}
    for band in ("quantiles", "confidence", "none"):
        found = parsed(Page("A page", [section_of(both, band=band)]), tmp_path)
        assert "Line: mean over 5 walks." in found.text
        assert words.get(band, "walks.") in found.text
        bands[band] = found.data[0]["charts"][0]["series"][0].get("low")
    assert bands["none"] is None
    assert bands["quantiles"] != bands["confidence"]


def test_a_page_says_what_the_record_says_about_diverged_walks(both: fw.Record, tmp_path: Path) -> None:
    blown = fw.Record(both.data.copy())
    blown.data["diverged"] = blown.data.diverged | (blown.data.walk < 2)  # all values are finite
    found = parsed(Page("A page", [section_of(blown)]), tmp_path)
    assert [one["note"] for one in found.data[0]["charts"][0]["series"]] == ["2 of 5 diverged"] * 2
    assert found.text.count("2 of 5 diverged") == 2


def test_a_fast_design_gets_a_log_axis(both: fw.Record, tmp_path: Path) -> None:
    for fast in (True, False):
        record = fw.Record(both.data.sel(design=["MHLJ"]).copy())
        halfway = 1 if fast else 10
        falling = np.where(np.arange(record.data.step.size) < halfway, 1.0, 1e-4)
        record.data["mse"] = record.data.mse * 0 + xarray.DataArray(falling, dims="step")
        record.data["step"] = record.data.step * np.where(np.arange(21) > 1, 2, 1)
        data = parsed(Page("A page", [section_of(record)]), tmp_path).data[0]
        assert data["charts"][0]["xLog"] is fast


def test_a_page_that_cannot_be_made_keeps_the_old_one(tmp_path: Path) -> None:
    page = Page("A page", [Section("One", charts=[Chart("A", [series()], "y")])])
    path = write_page(page, tmp_path / "page.html")
    before = path.read_bytes()
    page.sections[0].charts[0].series[0].x["updates"] = np.array(["broken", "since"])
    with pytest.raises(ValueError, match="broken"):
        write_page(page, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_claim_shows_whose_sentence_it_tests_in_how_many_settings_and_why(tmp_path: Path) -> None:
    verdicts = [
        Verdict("at most half", "depends", "holds: 0.3", "it varies", "0.2", quote="<fast>", share="14 of 60 settings"),
        Verdict("another test", "pass", "1"),
    ]
    found = parsed(Page("A page", [Section("Part", verdicts=verdicts)]), tmp_path)
    assert "<fast> at most half it varies ± depends 14 of 60 settings holds: 0.3 0.2" in found.text
    assert "Claim Verdict Holds in Measured Printed" in found.text
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<q class="said">&lt;fast&gt;</q>' in content
    assert content.count('class="said"') == content.count('class="why"') == 1


def test_no_line_breaks_inside_a_number_or_short_brackets(tmp_path: Path) -> None:
    verdict = Verdict("a claim", "pass", "0.159 × (1,436 against 9,018) <b>")
    page = write_page(Page("A page", [Section("Part", verdicts=[verdict])]), tmp_path / "page.html")
    first, second = (f'<span class="unbroken">{words}</span>' for words in ("0.159 ×", "(1,436 against 9,018)"))
    assert f"{first} {second} &lt;b&gt;" in page.read_text(encoding="utf-8")


def test_the_middle_of_nodes_that_lie_across_the_first() -> None:
    assert [middle(np.arange(10), nodes) for nodes in ([9, 0, 1], [4, 5], [])] == [0, 4, 0]


def test_several_sections_are_linked_and_counted(tmp_path: Path) -> None:
    outcomes = (["pass", "pass", "fail"], ["not testable"], [])
    sections = [
        Section(f"Part {number}", verdicts=[Verdict("A claim", outcome, "1") for outcome in part])
        for number, part in enumerate(outcomes)
    ]
    found = parsed(Page("A page", sections), tmp_path)
    links = [one["href"] for tag, one in found.elements if tag == "a"]
    anchors = [f"#{one['id']}" for tag, one in found.elements if tag == "section"]
    assert links == anchors * 2  # the bar, and the table
    assert "Of 4 claims, 2 pass, 1 fails and 1 cannot be tested." in found.text
    assert "Part 0 ✓ 2 pass ✗ 1 fail Part 1 – 1 not testable Part 2 no claims" in found.text


def test_the_verdicts_of_a_figure_are_one_row(tmp_path: Path) -> None:
    parts = {("A", "stated"): ["pass", "fail"], ("B", "own"): ["depends"], ("A", "published"): ["pass", "pass"]}
    sections = [
        Section(f"{group} ({variant})", verdicts=[Verdict("c", one, "1") for one in part], group=group, variant=variant)
        for (group, variant), part in parts.items()
    ]
    found = parsed(Page("A page", sections, ["An introduction."]), tmp_path)
    assert "Of 5 claims, 3 pass, 1 depends on the setting and 1 fails." in found.text
    assert "Passed by variant: 1 of 2 (stated), 0 of 1 (own), 2 of 2 (published)." in found.text
    assert found.text.index("Of 5 claims") < found.text.index("An introduction.") < found.text.index("Verdicts")
    assert "section stated published own A ✓ 1 pass ✗ 1 fail ✓ 2 pass B ± 1 depends" in found.text
    labels = [one["aria-label"] for tag, one in found.elements if one.get("class") == "chips"]
    assert labels == ["A (stated): 1 pass, 1 fail", "A (published): 2 pass", "B (own): 1 depends"]
    rows = [one for tag, one in found.elements if tag == "th" and one.get("scope") == "row"]
    assert len(rows) == 2 + 5  # one per group, one per claim


def test_seeds_versions_and_hashes_are_collapsed(tmp_path: Path) -> None:
    found = parsed(Page("A page", [Section("One", details={"SHA-256 of the spec": "d25c"})]), tmp_path)
    inside = [tag for tag, _ in found.elements]
    assert inside.index("details") < inside.index("summary") < inside.index("table")
    assert all("open" not in one for tag, one in found.elements if tag == "details")
    assert found.text.index("Origin of these numbers") < found.text.index("d25c")


def test_tables_are_named_regions_that_the_keyboard_reaches(both: fw.Record, tmp_path: Path) -> None:
    found = parsed(Page("A page", [section_of(both)]), tmp_path)
    regions = [one for _, one in found.elements if one.get("class") == "scroll"]
    assert [one["aria-label"].split(",")[0] for one in regions] == ["Table: design", "Table: Origin of these numbers"]
    assert all((one["role"], one["tabindex"]) == ("region", "0") for one in regions)


def test_the_lead_says_what_was_run_and_who_was_first(both: fw.Record, tmp_path: Path) -> None:
    record = fw.concat([learned(fw.designs.SimpleWalk(), step=step) for step in (0.02, 0.01)], ["fast", "slow"])
    values = 1 + 999 * np.exp(-np.outer([0.1, 0.05], record.data.step.values / 10))
    record.data["mse"] = record.data.mse * 0 + xarray.DataArray(values, dims=("design", "step"))
    record.data.attrs["optimal_mse"] = 1.0
    kept = fw.Record(record.data, record.provenance, graph=fw.graphs.ring(20))
    assert lead_of(summary_of(kept)) == (
        "Per design, 5 walks of 1,000 updates on a ring of 20 nodes, 2 of them heavy; least squares (20 samples, 2 "
        "parameters). “fast” reached the goal (mean mse ≤ 10.99) first, after 500 updates. “slow”, next, needed 1.9 "
        "times as many (950)."
    )
    assert lead_of(summary_of(kept)) in parsed(Page("A page", [section_of(kept)]), tmp_path).text
    central = fw.Record(kept.data.assign_coords(design=["centralized", "slow"]), kept.provenance, graph=kept.graph)
    assert "“slow” reached the goal (mean mse ≤ 10.99) first of the walks on the graph" in lead_of(summary_of(central))
    assert "“centralized”, which can draw any node at every update, needed 500." in lead_of(summary_of(central))
    unreachable = lead_of(summary_of(kept, goal=1e-30))
    assert "No design reached the goal (mean mse ≤ 1)." in unreachable
    alone = lead_of(summary_of(learned(fw.designs.SimpleWalk(), walks=1, paths=1), goal=1.0))
    assert alone.startswith("1 walk of 1,000 updates on a")
    assert "It reached the goal" in alone


def test_a_curve_on_top_of_another_is_dashed(tmp_path: Path) -> None:
    x = np.arange(1, 101)
    shapes = {"a": 1 / x, "b": 1 / x, "c": 1 / x**0.5, "tail": np.where(x < 50, 1 / x**0.5, 1 / x)}
    curves = [Series(label, {"updates": x}, y) for label, y in shapes.items()]
    (chart,) = parsed(Page("A page", [Section("One", charts=[Chart("A", curves, "y")])]), tmp_path).data[0]["charts"]
    assert chart["covers"] == [["b", "a"]]
    assert [one["dash"] for one in chart["series"]][:3] == ["", OVERLAY, ""]
    apart = Chart("A", [curves[0], curves[2]], "y")
    (chart,) = parsed(Page("A page", [Section("One", charts=[apart])]), tmp_path).data[0]["charts"]
    assert "covers" not in chart


def test_the_animation_shows_a_walk_that_meets_a_heavy_node(both: fw.Record) -> None:
    data = both.data.copy(deep=True)
    data["path"] = data.path.copy()
    data.path.values[:, 0] = 7  # the first stored walk stays away from the heavy nodes 0 and 1
    section = section_of(fw.Record(data))
    assert all(np.isin(path, [0, 1]).any() for path in section.walks.paths.values())
    assert "visits a heavy node" in section.walks.note
    data.path.values[:] = 7
    missing = section_of(fw.Record(data)).walks
    assert all((path == 7).all() for path in missing.paths.values())
    assert missing.note == "The first stored walk of each design."


@pytest.mark.parametrize(
    ("name", "names", "drawn"),
    [
        ("ring", ["magnified", "true distances"], True),
        ("path", ["magnified", "true distances"], True),
        ("grid", ["graph"], True),
        ("small world", ["magnified", "true distances", "graph"], True),
        ("dense", ["spiral"], False),
        ("sparse", ["graph"], True),
    ],
)
def test_a_graph_has_an_undistorted_view(name: str, names: list[str], drawn: bool) -> None:
    graph = GRAPHS[name]
    found = views(graph, [0, 1], np.arange(graph.n, 0, -1.0))
    assert [one.name for one in found] == names
    assert [one.true for one in found] == [False] * (len(found) - 1) + [drawn]
    for one in found:
        assert one.positions.shape == (graph.n, 2)
        assert np.abs(one.positions).max() <= 1 + 1e-9
        assert len(np.unique(one.positions.round(9), axis=0)) == graph.n


def test_true_distances_are_even_and_forces_bring_neighbours_together() -> None:
    ring = views(fw.graphs.ring(1000), [0, 1], np.ones(1000))[1]
    steps = np.linalg.norm(np.diff(ring.positions, axis=0), axis=1)
    assert steps == pytest.approx(np.full(999, steps[0]))
    graph = GRAPHS["small world"]
    drawing = views(graph, [0], np.ones(1000))[-1]
    lengths = np.linalg.norm(np.subtract(*drawing.positions[drawing.pairs.T]), axis=1)
    assert np.median(lengths) < 0.1  # of a picture that is 2 wide
    many = fw.graphs.erdos_renyi(800, 0.04, seed=1)
    part = views(many, [0], np.ones(800))[-1]
    assert len(part.pairs) <= MOST_EDGES < many.edges
    assert f"of the {many.edges:,} edges are drawn" in part.words


def test_images_are_part_of_the_page(tmp_path: Path) -> None:
    svg = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>'
    found = parsed(Page("A page", [Section("One", images={"a": PNG, "b": svg})]), tmp_path)
    sources = [one["src"] for tag, one in found.elements if tag == "img"]
    assert [source.split(";")[0] for source in sources] == ["data:image/png", "data:image/svg+xml"]
    assert base64.b64decode(sources[1].split(",")[1]) == svg


def series(**changes):
    return Series(**({"label": "a", "x": {"updates": [0, 1]}, "y": [1.0, 2.0]} | changes))


def walks(**changes):
    parts = {
        "graph": fw.graphs.ring(4),
        "heavy": [0],
        "importance": np.ones(4),
        "paths": {},
        "visits": {"a": np.ones(4)},
    }
    return Walks(**(parts | changes))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda both: series(kind="guess"), ["Series 'a'", "'guess'", "'published'"]),
        (lambda both: series(x={}), ["Series 'a'", "x = {}", "updates"]),
        (lambda both: series(x={"updates": [0]}), ["x['updates']", "shape (1,)", "expected (2,)"]),
        (lambda both: series(x={"updates": [1, 0]}), ["x['updates'] = [1, 0]", "ascending", "sort"]),
        (lambda both: series(x={"updates": [0, np.nan]}), ["nan", "finite"]),
        (lambda both: series(y="none"), ["Series 'a'", "numbers"]),
        (lambda both: series(low=[0, 0]), ["band", "low and high"]),
        (lambda both: series(colour="red;}"), ["colour", "#0072B2"]),
        (lambda both: Chart("c", [], "y"), ["Chart 'c'", "series = []", "at least one Series"]),
        (lambda both: Chart("c", [1], "y"), ["Chart 'c'", "an item of series = 1", "Series"]),
        (lambda both: Chart("c", [series()], "y", lines={"top": np.inf}), ["lines['top']", "inf"]),
        (lambda both: Verdict("it holds", "maybe", "1"), ["it holds", "'maybe'", "'not testable'"]),
        (lambda both: Table(["a", "b"], [["1"]]), ["Table", "a row = ['1']", "expected 2"]),
        (lambda both: walks(heavy=[4]), ["Walks", "holds 4", "0 to 3"]),
        (lambda both: walks(paths={"a": [0, 0.5]}), ["paths['a']", "float64", "whole numbers"]),
        (lambda both: walks(visits={}), ["visits = {}", "at least one design"]),
        (lambda both: walks(visits={"a": [1, 2]}), ["visits['a']", "(2,)", "expected (4,)"]),
        (lambda both: walks(importance=[1]), ["importance", "(1,)", "expected (4,)"]),
        (lambda both: Section("s", text="one text"), ["Section 's'", "text = 'one text'", "a list of text"]),
        (lambda both: Section("s", images={"a": b"GIF89a"}), ["images['a']", "PNG or SVG"]),
        (lambda both: Page("p", []), ["Page 'p'", "sections = []", "Section"]),
        (lambda both: section_of("run.npz"), ["record = 'run.npz'", "Record", "fw.load"]),
        (lambda both: section_of(both, graph=fw.graphs.ring(5)), ["5 nodes", "expected 20"]),
        (lambda both: section_of(both, exact=both.data.mse.isel(design=0, walk=0).to_dataset()), ["'design'"]),
        (lambda both: section_of(both, exact=both.data.isel(walk=0).assign_coords(design=["x", "y"])), ["['x', 'y']"]),
        (
            lambda both: section_of(both, exact=both.data[["loss"]].isel(walk=0)),
            ["'loss'", "expected 'step' and 'mse'"],
        ),
        (lambda both: section_of(both, published={"a": [1, 2, 3]}), ["published['a']", "updates and values"]),
        (lambda both: section_of(both, published={"a": ([0, 1], [1])}), ["published['a']", "updates and values"]),
        (lambda both: section_of(fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)), steps=10)), ["fw.learn"]),
        (lambda both: write_page(Page("p", [Section("s")]), "page.txt"), ["write_page", "page.txt", ".html"]),
        (lambda both: write_page(Section("s"), "page.html"), ["write_page", "Section", "Page"]),
    ],
)
def test_bad_input_says_what_to_do(both: fw.Record, make, words) -> None:
    with pytest.raises(RecordError) as caught:
        make(both)
    for word in words:
        assert word in str(caught.value)


def test_a_page_of_the_size_of_the_demo_is_small(tmp_path: Path) -> None:
    graph, rng = fw.graphs.ring(1000), np.random.default_rng(1)
    labels, steps = [f"design {number}" for number in range(6)], np.arange(0, 40_001, 200)
    curves = [
        Series(one, {"updates": steps, "messages": steps * 0.83}, *(rng.random((3, steps.size)) * 0.1))
        for one in labels
    ]
    paths = {one: rng.integers(0, 1000, 40_001) for one in labels}
    section = Section("A ring", charts=[Chart("Curves", curves, "mse")], walks=Walks(
        graph, [0, 1], rng.random(1000), paths, {one: rng.integers(1, 99_999, 1000) for one in labels}
    ))  # fmt: skip
    assert write_page(Page("A page", [section]), tmp_path / "page.html").stat().st_size < 500_000


def test_the_animation_of_a_study_begins_at_a_heavy_node_if_its_walks_do_not_reach_one(tmp_path: Path) -> None:
    task = Curves(STUDIES["3"], "stated", tmp_path)
    kernel = next(iter(task.plan.walks.values()))[0].kernel
    importance = np.asarray(task.plan.problem.smoothness)
    heavy = np.argsort(-importance)[:4]
    away = int(np.argmin(importance))
    stored = Walks(kernel.graph, heavy, importance, {label: [away] for label in task.plan.walks}, {"a": np.ones(1000)})
    shown = task._animated(stored)
    assert list(shown.paths) == list(task.plan.walks)
    assert {int(path[0]) for path in shown.paths.values()} == {int(importance.argmax())}
    assert all(len(path) == MOST_STEPS + 1 for path in shown.paths.values())
    assert f"started at node {importance.argmax()}" in shown.note
    there = Walks(kernel.graph, heavy, importance, {"a": [away, int(heavy[0])]}, {"a": np.ones(1000)})
    assert task._animated(there) is there

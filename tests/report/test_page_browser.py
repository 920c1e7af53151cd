"""The page in a real browser: it draws, it listens, it moves, it asks for nothing, and it fits a telephone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.report import Chart, Page, Section, Series, Verdict, Walks, section_of, write_page
from freewalk.report.page import Table
from freewalk.report.page.model import OUTCOMES

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DESIGNS = {
    "MH uniform": fw.designs.Metropolis(power=0),
    "MH importance": fw.designs.Metropolis(power=1),
    "MHLJ": fw.designs.MHLJ(0.5, 0.5, 3),
}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """One browser for all tests here, with a profile of its own that is thrown away."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for path in map(shutil.which, names) if path), None)
    if program is None:
        pytest.skip(f"there is no browser: none of {', '.join(names)} is installed")
    with driver.sync_playwright() as playing:
        started = playing.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Path:
    """A small run with exact and published curves, claims and paths."""
    graph = fw.graphs.ring(80)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernels = {label: design.kernel(graph, problem.smoothness) for label, design in DESIGNS.items()}
    settings = {"steps": 2000, "every": 50, "start": 0}
    rule = fw.SGD(step=1e-3)
    records = [fw.learn(problem, one, rule, walks=5, paths=1, seed=3, **settings) for one in kernels.values()]
    both = fw.concat(records, list(DESIGNS))
    exact = fw.analysis.exact_curve(problem, kernels["MHLJ"], rule, **settings).expand_dims(design=["MHLJ"])
    section = section_of(
        both,
        graph=graph,
        exact=exact,
        published={"MHLJ": ([0, 1000, 2000], [1.0, 0.1, 0.05])},
        verdicts=[Verdict("A claim that takes more than one line on a telephone", "pass", "1,234", "Why", "1,200")],
        title="A title of several words that has to fit on a telephone",
    )
    folder = tmp_path_factory.mktemp("page")
    return write_page(Page("A page", [section]), folder / "page.html")


class Visit:
    """A page in a browser that is cut off from the network, and what it complained about or asked for."""

    def __init__(self, browser, path: Path, **options) -> None:
        settings = {"viewport": {"width": 1280, "height": 900}, "offline": True, "reduced_motion": "reduce"}
        self.context = browser.new_context(**(settings | options))
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=true]", state="attached")
        self.address = path.as_uri()

    def leave(self) -> None:
        complaints, requests = list(self.complaints), list(self.requests)
        self.context.close()
        assert complaints == []
        assert requests == [self.address]

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for something; the page forbids the scripts with which playwright itself would."""
        for _ in range(200):
            if true():
                return
            self.page.wait_for_timeout(10)
        raise AssertionError("it did not happen within two seconds")

    def plot(self, number: int = 0) -> str:
        return self.page.locator("figure.chart .stage svg").nth(number).inner_html()

    def curves(self) -> list[tuple[str, str]]:
        script = "all => all.map(one => [one.dataset.label, one.dataset.kind])"
        return [tuple(one) for one in self.page.locator("figure.chart .stage path.curve").evaluate_all(script)]

    def press(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def walk(self, name: str) -> int:
        return int(self.page.locator("figure.walk").first.get_attribute(f"data-{name}"))

    def colours(self, canvas: str) -> int:
        """How many colours a canvas shows."""
        script = """canvas => {
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        }"""
        return self.page.locator(canvas).first.evaluate(script)


@pytest.fixture
def visit(browser, example: Path) -> Iterator[Visit]:
    opened = Visit(browser, example)
    yield opened
    opened.leave()


def test_buttons_of_the_legend_show_and_hide(visit: Visit) -> None:
    everything = visit.curves()
    assert set(everything) == {(label, "mean") for label in DESIGNS} | {("MHLJ", "exact"), ("MHLJ", "published")}
    button = visit.page.locator("figure.chart button[data-design='MHLJ']")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert set(visit.curves()) == {("MH uniform", "mean"), ("MH importance", "mean")}
    button.press("Enter")  # as well by keyboard
    assert visit.curves() == everything
    visit.press("figure.chart button[data-kind='mean']")
    assert set(visit.curves()) == {("MHLJ", "exact"), ("MHLJ", "published")}
    visit.press("figure.chart button[data-kind='exact']")
    visit.press("figure.chart button[data-kind='published']")
    assert visit.curves() == []


def test_axes_switch(visit: Visit) -> None:
    before = visit.plot()
    visit.press("figure.chart button[data-choice='messages']")
    assert visit.page.locator("figure.chart").get_attribute("data-axis") == "messages"
    assert ("MHLJ", "published") not in visit.curves()
    assert "MHLJ (printed)" in visit.page.locator("figure.chart .absent").inner_text()
    visit.press("figure.chart button[data-choice='updates']")
    assert visit.plot() == before
    assert visit.page.locator("figure.chart .absent").inner_text() == ""
    seen = {before}
    for axis, scales in (("horizontal", ("log", "linear")), ("vertical", ("linear", "log"))):
        for scale in scales:
            visit.press(f"[aria-label='Scale of the {axis} axis'] button[data-choice='{scale}']")
            seen.add(visit.plot())
    assert len(seen) == 3  # both linear, x log, y linear; the last is the first again


def test_any_axis_can_be_chosen_and_what_rises_is_shown_whole(browser, tmp_path: Path) -> None:
    axes = {"updates": [0, 50, 100], "bytes": [0, 8e5, 2e6], "time (s)": [0, 0.25, 0.75]}
    chart = Chart("Accuracy", [Series("a", axes, [0.02, 0.7, 0.9])], "accuracy", y_log=False)
    visit = Visit(browser, write_page(Page("p", [Section("s", charts=[chart])]), tmp_path / "page.html"))
    assert ">0.8<" in visit.plot()  # 45 times its start is no explosion
    drawn = visit.page.locator("figure.chart .stage svg")
    for axis, words in (("updates", "updates 50:"), ("bytes", "bytes 800,000:"), ("time (s)", "time (s) 0.25:")):
        visit.press(f"figure.chart button[data-choice='{axis}']")
        assert f">{axis}<" in visit.plot()
        drawn.focus()
        drawn.press("Home")
        drawn.press("ArrowRight")
        assert drawn.get_attribute("aria-valuetext").startswith(words)
    assert drawn.get_attribute("aria-valuenow") == "0.25"
    assert drawn.get_attribute("aria-valuemax") == "0.75"
    visit.leave()


def test_a_cursor_reads_values(visit: Visit) -> None:
    chart, readout = visit.page.locator("figure.chart .stage svg"), visit.page.locator("figure.chart .readout")
    chart.hover(position={"x": 500, "y": 150})
    assert readout.locator("tr").count() == 1 + 3  # a heading, and a row a design
    assert readout.locator("th").all_inner_texts() == ["", "", "mean", "exact", "printed"]
    assert "updates" in readout.inner_text()
    visit.page.mouse.move(0, 0)
    assert readout.locator("tr").count() == 0
    chart.focus()
    chart.press("Home")
    first = chart.get_attribute("aria-valuetext")
    chart.press("ArrowRight")
    assert first.startswith("updates 0:")
    assert chart.get_attribute("aria-valuetext").startswith("updates 50:")
    assert "MH importance" in first


def test_the_walk_moves_and_stops(visit: Visit) -> None:
    assert visit.page.locator("figure.walk").get_attribute("data-playing") == "false"
    assert visit.walk("step") == 0
    assert visit.page.locator("figure.walk input[type=range]").input_value() == "0"
    assert visit.page.locator("figure.walk .panel").count() == 3
    assert visit.colours("figure.walk canvas") > 5
    visit.press("figure.walk button[data-action='play']")
    visit.until(lambda: 0 < visit.walk("step") < 2000)
    early = visit.walk("step")
    visit.until(lambda: visit.walk("step") > early)
    visit.press("figure.walk button[data-action='play']")
    stopped = visit.walk("step")
    visit.page.wait_for_timeout(150)
    assert visit.walk("step") == stopped > early
    visit.press("figure.walk button[data-action='restart']")
    assert visit.walk("step") == 0
    visit.press("figure.walk button[data-action='forward']")
    visit.press("figure.walk button[data-action='forward']")
    visit.press("figure.walk button[data-action='back']")
    assert visit.walk("step") == 1


def test_the_slider_sets_the_time_and_the_counters_follow(visit: Visit) -> None:
    slider = visit.page.locator("figure.walk input[type=range]")
    distinct = {}
    for step in (1500, 300):  # also back
        slider.evaluate("(one, step) => { one.value = step; one.dispatchEvent(new Event('input')); }", step)
        assert visit.walk("step") == step
        panels = visit.page.locator("figure.walk .panel")
        distinct[step] = [int(value) for value in panels.evaluate_all("all => all.map(one => one.dataset.distinct)")]
    assert all(early <= late for early, late in zip(distinct[300], distinct[1500], strict=True))
    assert distinct[300] != distinct[1500]
    slider.press("ArrowRight")
    assert visit.walk("step") == 301


def test_panels_are_chosen(visit: Visit) -> None:
    visit.press("figure.walk button[data-design='MH uniform']")
    visit.press("figure.walk button[data-design='MHLJ']")
    visit.press("figure.walk button[data-design='MH importance']")  # the last one stays
    shown = visit.page.locator("figure.walk .panel").evaluate_all("all => all.map(one => one.dataset.design)")
    assert shown == ["MH importance"]


def test_the_map_of_visits_tells_about_a_node(visit: Visit) -> None:
    canvas = visit.page.locator("figure.visits canvas")
    assert canvas.count() == 3
    assert visit.colours("figure.visits canvas") > 5
    box = canvas.first.bounding_box()
    canvas.first.hover(position={"x": box["width"] / 2, "y": 12})
    told = visit.page.locator("figure.visits .told").inner_text()
    assert "MH uniform, node" in told
    assert "% of the visits" in told


def test_nodes_are_read_by_their_names(browser, tmp_path: Path) -> None:
    hostile = "<b onclick=alert(1)>"
    names = ("Medici", "Pazzi", hostile, "x" * 200)
    star = fw.graphs.star(4)
    # In the middle, and around it.
    spots = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    graph = fw.Graph(star.indptr, star.indices, "florence", names, spots)
    visits, paths = {"a": [4, 3, 2, 1]}, {"a": [0, 1, 0, 2]}
    images = []
    for wanted in (graph, fw.Graph(star.indptr, star.indices, "florence", positions=spots)):
        section = Section("s", walks=Walks(wanted, [0], np.ones(4), paths, visits))
        visit = Visit(browser, write_page(Page("p", [section]), tmp_path / "page.html"))
        canvas = visit.page.locator("figure.visits canvas")
        box = canvas.bounding_box()
        canvas.hover(position={"x": box["width"] / 2, "y": box["height"] / 2})
        told = visit.page.locator("figure.visits .told").inner_text()
        assert told.startswith("a, Medici (heavy): 40 %" if wanted.node_names else "a, node 0 (heavy): 40 %")
        images.append(visit.colours("figure.walk canvas"))
        assert visit.page.locator("figure b").count() == 0
        visit.leave()
    assert images[0] > images[1]  # letters have soft edges


def fits(visit: Visit) -> bool:
    return visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_telephone_in_the_dark(browser, example: Path) -> None:
    visit = Visit(browser, example, viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    assert fits(visit)
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 27)"
    assert visit.colours("figure.walk canvas") > 5
    visit.page.locator("figure.chart .stage svg").tap(position={"x": 180, "y": 120})
    assert visit.page.locator("figure.chart .readout tr").count() == 1 + 3
    assert fits(visit)
    dark = visit.page.locator("figure.visits canvas").first.evaluate("one => one.toDataURL()")
    visit.page.emulate_media(color_scheme="light")
    visit.page.wait_for_timeout(50)
    assert visit.page.locator("figure.visits canvas").first.evaluate("one => one.toDataURL()") != dark
    visit.page.set_viewport_size({"width": 900, "height": 700})
    visit.until(lambda: visit.page.evaluate("document.querySelector('.stage svg').clientWidth > 700"))
    visit.leave()


def test_many_sections_of_hostile_and_broken_content(browser, tmp_path: Path) -> None:
    hostile = (
        "</script><img src=x onerror=alert(1)> & \"quoted\" 'label' with-a-very-long-word-that-never-ends-" + "x" * 80
    )
    rng = np.random.default_rng(1)
    graphs = [
        fw.graphs.grid(6, 9),
        fw.graphs.star(8),
        fw.graphs.erdos_renyi(400, 0.1, seed=1),
        fw.graphs.path(100),
        None,
    ]
    sections = []
    for graph in graphs:
        n = 50 if graph is None else graph.n
        curves = [
            Series(hostile, {"updates": [0, 1, 2, 3]}, [1.0, np.nan, -2.0, np.inf], note="2 of 3 diverged"),
            Series("one point", {"messages": [0.0]}, [0.0], kind="other", colour="#123456"),
            Series("huge", {"updates": [0, 1e12]}, [1e-300, 1e300], [1e-300, 1e-300], [1e300, 1e300], kind="exact"),
        ]
        chart = Chart(hostile, curves, hostile, lines={hostile: 1.0, "zero": 0.0})
        walks = Walks(graph, [0], rng.random(n), {hostile: [0, 1, 1, 0]}, {hostile: np.arange(n), "b": np.zeros(n)})
        verdicts = [Verdict(hostile, "fail", hostile, hostile)]
        sections.append(Section(hostile, [hostile], [chart], verdicts, walks, details={hostile: hostile}))
    path = write_page(Page(hostile, sections, [hostile]), tmp_path / "many.html")
    visit = Visit(browser, path, viewport={"width": 360, "height": 740})
    assert visit.page.locator("nav a").count() == len(sections)
    assert visit.page.locator("figure.chart .stage svg").count() == len(sections)
    assert visit.page.locator("img").count() == 0
    assert fits(visit)
    for scale in ("linear", "log"):
        visit.press(f"[aria-label='Scale of the vertical axis'] button[data-choice='{scale}']")
        assert "NaN" not in visit.plot()
    visit.press("figure.chart button[data-choice='messages']")
    assert "NaN" not in visit.plot()
    visit.press("nav li:last-child a")
    visit.until(lambda: visit.page.evaluate("scrollY > 1000"))
    visit.leave()


def test_of_two_curves_that_coincide_both_are_visible(browser, tmp_path: Path) -> None:
    x = np.arange(0, 101)
    curves = [Series(label, {"updates": x}, 1 / (1 + x)) for label in ("below", "on top")]
    chart = Chart("Two", curves, "mse", x_log=False)
    visit = Visit(browser, write_page(Page("p", [Section("s", charts=[chart])]), tmp_path / "page.html"))
    lines = visit.page.locator("figure.chart .stage path.curve")
    dashes = lines.evaluate_all("all => all.map(one => one.getAttribute('stroke-dasharray'))")
    assert dashes == [None, "9 9"]
    assert "“on top” coincides with “below”" in visit.page.locator("figure.chart .covers").inner_text()
    visit.leave()


def test_curves_differ_in_more_than_their_colour(visit: Visit) -> None:
    script = "all => all.map(one => one.querySelector('.marker').getAttribute('d'))"
    shapes = visit.page.locator("figure.chart .stage [data-markers]").evaluate_all(script)
    assert len(set(shapes)) == len(DESIGNS)
    legend = visit.page.locator("figure.chart .designs .swatch").evaluate_all(script)
    assert legend == shapes


MARKED = """all => all.map(one => {
    const found = one.querySelectorAll("[data-markers] path");
    const points = [...one.querySelectorAll("path.curve")].flatMap(curve => curve.getAttribute("d").split(/[ML]/));
    const places = [...found].map(mark => mark.getAttribute("transform").replace(/translate\\((.*)\\)/, "$1"));
    return { places, strays: places.filter(place => !points.includes(place)) };
})"""


def test_markers_stand_where_something_was_measured(visit: Visit) -> None:
    for scale in ("linear", "log"):
        visit.press(f"[aria-label='Scale of the horizontal axis'] button[data-choice='{scale}']")
        (found,) = visit.page.locator("figure.chart .stage").evaluate_all(MARKED)
        assert found["strays"] == []
        assert len(found["places"]) > 4 * len(DESIGNS)


@pytest.mark.parametrize("count", [1, 2, 5, 14])
def test_every_point_of_a_sweep_has_its_marker(browser, tmp_path: Path, count: int) -> None:
    where = np.geomspace(0.01, 0.9, count)
    series = [Series(label, {"jump": where}, np.geomspace(1, 1000, count) * (1 + k)) for k, label in enumerate(DESIGNS)]
    chart = Chart("c", series, "mse")
    path = write_page(Page("p", [Section("s", charts=[chart])]), tmp_path / "page.html")
    visit = Visit(browser, path)
    (found,) = visit.page.locator("figure.chart .stage").evaluate_all(MARKED)
    assert len(found["places"]) == count * len(DESIGNS)
    assert found["strays"] == [] or count == 1  # a single point is no line
    visit.leave()


def ticks(visit: Visit, anchor: str) -> list[str]:
    labels = visit.page.locator(f"figure.chart .stage .axes text[text-anchor={anchor}]:not(.name)")
    return labels.evaluate_all("all => all.map(one => one.textContent)")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("low", "high", "end"),
    [(0.34, 0.69, 15_000), (0.02, 3.1, 0.9), (9e-4, 0.021, 8_000), (1.0, 40_000.0, 60_000), (0.9, 1.1, 7)],
)
def test_ticks_fit_the_range(browser, tmp_path: Path, width: int, low: float, high: float, end: float) -> None:
    series = Series("a", {"updates": np.linspace(0, end, 50)}, np.geomspace(high, low, 50))
    chart = Chart("c", [series], "mse", lines={"optimum": low / 1000})
    path = write_page(Page("p", [Section("s", charts=[chart])]), tmp_path / "page.html")
    visit = Visit(browser, path, viewport={"width": width, "height": 800})
    frame = visit.page.locator("figure.chart clipPath rect")
    curve = visit.page.locator("figure.chart .stage path.curve").evaluate("one => one.getBBox().height")
    assert curve > 0.6 * float(frame.get_attribute("height"))  # the optimum far below does not leave decades empty
    assert "optimum" in visit.page.locator("figure.chart .absent").inner_text()
    for vertical in ("log", "linear"):
        visit.press(f"[aria-label='Scale of the vertical axis'] button[data-choice='{vertical}']")
        for horizontal in ("log", "linear"):
            visit.press(f"[aria-label='Scale of the horizontal axis'] button[data-choice='{horizontal}']")
            for anchor in ("middle", "end"):
                assert 3 <= len(ticks(visit, anchor)) <= 11
    visit.leave()


def canvas_picture(visit: Visit, selector: str) -> str:
    return visit.page.locator(selector).first.evaluate("one => one.toDataURL()")


@pytest.mark.parametrize("figure", ["visits", "walk"])
def test_the_ring_has_a_view_without_distortion(visit: Visit, figure: str) -> None:
    group = visit.page.locator(f"figure.{figure} [aria-label='View of the graph'] button")
    assert group.all_inner_texts() == ["magnified", "true distances"]
    magnified = canvas_picture(visit, f"figure.{figure} canvas")
    assert "square-root" in visit.page.locator(f"figure.{figure}").inner_text()
    group.nth(1).click()
    assert canvas_picture(visit, f"figure.{figure} canvas") != magnified
    assert "same length" in visit.page.locator(f"figure.{figure}").inner_text()
    assert "square-root" not in visit.page.locator(f"figure.{figure}").inner_text()
    group.nth(0).press("Enter")
    assert canvas_picture(visit, f"figure.{figure} canvas") == magnified


def test_the_graph_is_drawn_with_the_visits_of_a_design(visit: Visit) -> None:
    figure = visit.page.locator("figure.graph")
    assert figure.is_visible()
    assert "80 nodes, 80 edges" in figure.inner_text()
    assert figure.get_attribute("data-design") == "MH importance"  # spends most time on the heavy nodes
    before = canvas_picture(visit, "figure.graph canvas")
    assert visit.colours("figure.graph canvas") > 5
    visit.press("figure.graph button[data-choice='MHLJ']")
    assert figure.get_attribute("data-design") == "MHLJ"
    assert canvas_picture(visit, "figure.graph canvas") != before


def test_among_several_sections_the_graph_is_collapsed(browser, tmp_path: Path) -> None:
    graphs = [fw.graphs.grid(4, 5), None]
    walks = [Walks(one, [0], np.ones(20), {}, {"a": np.arange(20)}) for one in graphs]
    sections = [Section(f"s{number}", walks=one) for number, one in enumerate(walks)]
    visit = Visit(browser, write_page(Page("p", sections), tmp_path / "page.html"))
    folds = visit.page.locator("details:has(figure.graph)")
    assert [folds.nth(place).is_visible() for place in (0, 1)] == [True, False]  # the second graph is not known
    assert not visit.page.locator("figure.graph").first.is_visible()
    folds.first.locator("summary").press("Enter")
    visit.until(lambda: visit.colours("figure.graph canvas") > 5)
    visit.leave()


def test_nodes_are_read_by_keyboard(visit: Visit) -> None:
    for figure in ("visits", "graph"):
        canvas = visit.page.locator(f"figure.{figure} canvas").first
        canvas.focus()
        before = canvas_picture(visit, f"figure.{figure} canvas")
        canvas.press("Home")
        most = canvas.get_attribute("aria-valuetext")
        assert "% of the visits" in most
        assert visit.page.locator(f"figure.{figure} .told").inner_text() == most
        assert canvas_picture(visit, f"figure.{figure} canvas") != before  # the node is marked
        canvas.press("ArrowRight")
        assert canvas.get_attribute("aria-valuetext") != most
        assert canvas.get_attribute("aria-valuenow") == "2"


def test_a_table_that_is_too_wide_says_so_and_shows_a_shadow(browser, tmp_path: Path) -> None:
    table = Table(["design", *(f"column {number}" for number in range(9))], [["a", *["0.01281 ± 0.00009"] * 9]])
    path = write_page(Page("p", [Section("s", tables=[table])]), tmp_path / "page.html")
    visit = Visit(browser, path, viewport={"width": 390, "height": 800})
    box, hint = visit.page.locator(".scroll"), visit.page.locator(".hint")
    shadow = "one => getComputedStyle(one).boxShadow"
    assert hint.is_visible()
    assert (box.get_attribute("data-left"), box.get_attribute("data-right")) == ("false", "true")
    assert "inset" in box.evaluate(shadow)
    box.focus()
    assert box.evaluate("one => document.activeElement === one")
    box.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    visit.until(lambda: box.get_attribute("data-right") == "false")
    assert box.get_attribute("data-left") == "true"
    heights = box.locator("td").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert max(heights) < 45  # no number is broken
    visit.page.set_viewport_size({"width": 2400, "height": 800})
    visit.leave()
    narrow = Table(["design", "updates"], [["a", "1"]])
    path = write_page(Page("p", [Section("s", tables=[narrow])]), tmp_path / "page.html")
    visit = Visit(browser, path, viewport={"width": 390, "height": 800})
    assert not visit.page.locator(".hint").is_visible()
    assert visit.page.locator(".scroll").evaluate(shadow) == "none"
    visit.leave()


def test_numbers_in_the_table_of_claims_are_not_broken(browser, tmp_path: Path) -> None:
    words = "fails: 0.9657 × (0.001688 against 0.001748)"
    verdict = Verdict("A claim of some length " * 6, "fail", words, "Why " * 30, words, share=words)
    path = write_page(Page("p", [Section("s", verdicts=[verdict])]), tmp_path / "page.html")
    for width in (1280, 390):
        visit = Visit(browser, path, viewport={"width": width, "height": 800})
        lines = visit.page.locator(".unbroken").evaluate_all("all => all.map(one => one.getClientRects().length)")
        assert lines == [1] * 6
        script = "all => all.map(one => [...one.childNodes].length)"
        assert set(visit.page.locator(".claims td").evaluate_all(script)) == {1}  # on a card beside its heading
        assert fits(visit)
        visit.leave()


def test_everything_has_a_name_and_focus_is_visible(visit: Visit) -> None:
    script = """() => [...document.querySelectorAll("button, select, input, canvas, svg, summary, [tabindex]")]
        .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
        .filter((one) => !(one.getAttribute("aria-label") || one.textContent).trim())
        .map((one) => one.outerHTML.slice(0, 80))"""
    assert visit.page.evaluate(script) == []
    roles = visit.page.locator("canvas, .stage > svg").evaluate_all("all => all.map(one => one.getAttribute('role'))")
    assert set(roles) <= {"img", "slider"}
    reached = set()
    for _ in range(80):
        visit.page.keyboard.press("Tab")
        style = visit.page.evaluate("""() => {
            const one = document.activeElement, style = getComputedStyle(one);
            const figure = one.closest("figure")?.className ?? "";
            return [one.tagName, figure, style.outlineStyle, parseFloat(style.outlineWidth)];
        }""")
        if style[0] == "BODY":
            break
        reached.add((style[0].lower(), style[1]))
        assert style[2] != "none", style
        assert style[3] >= 2, style
    wanted = {("svg", "chart"), ("button", "chart"), ("div", ""), ("canvas", "visits"), ("button", "visits")}
    wanted |= {("input", "walk"), ("select", "walk"), ("button", "walk"), ("canvas", "graph"), ("summary", "")}
    assert wanted <= reached


CONTRAST = """() => {
    const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const light = (rgb) => {
        const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = rgb.map((value) => linear(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
            if (a > 0) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const one of document.querySelectorAll("body *")) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !one.checkVisibility() || one.closest("script, style")) continue;
        const style = getComputedStyle(one);
        const front = parse(one instanceof SVGElement ? style.fill : style.color).slice(0, 3);
        const [a, b] = [light(front), light(behind(one))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push([one.tagName, one.className, one.textContent.slice(0, 30), ratio]);
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(browser, tmp_path: Path, scheme: str) -> None:
    verdicts = [Verdict("A claim", one, "1", "why", quote="said") for one in OUTCOMES]
    graph = fw.graphs.ring(80)
    walks = Walks(graph, [0], np.ones(80), {"a": [0, 1], "b": [0, 79]}, {"a": np.ones(80), "b": np.arange(80)})
    chart = Chart("c", [Series("a", {"updates": [0, 1]}, [1.0, 0.1])], "mse", lines={"optimum": 0.05}, note="note")
    parts = [Section(f"s{n}", ["text"], [chart], verdicts, walks, details={"seed": "1"}, lead="lead") for n in (1, 2)]
    path = write_page(Page("p", parts), tmp_path / "page.html")
    visit = Visit(browser, path, color_scheme=scheme)
    visit.press("figure.chart button[data-design='a']")
    assert visit.page.evaluate(CONTRAST) == []
    visit.leave()


def test_reduced_motion_plays_in_single_pictures(browser, example: Path) -> None:
    pictures = {}
    for motion in ("reduce", "no-preference"):
        visit = Visit(browser, example, reduced_motion=motion)
        visit.page.evaluate("""() => {
            const figure = document.querySelector("figure.walk");
            figure.dataset.changes = 0;
            let last = figure.dataset.step;
            new MutationObserver(() => {
                if (figure.dataset.step !== last) figure.dataset.changes = Number(figure.dataset.changes) + 1;
                last = figure.dataset.step;
            }).observe(figure, { attributes: true, attributeFilter: ["data-step"] });
        }""")
        visit.press("figure.walk button[data-action='play']")
        visit.page.wait_for_timeout(1200)
        pictures[motion] = visit.walk("changes")
        visit.leave()
    assert 1 <= pictures["reduce"] <= 4
    assert pictures["no-preference"] > 2 * pictures["reduce"]


def test_without_scripts_the_tables_are_there(browser, example: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(example.as_uri())
    text = page.inner_text("main")
    context.close()
    for words in ("Scripts are off", "A claim that takes more than one line", "pass", "1,200", "final mse"):
        assert words in text

"""The page in a real browser: it draws, it listens, it moves, it asks for nothing, and it fits a telephone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.report import Chart, Page, Section, Series, Verdict, Walks, section_of, write_page

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
    assert visit.walk("step") == 2000  # the end is what shows most
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


def test_without_scripts_the_tables_are_there(browser, example: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(example.as_uri())
    text = page.inner_text("main")
    context.close()
    for words in ("Scripts are off", "A claim that takes more than one line", "pass", "1,200", "final mse"):
        assert words in text

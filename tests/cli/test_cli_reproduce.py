"""`freewalk reproduce` and `freewalk report`, as a user meets them."""

import re
import signal
import sys
from pathlib import Path

import pytest
from commands import call

import freewalk as fw
from freewalk import cli
from freewalk.paper import KEYS
from freewalk.paper.files import VARIANTS
from freewalk.specs import Spec

#: Two cheap figures, the first in both variants, the second with no walk in it.
CHEAP = ["reproduce", "4a", "2", "--quick"]
RUNS = ["stated/figure-4a", "published/figure-4a", "stated/figure-2"]
SPEC = """
name = "small-one"
[graph]
kind = "ring"
n = 12
[problem]
kind = "LeastSquares"
dim = 2
heavy = 2
[run]
steps = 200
walks = 3
every = 50
paths = 1
[[walk]]
label = "simple"
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cheap figures leave if nothing comes between."""
    folder = tmp_path_factory.mktemp("whole")
    result = call(*CHEAP, "--out", str(folder))
    assert result.exit_code == 0, result.output
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def counted(monkeypatch: pytest.MonkeyPatch, at: int = 0, progress=None) -> list[str]:
    """Note which specs are run, and interrupt one of them before or during its run."""
    ran: list[str] = []
    real = Spec.run

    def run(self, *arguments, **options):
        ran.append(self.name)
        if len(ran) == at:
            if progress is None:
                raise KeyboardInterrupt
            options["progress"] = progress
        return real(self, *arguments, **options)

    monkeypatch.setattr(Spec, "run", run)
    return ran


def test_a_figure_leaves_its_folders_and_a_page(whole: Path) -> None:
    files = {f"{run}/{file}" for run in RUNS for file in ("spec.toml", "record.npz", "figure.png", "verdicts.json")}
    assert set(contents(whole)) == files | {"reproduction-4a-2.html"}
    titles = re.findall(r"<h2>([^<]*)</h2>", (whole / "reproduction-4a-2.html").read_text(encoding="utf-8"))
    assert [title.split(":")[0] for title in titles if title.startswith("Figure")] == [
        "Figure 4a",
        "Figure 4a",
        "Figure 2",
    ]


@pytest.mark.long
def test_after_ctrl_c_the_same_command_goes_on_to_the_same_bytes(
    here: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*CHEAP, "--out", "my folder"]
    with monkeypatch.context() as context:
        ran = counted(context, at=2)
        context.setattr(sys, "argv", ["freewalk", *command])
        result = call(*command)
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == (
        "interrupted; what is complete is in my folder. Resume with: "
        "freewalk reproduce 4a 2 --quick --out 'my folder'\n"
    )
    assert ran == ["figure-4a-stated", "figure-4a-published"]
    kept = contents(here / "my folder")
    # What takes no walk is computed meanwhile.
    assert {file for file in kept if "npz" in file} - {"stated/figure-2/record.npz"} == {"stated/figure-4a/record.npz"}
    assert "reproduction.html" not in kept
    with monkeypatch.context() as context:
        ran = counted(context)
        result = call(*command)
    assert result.exit_code == 0, result.output
    assert ran == ["figure-4a-published"]
    assert contents(here / "my folder") == contents(whole)


def test_a_run_that_ctrl_c_ended_in_the_middle_is_not_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(label: str, done: int, total: int, walks: int) -> None:
        signal.raise_signal(signal.SIGINT)

    command = ["reproduce", "4a", "--quick", "--variant", "stated", "--out", "out"]
    with monkeypatch.context() as context:
        ran = counted(context, at=1, progress=stop)
        result = call(*command)
    assert result.exit_code == 130
    assert ran == ["figure-4a-stated"]
    assert set(contents(here / "out")) == {"stated/figure-4a/spec.toml"}


@pytest.mark.long
def test_ctrl_c_in_the_last_moment_of_a_study_is_not_overlooked(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(label: str, done: int, total: int, walks: int) -> None:
        if done == total:
            signal.raise_signal(signal.SIGINT)

    ran = counted(monkeypatch, at=1, progress=stop)
    result = call("reproduce", "4a", "--quick", "--out", "out")
    assert ran == ["figure-4a-stated"]
    assert result.exit_code == 130
    assert (here / "out/stated/figure-4a/record.npz").exists()  # it is complete


def test_one_variant_alone(here: Path, whole: Path) -> None:
    result = call(*CHEAP, "--variant", "published", "--out", "out")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (here / "out").iterdir()} == {"published", "reproduction-4a-2-published.html"}
    assert "stated" not in re.findall(r"Figure \S+, (\w+)", result.stdout)
    assert contents(here / "out/published") == contents(whole / "published")


def test_quick_runs_have_a_folder_of_their_own(here: Path) -> None:
    result = call("reproduce", "2", "--quick")
    assert result.exit_code == 0, result.output
    assert "page     runs/reproduce-quick/reproduction-2.html\n" in result.stdout
    assert call("reproduce", "2").exit_code == 0
    assert (here / "runs/reproduce/stated/figure-2/figure.png").exists()


def test_a_claim_that_fails_is_a_result(here: Path) -> None:
    result = call("reproduce", "2", "--variant", "stated", "--out", "out")
    assert result.exit_code == 0
    assert "stated: 2 pass, 0 depends, 4 fail, 0 not testable" in result.stdout
    assert result.stdout.count("FAIL") == 4
    assert "The drawn numbers are those of L₁ = 51" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["theorem"], "reproduce: there is no figure 'theorem'; did you mean 'theorem-1'?"),
        (["3", "6shift"], "reproduce: there is no figure '6shift'; did you mean '6-shift'?"),
        (["17"], f"reproduce: there is no figure '17'; there are {', '.join(KEYS)}"),
    ],
)
def test_errors_come_before_anything_is_made(here: Path, arguments: list[str], message: str) -> None:
    result = call("reproduce", *arguments)
    assert result.exit_code == 2
    assert result.stderr == f"error: {message}\n"
    assert result.stdout == ""
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--variant", "printed"], ["--figure", "3"]])
def test_options_are_checked(here: Path, arguments: list[str]) -> None:
    result = call("reproduce", *arguments)
    assert result.exit_code == 2
    assert result.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["5a", "--search", "--seeds", "20"], "search 5a --seeds 20"),
        (["--seeds", "3"], "search --seeds 3"),
        (["4b", "--sweep", "--variant", "stated", "--out", "my folder"], "sweep 4b --variant stated --out 'my folder'"),
    ],
)
def test_what_once_were_options_names_the_command_of_today(here: Path, arguments: list[str], command: str) -> None:
    result = call("reproduce", *arguments)
    kind = command.split()[0]
    words = (
        f"reproduce: --{kind} is a command of its own, in a copy of the repository: python -m reproduction {command}"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {words}\n")
    assert list(here.iterdir()) == []


def test_help_names_every_figure() -> None:
    result = call("reproduce", "--help")
    assert result.exit_code == 0
    for key in KEYS:
        assert key in result.stdout
    for word in ("--variant", "--quick", "--out", "freewalk reproduce --quick"):
        assert word in result.stdout


def heading(page: Path) -> str:
    (found,) = re.findall(r"<h1[^>]*>([^<]*)</h1>", page.read_text(encoding="utf-8"))
    return found


def test_report_of_a_run(here: Path) -> None:
    (here / "small.toml").write_text(SPEC)
    assert call("run", "small.toml", "--out", "runs/small").exit_code == 0
    result = call("report", "runs/small")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "runs/small/page.html\n", "")
    page = here / "runs/small/page.html"
    assert heading(page) == "small-one"
    first = page.read_bytes()
    assert call("report", "runs/small").exit_code == 0
    assert page.read_bytes() == first
    result = call("report", "runs/small/record.npz", "--title", "Twelve <nodes>", "--out", "new/here.html")
    assert (result.exit_code, result.stdout) == (0, "new/here.html\n")
    assert heading(here / "new/here.html") == "Twelve &lt;nodes&gt;"
    assert call("report", "runs/small/record.npz").stdout == "runs/small/record-page.html\n"
    assert (here / "runs/small/record-page.html").read_bytes() == first


def test_report_of_a_record_made_from_python(here: Path) -> None:
    graph = fw.graphs.ring(12)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(graph, problem.smoothness)
    fw.learn(problem, kernel, fw.SGD(1e-3), steps=200, walks=3, every=50, paths=1).save("mine.npz")
    result = call("report", "mine.npz")
    assert (result.exit_code, result.stdout) == (0, "mine-page.html\n"), result.output
    assert heading(here / "mine-page.html") == "mine"
    assert call("report", "mine.npz", "--title", "A walk").exit_code == 0
    assert heading(here / "mine-page.html") == "A walk"


def test_report_of_a_figure_that_was_reproduced(here: Path, whole: Path) -> None:
    result = call("report", str(whole / "stated/figure-4a"), "--out", "page.html")
    assert result.exit_code == 0, result.output
    assert heading(here / "page.html") == "figure-4a-stated"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "error: nowhere: there is no such file or folder"),
        (["nowhere.npz"], "error: nowhere.npz: there is no such file"),
        (["empty"], "error: empty: is not the folder of a run"),
        (["small.toml"], "error: small.toml: not a record of freewalk"),
        (["walked.npz"], "error: report: the record has no loss"),
        (["learned.npz", "--out", "page.txt"], "error: write_page: path = 'page.txt', expected a name that ends"),
    ],
)
def test_errors_of_report_are_one_line_each(here: Path, arguments: list[str], message: str) -> None:
    (here / "empty").mkdir()
    (here / "small.toml").write_text(SPEC)
    graph = fw.graphs.ring(12)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(graph)
    fw.walk(kernel, steps=10, every=10).save("walked.npz")
    fw.learn(problem, kernel, fw.SGD(1e-3), steps=10, every=10).save("learned.npz")
    before = contents(here)
    result = call("report", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert contents(here) == before


def test_the_command_offers_every_variant_and_every_figure() -> None:
    assert [one.value for one in cli.reproduce.Parameters] == list(VARIANTS)
    words = " ".join(call("reproduce", "--help").output.replace("│", " ").split())
    assert ", ".join(KEYS) in words

"""`freewalk reproduce --quick`: every figure in every variant, with its files, its verdicts and one page."""

import json
import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import freewalk as fw
from freewalk import cli
from freewalk.paper import KEYS, STUDIES
from freewalk.paper.evidence import FIGURES
from freewalk.paper.files import fit_path
from freewalk.paper.study import COMPUTED
from freewalk.run.record import read
from freewalk.specs import Spec

pytestmark = pytest.mark.long

EVERY = [(key, variant) for key in KEYS for variant in STUDIES[key].variants]
#: How many tests of a study quote no sentence of the paper.
OURS = {"3": 1, "4a": 1, "4b": 2, "5a": 3, "5b": 3, "3-logistic": 1, "5b-logistic": 4, "6-decay": 1, "section-4": 2}
OURS |= {"centralized": 1, "centralized-noise": 1, "centralized-homogeneous": 1, "theorem-1-rate": 1}
OUTCOMES = ("pass", "depends", "fail", "not testable")
LEARNED = [(key, variant) for key, variant in EVERY if key not in COMPUTED]


@dataclass(frozen=True)
class Whole:
    """What `freewalk reproduce --quick` has left and said; nobody writes into its folder."""

    folder: Path
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Made once, through the command line, and shared by all tests here."""
    folder = tmp_path_factory.mktemp("whole-reproduction") / "out"
    result = CliRunner().invoke(cli.app, ["reproduce", "--quick", "--out", str(folder)])
    crash = "" if result.exception is None else f"\n{result.exception!r}"
    return Whole(folder, result.exit_code, result.stdout, result.stderr + crash)


def folder_of(whole: Whole, key: str, variant: str) -> Path:
    return whole.folder / variant / (f"figure-{key}" if key[0].isdigit() else key)


def said(whole: Whole, key: str, variant: str) -> dict:
    return json.loads((folder_of(whole, key, variant) / "verdicts.json").read_text(encoding="utf-8"))


def outcomes(whole: Whole, key: str, variant: str) -> list[str]:
    return [verdict["outcome"] for verdict in said(whole, key, variant)["verdicts"]]


def test_it_succeeds_and_says_where_everything_is(whole: Whole) -> None:
    assert whole.exit_code == 0
    assert all(line.startswith("reproducing ") for line in whole.stderr.splitlines())  # progress, for logs
    for kind in ("stated", "published", "own"):
        every = [outcome for key, variant in EVERY if variant == kind for outcome in outcomes(whole, key, variant)]
        counts = ", ".join(f"{every.count(name)} {name}" for name in OUTCOMES)
        assert f"{kind}: {counts}\n" in whole.stdout
    assert f"figures  {whole.folder}\n" in whole.stdout
    assert f"page     {whole.folder / 'reproduction.html'}\n" in whole.stdout
    for key, variant in EVERY:
        assert f"{STUDIES[key].name}, {variant}" in whole.stdout


def test_few_claims_cannot_be_tested(whole: Whole) -> None:
    every = [outcome for key, variant in EVERY for outcome in outcomes(whole, key, variant)]
    assert every.count("not testable") <= 0.05 * len(every)


def test_no_more_is_made_than_what_is_asked_for(whole: Whole) -> None:
    found = {file.parent for file in whole.folder.rglob("*") if file.is_file()}
    assert found == {folder_of(whole, key, variant) for key, variant in EVERY} | {whole.folder}
    assert [file.name for file in whole.folder.iterdir() if file.is_file()] == ["reproduction.html"]


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_every_study_has_its_files(whole: Whole, key: str, variant: str) -> None:
    folder = folder_of(whole, key, variant)
    record = read(folder / "record.npz")
    assert record.provenance["spec"] == (folder / "spec.toml").read_text(encoding="utf-8")
    assert not record.partial
    found = said(whole, key, variant)
    page = (whole.folder / "reproduction.html").read_text(encoding="utf-8")
    for name, file in (("spec", "spec.toml"), ("record", "record.npz")):
        digest = sha256((folder / file).read_bytes()).hexdigest()[:12]
        assert found[name] == digest
        assert digest in page
    assert len(found["verdicts"]) >= 2


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_every_figure_is_an_image_with_something_on_it(whole: Whole, key: str, variant: str) -> None:
    path = folder_of(whole, key, variant) / "figure.png"
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert content.endswith(b"IEND\xaeB`\x82")
    assert 10_000 < len(content) < 1_000_000
    image = imread(path)
    height, width = image.shape[:2]
    assert 400 < height < width < 4000
    ink = (image[..., :3].min(axis=2) < 0.9).mean()
    assert 0.005 < ink < 0.6
    colours = {tuple(colour) for colour in (image[::8, ::8, :3] * 255).round().astype(int).reshape(-1, 3).tolist()}
    assert len(colours) > 20


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_every_verdict_has_a_number_and_what_is_not_a_pass_a_sentence(whole: Whole, key: str, variant: str) -> None:
    for verdict in said(whole, key, variant)["verdicts"]:
        assert verdict["outcome"] in OUTCOMES
        assert re.search(r"\d", verdict["share"] or verdict["measured"]), verdict
        if verdict["outcome"] == "pass":
            assert verdict["comment"] == "", verdict
        elif verdict["outcome"] in ("fail", "depends"):
            assert len(verdict["comment"].split()) >= 5, verdict


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_every_claim_of_the_paper_is_quoted_and_has_a_share_where_there_are_settings(
    whole: Whole, key: str, variant: str
) -> None:
    verdicts = said(whole, key, variant)["verdicts"]
    assert sum(not verdict["quote"] for verdict in verdicts) == OURS.get(key, 0)
    for verdict in verdicts:
        share = verdict["share"]
        if key not in FIGURES:
            assert "settings" not in share
        elif variant == "published":
            assert "of 20 fresh draws" in share or "fresh draws (" in share
        else:  # entrapment depends on neither step nor start, and is counted once for each draw
            assert ("draws" if " entrapped: " in verdict["claim"] else "settings") in share


def test_what_is_computed_has_the_verdicts_that_it_must_have(whole: Whole) -> None:
    assert outcomes(whole, "2", "stated") == ["fail", "fail", "pass", "pass", "fail", "fail"]
    assert outcomes(whole, "remark-1", "stated") == ["fail", "pass"]
    assert outcomes(whole, "theorem-1", "own") == ["pass"] * 5
    leave, stay = said(whole, "2", "stated")["verdicts"][:2]
    assert (float(leave["measured"]), float(stay["measured"])) == (1 / 200, 99 / 100)


@pytest.mark.parametrize(
    ("key", "variant", "expected"),
    [
        ("3", "stated", {"MH importance is entrapped": "holds", "MHLJ is not entrapped": "fails"}),
        ("3", "published", {"MH importance is entrapped": "holds", "MHLJ is not entrapped": "holds"}),
        ("4b", "stated", {"MH importance is not entrapped": "holds"}),
        ("4b", "published", {"MH importance is not entrapped": "holds"}),
        ("5a", "stated", {"MH importance is entrapped": "fails", "MHLJ is not entrapped": "holds"}),
        ("5a", "published", {"MH importance is entrapped": "holds", "MHLJ is not entrapped": "holds"}),
        ("5b", "stated", {"MH importance is entrapped": "fails", "MHLJ is not entrapped": "holds"}),
        ("5b", "published", {"MH importance is entrapped": "fails", "MHLJ is not entrapped": "holds"}),
        ("6", "stated", {"MH importance is entrapped": "holds", "MHLJ is not entrapped": "fails"}),
        ("6", "published", {"MH importance is entrapped": "holds", "MHLJ is not entrapped": "holds"}),
    ],
)
def test_each_graph_with_heavy_nodes_has_a_verdict_on_entrapment(
    whole: Whole, key: str, variant: str, expected: dict[str, str]
) -> None:
    found = [verdict for verdict in said(whole, key, variant)["verdicts"] if " entrapped: " in verdict["claim"]]
    assert {verdict["claim"].partition(":")[0]: verdict["measured"].partition(":")[0] for verdict in found} == expected
    assert all("excess visits" in verdict["measured"] for verdict in found)


@pytest.mark.parametrize(("key", "variant"), LEARNED)
def test_fits_are_judged_apart_and_are_near(whole: Whole, key: str, variant: str) -> None:
    fit = said(whole, key, variant).get("fit", [])
    fitted = key in FIGURES and variant == "published"
    assert len(fit) == (len(fw.paper.evidence.published(key)) + 1 if fitted else 0)
    assert all("decades" in one["measured"] for one in fit)
    assert {one["outcome"] for one in fit} <= {"pass"}


def test_a_quick_run_has_no_exact_curves(whole: Whole) -> None:
    for key, variant in LEARNED:
        folder = folder_of(whole, key, variant)
        assert fw.load(folder / "record.npz").data.sizes["walk"] == (
            400 if "logistic" in key or "decay" in key else 1000
        )
        assert not (folder / "exact").exists()


def test_the_page_is_one_file_that_names_every_figure_and_fetches_nothing(whole: Whole) -> None:
    page = (whole.folder / "reproduction.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert not re.findall(r"https?://", page.replace("http://www.w3.org/", ""))
    assert not re.findall(r"<(?:script|img|link|iframe|source|object|embed)\b[^>]*(?:src|href)=[\"'](?!data:)", page)
    assert "@import" not in page
    assert "default-src 'none'" in page
    for key, variant in EVERY:
        anchor = f"{'s-' if key[0].isdigit() else ''}{key}-{variant}"
        assert f'href="#{anchor}"' in page
        assert f'id="{anchor}"' in page
        assert re.search(rf"<h2[^>]*>[^<]*{STUDIES[key].name}: [^<]*\({variant}\)", page), key
    assert page.count("data:image/png;base64,") == len(COMPUTED)
    assert "This is the quick version" in page


def test_the_fits_are_told_where_there_are_some(whole: Whole) -> None:
    page = (whole.folder / "reproduction.html").read_text(encoding="utf-8")
    for figure in FIGURES:
        setting = json.loads(fit_path(figure).read_text())["setting"]
        assert f"the best one is data seed {setting['seed']}" in " ".join(whole.stdout.split())
        assert f"the best one is data seed {setting['seed']}" in page
    assert page.count("How far the exact curve is from the printed one") == len(FIGURES)


def test_the_two_variants_of_a_figure_are_different_runs_of_the_same_designs(whole: Whole) -> None:
    for key in FIGURES:
        one, two = (fw.load(folder_of(whole, key, variant) / "record.npz") for variant in ("stated", "published"))
        assert list(one.data.design.values) == list(two.data.design.values)
        assert not np.allclose(one.data.mse.values[..., 0], two.data.mse.values[..., 0])


def test_a_second_run_simulates_nothing_and_gives_the_same_files(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("computed again")

    some = ["2", "section-4", "3-logistic", "4a"]  # of every kind
    copy = tmp_path / "copy"
    for key in some:
        for variant in STUDIES[key].variants:
            shutil.copytree(folder_of(whole, key, variant), copy / variant / folder_of(whole, key, variant).name)
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    monkeypatch.setattr(Spec, "run", never)
    monkeypatch.setattr(COMPUTED["section-4"], "numbers", never)
    result = CliRunner().invoke(cli.app, ["reproduce", *some, "--quick", "--out", str(copy)])
    assert result.exit_code == 0, result.output
    after = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file() and file.suffix != ".html"}
    assert set(after) == set(before)
    assert [str(file) for file in before if after[file] != before[file]] == []
    assert all(line in whole.stdout for line in result.stdout.partition("stated: ")[0].splitlines())

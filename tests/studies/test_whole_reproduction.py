"""`freewalk reproduce --quick`: every figure in every variant, with its files, its verdicts and one page."""

import json
import re
import shutil
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import freewalk as fw
from freewalk import cli
from freewalk.experiment import Spec
from freewalk.studies import KEYS, STUDIES
from freewalk.studies.files import fit_path
from freewalk.studies.published import FIGURES

COMPUTED = {"2": ("stated", "published"), "remark-1": ("stated",)}
EVERY = [(key, variant) for key in KEYS for variant in (COMPUTED[key] if key in COMPUTED else STUDIES[key].variants)]
LEARNED = [(key, variant) for key, variant in EVERY if key in STUDIES]


@dataclass(frozen=True)
class Whole:
    """What `freewalk reproduce --quick` has left and said; nobody writes into its folder."""

    folder: Path
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Whole:
    """Made once, through the command line, and shared by all tests here."""
    base = tmp_path_factory.getbasetemp()
    # Workers of one session share the folder above: the first to come runs the command, the others wait for it.
    place = (base.parent if hasattr(request.config, "workerinput") else base) / "whole-reproduction"
    said = place / "said.json"
    try:
        place.mkdir()
    except FileExistsError:
        patience = time.monotonic() + 300
        while not said.exists() and time.monotonic() < patience:
            time.sleep(0.1)
    else:
        result = CliRunner().invoke(cli.app, ["reproduce", "--quick", "--out", str(place / "out")])
        crash = "" if result.exception is None else f"\n{result.exception!r}"
        words = {"exit_code": result.exit_code, "stdout": result.stdout, "stderr": result.stderr + crash}
        half = place / "said.half"
        half.write_text(json.dumps(words), encoding="utf-8")
        half.rename(said)
    return Whole(place / "out", **json.loads(said.read_text(encoding="utf-8")))


def folder_of(whole: Whole, key: str, variant: str) -> Path:
    return whole.folder / variant / (f"figure-{key}" if key[0].isdigit() else key)


def said(whole: Whole, key: str, variant: str) -> dict:
    return json.loads((folder_of(whole, key, variant) / "verdicts.json").read_text(encoding="utf-8"))


def outcomes(whole: Whole, key: str, variant: str) -> list[str]:
    return [verdict["outcome"] for verdict in said(whole, key, variant)["verdicts"]]


def test_it_succeeds_and_says_where_everything_is(whole: Whole) -> None:
    assert (whole.exit_code, whole.stderr) == (0, "")
    every = [outcome for key, variant in EVERY for outcome in outcomes(whole, key, variant)]
    counts = ", ".join(f"{every.count(name)} {name}" for name in ("pass", "fail", "not testable"))
    assert counts in whole.stdout
    assert f"figures  {whole.folder}\n" in whole.stdout
    assert f"page     {whole.folder / 'reproduction.html'}\n" in whole.stdout
    for key, variant in EVERY:
        name = f"Figure {key}" if key[0].isdigit() else key.replace("-", " ").capitalize()
        assert f"{name}, {variant}" in whole.stdout


def test_no_more_is_made_than_what_is_asked_for(whole: Whole) -> None:
    assert len(EVERY) == 17
    found = {file.parent for file in whole.folder.rglob("*") if file.is_file()}
    assert found == {folder_of(whole, key, variant) for key, variant in EVERY} | {whole.folder}
    assert [file.name for file in whole.folder.iterdir() if file.is_file()] == ["reproduction.html"]


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_every_study_has_its_files(whole: Whole, key: str, variant: str) -> None:
    folder = folder_of(whole, key, variant)
    record = fw.load(folder / "record.npz")
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
        assert verdict["outcome"] in ("pass", "fail", "not testable")
        if verdict["outcome"] == "pass":
            assert re.search(r"\d", verdict["measured"]), verdict
            assert verdict["comment"] == "", verdict
        else:
            assert len(verdict["comment"].split()) >= 5, verdict
        if verdict["outcome"] == "fail":
            assert re.search(r"\d", verdict["measured"]), verdict


def test_what_is_computed_has_the_verdicts_that_it_must_have(whole: Whole) -> None:
    assert outcomes(whole, "2", "stated") == ["fail", "fail", "pass", "pass", "pass", "fail", "fail"]
    assert outcomes(whole, "2", "published") == ["pass"] * 5 + ["fail"] * 2
    assert outcomes(whole, "remark-1", "stated") == ["pass", "pass", "fail"]
    assert outcomes(whole, "theorem-1", "own") == ["pass"] * 5
    leave, stay = said(whole, "2", "published")["verdicts"][:2]
    assert (float(leave["measured"]), float(stay["measured"])) == pytest.approx((1 / 102, 50 / 51), rel=1e-3)
    leave, stay = said(whole, "2", "stated")["verdicts"][:2]
    assert (float(leave["measured"]), float(stay["measured"])) == (1 / 200, 99 / 100)


@pytest.mark.parametrize(
    ("key", "variant", "expected"),
    [
        ("3", "stated", {"MH importance is entrapped": "pass", "MHLJ is not entrapped": "fail"}),
        ("3", "published", {"MH importance is entrapped": "pass", "MHLJ is not entrapped": "pass"}),
        ("4b", "stated", {"MH importance is not entrapped": "pass"}),
        ("4b", "published", {"MH importance is not entrapped": "pass"}),
        ("5a", "stated", {"MH importance is entrapped": "fail", "MHLJ is not entrapped": "pass"}),
        ("5a", "published", {"MH importance is entrapped": "pass", "MHLJ is not entrapped": "pass"}),
        ("5b", "stated", {"MH importance is entrapped": "fail", "MHLJ is not entrapped": "pass"}),
        ("5b", "published", {"MH importance is entrapped": "fail", "MHLJ is not entrapped": "pass"}),
        ("6", "stated", {"MH importance is entrapped": "pass", "MHLJ is not entrapped": "fail"}),
        ("6", "published", {"MH importance is entrapped": "pass", "MHLJ is not entrapped": "pass"}),
    ],
)
def test_each_graph_with_heavy_nodes_has_a_verdict_on_entrapment(
    whole: Whole, key: str, variant: str, expected: dict[str, str]
) -> None:
    found = [verdict for verdict in said(whole, key, variant)["verdicts"] if " entrapped: " in verdict["claim"]]
    assert {verdict["claim"].partition(":")[0]: verdict["outcome"] for verdict in found} == expected
    assert all("excess visits" in verdict["measured"] for verdict in found)


@pytest.mark.parametrize(("key", "variant"), LEARNED)
def test_claims_about_the_print_are_made_of_published_specs_and_take_the_exact_curve(
    whole: Whole, key: str, variant: str
) -> None:
    near = [verdict for verdict in said(whole, key, variant)["verdicts"] if "decades RMS" in verdict["claim"]]
    assert len(near) == (len(fw.studies.published.published(key)) if key in FIGURES and variant == "published" else 0)
    assert {verdict["outcome"] for verdict in near} <= {"not testable"}
    rest = [verdict for verdict in said(whole, key, variant)["verdicts"] if verdict not in near]
    assert any(verdict["outcome"] != "not testable" for verdict in rest)


def test_a_quick_run_has_few_walks_and_no_exact_curves(whole: Whole) -> None:
    for key, variant in LEARNED:
        folder = folder_of(whole, key, variant)
        assert fw.load(folder / "record.npz").data.sizes["walk"] == 100
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
        name = f"Figure {key}" if key[0].isdigit() else key.replace("-", " ").capitalize()
        assert re.search(rf"<h2[^>]*>[^<]*{name}: [^<]*\({variant}\)", page), name
    assert page.count("data:image/png;base64,") == 3  # figure 2 twice, Remark 1
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


def test_a_second_run_simulates_nothing_and_gives_the_same_page(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("simulated again")

    copy = tmp_path / "copy"
    shutil.copytree(whole.folder, copy)
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    (copy / "reproduction.html").unlink()
    monkeypatch.setattr(Spec, "run", never)
    result = CliRunner().invoke(cli.app, ["reproduce", "--quick", "--out", str(copy)])
    assert result.exit_code == 0, result.output
    after = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    assert set(after) == set(before)
    assert [str(file) for file in before if after[file] != before[file]] == []
    assert result.stdout.replace(str(copy), "") == whole.stdout.replace(str(whole.folder), "")

"""The pages that are made from data are what the generator writes, and the data are what the package says today."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from freewalk.paper import STUDIES, ClaimSweep
from freewalk.paper.files import study_table, sweep_path

ROOT = Path(__file__).parents[2]
EVERY = [(key, variant) for key, study in STUDIES.items() for variant in study.variants]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def verdicts() -> dict:
    return json.loads((ROOT / "docs" / "data" / "verdicts.json").read_text(encoding="utf-8"))


def test_the_map_is_what_is_written_from_its_data(generate: ModuleType) -> None:
    message = "change docs/data/paper-map.toml, and run `python docs/generate.py`"
    assert generate.MAP.read_text(encoding="utf-8") == generate.map_page(), message


def test_the_verdicts_are_what_is_written_from_their_data(generate: ModuleType) -> None:
    message = "run `freewalk reproduce` and `python docs/generate.py --runs runs/reproduce`"
    assert generate.VERDICTS.read_text(encoding="utf-8") == generate.verdicts_page(), message


@pytest.mark.parametrize(("key", "variant"), EVERY)
def test_the_data_have_every_claim_of_today(verdicts: dict, key: str, variant: str) -> None:
    found = verdicts[variant][key]["verdicts"]
    assert [one.get("quote", "") for one in found] == [one.get("quote", "") for one in study_table(key)["claim"]]
    if STUDIES[key].module is None:
        assert [one["claim"] for one in found] == [claim.text for claim in STUDIES[key].claims]
    if sweep_path(key, variant).is_file():  # type: ignore[arg-type]
        shares = ClaimSweep.load(sweep_path(key, variant)).shares()  # type: ignore[arg-type]
        assert [one["outcome"] for one in found] == [shares[one["claim"]].outcome for one in found]
        assert all(one["share"].startswith(f"{shares[one['claim']].holds} of ") for one in found)
    for one in found:
        assert one["outcome"] != "fail" or one["comment"]


def test_a_verdict_that_changes_changes_the_page(
    generate: ModuleType, verdicts: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts["stated"]["2"]["verdicts"][0]["measured"] = "0.123"
    (tmp_path / "verdicts.json").write_text(json.dumps(verdicts))
    monkeypatch.setattr(generate, "DATA", tmp_path)
    assert "0.123" in generate.verdicts_page()
    assert generate.verdicts_page() != generate.VERDICTS.read_text(encoding="utf-8")

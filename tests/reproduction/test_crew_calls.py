"""Functions that a crew calls: each once, kept as JSON under all that the result depends on."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from reproduction.calls import calling, key_of_call

from freewalk.errors import SpecError


@dataclass(frozen=True)
class Setting:
    seed: int
    step: float


def scored(figure: str, setting: Setting) -> dict[str, object]:
    if setting.seed == 13:
        raise SpecError("thirteen")
    with Path(figure).open("a") as file:
        file.write(f"{setting.seed}\n")
    return {"setting": setting, "score": (setting.seed * setting.step, float("inf"), None)}


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_results_come_in_order_and_are_kept(tmp_path: Path, on: str) -> None:
    figure, told = str(tmp_path / "called"), []
    arguments = [(figure, Setting(seed, 0.5)) for seed in (3, 1, 2, 1)]
    for _ in range(2):
        with calling(tmp_path / "kept", 2, tell=lambda *words: told.append(words), on=on) as caller:
            found = caller.each("scoring", scored, arguments)
    assert [one["setting"]["seed"] for one in found] == [3, 1, 2, 1]
    assert found[0]["score"] == [1.5, float("inf"), None]
    assert sorted((tmp_path / "called").read_text().split()) == ["1", "2", "3"]
    assert told == [("scoring", number, 3) for number in (1, 2, 3)] * 2


def test_what_the_key_depends_on() -> None:
    one = key_of_call(scored, ("3", Setting(1, 0.5)))
    assert one == key_of_call(scored, ("3", Setting(1, 0.5)))
    others = [key_of_call(scored, ("3", Setting(1, 0.25))), key_of_call(scored, ("3", Setting(1, 0.5)), "a spec")]
    assert len({one, *others, key_of_call(divmod, ("3", 1))}) == 4


def test_a_call_that_fails_is_raised_and_the_others_are_kept(tmp_path: Path) -> None:
    figure = str(tmp_path / "called")
    with pytest.raises(SpecError, match="thirteen"), calling(tmp_path / "kept", 1, on="threads") as caller:
        caller.each("scoring", scored, [(figure, Setting(seed, 0.5)) for seed in (13, 1)])
    assert len(list((tmp_path / "kept").glob("*.json"))) == 1


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with calling(None, 1, on="threads") as caller:
        assert caller.each("dividing", divmod, [(7, 2), (9, 4)]) == [[3, 1], [2, 1]]
        folder = caller.results.folder
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be stored as JSON"):
        key_of_call(divmod, (object(), 1))

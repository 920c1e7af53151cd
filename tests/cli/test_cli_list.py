"""`freewalk list`, and what a shell completes."""

import os
import subprocess
import sys

import pytest
from commands import call

from freewalk.objectives import LeastSquares
from freewalk.specs.catalogue import families, on_data

FREEWALK = [sys.executable, "-c", "import sys; sys.argv[0] = 'freewalk'; from freewalk.cli import main; main()"]


def test_a_kind_is_explained_parameter_by_parameter() -> None:
    result = call("list", "MHLJ")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "  MHLJ(jump, stop, hops, power=1.0, corrected=False)"
    assert lines[2:4] == ["      jump (a number, required)", "          The probability p_J of a jump."]
    assert "      corrected (true or false, false if not given)" in lines
    assert not any(line != line.rstrip() for line in lines)
    assert call("list", "mhlj").stdout == result.stdout


def test_every_parameter_of_every_listed_kind_has_an_explanation() -> None:
    kinds = [kind for family in families().values() for kind in family.values()]
    for kind in [*kinds, on_data("LeastSquares", LeastSquares)]:
        assert set(kind.explained) >= set(kind.signature.parameters), kind.name
        assert all(kind.explained[name].endswith(".") for name in kind.signature.parameters), kind.name


@pytest.mark.parametrize(("word", "family"), [("design", "design"), ("Designs", "design"), ("graph", "graph")])
def test_a_family_is_all_of_its_kinds(word: str, family: str) -> None:
    heads = [line.strip() for line in call("list", word).stdout.splitlines() if line[:2] == "  " and line[2] != " "]
    assert [head.partition("(")[0] for head in heads] == list(families()[family])


def test_an_objective_is_explained_with_drawn_and_with_own_data() -> None:
    shown = call("list", "Logistic").stdout
    assert "  Logistic(dim=10, " in shown
    assert "  Logistic(data, target=None, node=None, features=None, ridge=0.0," in shown
    assert "As for" not in shown
    assert "in a `.npz` file" in shown
    assert call("list", "objectives").stdout == call("list", "problem").stdout


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("MHJL", "error: list: there is no 'MHJL'; did you mean 'MHLJ'?\n"),
        (
            "mine:Lazy",
            "error: list: 'mine:Lazy' is a class of your own, which is not imported here; see its documentation\n",
        ),
    ],
)
def test_an_unknown_kind(word: str, message: str) -> None:
    result = call("list", word)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


def completed(words: str) -> list[str]:
    """What bash would be offered."""
    environment = {**os.environ, "_FREEWALK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    done = subprocess.run([*FREEWALK], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_a_shell_completes_kinds_and_options() -> None:
    assert completed("freewalk list MHL") == ["MHLJ"]
    assert {"--quiet", "--force", "--out"} <= set(completed("freewalk run --"))


def test_completion_can_be_shown() -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [*FREEWALK, "--show-completion", "bash"], env=environment, capture_output=True, text=True, check=True
    )
    assert "_FREEWALK_COMPLETE=complete_bash" in done.stdout

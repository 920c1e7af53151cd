"""Specs that nobody would write by mistake: one line about what is wrong, and nothing else happens."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from freewalk import cli

GOOD = """
name = "good"
[graph]
kind = "ring"
n = 5
[problem]
kind = "LeastSquares"
dim = 2
[run]
steps = 10
every = 5
[[walk]]
label = "one"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-3 }
"""
HUGE = "9" * 400
VALUES = [
    "nan",
    "inf",
    "-inf",
    "true",
    "-1",
    "1e300",
    "10e30",
    HUGE,
    '"x"',
    '""',
    '"\\u0000"',
    '"\\u001b[31m"',
    f'"{"a" * 50_000}"',
    "[]",
    "[[1], [2, 3]]",
    '["a", 1]',
    "{}",
    "{ kind = 3 }",
    "{ kind = [] }",
    '{ kind = "MHLJ", jump = { kind = "MHLJ" } }',
    "1979-05-27",
    "00:32:00",
]
# (what is replaced, values that are fine there)
PLACES = {
    '"good"': ('"x"',),
    '"ring"': (),
    "n = 5": (),
    "dim = 2": (),
    "steps = 10": (),
    "every = 5": (),
    '"one"': ('"x"',),
    "jump = 0.1": (),
    "hops = 3": (),
    "step = 1e-3": ("1e300", "10e30", HUGE),
    '{ kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }': (),
}


def refused(text: str, folder: Path) -> str:
    (folder / "my.toml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["run", "my.toml"])
    assert result.exit_code == 2, (result.exit_code, result.output[:300], result.exception)
    assert result.stderr.startswith("error: my.toml: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr[:-1].isprintable()
    assert len(result.stderr) < 1000
    assert {file.name for file in folder.iterdir()} == {"my.toml"}
    return str(result.stderr)


@pytest.mark.parametrize("place", PLACES)
def test_junk_in_place_of_a_value(here: Path, place: str) -> None:
    assert place in GOOD
    key, _, _ = place.partition(" = ")
    for value in VALUES:
        if value not in PLACES[place]:
            put = value if place[0] in '"{' else f"{key} = {value}"
            refused(GOOD.replace(place, put), here)


JUNK = [
    "",
    "\0",
    "= = =",
    "a" * 100_000,
    "[" * 50_000,
    "x = " + "[" * 5_000 + "]" * 5_000,
    "x = " + "{a=" * 3_000 + "1" + "}" * 3_000,
    "x = " + "9" * 10_000,
    '"a\\u001bb" = 1' + GOOD,
    f'"{"k" * 50_000}" = 1' + GOOD,
    GOOD.replace('"good"', '"../../etc/passwd"'),
    GOOD.replace('"good"', '"/tmp/x"'),
    GOOD.replace('"good"', '"a\\nb"'),
    GOOD.replace('"good"', '"."'),
    GOOD.replace("steps = 10", f"steps = {10**30}"),
    GOOD.replace("steps = 10", f"steps = {10**15}").replace("every = 5", "every = 1"),
    GOOD.replace("steps = 10", f"steps = 10\nwalks = {10**15}"),
    GOOD.replace("steps = 10", f"steps = {10**12}\npaths = 1").replace("every = 5", f"every = {10**12}"),
    GOOD.replace("steps = 10", "steps = 10\nstart = [1, 'a']"),
    GOOD.replace("steps = 10", f"steps = 10\nseed = {2**64}"),
    GOOD.replace("steps = 10", "steps = 10\nruntime = 'os.system'"),
    GOOD.replace("n = 5", f"n = {10**12}"),
    GOOD.replace("dim = 2", f"dim = {10**9}"),
    GOOD.replace("dim = 2", "dim = 2\nsamples = [1, [2]]"),
    GOOD.replace("dim = 2", 'data = "\\u0000"'),
    GOOD.replace("dim = 2", 'data = "/"'),
    GOOD.replace("dim = 2", 'data = "/dev/zero"'),
    GOOD.replace("dim = 2", 'data = "my.toml"'),
    GOOD.replace("dim = 2", f'data = "{"x" * 5000}"'),
    GOOD.replace("dim = 2", 'data = "a\\u001b[31mb"'),
    GOOD.replace("dim = 2", "data = [1]"),
    GOOD.replace('"ring"\nn = 5', '"read"\npath = "\\u0000"'),
    GOOD.replace('"ring"\nn = 5', '"read"\npath = "/"'),
    GOOD.replace('"ring"\nn = 5', '"read"\npath = "a\\u001b[31mb"'),
    GOOD.replace('"ring"\nn = 5', f'"read"\npath = "{"x" * 5000}"'),
    GOOD.replace('"ring"\nn = 5', '"from_edges"\nedges = [[0, 1], [1]]'),
    GOOD.replace('"MHLJ"', '"os:system"'),
    GOOD.replace('"MHLJ"', '"os:path"'),
    GOOD.replace('"MHLJ"', '"builtins:int"'),
    GOOD.replace('"MHLJ"', '"../x:Y"'),
    GOOD.replace('"MHLJ"', '"freewalk.designs:Design"'),
    GOOD.replace('"one"', '"\\u202eevil"'),
]


@pytest.mark.parametrize("text", JUNK, ids=range(len(JUNK)))
def test_junk(here: Path, text: str) -> None:
    refused(text, here)


def test_what_is_no_file_of_a_spec(here: Path) -> None:
    (here / "big.toml").write_bytes(b"#" * 10_000_001)
    for path, words in (
        ("/dev/zero", "has more than 10,000,000 bytes"),
        ("big.toml", "has more than"),
        (".", "cannot be read"),
        ("none.toml", "cannot be read"),
    ):
        result = CliRunner().invoke(cli.app, ["run", path])
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "diagnose", "compare", "sweep"])
@pytest.mark.parametrize("path", ["5", "true", "[]", "2.5", "1979-05-27", '"\\u0000"', f'"{"x" * 100_000}"'])
def test_the_path_of_a_graph_is_a_text(here: Path, command: str, path: str) -> None:
    text = GOOD.replace('kind = "ring"\nn = 5', f'kind = "read"\npath = {path}')
    (here / "spec.toml").write_text(text + '[sweep]\n"run.steps" = [4, 6]\n' * (command == "sweep"))
    result = CliRunner().invoke(cli.app, [command, "spec.toml"])
    assert result.exit_code == 2
    assert "path" in result.stderr
    assert len(result.stderr) < 400
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run spec.toml --out", "run", "resume", "report", "diagnose", "sweep", "plot"])
def test_a_long_path_is_not_shown_whole(here: Path, command: str) -> None:
    (here / "spec.toml").write_text(GOOD)
    result = CliRunner().invoke(cli.app, [*command.split(), "x" * 100_000])
    assert result.exit_code == 2
    assert "xxx" in result.stderr
    assert len(result.stderr) < 400

"""Points: where values are put, what is refused, and what the hash of a point depends on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sweeps import BASE, MINE, SWEEP

from freewalk.errors import SpecError
from freewalk.specs import parse as parse_spec
from freewalk.sweeps.hashes import hash_of
from freewalk.sweeps.points import Sweep, in_words, sweep_of, text_of


def sweep(table: str, base: str = BASE) -> Sweep:
    return sweep_of(parse_spec(f"{base}\n[sweep]\n{table}\n", "my.toml"))


def test_every_value_comes_with_every_other_and_zipped_ones_together() -> None:
    text = '"problem.seed" = [1, 2]\n"walk.0.rule.step" = [0.1, 0.2, 0.3]\n'
    text += '[[sweep.zip]]\n"graph.n" = [5, 6]\n"run.steps" = [10, 20]'
    made = sweep(text)
    assert (made.shape, len(made)) == ((2, 3, 2), 12)
    found = [(one.spec.tables.problem["seed"], one.spec.tables.walk[0].rule["step"]) for one in made.points]  # type: ignore[index]
    assert found[::2] == [(seed, step) for seed in (1, 2) for step in (0.1, 0.2, 0.3)]
    assert {(one.spec.tables.graph["n"], one.spec.tables.run.steps) for one in made.points} == {(5, 10), (6, 20)}
    assert [one.place for one in made.points[:3]] == [(0, 0, 0), (0, 0, 1), (0, 1, 0)]
    assert made.points[1].words == "problem.seed = 1, walk.0.rule.step = 0.1, graph.n = 6, run.steps = 20"


@pytest.mark.parametrize(
    ("key", "walks"),
    [("walk.0.rule.step", [0]), ("walk.MHLJ.rule.step", [1]), ("walk.*.rule.step", [0, 1])],
)
def test_walks_by_number_label_or_all(key: str, walks: list[int]) -> None:
    tables = sweep(f'"{key}" = [0.5]').points[0].spec.tables
    assert [number for number, walk in enumerate(tables.walk) if walk.rule["step"] == 0.5] == walks  # type: ignore[index]


def test_a_label_may_hold_dots_and_a_phase_has_a_number() -> None:
    base = BASE.replace('"MHLJ"\ndesign', '"a.b"\ndesign')
    assert sweep('"walk.a.b.design.jump" = [0.7]', base).points[0].spec.tables.walk[1].design["jump"] == 0.7  # type: ignore[index]
    phase = BASE + '[[walk]]\nlabel = "c"\n[[walk.phase]]\n'
    phase += 'design = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 1.0 }\n'
    assert sweep('"walk.c.phase.0.rule.step" = [0.7]', phase).points[0].spec.tables.walk[2].phase[0].rule["step"] == 0.7


def test_walks_without_a_label_get_one_that_stays_the_same() -> None:
    base = BASE.replace('label = "MHLJ"\n', "").replace('label = "uniform"\n', "")
    made = sweep('"walk.MHLJ.design.jump" = [0.1, 0.5]', base)
    assert [[walk.label for walk in one.spec.tables.walk] for one in made.points] == [["Metropolis", "MHLJ"]] * 2


def test_walks_of_the_same_kind_are_numbered() -> None:
    base = BASE.replace('label = "MHLJ"\n', "").replace('label = "uniform"\n', "").replace('"Metropolis"', '"MHLJ"')
    base = base.replace('"MHLJ" }', '"MHLJ", jump = 0.1, stop = 0.5, hops = 2 }')
    assert [walk.label for walk in sweep('"walk.MHLJ.rule.step" = [0.1]', base).points[0].spec.tables.walk] == [
        "MHLJ",
        "MHLJ 2",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.001, "0.001"), ("uniform", "uniform"), ({"kind": "MHLJ", "jump": 0.1}, "MHLJ jump=0.1"), (True, "true")],
)
def test_values_in_words(value: Any, words: str) -> None:
    assert in_words(value) == words


def test_whole_tables_and_new_ones_can_be_put_in() -> None:
    made = sweep(
        '"walk.0.design" = [{ kind = "SimpleWalk" }, { kind = "Metropolis", power = 1 }]\n"run.goal.loss" = [0.5]'
    )
    assert [one.spec.tables.walk[0].design["kind"] for one in made.points] == ["SimpleWalk", "Metropolis"]  # type: ignore[index]
    assert made.points[0].spec.tables.run.goal == {"loss": 0.5}
    assert made.points[1].setting["walk.0.design"] == {"kind": "Metropolis", "power": 1}
    assert "walk.0.design = Metropolis power=1" in made.points[1].words


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('"grph.n" = [5]', r'"grph.n": the top of the file has no key .grph.; did you mean .graph.\?'),
        ('"graph.m" = [5]', r'"graph.m": \[graph\].*has no (key|parameter) .m.'),
        ('"run.step" = [5]', r'"run.step": \[run\] has no key .step.; did you mean .steps.\?'),
        ('"problem.nois" = [5.0]', r'"problem.nois": \[problem\].*did you mean .noise.\?'),
        ('"walk.MHJ.design.jump" = [0.5]', r"there is no walk .MHJ.; did you mean .MHLJ.\?"),
        ('"walk.7.design.jump" = [0.5]', "there is no walk 7, expected 0 to 1, or a label"),
        ('"walk.*.design.jump" = [0.5]', r"""\[\[walk\]\] 1 'uniform'.*jump"""),
        ('"walk.0" = [0.5]', "names a walk and nothing in it"),
        ('"walk.0.desing.kind" = ["MHLJ"]', r"has no key .desing.; did you mean .design.\?"),
        ('"graph.n.x" = [5]', "graph.n is 6, expected a table that has the key 'x'"),
        ('"graph.n" = ["five"]', r'"graph.n": \[graph\].*n = .five., expected a whole number'),
        ('"sweep.n" = [1]', "is not a key of a spec"),
        ('"run..steps" = [1]', "is not a key of a spec"),
        (
            '"walk.*.rule.step" = [0.5]\n"walk.0.rule.step" = [0.1]',
            "set the same value, expected each value by one key",
        ),
        ('"graph" = [{ kind = "ring", n = 5 }]\n"graph.n" = [6]', "'graph' and 'graph.n' set the same value"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(table: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        sweep(table)
    assert str(caught.value).startswith("my.toml: [sweep]")


def test_a_value_that_only_some_points_have_wrong_is_named_with_its_point() -> None:
    with pytest.raises(SpecError, match=r"steps = 0, expected .* \(at run.steps = 0, problem.seed = 1\)"):
        sweep('"run.steps" = [5, 0]\n"problem.seed" = [1, 2]')


def test_a_spec_without_the_table_says_so_and_can_be_swept_from_python() -> None:
    with pytest.raises(SpecError, match=r"has no table \[sweep\].*freewalk example sweep"):
        sweep_of(parse_spec(BASE, "my.toml"))
    spec = parse_spec(BASE, "my.toml")
    over: dict[str, Any] = {"graph.n": np.array([5, 6]), "zip": [{"run.seed": range(2), "problem.seed": (3, 4)}]}
    made = sweep_of(spec, over)
    assert made.shape == (2, 2)
    assert made.points[-1].setting == {"graph.n": 6, "run.seed": 1, "problem.seed": 4}
    assert sweep_of(parse_spec(made.spec.text, "my.toml")).shape == (2, 2)  # it is in the text as well
    for wrong in (3, {"graph.n": object()}, {"graph.n": [object()]}, {"graph.n": None}):
        with pytest.raises(SpecError, match=r"sweep|graph\.n"):
            sweep_of(spec, wrong)  # type: ignore[arg-type]


def test_a_spec_with_the_table_runs_as_it_is() -> None:
    plain, swept = (parse_spec(text, "my.toml").run().data for text in (BASE, BASE + SWEEP))
    assert swept.identical(plain)


def test_the_text_of_a_point_is_a_spec_that_says_the_same() -> None:
    made = sweep_of(parse_spec(BASE + SWEEP, "my.toml"))
    for point in made.points:
        again = parse_spec(text_of(point.spec), "again.toml")
        assert again.tables.model_dump(exclude={"name"}) == point.spec.tables.model_dump(exclude={"name"})


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5, unique=True), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_points_of_two_sweeps_have_the_same_hash_where_they_are_the_same(seeds: list[int], seed: int) -> None:
    one = sweep(f'"problem.seed" = {seeds}')
    other = sweep(f'"run.seed" = [7]\n"problem.seed" = {[*seeds, max(seeds) + 1]}')
    keys = [point.key for point in one.points]
    assert len(set(keys)) == len(seeds)
    assert [point.key for point in other.points[:-1]] == keys
    assert other.points[-1].key not in keys


def test_the_hash_of_values_depends_on_their_type_and_not_on_their_order() -> None:
    assert len(hash_of(seed=1)) == 32
    assert hash_of(a=1, b=2) == hash_of(b=2, a=1)
    assert hash_of(a=1) != hash_of(a=1.0)


def test_what_the_hash_depends_on() -> None:
    def key(base: str) -> str:
        return sweep('"problem.seed" = [3]', base).points[0].key

    same = ["# a comment\n" + BASE, BASE.replace('"small"', '"other"'), BASE + "[compare]\ngoal = 2.0\n"]
    same.append(BASE.replace("seed = 7", "checkpoint = 5.0\nseed = 7"))
    assert {key(base) for base in same} == {key(BASE)}
    others = [
        ("n = 6", "n = 7"),
        ("1e-2", "1e-3"),
        ("seed = 7", "seed = 8"),
        ('"MHLJ"\nd', '"M"\nd'),
        ("dim = 2", "dim = 2.0"),
    ]
    assert len({key(BASE.replace(*change)) for change in others[:4]} | {key(BASE)}) == 5


def test_the_hash_depends_on_files_and_on_modules_and_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,y\n" + "1,2\n" * 12)
    (tmp_path / "mine.py").write_text("from helper import something\n" + MINE)
    (tmp_path / "helper.py").write_text("something = 1\n")
    (tmp_path / "unrelated.py").write_text("something = 1\n")
    base = BASE.replace("dim = 2\nheavy = 1\nseed = 1\n", 'data = "data.csv"\ntarget = "y"\n')
    own = BASE.replace('"LeastSquares"\ndim = 2\nheavy = 1\nseed = 1\n', '"mine:Slow"\n')

    def keys() -> tuple[str, str]:
        found = []
        for name, text in (("data.toml", base), ("own.toml", own)):
            (tmp_path / name).write_text(text + '[sweep]\n"run.seed" = [3]\n')
            found.append(sweep_of(tmp_path / name).points[0].key)
        return found[0], found[1]

    first = keys()
    (tmp_path / "unrelated.py").write_text("something = 2\n")
    assert keys() == first
    (tmp_path / "data.csv").write_text("a,y\n" + "1,3\n" * 12)
    second = keys()
    assert (second[0] != first[0], second[1] == first[1]) == (True, True)
    (tmp_path / "helper.py").write_text("something = 2\n")
    third = keys()
    assert (third[0] == second[0], third[1] != second[1]) == (True, True)
    (tmp_path / "mine.py").write_text("# new\n" + (tmp_path / "mine.py").read_text())
    assert keys()[1] != third[1]
    (tmp_path / "data.csv").unlink()
    with pytest.raises(SpecError, match=r"data.csv: cannot be read \(No such file"):
        keys()

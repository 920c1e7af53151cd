"""A spec says what to run, and a bad one says what is wrong before anything runs."""

import signal

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import SpecError
from freewalk.specs import load, parse, shipped

GRAPH = '[graph]\nkind = "ring"\nn = 10\n'
PROBLEM = '[problem]\nkind = "LeastSquares"\ndim = 3\nheavy = 2\nseed = 1\n'
RUN = '[run]\nsteps = 300\nwalks = 4\nevery = 50\nstart = "heaviest"\nseed = 3\n'
RULE = 'rule = { kind = "SGD", step = 1e-3 }\n'
WALK = '[[walk]]\nlabel = "simple"\ndesign = { kind = "SimpleWalk" }\n' + RULE
PHASE = '[[walk.phase]]\ndesign = { kind = "SimpleWalk" }\n' + RULE


def walk(design: str, label: str = "w") -> str:
    return f'[[walk]]\nlabel = "{label}"\ndesign = {{ {design} }}\n{RULE}'


def text(top: str = "", graph: str = GRAPH, problem: str = PROBLEM, run: str = RUN, walks: str = WALK) -> str:
    return top + graph + problem + run + walks


MHLJ = 'kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3'
GOOD = text(walks=WALK + walk(MHLJ, "MHLJ"))
WALK_1 = r"\[\[walk\]\] 1 'simple'"

BAD = [
    ("[graph\nkind = 1", r"is not TOML: .*line 1"),
    (text(walks=""), r"the top of the file needs the key 'walk': one or more tables \[\[walk\]\]"),
    (text(graph=""), r"needs the key 'graph'"),
    (text(walks=WALK.replace("[[walk]]", "[[walks]]")), r"has no key 'walks'; did you mean 'walk'\?"),
    (text("graph = 3\n", graph=""), r"graph = 3, expected a table such as"),
    (text('name = "../up"\n'), r"name = '../up', expected a plain name"),
    # [run]
    (text(run=RUN.replace("steps", "step")), r"\[run\] has no key 'step'; did you mean 'steps'\?"),
    (text(run=RUN + "colour = 1\n"), r"\[run\] has no key 'colour'; its keys are steps, walks"),
    (text(run="[run]\nwalks = 2\n"), r"\[run\] needs the key 'steps': a whole number >= 1"),
    (text(run=RUN.replace("300", '"many"')), r"\[run\]: steps = 'many', expected a whole number >= 1"),
    (text(run=RUN.replace("300", "2.5")), r"\[run\]: steps = 2.5, expected a whole number"),
    (text(run=RUN.replace("300", "true")), r"\[run\]: steps = true, expected a whole number"),
    (text(run=RUN.replace("300", "[1]")), r"\[run\]: steps is a list, expected a whole number"),
    (text(run=RUN.replace("300", "0")), r"\[run\]: steps = 0, expected a whole number >= 1"),
    (text(run=RUN.replace('"heaviest"', "1.5")), r"start = 1.5, expected a node, a list"),
    (text(run=RUN.replace('"heaviest"', "99")), r"\[run\]: start = 99, expected a whole number from 0 to 9; give"),
    (text(run=RUN.replace("heaviest", "heavyest")), r"'heavyest', expected .*'uniform' or 'heaviest'"),
    (
        text(run=RUN + 'runtime = "gpu"\n'),
        r"\[run\]: .*runtime = 'gpu', expected 'cpu', 'cuda', 'ray', 'reference' or 'torch'; a graphics card",
    ),
    (text(run=RUN + 'precision = "double"\n'), r"\[run\]: .*precision = 'double'"),
    (text(run=RUN + "paths = 9\n"), r"\[run\]: paths = 9, expected a whole number from 0 to 4; give"),
    # [graph] and [problem]
    (text(graph="[graph]\nn = 10\n"), r"\[graph\] needs the key 'kind', one of barabasi_albert"),
    (text(graph=GRAPH.replace("ring", "rnig")), r"\[graph\] has no kind 'rnig'; did you mean 'ring'\?"),
    (text(graph=GRAPH.replace("ring", "Graph")), r"\[graph\] has no kind 'Graph'"),
    (text(graph=GRAPH.replace("ring", "mesh")), r"has no kind 'mesh'; there are .*erdos_renyi"),
    (text(graph='[graph]\nkind = "ring"\n'), r"\[graph\]: ring needs the parameter 'n': ring\(n\)"),
    (text(graph=GRAPH + "m = 3\n"), r"\[graph\]: ring has no parameter 'm'; it takes n"),
    (text(graph=GRAPH.replace("10", "1")), r"\[graph\]: ring: n = 1, expected"),
    (text(graph=GRAPH.replace("10", '"x"')), r"\[graph\]: ring: n = 'x', expected a whole number"),
    (text(problem=PROBLEM.replace("heavy", "havy")), r"has no parameter 'havy'; did you mean 'heavy'\?"),
    (text(problem=PROBLEM + "noise = -1.0\n"), r"\[problem\]: .*noise = -1.0, expected"),
    (text(problem=PROBLEM + "noise = { a = 1 }\n"), r"noise is a table, expected a number"),
    # [[walk]]
    (text(walks=WALK.replace("SimpleWalk", "Simple")), WALK_1 + r": design has no kind 'Simple'; .*'SimpleWalk'"),
    (text(walks=WALK.replace("rule =", "# rule =")), WALK_1 + r" needs the key 'rule'"),
    (text(walks=WALK.replace('{ kind = "SimpleWalk" }', "5")), r"design = 5, expected a table such as"),
    (text(walks=walk('kind = "SimpleWalk", power = 1')), r"SimpleWalk has no parameter 'power'; it takes none"),
    (text(walks=walk(MHLJ.replace("hops", "hop"))), r"MHLJ has no parameter 'hop'; did you mean 'hops'\?"),
    (text(walks=walk(MHLJ.replace(", hops = 3", ""))), r"MHLJ needs the parameter 'hops'"),
    (text(walks=walk(MHLJ.replace("0.1", '"x"'))), r"MHLJ: jump = 'x', expected a number"),
    (text(walks=walk(MHLJ.replace("0.1", "1.5"))), r"jump = 1.5, expected a probability"),
    (text(walks=walk('kind = "Decaying", design = 3, schedule = 2')), r"design = 3, expected a design such as"),
    (text(walks=walk('kind = "FromMatrix", P = [[1, 0], [0, 1]]')), r"\[\[walk\]\] 1 'w': .*shape \(2, 2\)"),
    (text(walks=WALK.replace("1e-3", "-1.0")), WALK_1 + r": rule: SGD: step = -1.0"),
    (text(walks=WALK.replace("1e-3", "{ initial = 1.0 }")), r"SGD: step needs the key 'kind', one of Constant"),
    (text(walks=WALK.replace("1e-3", '{ kind = "Inverse", scal = 3 }')), r"did you mean 'scale'\?"),
    (text(walks=WALK + WALK), r"\[\[walk\]\] 2 'simple': another \[\[walk\]\] is also called 'simple'"),
    # [[walk.phase]]
    (text(walks=WALK + PHASE), r"has phases as well as a design or a rule"),
    (text(walks="[[walk]]\n" + PHASE + "untl = 5\n"), r"1, phase 1 has no key 'untl'; did you mean 'until'\?"),
    (text(walks="[[walk]]\n" + PHASE + 'until = "8"\n'), r"phase 1: until = '8', expected a whole number >= 1"),
    (text(walks="[[walk]]\n" + PHASE + "until = 5\n"), r"phases: the last ends at step 5, before the 300"),
    (text(walks="[[walk]]\n" + 2 * (PHASE + "until = 8\n")), r"phases end at \[8, 8\]"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_spec_is_refused_by_name_and_place(bad: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse(bad, "my.toml").plan()
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_unreadable_files(tmp_path) -> None:
    with pytest.raises(SpecError, match=r"none.toml: cannot be read \(No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(SpecError, match=r"cannot be read"):
        load(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"not a text in UTF-8"):
        load(binary)


def test_a_run_is_what_learn_does() -> None:
    record = parse(GOOD, "my.toml").run()
    graph = fw.graphs.ring(10)
    problem = fw.objectives.LeastSquares.synthetic(10, dim=3, heavy=2, seed=1)
    kernel = fw.designs.MHLJ(0.1, 0.5, 3).kernel(graph, problem.smoothness)
    start = int(np.argmax(problem.smoothness))
    alone = fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=300, walks=4, every=50, start=start, seed=3)
    assert list(record.data.design.values) == ["simple", "MHLJ"]
    np.testing.assert_array_equal(record.data.mse.sel(design="MHLJ"), alone.data.mse)
    np.testing.assert_array_equal(record.data.visits.sel(design="MHLJ"), alone.data.visits)
    assert record.provenance["spec"] == GOOD
    assert not record.partial


def test_whole_numbers_may_be_written_as_floats() -> None:
    spec = parse(GOOD.replace("n = 10", "n = 1e1").replace("steps = 300", "steps = 3e2"))
    assert (spec.tables.run.steps, spec.plan().problem.n) == (300, 10)


def test_a_graph_is_read_from_a_file_in_the_folder_of_the_spec(tmp_path) -> None:
    np.savetxt(tmp_path / "edges.txt", [(0, 1), (1, 2), (2, 0)], fmt="%d")
    (tmp_path / "my.toml").write_text(text(graph='[graph]\nkind = "read"\npath = "edges.txt"\n'))
    assert load(tmp_path / "my.toml").plan().problem.n == 3
    absolute = f'[graph]\nkind = "read"\npath = "{tmp_path}/edges.txt"\n'
    assert parse(text(graph=absolute)).plan().problem.n == 3


def test_the_example_runs_and_shows_phases_and_schedules() -> None:
    spec = load(shipped("example.toml"))
    plan = spec.plan()
    assert spec.name == "example"
    assert [len(phases) for phases in plan.walks.values()] == [1, 1, 1, 1, 2, 1, 1]
    assert plan.walks["MHLJ, fewer jumps"][0].kernel.fade == fw.schedules.Exponential(1.0, 1000)
    assert plan.walks["MHLJ, smaller steps"][0].rule == fw.SGD(step=fw.schedules.Inverse(2e-2, 1000))


def test_the_demo_is_the_main_job() -> None:
    plan = load(shipped("demo.toml")).plan()
    assert plan.problem.n == 1000
    assert plan.options["walks"] == 1000
    assert plan.problem.heavy == (0, 1)
    assert plan.options["start"] == "heaviest"
    kinds = {phase.kernel.label.split(",")[0] for phases in plan.walks.values() for phase in phases}
    assert kinds == {"MH uniform", "MH importance", "MHLJ", "simple walk", "centralized"}


def test_options_are_replaced_in_the_text_as_well() -> None:
    spec = parse(GOOD.replace("seed = 3", "seed = 3  # of the walks"), "my.toml")
    other = spec.replaced(seed=11, runtime="reference")
    assert (other.tables.run.seed, other.tables.run.runtime) == (11, "reference")
    assert parse(other.text, "my.toml") == other
    assert "# of the walks" in other.text
    assert other.tables.problem["seed"] == 1
    with pytest.raises(SpecError, match=r"seed = -1"):
        spec.replaced(seed=-1)
    with pytest.raises(SpecError, match=r"seed = None, expected a text or a whole number"):
        spec.replaced(seed=None)


RUNS = {
    "a table": "[run]  # how long\nsteps = 5\n\n# what follows\n",
    "a table with spaces": "  [ run ]\n  steps = 5\n",
    "a table that has the options": "[run]\nsteps = 5\nseed=3 # seed = 4\nruntime = 'cpu'\n",
    "a quoted key": '[run]\nsteps = 5\n"seed" = 3\n',
    "windows": "[run]\r\nsteps = 5\r\nseed = 3\r\n",
    "an inline table": "run = { steps = 5 }  # short\n",
    "an inline table that has one": "run = {steps=5,seed=3}\n",
    "dotted keys": "run.steps = 5\nrun.seed = 3\n",
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_options_are_replaced_however_they_are_written(run: str) -> None:
    others = GRAPH + PROBLEM + WALK
    kept = [line for line in run.splitlines() if "seed" not in line and "runtime" not in line and "{" not in line]
    for text in [run + others, others + run] if "[" in run else [run + others]:  # only a table can be the last
        spec = parse(text)
        other = spec.replaced(seed=11, runtime="reference")
        changed = spec.tables.run.model_copy(update={"seed": 11, "runtime": "reference"})
        assert other.tables == spec.tables.model_copy(update={"run": changed})
        assert parse(other.text) == other
        assert [line for line in other.text.splitlines() if line in kept] == kept
        assert others in other.text
        assert other.text.count("#") == text.count("#")


def test_progress_counts_all_designs() -> None:
    calls = []
    parse(GOOD).run(lambda *call: calls.append(call))
    assert calls[-1] == ("MHLJ", 600, 600, 4)
    assert [call[1] for call in calls] == sorted(call[1] for call in calls)


@pytest.mark.parametrize("last", [64, 300], ids=["within a walk", "in its last chunk"])
def test_an_interrupted_run_goes_on_to_the_same_result(last: int) -> None:
    spec = parse(GOOD + walk('kind = "Centralized"', "third"), "my.toml")
    whole = spec.run()
    kept: dict[int, fw.Record] = {}

    def interrupt(label: str, done: int, total: int, walks: int) -> None:
        if label == "MHLJ" and done >= 300 + last:
            signal.raise_signal(signal.SIGINT)

    part = spec.run(interrupt, keep=kept.__setitem__)
    assert part.partial
    assert list(part.data.design.values) == ["simple", "MHLJ"]
    assert list(kept) == [0, 1]
    assert kept[1].partial == (last < 300)
    assert not kept[0].partial
    rest = spec.run(done=list(kept.values()))
    assert not rest.partial
    for name in whole.data.data_vars:
        np.testing.assert_array_equal(rest.data[name], whole.data[name], err_msg=str(name))


def test_paths_of_an_interrupted_run_fit_side_by_side() -> None:
    spec = parse(GOOD.replace("seed = 3", "seed = 3\npaths = 1"), "my.toml")

    def interrupt(label: str, done: int, total: int, walks: int) -> None:
        if label == "MHLJ":
            signal.raise_signal(signal.SIGINT)

    part = spec.run(interrupt)
    assert part.partial
    assert part.data.path.sel(design="simple").notnull().all()
    assert part.data.path.sel(design="MHLJ").isnull().any()

"""A comparison is fair: steps by one rule, the same goal, and no number without its uncertainty."""

import json
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
import xarray
from commands import call

import freewalk as fw
from freewalk.baselines import Method
from freewalk.comparison import Budget
from freewalk.comparison.result import Span, short, short_range, spans
from freewalk.comparison.steps import exact_step
from freewalk.comparison.track import Contestant, Track
from freewalk.report.measures import crossings
from freewalk.run.record import Record

GRAPH = fw.graphs.ring(8)
PROBLEM = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=3, noise=0.5, seed=1)
UNIFORM = Method("uniform", fw.designs.Metropolis(), fw.SGD(0.01))
TRACKING = fw.baselines.gradient_tracking(0.01)
GOAL = 1.05  # near enough that noise limits the step of a walk, which is then known exactly
OPTIONS = {"goal": GOAL, "runtime": "cpu", "most": 30_000, "walks": 8}


def track(**options) -> Track:
    best = PROBLEM.measure(PROBLEM.optimum())["mse"]
    common = {"start": None, "initial": None, "runtime": "cpu", "precision": "float64"}
    return Track(PROBLEM, GRAPH, GOAL * best, best, 0, 8, 30_000, common, lambda words: None, **options)


@pytest.fixture(scope="module")
def found() -> fw.comparison.Comparison:
    """Two contestants, one of which draws nothing."""
    return fw.compare(PROBLEM, GRAPH, [UNIFORM, TRACKING], **OPTIONS)


def test_crossings_are_interpolated_on_the_log_scale() -> None:
    times = np.arange(101.0)
    for rate in (0.02, 0.05, 0.11):
        place = crossings(np.exp(-rate * times)[None], np.exp(-1.0))[0]
        assert place == pytest.approx(1 / rate, rel=1e-12)
    assert crossings(np.array([[np.inf, np.inf, 0.5]]), 1.0)[0] == 2
    curves = np.array([[4.0, 2.0, 0.5], [4.0, 3.0, 2.0], [1.0, 1.0, 1.0]])
    assert crossings(curves, 1.0).tolist() == [1.5, np.inf, 0.0]
    assert crossings(curves, 1.0, between=False).tolist() == [2.0, np.inf, 0.0]


def test_counts_are_short() -> None:
    counts = {12_345: "12.3 k", 512.3: "512", 89.84: "90", 0.3: "1", 2e9: "2 G", 1234: "1.23 k", 999_600: "1 M", 0: "0"}
    assert {count: short(count) for count in counts} == counts
    assert short_range(11_900, 12_800) == "11.9–12.8 k"
    assert short_range(900, 1100) == "900–1.1 k"
    assert short_range(35.6, 97.2) == "36–97"
    assert short_range(125.0, float("inf")) == "≥ 125"
    assert short_range(float("inf"), float("inf")) == "not known"


def test_the_interval_of_a_crossing_has_its_level() -> None:
    """Of 200 samples of 50 walks, intervals miss 5 %; that 24 or more do has a probability below 1e-4 if 5.5 % do."""
    generator, times, missed = np.random.default_rng(1), np.arange(60.0), 0
    level = np.exp(-2.0)
    for seed in range(200):
        noise = np.exp(0.5 * generator.normal(size=(50, 1)) - 0.125)
        span = spans(noise * np.exp(-times / 10), level, {"rounds": times}, seed)["rounds"]
        missed += not span.low <= 20.0 <= span.high
    assert missed < 26


def test_an_interval_may_be_open() -> None:
    values = np.array([[2.0, 1.9, 0.9], [2.0, 1.9, 1.09]])
    span = spans(values, 1.0, {"rounds": np.arange(3.0), "messages": np.arange(6.0).reshape(2, 3)}, 0)
    assert span["rounds"] == (2, 2, np.inf)  # a mean is at the goal where it was measured, and nowhere between
    assert span["messages"].value == 2 + 1.5
    assert spans(values, 0.1, {"rounds": np.arange(3.0)}, 0) == {"rounds": None}
    assert np.isnan(spans(values[:1], 1.0, {"rounds": np.arange(3.0)}, 0)["rounds"].low)


def test_rounds_are_whole_and_open_intervals_are_explained(found: fw.comparison.Comparison) -> None:
    for row in found.rows:
        ends = [end for axis in ("updates", "rounds") for end in row.to_goal[axis] if np.isfinite(end)]
        assert all(end == int(end) >= 1 for end in ends)
    assert "≥" not in found.text()
    moving = found.rows[0]
    open_ended = replace(moving, to_goal={**moving.to_goal, "messages": Span(0.944, 0.9, np.inf)})
    text = replace(found, rows=(open_ended, *found.rows[1:])).text()
    assert "0.944" not in text
    assert "≥ 1 " in text
    assert "'≥': the interval has no upper end" in " ".join(text.split())
    assert "first measured round at the goal" in " ".join(text.split())


def test_a_walk_takes_as_many_updates_as_its_exact_recursion_says() -> None:
    best = PROBLEM.loss(PROBLEM.optimum())
    exact = fw.analysis.race(PROBLEM, UNIFORM.kernel(GRAPH, PROBLEM), settle=0.025 * best, reach=0.05 * best)
    method = UNIFORM.with_step(exact.step)
    found = fw.compare(PROBLEM, GRAPH, [method], goal=GOAL, walks=400, seed=3, most=30_000, keep_steps=True)
    (row,) = found.rows
    assert exact_step(Contestant(track(), UNIFORM)) == pytest.approx(exact.step, rel=0.01)
    for axis, expected in (("updates", exact.updates), ("rounds", exact.updates), ("messages", exact.messages)):
        span = row.to_goal[axis]
        assert span.low < expected < span.high
        assert span.high / span.low < 1.5
    assert row.to_goal["bytes"].value == pytest.approx(24 * row.to_goal["messages"].value)


def test_the_search_comes_near_the_best_step(found: fw.comparison.Comparison) -> None:
    row = found.rows[1]
    assert (row.how, row.draws, row.walks) == ("search", False, 1)
    assert 0 < row.pilot_runs <= Budget().runs
    assert 0 < row.pilot_updates <= Budget().updates
    contestant = Contestant(track(), TRACKING)
    runs = [contestant.run(row.step * 2.0**power, 60, 1, 0) for power in np.arange(-1, 1.6, 0.25)]
    lasting = [run for run in runs if contestant.mean_of(run)[-1] <= contestant.track.level]  # others swing, and dip
    assert row.to_goal["rounds"].value < 1.5 * min(map(contestant.rounds_to_goal, lasting))
    assert exact_step(contestant) is None


def test_the_search_goes_up_from_the_exact_step() -> None:
    """With a step that settles at half of the goal's excess a walk on a large ring takes far longer than it has to."""
    graph = fw.graphs.ring(100)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=50, heavy_variance=1, shift=0.5, seed=1)
    options = {"goal": 2.0, "walks": 100, "seed": 1, "most": 1_000_000}
    (row,) = fw.compare(problem, graph, [UNIFORM], **options).rows
    best = problem.measure(problem.optimum())["mse"]
    step = exact_step(Contestant(replace(track(), problem=problem, graph=graph, level=2 * best, optimum=best), UNIFORM))
    (exact,) = fw.compare(problem, graph, [UNIFORM.with_step(step)], keep_steps=True, **options).rows
    assert row.how == "search"
    assert row.step > 1.2 * step
    assert row.stayed
    assert row.to_goal["rounds"].value < exact.to_goal["rounds"].low


@pytest.mark.parametrize(("above", "stays"), [(0, True), (2, True), (5, False)])
def test_a_mean_that_lingers_at_the_goal_does_not_stay(above: int, stays: bool) -> None:
    """Of 60 checkpoints after the goal three may be above it, however low the mean of all is."""
    contestant, times = Contestant(track(), UNIFORM), np.arange(80)
    level = contestant.track.level
    values = np.where(times < 20, 2 * level, 0.5 * level)
    values[30 : 30 + above] = 1.01 * level
    data = xarray.Dataset({"mse": (("walk", "step"), values[None])}, coords={"step": times})
    assert contestant.stays(Record(data)) is stays


def test_exact_steps_are_also_those_of_tokens_that_do_not_mix() -> None:
    one, two = (exact_step(Contestant(track(), fw.baselines.multi_walk_sgd(0.1, tokens))) for tokens in (1, 2))
    assert one is not None
    assert two is not None
    assert two > one  # the mean of two models has half of the noise
    assert exact_step(Contestant(track(), fw.baselines.multi_walk_sgd(0.1, 2, meet=True))) is None


def test_what_draws_nothing_has_no_interval_and_says_so(found: fw.comparison.Comparison) -> None:
    words = found.text(80)
    assert np.isnan(found.rows[1].to_goal["updates"].low)
    assert words.count("no draws") == 5
    assert "'no draws': nothing is random" in " ".join(words.split())
    assert max(map(len, words.splitlines())) <= 80
    assert f"spent {sum(row.pilot_runs for row in found.rows)} runs" in " ".join(words.split())
    assert found.record.data.walks.values.tolist() == [8, 1]
    assert str(found) == found.text()


def test_a_comparison_is_the_same_again(found: fw.comparison.Comparison) -> None:
    assert fw.compare(PROBLEM, GRAPH, [UNIFORM, TRACKING], **OPTIONS).as_dict() == found.as_dict()


def test_steps_may_be_kept_and_goals_missed() -> None:
    slow, wild = Method("slow", fw.designs.SimpleWalk(), fw.SGD(1e-6)), TRACKING.with_step(1e3)
    scheduled = Method("scheduled", fw.designs.SimpleWalk(), fw.SGD(fw.schedules.Inverse(0.01, 1000)))
    found = fw.compare(PROBLEM, GRAPH, [slow, wild, scheduled], keep_steps=True, **{**OPTIONS, "most": 400})
    assert [row.how for row in found.rows] == ["given"] * 3
    assert [row.step for row in found.rows] == [1e-6, 1e3, None]
    assert not found.rows[0].reached
    assert found.rows[0].in_all["updates"] == 400
    assert found.rows[1].diverged == 1
    words = found.text()
    assert "> 400" in words
    assert "1 of 1" in words
    assert "'>': not reached; a walk may make 400 updates." in " ".join(words.split())
    assert found.as_dict()["rows"][1]["final"] is None


class Centres(fw.Objective):
    """f_v(x) = ½‖x − c_v‖²: a gradient, but no slope that could be compiled."""

    precision = "float32"
    centres = np.random.default_rng(1).normal(1.0, 0.2, (GRAPH.n, 3))
    n, dim, smoothness = GRAPH.n, 3, np.ones(GRAPH.n)

    def loss(self, x):
        return float(0.5 * np.mean(np.sum((x - self.centres) ** 2, axis=1)))

    def gradient(self, node, x, sample=None):
        return np.asarray(x - self.centres[node])

    def optimum(self):
        return self.centres.mean(axis=0)


def runtimes_of(record: Record) -> list[str]:
    return [part["runtime"] for part in record.provenance["parts"].values()]


def test_runtime_and_precision_are_those_that_suit_what_is_run() -> None:
    solving = Method("solving", fw.designs.SimpleWalk(), fw.rules.Walkman(proximal=True))
    options = {"goal": GOAL, "most": 2000, "walks": 2, "keep_steps": True}
    found = fw.compare(PROBLEM, GRAPH, [UNIFORM, solving], **options).record
    assert runtimes_of(found) == ["CPU(threads=None)", "Reference()"]
    assert found.data.final.dtype == np.float64
    own = fw.compare(Centres(), GRAPH, [UNIFORM, TRACKING], **options).record
    assert runtimes_of(own) == ["Reference()", "Reference()"]
    assert own.data.final.dtype == np.float32
    wide = fw.compare(Centres(), GRAPH, [TRACKING], **options, precision="float64").record
    assert wide.data.final.dtype == np.float64


def test_a_search_that_finds_nothing_keeps_to_its_budget() -> None:
    budget = Budget(runs=3, updates=10_000, walks=2)
    found = fw.compare(PROBLEM, GRAPH, [TRACKING], budget=budget, **{**OPTIONS, "most": 24})
    (row,) = found.rows
    assert not row.reached
    assert row.pilot_runs <= 3
    assert row.pilot_updates <= 10_000


def test_a_goal_above_the_first_model_names_the_goals_that_are_left() -> None:
    """A loss of logistic regression begins at log 2: its optimum leaves little room for a multiple."""
    problem = fw.objectives.Logistic.synthetic(8, dim=2, seed=3)
    best = problem.loss(problem.optimum())
    with pytest.raises(fw.FreewalkError, match=r"for loss is 5 × .*, which the first model, 0.6931, already") as error:
        fw.compare(problem, GRAPH, [UNIFORM], goal=5.0)
    (most,) = re.findall(r"choose a goal below ([\d.]+), or", str(error.value))
    assert np.log(2) / best - 2e-3 < float(most) <= np.log(2) / best
    found = fw.compare(problem, GRAPH, [UNIFORM], goal=float(most) - 1e-3, walks=4, most=2000)
    assert found.rows[0].reached
    with pytest.raises(fw.FreewalkError, match=r"already meets; choose another initial model$"):
        fw.compare(PROBLEM, GRAPH, [UNIFORM], initial=PROBLEM.optimum())


GOSSIPING = Method("gossiping", fw.designs.SimpleWalk(), fw.SGD(1), 8, fw.exchanges.Gossip())
NO_NOISE = fw.objectives.LeastSquares.synthetic(8, dim=3, noise=0.0, seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": 1.0}, "compare: goal = 1.0, expected a finite number > 1; 2 is twice the optimum"),
        ({"problem": NO_NOISE}, "compare: mse of LeastSquares is .* at the optimum, expected more than 0"),
        ({"contestants": []}, r"compare: contestants = \[\], expected a list of methods, such as"),
        ({"contestants": UNIFORM}, "compare: contestants"),
        ({"contestants": [fw.SGD(0.1)]}, "compare: a contestant = .*expected a method, such as"),
        ({"contestants": [UNIFORM, UNIFORM]}, "the labels of contestants = .*, expected different ones; rename them"),
        ({"contestants": [GOSSIPING]}, "compare: gossiping: Gossip: tokens move"),
        (
            {"goal": 1e6},
            r"compare: the goal for mse is 1e\+06 × the optimum of .*, which the first model, .*, already meets; "
            r"choose a goal below \d+\.\d+, or another initial model",
        ),
        ({"start": 99}, "compare: uniform: start = 99, expected"),
        ({"most": 0}, "compare: most = 0"),
        ({"runtime": "gpu"}, "runtime = 'gpu', expected"),
        ({"precision": "single"}, "compare: precision = 'single', expected 'float64' or 'float32'"),
        ({"walks": 0}, "compare: walks = 0"),
        ({"budget": 3}, "compare: budget = 3, expected a Budget, or None"),
        ({"progress": lambda: None}, "compare: progress"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(change: dict, message: str) -> None:
    options = {"problem": PROBLEM, "graph": GRAPH, "contestants": [UNIFORM], **OPTIONS, **change}
    with pytest.raises(fw.FreewalkError, match=message):
        fw.compare(**options)


@pytest.mark.parametrize("done", [0, 1])
def test_ctrl_c_keeps_what_was_done(done: int) -> None:
    def impatient(label: str, finished: int, total: int) -> None:
        if finished == done:
            signal.raise_signal(signal.SIGINT)

    def run() -> fw.comparison.Comparison:
        return fw.compare(PROBLEM, GRAPH, [UNIFORM, TRACKING], progress=impatient, **OPTIONS)

    if not done:
        with pytest.raises(KeyboardInterrupt):
            run()
        return
    found = run()
    assert found.partial
    assert [row.label for row in found.rows] == ["uniform"]
    assert "partial: the comparison was interrupted" in found.text()


def test_files(found: fw.comparison.Comparison, tmp_path) -> None:
    folder = found.save(tmp_path / "deep" / "folder", "Two <methods>")
    assert fw.load(folder / "record.npz").data.sizes["design"] == 2
    numbers = json.loads((folder / "comparison.json").read_text())
    assert numbers["rows"][1]["to_goal"]["rounds"]["low"] is None
    assert (folder / "table.txt").read_text() == found.text()
    page = (folder / "page.html").read_text()
    assert "Two &lt;methods&gt;" in page
    assert "goal: 1.05 " in page
    panels = [axes.get_xlabel() for axes in found.figure().axes]
    assert panels == ["updates", "messages", "bytes", "rounds"]


SPEC = """
name = "few"
[graph]
kind = "ring"
n = 8
[problem]
kind = "LeastSquares"
dim = 3
noise = 0.5
seed = 1
[run]
steps = 1
walks = 4
start = 0
runtime = "cpu"
[compare]
goal = 1.05
most = 20_000
budget = { runs = 20 }
[[walk]]
label = "uniform"
design = { kind = "Metropolis" }
rule = { kind = "SGD", step = 1 }
[[walk]]
method = { kind = "gradient_tracking", step = 1 }
"""


def test_a_spec_is_compared(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.toml").write_text(SPEC)
    result = call("compare", "few.toml")
    assert result.exit_code == 0, result.output
    assert "gradient tracking" in result.stdout
    folder = tmp_path / "runs" / "few-comparison"
    names = {"record.npz", "curves.png", "page.html", "table.txt", "comparison.json", "spec.toml"}
    assert {file.name for file in folder.iterdir()} == names
    numbers = json.loads((folder / "comparison.json").read_text())
    assert (numbers["goal"], numbers["most"], numbers["budget"]["runs"]) == (GOAL, 20_000, 20)
    options = {"goal": GOAL, "most": 20_000, "walks": 4, "start": 0, "runtime": "cpu"}
    same = fw.compare(PROBLEM, GRAPH, [UNIFORM, TRACKING], budget=Budget(runs=20), **options)
    assert numbers == json.loads(json.dumps(same.as_dict()))
    again = call("compare", "few.toml")
    assert again.exit_code == 2
    assert "exists already; choose another with --out, or replace it with --force" in again.output
    assert call("compare", "few.toml", "--force", "--goal", "1.06", "--quiet").stdout == ""
    assert json.loads((folder / "comparison.json").read_text())["goal"] == 1.06
    assert call("report", str(folder), "--out", "again.html").exit_code == 0
    (tmp_path / "other").mkdir()
    refused = call("compare", "few.toml", "--out", "other", "--force")
    assert "other is not the folder of a comparison, so it is not replaced" in refused.output


def test_walks_in_phases_are_left_out_with_a_note(tmp_path) -> None:
    phase = 'design = { kind = "SimpleWalk" }\nrule = { kind = "SGD", step = 0.01 }\n'
    walk = f'[[walk]]\nlabel = "phased"\n[[walk.phase]]\nuntil = 10\n{phase}[[walk.phase]]\n{phase}'
    (tmp_path / "few.toml").write_text(SPEC.replace("steps = 1\n", "steps = 20\n") + walk)
    result = call("compare", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "'phased' has phases and is left out" in result.stderr
    assert "phased" not in result.stdout
    assert "gradient tracking" in result.stdout


def test_a_spec_without_a_runtime_is_compared_on_the_one_that_suits(tmp_path) -> None:
    walk = 'label = "solving"\ndesign = { kind = "SimpleWalk" }\nrule = { kind = "Walkman", proximal = true }'
    text = SPEC.replace('runtime = "cpu"\n', "").replace("[compare]", "[compare]\nkeep_steps = true")
    text = text.replace("most = 20_000", "most = 2000").replace("step = 1 }", "step = 0.01 }")
    (tmp_path / "few.toml").write_text(f"{text}[[walk]]\n{walk}\n")
    result = call("compare", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    record = fw.load(tmp_path / "out" / "record.npz")
    assert runtimes_of(record) == ["CPU(threads=None)", "CPU(threads=None)", "Reference()"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("goal = 1.05", "goal = 1", "few.toml: compare: goal = 1"),
        ("goal = 1.05", "goals = 3", "[compare] has no key 'goals'; did you mean 'goal'?"),
        ("runs = 20", "run = 20", "has no key 'run'; did you mean 'runs'?"),
        ("runs = 20", "runs = 0", "runs = 0, expected a whole number >= 1"),
        ("noise = 0.5", "noise = 0.0", "few.toml: compare: mse of LeastSquares is"),
    ],
)
def test_a_spec_that_cannot_be_compared_says_why(tmp_path, old: str, new: str, message: str) -> None:
    (tmp_path / "few.toml").write_text(SPEC.replace(old, new))
    result = call("compare", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert message in result.output.replace("\n", "")
    assert not (tmp_path / "out").exists()


def test_starts_and_models_of_single_walks_are_refused_before_anything_runs() -> None:
    graph, methods = fw.graphs.ring(6), [fw.baselines.fedavg(0.1)]
    problem = fw.objectives.LeastSquares.synthetic(6, dim=3, noise=0.5, seed=1)
    with pytest.raises(fw.FreewalkError, match=r"compare: start = .*, expected one node, 'uniform' or 'heaviest'"):
        fw.compare(problem, graph, methods, walks=2, start=[0, 1])
    with pytest.raises(fw.FreewalkError, match="compare: start"):
        fw.compare(problem, graph, methods, walks=2, start=[[0], [1, 2]])
    with pytest.raises(fw.FreewalkError, match="compare: initial"):
        fw.compare(problem, graph, methods, walks=2, initial=np.zeros((2, 3)))

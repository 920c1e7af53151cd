"""`freewalk network init` and `node check`: folders made whole or not at all, and what cannot run refused by name."""

import re
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from test_node_config import same

import freewalk as fw
from freewalk.errors import FreewalkError, FreewalkWarning, PeerError
from freewalk.graphs import from_edges
from freewalk.peers.network import certificates
from freewalk.peers.network.config import Address
from freewalk.peers.network.init import Network, free_addresses, init, listening, names_of
from freewalk.specs import load

GRAPH = '[graph]\nkind = "ring"\nn = 6\n'
PROBLEM = '[problem]\nkind = "LeastSquares"\ndim = 3\nheavy = 1\nsamples = 2\nridge = 0.1\n'
RUN = "[run]\nsteps = 40\nevery = 10\nseed = 3\nwalks = 2\n"
MHLJ = 'design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 3 }\n'
SGD = 'rule = { kind = "SGD", step = 0.01 }\n'
WALK = f'[[walk]]\nlabel = "jumps"\n{MHLJ}{SGD}tokens = 2\n'


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    return here


def spec(*parts: str) -> Path:
    file = Path("my.toml")
    file.write_text("".join(parts) or GRAPH + PROBLEM + RUN + WALK)
    return file


def test_nodes_know_what_the_simulation_knows(here: Path) -> None:
    network = init(spec(), "net")
    plan = load("my.toml").plan()
    kernel, problem = plan.walks["jumps"][0].kernel, plan.problem
    assert [one.name for one in network.nodes] == [f"node-{node:04d}" for node in range(6)]
    for node in range(6):
        config = network.config(node)
        assert (config.node.number, config.node.listen) == (node, network.nodes[node].address)
        same(config.kernel(), kernel.local(node))
        share, mine = config.share(), problem.local(node)
        x = np.array([0.3, -1.0, 2.0])
        assert share.gradient(x).tobytes() == mine.gradient(x).tobytes()
        assert config.rule == plan.walks["jumps"][0].rule
        for one in config.neighbour:
            assert one.address == network.nodes[one.number].address
            assert (one.degree, one.importance) == (2, problem.smoothness[one.number])
        settings = config.settings()
        assert (settings.seed, settings.steps, settings.every, settings.nodes) == (3, 40, 10, 6)
    assert len({one.address for one in network.nodes}) == 6


def test_tokens_start_where_and_as_those_of_learn(here: Path) -> None:
    init(spec(), "net")
    network = Network.read("net")
    plan = load("my.toml").plan()
    phases, options = plan.walks["jumps"], plan.options_of("jumps")
    record = fw.learn(plan.problem, phases, **{**options, "paths": 4, "runtime": "reference"})
    assert network.starts == record.data.path.values[:, 0].tolist()
    assert np.array_equal(network.task.models, np.zeros((4, 3)))
    assert network.table.run.tokens == 4
    assert network.plan.problem.loss(np.ones(3)) == plan.problem.loss(np.ones(3))
    assert [sorted(one) for one in network.vectors()] == [["x"]] * 4


def test_who_may_read_what(here: Path) -> None:
    network = init(spec(), "net", host="127.0.0.1", lease=2)
    for node in range(6):
        home = Path("net", f"node-{node:04d}")
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        for name in ("key.pem", "data.npz"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
        names = {"authority.pem", "certificate.pem", "config.toml", "data.npz", "key.pem"}
        assert {file.name for file in home.iterdir()} == names
        assert certificates.problems(*network.config(node).credentials, f"node-{node:04d}") == []
        assert network.config(node).security.operator == "operator"
    assert certificates.problems(*network.credentials, "operator") == []
    assert stat.S_IMODE(Path("net/operator/authority-key.pem").stat().st_mode) == 0o600
    key = Path("net/operator/authority-key.pem").read_text()
    others = [file for file in Path("net").rglob("*") if file.is_file() and file.name != "authority-key.pem"]
    assert not [file for file in others if key.splitlines()[1].encode() in file.read_bytes()]
    times = network.config(0).times
    assert (times.lease, times.patience, times.retry) == pytest.approx((2.0, 0.6, 0.1))


def test_relays_have_no_data_and_rules_are_filled_in(here: Path) -> None:
    rows = "node,target,a\n" + "".join(f"{node},{node}.5,1.5\n" for node in (0, 2, 2, 3))
    Path("rows.csv").write_text(rows)
    problem = '[problem]\nkind = "LeastSquares"\ndata = "rows.csv"\ntarget = "target"\nrelays = true\n'
    network = init(spec(GRAPH, problem, RUN, f'[[walk]]\n{MHLJ}rule = {{ kind = "Walkman" }}\n'), "net", plain=True)
    assert [network.config(node).share().samples for node in range(6)] == [1, 0, 2, 1, 0, 0]
    assert not Path("net/node-0001/data.npz").exists()
    assert not Path("net/operator").exists()
    assert network.credentials is None
    assert network.config(3).rule == network.task.rule
    assert network.task.rule.penalty is not None
    assert network.config(3).settings().stores


def test_a_method_and_a_schedule_that_no_table_wrote(here: Path) -> None:
    walk = '[[walk]]\nmethod = { kind = "multi_walk_sgd", step = 0.1, tokens = 3, design = { kind = "Decaying", '
    walk += 'design = { kind = "MHLJ", jump = 0.5, stop = 0.5, hops = 2 }, '
    walk += 'schedule = { kind = "Inverse", initial = 1, scale = 9 } } }\n'
    network = init(spec(GRAPH, PROBLEM, RUN, walk), "net", plain=True)
    same(network.config(2).kernel(), network.task.kernel.local(2))
    assert network.config(2).kernel().fade == fw.schedules.Inverse(1, scale=9)
    assert network.config(2).rule == network.task.rule == fw.SGD(step=0.1)
    assert len(network.starts) == 6


OWN = """
from dataclasses import dataclass
import numpy as np
import freewalk as fw

class Centres(fw.Objective):
    def __init__(self, n, random=False, buffers=0, first=0.0):
        self.centres, self.random, self.buffers = np.arange(2.0 * n).reshape(n, 2), random, buffers
        self.first = first
    n = property(lambda self: len(self.centres))
    dim = property(lambda self: 2 + self.buffers)
    trained = property(lambda self: 2)
    smoothness = property(lambda self: np.ones(self.n))
    def loss(self, x):
        return float(np.mean((x - self.centres) ** 2)) if not self.buffers else 0.0
    def initial(self, walks, seed):
        return np.full((walks, self.dim), self.first)
    def gradient(self, node, x, sample=None):
        return np.asarray(x - self.centres[node])
    def optimum(self):
        return self.centres.mean(axis=0)

@dataclass(frozen=True)
class Ball(fw.Rule):
    step: float = 0.1
    momentum: float = 0.9
    carries = ("velocity",)
    @staticmethod
    def update(visit, numbers, x, gradient, velocity):
        velocity = numbers.momentum * velocity + visit.rate * gradient
        return x - velocity, velocity
"""


def test_an_objective_and_a_rule_of_the_users_own(here: Path) -> None:
    Path("my_centres.py").write_text(OWN)
    walk = f'[[walk]]\n{MHLJ}rule = {{ kind = "my_centres:Ball", momentum = 0.5 }}\n'
    said: list[str] = []
    network = init(
        spec(GRAPH, '[problem]\nkind = "my_centres:Centres"\nfirst = 0.25\n', RUN, walk),
        "net",
        plain=True,
        tell=said.append,
    )
    assert "importing my_centres" in said[0]
    config = network.config(4)
    assert config.node.data.object == "freewalk.peers.node.data:from_spec"
    assert np.array_equal(config.share().gradient([0.0, 0.0]), [-8.0, -9.0])
    assert config.share().node == 4
    assert config.rule.momentum == 0.5
    (first, _) = network.vectors()
    assert first["x"].tolist() == [0.25, 0.25]
    assert first["velocity"].tolist() == [0.0, 0.0]


def test_a_network_of_an_earlier_version_finds_its_data(here: Path) -> None:
    """Its configurations name the function where it was then."""
    Path("my_older_centres.py").write_text(OWN)
    problem = '[problem]\nkind = "my_older_centres:Centres"\nfirst = 0.25\n'
    network = init(spec(GRAPH, problem, RUN, f"[[walk]]\n{MHLJ}{SGD}"), "net", plain=True)
    now = network.config(4)
    text = network.path(4).read_text()
    network.path(4).write_text(text.replace("freewalk.peers.node.data:from_spec", "freewalk.peers.shares:from_spec"))
    then = network.config(4)
    assert then.node.data.object == "freewalk.peers.shares:from_spec"
    assert np.array_equal(then.share().gradient([0.0, 0.0]), now.share().gradient([0.0, 0.0]))


WALKMAN = '[[walk]]\ndesign = { kind = "SimpleWalk" }\nrule = { kind = "Walkman", penalty = 1.0 }\n'


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            (PROBLEM, RUN, f'[[walk]]\ndesign = {{ kind = "Centralized" }}\n{SGD}'),
            "use a design that moves along edges",
        ),
        *(
            (
                (
                    PROBLEM,
                    RUN,
                    f"[[walk]]\ndesign = {{ kind = '{kind}', design = {{ kind = 'SimpleWalk' }}, alpha = 2 }}\n{SGD}",
                ),
                "run it in the simulator; NonBacktracking runs between peers",
            )
            for kind in ("SelfRepellent", "HistoryDriven")
        ),
        (
            (PROBLEM, RUN, f"[[walk]]\n[[walk.phase]]\nuntil = 9\n{MHLJ}{SGD}[[walk.phase]]\n{MHLJ}{SGD}"),
            "has 2 phases, expected one design",
        ),
        ((PROBLEM, RUN, WALK + 'exchange = { kind = "Meet" }\n'), "has the exchange Meet"),
        ((PROBLEM, RUN, f'[[walk]]\n{MHLJ}{SGD}tokens = "nodes"\n'), 'tokens = "nodes", expected a number'),
        (
            (PROBLEM, RUN, f'[[walk]]\n{MHLJ}rule = {{ kind = "GradientTracking", step = 0.1 }}\n'),
            "the tokens of GradientTracking share what is stored",
        ),
        ((PROBLEM, RUN + "goal = { loss = 0.1 }\n", WALK), "[run]: goal = {'loss': 0.1}, but no node can measure"),
        (
            (PROBLEM, RUN, WALK + WALK.replace("jumps", "b")),
            "has 2 walks, expected one; choose with --label: 'jumps', 'b'",
        ),
        (('[problem]\nkind = "my_wrong:Centres"\nrandom = true\n', RUN, WALK), "draws its own random numbers"),
        (('[problem]\nkind = "my_wrong:Centres"\nbuffers = 2\n', RUN, WALK), "has 2 numbers that are not trained"),
        (
            ('[problem]\nkind = "my_wrong:Centres"\nfirst = 1.0\n', RUN, WALKMAN),
            "starts from the initial model of the token",
        ),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_written(here: Path, parts: Any, words: str) -> None:
    Path("my_wrong.py").write_text(OWN)
    for module in [name for name in sys.modules if name == "my_wrong"]:
        del sys.modules[module]
    with pytest.raises(PeerError, match=re.escape(words)):
        init(spec(GRAPH, *parts), "net")
    assert sorted(file.name for file in here.iterdir() if file.suffix) == ["my.toml", "my_wrong.py"]
    assert not Path("net").exists()


def test_a_label_chooses(here: Path) -> None:
    two = spec(GRAPH, PROBLEM, RUN, WALK, f'[[walk]]\nlabel = "simple"\ndesign = {{ kind = "SimpleWalk" }}\n{SGD}')
    network = init(two, "net", label="simple", plain=True)
    assert (network.table.label, len(network.starts)) == ("simple", 2)
    assert len(network.config(0).kernel().moves) == 1
    assert network.task.label == "simple"
    with pytest.raises(PeerError, match="has no walk 'none', expected one of 'jumps', 'simple'"):
        init(two, "other", label="none")


def test_a_walk_that_leaves_nodes_out_is_warned_of(here: Path) -> None:
    walk = '[[walk]]\ndesign = { kind = "Stay" }\nrule = { kind = "SAG", step = 0.1 }\n'
    with pytest.warns(FreewalkWarning, match="never gets from node"):
        init(spec(GRAPH, PROBLEM, RUN, walk), "net", plain=True)


def test_a_folder_is_made_whole_or_not_at_all(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(spec(), "net", plain=True)
    Path("net/node-0000/state").mkdir()
    before = Path("net/network.toml").read_text()
    with pytest.raises(PeerError, match="exists already; choose another folder, or replace it with --force"):
        init("my.toml", "net")
    Path("mine").mkdir()
    with pytest.raises(PeerError, match="is not the folder of a network, so it is not replaced"):
        init("my.toml", "mine", force=True)

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("freewalk.peers.network.init.write_network", full)
        for folder in ("net", "new"):
            with pytest.raises(PeerError, match="No space left on device"):
                init("my.toml", folder, force=True)
    assert Path("net/network.toml").read_text() == before
    assert {file.name for file in here.iterdir()} == {"my.toml", "net", "mine"}
    init("my.toml", "net", force=True)
    assert Path("net/operator").is_dir()
    assert not Path("net/node-0000/state").exists()
    assert {file.name for file in here.iterdir()} == {"my.toml", "net", "mine"}


@pytest.mark.parametrize(
    "text", ["\n# three \"\"\" and '''\n", '# a \\ and a tab\t"quoted"\n', "# lines\r\n", "# ünï\n"]
)
def test_the_text_of_the_spec_is_kept(here: Path, text: str) -> None:
    Path("my.toml").write_bytes((text + GRAPH + PROBLEM + RUN + WALK).encode())
    assert init("my.toml", "net", plain=True).table.spec == text + GRAPH + PROBLEM + RUN + WALK


def test_plain_connections_stay_on_this_machine(here: Path) -> None:
    with pytest.raises(PeerError, match="leave out --plain"):
        init(spec(), "net", host="10.0.0.1", plain=True)
    with pytest.raises(PeerError, match=r"cannot listen at 192\.0\.2\.1"):
        init(spec(), "net", host="192.0.2.1")
    with pytest.raises(PeerError, match="lease = -1"):
        init(spec(), "net", lease=-1)


def test_names_are_those_of_the_graph_made_safe() -> None:
    def named(*names: str) -> list[str]:
        return names_of(from_edges([[names[0], names[1]], [names[1], names[2]]]))

    assert named("Bonn", "São Paulo", "Ulm") == ["bonn", "sao-paulo", "ulm"]
    assert named("A b", "a-b", "Operator") == ["a-b-0000", "a-b-0001", "operator-0002"]
    assert named("京都", "x" * 200, "a")[:2] == ["node-0000", "x" * 50]
    assert named("a", "A", "a 0001") == ["node-0000", "node-0001", "node-0002"]


def test_ports_are_free_and_in_order() -> None:
    found = free_addresses("127.0.0.1", 5)
    assert len({one.port for one in found}) == 5
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        if port < 60000:
            ports = [one.port for one in free_addresses("127.0.0.1", 3, port)]
            assert ports == sorted(set(ports))
            assert min(ports) > port
    with pytest.raises(PeerError, match="start at a lower one"):
        free_addresses("127.0.0.1", 10, 65530)


def test_the_commands(here: Path) -> None:
    spec()
    result = call("network", "init", "my.toml", "net", "--lease", "4")
    assert result.exit_code == 0, result.output
    assert "jumps: 6 nodes, 4 tokens of 40 updates, certificates" in result.stdout
    assert result.stdout.endswith("next  freewalk network up net\n")
    result = call("network", "init", "my.toml", "net")
    assert result.exit_code == 2
    assert "exists already" in result.stderr

    config = "net/node-0002/config.toml"
    result = call("node", "check", config)
    assert result.exit_code == 1, result.output
    heads = re.findall(r"^(ok|open|wrong) +(\w+):", result.stdout, re.MULTILINE)
    names = ["packages", "certificate", "port", "data", "rule", "state", "neighbours"]
    assert list(dict.fromkeys(name for _, name in heads)) == names
    assert {name for word, name in heads if word == "wrong"} == {"neighbours"}
    for neighbour in (1, 3):
        assert re.search(rf"node-000{neighbour} at 127.0.0.1:\d+ does not answer .*; start that node", result.stdout)
    result = call("network", "launch", "net")
    assert result.exit_code == 2
    assert re.search(r"does not answer: .*; `freewalk network up` starts all nodes", result.stderr)


@pytest.mark.parametrize("command", ["launch", "watch", "collect"])
def test_a_run_is_no_other_folder(here: Path, command: str) -> None:
    """It is said before anything is sent: no node is up."""
    init(spec(), "net", plain=True)
    for name in ("..", ".", ".hidden", "a/b", "a" * 65, ""):
        result = call("network", command, "net", "--run", name)
        assert result.exit_code == 2
        assert f"network {command}: run = " in result.stderr
        assert "that begin with no dot" in result.stderr


def test_a_check_names_all_that_is_wrong(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = init(spec(), "net")
    home = Path("net/node-0002")
    (home / "key.pem").chmod(0o644)
    (home / "data.npz").write_bytes(b"")
    (home / "state").write_text("in the way")
    monkeypatch.setattr("freewalk.peers.node.check.reach", lambda config: ["node-0001 does not answer; start it"])
    monkeypatch.setattr("freewalk.peers.node.check.PACKAGES", {"grpcio": (999,), "no-such-package": (1,)})
    with listening("127.0.0.1", Address.of(network.nodes[2].address).port):
        result = call("node", "check", str(home / "config.toml"))
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    wrong = dict(re.findall(r"^wrong +(\w+): (.*)$", result.stdout, re.MULTILINE))
    assert set(wrong) == {"packages", "certificate", "port", "data", "state", "neighbours"}
    assert sum(line.startswith("wrong  packages") for line in lines) == 2
    assert "chmod 600" in wrong["certificate"]
    assert "stop the process that listens there" in wrong["port"]
    assert "is no .npz file" in wrong["data"]
    assert "not a folder" in wrong["state"]
    assert wrong["neighbours"] == "node-0001 does not answer; start it"


def test_what_is_no_network(here: Path) -> None:
    with pytest.raises(PeerError, match="is not the folder of a network"):
        Network.read("nowhere")
    init(spec(), "net", plain=True)
    text = Path("net/network.toml").read_text()
    for old, new, words in (
        ("number = 3", "number = 4", "expected 0, 1, 2, … in order"),
        ("starts = [", "starts = [0, ", "one for each token"),
        ("label =", "lable =", "did you mean 'label'"),
    ):
        Path("net/network.toml").write_text(text.replace(old, new))
        with pytest.raises(FreewalkError, match=words):
            Network.read("net")


def test_a_lease_leaves_time_for_a_large_model_to_arrive(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freewalk.peers.network.init._SLOW", 4.0)
    network = init(spec(), "net")
    assert network.config(0).times.lease == 10 + 8 * network.config(0).run.dim / 4.0

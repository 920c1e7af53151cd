"""What a node is told: read, written and checked, and the same walk to the last bit."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalogue import DESIGNS, GRAPHS, LISTED_RULES, MEMORY_RULES, OWN_RULES, PROBLEMS, importance_of, kernel_of

import freewalk as fw
from freewalk.errors import FreewalkError, PeerError
from freewalk.peers.network.config import Address, NodeConfig
from freewalk.peers.network.toml import choice_values, walk_values, write_config
from freewalk.peers.node.data import write_samples
from freewalk.specs.own import Importer

LOCAL = [design for design in DESIGNS if kernel_of(design, "random").is_local]
NOBODY = Importer(Path(), "a test")


def values_of(kernel: Any, node: int, **others: Any) -> dict[str, Any]:
    local = kernel.local(node)
    fade = None if kernel.fade is None else choice_values(kernel.fade, "schedule", NOBODY)
    neighbours = [
        {"number": int(one), "name": f"node-{one}", "address": f"127.0.0.1:{7000 + one}"} for one in local.neighbours
    ]
    return {
        "node": {
            "name": f"node-{node}",
            "number": node,
            "listen": "127.0.0.1:0",
            "data": {"relay": True, "dim": 3},
        },
        "neighbour": neighbours,
        "walk": walk_values(local, kernel.graph.n, fade),
        "run": {
            "seed": 2**64 - 1,
            "steps": 5,
            "every": 2,
            "tokens": 3,
            "rule": {"kind": "SGD", "step": 0.1},
            "precision": "float64",
            "dim": 3,
        },
        "security": {"plain": True},
        **others,
    }


def same(one: Any, other: Any) -> None:
    """Equal to the last bit, types included."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    elif type(one).__name__ in ("LocalKernel", "LocalMove"):
        for name, value in vars(one).items():
            same(value, getattr(other, name))
    else:
        assert one == other
        assert not isinstance(one, float) or one.hex() == other.hex()


REMEMBERS = {
    "remembers": fw.designs.NonBacktracking(fw.designs.Metropolis(power=0.5)),
    "forgets now and then": fw.designs.NonBacktracking(fw.designs.SimpleWalk(), forget=0.3),
}


@pytest.mark.parametrize("design", [*LOCAL, *REMEMBERS])
def test_the_kernel_is_the_same_to_the_last_bit(design: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for graph in GRAPHS:
        made_of = REMEMBERS.get(design)
        kernel = (
            kernel_of(design, graph) if made_of is None else made_of.kernel(GRAPHS[graph], importance_of(GRAPHS[graph]))
        )
        for node in range(kernel.graph.n):
            made = NodeConfig.of(values_of(kernel, node))
            write_config(made, file)
            again = NodeConfig.read(file)
            assert again.model_dump() == made.model_dump()
            same(again.kernel(), kernel.local(node))


def test_a_node_that_knows_no_memory_refuses_a_walk_that_remembers() -> None:
    """It would walk on as if there were none: earlier versions refuse each key that they do not know."""
    kernel = REMEMBERS["remembers"].kernel(fw.graphs.ring(10), np.arange(1.0, 11))
    values = values_of(kernel, 1)
    assert NodeConfig.of(values).kernel().row is not None
    values["walk"]["rwo"] = values["walk"].pop("row")
    with pytest.raises(PeerError, match=r"\[walk\] has no key 'rwo'"):
        NodeConfig.of(values)


@pytest.mark.parametrize(
    ("row", "others"),
    [
        ({"others": [0.5, 0.5]}, {}),
        ({"others": [0.5, 0.0, 0.5]}, {}),
        ({"nodes": [0, 2, 2]}, {}),
        ({"nodes": [0, 2, 3]}, {}),
        ({"nodes": [0, 2]}, {}),
        ({"ends": ["0xff", "0xfe", "0xffff"]}, {}),
        ({}, {"fade": {"kind": "Inverse", "initial": 1.0, "scale": 9}}),
        ({}, {"move": [{"hops": 2}]}),
    ],
    ids=range(8),
)
def test_rows_of_a_walk_that_remembers_fit(row: dict[str, Any], others: dict[str, Any]) -> None:
    kernel = REMEMBERS["remembers"].kernel(fw.graphs.ring(10), [1.0, 9.0] * 5)
    values = values_of(kernel, 1)
    assert values["walk"]["row"]["nodes"] == [0, 2, 1]
    NodeConfig.of(values)
    values["walk"]["row"] |= row
    values["walk"] |= others
    with pytest.raises(PeerError, match=r"^my.toml: \[walk.row\]: expected"):
        NodeConfig.of(values, source="my.toml")


def test_rows_are_words_that_every_reader_of_toml_can_read(tmp_path: Path) -> None:
    write_config(NodeConfig.of(values_of(kernel_of("FromMatrix", "ring"), 0)), tmp_path / "a.toml")
    (move,) = tomllib.loads((tmp_path / "a.toml").read_text())["walk"]["move"]
    assert move["rows"][0]["ends"][-1] == "0xffffffffffffffff"
    text = (tmp_path / "a.toml").read_text()
    assert "`freewalk network init` computes it; if you write a configuration by hand," in text


@pytest.mark.parametrize("rule", [*LISTED_RULES, *MEMORY_RULES])
def test_every_rule_of_ours_can_be_told(rule: str, tmp_path: Path) -> None:
    given = {**LISTED_RULES, **MEMORY_RULES}[rule].fitted(PROBLEMS["LeastSquares"], kernel_of("MHLJ", "random"))
    values = values_of(kernel_of("SimpleWalk", "ring"), 0)
    values["run"]["rule"] = choice_values(given, "rule", NOBODY)
    write_config(NodeConfig.of(values), tmp_path / "config.toml")
    config = NodeConfig.read(tmp_path / "config.toml")
    assert config.rule == given
    assert config.settings().stores == (bool(given.stores) or given.counts_visits)


def test_a_rule_of_the_users_is_imported(tmp_path: Path) -> None:
    values = values_of(kernel_of("SimpleWalk", "ring"), 0)
    rule = OWN_RULES["Scaled (a user's)"]
    values["run"] |= {
        "rule": choice_values(rule, "rule", NOBODY),
        "path": str(Path(sys.modules["catalogue"].__file__).parent),
    }
    assert values["run"]["rule"]["kind"] == "catalogue:Scaled"
    assert NodeConfig.of(values, tmp_path).rule == rule


def test_settings_are_those_of_the_file() -> None:
    values = values_of(kernel_of("SimpleWalk", "ring"), 0, times={"lease": 2, "generations": 7})
    found = NodeConfig.of(values).settings()
    assert (found.seed, found.steps, found.every, found.nodes, found.stores) == (2**64 - 1, 5, 2, 10, False)
    assert (found.lease, found.patience, found.retry, found.generations, found.versions) == (2, 3.0, 0.5, 7, 256)


@pytest.mark.parametrize("name", ["LeastSquares, uneven, ridge", "Logistic, pooled, relays"])
def test_data_in_a_file_are_those_of_the_node(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    for node in range(problem.n):
        share = problem.local(node)
        values = values_of(kernel_of("SimpleWalk", "random"), node)
        data = {"file": "data.npz", "kind": type(problem).__name__, "ridge": problem.ridge, "factor": share.factor}
        values["node"]["data"] = data if share.factor > 0 else {"relay": True, "dim": problem.dim}
        values["run"]["dim"] = problem.dim
        if share.factor > 0:
            write_samples(share, tmp_path / "data.npz")
            assert (tmp_path / "data.npz").stat().st_mode & 0o777 == 0o600
        found = NodeConfig.of(values, tmp_path).share()
        x = np.linspace(-1, 1, problem.dim)
        assert (found.node, found.samples, found.factor) == (node, share.samples, share.factor)
        assert found.gradient(x).tobytes() == share.gradient(x).tobytes() or share.factor == 0
        assert not found.gradient(x).any() or share.factor > 0


def test_data_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = "import numpy as np\nimport freewalk as fw\n\ndef share(number, folder, times=1.0):\n"
    code += (
        "    whole = fw.objectives.LeastSquares(times * np.eye(10, 3), np.ones(10))\n    return whole.local(number)\n"
    )
    code += "def wrong(number):\n    return number\ndef fails(number):\n    raise RuntimeError('no data')\n"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "own_shares.py").write_text(code)
    values, said = values_of(kernel_of("SimpleWalk", "ring"), 2), []
    values["node"]["data"] = {"object": "own_shares:share", "path": "code", "options": {"times": 2.0}}
    write_config(NodeConfig.of(values), tmp_path / "config.toml")
    config = NodeConfig.read(tmp_path / "config.toml", said.append)
    assert said == []
    assert np.array_equal(config.share().objective.features, [[0.0, 0.0, 2.0]])
    assert "importing own_shares" in said[0]
    cases = {
        "own_shares:wrong": "returns a int, expected a freewalk.objectives.objective.Share",
        "own_shares:fails": "fails .RuntimeError: no data",
        "own_shares:none": "has no function or class 'none'",
        "nowhere:share": "there is no module 'nowhere'",
    }
    for name, words in cases.items():
        values["node"]["data"] = {"object": name, "path": "code"}
        with pytest.raises(FreewalkError, match=words) as caught:
            NodeConfig.of(values, tmp_path, "my.toml").share()
        assert str(caught.value).startswith("my.toml: [node]: data")


def changed(path: str, value: Any) -> dict[str, Any]:
    """A configuration with one value replaced; None removes it."""
    values: Any = values_of(kernel_of("Metropolis, importance", "ring"), 1)
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    inner = values
    for key in way:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return values


CERTIFIED = {"certificate": "a.pem", "key": "b.pem", "authority": "c.pem"}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("node.nmae", "a", "[node] has no key 'nmae'; did you mean 'name'?"),
        ("node.name", None, "[node] needs the key 'name': a name of"),
        ("node.name", "Ulm", "[node]: name = 'Ulm', expected a name of"),
        ("node.name", "operator", "the name 'operator' occurs twice"),
        ("node.listen", "127.0.0.1", "[node]: listen = '127.0.0.1', expected an address such as"),
        ("node.listen", "::1:80", "listen = '::1:80', expected an address such as"),
        ("node.listen", "a:70000", "listen = 'a:70000', expected an address such as"),
        ("node.data", 3, "[node]: data = 3, expected a table such as"),
        ("node.data", {}, "[node]: data has the keys (none), expected one of { file"),
        ("node.data", {"file": "a.npz"}, "[node]: data needs the key 'kind'"),
        ("node.data", {"file": "a.npz", "kind": "Hinge"}, "[node.data]: kind = 'Hinge', expected"),
        ("node.data", {"file": "a.npz", "object": "a:b"}, "expected one of { file"),
        ("node.data", {"relay": True, "dim": 3, "kind": "Logistic"}, "the key 'kind' as well as 'relay'"),
        ("node.data", {"relay": True, "dim": 4}, "dim = 4, expected 3"),
        ("node.data", {"object": "os.system"}, 'expected a function as "module:name"'),
        ("neighbour.0.number", 1, "expected other nodes below n = 10"),
        ("neighbour.1.number", 0, "expected distinct, ascending ones"),
        ("neighbour.1.number", 10, "expected other nodes below n = 10"),
        ("neighbour.1.adress", "a:1", "[neighbour 2] has no key 'adress'; did you mean 'address'?"),
        ("neighbour.1.name", "node-0", "the name 'node-0' occurs twice"),
        ("walk.weight", 0, "[walk]: weight = 0, expected a number > 0: 1 / (n · target)"),
        ("walk.weight", float("nan"), "[walk]: weight = nan, expected a number > 0"),
        ("walk.probabilities", [0.5], "[walk]: probabilities = [0.5], expected 1 that add up to 1"),
        ("walk.fade", 1, "[walk]: fade = 1, expected a schedule such as"),
        ("walk.move.0.hops", -1, "[walk.move 1]: hops = -1, expected a whole number >= 0"),
        ("walk.move.0.neighbour_ratios", [1.0], "[walk.move 1]: neighbour_ratios has 1 numbers, expected 2"),
        ("walk.move.0.ratio", None, "[walk.move 1]: expected neighbour_ratios if and only if there is a ratio"),
        ("walk.move.0.rows", [{"nodes": [5], "ends": ["0xff"]}], "[walk.move 1]: rows: expected neighbours"),
        ("walk.move.0.rows", [{"nodes": [0], "ends": ["12"]}], "ends = '12', expected"),
        ("walk.move.0.rows", [{"nodes": [0], "ends": ["0x-1"]}], "ends = '0x-1', expected"),
        ("run.seed", 2**64, "[run]: seed = 18446744073709551616, expected a whole number from 0 to 2^64 - 1"),
        ("run.steps", "5", "[run]: steps = '5', expected a whole number >= 1"),
        ("run.precision", "float16", "[run]: precision = 'float16', expected"),
        ("times", {"lease": 0}, "[times]: lease = 0, expected a number of seconds > 0"),
        ("security", {}, "[security] needs the key 'certificate'"),
        ("security", {**CERTIFIED, "plain": True}, "there is also a certificate"),
        ("neighbour.0.address", "10.0.0.1:80", "[security]: plain = true, but node-0 is '10.0.0.1:80'"),
        ("node.listen", "0.0.0.0:80", "[security]: plain = true, but listen is '0.0.0.0:80'"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(path: str, value: Any, words: str) -> None:
    with pytest.raises(PeerError) as caught:
        NodeConfig.of(changed(path, value), source="my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert words in str(caught.value)


def test_what_only_shows_when_it_is_made(tmp_path: Path) -> None:
    config = NodeConfig.of(changed("run.rule", {"kind": "SGD", "stpe": 1}), source="my.toml")
    with pytest.raises(FreewalkError, match=r"my.toml: \[run\]: rule has no .* 'stpe'|my.toml: .*stpe"):
        config.settings()
    config = NodeConfig.of(changed("node.data", {"file": "a.npz", "kind": "Logistic"}), tmp_path, "my.toml")
    with pytest.raises(PeerError, match=r"my.toml: \[node\]: data: .*a.npz cannot be read"):
        config.share()
    (tmp_path / "a.npz").write_text("nothing")
    with pytest.raises(PeerError, match=r"is no .npz file with the arrays features and targets"):
        config.share()
    np.savez(tmp_path / "a.npz", features=np.ones((2, 3)))
    with pytest.raises(PeerError, match="it has no array 'targets'"):
        config.share()
    np.savez(tmp_path / "a.npz", features=np.ones((2, 4)), targets=np.ones(2))
    with pytest.raises(PeerError, match="models have 4 numbers, expected 3, the dim in"):
        config.share()
    np.savez(tmp_path / "a.npz", features=np.full((2, 3), np.nan), targets=np.ones(2))
    with pytest.raises(PeerError, match="features"):
        config.share()


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="cannot be read"):
        NodeConfig.read(tmp_path / "none.toml")
    for content, words in ((b"a = ", "is not TOML"), (b"\xff", "UTF-8"), (b"a = 1", "has no key 'a'")):
        (tmp_path / "a.toml").write_bytes(content)
        with pytest.raises(PeerError, match=words):
            NodeConfig.read(tmp_path / "a.toml")


@pytest.mark.parametrize("words", ["127.0.0.1:0", "[::1]:7000", "host.example:1", "localhost:65535"])
def test_addresses(words: str) -> None:
    address = Address.of(words)
    assert str(address) == words
    assert address.is_loopback == ("host" not in words or "localhost" in words)


def test_a_schedule_that_fades_is_told(tmp_path: Path) -> None:
    design = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 2), fw.schedules.Inverse(1.0, scale=10))
    kernel = design.kernel(fw.graphs.ring(4), np.ones(4))
    write_config(NodeConfig.of(values_of(kernel, 0)), tmp_path / "a.toml")
    assert NodeConfig.read(tmp_path / "a.toml").kernel().fade == fw.schedules.Inverse(1.0, scale=10)

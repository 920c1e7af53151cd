"""`freewalk data`, and collections of topologies in `freewalk list`."""

import pytest
from commands import call


def test_a_data_set_is_described() -> None:
    shown = call("data", "wine").stdout
    assert shown.startswith("Dataset(wine: 178 samples, 13 features, 3 classes)\n  source: S. Aeberhard")
    assert "licence: CC BY 4.0" in shown


def test_a_partition_is_summed_up_and_drawn(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("data", "wine", "--partition", "Dirichlet", "--alpha", "0.1", "--nodes", "8", "--seed", "3")
    lines = result.stdout.splitlines()
    assert lines[0] == "Dirichlet(alpha=0.1, least=1), seed 3: 178 samples at 8 nodes"
    assert lines[-1] == "figure  runs/wine-Dirichlet.png"
    assert (tmp_path / "runs" / "wine-Dirichlet.png").exists()
    quiet = call("data", "wine", "--partition", "Shards", "--classes", "1", "--out", "shards.svg", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert (tmp_path / "shards.svg").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["whine"], "data has no kind 'whine'; did you mean 'wine'?"),
        (["wine", "--alpha", "1"], "--alpha needs --partition"),
        (["wine", "--partition", "Shard"], "did you mean 'Shards'?"),
        (["wine", "--partition", "Dirichlet"], "Dirichlet needs the parameter 'alpha'"),
        (["wine", "--partition", "Shards", "--alpha", "1"], "Shards has no parameter 'alpha'"),
        (["wine", "--partition", "IID", "--nodes", "500"], "got 178 samples for 500 nodes"),
        (["wine", "--partition", "IID", "--out", "a.doc"], "cannot draw this kind of file"),
    ],
)
def test_mistakes_are_named(words: list[str], message: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("data", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_collection_is_listed_with_its_source_and_terms() -> None:
    shown = call("list", "sndlib").stdout
    assert shown.startswith('sndlib, 26 graphs: [graph] kind = "topology", name = "…"\n')
    assert "source: Orlowski" in shown
    assert "terms: " in shown
    assert "sndlib/polska" in shown.split()


def test_the_list_has_data_sets_and_partitions() -> None:
    shown = call("list").stdout
    assert "  digits()" in shown
    assert "  Dirichlet(alpha, least=1)" in shown
    assert call("list", "partitioners").stdout == call("list", "partition").stdout

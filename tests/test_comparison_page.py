"""README and the page on other methods count settings as the measurements do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "images" / "comparison"
SEEDS = {1: DATA, 2: DATA / "seed-2"}
Row = dict[str, Any]

WALK, LOCAL = "uniform walk", "uniform walk, local steps"
GOSSIP = ("decentralized SGD", "gradient tracking")
FEDAVG, BATCHES = "FedAvg, fewest messages", "minibatch SGD, fewest messages"


def messages(row: Row) -> float:
    return row["to_goal"]["messages"]["value"] if row["to_goal"]["messages"] else float("inf")


def routed(row: Row) -> float:
    return messages(row) * row["hops"]


#: What the pages count.
CLAIMS: dict[str, Callable[[dict[str, Row]], bool]] = {
    "fewer_than_gossip": lambda rows: all(messages(rows[WALK]) < messages(rows[one]) for one in GOSSIP),
    "fedavg": lambda rows: messages(rows[FEDAVG]) < messages(rows[WALK]),
    "batches": lambda rows: messages(rows[BATCHES]) < messages(rows[WALK]),
    "routed": lambda rows: routed(rows[FEDAVG]) > messages(rows[WALK]),
    "local_fedavg": lambda rows: messages(rows[FEDAVG]) < messages(rows[LOCAL]),
    "local_batches": lambda rows: messages(rows[BATCHES]) < messages(rows[LOCAL]),
    "local_routed": lambda rows: routed(rows[FEDAVG]) > messages(rows[LOCAL]),
}
SENTENCES = {
    "README.md": (
        "fewer messages than gossip in {fewer_than_gossip} of {all} settings",
        "FedAvg at its best and minibatches each need fewer messages than that walk in {fedavg} of {all};",
        "routed over a sparse network, FedAvg needs more in {routed} of {all}.",
        "FedAvg needs fewer in {local_fedavg}, and routed more in {local_routed}.",
    ),
    "docs/explanation/comparison.md": (
        "In {fewer_than_gossip} of {all} settings one uniform walk reaches the goal",
        "FedAvg at its best in {fedavg} of {all}, and so do minibatches.",
        "FedAvg sends more than a walk in {routed} of {all}.",
        "FedAvg sends fewer messages in {local_fedavg}, and routed more in {local_routed}. All these counts",
        "minibatch SGD sends fewer in {local_batches}, and FedAvg in {local_fedavg};",
        "FedAvg, routed, sends more than the uniform walk in {routed} of {all} settings",
        "several steps at each node it sends more in {local_routed};",
        "{batches} and {fedavg}, {local_batches} and {local_fedavg}, {routed} and {local_routed}.",
    ),
    "docs/how-to/which-design.md": (
        "fewer messages than gossip in {fewer_than_gossip} of {all} settings",
        "each need fewer messages than that walk in {fedavg} of {all} settings.",
        "FedAvg sends more than the walk in {routed} of {all}, and in {local_routed} if the walk, too,",
    ),
}


def counted(folder: Path) -> dict[str, int]:
    """In how many settings each claim holds, and how many there are."""
    files = folder.glob("*-1*-*.json")
    found = [{row["label"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]} for file in files]
    return {name: sum(map(holds, found)) for name, holds in CLAIMS.items()} | {"all": len(found)}


@pytest.mark.parametrize("page", SENTENCES)
def test_the_pages_count_like_the_measurements(page: str) -> None:
    counts, text = counted(SEEDS[1]), " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert counts["fedavg"] == counts["batches"]  # the pages say "each"
    for sentence in SENTENCES[page]:
        assert sentence.format(**counts) in text, f"{page} does not say so any more"


def test_the_counts_are_the_same_with_a_second_seed() -> None:
    assert counted(SEEDS[1]) == counted(SEEDS[2])


@pytest.mark.parametrize("folder", SEEDS.values(), ids=SEEDS)
def test_no_best_variant_is_where_the_search_ends_by_choice(folder: Path) -> None:
    """One local step, one node and all nodes are ends by nature."""
    for file in folder.glob("*-1*-*.json"):
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            chosen = row.get("chosen", "")
            assert not chosen.startswith(("200 local", "32 nodes")), f"{file.name}: {row['label']}: {chosen}"

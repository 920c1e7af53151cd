"""Claims in many settings: how they are counted, kept and shown."""

from pathlib import Path

import pytest

from freewalk.paper import STUDIES
from freewalk.paper.claim_sweep import ClaimRow, ClaimSweep
from freewalk.paper.evidence import FIGURES
from freewalk.paper.files import sweep_path

ROWS = (
    ClaimRow("one", 1.0, ("fraction", "start"), (True, False, None, True), (0.5, 2.0, None, 0.25)),
    ClaimRow("two", 0.5, ("fraction", "start"), (None, None, None, None), (None, None, None, None)),
    ClaimRow("three", 0.5, (), (True, True, False, False), (0.1, 0.1, 0.9, 0.9)),
)
SETTINGS = tuple(
    {"seed": seed, "fraction": 0.5, "start": start} for seed in (1, 2) for start in ("uniform", "heaviest")
)
SMALL = ClaimSweep("4b", "stated", SETTINGS, ROWS)


def test_settings_are_counted_where_a_claim_can_be_tested() -> None:
    one, two, _ = SMALL.shares().values()
    assert one == (2, 3, 4, 0.25, 2.0, "settings")
    assert two[:3] == (0, 0, 4)
    assert (one.outcome, two.outcome) == ("depends", "not testable")
    assert SMALL.shares(start="uniform")["one"][:5] == (1, 1, 2, 0.5, 0.5)
    assert SMALL.shares(start="heaviest", seed=2)["one"][:3] == (1, 1, 1)


def test_settings_that_do_not_differ_in_what_a_claim_looks_at_are_one() -> None:
    assert SMALL.shares()["three"] == (1, 2, 2, 0.1, 0.9, "draws")
    assert SMALL.shares(start="uniform")["three"][:3] == (1, 2, 2)
    assert SMALL.distinct(ROWS[2]) == [(0, {"seed": 1}), (2, {"seed": 2})]
    for claim in STUDIES["3"].claims:
        expected = (
            () if " entrapped" in claim.text else ("fraction",) if "bias" in claim.text else ("fraction", "start")
        )
        assert claim.looks_at == expected, claim.text


@pytest.mark.parametrize("figure", FIGURES)
def test_a_claim_has_the_same_value_in_settings_that_it_does_not_tell_apart(figure: str) -> None:
    stored = ClaimSweep.load(sweep_path(figure, "stated"))
    for row in stored.rows:
        seen: dict[tuple[object, ...], object] = {}
        for setting, holds, value in zip(stored.settings, row.holds, row.values, strict=True):
            key = (setting["seed"], *(setting[name] for name in row.looks_at))
            same = (holds, None if value is None else float(f"{value:.3g}"))
            if len(row.looks_at) < 2:
                assert seen.setdefault(key, same) == same, row.text


def test_a_sweep_is_written_and_read(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "new" / "small.json")
    assert ClaimSweep.load(tmp_path / "new" / "small.json") == SMALL


def test_a_table_has_a_column_for_each_value_that_is_varied() -> None:
    (table,) = SMALL.tables()
    assert table.head == ["test", "step 0.5 of the limit", "start: uniform", "start: heaviest"]
    assert table.rows[:2] == [["one", "2 of 3", "1 of 1", "1 of 2"], ["two", "0 of 0", "0 of 0", "0 of 0"]]
    assert ClaimSweep("4b", "published", ({"seed": 1},), (ClaimRow("one", 1.0, (), (True,), (1.0,)),)).tables() == []

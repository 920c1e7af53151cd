"""A case that is quick exists: else a change of names would make a whole test long, and nobody would notice."""


def test_every_quick_case_is_one(unknown_cases: list[str]) -> None:
    assert unknown_cases == []

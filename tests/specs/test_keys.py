"""What a signature says: types that are checked, words for them, and explanations."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from numpy.typing import ArrayLike

from freewalk.designs import MHLJ, Design
from freewalk.errors import SpecError
from freewalk.schedules import Inverse, Schedule
from freewalk.specs.keys import Signature, explanations, in_words, parameters_of


def mixed(
    count: int,
    size: float = 1.0,
    flag: bool = False,
    name: str = "x",
    numbers: Sequence[int] = (),
    which: Literal["heavy", "all"] = "all",
    step: float | Schedule = 1.0,
    design: Design | None = None,
    values: int | ArrayLike = 0,
    anything: Any = None,
    pair: tuple[int, ...] = (),
    unknown: "Nobody | int" = 0,  # type: ignore[name-defined]  # noqa: F821
    bare=None,
    *rest: int,
    **more: int,
) -> None:
    """Take all kinds.

    Parameters
    ----------
    count, size
        How many,
        and how large.
    flag : bool
        Whether.

        Really.
    **more
        Others.

    Returns
    -------
    None
        Nothing.
    """


MIXED = Signature("mixed", parameters_of(mixed))


def made(family: str, table: Mapping[str, Any], where: str) -> Any:
    if table.get("kind") == "bad":
        raise SpecError(f"{where}: bad {family}")
    return Inverse(1, 1) if family == "schedule" else MHLJ(0.1, 0.5, 3)


def read(**values: Any) -> Any:
    return MIXED.read({"count": 1, **values}, "here", made)


def test_what_fits_is_passed_on() -> None:
    assert read() == {"count": 1}
    found = read(count=1e5, size=3, flag=True, numbers=[1, 2e3], which="heavy", values=[[1.5]], unknown="x", bare=[1])
    assert found["count"] == 100_000
    assert type(found["count"]) is int
    assert found["numbers"] == [1, 2000]
    assert found["values"] == [[1.5]]
    assert read(step={"kind": "Inverse"})["step"] == Inverse(1, 1)
    assert read(step=2)["step"] == 2.0
    assert read(design={})["design"] == MHLJ(0.1, 0.5, 3)
    assert read(pair=True)["pair"] is True  # left to whoever takes it, who may take more than it keeps


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 2.5}, "count = 2.5, expected a whole number"),
        ({"count": True}, "count = true, expected a whole number"),
        ({"count": "3"}, "count = '3', expected a whole number"),
        ({"size": float("nan")}, "size = nan, expected a number"),
        ({"size": float("inf")}, "size = inf, expected a number"),
        ({"size": 10**400}, "size = a whole number of 1329 bits, expected a number"),
        ({"flag": 0}, "flag = 0, expected true or false"),
        ({"name": 1}, "name = 1, expected a text"),
        ({"numbers": [1, "x"]}, r"numbers = \[1, 'x'\], expected a list of whole numbers"),
        ({"numbers": 3}, "numbers = 3, expected a list of whole numbers"),
        ({"which": "heavi"}, "which = 'heavi', expected 'heavy' or 'all'; did you mean 'heavy'?"),
        ({"which": 3}, "which = 3, expected 'heavy' or 'all'"),
        ({"step": "x"}, "step = 'x', expected a number or a schedule such as"),
        ({"step": {"kind": "bad"}}, "here: mixed: step: bad schedule"),
        ({"design": 3}, "design = 3, expected a design such as"),
        ({"values": {}}, "values is a table, expected a number or a list of numbers"),
        ({"anything": {}}, "anything is a table, expected a plain value"),
        ({"cuont": 1}, "mixed has no parameter 'cuont'; did you mean 'count'?"),
        ({"more": 1}, "mixed has no parameter 'more'; it takes count, size"),
        ({"name": "x" * 10_000, "size": "y" * 10_000}, r"size = 'yyyyyyyyyyyy\.\.\.yyy"),
    ],
)
def test_what_does_not_is_one_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("?", r"\?")) as caught:
        read(**values)
    assert str(caught.value).startswith("here: ")
    assert len(str(caught.value)) < 300


def test_what_is_missing_shows_the_signature() -> None:
    with pytest.raises(SpecError, match=r"mixed needs the parameter 'count': mixed\(count, size=1\.0, flag=False"):
        MIXED.read({"size": 1.0}, "here", made)
    with pytest.raises(SpecError, match=r"none has no parameter 'x'; it takes none"):
        Signature("none", {}).read({"x": 1}, "here", made)


def test_words_of_a_type_that_says_nothing() -> None:
    assert [in_words(one) for one in (Any, None, object)] == ["", "", ""]
    assert in_words(dict[str, int]) == "a table"


def test_explanations_of_a_docstring() -> None:
    assert explanations(mixed) == {
        "count": "How many, and how large.",
        "size": "How many, and how large.",
        "flag": "Whether. Really.",
        "more": "Others.",
    }
    assert explanations(made) == {}

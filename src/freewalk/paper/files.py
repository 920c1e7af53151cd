"""The files of the specs of the studies, and of the results of the search."""

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from freewalk.checks import suggestion
from freewalk.errors import SpecError

#: "stated": the parameters in the paper; "published": those fitted to its printed curves; "own": our companions.
Variant = Literal["stated", "published", "own"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
#: The variants of what is in the paper.
OF_THE_PAPER: tuple[Variant, ...] = ("stated", "published")


def spec_path(figure: str, variant: Variant) -> Path:
    """The spec of a figure.

    Raises
    ------
    SpecError
        If there is none.

    Examples
    --------
    >>> spec_path("3", "published").name
    'figure-3.toml'
    """
    path = _folder() / variant / f"{folder_name(figure)}.toml"
    if not path.is_file():
        raise SpecError(f"figure {figure!r}: has no spec for the variant {variant!r}")
    return path


def key_of(name: str, keys: Iterable[str]) -> str:
    """The key of a figure, as people may write it.

    Raises
    ------
    SpecError
        If there is none.

    Examples
    --------
    >>> [key_of(name, ("3", "4a")) for name in ("3", "fig3", "Figure 4A")]
    ['3', '3', '4a']
    """
    known = list(keys)
    key = re.sub(r"^fig(ure)?[\s_.-]*", "", name.lower())
    if key not in known:
        raise SpecError(f"reproduce: there is no figure {name!r}; {suggestion(key, known, 'there are')}")
    return key


def fit_path(figure: str) -> Path:
    """The file with the result of the search for a figure whose curves are printed."""
    return _folder() / "published" / f"{folder_name(figure)}.json"


def sensitivity_path() -> Path:
    """The file with the joint result of all fits."""
    return _folder() / "published" / "sensitivity.json"


def sweep_path(figure: str, variant: Variant) -> Path:
    """The file with the settings in which the claims of a figure hold."""
    return _folder() / variant / sweep_name(figure)


def sweep_name(figure: str) -> str:
    """The file of a sweep."""
    return f"{folder_name(figure)}.sweep.json"


def _folder() -> Path:
    return Path(str(files("freewalk.paper"))) / "specs"


def folder_name(figure: str) -> str:
    """The name of a figure in files and folders.

    Examples
    --------
    >>> folder_name("3"), folder_name("remark-1")
    ('figure-3', 'remark-1')
    """
    return f"figure-{figure}" if figure[:1].isdigit() else figure

"""Where the specs of the studies are, and what the search has found for them."""

from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from freewalk.errors import SpecError

Variant = Literal["stated", "published"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


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
    path = _folder() / variant / f"{_name(figure)}.toml"
    if not path.is_file():
        raise SpecError(f"figure {figure!r}: has no spec for the variant {variant!r}")
    return path


def fit_path(figure: str) -> Path:
    """What the search has found for a figure whose curves are printed."""
    return _folder() / "published" / f"{_name(figure)}.json"


def _folder() -> Path:
    return Path(str(files("freewalk.studies"))) / "specs"


def _name(figure: str) -> str:
    return f"figure-{figure}" if figure[:1].isdigit() else figure

"""The files of the studies: their specs, their claims, what searches and sweeps have found, and what is stored.

The folder of a figure holds its spec, the record of its walks and its exact curves. A file is reused if it was made
from the same spec by the same versions. Nothing in it depends on when or how fast it was made, so the same spec gives
the same bytes on the same machine.
"""

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from freewalk.checks import suggestion
from freewalk.errors import RecordError, SpecError
from freewalk.run.record import Record, read, versions
from freewalk.run.record import timeless as without_times

if TYPE_CHECKING:
    import xarray

#: "stated": the parameters in the paper; "published": those fitted to its printed curves; "own": our companions.
Variant = Literal["stated", "published", "own"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
#: The variants of what is in the paper.
OF_THE_PAPER: tuple[Variant, ...] = ("stated", "published")
#: What the folder of a figure holds.
SPEC, RECORD, EXACT, VERDICTS = "spec.toml", "record.npz", "exact", "verdicts.json"
FIGURE, CHARTS, SWEEP = "figure.png", "charts.png", "sweep.png"
_HOME = Path(str(files("freewalk.paper")))


def folder_name(figure: str) -> str:
    """The name of a figure in files and folders: `figure-3`, but `remark-1`."""
    return f"figure-{figure}" if figure[:1].isdigit() else figure


def key_of(name: str, keys: Iterable[str]) -> str:
    """The key of a figure, as people may write it: `3`, `fig3`, `Figure 3`."""
    known = list(keys)
    key = re.sub(r"^fig(ure)?[\s_.-]*", "", name.lower())
    if key not in known:
        raise SpecError(f"reproduce: there is no figure {name!r}; {suggestion(key, known, 'there are')}")
    return key


def spec_path(figure: str, variant: Variant) -> Path:
    """The spec of a figure; an error if it has none for this variant."""
    path = _HOME / "specs" / variant / f"{folder_name(figure)}.toml"
    if not path.is_file():
        raise SpecError(f"figure {figure!r}: has no spec for the variant {variant!r}")
    return path


def fit_path(figure: str) -> Path:
    """The file with the result of the search for a figure whose curves are printed."""
    return _HOME / "specs" / "published" / f"{folder_name(figure)}.json"


def sweep_path(figure: str, variant: Variant) -> Path:
    """The file with the settings in which the claims of a figure hold."""
    return _HOME / "specs" / variant / f"{folder_name(figure)}.sweep.json"


@cache
def shared() -> dict[str, Any]:
    """What the studies share: their order, the sentences of the paper, reasons why claims fail, words of the page."""
    return tomllib.loads((_HOME / "studies" / "paper.toml").read_text(encoding="utf-8"))


def study_table(key: str) -> dict[str, Any]:
    """The file of a study, with the sentences and reasons that its claims name in place of their names."""
    table = tomllib.loads((_HOME / "studies" / f"{folder_name(key)}.toml").read_text(encoding="utf-8"))
    for claim in table["claim"]:
        if "quote" in claim:
            claim["quote"] = shared()["quotes"].get(claim["quote"], claim["quote"])
        if "why" in claim:
            claim["why"] = _reasons(claim["why"])
    return table


def _reasons(why: Any) -> Any:
    """A reason, or reasons by variant."""
    if isinstance(why, dict):
        return {variant: _reasons(reason) for variant, reason in why.items()}
    return shared()["reasons"].get(why, why)


def stored(path: Path, spec: str) -> Record | None:
    """The record in a file, if it was made from this spec by these versions; else None."""
    try:
        record = read(path)
    except RecordError:  # no file, half a file, or something else: rebuilt
        return None
    story = record.provenance
    return record if story.get("spec") == spec and story.get("versions") == versions() and not record.partial else None


def timeless(record: Record, spec: str) -> Record:
    """A record with its spec and without times; visits are summed over the walks."""
    kept = without_times(record)
    kept.provenance |= {"spec": spec, "versions": versions()}
    return kept


def kept(path: Path, spec: str, compute: "Callable[[], xarray.Dataset]") -> Record:
    """Numbers that no walk made, as a reader of their file sees them; they are computed and written if need be."""
    found = stored(path, spec)
    if found is None:
        found = timeless(Record(compute()), spec)
        found.save(path)
    return found


def digest(*paths: Path) -> str:
    """The first characters of the SHA-256 of files one after the other, by which a figure names what is behind it."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]

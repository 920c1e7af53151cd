"""The whole evaluation of the paper: every figure in both variants, one page."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import SpecError
from freewalk.report.page import Page, write_page
from freewalk.studies import bias, paper
from freewalk.studies.files import OF_THE_PAPER, VARIANTS, Variant, folder_name, key_of
from freewalk.studies.study import Study
from freewalk.studies.task import Curves, Numbers, Outcome, Tell, computed

STUDIES: dict[str, Study] = {
    study.key: study
    for study in (
        paper.RING,
        paper.HOMOGENEOUS,
        paper.HETEROGENEOUS,
        paper.GRID,
        paper.SMALL_WORLD,
        paper.GAP,
        bias.SHIFTED,
        bias.TRADE_OFF,
    )
}
_COMPUTED: dict[str, Sequence[Variant]] = {"2": OF_THE_PAPER, "remark-1": ("stated",)}
#: All that can be asked for, in the order of the paper.
KEYS = ("2", "3", "4a", "4b", "5a", "5b", "6", "6-shift", "remark-1", "theorem-1")


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` has made.

    Attributes
    ----------
    outcomes
        One for each study and variant.
    page
        The page that shows them all.
    """

    outcomes: Sequence[Outcome]
    page: Path


def reproduce(
    figures: Sequence[str] = (),
    variant: Variant | None = None,
    folder: Path = Path("runs/reproduce"),
    *,
    quick: bool = False,
    workers: int | None = None,
    tell: Tell | None = None,
) -> Reproduction:
    """Reproduce figures of the paper, judge its claims, and write one page about them.

    What an earlier call has left in the folder is used again where it was made from the same spec; an interrupted one
    goes on.

    Parameters
    ----------
    figures
        Some of `KEYS`; none: all of them.
    variant
        "stated": the parameters that the paper prints; "published": those that give its printed curves; "own": our
        companions. None: all of them.
    folder
        Where to write: a folder for each variant and figure, and the page.
    quick
        Fewer walks and no exact curves: claims are judged by the mean over the walks.
    workers
        Threads for the exact curves; None: one for each core.
    tell
        Told what is under way.

    Returns
    -------
    Reproduction
        The verdicts, and where everything is.

    Raises
    ------
    SpecError
        If there is no such figure or variant.
    KeyboardInterrupt
        After Ctrl-C; what is complete has been kept.
    """
    keys = _chosen(figures)
    tasks = [_task(key, one, folder, quick) for key in keys for one in _variants(key, variant)]
    if not tasks:
        raise SpecError(f"reproduce: {', '.join(keys)} has no variant {variant!r}; leave it out to run what there is")
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        for task in tasks:
            task.begin(pool, stop)
        outcomes = [task.finish(tell or (lambda _: None)) for task in tasks]
    finally:
        stop.set()  # after an error or Ctrl-C nobody waits for curves that are under way
        pool.shutdown(wait=True, cancel_futures=True)
    page = write_page(_page(outcomes, quick), folder / _page_name(keys, variant))
    return Reproduction(outcomes, page)


def _chosen(figures: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(key_of(name, KEYS) for name in figures)) or list(KEYS)


def _variants(key: str, variant: Variant | None) -> list[Variant]:
    has = _COMPUTED[key] if key in _COMPUTED else STUDIES[key].variants
    if variant is not None and variant not in VARIANTS:
        raise SpecError(f"reproduce: variant = {variant!r}, expected one of {', '.join(VARIANTS)}")
    return [one for one in has if variant in (None, one)]


def _page_name(keys: Sequence[str], variant: Variant | None) -> str:
    """A page of a part does not replace that of the whole."""
    parts = [*(() if list(keys) == list(KEYS) else keys), *(() if variant is None else (variant,))]
    return "-".join(["reproduction", *parts]) + ".html"


def _task(key: str, variant: Variant, folder: Path, quick: bool) -> Curves | Numbers:
    place = folder / variant / folder_name(key)
    return computed(key, variant, place) if key in _COMPUTED else Curves(STUDIES[key], variant, place, quick)


def _page(outcomes: Sequence[Outcome], quick: bool) -> Page:
    intro = [
        "The evaluation of “The Entrapment Problem in Random Walk Decentralized Learning” (Liu, El Rouayheb, Dwyer), "
        "run anew. Each claim of the paper has a verdict with the number behind it.",
        "“stated” takes the parameters that the paper prints, as far as it prints them. “published” takes those that "
        "give its printed curves: they are fitted, and said to be. “own” are companions that are not in the paper.",
    ]
    if quick:
        intro.append("This is the quick version: few walks and no exact curves, so that numbers carry sampling noise.")
    return Page("The entrapment problem, reproduced", [one.section for one in outcomes], intro)

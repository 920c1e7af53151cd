"""The whole evaluation of the paper: every figure in both variants, one page."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import SpecError
from freewalk.paper.files import VARIANTS, Variant, folder_name, key_of, shared
from freewalk.paper.study import KEYS, STUDIES
from freewalk.paper.task import Curves, Numbers, StudyOutcome
from freewalk.report.page import Page, write_page
from freewalk.runtimes import runtime_named
from freewalk.specs.own import Tell


@dataclass(frozen=True)
class Reproduction:
    """The results of `reproduce`.

    Attributes
    ----------
    outcomes
        One for each study and variant.
    page
        The page that shows them all.
    """

    outcomes: Sequence[StudyOutcome]
    page: Path


def reproduce(
    figures: Sequence[str] = (),
    variant: Variant | None = None,
    folder: Path = Path("runs/reproduce"),
    *,
    quick: bool = False,
    workers: int | None = None,
    runtime: str | None = None,
    tell: Tell | None = None,
) -> Reproduction:
    """Reproduce figures of the paper, judge its claims, and write one page about them.

    Results of an earlier call in the folder are reused if they were made from the same spec; an interrupted call
    resumes.

    Parameters
    ----------
    figures
        Some of `KEYS`. Default: all.
    variant
        "stated": the parameters that the paper states; "published": those fitted to its printed curves; "own": our
        companion studies. Default: all.
    folder
        The output folder: it gets a folder for each variant and figure, and the page.
    quick
        Skip the exact curves, so that claims are judged by the mean over the walks, and the figures of the settings.
    workers
        Threads for the exact curves. Default: one per core.
    runtime
        The runtime of the walks, such as "ray". Default: that of the specs. The numbers are the same.
    tell
        Called with the current work.

    Returns
    -------
    Reproduction
        The verdicts, and where everything is.

    Raises
    ------
    SpecError
        If there is no such figure or variant.
    KeyboardInterrupt
        After Ctrl-C; complete results are kept.
    """
    keys = list(dict.fromkeys(key_of(name, KEYS) for name in figures)) or list(KEYS)
    if runtime is not None:
        runtime_named(runtime)
    if variant is not None and variant not in VARIANTS:
        raise SpecError(f"reproduce: variant = {variant!r}, expected one of {', '.join(VARIANTS)}")
    chosen = [(key, one) for key in keys for one in STUDIES[key].variants if variant in (None, one)]
    if not chosen:
        raise SpecError(f"reproduce: {', '.join(keys)} has no variant {variant!r}; leave it out to run all")
    tasks = []
    for key, one in chosen:
        kind = Numbers if STUDIES[key].module else Curves
        tasks.append(kind(STUDIES[key], one, folder / one / folder_name(key), quick, runtime))
    import numba  # noqa: F401  # imported by one thread, before several import it at once

    stop = threading.Event()
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        for task in tasks:
            task.begin(pool, stop)
        outcomes = [task.finish(tell or (lambda _: None)) for task in tasks]
    finally:
        stop.set()  # after an error or Ctrl-C, do not wait for unfinished curves
        pool.shutdown(wait=True, cancel_futures=True)
    words = shared()["page"]
    page = Page(words["title"], [one.section for one in outcomes], words["intro"] + [words["quick"]] * quick)
    # A page of some figures does not replace that of all.
    name = "-".join(["reproduction", *(() if keys == list(KEYS) else keys), *filter(None, [variant])])
    return Reproduction(outcomes, write_page(page, folder / f"{name}.html"))

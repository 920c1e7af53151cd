"""Write docs/explanation/verdicts.md and its figures from what `freewalk reproduce` has left in runs/reproduce.

freewalk reproduce && python docs/images/reproduction.py
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from freewalk.paper import KEYS, STUDIES, ClaimSweep, Fit
from freewalk.paper.files import VARIANTS, fit_path, folder_name, sweep_path
from freewalk.report.page import Table
from reproduction.sensitivity import STORED, Sensitivity

RUNS = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/reproduce")
DOCS = Path(__file__).parents[1]
IMAGES = DOCS / "images" / "reproduction"
MARKS = {"pass": "pass", "depends": "*depends*", "fail": "**fail**", "not testable": "not testable"}
COLUMNS = {"quote": "the paper", "claim": "our test", "outcome": "verdict", "share": "holds in", "measured": "measured"}
COLUMNS |= {"published": "printed", "comment": "why"}


def cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ") or "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def parts_of(tables: Sequence[Table]) -> list[str]:
    return [part for one in tables for part in (table(one.head, one.rows), one.caption)]


def smaller(file: Path, variant: str) -> str:
    """Copy a figure, in 128 colours."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    suffix = "" if file.stem == "figure" else f"-{file.stem}"
    target = IMAGES / f"{file.parent.name}-{variant}{suffix}.png"
    Image.open(file).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
    return target.name


def claims(verdicts: list[dict[str, str]]) -> str:
    """The table of claims; a sentence that several tests have in common is written once."""
    columns = [name for name in COLUMNS if any(verdict[name] for verdict in verdicts)]
    rows, quote = [], ""
    for verdict in verdicts:
        shown = {**verdict, "outcome": MARKS[verdict["outcome"]]}
        shown["quote"] = "″" if verdict["quote"] == quote != "" else verdict["quote"]
        quote = verdict["quote"]
        rows.append([shown[name] for name in columns])
    return table([COLUMNS[name] for name in columns], rows)


def section(key: str, variant: str) -> str | None:
    folder = RUNS / variant / folder_name(key)
    if not folder.is_dir():
        return None
    found = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    title = f"{STUDIES[key].name}, {variant}"
    files = [folder / file for file in ("figure.png", "charts.png", "sweep.png") if (folder / file).is_file()]
    parts = [f"## {title}", *(f"![{title}](../images/reproduction/{smaller(file, variant)})" for file in files)]
    parts.append(claims(found["verdicts"]))
    if variant == "stated" and sweep_path(key, "stated").is_file():
        parts += parts_of(ClaimSweep.load(sweep_path(key, "stated")).tables())
    if "fit" in found:
        rows = [[one["claim"], one["outcome"], one["measured"]] for one in found["fit"]]
        parts += ["How near the fit is, which is no claim:", table(["fit", "verdict", "measured"], rows)]
        parts += parts_of(Fit.load(fit_path(key)).tables())
    return "\n\n".join(parts)


if __name__ == "__main__":
    pages = [section(key, variant) for key in KEYS for variant in VARIANTS]
    head = (
        "# The verdicts\n\nEvery claim of the paper and our verdict on it, as `freewalk reproduce` gives it; "
        "[reproduction.md](reproduction.md) discusses them. Some claims are tested in many settings. Such a claim "
        "passes if it holds in at least nine tenths of the settings in which it can be tested, fails if it fails in "
        "at least nine tenths of them, and otherwise depends on the setting; “measured” is then the value of the "
        "setting in the figure. `docs/images/reproduction.py` writes this page from the output of that command."
    )
    last = ["## All fits together", *parts_of(Sensitivity.load(STORED).tables())]
    (DOCS / "explanation" / "verdicts.md").write_text(
        "\n\n".join([head, *filter(None, pages), *last]) + "\n", encoding="utf-8"
    )

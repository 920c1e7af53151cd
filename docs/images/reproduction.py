"""Write docs/explanation/verdicts.md and its figures from what `freewalk reproduce` has left in runs/reproduce.

freewalk reproduce && python docs/images/reproduction.py
"""

import json
import sys
from pathlib import Path

from PIL import Image

from freewalk.studies import KEYS, Fit
from freewalk.studies.evaluation import STUDIES
from freewalk.studies.files import VARIANTS, fit_path, folder_name

RUNS = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/reproduce")
DOCS = Path(__file__).parents[1]
IMAGES = DOCS / "images" / "reproduction"
NAMES = {"2": "Figure 2", "remark-1": "Remark 1"}


def cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ") or "–"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def smaller(file: Path, variant: str) -> str:
    """Copy a figure, in 128 colours."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    suffix = "" if file.stem == "figure" else f"-{file.stem}"
    target = IMAGES / f"{file.parent.name}-{variant}{suffix}.png"
    Image.open(file).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
    return target.name


def section(key: str, variant: str) -> str | None:
    folder = RUNS / variant / folder_name(key)
    if not folder.is_dir():
        return None
    found = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    name = NAMES.get(key) or STUDIES[key].name
    images = [smaller(folder / file, variant) for file in ("figure.png", "charts.png") if (folder / file).is_file()]
    marks = {"pass": "pass", "fail": "**fail**", "not testable": "not testable"}
    rows = [[v["claim"], marks[v["outcome"]], v["measured"], v["published"], v["comment"]] for v in found["verdicts"]]
    parts = [
        f"## {name}, {variant}",
        *(f"![{name}, {variant}](../images/reproduction/{image})" for image in images),
        table(["claim", "verdict", "measured", "printed", "why"], rows),
    ]
    if variant == "published" and fit_path(key).is_file():
        for one in Fit.load(fit_path(key)).tables():
            parts += [table(list(one.head), [list(row) for row in one.rows]), one.caption]
    return "\n\n".join(parts)


if __name__ == "__main__":
    pages = [section(key, variant) for key in KEYS for variant in VARIANTS]
    head = (
        "# The verdicts\n\nEvery claim, as `freewalk reproduce` judges it; [what to make of it](reproduction.md). This "
        "page is written by `docs/images/reproduction.py` from that command's output."
    )
    (DOCS / "explanation" / "verdicts.md").write_text(
        "\n\n".join([head, *filter(None, pages)]) + "\n", encoding="utf-8"
    )

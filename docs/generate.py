"""Write the two pages that are made from data: the paper element by element, and the verdicts.

python docs/generate.py                         # from docs/data
python docs/generate.py --runs runs/reproduce   # after taking verdicts and figures from what `freewalk reproduce` left
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # for `reproduction`

from reproduction.sensitivity import STORED, Sensitivity  # noqa: E402

from freewalk.paper import STUDIES, ClaimSweep, Fit  # noqa: E402
from freewalk.paper.files import fit_path, folder_name, sweep_path  # noqa: E402
from freewalk.report.page import Table  # noqa: E402

DATA, IMAGES = DOCS / "data", DOCS / "images" / "reproduction"
MAP, VERDICTS = DOCS / "explanation" / "paper-map.md", DOCS / "explanation" / "verdicts.md"

# The paper, element by element.

CELLS = ("element", "implemented", "tested", "judged", "note")
ABSENT = re.compile(r"(—$|no$|not yet\b)")  # what a cell says where there is nothing to name


def map_page() -> str:
    """The page that maps the paper, from docs/data/paper-map.toml."""
    data = tomllib.loads((DATA / "paper-map.toml").read_text(encoding="utf-8"))
    parts, every = [], []
    for section in data["section"]:
        rows = [[row.get(name, "—") for name in CELLS] for row in section["row"]]
        lines = [CELLS, *rows]
        table = ["| " + " | ".join(cells) + " |" for cells in lines]
        table.insert(1, "|---" * len(CELLS) + "|")
        parts += [f"## {section['title']}", *([section["text"]] if "text" in section else []), "\n".join(table)]
        every += rows
    head = data["head"].format(**_counts(every)).strip()
    return "\n\n".join([head, *parts]) + "\n"


def _counts(rows: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many rows have what."""
    middle = [row[1:4] for row in rows]
    judged = [judged for _, _, judged in middle]
    return {
        "rows": len(rows),
        "code": sum("`" in code and not ABSENT.match(code) for code, _, _ in middle),
        "test": sum("`" in test for _, test, _ in middle),
        "study": sum("`" in cell or "](" in cell for cell in judged),
        "by_test": judged.count("by its test"),
        "not_yet": sum(any(cell.startswith("not yet") for cell in cells) for cells in middle),
        "nothing": sum(all(ABSENT.match(cell) for cell in cells) for cells in middle),
    }


# The verdicts.

MARKS = {"pass": "pass", "depends": "*depends*", "fail": "**fail**", "not testable": "not testable"}
COLUMNS = {"quote": "the paper", "claim": "our test", "outcome": "verdict", "share": "holds in", "measured": "measured"}
COLUMNS |= {"published": "printed", "comment": "why"}
FIGURES = ("figure", "charts", "sweep")


def verdicts_page() -> str:
    """The page of verdicts, from docs/data/verdicts.json, the stored sweeps and the stored fits."""
    found = json.loads((DATA / "verdicts.json").read_text(encoding="utf-8"))
    head = (
        "# The verdicts\n\nEvery claim of the paper and our verdict on it, as `freewalk reproduce` gives it; "
        "[reproduction.md](reproduction.md) discusses them. Some claims are tested in many settings. Such a claim "
        "passes if it holds in at least nine tenths of the settings in which it can be tested, fails if it fails in "
        "at least nine tenths of them, and otherwise depends on the setting; “measured” is then the value of the "
        "setting in the figure. `docs/generate.py` writes this page from the output of that command."
    )
    sections = [
        _section(key, variant, found[variant][key]) for key, study in STUDIES.items() for variant in study.variants
    ]
    last = ["## All fits together", *_tables(Sensitivity.load(STORED).tables())]
    return "\n\n".join([head, *sections, *last]) + "\n"


def _section(key: str, variant: Any, found: Mapping[str, list[dict[str, str]]]) -> str:
    title = f"{STUDIES[key].name}, {variant}"
    images = [image for name in FIGURES if (image := _image(key, variant, name)).is_file()]
    parts = [f"## {title}", *(f"![{title}](../images/reproduction/{image.name})" for image in images)]
    parts.append(_claims(found["verdicts"]))
    if variant == "stated" and sweep_path(key, "stated").is_file():
        parts += _tables(ClaimSweep.load(sweep_path(key, "stated")).tables())
    if "fit" in found:
        rows = [[one["claim"], one["outcome"], one["measured"]] for one in found["fit"]]
        parts += ["How near the fit is, which is no claim:", _table(["fit", "verdict", "measured"], rows)]
        parts += _tables(Fit.load(fit_path(key)).tables())
    return "\n\n".join(parts)


def _claims(verdicts: list[dict[str, str]]) -> str:
    """The table of claims; a sentence that several tests have in common is written once."""
    columns = [name for name in COLUMNS if any(name in verdict for verdict in verdicts)]
    rows, quote = [], ""
    for verdict in verdicts:
        outcome = ", ".join(filter(None, (MARKS[verdict["outcome"]], verdict.get("terms"))))
        shown = {**verdict, "outcome": outcome}
        if verdict.get("quote", "") == quote != "":
            shown["quote"] = "″"
        quote = verdict.get("quote", "")
        rows.append([shown.get(name, "") for name in columns])
    return _table([COLUMNS[name] for name in columns], rows)


def _tables(tables: Sequence[Table]) -> list[str]:
    return [part for one in tables for part in (_table(one.head, one.rows), one.caption)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ") or "–"


def _image(key: str, variant: str, name: str) -> Path:
    return IMAGES / f"{folder_name(key)}-{variant}{'' if name == 'figure' else f'-{name}'}.png"


def take(runs: Path) -> None:
    """Take the verdicts and, in 128 colours, the figures of a reproduction."""
    from PIL import Image

    IMAGES.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for key, study in STUDIES.items():
        for variant in study.variants:
            folder = runs / variant / folder_name(key)
            values = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
            parts = {name: values[name] for name in ("verdicts", "fit") if name in values}
            found.setdefault(variant, {})[key] = {
                name: [{column: one[column] for column in (*COLUMNS, "terms") if one[column]} for one in part]
                for name, part in parts.items()
            }
            for name in FIGURES:
                if (folder / f"{name}.png").is_file():
                    image = Image.open(folder / f"{name}.png").convert("RGB")
                    small = image.quantize(128, dither=Image.Dither.NONE)
                    small.save(_image(key, variant, name), optimize=True)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (DATA / "verdicts.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=Path, help="take verdicts and figures from this folder first")
    options = parser.parse_args()
    if options.runs is not None:
        take(options.runs)
    MAP.write_text(map_page(), encoding="utf-8")
    VERDICTS.write_text(verdicts_page(), encoding="utf-8")

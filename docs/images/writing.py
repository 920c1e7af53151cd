"""What the scripts of this folder share: measurements kept as JSON, and tables written into a page."""

import argparse
import json
import re
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import freewalk as fw

Rows = list[dict[str, Any]]


def fill(page: Path, tables: Mapping[str, str]) -> None:
    """Write tables between the marks `<!-- name -->` and `<!-- end -->` of a page."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = place.subn(lambda match, table=table: f"{match[1]}{table}\n{match[2]}", text)
        if count != 1:
            raise SystemExit(f"{page}: has {count} places for the table {name!r}, expected 1")
    page.write_text(text, encoding="utf-8")


def read_parts(folder: Path, parts: Mapping[str, Any]) -> dict[str, Rows]:
    """The rows of the parts that were measured, by part."""
    files = {part: folder / f"{part}.json" for part in parts}
    return {part: json.loads(file.read_text("utf-8"))["rows"] for part, file in files.items() if file.is_file()}


def main(script: str, words: str | None, parts: Mapping[str, Callable[[], Rows]], folder: Path, draw: Any) -> None:
    """Measure the parts that the command line asks for, keep them, and draw."""
    text = (words or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(parts), action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="freewalk")  # that plain MHLJ is biased, which is what is shown
    for part in [] if options.draw else options.only or list(parts):
        began = time.perf_counter()
        rows = parts[part]()
        seconds = round(time.perf_counter() - began)
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        command = f"python docs/images/{script} --only {part}"
        head = json.dumps({"command": command, "version": fw.__version__, "seconds": seconds})[1:-1]
        (folder / f"{part}.json").write_text(f'{{{head}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
        print(f"{part}: {seconds} s", flush=True)
    draw()

"""Tables, figures and pages, made from records, sweeps, evaluations, diagnoses and partitions alone.

- `measures.py` reads a record: its checked measurements by design, the measure that is shown, the axes to show it
  against, means and bands, its nodes and their names. Nothing else opens one.
- `summary.py`: one row per design, which the table, the page and the sentences above it share.
- `figures.py`: how every figure is opened, styled and saved (without global state of matplotlib), and learning curves.
  `visits.py`, `evaluations.py`, `partitions.py`, `sweeps.py` and `diagnosis.py` draw the rest.
- `layout.py` places the nodes of a graph; `graph_map.py` draws them for a diagnosis, `page/` for a page.
- `page/` makes one HTML file, with its scripts beside it.

A design keeps its colour and dashes everywhere (`line_of`). A walk that diverged is never dropped: it counts as
infinitely bad, and the legend says how many there are. A file is complete or absent. Libraries for drawing are
imported where they are used, so that `import freewalk` stays light.
"""

from typing import Any

from freewalk.report.diagnosis import diagnosis_figure
from freewalk.report.evaluations import evaluation_table, node_losses
from freewalk.report.figures import curves
from freewalk.report.page import Chart, Page, Section, Series, Table, Verdict, Walks, section_of, write_page
from freewalk.report.partitions import partition_figure
from freewalk.report.summary import Row, summarize, table, text
from freewalk.report.sweeps import sweep_curves, sweep_lines, sweep_map
from freewalk.report.visits import escape, occupancy

__all__ = [
    "Chart",
    "Page",
    "Row",
    "Section",
    "Series",
    "Table",
    "Verdict",
    "Walks",
    "curves",
    "diagnosis_figure",
    "escape",
    "evaluation_table",
    "node_losses",
    "occupancy",
    "partition_figure",
    "section_of",
    "summarize",
    "sweep_curves",
    "sweep_lines",
    "sweep_map",
    "table",
    "text",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name == "diagnosis_table":
        raise AttributeError("report.diagnosis_table was removed: print(found) or found.text() has the table")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

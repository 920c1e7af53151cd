"""Tables, figures and pages, made from records, sweeps, evaluations, diagnoses and partitions alone."""

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

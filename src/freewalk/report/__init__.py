"""Tables, figures and pages; they read records and diagnoses and nothing else."""

from freewalk.report.diagnosis import diagnosis_figure
from freewalk.report.figures import curves
from freewalk.report.page import Chart, Page, Section, Series, Table, Verdict, Walks, section_of, write_page
from freewalk.report.summary import Row, summarize, table
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
    "occupancy",
    "section_of",
    "summarize",
    "table",
    "write_page",
]

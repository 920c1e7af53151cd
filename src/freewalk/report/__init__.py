"""Tables and figures; they read records and diagnoses and nothing else."""

from freewalk.report.diagnosis import diagnosis_figure, diagnosis_table
from freewalk.report.figures import curves, escape, occupancy
from freewalk.report.summary import Row, summarize, table

__all__ = ["Row", "curves", "diagnosis_figure", "diagnosis_table", "escape", "occupancy", "summarize", "table"]

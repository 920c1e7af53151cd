"""One self-contained HTML page of a run: interactive curves, claims, visits, and animated walks."""

from freewalk.report.page.model import Chart, Page, Section, Series, Table, Verdict, Walks
from freewalk.report.page.standard import section_of
from freewalk.report.page.write import write_page

__all__ = ["Chart", "Page", "Section", "Series", "Table", "Verdict", "Walks", "section_of", "write_page"]

"""One self-contained HTML page of a run: interactive curves, claims, visits, and animated walks.

`model.py` holds the content of a page, before any markup. `section.py` makes the standard section of a record.
`html.py` writes the file: markup that is readable without scripts, and the scripts beside it, which read the JSON that
`payload.py` makes. `places.py` puts the nodes of a graph where single steps of a walk are visible.

The browser runs only these scripts and fetches nothing: a policy in the page allows the hash of its script, and texts
are escaped wherever they go. The same page gives the same bytes.
"""

from freewalk.report.page.html import write_page
from freewalk.report.page.model import Chart, Page, Section, Series, Table, Verdict, Walks
from freewalk.report.page.section import section_of

__all__ = ["Chart", "Page", "Section", "Series", "Table", "Verdict", "Walks", "section_of", "write_page"]

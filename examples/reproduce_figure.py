"""Reproduce Figure 3 of the paper: a ring of 1000 nodes, where MHLJ frees importance sampling.

The command line does the same with `freewalk reproduce 3 --variant published --quick`. Writes the figure, the
record and a page into the folder `reproduced`. Prints each claim with its verdict and what was measured, how
near our curves are to the printed ones, and where the page is.
"""

from pathlib import Path

from freewalk.paper import reproduce

# "published" uses parameters fitted to the paper's printed curves; `quick` leaves out the exact curves.
made = reproduce(["3"], variant="published", folder=Path("reproduced"), quick=True)
(figure,) = made.outcomes
for verdict in figure.verdicts:
    print(f"{verdict.outcome:7s} {verdict.claim}")
    print(f"        {verdict.measured}")
print()
for verdict in figure.fit:
    print(f"{verdict.outcome:7s} {verdict.claim}: {verdict.measured}")
print()
print("figure:", figure.folder / "figure.png")
print("page:  ", made.page)

"""A study: one figure or statement of the paper, with its claims, as its file in the folder `studies` says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from freewalk.paper import claims, figure_2, remark_1, section_4, theorem_1
from freewalk.paper.bias import mostly_bias, trade_off, trend
from freewalk.paper.claims import Claim, ClaimShare, alike, by_name, closed, ends, foreseen, left, lower, slower, sooner
from freewalk.paper.entrapment import entrapped
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import Variant, shared, study_table
from freewalk.report.page import Chart, Series, Verdict

#: The functions that make claims about learning curves, by the kind that a file names.
KINDS = by_name(sooner, alike, slower, ends, closed, left, lower, foreseen, entrapped, mostly_bias, trend)
#: Studies without learning curves. Each of their modules has `numbers`, `judge`, `table` and `draw`.
COMPUTED = {"2": figure_2, "section-4": section_4, "remark-1": remark_1, "theorem-1-rate": theorem_1}


@dataclass(frozen=True)
class Study:
    """A figure or a statement of the paper.

    Attributes
    ----------
    key
        Its name on the command line.
    title
        Its title.
    text
        What the paper shows with it.
    claims
        Its claims about learning curves; none if it has a module, which judges numbers.
    variants
        The variants that have a spec.
    charts
        Additional charts from the same evidence.
    module
        The module that computes it, if it has no learning curves.
    named
        Its name in tables, if that does not follow from its key.
    """

    key: str
    title: str
    text: Sequence[str]
    claims: Sequence[Claim]
    variants: Sequence[Variant] = ("stated", "published")
    charts: Callable[[Evidence], Sequence[Chart]] = field(default=lambda _: ())
    module: Any = None
    named: str = ""

    @property
    def name(self) -> str:
        """Its name in tables."""
        usual = f"Figure {self.key}" if self.key[:1].isdigit() else self.key.replace("-", " ").capitalize()
        return self.named or usual

    def judge(self, evidence: Evidence, shares: Mapping[str, ClaimShare] = MappingProxyType({})) -> list[Verdict]:
        """The verdict on each claim; `shares` are the settings in which each holds, by its text."""
        return [claim.judge(evidence, shares.get(claim.text)) for claim in self.claims]


def excess_chart(evidence: Evidence) -> list[Chart]:
    """What is left above the optimum, on a log scale."""
    curves = []
    for label in evidence.plan.walks:
        updates, values = evidence.curve(label).updates, claims.excess(evidence, label)
        # Most of them early, where most changes happen.
        some = np.unique([0, *np.geomspace(1, len(updates) - 1, 30).astype(int)])
        curves.append(Series(label, {"updates": updates[some]}, values[some], kind="other"))
    return [Chart("What is left above the optimum", curves, f"{evidence.measure.label} / optimum − 1", y_log=True)]


_CHARTS = {"": lambda _: (), "excess": excess_chart, "trade_off": trade_off}


def _study(key: str) -> Study:
    """The study that a file describes."""
    table = study_table(key)
    module = COMPUTED.get(key)
    return Study(
        key,
        table["title"],
        tuple(table["text"]),
        () if module else tuple(KINDS[claim.pop("kind")](**claim) for claim in table["claim"]),
        tuple(table["variants"]),
        _CHARTS[table.get("charts", "")],
        module,
        table.get("name", ""),
    )


#: Everything that can be requested, in the order of the paper.
KEYS: tuple[str, ...] = tuple(shared()["order"])
STUDIES: dict[str, Study] = {key: _study(key) for key in KEYS}

"""A study: one figure or statement of the paper, with its claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from freewalk.paper.claims import Claim, Share
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import OF_THE_PAPER, Variant
from freewalk.report.page import Chart, Verdict


@dataclass(frozen=True)
class Study:
    """A figure of learning curves.

    Attributes
    ----------
    key
        Its name on the command line.
    title
        Its title.
    text
        What the paper shows with it.
    claims
        Its claims, as testable statements.
    variants
        The variants that have a spec.
    extra
        Additional charts from the same evidence.
    """

    key: str
    title: str
    text: Sequence[str]
    claims: Sequence[Claim]
    variants: Sequence[Variant] = OF_THE_PAPER
    extra: Callable[[Evidence], Sequence[Chart]] = field(default=lambda _: ())

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"Figure {self.key}" if self.key[:1].isdigit() else self.key.replace("-", " ").capitalize()

    def judge(self, evidence: Evidence, shares: Mapping[str, Share] | None = None) -> list[Verdict]:
        """The verdict on each claim.

        Parameters
        ----------
        evidence
            The results of its run.
        shares
            The settings in which each claim holds, by its text.
        """
        return [claim.judge(evidence, (shares or {}).get(claim.text)) for claim in self.claims]

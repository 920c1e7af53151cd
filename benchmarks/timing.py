"""Best times of contestants that take turns, so that the noise of a shared machine hits all of them alike."""

import contextlib
import io
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from contestants.contestant import ALL_CORES, Contestant


@dataclass
class Result:
    """What one contestant did.

    Parameters
    ----------
    contestant
        Who.
    rates
        Updates a second of each timed run.
    value
        The loss that it reached in the last one.
    """

    contestant: Contestant
    rates: list[float] = field(default_factory=list)
    value: float = float("nan")

    @property
    def rate(self) -> float:
        """Updates a second, the best of the runs."""
        return max(self.rates)

    def warm_up(self) -> None:
        """Prepare and run once, not timed: compilers compile, and simulations that go on come to where they stay."""
        self.contestant.prepare()
        self._once(self.contestant.warm_up or self.contestant.updates)

    def run(self) -> None:
        """Run once, timed, and see that it learned."""
        self.rates.append(self._once(self.contestant.updates))
        self._check()

    def _once(self, updates: int) -> float:
        contestant = self.contestant
        with contextlib.redirect_stdout(io.StringIO()):  # some draw progress bars
            began = time.perf_counter()
            done, self.value = contestant.run(updates)
            taken = time.perf_counter() - began
        return done / taken

    def _check(self) -> None:
        contestant, task = self.contestant, self.contestant.task()
        if contestant.learns and not task.least <= self.value <= task.most:
            raise SystemExit(
                f"{contestant.name}: ended at {task.measure} {self.value:.5g}, expected {task.least:.5g} to "
                f"{task.most:.5g}; it did not learn what the others do, so its speed means nothing"
            )


def take_turns(results: Iterable[Result], rounds: int) -> None:
    """Every one once, then every one again."""
    for _ in range(rounds):
        for result in results:
            result.run()


def machine() -> dict[str, object]:
    """Where it ran, for those who compare files."""
    kind = f"{platform.system()} {platform.machine()}"
    return {"cores": ALL_CORES, "kind": kind, "python": platform.python_version()}

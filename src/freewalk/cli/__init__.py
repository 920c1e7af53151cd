"""The command line: run a spec, look at what came out, diagnose one, reproduce the paper."""

# In the order in which help lists the commands; importing one registers it.
from freewalk.cli import running, comparing, showing, evaluating, diagnosing, reproducing, listing, partitioning  # noqa: I001
from freewalk.cli.application import app

__all__ = [
    "app",
    "comparing",
    "diagnosing",
    "evaluating",
    "listing",
    "main",
    "partitioning",
    "reproducing",
    "running",
    "showing",
]


def main() -> None:
    """The entry point of the command `freewalk`."""
    app()

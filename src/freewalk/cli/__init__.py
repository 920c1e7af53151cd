"""The command line: run a spec, inspect its results, diagnose it, reproduce the paper."""

# In the order in which the help lists the commands; importing a module registers its commands.
from freewalk.cli import (  # noqa: I001
    running,
    sweeping,
    comparing,
    peers,
    showing,
    evaluating,
    diagnosing,
    reproducing,
    listing,
    partitioning,
)
from freewalk.cli.application import app

__all__ = [
    "app",
    "comparing",
    "diagnosing",
    "evaluating",
    "listing",
    "main",
    "partitioning",
    "peers",
    "reproducing",
    "running",
    "showing",
    "sweeping",
]


def main() -> None:
    """The entry point of the command `freewalk`."""
    app()

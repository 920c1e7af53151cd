"""The command line, one file per command or family of commands."""

from importlib import import_module

from freewalk.cli.application import app

# In the order in which the help lists the commands; importing a module registers its commands.
for _name in ("run", "sweep", "compare", "network", "report", "evaluate", "diagnose", "reproduce", "list", "data"):
    import_module(f"freewalk.cli.{_name}")


def main() -> None:
    """The entry point of the command `freewalk`."""
    app()

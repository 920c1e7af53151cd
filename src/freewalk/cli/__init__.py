"""The command line, one file per command or family of commands.

`application.py` has what commands share: options, examples in help texts, one place where errors, warnings, Ctrl-C and
SIGTERM become a line and an exit status. `terminal.py` shows progress. A command imports what it needs inside its
function, so that `freewalk --help` answers at once. Results go to stdout, everything else to stderr.
"""

from importlib import import_module

from freewalk.cli.application import app

# In the order in which the help lists the commands; importing a module registers its commands.
for _name in ("run", "sweep", "compare", "network", "report", "evaluate", "diagnose", "reproduce", "list", "data"):
    import_module(f"freewalk.cli.{_name}")

main = app  # the entry point of the command `freewalk`

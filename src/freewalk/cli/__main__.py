"""`python -m freewalk.cli` is `freewalk`."""

from freewalk.cli import main

main()

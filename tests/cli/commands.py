"""Commands, given as on a command line but in this process."""

from typer.testing import CliRunner, Result

from freewalk.cli import app


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))

"""The application that commands are registered with, and what they have in common."""

from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from freewalk import terminal
from freewalk._version import __version__
from freewalk.errors import FreewalkError

ENTRAPPED, FAILED, INTERRUPTED = 1, 2, 130  # exit codes; the last is what shells give to a command that Ctrl-C ended


class Group(TyperGroup):
    """Commands whose errors are one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except FreewalkError as error:
            fail(str(error))
        except BrokenPipeError:  # `freewalk list | head`: typer ends it quietly
            raise
        except OSError as error:
            fail(f"{error.filename or 'freewalk'}: {error.strerror or error}")


def examples(*lines: str) -> str:
    """Lines for the end of a help text."""
    # An empty line is what keeps typer from joining them into a paragraph.
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


app = typer.Typer(
    cls=Group,
    name="freewalk",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "freewalk demo                  six walks on a ring, one of them entrapped",
        "freewalk example my.toml       write a commented spec to start from",
        "freewalk diagnose my.toml      say before a run whether importance sampling would be entrapped",
        "freewalk run my.toml           write record, table and figure to runs/<name>",
        "freewalk resume runs/example   go on after Ctrl-C, to the same result",
        "freewalk plot runs/example     draw its figure anew",
        "freewalk report runs/example   make one HTML page of it",
        "freewalk reproduce             the paper's figures and claims, with verdicts",
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"freewalk {__version__}")
        raise typer.Exit()


@app.callback()
def freewalk(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Decentralized learning by random walks: design a walk, run it, learn with it."""


def fail(message: str) -> NoReturn:
    """Say what is wrong and end the command."""
    terminal.say(f"error: {message}", "red")
    raise typer.Exit(FAILED)

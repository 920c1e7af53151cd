"""The application that commands register with, and what they share."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from freewalk._version import __version__
from freewalk.cli import terminal
from freewalk.errors import FreewalkError, FreewalkWarning

if TYPE_CHECKING:
    from freewalk.specs.spec import Spec

Command = TypeVar("Command", bound=Callable[..., Any])
ENTRAPPED, FAILED = 1, 2  # exit codes
_STOPPED = {"SIGINT": ("interrupted", 130), "SIGTERM": ("terminated", 143)}  # and those that shells expect

# What several commands take.
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
SpecFile = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The spec to run, a TOML file; `freewalk example` prints one.")
]
Source = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a record (.npz).")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Import the code that its spec names as module:Name, which executes it.")
]
Runtime = Annotated[str | None, typer.Option(help="Run on this runtime instead of the spec's.")]
Seed = Annotated[int | None, typer.Option(help="Use this seed for the walks instead of the spec's.")]


class Reflowing(TyperGroup):
    """Commands whose help texts wrap at the width of the terminal, not where lines end in the source."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Look up a command."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.help = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
        return command


class Commands(Reflowing):
    """Commands that report errors and warnings in one line each and end the same way after Ctrl-C and SIGTERM."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with _terminable(), _plain_warnings():
                return super().invoke(ctx)
        except FreewalkError as error:
            fail(str(error))
        except KeyboardInterrupt as interrupt:
            stop(str(interrupt), "nothing was written")
        except BrokenPipeError:  # `freewalk list | head`: typer ends it quietly
            raise
        except OSError as error:
            name = str(error.filename or "freewalk")
            fail(f"{name[:300]}{'…' * (len(name) > 300)}: {error.strerror or error}")


@contextmanager
def interruptible(left: Callable[[], str]) -> Iterator[None]:
    """End a command that is interrupted, and say what it leaves."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        stop(str(interrupt), left())


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, which clusters send, end a command as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt("SIGTERM")

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our own warnings once, in one line, without their position in our code."""
    with warnings.catch_warnings():
        show, said = warnings.showwarning, set[str]()

        def say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, FreewalkWarning):
                if str(message) not in said:  # it may apply to several walks
                    terminal.say(f"warning: {message}", "yellow")
                said.add(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = say
        yield


def examples(*lines: str) -> str:
    """Lines for the end of a help text."""
    # The empty lines keep typer from joining the examples into one paragraph.
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


#: The command that a group runs when none is named.
DEFAULT = "run"


class WithDefault(Reflowing):
    """A group with a default command: `freewalk sweep FILE` is `freewalk sweep run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the default command where none is given, except before a help option."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def group(*lines: str, cls: type[TyperGroup] = Reflowing, **options: Any) -> typer.Typer:
    """A group of commands with these examples."""
    return typer.Typer(
        cls=cls,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=examples(*lines),
        **options,
    )


app = group(
    "freewalk demo                  six walks on a ring, one of them entrapped",
    "freewalk example my.toml       write a commented spec to start from",
    "freewalk list MHLJ             explain a design, objective, graph or rule",
    "freewalk data digits           describe a data set and a partition of it",
    "freewalk diagnose my.toml      predict whether a walk would be entrapped",
    "freewalk run my.toml           write record, table and figure to runs/<name>",
    "freewalk sweep sweep.toml      run it for many values of its keys",
    "freewalk compare my.toml       count what each walk needs to reach a goal",
    "freewalk resume runs/my        resume an interrupted run",
    "freewalk plot runs/my          draw its figure again",
    "freewalk evaluate runs/digits  measure its final models, also at every node",
    "freewalk export runs/digits --out model.safetensors   write a final model to a file",
    "freewalk report runs/my        write one interactive HTML page",
    "freewalk network init my.toml net   run the same walk between real processes",
    "freewalk reproduce             reproduce the paper and judge its claims",
    cls=Commands,
    name="freewalk",
    pretty_exceptions_enable=False,
)


def command(*lines: str) -> Callable[[Command], Command]:
    """Register a command with these examples."""
    return app.command(epilog=examples(*lines))


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
    """Decentralized learning by random walks: design a walk, analyse it, and train models with it."""


def fail(message: str) -> NoReturn:
    """Print what is wrong and end the command."""
    terminal.say(f"error: {message}", "red")
    raise typer.Exit(FAILED)


def stop(by: str, message: str) -> NoReturn:
    """Print what an interrupted command leaves, and exit with the code that shells expect ("SIGTERM", else Ctrl-C)."""
    word, code = _STOPPED.get(by, _STOPPED["SIGINT"])
    terminal.say(f"{word}; {message}", "yellow")
    raise typer.Exit(code)


def spec_of(path: Path, runtime: str | None, seed: int | None) -> "Spec":
    """The spec in a file, with another runtime or seed if they are given."""
    from freewalk.specs import load

    options = {name: value for name, value in (("runtime", runtime), ("seed", seed)) if value is not None}
    return load(path).replaced(**options) if options else load(path)

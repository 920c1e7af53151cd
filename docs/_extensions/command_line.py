"""The commands of `freewalk`, from the application itself, in place of a comment in reference/command-line.md."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from sphinx.application import Sphinx

PLACE = "<!-- commands -->"
UNTOLD = ((), ("help",))  # of all commands, and of each


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the commands in."""
    if PLACE in source[0]:
        from freewalk.cli import app as freewalk

        app.env.note_reread()  # the application may have changed
        text = "\n".join(_described(typer.main.get_command(freewalk), "freewalk", 1))
        source[0] = source[0].replace(PLACE, text)


def _described(command: Any, name: str, level: int) -> Iterator[str]:
    """A command as Markdown, then those below it."""
    context = command.context_class(command, info_name=name)
    if level > 1:
        yield f"{'#' * level} {name}\n"
    yield from (_text(command.help or ""), "")
    usage = re.sub(r"\{(\w+)\}", r"\1", " ".join(command.collect_usage_pieces(context)))
    yield f"```text\n{name} {usage}\n```\n"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name not in UNTOLD[level > 1]:
            yield f"`{_name(parameter, record[0])}`\n: {_text(record[1].removesuffix('[required]')) or '&nbsp;'}\n"
    yield from _examples(command.epilog or "")
    for below in getattr(command, "commands", {}).values():
        if not below.hidden:
            yield from _described(below, f"{name} {below.name}", level + 1)


def _name(parameter: Any, shown: str) -> str:
    """The name of a parameter as it is typed."""
    return shown.split("  ")[0] if parameter.param_type_name == "option" else parameter.metavar or shown


def _text(help: str) -> str:
    """A help text as Markdown."""
    plain = re.sub(r"\[/?(?:bold|dim|italic)\]", "", help.replace("\x08", "").strip()).replace("\\[", "[")
    # Outside of `code`, signs that Markdown would take for its own.
    parts = plain.split("`")
    return "`".join(part if index % 2 else re.sub(r"([<>*_\[\]])", r"\\\1", part) for index, part in enumerate(parts))


def _examples(epilog: str) -> Iterator[str]:
    """The examples that end a help text."""
    lines = [line for line in epilog.split("\n") if line and not line.startswith("[bold]")]
    if lines:
        yield "```text\n" + "\n".join(lines) + "\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}

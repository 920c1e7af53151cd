"""The reference, from docstrings that are written to be read as text.

Code is in single backticks, bars and stars are mathematics, and types are in the signature alone. Here code becomes a
link where it names something public, mathematics stays as it is, and types are shown as the source has them.
"""

import re
from functools import cache
from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject, PyProperty
from sphinx.ext.autodoc.mock import mock
from sphinx.util.typing import stringify_annotation

MODULES = (
    "freewalk",
    *(
        f"freewalk.{name}"
        for name in ("graphs", "designs", "objectives", "rules", "exchanges", "schedules", "runtimes", "analysis")
    ),
    "freewalk.analysis.theory",
    "freewalk.data",
    "freewalk.baselines",
    "freewalk.torch",
    "freewalk.errors",
)
CODE = re.compile(r"(?<![:`])`([^`]+)`(?!`)(\w?)")
EMPHASIS = re.compile(r"(?<![\w*])(\*\*?)(?=[^\s*])((?:[^*`\n]|\n(?!\s*\n))+)(?<=\S)\1(?![\w*])")
STAR = "\0"  # stands for a star that is markup
MARKUP = re.compile(r"[\\|*]|_(?!\w)")
MODULE = re.compile(r"(?<![~\w.])(?:\w+\.)+(?=\w)")
ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[(?:~?typing\.)?tuple\[(?:~?typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[")


@cache
def public() -> dict[str, str]:
    """Where a public name is documented, as in `fw.graphs.ring`, and by the name alone where that is clear."""
    found: dict[str, str] = {}
    for module in MODULES:
        with mock(["torch", "safetensors"]):  # as autodoc imports them
            loaded = import_module(module)
        for name in getattr(loaded, "__all__", ()):
            thing, full = getattr(loaded, name), f"{module.replace('freewalk', 'fw')}.{name}"
            # Sphinx finds classes by where they are written, too, and functions only by where they are documented.
            place = f"{thing.__module__}.{name}" if isinstance(thing, type) else f"{module}.{name}"
            if callable(thing):
                found[full] = place = found.get(f"fw.{name}", place)
                if module == "freewalk" or name != name.lower() or "_" in name:  # `path` may mean something else
                    found[name] = place
    return found


def rewrite(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn the text of a docstring into reStructuredText, before napoleon reads its sections."""
    lines[:] = EMPHASIS.sub(_kept, "\n".join(lines)).split("\n")
    example = False
    for index, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        lines[index] = (line if example else _marked(line)).replace(STAR, "*")
    if what in ("attribute", "property") and lines:
        lines[0] = f": {lines[0]}"  # else napoleon takes what is before a colon for a type


def tidy(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Mend what napoleon has made of fields: two attributes in one line, and types with all their modules."""
    done: list[str] = []
    for line in lines:
        several = re.match(r":ivar ([\w, ]+,[\w, ]+):", line)
        if line.startswith((":vartype", ":type")):
            field, _, written = line.removeprefix(":").partition(":")
            line = f":{field}:{MODULE.sub(lambda path: '~' + path[0], arrays(written))}"
        elif several:
            text = line[several.end() :]
            done += [f":ivar {one.strip()}:{text}" for one in several[1].split(",")[:-1]]
            line = f":ivar {several[1].split(',')[-1].strip()}:{text}"
        done.append(line)
    lines[:] = done


def _marked(line: str) -> str:
    """A line with links in place of public names, and no other markup but code."""
    pieces, start = [], 0
    for code in CODE.finditer(line):
        place = public().get(code[1].removesuffix("()"))
        shown = f":py:obj:`{code[1]} <{place}>`" if place else f"``{code[1]}``"
        pieces += [_plain(line[start : code.start()]), shown, f"\\ {code[2]}" if code[2] else ""]
        start = code.end()
    return "".join([*pieces, _plain(line[start:])])


def _kept(emphasis: re.Match[str]) -> str:
    stars = STAR * len(emphasis[1])
    return f"{stars}{emphasis[2]}{stars}"


def _plain(text: str) -> str:
    return MARKUP.sub(lambda sign: "\\" + sign[0], text)


def skip(app: Sphinx, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of their class explains."""
    return True if str(getattr(thing, "__doc__", "")).startswith("Alias for field number") else None


def shorten(app: Sphinx, what: str, name: str, thing: Any, *about: Any) -> tuple[str, None] | None:
    """Shorten the noted types of a signature; a class that only freewalk makes is shown without one."""
    for types in app.env.current_document.autodoc_annotations.values():
        for name, written in types.items():
            types[name] = arrays(written)
    text = str(getattr(thing, "__doc__", ""))
    return ("", None) if what == "class" and "\n    Attributes\n" in text and "Parameters\n" not in text else None


def arrays(written: str) -> str:
    """A type with ArrayLike and NDArray[float64] in place of what they stand for."""
    for qualified in ("smart", "fully-qualified-except-typing"):
        for short, meant in (("str | ArrayLike", str | ArrayLike), ("ArrayLike", ArrayLike)):
            written = written.replace(stringify_annotation(meant, qualified), short)
    while found := ARRAY.search(written):
        end, depth = found.end(), 1
        while depth:
            depth += {"[": 1, "]": -1}.get(written[end], 0)
            end += 1
        inner = written[found.end() : end - 1]
        written = f"{written[: found.start()]}NDArray[{inner}]{written[end + 1 :]}"
    return written


class Property(PyProperty):
    """A property whose type is shown in short."""

    def handle_signature(self, sig: str, signode: Any) -> tuple[str, str]:
        """Shorten the type, then do as usual."""
        if "type" in self.options:
            self.options["type"] = arrays(self.options["type"])
        return super().handle_signature(sig, signode)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("autodoc-process-docstring", tidy, priority=900)
    app.connect("autodoc-process-signature", shorten, priority=900)
    app.connect("autodoc-skip-member", skip)
    app.add_directive_to_domain("py", "property", Property, override=True)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True}

"""The tables and kinds of a spec, from the package itself, in place of comments in reference/spec.md."""

import json
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

TABLES, KINDS = "<!-- tables -->", "<!-- kinds -->"
FAMILIES = {
    "graph": ("Graphs", '`[graph] kind = "…"`'),
    "problem": ("Problems", '`[problem] kind = "…"`, with synthetic data'),
    "dataset": ("Data sets", '`data = { kind = "…" }`'),
    "partition": ("Partitions", '`partition = { kind = "…", … }`'),
    "model": ("Models of PyTorch", '`model = { kind = "…", … }`, for the problem `torch`'),
    "design": ("Designs", '`design = { kind = "…", … }`'),
    "rule": ("Rules", '`rule = { kind = "…", … }`'),
    "exchange": ("Exchanges", '`exchange = { kind = "…", … }`, beside `tokens`'),
    "method": ("Methods", '`method = { kind = "…", … }`, in place of design, rule, tokens and exchange'),
    "schedule": ("Schedules", "in place of a rule's `step`, or as the `schedule` of a `Decaying` design"),
    "runtime": ("Runtimes", '`[run] runtime = "…"` in lower case, or a table with `kind` and parameters'),
}


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Put tables and kinds in."""
    for place, written in ((TABLES, _tables), (KINDS, _families)):
        if place in source[0]:
            app.env.note_reread()  # the package may have changed
            source[0] = source[0].replace(place, "\n".join(written()))


def _tables() -> Iterator[str]:
    from freewalk.specs import keys

    names = {
        "The top level": keys.Tables,
        "[run]": keys.Run,
        "[[walk]]": keys.Walk,
        "[[walk.phase]]": keys.PhaseTable,
        "[compare]": keys.Compare,
        "[compare.budget]": keys.BudgetTable,
    }
    for name, table in names.items():
        yield f"### {_escaped(name)}\n"
        for key, field in table.model_fields.items():
            default = field.default
            about = "required" if field.is_required() else "" if default in (None, []) else f"default {default}"
            yield f"`{key}`" + (f" ({about})" if about else "")
            yield f": {_escaped(field.description or '')}\n"


def _families() -> Iterator[str]:
    from freewalk.specs.catalogue import families

    for family, kinds in families().items():
        heading, use = FAMILIES[family]
        yield f"### {heading}\n\n{use}\n"
        for kind in kinds.values():
            if kind.in_specs:
                yield f"#### {kind.name}\n\n{_escaped(kind.summary)}\n"
                yield from _parameters(kind)


def _parameters(kind: Any) -> Iterator[str]:
    from freewalk.specs.keys import in_words

    for name, parameter in kind.signature.parameters.items():
        about = [in_words(parameter.annotation)]
        if parameter.default is parameter.empty:
            about.append("required")
        elif parameter.default not in (None, ()):
            default = parameter.default
            plain = isinstance(default, (bool, int, float, str, list, tuple))
            about.append(f"default {json.dumps(default) if plain else default}")
        words = ", ".join(filter(None, about))
        yield f"`{name}`" + (f" ({_escaped(words)})" if words else "")
        yield f": {_escaped(kind.explained.get(name, '')) or '&nbsp;'}\n"


def _escaped(text: str) -> str:
    """Text in which Markdown sees `code` only."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for sign in "\\*_<>[]#":
            parts[index] = parts[index].replace(sign, f"\\{sign}")
    return "`".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}

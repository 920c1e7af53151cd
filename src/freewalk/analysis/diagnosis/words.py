"""A diagnosis in words: the findings, a table of the designs, and code to paste, in Python and in TOML."""

import inspect
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk import designs, rules, schedules
from freewalk.linear.arrays import Floats

if TYPE_CHECKING:
    from freewalk.analysis.diagnosis.findings import Diagnosis, Forecast

UNIFORM, IMPORTANCE = "MH uniform", "MH importance"
BIASED, GIVEN_UP, UNKNOWN = "biased", "given up", "—"
#: Above everything else if the problem is not least squares.
NOT_YOURS = "From the importance, not your loss: traps and messages only."
#: A total variation this small is a rounding error.
ON_TARGET = 1e-9

_HEADINGS = ["design", "excess\nvisits", "distance\nfrom\ntarget", "messages\nper\nupdate"]
_RACED = ["step", "updates\nto the\ngoal", "messages\nto the\ngoal", "× MH\nuniform"]
_NARROWEST = 11  # letters in the column of the labels
_SAME = 0.02  # a ratio this close to 1 makes no difference
_HOMES = {"fw.designs": designs, "fw.schedules": schedules, "fw.rules": rules}


def text(found: "Diagnosis", width: int) -> str:
    """The whole diagnosis, in lines of at most `width` characters; the table may need more."""
    lines = (textwrap.fill(line, width, break_long_words=False) for line in [*_sentences(found), _caption(found)])
    *filled, caption = lines
    return "\n\n".join(part for part in ("\n".join(filled), _table(found, width), caption, advice(found)) if part)


def conclusion(found: "Diagnosis") -> str:
    """The main finding in one sentence."""
    if found.held is None:
        trapped = "Whether importance sampling by Metropolis is entrapped could not be determined"
    elif found.entrapped:
        trapped = f"Importance sampling by Metropolis is entrapped at {found.traps[0].where}"
    else:
        trapped = "Importance sampling by Metropolis is not entrapped"
    if found.slower is None:
        return f"{trapped}; how many updates it needs is not known."
    if abs(found.ratio - 1) < _SAME:
        return f"{trapped}, and as fast as the uniform walk."
    if found.slower:
        return f"{trapped}, {'and' if found.entrapped else 'yet'} slower than the uniform walk."
    return f"{trapped}, and {'still pays here' if found.entrapped else 'pays'}."


def advice(found: "Diagnosis") -> str:
    """The best design and its rule, to paste into Python and into a spec; empty if there is none."""
    if found.best_label is None or found.cheapest_label is None:
        return ""
    best, cheapest = found.forecasts[found.best_label], found.forecasts[found.cheapest_label]
    lines = [*_listed("use:", in_code(best)), *_listed("in a spec:", in_spec(best))]
    if cheapest is not best:
        lines += _listed("for the fewest messages:", [", ".join(in_code(cheapest))])
    return "\n".join(lines)


def _listed(title: str, lines: list[str]) -> list[str]:
    width = max(len(title), len("in a spec:"))
    return [f"{'' if place else title:{width}} {line}" for place, line in enumerate(lines)]


def _table(found: "Diagnosis", width: int) -> str:
    """One row per design: excess visits, distance from target, messages, and the race to the goal; > marks the best.

    "biased" means that the limit itself is too far from the optimum, "> 20 ×" that the design was stopped before it
    reached the goal, and — that nothing was computed. If no updates were computed at all, their columns are left out.
    """
    raced = any(one.race is not None for one in found.forecasts.values())
    headings = _HEADINGS + (_RACED if raced else [])
    rows = [headings, *(_cells(found, one)[: len(headings)] for one in found.forecasts.values())]
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], max(_NARROWEST, width - sum(widths[1:]) - 2 * len(widths)))
    lines = []
    for place, row in enumerate(rows):
        columns = [textwrap.wrap(row[0], widths[0]), *(cell.split("\n") for cell in row[1:])]
        height = max(map(len, columns))
        for label, *numbers in zip(*([""] * (height - len(one)) + one for one in columns), strict=True):
            mark = "> " if place and row[0] == found.best_label and numbers[0] else "  "
            aligned = (f"{one:>{size}}" for one, size in zip(numbers, widths[1:], strict=True))
            lines.append("  ".join([f"{mark}{label:{widths[0]}}", *aligned]).rstrip())
    return "\n".join(lines)


def _cells(found: "Diagnosis", one: "Forecast") -> list[str]:
    updates, messages = (np.nan, np.nan) if one.race is None else (one.race.updates, one.race.messages)
    return [
        one.label,
        number(one.excess),
        "0" if one.distance <= ON_TARGET else UNKNOWN if np.isnan(one.distance) else f"{one.distance:.2g}",
        UNKNOWN if np.isnan(one.messages_per_update) else f"{one.messages_per_update:.2f}",
        UNKNOWN if one.race is None else f"{one.race.step:.2g}",
        outcome(one) or number(updates),
        number(messages),
        times(found, one),
    ]


def number(value: float) -> str:
    """A count as people write it, such as 1,341 or 17.9; a dash if it is not finite."""
    if not np.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def outcome(one: "Forecast") -> str:
    """Why a design did not reach the goal; empty if it did, or was not followed."""
    if one.race is None or np.isfinite(one.race.updates):
        return ""
    # A design whose stationary distribution is its target gets there in the end, even if some of its error counts as
    # bias before that.
    return BIASED if one.distance > ON_TARGET and one.race.bias > one.race.excess / 2 else GIVEN_UP


def times(found: "Diagnosis", one: "Forecast") -> str:
    """Updates divided by those of the uniform walk, in words."""
    ratio = found.times_uniform(one.label)
    if np.isfinite(ratio):
        return f"{ratio:.2f} ×" if ratio < 10 else f"{number(ratio)} ×"
    uniform = found.forecasts[UNIFORM].race
    if np.isnan(ratio) or outcome(one) == BIASED or found.goal is None or uniform is None:
        return UNKNOWN
    return f"> {found.goal.most / max(uniform.updates, 1.0):.2g} ×"


def _caption(found: "Diagnosis") -> str:
    words = []
    if found.held is not None:
        words.append(
            f"Excess visits: updates beyond its long-run share that the walk spends at {found.held.where} once it is "
            "there, including returns."
        )
    words.append("Distance from target: total variation; 0 means unbiased.")
    if found.goal is not None and any(one.race is not None for one in found.forecasts.values()):
        settle, reach = (found.goal.in_words(error) for error in (found.goal.settle, found.goal.reach))
        words.append(f"Step: chosen to settle at {settle}, but at most 1 / max w L. Goal: an expected loss of {reach}.")
        words.append(f"Last column: updates to the goal, relative to {UNIFORM}.")
    outcomes = {outcome(one) for one in found.forecasts.values()}
    if BIASED in outcomes:
        words.append(f"'{BIASED}': the design settles above the goal, because of its bias.")
    if GIVEN_UP in outcomes and found.goal is not None:
        words.append(f"'{GIVEN_UP}': not at the goal after {number(found.goal.most)} updates.")
    return " ".join(words)


def _sentences(found: "Diagnosis") -> list[str]:
    """The diagnosis, sentence by sentence."""
    values = found.importance
    lines = [
        "" if found.exact else NOT_YOURS,
        found.conclusion,
        f"{found.graph.name}: {found.graph.n} nodes; importance from {values.min():.3g} to {values.max():.3g}, mean "
        f"{mean(values):.3g}.",
        f"By the rates of centralized learning, {found.rates}." if found.exact else "",
        _entrapment(found),
        _verdict(found),
        _winners(found),
    ]
    if found.left_out:
        parts = "; ".join(f"{what}: {why}" for what, why in found.left_out.items())
        lines.append(f"Left out, with a budget of {found.budget:g} s: {parts}.")
    return [line for line in lines if line]


def _winners(found: "Diagnosis") -> str:
    """Which design needs the fewest updates, and which the fewest messages."""
    labels = found.best_label, found.cheapest_label
    best, cheapest = (None if label is None else found.forecasts[label].race for label in labels)
    if best is None or cheapest is None:
        return ""
    words = "The uniform walk is the best" if found.best_label == UNIFORM else f"{found.best_label} is the fastest"
    needs = f"{counted(best.updates, 'update')} and {counted(best.messages, 'message')}, with step {best.step:.3g}"
    words += f" of the designs below: {needs}."
    if found.cheapest_label != found.best_label:
        needs = f"{counted(cheapest.messages, 'message')} and {counted(cheapest.updates, 'update')}"
        words += f" Where messages are scarce, {found.cheapest_label} needs the fewest: {needs}."
    return words


def mean(values: Floats) -> float:
    """The mean, even of numbers whose sum overflows."""
    return float(values.max() * np.mean(values / values.max()))


def counted(amount: float, what: str) -> str:
    """A number of things, such as "1,234 updates", "1 update" or "less than one update"."""
    if amount < 0.995:
        return f"less than one {what}"
    return f"{amount:,.0f} {what}{'s' * (round(amount) != 1)}"


def _entrapment(found: "Diagnosis") -> str:
    held, n = found.held, found.graph.n
    if held is None:
        return ""
    words = (
        f"once at {held.where}, the importance walk spends {counted(held.excess, 'update')} there beyond its long-run "
        f"share of {100 * held.share:.3g} %, including returns; the uniform walk spends "
        f"{counted(held.uniform, 'update')} beyond its own share. The importance walk needs "
        f"{counted(held.memory, 'update')} to forget that it was there"
    )
    if not found.entrapped:
        why = f"In a trap it would need at least {n:,} more than the uniform walk, one per node"
        if held.lost >= n:
            many = f"{held.factor:.2g} times as many as the uniform walk needs"
            why = f"That is {many}; in a trap it is ten times or more"
        return f"Even where it is held most, it is not trapped: {words}. {why}."
    others = len(found.traps) - 1
    more = f" There {'are' if others > 1 else 'is'} {others} more trap{'s' * (others > 1)}." if others else ""
    return f"The trap: {words}.{more}"


def _verdict(found: "Diagnosis") -> str:
    uniform, importance = (found.forecasts[label].race for label in (UNIFORM, IMPORTANCE))
    goal = found.goal
    if goal is None or uniform is None or importance is None:
        return ""
    where, reached = f"Starting at {found.start}, on these data", goal.in_words(goal.reach)
    if np.isnan(found.ratio):
        return f"{where}, neither the importance walk nor the uniform walk reaches {reached}."
    if not np.isfinite(importance.updates):
        many = f"more than {goal.most / max(uniform.updates, 1.0):.2g} times the {counted(uniform.updates, 'update')}"
        return f"{where}, the importance walk needs {many} of the uniform walk to reach {reached}: it is far slower."
    needs = f"{where}, the importance walk needs {counted(importance.updates, 'update')} to reach {reached}"
    if not np.isfinite(uniform.updates):
        return f"{needs}, which the uniform walk does not reach: it pays."
    verdict = (
        "that makes no difference" if abs(found.ratio - 1) < _SAME else "it is slower" if found.slower else "it pays"
    )
    settled = goal.in_words(goal.settle)
    if uniform.excess < 0.9 * goal.settle:
        settled += f" (the largest step of the uniform walk settles lower, at {goal.in_words(uniform.excess)})"
    needs += f" and the uniform walk {counted(uniform.updates, 'update')} (ratio {found.ratio:.2g})"
    return f"{needs}, with steps that settle at {settled}: {verdict}."


def in_code(one: "Forecast") -> list[str]:
    """The calls that create a design and its rule."""
    return [in_python(thing) for thing in (one.design, one.rule) if thing is not None]


def in_spec(one: "Forecast") -> list[str]:
    """The same as lines of a spec; none if a spec cannot name the design."""
    design, rule = in_toml(one.design), None if one.rule is None else in_toml(one.rule)
    both = {} if design is None else {"design": design, "rule": rule}
    return [f"{key} = {value}" for key, value in both.items() if value is not None]


def in_python(thing: Any) -> str:
    """The call that creates a design, a rule or a schedule; its repr if parts, such as arrays, cannot be written."""
    home = "fw." if type(thing) is rules.SGD else _home(thing)  # the shorter name
    given = _arguments(thing)
    if given is None:
        return f"{home}{thing!r}"
    parts = (f"{name}={in_python(value) if _has_parts(value) else repr(value)}" for name, value in given.items())
    return f"{home}{type(thing).__name__}({', '.join(parts)})"


def in_toml(thing: Any) -> str | None:
    """The same as a value in a spec; None if a spec cannot express it."""
    import tomlkit

    given, kind = _arguments(thing), type(thing)
    if given is None or kind.__module__ == "__main__" or kind.__qualname__ != kind.__name__:
        return None
    parts = {"kind": kind.__name__ if _home(thing) else f"{kind.__module__}:{kind.__name__}", **given}
    for key, value in parts.items():
        parts[key] = in_toml(value) if _has_parts(value) else tomlkit.item(value).as_string()
    if None in parts.values():
        return None
    return f"{{ {', '.join(f'{key} = {value}' for key, value in parts.items())} }}"


def _home(thing: Any) -> str:
    """The module in which users find a class, with a dot; empty if it is their own."""
    name = type(thing).__name__
    return next((f"{home}." for home, module in _HOMES.items() if getattr(module, name, None) is type(thing)), "")


def _has_parts(value: Any) -> bool:
    return isinstance(value, (designs.Design, schedules.Schedule))


def _arguments(thing: Any) -> dict[str, Any] | None:
    """The arguments of a class that differ from the default, or the first number; None if they cannot be written."""
    state = {name: value.item() if isinstance(value, np.generic) else value for name, value in vars(thing).items()}
    plain = {name: value for name, value in state.items() if isinstance(value, (int, float, str)) or _has_parts(value)}
    parameters = inspect.signature(type(thing)).parameters
    required = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    unwritten = any(value is not None for name, value in state.items() if name not in plain)
    if unwritten or not required <= set(plain) <= set(parameters):
        return None
    changed = {name: value for name, value in plain.items() if value != parameters[name].default}
    return changed or dict(list(plain.items())[:1])

"""Say what is wrong with a file a person wrote: where, what, and an example of what would be right.

Nothing here decides what is right; the models of `scenario` and `speech` do. This turns their findings into
sentences, all of them at once, because nobody wants to repair a file one mistake at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pydantic import ValidationError

# Lists longer than this are cut in a sentence; the page of the format has them all.
_SHOWN = 12


def sentence(file: Path, place: str, what: str, *, example: str | None = None) -> str:
    """Return one plain sentence with file, place, what is wrong, and an example."""
    where = f"{file}, {place}" if place else f"{file}"
    text = f"{where}: {what.rstrip('.')}."
    return f"{text} Example: {example}" if example else text


def place_of(location: Sequence[int | str]) -> str:
    """Return a position as it reads in the file: ('people', 'mira', 'id') -> `people.mira.id`."""
    out = ""
    for part in location:
        # People count from one.
        out += f" number {part + 1}" if isinstance(part, int) else f"{'.' if out else ''}{part}"
    return out


def sentences_of(
    error: ValidationError,
    file: Path,
    *,
    place: str = "",
    known: Iterable[str] = (),
    examples: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return every mistake pydantic found, one sentence each.

    `place`: what the model stands for (`steps number 3`). `known`: the keys it has, for misspelt ones.
    `examples`: one per key.
    """
    known = tuple(known)
    out = []
    for found in error.errors(include_url=False):
        location = tuple(part for part in found["loc"] if part != "[key]")
        key = str(location[-1]) if location else ""
        whole = " ".join(filter(None, (place, "")))
        inner = place_of(location)
        where = f"{whole.strip()}.{inner}" if whole and inner else whole or inner
        out.append(sentence(file, where, _what(found, key, known), example=(examples or {}).get(_named(location))))
    return tuple(out)


def _named(location: Sequence[int | str]) -> str:
    """Return the innermost key with a name."""
    return next((part for part in reversed(location) if isinstance(part, str)), "")


def _what(found: Any, key: str, known: tuple[str, ...]) -> str:
    context = found.get("ctx", {})
    given = _shown(found.get("input"))
    match found["type"]:
        case "missing":
            return f"`{key}` is missing"
        case "extra_forbidden":
            listed = ", ".join(known[:_SHOWN])
            return f"`{key}` is not a key that exists here" + (f"; there are {listed}" if listed else "")
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            bounds = {
                "gt": "must be more than",
                "ge": "must be at least",
                "lt": "must be less than",
                "le": "must be at most",
            }
            said = " and ".join(f"{words} {context[name]}" for name, words in bounds.items() if name in context)
            return f"{given} {said}"
        case "literal_error" | "enum":
            return f"{given} is not one of {context['expected']}"
        case "value_error":
            return str(context["error"])
        case "string_too_short":
            return "it is empty"
        case "float_type" | "float_parsing" | "int_type" | "int_parsing" | "int_from_float":
            return f"{given} is not a number that fits here"
        case "string_type":
            return f"{given} is not text in quotation marks"
        case "bool_type" | "bool_parsing":
            return f"{given} is neither true nor false"
        case _:
            message = found["msg"]
            return f"{given}: {message[:1].lower()}{message[1:]}"


def _shown(value: object) -> str:
    """Return a value as the person wrote it, short enough for a sentence."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

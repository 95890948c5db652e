"""Error messages about a file that a person wrote: where the mistake is, what is wrong, and an example of a right
value.

The pydantic models of this package decide what is right. This module turns all their findings into sentences, so
that a person sees every mistake at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pydantic import ValidationError

# Longer lists are shortened in a message. docs/scenarios.md has the full lists.
_MAX_LISTED = 12

# One example for each key of a scenario file, used in messages about that key.
EXAMPLES: dict[str, str] = {
    "title": 'title = "An evening in miniature"',
    "people": '[people.mira] with name = "Mira"',
    "name": 'name = "Mira"',
    "id": "id = 410000000000000001",
    "who": 'who = "mira"',
    "say": 'say = "Roomtone, which island did we choose?"',
    "audio": 'audio = "mira-01.ogg"',
    "command": 'command = "join"',
    "options": 'options = { channel = "Lounge" }',
    "join": "join = true",
    "leave": "leave = true",
    "shows": 'shows = "1-map.jpg"',
    "stops_sharing": "stops_sharing = true",
    "knew": 'knew = ["victory"]',
    "network": "network = { loss = 0.05 }",
    "loss": "loss = 0.05",
    "padding": "padding = 0.05",
    "reorder": "reorder = 0.05",
    "fault": 'fault = "late_speaking"',
    "server": 'server = "model"',
    "conduct": 'conduct = "stall"',
    "first_token_s": "first_token_s = 2.5",
    "answered": "answered = true",
    "asked": 'asked = ["bicycle"]',
    "otherwise": 'otherwise = "I am listening."',
    "tool": 'tool = "memory_search"',
    "arguments": 'arguments = { query = "bicycle" }',
    "expires_in_response": "expires_in_response = 2",
    "wait_for": 'wait_for = "reply"',
    "new_cursor": "new_cursor = 10",
    "bot": 'bot = "restart"',
    "at": "at = 12.5",
    "after": 'after = "reply"',
    "gap_s": "gap_s = 0.8",
    "overlap_s": "overlap_s = 0.5",
    "timeout_s": "timeout_s = 30",
    "history": 'history = "history.jsonl"',
    "kind": 'kind = "every_utterance_heard_once"',
    "value": "value = 0.15",
    "old_cursor": "old_cursor = 0",
    "words": 'words = ["Ithaca"]',
    "to": 'to = "ask"',
    "since": 'since = "hush"',
    "until": 'until = "talk-again"',
    "within_s": "within_s = 1.0",
    "contains": 'contains = "(interrupted)"',
    "count": "count = 3",
    "ms": "ms = 1500",
    "stage": 'stage = "end_to_text_ms"',
}


def format_mistake(file: Path, place: str, what: str, *, example: str | None = None) -> str:
    """Return one sentence with the file, the place, what is wrong, and an example."""
    where = f"{file}, {place}" if place else f"{file}"
    text = f"{where}: {what.rstrip('.')}."
    return f"{text} Example: {example}" if example else text


def format_location(location: Sequence[int | str]) -> str:
    """Return a position in the notation of the file: ('people', 'mira', 'id') -> `people.mira.id`."""
    out = ""
    for part in location:
        # Numbers in messages start at one.
        out += f" number {part + 1}" if isinstance(part, int) else f"{'.' if out else ''}{part}"
    return out


def format_validation_errors(
    error: ValidationError,
    file: Path,
    *,
    place: str = "",
    known: Iterable[str] = (),
    examples: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return one sentence for each error that pydantic found.

    `place`: where the model stands in the file (`steps number 3`). `known`: the model's keys, which are listed when a
    key is unknown. `examples`: one for each key.
    """
    known = tuple(known)
    out = []
    for found in error.errors(include_url=False):
        location = tuple(part for part in found["loc"] if part != "[key]")
        key = str(location[-1]) if location else ""
        inner = format_location(location)
        where = f"{place}.{inner}" if place and inner else place or inner
        out.append(
            format_mistake(
                file, where, _what(found, key, known), example=(examples or {}).get(_innermost_key(location))
            )
        )
    return tuple(out)


def _innermost_key(location: Sequence[int | str]) -> str:
    """Return the last part of the location that is a key and not a number."""
    return next((part for part in reversed(location) if isinstance(part, str)), "")


def _what(found: Any, key: str, known: tuple[str, ...]) -> str:
    context = found.get("ctx", {})
    given = _quoted(found.get("input"))
    match found["type"]:
        case "missing":
            return f"`{key}` is missing"
        case "extra_forbidden":
            listed = ", ".join(known[:_MAX_LISTED])
            return f"there is no key `{key}` here" + (f"; the keys are {listed}" if listed else "")
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


def _quoted(value: object) -> str:
    """Return a value as it was written, shortened to fit into a sentence."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

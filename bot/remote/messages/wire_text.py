"""A `Text` as JSON, so that a sentence can still be translated in the process that writes it.

A plain string stays one. What comes in is checked: a template may name values and format numbers, and nothing else,
because a placeholder of Python could otherwise look into objects or ask for gigabytes of spaces.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator

from bot.texts.text import Text, joined, sentence_of, text_again, verbatim

# Texts in texts: a sentence with a reason with a number has three.
_DEEPEST = 8
# More values or parts than any text of ours has: a card's line of people is the longest.
_MOST = 200
# A text may have twice the characters that came for it, and so many more, because numbers are written out. One that
# repeats a long value again and again makes gigabytes of a message of 100 kB.
_LONGER_CHARS = 2_000
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
# A width, a number of decimals, a type: as in `{seconds:.0f}` and `{number:,d}`.
_FORMAT = re.compile(r"[<>^]?0?\d{0,2},?(\.\d{1,2})?[dfgs%]?")


def text_to_json(text: str) -> Any:
    """Return a text as JSON. A value that is neither text, number nor error is written out in English here."""
    if not isinstance(text, Text):
        return str(text)
    if text.parts:
        return {"parts": [text_to_json(part) for part in text.parts], "separator": text.separator}
    values = {name: _value_to_json(value) for name, value in text.values.items()}
    try:
        same = text_again(text.template, {name: _value(value, 0) for name, value in values.items()}) == text
    except (LookupError, ValueError):
        same = False
    return {"template": text.template, "values": values} if same else str(text)


def text_from_json(found: Any) -> Text:
    """Return the text in JSON. Raises `ValueError`."""
    return verbatim(_text(found, 0))


def _value_to_json(value: object) -> Any:
    if isinstance(value, BaseException):
        return text_to_json(sentence_of(value))
    if isinstance(value, str):
        return text_to_json(value)
    return value if isinstance(value, bool | int | float) else str(value)


def _value(found: Any, depth: int) -> object:
    return found if isinstance(found, bool | int | float) else _text(found, depth)


def _text(found: Any, depth: int) -> str:
    if depth > _DEEPEST:
        raise ValueError("texts in texts in texts")
    match found:
        case str():
            return found
        case {"parts": list(parts), "separator": str(separator)} if len(parts) <= _MOST:
            texts = [_text(part, depth + 1) for part in parts]
            _check_length(sum(map(len, texts)) + len(separator) * len(texts), _most_chars(found))
            return joined(texts, separator)
        case {"template": str(template), "values": Mapping() as values} if len(values) <= _MOST:
            known = {name: _value(value, depth + 1) for name, value in values.items()}
            return _filled(template, known, _most_chars(found))
        case _:
            raise ValueError("no text")


def _filled(template: str, values: dict[str, object], most_chars: int) -> Text:
    try:
        _check(template, values, most_chars)
        return text_again(template, values)
    except (LookupError, ArithmeticError) as error:
        raise ValueError("a value is missing, or no number that can be written") from error


def _check(template: str, values: Mapping[str, object], most_chars: int) -> None:
    """Raise `ValueError` unless the placeholders of a template are names of values, plainly formatted, and make a text
    of at most `most_chars`.
    """
    if not values:
        # Then nothing is filled in.
        return
    length = 0
    for literal, name, spec, conversion in string.Formatter().parse(template):
        length += len(literal)
        if name is None:
            continue
        if conversion or name not in values or not _NAME.fullmatch(name) or not _FORMAT.fullmatch(spec or ""):
            raise ValueError("a placeholder that no text of ours has")
        value = values[name]
        length += len(value if isinstance(value, str) else format(value, spec or ""))
        _check_length(length, most_chars)


def _check_length(chars: int, most_chars: int) -> None:
    if chars > most_chars:
        raise ValueError("a text that is far longer than what it is made of")


def _most_chars(found: Any) -> int:
    """Return how long the text in JSON may be."""
    return _LONGER_CHARS + 2 * _chars(found)


def _chars(found: Any) -> int:
    """Return how many characters the texts of a text have."""
    match found:
        case str():
            return len(found)
        case Mapping():
            return sum(map(_chars, found.values()))
        case list():
            return sum(map(_chars, found))
        case _:
            return 0


# A sentence in a message. In the message it is a `Text`, whatever was given.
WireText: TypeAlias = Annotated[Text, PlainValidator(text_from_json), PlainSerializer(text_to_json)]

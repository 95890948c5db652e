"""Finds values that the schema's types take for something that nobody meant: a boolean as a number, blanks as a path.

`true` is 1 for Python, and an empty path is the working directory: `web.port = true` would listen on port 1, and
`storage.data_dir = ""` would put the database wherever the command is typed.
"""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from config.problems import example
from config.schema import INTERNAL, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.schema import Setting
    from config.sources import GivenValue

# How a place within a table or a list is named.
_Steps = tuple[str, ...]


def lookalikes(given: GivenValue) -> Iterator[str]:
    """Yield a sentence for each fault in a value. Pure."""
    setting = SETTINGS.get(given.key) or INTERNAL.get(given.key)
    if setting is None:
        return
    where, end = f"{setting.name} in {given.origin.place}", f"For example: {example(setting, given.origin)}"
    for steps in _booleans_as_numbers(setting.field.annotation, given.value):
        inside = f"{' of '.join(reversed(steps))} in " if steps else ""
        yield f"{inside}{where} must be a number, but is true or false. {end}"
    if _is_blank(setting, given.value):
        yield f"{where} is empty. Name a {'path' if setting.path else 'text'}, or delete the line. {end}"


def _booleans_as_numbers(annotation: Any, value: object, steps: _Steps = ()) -> Iterator[_Steps]:
    """Yield the place of each boolean that would be taken as a number."""
    parts = get_args(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _booleans_as_numbers(parts[0], value, steps)
    elif origin in (Union, UnionType):
        if bool not in parts:
            for part in parts:
                yield from _booleans_as_numbers(part, value, steps)
    elif isinstance(value, bool):
        if annotation in (int, float):
            yield steps
    elif isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from _booleans_as_numbers(field.annotation, value.get(name), (*steps, name))
    elif isinstance(value, dict) and origin is dict:
        for name, each in value.items():
            yield from _booleans_as_numbers(parts[1], each, (*steps, str(name)))
    elif isinstance(value, list) and origin in (tuple, list):
        for number, each in enumerate(value, start=1):
            yield from _booleans_as_numbers(parts[0], each, (*steps, f"entry {number}"))


def _is_blank(setting: Setting, value: object) -> bool:
    """Return whether a value has no letter where one is needed. An empty text is what some settings begin with."""
    if not isinstance(value, str) or value.strip(" \t\r\n\0"):
        return False
    if value == "" == setting.default:
        return False
    return setting.path or _needs_text(setting) or setting.key[-1] == "model"


def _needs_text(setting: Setting) -> bool:
    return any((getattr(each, "min_length", None) or 0) > 0 for each in setting.field.metadata)

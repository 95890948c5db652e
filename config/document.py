"""Writes `default.toml`: every setting with its meaning, its bounds and its default, out of the schema.

Run `python -m config.document` after changing a settings class; a test compares the file with the schema.
"""

from __future__ import annotations

import inspect
import textwrap
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from config.problems import toml_value
from config.schema import SETTINGS, Setting, Settings, section_type, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from config.schema import Key

DEFAULTS = Path(__file__).with_name("default.toml")
WIDTH = 110

_HEADER = """\
# Every setting of Roomtone with its default. Don't edit this file: write what you want to be different into
# roomtone.toml in the directory you start Roomtone from (or a file named by ROOMTONE_CONFIG), under
# the same [section]. Stronger than that file is the environment, ROOMTONE_SECTION__FIELD, for example
#     ROOMTONE_ASR__LANGUAGE=en
# with lists separated by commas; variables may stand in a file .env beside roomtone.toml. Tokens and keys belong
# there, as DISCORD_TOKEN and OPENAI_API_KEY. A setting shown commented out has no value unless you give it one.
"""


def render() -> str:
    """Return the whole of `default.toml`."""
    return "\n\n".join([_HEADER.rstrip(), *_sections(Settings, ())]) + "\n"


def main() -> None:
    """Write the file in its place."""
    DEFAULTS.write_text(render(), encoding="utf-8")


def _sections(model: type[BaseModel], under: Key) -> Iterator[str]:
    for name, field in model.model_fields.items():
        section = section_type(field)
        if section is None:
            continue
        key = (*under, name)
        about = _comment(inspect.cleandoc(section.__doc__ or ""))
        own = [_setting(SETTINGS[(*key, each)]) for each in _leaves(section)]
        yield "\n\n".join([f"{about}\n[{'.'.join(key)}]", *own])
        yield from _sections(section, key)


def _leaves(section: type[BaseModel]) -> Iterator[str]:
    return (setting.key[-1] for setting in settings_of(section) if not setting.internal)


def _setting(setting: Setting) -> str:
    default = setting.default
    comment = _comment(" ".join(filter(None, [setting.field.description, _allowed(setting)])))
    if default is None:
        return f'{comment}\n# {setting.key[-1]} = "…"' if setting.secret else f"{comment}\n# {setting.key[-1]} = …"
    return f"{comment}\n{setting.key[-1]} = {toml_value(default)}"


def _allowed(setting: Setting) -> str:
    """Return what values a setting takes, as a sentence; nothing where its meaning says it."""
    annotation = setting.field.annotation
    if get_origin(annotation) is Literal:
        return f"One of: {', '.join(map(str, get_args(annotation)))}."
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"One of: {', '.join(str(member.value) for member in annotation)}."
    words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
    bounds = [
        f"{word} {getattr(constraint, name)}"
        for constraint in setting.field.metadata
        for name, word in words.items()
        if getattr(constraint, name, None) is not None
    ]
    return f"Allowed: {', '.join(bounds)}." if bounds else ""


def _comment(text: str) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n".join(
        textwrap.fill(paragraph, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
        for paragraph in paragraphs
    )


if __name__ == "__main__":
    main()

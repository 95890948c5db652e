"""Every language has a line for each text that the code uses, with the same placeholders, and none besides.

To mend a failure, edit the language's file in bot/texts (docs/translating.md).
"""

from __future__ import annotations

import ast
import json
import re
import string
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot.discord.access import RULES
from bot.texts.catalogue import catalogue, languages
from tests.bot.discord.test_command_tree import all_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
OTHERS = sorted(set(languages()) - {"en"})
# What Discord accepts as the name of a command or of an option.
NAME = re.compile(r"^[-_'ʼ\w]{1,32}$")


@cache
def used_texts() -> dict[str, str]:
    """Return the sentences of all `Text` and `counted` calls, each with its place in the code."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "bot").rglob("*.py")):
        source = path.read_text("utf-8")
        if "bot.texts.text import" not in source:
            continue
        for call in ast.walk(ast.parse(source)):
            for argument in _sentences(call):
                place = f"{path.relative_to(ROOT)}:{argument.lineno}"
                assert isinstance(argument, ast.Constant), f"{place}: write the sentence here"
                assert isinstance(argument.value, str)
                found[argument.value] = place
    return found


def _sentences(call: ast.AST) -> list[ast.expr]:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return []
    return {"Text": call.args[:1], "counted": call.args[1:3]}.get(call.func.id, [])


def shown_by_discord() -> Iterator[tuple[str, bool]]:
    """Yield each text of the commands, and whether it is a name."""
    for command in all_commands():
        for each in (command, command.parent):
            if each is not None:
                yield each.name, True
                yield each.description, False
        for parameter in command.parameters:
            yield parameter.display_name, True
            yield str(parameter.description), False
            for choice in parameter.choices:
                yield choice.name, True


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def as_lines(what: str, keys: set[str]) -> str:
    """Return lines as a language's file has them, with the place of each sentence in the code."""
    found = [f'{json.dumps(key, ensure_ascii=False)} = ""  # {used_texts().get(key, "commands")}' for key in keys]
    return "\n".join((f"{what}:", *sorted(found)))


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.asyncio
async def test_every_text_has_its_line(language: str) -> None:
    """No sentence, description or name is missing, and none is left over."""
    known = catalogue(language)
    shown = list(shown_by_discord())
    texts = set(used_texts()) | {text for text, is_name in shown if not is_name}
    names = {text for text, is_name in shown if is_name}
    assert not (missing := texts - set(known.texts)), as_lines("missing in [texts]", missing)
    assert not (stale := set(known.texts) - texts), as_lines("used no more, delete from [texts]", stale)
    assert not (missing := names - set(known.commands)), as_lines("missing in [commands]", missing)
    assert not (stale := set(known.commands) - names), as_lines("used no more, delete from [commands]", stale)


@pytest.mark.parametrize("language", OTHERS)
def test_every_line_has_the_same_placeholders(language: str) -> None:
    """A translation fills in what the English sentence fills in, except a count that its words already say."""
    wrong = {
        english: translation
        for english, translation in catalogue(language).texts.items()
        if placeholders(english) != placeholders(translation) or not translation.strip()
    }
    assert wrong == {}


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.asyncio
async def test_the_names_of_commands_are_those_that_discord_shows(language: str) -> None:
    """Names are such as Discord accepts, and the sentences call the commands by them."""
    known = catalogue(language)
    assert [name for name in known.commands.values() if not (NAME.match(name) and name == name.lower())] == []
    translated = {" ".join(known.commands[part] for part in name.split()) for name in RULES}
    wrong = [
        f"/{called}: {text}"
        for text in known.texts.values()
        for called in re.findall(r"(?:(?<=[\s(„])|^)/([\w-]+)", text)
        if not any(name.split()[0] == called for name in translated)
    ]
    assert wrong == []


@pytest.mark.asyncio
async def test_discord_takes_the_descriptions() -> None:
    """A description has at most 100 characters in every language."""
    for language in OTHERS:
        descriptions = {text for text, is_name in shown_by_discord() if not is_name}
        assert {text for text in descriptions if len(catalogue(language).texts.get(text, "")) > 100} == set()

"""Every language has a line for each text that the code uses, with the same placeholders, and none besides.

To mend a failure, edit the language's file in bot/texts (CONTRIBUTING.md).
"""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Iterator
from functools import cache

import pytest

from bot.discord.access import RULES
from bot.texts.text import catalogue, languages
from bot.web.page_texts import texts_of_script
from tests.bot.discord.commands.all_commands import all_commands
from tests.bot.texts.source import errors, modules, name_of, texts_of_page, words_in
from tests.sources import ROOT

OTHERS = sorted(set(languages()) - {"en"})
# What Discord accepts as the name of a command or of an option.
NAME = re.compile(r"^[-_'ʼ\w]{1,32}$")


@cache
def used_texts() -> dict[str, str]:
    """Return the sentences of all `Text` and `counted` calls, and of the errors of `voice` and `compaction`, each with
    its place in the code.
    """
    found: dict[str, str] = {}
    for module in modules():
        has_texts = any(isinstance(node, ast.ImportFrom) and node.module == "bot.texts.text" for node in module.nodes)
        for call in module.calls:
            for argument in _sentences(call) if has_texts else ():
                place = module.place(argument)
                assert isinstance(argument, ast.Constant), f"{place}: write the sentence here"
                assert isinstance(argument.value, str)
                found[argument.value] = place
            if (
                module.package != "bot"
                and module.is_for_people
                and call.args
                and name_of(call) in {*errors(), "__init__"}
            ):
                found |= {text: module.place(call) for text in module.literals(call.args[0]) if words_in(text)}
        if module.package != "bot":
            found |= {text: module.place(node) for text, node in module.people_texts}
    static = ROOT / "bot/web/static"
    for page in static.glob("*.html"):
        found |= dict.fromkeys(texts_of_page(page.read_text("utf-8")), page.name)
    for script in static.glob("*.js"):
        found |= dict.fromkeys(texts_of_script(script.read_text("utf-8")), script.name)
    return found


def _sentences(call: ast.Call) -> list[ast.expr]:
    return {"Text": call.args[:1], "counted": call.args[1:3]}.get(name_of(call), [])


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


async def test_discord_takes_the_descriptions() -> None:
    """A description has at most 100 characters in every language."""
    for language in OTHERS:
        descriptions = {text for text, is_name in shown_by_discord() if not is_name}
        assert {text for text in descriptions if len(catalogue(language).texts.get(text, "")) > 100} == set()


def _plain_words(node: ast.expr) -> bool:
    """Return whether an expression is English that no catalogue translates."""
    match node:
        case ast.Constant(value=str(text)):
            return words_in(text)
        case ast.JoinedStr(values=values):
            return any(_plain_words(each) for each in values)
        case ast.IfExp(body=one, orelse=other):
            return _plain_words(one) or _plain_words(other)
        case ast.BoolOp(values=values):
            return any(_plain_words(each) for each in values)
        case ast.BinOp(left=one, right=other):
            return _plain_words(one) or _plain_words(other)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return any(_plain_words(each) for each in elements)
        case _:
            return False


def test_every_error_that_people_read_has_a_sentence_to_translate() -> None:
    """An error of `bot` is raised with a `Text`; one of `voice` or `compaction` with a literal and its values.

    Raised with anything else, people read it in English.
    """
    wrong = []
    for module in modules():
        for call in module.calls:
            if not module.is_for_people or name_of(call) not in errors() or not call.args:
                continue
            # The last one: what is before it is for programs.
            sentence = call.args[-1]
            plain = _plain_words(sentence) if module.package == "bot" else isinstance(sentence, ast.JoinedStr)
            made = isinstance(sentence, ast.Call) and name_of(sentence) in {"str", "format", "join"}
            if plain or made:
                wrong.append(f"{module.place(call)}: {ast.unparse(sentence)[:80]}")
    assert wrong == []


def test_no_words_get_past_the_catalogue() -> None:
    """What is put into a text as it is has no English words: the values of a text, `verbatim`, and joined parts."""
    wrong = []
    for module in modules():
        for call in module.calls if module.package == "bot" and module.is_for_people else ():
            given: list[ast.expr] = []
            match name_of(call):
                case "Text" | "counted" | "fill":
                    given = [each.value for each in call.keywords]
                case "verbatim":
                    given = call.args
                case "joined":
                    given = call.args[:1]
            wrong += [f"{module.place(each)}: {ast.unparse(each)[:80]}" for each in given if _plain_words(each)]
    assert wrong == []


# What takes words for people in discord.py, and the arguments that have them.
_SHOWN = {
    "send": ("content",),
    "send_message": ("content",),
    "edit": ("content", "nick", "status", "topic"),
    "Embed": ("title", "description"),
    "Button": ("label",),
    "Select": ("placeholder",),
    "TextInput": ("label", "placeholder"),
    "add_field": ("name", "value"),
    "set_footer": ("text",),
    "create_thread": ("name",),
}


def test_nothing_is_sent_to_discord_in_plain_english() -> None:
    """No message, button, field or name of a thread is a string of the code."""
    wrong = []
    for module in modules():
        if not module.path.startswith("bot/discord"):
            continue
        for call in module.calls:
            named = _SHOWN.get(name_of(call), ())
            given = [*(call.args if named else ()), *(each.value for each in call.keywords if each.arg in named)]
            wrong += [
                f"{module.place(each)}: {ast.unparse(each)[:80]}"
                for each in given
                if _plain_words(each) or any(words_in(text) for text in module.literals(each))
            ]
    assert wrong == []

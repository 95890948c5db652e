"""A sentence for people that can be read in every language of the catalogue.

`Text("I am in {channel}.", channel=name)` is an English `str`. Where it reaches somebody, `in_language(text, "de")`
looks its template up and fills in the same values. So the code in between knows nothing of languages. Whatever makes a
new string of a `Text` (an f-string, `+`) makes English of it: use `joined`, and values that are themselves texts.

The catalogue of a language is a file in this folder, with the name of a Discord locale (`de.toml`, `pt-BR.toml`). Where
there is none, and for a sentence without a line, people read English, whose sentences are in the code.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Self

from compaction.errors import CompactionError
from voice.errors import VoiceError


def _as_it_is(template: str, language: str) -> str:
    return template


class Text(str):
    """One sentence or more. `english`: a literal with `{placeholders}`, the key of the catalogue. `values`: what fills
    them: numbers (written as the language writes them), other texts and errors (translated), or anything else as it is.

    An id is a number that nobody counts: give it as `str`.
    """

    template: str
    values: Mapping[str, object]
    # The texts that this one consists of, if it is no sentence of its own, and what is between them.
    parts: tuple[str, ...]
    separator: str

    def __new__(cls, english: str, /, **values: object) -> Self:
        self = super().__new__(cls, _filled(english, values, _Formatter(Catalogue("English"), "", str)))
        self.template, self.values, self.parts, self.separator = english, values, (), ""
        return self

    def fill(self, **values: object) -> Text:
        """Return this text with values: for a constant whose values come later."""
        return Text(self.template, **{**self.values, **values})


class OperatorText(Text):
    """A text for the log and `doctor`, with an address, a setting or a remedy. People read `people` in its place."""

    people: Text

    def __new__(cls, english: str, people: Text, /, **values: object) -> Self:
        self = super().__new__(cls, english, **values)
        self.people = people
        return self

    def fill(self, **values: object) -> OperatorText:
        """Return this text with values; what people read stays."""
        return OperatorText(self.template, self.people, **{**self.values, **values})


def for_people(text: Text) -> Text:
    """Return what people read of a text. A model reads the same, because it may say it to them."""
    return text.people if isinstance(text, OperatorText) else text


def counted(count: float, one: str, many: str, /, **values: object) -> Text:
    """Return the sentence `one` or `many` for a number of things; both may use `{count}`."""
    return Text(one if count == 1 else many, count=count, **values)


def joined(parts: Iterable[str], separator: str = " ") -> Text:
    """Return texts one after the other, without the empty ones. A plain `str` among them stays as it is."""
    kept = tuple(part for part in parts if part)
    text = Text("{text}", text=separator.join(kept))
    text.parts, text.separator = kept, separator
    return text


def verbatim(text: str) -> Text:
    """Return a text that is the same in every language, and that a message shows unescaped: a mention, a link, or
    what is escaped already. A name, or what somebody said, is a plain value of a text instead.
    """
    return text if isinstance(text, Text) else joined((text,))


def sentence_of(error: BaseException) -> Text:
    """Return the sentence of one of our errors; it is translated if it was raised with a `Text`."""
    first = error.args[0] if len(error.args) == 1 else None
    if isinstance(first, Text):
        return first
    if isinstance(error, VoiceError | CompactionError):
        people = error.people
        return (
            OperatorText(error.template, Text(people), **error.values)
            if people
            else Text(error.template, **error.values)
        )
    return verbatim(str(error))


def in_language(
    text: str,
    language: str,
    *,
    escape: Callable[[str], str] = str,
    link: Callable[[str, str], str] = _as_it_is,
) -> str:
    """Return a text for people, in a Discord locale. A plain `str`, and a sentence without a translation, stay as they
    are.

    `escape` is applied to each value that is neither a text nor a number: a name, a path, what a server answered.
    `link` is applied to each sentence before its values are filled in, with the language.
    """
    if not isinstance(text, Text):
        return text
    text = for_people(text)
    if text.parts:
        return text.separator.join(in_language(part, language, escape=escape, link=link) for part in text.parts)
    known = catalogue(language)
    try:
        template = link(known.texts.get(text.template, text.template), language)
        return _filled(template, text.values, _Formatter(known, language, escape, link))
    except (LookupError, ValueError):
        # A line of a language's file with other placeholders than the English one. A test finds those in ours.
        return str(text)


def all_in_language(value: object, language: str) -> object:
    """Return what is made of mappings and sequences, as JSON is, with every text in it in a language."""
    match value:
        case str():
            return in_language(value, language)
        case Mapping():
            return {key: all_in_language(each, language) for key, each in value.items()}
        case list() | tuple():
            return [all_in_language(each, language) for each in value]
        case _:
            return value


def _filled(template: str, values: Mapping[str, object], formatter: _Formatter) -> str:
    return formatter.vformat(template, (), values) if values else template


class _Formatter(string.Formatter):
    """Fills placeholders in one language; empty: in English for the operator. `escape`, `link`: see `in_language`."""

    def __init__(
        self,
        known: Catalogue,
        language: str,
        escape: Callable[[str], str],
        link: Callable[[str, str], str] = _as_it_is,
    ) -> None:
        super().__init__()
        self._known = known
        self._language = language
        self._escape = escape
        self._link = link

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, BaseException):
            value = sentence_of(value)
        if isinstance(value, Text):
            if not self._language:
                return str(value)
            return in_language(value, self._language, escape=self._escape, link=self._link)
        if isinstance(value, int | float) and not isinstance(value, bool):
            plain = ",d" if isinstance(value, int) else ",g"
            return self._known.number(format(value, format_spec or plain))
        return self._escape(value if isinstance(value, str) else format(value, format_spec))


ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """One language. `name`: in that language. `texts`: each English sentence with its translation.

    `commands`: names of commands, groups, options and choices. `thousands`, `decimal`: the separators in numbers.
    `quiet`: what people say beside the bot's name to have it be silent. `meanings`: examples of the first sentences
    that people say to a bot, by what they mean (`bot.brain.first_sentences`).
    """

    name: str
    texts: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    thousands: str = ","
    decimal: str = "."
    quiet: tuple[str, ...] = ()
    meanings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def number(self, english: str) -> str:
        """Return a formatted number with this language's separators."""
        return "".join({",": self.thousands, ".": self.decimal}.get(character, character) for character in english)


def languages() -> dict[str, str]:
    """Return the languages that people can read, by their code, each with its own name."""
    found = sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))
    return {code: catalogue(code).name for code in sorted(found, key=lambda code: code != ENGLISH)}


@cache
def catalogue(language: str) -> Catalogue:
    """Return the catalogue of a Discord locale such as `de` or `pt-BR`; that of English if there is none."""
    for code in (language, language.partition("-")[0]):
        file = _folder() / f"{code}.toml"
        # A locale comes from outside: nothing but letters and a hyphen reaches the file system.
        if code.replace("-", "").isalpha() and file.is_file():
            return parse_catalogue(file.read_text("utf-8"))
    return Catalogue("English")


def parse_catalogue(text: str) -> Catalogue:
    """Return the catalogue in a file. Raises `ValueError` for broken TOML or a sentence that is translated twice."""
    content: dict[str, Any] = tomllib.loads(text)
    texts: dict[str, str] = {}
    for english, translation in _sentences(content.get("texts", {})):
        if english in texts:
            raise ValueError(f"translated twice: {english!r}")
        texts[english] = translation
    numbers, said = content.get("numbers", {}), content.get("said", {})
    return Catalogue(
        content["name"],
        texts,
        dict(content.get("commands", {})),
        thousands=numbers.get("thousands", ","),
        decimal=numbers.get("decimal", "."),
        quiet=tuple(said.get("quiet", ())),
        meanings={meaning: tuple(examples) for meaning, examples in said.get("meanings", {}).items()},
    )


def _sentences(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a table and of the tables in it, which only group them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _sentences(value)
        else:
            yield key, value


def _folder() -> resources.abc.Traversable:
    return resources.files("bot.texts")

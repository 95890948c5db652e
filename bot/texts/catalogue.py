"""One language: its translations and what people say in it, read from its file in this folder.

A file has the name of a Discord locale (`de.toml`, `pt-BR.toml`). Where there is none, and for a sentence without a
line, people read English, whose sentences are in the code.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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

"""The page of models tells of each voice what its entry says."""

from __future__ import annotations

import re

from bot.models.voices import DEFAULT_VOICE, VOICES
from tests.docs.pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "models.md").read_text("utf-8")


def test_each_voice_is_listed() -> None:
    """It stands in the line of its engine with its language, in the order of the list."""
    told = [
        (title, language, engine)
        for engine, line in re.findall(r"^- (\w+): (.*\))$", PAGE, re.MULTILINE)
        for titles, language in re.findall(r"([\w, ]+?) \((?:default, )?([\w ]+)\)", line)
        for title in titles.strip(", ").split(", ")
    ]
    assert told == [(voice.title, voice.language, voice.engine.name) for voice in VOICES]
    assert f"{DEFAULT_VOICE.title} (default, " in PAGE


def test_each_licence_of_an_engine_is_told() -> None:
    assert all(voice.engine.licence in PAGE for voice in VOICES)

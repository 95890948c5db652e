"""The page of models tells of each voice what its entry says."""

from __future__ import annotations

from bot.models.voices import DEFAULT_VOICE, VOICE_MODELS, VOICES
from tests.docs.pages import REPOSITORY

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (REPOSITORY / "docs" / "models.md").read_text("utf-8").splitlines()
    if line.startswith("|")
]


def test_each_voice_has_its_row() -> None:
    """Its name, language and engine, in the order of the list."""
    titles = {voice.title: voice for voice in VOICES}
    told = [row[:3] for row in ROWS if row[0].removesuffix(" (default)") in titles]
    assert told == [
        [f"{voice.title} (default)" if voice is DEFAULT_VOICE else voice.title, voice.language, voice.engine.name]
        for voice in VOICES
    ]


def test_each_model_of_voices_has_its_row() -> None:
    """Its name, the size of the download and its licence."""
    told = {row[0]: row for row in ROWS}
    for model in VOICE_MODELS:
        assert told[model.name][2] == f"{model.size_mb} MB"
        assert told[model.name][3].replace(",", "").startswith(model.licence.partition(" (")[0])


def test_each_licence_of_an_engine_is_told() -> None:
    page = (REPOSITORY / "docs" / "models.md").read_text("utf-8")
    assert all(voice.engine.licence in page for voice in VOICES)

"""The measurement of the voices: what it counts as an error, and its table."""

from __future__ import annotations

import pytest

from benchmarks.reply.voices import SENTENCES, TABLE_HEAD, VoiceResult, errors_in, table_row
from bot.models.voices import VOICES


@pytest.mark.parametrize(
    ("language", "said", "heard", "errors"),
    [
        ("en", "I am not sure.", "i'm not sure", 0),
        ("fr", "Oui, la porte est ouverte.", "oui la porte est ouverte", 0),
        ("fr", "Tu as dit qu'il part.", "Tu as dit qui part.", 1),
        ("it", "Sì, è aperta.", "", 3),
    ],
)
def test_words_that_differ_are_counted(language: str, said: str, heard: str, errors: int) -> None:
    """Case and punctuation are no errors; in English other spellings are none either."""
    assert errors_in(language, said, heard).errors == errors


def test_every_language_has_ten_sentences() -> None:
    """Each voice says as much as the others."""
    assert {voice.code for voice in VOICES} == set(SENTENCES)
    assert {len(sentences) for sentences in SENTENCES.values()} == {10}


def test_each_voice_is_one_row() -> None:
    """A voice that is not installed has its row too."""
    result = VoiceResult("joe", 30.0, 0.081, 0.14, 1.0, 191.2, 2, 104)
    assert table_row(VOICES[0], result) == "| Joe | American English | Piper | 191 MB | 0.08 s | 0.14 s | 2 of 104 |"
    assert "not measured" in table_row(VOICES[1], None)
    columns = {row.count("|") for row in (*TABLE_HEAD, table_row(VOICES[0], result), table_row(VOICES[1], None))}
    assert len(columns) == 1

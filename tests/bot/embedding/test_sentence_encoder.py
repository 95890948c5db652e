"""The local embedding model: texts that mean the same are alike, in whatever language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bot.embedding.sentence_encoder import SentenceEncoder
from bot.models.catalogue import EMBED_SENTENCES
from bot.models.directory import ModelDirectory

MODELS = Path(__file__).parents[3] / "data" / "models"
pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(ModelDirectory(MODELS).path(EMBED_SENTENCES))


def test_the_same_in_other_languages_is_alike(encoder: SentenceEncoder) -> None:
    """More than another sentence of the same language."""
    other = encoder.embed("The train to Hamburg was cancelled yesterday.")
    said = encoder.embed("My dog is called Bruno.")
    for translated in ("Mein Hund heißt Bruno.", "Mon chien s'appelle Bruno.", "Mi perro se llama Bruno."):
        vector = encoder.embed(translated)
        assert float(vector @ said) > 0.7 > 0.3 > float(vector @ other)


@pytest.mark.parametrize("text", ["", "   ", "\ud800 lone", "🎉", "word " * 5_000, "電車は何時に出ますか。"])
def test_any_text_has_a_unit_vector(encoder: SentenceEncoder, text: str) -> None:
    """Also one without words, or with many."""
    vector = encoder.embed(text)
    assert vector.shape == (512,)
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-4)


def test_words_are_alike_as_far_as_they_mean_the_same(encoder: SentenceEncoder) -> None:
    """A piece of the query that the text has is equal to it; a related one is nearer than one about something else.
    Any text can be compared.
    """
    same, near, far, nothing = encoder.compare_words("dog", ["my dog", "the cat sleeps", "a tax form", ""])
    assert same == pytest.approx([1.0] * len(same), abs=1e-3)
    assert max(same) > max(near) > max(far)
    assert len(nothing) == len(same)

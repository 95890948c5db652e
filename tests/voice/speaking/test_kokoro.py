"""Kokoro, the second embedded engine: its tokens, and what it says about files that are missing or damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from voice.errors import SynthesisError
from voice.speaking.kokoro import KokoroModel, token_pieces

if TYPE_CHECKING:
    from pathlib import Path

AMERICAN = {"tʃ": "ʧ", "oʊ": "O"}


def test_sounds_become_the_tokens_of_the_model() -> None:
    """Two symbols of espeak for one sound become one token, and what the model does not know is left out."""
    assert token_pieces("tʃoʊ", AMERICAN) == [[133, 31]]
    assert token_pieces("a̰#a", AMERICAN) == [[43, 43]]


def test_the_word_i_is_stressed_in_english() -> None:
    """Without a stress the model swallows "I" at the beginning of a sentence; the same sound within words stays."""
    english = {"aɪ": "I"}
    assert token_pieces("aɪ, aɪm fɹˈaɪ", english) == [[157, 25, 3, 16, 157, 25, 55, 16, 48, 123, 156, 25]]
    assert 157 not in token_pieces("aɪ", {})[0]


@pytest.mark.parametrize("phonemes", ["", " ", "…", ". , !"])
def test_what_has_no_sound_is_not_spoken(phonemes: str) -> None:
    """Marks alone give no piece: the model would make a noise of them."""
    assert token_pieces(phonemes, AMERICAN) == []


@pytest.mark.parametrize(("phonemes", "lengths"), [("a" * 1_200, [510, 510, 180]), ("aaaa " * 200, [509, 489])])
def test_a_long_sentence_is_cut_where_it_pauses(phonemes: str, lengths: list[int]) -> None:
    """No piece is longer than the model takes, nothing is lost, and words stay whole where they can."""
    pieces = token_pieces(phonemes, AMERICAN)
    assert [len(piece) for piece in pieces] == lengths
    assert sum(token == 43 for piece in pieces for token in piece) == phonemes.count("a")


async def test_a_missing_or_damaged_model_says_what_to_run(tmp_path: Path) -> None:
    """The error names the command that fetches the model."""
    with pytest.raises(SynthesisError, match="roomtone models pull voice-kokoro"):
        async with KokoroModel.open(tmp_path):
            pass
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(SynthesisError, match="--again"):
        async with KokoroModel.open(tmp_path):
            pass

"""The tokenizer of a converted model gives the tokens that Whisper was taught."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voice.asr.tokenizer import whole_tokenizer


@pytest.mark.parametrize("as_pairs", [False, True], ids=["merges as texts", "merges as pairs"])
def test_every_word_of_the_vocabulary_is_one_token(whisper_model_dir: Path, tmp_path: Path, *, as_pairs: bool) -> None:
    """Whisper's own tokenizer joins a word as far as its vocabulary goes, so what is a token stays one."""
    described = json.loads((whisper_model_dir / "tokenizer.json").read_text("utf-8"))
    if as_pairs:
        described["model"]["merges"] = [merge.split(" ") for merge in described["model"]["merges"]]
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(described), "utf-8")
    tokenizer = whole_tokenizer(file)
    vocabulary = described["model"]["vocab"]
    # A space is written so.
    words = [each for each in vocabulary if each.startswith("Ġ") and each[1:].isascii() and each[1:].isalpha()]
    torn = {
        token: ids
        for token in words
        if (ids := tokenizer.encode(" " + token[1:], add_special_tokens=False).ids) != [vocabulary[token]]
    }
    assert len(words) > 20_000
    assert torn == {}

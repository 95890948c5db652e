"""Reading a model's own tokenizer.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.llm.tokenizers import read_tokenizer

MODELS_DIR = Path(__file__).parents[3] / "data" / "models"


def test_a_tokenizer_json_counts() -> None:
    """The tokenizer.json of Whisper, which `make setup` downloads, can be read."""
    tokenizer = read_tokenizer(MODELS_DIR / "whisper-base" / "tokenizer.json")
    assert tokenizer.count("hello world") == 3
    assert tokenizer.count("a\ud800") >= 2


@pytest.mark.parametrize("content", [b"{}", b"\xff\xfe", None])
def test_what_cannot_be_read_is_told_with_the_remedy(tmp_path: Path, content: bytes | None) -> None:
    """A file that is none gives a ValueError with the remedy."""
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"no tokenizer that can be read.*tokenizer\.json"):
        read_tokenizer(path)

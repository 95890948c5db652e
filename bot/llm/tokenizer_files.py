"""Reads a model's own tokenizer from its files: a `tokenizer.json`, or a GGUF file of llama.cpp.

Only the header of a GGUF file is read; it contains the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import Tokenizer as Rules

from bot.models.gguf_file import header_of, open_gguf
from bot.models.gguf_tokenizer import TOKENIZER_KEYS, build_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


class FileTokenizer:
    """Counts tokens with a model's own tokenizer (`compaction.tokens.Tokenizer`)."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, without those that a chat template adds."""
        # The library can't encode a lone surrogate; its replacement costs no less.
        clean = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        return len(self._rules.encode(clean, add_special_tokens=False).ids)


def read_tokenizer(path: Path) -> FileTokenizer:
    """Return the tokenizer of a `tokenizer.json` or a `.gguf` file. Raises ValueError with the remedy in a plain
    sentence.
    """
    try:
        if path.suffix.lower() == ".gguf":
            return FileTokenizer(build_tokenizer(header_of(open_gguf(path), TOKENIZER_KEYS)))
        return FileTokenizer(Rules.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception for whatever it can't read
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise ValueError(
            f"{path} holds no tokenizer that can be read{why}. Replace it with the model's tokenizer.json."
        ) from error

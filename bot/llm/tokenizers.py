"""The models' own tokenisers, read from vocabularies on the model shelf; whatever is not there is guessed.

The vocabularies come by `roomtone models pull`, checked by SHA-256, so nothing is fetched here. Each is
read once, when it is first asked for.
"""

from __future__ import annotations

import base64
import binascii
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import tiktoken

from bot.llm.tokenizer_files import read_tokenizer
from bot.models.catalogue import TOKENIZER_OPENAI, TOKENIZER_QWEN
from bot.models.directory import ModelDirectory
from compaction.budget.estimator import Family, family_of

if TYPE_CHECKING:
    from compaction.tokens import Tokenizer

log = structlog.get_logger()

# How a text falls into words before any merging. Sources: tiktoken_ext/openai_public.py; Qwen's tokenization_qwen.py.
_CL100K_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_O200K_WORDS = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS = {Family.O200K: _O200K_WORDS, Family.CL100K: _CL100K_WORDS, Family.QWEN: _QWEN_WORDS}
_BROUGHT_BY = {Family.O200K: TOKENIZER_OPENAI, Family.CL100K: TOKENIZER_OPENAI, Family.QWEN: TOKENIZER_QWEN}
# The names under which tiktoken caches OpenAI's files: the SHA-1 of their address.
_CACHED_AS = {
    Family.CL100K: "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    Family.O200K: "fb374d419588a4632f3f557e76b4b70aebbca790",
}
# Longer texts are counted in pieces: the library recurses, and a cut word costs a token more, never less.
_PIECE_CHARS = 20_000


class TokenizerChoice(StrEnum):
    """What counts tokens, besides a file named by its path."""

    AUTO = "auto"
    FALLBACK = "fallback"


class VocabularyTokenizer:
    """Counts by one vocabulary of byte pairs (`compaction.tokens.Tokenizer`)."""

    def __init__(self, name: str, words: str, ranks: dict[bytes, int]) -> None:
        self._encoding = tiktoken.Encoding(name, pat_str=words, mergeable_ranks=ranks, special_tokens={})

    def count(self, text: str) -> int:
        """Return how many tokens `text` is. Words that a chat template gives a meaning are plain words here."""
        if len(text) <= _PIECE_CHARS:
            return len(self._encoding.encode_ordinary(text))
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)


class LocalTokenizers:
    """The tokenisers whose vocabularies are in `directory`, the model shelf (`compaction.tokens.Tokenizers`).

    `choice`: `auto` goes by the model's name, `fallback` always guesses, a path names the model's own
    tokenizer.json or GGUF file.
    Not thread-safe; reading a vocabulary takes some tenths of a second.
    """

    def __init__(self, directory: Path, *, choice: str = TokenizerChoice.AUTO) -> None:
        self._shelf = ModelDirectory(directory)
        self._choice = choice
        self._read: dict[Family, Tokenizer | None] = {}
        self._own: Tokenizer | None = None

    def for_model(self, model: str) -> Tokenizer | None:
        """Return the model's tokeniser, or None when the guess has to serve; why is logged, once a family."""
        if self._choice == TokenizerChoice.FALLBACK:
            return None
        if self._choice != TokenizerChoice.AUTO:
            return self._named_file(Path(self._choice))
        family = family_of(model)
        if family is None:
            return None
        if family not in self._read:
            self._read[family] = self._family(family)
        return self._read[family]

    def _family(self, family: Family) -> Tokenizer | None:
        path = self._place(family)
        if path is None:
            log.info("tokenizer_absent", family=family.value, remedy=f"roomtone models pull {_BROUGHT_BY[family].name}")
            return None
        try:
            return VocabularyTokenizer(family.value, _WORDS[family], read_ranks(path))
        except (OSError, ValueError) as error:
            log.warning("tokenizer_unreadable", family=family.value, path=str(path), problem=str(error))
            return None

    def _place(self, family: Family) -> Path | None:
        candidates = [self._shelf.path(_BROUGHT_BY[family]) / f"{family.value}.tiktoken"]
        # Where tiktoken itself has been before.
        if (cache := os.environ.get("TIKTOKEN_CACHE_DIR")) and family in _CACHED_AS:
            candidates.append(Path(cache) / _CACHED_AS[family])
        return next((path for path in candidates if path.is_file()), None)

    def _named_file(self, path: Path) -> Tokenizer | None:
        if self._own is None:
            try:
                self._own = read_tokenizer(path)
            except (OSError, ValueError) as error:
                log.warning("tokenizer_unreadable", path=str(path), problem=str(error))
                self._choice = TokenizerChoice.FALLBACK
        return self._own


def read_ranks(path: Path) -> dict[bytes, int]:
    """Return a vocabulary file's tokens with their ranks: lines of base64, a space, a number. Raises ValueError."""
    try:
        pairs = (line.split() for line in path.read_bytes().splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in pairs}
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"{path} is no vocabulary file. Run `roomtone models pull --again`.") from error

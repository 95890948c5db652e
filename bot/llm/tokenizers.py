"""Exact token counts with the models' own vocabularies, read from the models directory.

`roomtone models pull` installs vocabularies; nothing is downloaded here. Each is read once, at its first use. If one is
missing, the caller estimates.
"""

from __future__ import annotations

import base64
import binascii
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import tiktoken
from tokenizers import Tokenizer as Rules

from bot.models.catalogue import TOKENIZER_OPENAI, TOKENIZER_QWEN
from bot.models.directory import ModelDirectory
from compaction.budget.estimator import Family, family_of

if TYPE_CHECKING:
    from compaction.tokens import Tokenizer


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
    """Return the tokenizer of a `tokenizer.json`. Raises ValueError with the remedy in a plain sentence."""
    try:
        return FileTokenizer(Rules.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception for whatever it can't read
        raise ValueError(
            f"{path} holds no tokenizer that can be read. Replace it with the model's tokenizer.json."
        ) from error


log = structlog.get_logger()

# Patterns that split a text into words before merging. Sources: tiktoken_ext/openai_public.py; Qwen's
# tokenization_qwen.py.
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
_VOCABULARY_MODELS = {Family.O200K: TOKENIZER_OPENAI, Family.CL100K: TOKENIZER_OPENAI, Family.QWEN: TOKENIZER_QWEN}
# Longer texts are counted in pieces, because the library recurses. A word cut in two costs one more token at most.
_PIECE_CHARS = 20_000


class TokenizerChoice(StrEnum):
    """Values of `BudgetSettings.token_estimator` besides the path of a tokenizer file."""

    AUTO = "auto"
    FALLBACK = "fallback"


class VocabularyTokenizer:
    """Counts tokens with one byte-pair vocabulary (`compaction.tokens.Tokenizer`)."""

    def __init__(self, name: str, words: str, ranks: dict[bytes, int]) -> None:
        self._encoding = tiktoken.Encoding(name, pat_str=words, mergeable_ranks=ranks, special_tokens={})

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. Special tokens in it count as plain text."""
        if len(text) <= _PIECE_CHARS:
            return len(self._encoding.encode_ordinary(text))
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)


class LocalTokenizers:
    """The tokenizers whose vocabularies are in `directory`, the models directory (`compaction.tokens.Tokenizers`).

    `choice`: `auto` picks by the model's name, `fallback` always estimates, a path names the model's own
    tokenizer.json. Not thread-safe; reading a vocabulary takes some tenths of a second.
    """

    def __init__(self, directory: Path, *, choice: str = TokenizerChoice.AUTO) -> None:
        self._models = ModelDirectory(directory)
        self._choice = choice
        self._by_family: dict[Family, Tokenizer | None] = {}
        self._from_file: Tokenizer | None = None

    def for_model(self, model: str) -> Tokenizer | None:
        """Return the model's tokenizer, or None if tokens must be estimated. Logs the reason once per family."""
        if self._choice == TokenizerChoice.FALLBACK:
            return None
        if self._choice != TokenizerChoice.AUTO:
            return self._read_file(Path(self._choice))
        family = family_of(model)
        if family is None:
            return None
        if family not in self._by_family:
            self._by_family[family] = self._read_family(family)
        return self._by_family[family]

    def _read_family(self, family: Family) -> Tokenizer | None:
        path = self._models.path(_VOCABULARY_MODELS[family]) / f"{family.value}.tiktoken"
        if not path.is_file():
            log.info(
                "tokenizer_absent",
                family=family.value,
                remedy=f"roomtone models pull {_VOCABULARY_MODELS[family].name}",
            )
            return None
        try:
            return VocabularyTokenizer(family.value, _WORDS[family], read_ranks(path))
        except (OSError, ValueError) as error:
            log.warning("tokenizer_unreadable", family=family.value, path=str(path), problem=error)
            return None

    def _read_file(self, path: Path) -> Tokenizer | None:
        if self._from_file is None:
            try:
                self._from_file = read_tokenizer(path)
            except (OSError, ValueError) as error:
                log.warning("tokenizer_unreadable", path=str(path), problem=error)
                self._choice = TokenizerChoice.FALLBACK
        return self._from_file


def read_ranks(path: Path) -> dict[bytes, int]:
    """Read a vocabulary file: one token per line, in base64, a space and its rank. Raises ValueError."""
    try:
        pairs = (line.split() for line in path.read_bytes().splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in pairs}
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"{path} is not a vocabulary file. Run `roomtone models pull --again`.") from error

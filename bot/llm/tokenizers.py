"""Exact token counts with the models' own vocabularies, read from the models directory.

`roomtone models pull` installs vocabularies; nothing is downloaded here. If one is missing, the caller estimates.
"""

from __future__ import annotations

import base64
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
# Values of `BudgetSettings.token_estimator` besides the path of a tokenizer file.
AUTO, FALLBACK = "auto", "fallback"
# Longer texts are counted in pieces, because the library recurses. A word cut in two costs one more token at most.
_PIECE_CHARS = 20_000


class VocabularyTokenizer:
    """Counts tokens with one byte-pair vocabulary (`compaction.tokens.Tokenizer`)."""

    def __init__(self, path: Path, words: str) -> None:
        """Read a vocabulary file: one token per line, in base64, a space and its rank. Raises ValueError."""
        try:
            pairs = (line.split() for line in path.read_bytes().splitlines() if line)
            ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
        except ValueError as error:
            raise ValueError(f"{path} is not a vocabulary file. Run `roomtone models pull --again`.") from error
        self._encoding = tiktoken.Encoding(path.stem, pat_str=words, mergeable_ranks=ranks, special_tokens={})

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. Special tokens in it count as plain text."""
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)


class FileTokenizer:
    """Counts tokens with a model's own tokenizer (`compaction.tokens.Tokenizer`)."""

    def __init__(self, path: Path) -> None:
        """Read a `tokenizer.json`. Raises ValueError with the remedy in a plain sentence."""
        try:
            self._rules = Rules.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for whatever it can't read
            raise ValueError(
                f"{path} holds no tokenizer that can be read. Replace it with the model's tokenizer.json."
            ) from error

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, without those that a chat template adds."""
        # The library can't encode a lone surrogate; its replacement costs no less.
        clean = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        return len(self._rules.encode(clean, add_special_tokens=False).ids)


def tokenizer_for(model: str, directory: Path, *, choice: str = AUTO) -> Tokenizer | None:
    """Return the tokenizer of the model with that name, or None if tokens must be estimated; the log has the reason.
    Reading one takes some tenths of a second.

    `directory`: the models directory. `choice`: `auto` picks by the model's name, `fallback` always estimates, a path
    names the model's own tokenizer.json.
    """
    family = family_of(model)
    if choice == FALLBACK or (choice == AUTO and family is None):
        return None
    path = Path(choice)
    try:
        if choice != AUTO or family is None:
            return FileTokenizer(path)
        entry = _VOCABULARY_MODELS[family]
        path = ModelDirectory(directory).path(entry) / f"{family.value}.tiktoken"
        if path.is_file():
            return VocabularyTokenizer(path, _WORDS[family])
        log.info("tokenizer_absent", family=family.value, remedy=f"roomtone models pull {entry.name}")
    except (OSError, ValueError) as error:
        log.warning("tokenizer_unreadable", path=str(path), problem=error)
    return None

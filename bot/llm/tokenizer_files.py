"""Reads a model's own tokenizer from its files: a `tokenizer.json`, or a GGUF file of llama.cpp.

Only the header of a GGUF file is read; it contains the vocabulary. Source: the GGUF specification (ggml-org/ggml,
docs/gguf.md), and llama.cpp's table of pre-tokenisers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Rules

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# Type of a value -> its packed form, little-endian.
_PACKED = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
# A header with more than this is damaged.
_MOST_ITEMS = 4_000_000
_MOST_BYTES = 1 << 20
_NEEDED_KEYS = ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges")

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# `tokenizer.ggml.pre` -> patterns that split a text into words, applied one after the other.
_WORDS: dict[str, tuple[str, ...]] = {
    "qwen2": (rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{_REST}",),
    "llama-bpe": (rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}{_REST}",),
    "smollm": (r"\p{N}", _GPT2_WORDS),
    "gpt-2": (_GPT2_WORDS,),
}


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
            return FileTokenizer(_build_rules(_read_header(path)))
        return FileTokenizer(Rules.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception for whatever it can't read
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise ValueError(
            f"{path} holds no tokenizer that can be read{why}. Replace it with the model's tokenizer.json."
        ) from error


def _build_rules(header: dict[str, Any]) -> Rules:
    kind, pre = header.get("tokenizer.ggml.model"), header.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in _WORDS:
        raise ValueError(f"its kind, {kind} with {pre}, is not known here")
    vocabulary = {token: number for number, token in enumerate(header["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ", 1)) for merge in header["tokenizer.ggml.merges"]]
    rules = Rules(models.BPE(vocab=vocabulary, merges=merges))
    splits = [pre_tokenizers.Split(Regex(words), behavior="isolated") for words in _WORDS[pre]]
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    rules.pre_tokenizer = pre_tokenizers.Sequence([*splits, by_bytes])
    return rules


def _read_header(path: Path) -> dict[str, Any]:
    """Return the tokenizer entries of a GGUF header."""
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise ValueError("it is not a GGUF file")
        version, _, count = struct.unpack("<IQQ", _exactly(file, 20))
        if version not in _VERSIONS:
            raise ValueError(f"it has GGUF version {version}")
        found: dict[str, Any] = {}
        for _ in range(_bounded(count)):
            key = _string(file)
            value = _value(file, _number(file, "<I"))
            if key in _NEEDED_KEYS:
                found[key] = value
        return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        item = _number(file, "<I")
        count = _bounded(_number(file, "<Q"))
        if item in _PACKED:
            # Scores and types of tokens are not needed.
            file.seek(count * struct.calcsize(_PACKED[item]), 1)
            return None
        return [_value(file, item) for _ in range(count)]
    if kind not in _PACKED:
        raise ValueError(f"it has a value of type {kind}")
    return _number(file, _PACKED[kind])


def _string(file: BinaryIO) -> str:
    size = _number(file, "<Q")
    if size > _MOST_BYTES:
        raise ValueError("it is damaged")
    return _exactly(file, size).decode("utf-8", "replace")


def _number(file: BinaryIO, packed: str) -> int:
    (value,) = struct.unpack(packed, _exactly(file, struct.calcsize(packed)))
    return int(value)


def _bounded(count: int) -> int:
    if count > _MOST_ITEMS:
        raise ValueError("it is damaged")
    return count


def _exactly(file: BinaryIO, size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        raise ValueError("it is cut short")
    return read

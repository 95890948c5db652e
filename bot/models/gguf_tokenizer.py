"""Builds the tokenizer that a GGUF file describes: byte-level BPE, as GPT-2 and most later models have it.

Source: llama.cpp's table of pre-tokenisers.
"""

from __future__ import annotations

from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from bot.models.gguf_file import GgufError

# The keys of a GGUF header that `build_tokenizer` reads.
TOKENIZER_KEYS = ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges")

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


def build_tokenizer(header: dict[str, Any]) -> Tokenizer:
    """Return the tokenizer that the values of a GGUF header describe. Raises `GgufError`.

    Text never becomes a control token such as `<|im_end|>`, not even text that spells one: what people say stays text.
    Their numbers are known to `token_to_id`.
    """
    kind, pre = header.get("tokenizer.ggml.model"), header.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in _WORDS:
        raise GgufError(f"its kind, {kind} with {pre}, is not known here")
    vocabulary = {token: number for number, token in enumerate(_strings(header, "tokenizer.ggml.tokens"))}
    merges = [_merge(merge, vocabulary) for merge in _strings(header, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    splits = [pre_tokenizers.Split(Regex(words), behavior="isolated") for words in _WORDS[pre]]
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _strings(header: dict[str, Any], key: str) -> list[str]:
    if isinstance(value := header.get(key), list):
        return value
    raise GgufError(f"it has no {key}")


def _merge(written: str, vocabulary: dict[str, int]) -> tuple[str, str]:
    left, _, right = written.partition(" ")
    if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
        raise GgufError("its vocabulary is damaged")
    return left, right

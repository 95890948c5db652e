"""Reads GGUF files, the format of llama.cpp, with its own library: what the header says, the tokenizer that it
describes, and weights as numbers.

A downloaded file has the hash that the catalogue says. A file that a person copied may be damaged, so what the library
does not expect is one error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import numpy as np
    from gguf.gguf_reader import GGUFReader, ReaderTensor


class GgufError(ValueError):
    """A GGUF file is damaged or of a kind that is not known here. The message goes on after "It can't be used:"."""


@contextmanager
def _expecting_damage() -> Iterator[None]:
    try:
        yield
    except (OSError, MemoryError, GgufError):
        raise
    except Exception as error:
        raise GgufError("it is damaged") from error


def open_gguf(path: Path) -> GGUFReader:
    """Return the library's reader of a file. Raises `GgufError` and `OSError`."""
    # It takes a moment to import, and a bot without such a model does not need it.
    from gguf.gguf_reader import GGUFReader

    if not path.stat().st_size:
        raise GgufError("it is empty")
    with _expecting_damage():
        return GGUFReader(path)


def header_of(reader: GGUFReader, keys: Collection[str]) -> dict[str, Any]:
    """Return those of the header's values: numbers, strings, or lists of them. Raises `GgufError`."""
    with _expecting_damage():
        return {key: found.contents() for key in keys if (found := reader.get_field(key)) is not None}


def weights_of(tensor: ReaderTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the numbers of a tensor, rows first. Raises `GgufError`."""
    import numpy as np
    from gguf.quants import dequantize

    # Damaged scales overflow; they are found below.
    with _expecting_damage(), np.errstate(all="ignore"):
        weights = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape_of(tensor))
    if not np.isfinite(weights).all():
        raise GgufError("it is damaged")
    return weights


def shape_of(tensor: ReaderTensor) -> tuple[int, ...]:
    """Return the shape, rows first as numpy has it."""
    return tuple(int(size) for size in reversed(tensor.shape))


# The keys of a GGUF header that `build_tokenizer` reads.
TOKENIZER_KEYS = ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges")

_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# `tokenizer.ggml.pre` -> patterns that split a text into words, applied one after the other. Source: llama.cpp's table
# of pre-tokenisers.
_WORDS: dict[str, tuple[str, ...]] = {"smollm": (r"\p{N}", _GPT2_WORDS), "gpt-2": (_GPT2_WORDS,)}


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

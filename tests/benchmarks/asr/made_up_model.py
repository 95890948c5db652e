"""A tiny made-up Whisper model in CTranslate2's format, for tests: width 2, one layer in each half, 4 mel bands."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
WIDTH, MELS, SOUND, TEXT = 2, 4, 3, 5
# The last letter is a space in GPT-2's letters. Number 2 has no word.
TOKENIZER = {
    "model": {"vocab": {"a": 0, "Ġé": 1, "ġ": 3, "<|endoftext|>": 4}},
    "added_tokens": [{"content": "<|endoftext|>", "id": 4}, {"content": "<|startoftranscript|>", "id": 5}],
}
WORDS = [b"a", b" \xe9", b"", b"\x7f"]
TOKENS = 6


def packed_string(text: str) -> bytes:
    """Return a text as CTranslate2 stores it."""
    return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"


def packed_variable(name: str, values: Array) -> bytes:
    """Return one variable as CTranslate2 stores it."""
    shape = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
    return (
        packed_string(name)
        + shape
        + struct.pack("<BI", _TYPES.index(values.dtype.name), values.nbytes)
        + values.tobytes()
    )


def packed_model(
    variables: Mapping[str, Array],
    aliases: Mapping[str, str] | None = None,
    *,
    version: int = 6,
    spec: str = "WhisperSpec",
) -> bytes:
    """Return a `model.bin`."""
    named = (aliases or {}).items()
    return b"".join(
        (
            struct.pack("<I", version) + packed_string(spec) + struct.pack("<I", 3),
            struct.pack("<I", len(variables)),
            *(packed_variable(name, values) for name, values in variables.items()),
            struct.pack("<I", len(named)),
            *(packed_string(alias) + packed_string(name) for alias, name in named),
        )
    )


def made_up_variables() -> dict[str, Array]:
    """Return the variables of a model with float32 values that differ from each other and fit float16 exactly.

    One matrix, the decoder's embeddings, is quantised.
    """
    found: dict[str, Array] = {}

    def add(name: str, *shape: int) -> None:
        count = int(np.prod(shape))
        found[name] = (np.arange(count, dtype=np.float32) + len(found)).reshape(shape) / 8

    def norm(name: str) -> None:
        add(f"{name}/gamma", WIDTH)
        add(f"{name}/beta", WIDTH)

    def linear(name: str, rows: int, columns: int = WIDTH) -> None:
        add(f"{name}/weight", rows, columns)
        add(f"{name}/bias", rows)

    for half, length in (("encoder", SOUND), ("decoder", TEXT)):
        found[f"{half}/num_heads"] = np.array(1, np.int16)
        add(f"{half}/position_encodings/encodings", length, WIDTH)
        layer = f"{half}/layer_0"
        norm(f"{layer}/self_attention/layer_norm")
        linear(f"{layer}/self_attention/linear_0", 3 * WIDTH)
        linear(f"{layer}/self_attention/linear_1", WIDTH)
        norm(f"{layer}/ffn/layer_norm")
        linear(f"{layer}/ffn/linear_0", 4 * WIDTH)
        linear(f"{layer}/ffn/linear_1", WIDTH, 4 * WIDTH)
        norm(f"{half}/layer_norm")
    norm("decoder/layer_0/attention/layer_norm")
    linear("decoder/layer_0/attention/linear_0", WIDTH)
    linear("decoder/layer_0/attention/linear_1", 2 * WIDTH)
    linear("decoder/layer_0/attention/linear_2", WIDTH)
    add("encoder/conv1/weight", WIDTH, MELS, 3)
    add("encoder/conv1/bias", WIDTH)
    add("encoder/conv2/weight", WIDTH, WIDTH, 3)
    add("encoder/conv2/bias", WIDTH)
    found["decoder/embeddings/weight"] = np.arange(-6, 6, dtype=np.int8).reshape(TOKENS, WIDTH)
    found["decoder/embeddings/weight_scale"] = np.array([1, 2, 4, 8, 16, 32], np.float32)
    return found


def write_model(folder: Path, variables: Mapping[str, Array] | None = None) -> Path:
    """Write a model's folder and return it. `variables`: the made-up ones by default."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(packed_model(made_up_variables() if variables is None else variables))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER), "utf-8")
    return folder

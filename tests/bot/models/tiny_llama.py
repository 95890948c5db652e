"""A language model of two layers that tests write as a GGUF file and compute themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LAYERS, WIDTH, INNER_WIDTH, HEADS, KEY_VALUE_HEADS = 2, 32, 64, 4, 2
HEAD_WIDTH = WIDTH // HEADS
NORM_EPSILON, ROPE_BASE = 1e-5, 500.0
CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]


def byte_letters() -> list[str]:
    """Return the 256 characters that stand for the bytes in byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [number for number in range(256) if number not in printable]
    return [chr(number) for number in printable] + [chr(256 + at) for at in range(len(others))]


TOKENS = [*CONTROL_TOKENS, *byte_letters(), *(merge.replace(" ", "") for merge in MERGES)]


def default_header() -> dict[str, Any]:
    """Return the values of the model's header."""
    return {
        "llama.block_count": LAYERS,
        "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": INNER_WIDTH,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KEY_VALUE_HEADS,
        "llama.attention.layer_norm_rms_epsilon": NORM_EPSILON,
        "llama.rope.freq_base": ROPE_BASE,
        "llama.rope.dimension_count": HEAD_WIDTH,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] * len(CONTROL_TOKENS) + [1] * (len(TOKENS) - len(CONTROL_TOKENS)),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def _eight_bit(generator: np.random.Generator, rows: int, columns: int) -> NDArray[np.float32]:
    """Return weights of which 8 bits lose nothing: whole numbers up to 127 by a power of two, and 127 in each row."""
    numbers = generator.integers(-127, 128, (rows, columns))
    numbers[:, 0] = 127
    return (numbers * 2.0**-9).astype(np.float32)


def _make_weights() -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(3)
    key_value_width = HEAD_WIDTH * KEY_VALUE_HEADS
    weights = {"token_embd": _eight_bit(generator, len(TOKENS), WIDTH)}
    weights["output_norm"] = generator.uniform(0.5, 1.5, WIDTH).astype(np.float32)
    for layer in range(LAYERS):
        for name, rows, columns in (
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", key_value_width, WIDTH),
            ("attn_v", key_value_width, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", INNER_WIDTH, WIDTH),
            ("ffn_up", INNER_WIDTH, WIDTH),
            ("ffn_down", WIDTH, INNER_WIDTH),
        ):
            weights[f"blk.{layer}.{name}"] = _eight_bit(generator, rows, columns)
        for name in ("attn_norm", "ffn_norm"):
            weights[f"blk.{layer}.{name}"] = generator.uniform(0.5, 1.5, WIDTH).astype(np.float32)
    return weights


@dataclass
class TinyLlama:
    """The model as it was trained: pairs of numbers that rotary positions turn are half a head apart.

    `architecture`, `header`: what its file says. `weights`: by their names in the file.
    """

    architecture: str = "llama"
    header: dict[str, Any] = field(default_factory=default_header)
    weights: dict[str, NDArray[np.float32]] = field(default_factory=_make_weights)

    def write(self, path: Path) -> Path:
        """Write the model's GGUF file as llama.cpp's converter does, with the embeddings in 8 bits."""
        writer = GGUFWriter(path, self.architecture)
        for key, value in self.header.items():
            match value:
                case list():
                    writer.add_array(key, value)
                case str():
                    writer.add_string(key, value)
                case float():
                    writer.add_float32(key, value)
                case _:
                    writer.add_uint32(key, value)
        for name, weight in self.weights.items():
            if name == "token_embd":
                packed = quantize(weight, GGMLQuantizationType.Q8_0)
                writer.add_tensor(f"{name}.weight", packed, raw_dtype=GGMLQuantizationType.Q8_0)
                continue
            heads = {"attn_q": HEADS, "attn_k": KEY_VALUE_HEADS}.get(name.rpartition(".")[2])
            writer.add_tensor(f"{name}.weight", _side_by_side(weight, heads) if heads else weight)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def log_probabilities(self, numbers: list[int]) -> NDArray[np.float64]:
        """Return the log probability of each token after each of those given."""
        state = self.weights["token_embd"][numbers].astype(np.float64)
        for layer in range(LAYERS):
            state = state + self._attention(f"blk.{layer}", state)
            inner = self._norm(f"blk.{layer}.ffn_norm", state)
            gate = inner @ self.weights[f"blk.{layer}.ffn_gate"].T
            up = inner @ self.weights[f"blk.{layer}.ffn_up"].T
            state = state + (gate / (1 + np.exp(-gate)) * up) @ self.weights[f"blk.{layer}.ffn_down"].T
        scores = self._norm("output_norm", state) @ self.weights["token_embd"].T
        return np.asarray(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))

    def _attention(self, block: str, state: NDArray[np.float64]) -> NDArray[np.float64]:
        inner, count = self._norm(f"{block}.attn_norm", state), len(state)
        queries, keys, values = (
            (inner @ self.weights[f"{block}.attn_{part}"].T).reshape(count, -1, HEAD_WIDTH) for part in "qkv"
        )
        queries, keys = _turned(queries), _turned(keys)
        keys, values = (np.repeat(part, HEADS // KEY_VALUE_HEADS, axis=1) for part in (keys, values))
        scores = np.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(HEAD_WIDTH)
        scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
        shares = np.exp(scores)
        shares /= shares.sum(-1, keepdims=True)
        heard = np.einsum("hqk,khd->qhd", shares, values).reshape(count, WIDTH)
        return np.asarray(heard @ self.weights[f"{block}.attn_output"].T)

    def _norm(self, name: str, state: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = np.sqrt((state**2).mean(-1, keepdims=True) + NORM_EPSILON)
        return np.asarray(state / scale * self.weights[name])


def _turned(part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply rotary positions to queries or keys of shape (position, head, number)."""
    half = HEAD_WIDTH // 2
    angles = np.arange(len(part))[:, None] * ROPE_BASE ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = part[..., :half], part[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def _side_by_side(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorder the rows of queries or keys as llama.cpp's `convert_hf_to_gguf.py` does (`LlamaModel.permute`)."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)

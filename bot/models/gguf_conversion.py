"""Converts small language models of the Llama architecture from GGUF into the form that CTranslate2 runs.

CTranslate2 comes with the recogniser, so such a model needs no engine of its own. The weights become 8-bit numbers, one
tensor after the other, so a conversion needs little more memory than its result and the largest tensor.

A person may have copied the file, so what it says is checked. What it says and we cannot follow is refused: a model
that is run in another way than it was trained answers nonsense.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.errors import ModelError
from bot.models.gguf_file import (
    TOKENIZER_KEYS,
    GgufError,
    build_tokenizer,
    header_of,
    open_gguf,
    shape_of,
    weights_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    from gguf.gguf_reader import ReaderTensor

# Raise it when the same file is converted in another way, so that it is converted anew.
CONVERSION = 1
TOKENIZER_NAME = "tokenizer.json"
# What a converted model consists of.
CONVERTED_FILES = ("model.bin", "config.json", "vocabulary.json", TOKENIZER_NAME)

# Two cores run no larger models in passing.
_MOST_WEIGHTS = 500_000_000

_ARCHITECTURE_KEY = "general.architecture"
_LAYERS_KEY = "llama.block_count"
_WIDTH_KEY = "llama.embedding_length"
_INNER_WIDTH_KEY = "llama.feed_forward_length"
_HEADS_KEY = "llama.attention.head_count"
_KEY_VALUE_HEADS_KEY = "llama.attention.head_count_kv"
_NORM_EPSILON_KEY = "llama.attention.layer_norm_rms_epsilon"
_ROPE_BASE_KEY = "llama.rope.freq_base"
_ROPE_SCALING_KEY = "llama.rope.scaling.type"
_EXPERTS_KEY = "llama.expert_count"
# If they are there at all, they must be the width of a head.
_HEAD_WIDTH_KEYS = ("llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length")
_BOS_KEY, _EOS_KEY = "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"
_UNKNOWN_KEY = "tokenizer.ggml.unknown_token_id"
_KEYS = frozenset(
    (
        *(_ARCHITECTURE_KEY, _LAYERS_KEY, _WIDTH_KEY, _INNER_WIDTH_KEY, _HEADS_KEY, _KEY_VALUE_HEADS_KEY),
        *(_NORM_EPSILON_KEY, _ROPE_BASE_KEY, _ROPE_SCALING_KEY, _EXPERTS_KEY, *_HEAD_WIDTH_KEYS),
        *(_BOS_KEY, _EOS_KEY, _UNKNOWN_KEY, *TOKENIZER_KEYS),
    )
)
# llama.cpp's value for files that do not name it.
_DEFAULT_ROPE_BASE = 10_000.0
_EMBEDDINGS = "token_embd.weight"
# Only models that do not share it with the embeddings have it.
_PROJECTION = "output.weight"


def convert_llama_gguf(gguf_file: Path, folder: Path) -> None:
    """Write the CTranslate2 form of a GGUF file, and its tokenizer, into `folder`, which exists and is empty.

    Raises `ModelError` if the file is damaged or of another kind, and `OSError`.
    """
    with _telling_what_is_wrong(gguf_file):
        reader = open_gguf(gguf_file)
        header = header_of(reader, _KEYS)
        llama = _Llama.read(header)
        tokenizer = build_tokenizer(header)
        weights = _Weights({tensor.name: tensor for tensor in reader.tensors})
        weights.check(llama)
        _build_spec(llama, weights).save(str(folder))
        (folder / TOKENIZER_NAME).write_text(tokenizer.to_str(), encoding="utf-8")


@contextmanager
def _telling_what_is_wrong(gguf_file: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except MemoryError as error:
        raise ModelError(f"There is not enough memory to convert {gguf_file}. End other programs.") from error
    except Exception as error:
        # The libraries raise many kinds of error for what they do not expect in a file.
        why = str(error) if isinstance(error, GgufError) else "it is damaged"
        raise ModelError(
            f"{gguf_file} is no language model that can be used here: {why}. "
            f"`roomtone models pull {gguf_file.parent.name} --again` replaces it."
        ) from error


@dataclass(frozen=True, slots=True)
class _Llama:
    """What the header says of the model. `width`: numbers per token; `inner_width`: those of the feed-forward part."""

    layers: int
    width: int
    inner_width: int
    heads: int
    key_value_heads: int
    norm_epsilon: float
    rope_base: float
    tokens: list[str]
    bos: str
    eos: str
    unknown: str

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @classmethod
    def read(cls, header: dict[str, Any]) -> _Llama:
        """Check the values of a header. Raises `GgufError`."""
        if (architecture := header.get(_ARCHITECTURE_KEY)) != "llama":
            raise GgufError(f"its architecture is {architecture}, and only llama is known here")
        if header.get(_ROPE_SCALING_KEY, "none") != "none" or header.get(_EXPERTS_KEY, 0) != 0:
            raise GgufError("it is a variant of llama that is not known here")
        numbers = {key: header.get(key) for key in (_LAYERS_KEY, _WIDTH_KEY, _INNER_WIDTH_KEY, _HEADS_KEY, _EOS_KEY)}
        if wrong := [key for key, value in numbers.items() if not isinstance(value, int) or value < 1]:
            raise GgufError(f"its {wrong[0]} is {numbers[wrong[0]]}")
        width, heads = header[_WIDTH_KEY], header[_HEADS_KEY]
        key_value_heads = header.get(_KEY_VALUE_HEADS_KEY, heads)
        # Rotary positions turn pairs of numbers.
        if width % (2 * heads) or heads % key_value_heads:
            raise GgufError("its sizes do not fit together")
        if any(header.get(key, width // heads) != width // heads for key in _HEAD_WIDTH_KEYS):
            raise GgufError("it is a variant of llama that is not known here")
        tokens = header["tokenizer.ggml.tokens"]
        return cls(
            layers=header[_LAYERS_KEY],
            width=width,
            inner_width=header[_INNER_WIDTH_KEY],
            heads=heads,
            key_value_heads=key_value_heads,
            norm_epsilon=header[_NORM_EPSILON_KEY],
            rope_base=header.get(_ROPE_BASE_KEY, _DEFAULT_ROPE_BASE),
            tokens=tokens,
            bos=tokens[header[_BOS_KEY]],
            eos=tokens[header[_EOS_KEY]],
            unknown=tokens[header.get(_UNKNOWN_KEY, header[_EOS_KEY])],
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the tensors that such a model has."""
        key_value_width = self.head_width * self.key_value_heads
        shapes: dict[str, tuple[int, ...]] = {
            _EMBEDDINGS: (len(self.tokens), self.width),
            "output_norm.weight": (self.width,),
        }
        for layer in range(self.layers):
            shapes |= {
                f"blk.{layer}.attn_norm.weight": (self.width,),
                f"blk.{layer}.attn_q.weight": (self.width, self.width),
                f"blk.{layer}.attn_k.weight": (key_value_width, self.width),
                f"blk.{layer}.attn_v.weight": (key_value_width, self.width),
                f"blk.{layer}.attn_output.weight": (self.width, self.width),
                f"blk.{layer}.ffn_norm.weight": (self.width,),
                f"blk.{layer}.ffn_gate.weight": (self.inner_width, self.width),
                f"blk.{layer}.ffn_up.weight": (self.inner_width, self.width),
                f"blk.{layer}.ffn_down.weight": (self.width, self.inner_width),
            }
        return shapes


@dataclass(frozen=True, slots=True)
class _Weights:
    """The tensors of a file, by name."""

    tensors: dict[str, ReaderTensor]

    def check(self, llama: _Llama) -> None:
        """Raise `GgufError` unless the file has the tensors of `llama` and no others, in sizes that we can hold."""
        if llama.layers > len(self.tensors):
            raise GgufError("it lacks layers")
        shapes = llama.shapes()
        if _PROJECTION in self.tensors:
            shapes[_PROJECTION] = shapes[_EMBEDDINGS]
        if sum(map(math.prod, shapes.values())) > _MOST_WEIGHTS:
            raise GgufError(f"it has more than {_MOST_WEIGHTS // 1_000_000} million weights")
        if missing := shapes.keys() - self.tensors.keys():
            raise GgufError(f"it lacks {min(missing)}")
        if unknown := self.tensors.keys() - shapes.keys():
            raise GgufError(f"it has {min(unknown)!r}, which is not known here")
        if wrong := [name for name, shape in shapes.items() if shape_of(self.tensors[name]) != shape]:
            raise GgufError(f"its {wrong[0]} has another shape than its header says")

    def read(self, name: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        return weights_of(self.tensors[name])


def _build_spec(llama: _Llama, weights: _Weights) -> Any:
    """Return CTranslate2's description of the model, with its weights."""
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        llama.layers,
        llama.heads,
        activation=common_spec.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        # All numbers of a head.
        rotary_dim=0,
        # GGUF has queries and keys in the order of the first Llama: rows that are turned together are side by side.
        rotary_interleave=True,
        rotary_base=llama.rope_base,
        num_heads_kv=llama.key_value_heads,
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.layer_norm.gamma = weights.read("output_norm.weight")
    _quantise(decoder.embeddings, weights.read(_EMBEDDINGS))
    has_projection = _PROJECTION in weights.tensors
    if has_projection:
        _quantise(decoder.projection, weights.read(_PROJECTION))
    else:
        decoder.projection.weight = decoder.embeddings.weight
    for number, layer in enumerate(decoder.layer):
        block = f"blk.{number}"
        attention, feed_forward = layer.self_attention, layer.ffn
        attention.layer_norm.gamma = weights.read(f"{block}.attn_norm.weight")
        joined = np.concatenate([weights.read(f"{block}.attn_{part}.weight") for part in "qkv"])
        _quantise(attention.linear[0], joined)
        _quantise(attention.linear[1], weights.read(f"{block}.attn_output.weight"))
        feed_forward.layer_norm.gamma = weights.read(f"{block}.ffn_norm.weight")
        _quantise(feed_forward.linear_0, weights.read(f"{block}.ffn_gate.weight"))
        _quantise(feed_forward.linear_0_noact, weights.read(f"{block}.ffn_up.weight"))
        _quantise(feed_forward.linear_1, weights.read(f"{block}.ffn_down.weight"))
    spec.register_vocabulary(llama.tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = llama.bos, llama.eos, llama.unknown
    spec.config.layer_norm_epsilon = llama.norm_epsilon
    spec.validate()
    if not has_projection:
        # The name of another weight is stored as a reference, which also stands for its scale. `spec.optimize` would
        # find it by itself, but makes references of equal scales too, and those are not found when the model is run in
        # another precision.
        decoder.projection.weight = "decoder/embeddings/weight"
    return spec


def _quantise(part: Any, weight: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """Give a part of the model its weight, as 8-bit numbers."""
    part.weight = weight
    part.validate()
    part.optimize(quantization="int8")

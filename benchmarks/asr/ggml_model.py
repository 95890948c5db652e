"""Converts a Whisper model from CTranslate2's format into whisper.cpp's (ggml, float16).

    python -m benchmarks.asr.ggml_model DIR FILE

The weights stay the same; those that are quantised are rounded to float16. Sources: models/convert-h5-to-ggml.py and
`whisper_model_load` in src/whisper.cpp of ggml-org/whisper.cpp for the file, and `WhisperLoader` in
python/ctranslate2/converters/transformers.py of OpenNMT/CTranslate2 for what it calls the tensors and which it joins.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from benchmarks.asr.ctranslate2_weights import read_weights
from benchmarks.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.asr.ctranslate2_weights import WhisperWeights

    Array = np.ndarray[Any, np.dtype[Any]]

_MAGIC = 0x67676D6C
# How whisper.cpp numbers the types of values, and of whole files.
_FLOAT32, _FLOAT16 = 0, 1
# The first special token. whisper.cpp names this one and all after it by itself.
_FIRST_SPECIAL = "<|endoftext|>"
_EMBEDDINGS = "decoder/embeddings/weight"
# Part of the names of converted files; raise it when the conversion changes.
_REVISION = 1


@dataclass(frozen=True, slots=True)
class GgmlModel:
    """A converted model. `stored_as`: how the original has its weights, such as int8."""

    file: Path
    stored_as: str


@dataclass(frozen=True, slots=True)
class GgmlTensor:
    """One tensor of the file, by OpenAI's name. `values` have the type and the shape that whisper.cpp wants."""

    name: str
    values: Array


def keep_ggml_model(model_dir: Path, parent: Path) -> GgmlModel:
    """Return the model in `model_dir` in whisper.cpp's format, converted into `parent` unless it is there already.

    Raises ModelFormatError, a plain sentence.
    """
    weights = read_weights(model_dir / "model.bin")
    with (model_dir / "model.bin").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    target = parent / f"whisper-{digest}-{_REVISION}.ggml"
    if not target.is_file():
        _convert(weights, model_dir, target)
    return GgmlModel(target, stored_as=weights.stored(_EMBEDDINGS, rank=2).dtype.name)


def convert(model_dir: Path, target: Path) -> None:
    """Write the model in `model_dir` to the file `target`. Raises ModelFormatError."""
    _convert(read_weights(model_dir / "model.bin"), model_dir, target)


def _convert(weights: WhisperWeights, model_dir: Path, target: Path) -> None:
    words = read_vocabulary(model_dir / "tokenizer.json")
    unfinished = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            _write_header(file, weights)
            _write_vocabulary(file, words)
            for tensor in ggml_tensors(weights):
                _write_tensor(file, tensor)
        unfinished.replace(target)
    except OSError as error:
        raise ModelFormatError(f"{target} cannot be written: {error}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def _write_header(file: BinaryIO, weights: WhisperWeights) -> None:
    """Write the sizes of the model and its mel filters."""
    tokens, _ = weights.stored(_EMBEDDINGS, rank=2).shape
    audio_length, audio_width = weights.stored("encoder/position_encodings/encodings", rank=2).shape
    text_length, text_width = weights.stored("decoder/position_encodings/encodings", rank=2).shape
    _, mels, _ = weights.stored("encoder/conv1/weight", rank=3).shape
    sizes = (
        tokens,
        *(audio_length, audio_width, weights.number("encoder/num_heads"), _layers(weights, "encoder")),
        *(text_length, text_width, weights.number("decoder/num_heads"), _layers(weights, "decoder")),
        mels,
        _FLOAT16,
    )
    file.write(struct.pack("<I11i", _MAGIC, *sizes))
    filters = FeatureExtractor(feature_size=mels).mel_filters
    file.write(struct.pack("<2i", *filters.shape))
    file.write(filters.astype("<f4").tobytes())


def _write_vocabulary(file: BinaryIO, words: Sequence[bytes]) -> None:
    file.write(struct.pack("<i", len(words)))
    for word in words:
        file.write(struct.pack("<i", len(word)) + word)


def _write_tensor(file: BinaryIO, tensor: GgmlTensor) -> None:
    name, values = tensor.name.encode(), tensor.values
    kind = _FLOAT16 if values.dtype == np.float16 else _FLOAT32
    file.write(struct.pack("<3i", values.ndim, len(name), kind))
    # ggml names the fastest dimension first.
    file.write(struct.pack(f"<{values.ndim}i", *reversed(values.shape)) + name)
    file.write(values.astype(values.dtype.newbyteorder("<")).tobytes())


def ggml_tensors(weights: WhisperWeights) -> Iterator[GgmlTensor]:
    """Yield every tensor of the model, one at a time because they are large. Raises ModelFormatError."""
    tensors = _Tensors(weights)
    yield tensors.positions("encoder")
    for conv in ("conv1", "conv2"):
        yield from tensors.convolution(f"encoder.{conv}", f"encoder/{conv}")
    for number in range(_layers(weights, "encoder")):
        yield from tensors.layer(f"encoder.blocks.{number}", f"encoder/layer_{number}")
    yield from tensors.norm("encoder.ln_post", "encoder/layer_norm")
    yield tensors.positions("decoder")
    yield _matrix("decoder.token_embedding.weight", weights.floats(_EMBEDDINGS, rank=2))
    for number in range(_layers(weights, "decoder")):
        block, layer = f"decoder.blocks.{number}", f"decoder/layer_{number}"
        yield from tensors.layer(block, layer)
        yield from tensors.cross_attention(block, layer)
    yield from tensors.norm("decoder.ln", "decoder/layer_norm")


@dataclass(frozen=True, slots=True)
class _Tensors:
    """Makes tensors from CTranslate2's variables. Matrices are float16 and all else float32, as whisper.cpp wants."""

    weights: WhisperWeights

    def positions(self, half: str) -> GgmlTensor:
        encodings = self.weights.floats(f"{half}/position_encodings/encodings", rank=2)
        return GgmlTensor(f"{half}.positional_embedding", encodings)

    def convolution(self, name: str, variable: str) -> Iterator[GgmlTensor]:
        yield _matrix(f"{name}.weight", self.weights.floats(f"{variable}/weight", rank=3))
        # whisper.cpp wants a column, which it adds to every frame.
        yield GgmlTensor(f"{name}.bias", self.weights.floats(f"{variable}/bias", rank=1).reshape(-1, 1))

    def norm(self, name: str, variable: str) -> Iterator[GgmlTensor]:
        yield GgmlTensor(f"{name}.weight", self.weights.floats(f"{variable}/gamma", rank=1))
        yield GgmlTensor(f"{name}.bias", self.weights.floats(f"{variable}/beta", rank=1))

    def linear(self, names: Sequence[str], variable: str) -> Iterator[GgmlTensor]:
        """Yield the weight and the bias of linear layers that CTranslate2 joined into one."""
        weight, bias = (
            self.weights.floats(f"{variable}/weight", rank=2),
            self.weights.floats(f"{variable}/bias", rank=1),
        )
        if len(weight) % len(names) or len(bias) != len(weight):
            raise ModelFormatError(f"The model is damaged: the sizes of {variable} are wrong.")
        for name, rows, offsets in zip(names, np.split(weight, len(names)), np.split(bias, len(names)), strict=True):
            yield _matrix(f"{name}.weight", rows)
            # The key has none: it would add the same to all scores of a query. CTranslate2 has zeros there.
            if not name.endswith(".key"):
                yield GgmlTensor(f"{name}.bias", offsets)

    def layer(self, block: str, layer: str) -> Iterator[GgmlTensor]:
        """Yield what every layer has: attention to itself, and two linear layers."""
        yield from self.norm(f"{block}.attn_ln", f"{layer}/self_attention/layer_norm")
        joined = [f"{block}.attn.{part}" for part in ("query", "key", "value")]
        yield from self.linear(joined, f"{layer}/self_attention/linear_0")
        yield from self.linear([f"{block}.attn.out"], f"{layer}/self_attention/linear_1")
        yield from self.norm(f"{block}.mlp_ln", f"{layer}/ffn/layer_norm")
        yield from self.linear([f"{block}.mlp.0"], f"{layer}/ffn/linear_0")
        yield from self.linear([f"{block}.mlp.2"], f"{layer}/ffn/linear_1")

    def cross_attention(self, block: str, layer: str) -> Iterator[GgmlTensor]:
        """Yield the decoder's attention to the sound."""
        yield from self.norm(f"{block}.cross_attn_ln", f"{layer}/attention/layer_norm")
        yield from self.linear([f"{block}.cross_attn.query"], f"{layer}/attention/linear_0")
        joined = [f"{block}.cross_attn.{part}" for part in ("key", "value")]
        yield from self.linear(joined, f"{layer}/attention/linear_1")
        yield from self.linear([f"{block}.cross_attn.out"], f"{layer}/attention/linear_2")


def _matrix(name: str, values: Array) -> GgmlTensor:
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float16)
    if not np.all(np.isfinite(rounded)):
        raise ModelFormatError(f"The model's values for {name} are too large for float16.")
    return GgmlTensor(name, rounded)


def _layers(weights: WhisperWeights, half: str) -> int:
    layer = re.compile(rf"{half}/(layer_\d+)/")
    return len({found[1] for name in weights.variables if (found := layer.match(name))})


def read_vocabulary(path: Path) -> list[bytes]:
    """Return the words of a `tokenizer.json`, without the special ones, in the order of their numbers.

    Raises ModelFormatError.
    """
    try:
        content = json.loads(path.read_bytes())
        words: dict[str, int] = content["model"]["vocab"]
        numbers = {**words, **{one["content"]: one["id"] for one in content["added_tokens"]}}
        by_number = {number: word for word, number in words.items()}
        letters = _byte_of_letter()
        # A number without a word gets an empty one.
        return [
            bytes(letters[letter] for letter in by_number.get(number, "")) for number in range(numbers[_FIRST_SPECIAL])
        ]
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read: {error}.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFormatError(f"{path} is no tokenizer of a Whisper model.") from error


def _byte_of_letter() -> dict[str, int]:
    """Return GPT-2's letters: those that can be seen stand for themselves, the other bytes for letters from 256 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in seen]
    return {**{chr(byte): byte for byte in seen}, **{chr(256 + at): byte for at, byte in enumerate(others)}}


def main() -> None:
    """Convert the model in a folder to a file. A model that cannot be converted ends the program with a sentence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    try:
        convert(chosen.model_dir, chosen.file)
    except ModelFormatError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

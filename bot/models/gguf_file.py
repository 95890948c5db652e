"""Reads GGUF files, the format of llama.cpp: what the header says, and weights as plain numbers.

A file may be damaged or hostile, so the header is read value by value and every size in it is bounded; the library's
own reader believes them. Source: the GGUF specification (ggml-org/ggml, docs/gguf.md).
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# Type of a value -> its packed form, little-endian.
_PACKED = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
# A header with more than this is damaged.
_MOST_ITEMS = 4_000_000
_MOST_BYTES = 1 << 20
_MOST_TENSORS = 100_000
_MOST_DIMENSIONS = 4
_ALIGNMENT_KEY = "general.alignment"
_DEFAULT_ALIGNMENT = 32


class GgufError(ValueError):
    """A GGUF file is damaged or of a kind that is not known here. The message goes on after "It can't be used:"."""


@dataclass(frozen=True, slots=True)
class GgufMetadata:
    """The key-value pairs of a header, as far as they were asked for, and what is needed to read on.

    A value is a number, a bool, a string or a list of strings. Lists of numbers are left out.
    """

    values: dict[str, Any]
    tensor_count: int
    alignment: int


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where a tensor is in its file. `shape`: rows first, as numpy has it. `quantisation`: GGML's number for it."""

    shape: tuple[int, ...]
    quantisation: int
    position: int


def read_metadata(file: BinaryIO, keys: Collection[str]) -> GgufMetadata:
    """Read the header up to the list of tensors and return the values of `keys`. Raises `GgufError`."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise GgufError("it is not a GGUF file")
    version, tensor_count, count = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in _VERSIONS:
        raise GgufError(f"it has GGUF version {version}")
    found: dict[str, Any] = {}
    alignment: Any = _DEFAULT_ALIGNMENT
    for _ in range(_bounded(count, _MOST_ITEMS)):
        key = _string(file)
        value = _value(file, _number(file, "<I"))
        if key in keys:
            found[key] = value
        if key == _ALIGNMENT_KEY:
            alignment = value
    if not isinstance(alignment, int) or not 0 < alignment <= _MOST_BYTES:
        raise GgufError("it is damaged")
    return GgufMetadata(found, tensor_count, alignment)


def read_tensor_list(file: BinaryIO, metadata: GgufMetadata) -> dict[str, GgufTensor]:
    """Read the list of tensors, which comes after the metadata. Raises `GgufError`."""
    listed = [_tensor(file) for _ in range(_bounded(metadata.tensor_count, _MOST_TENSORS))]
    start = -(-file.tell() // metadata.alignment) * metadata.alignment
    tensors = {name: GgufTensor(tensor.shape, tensor.quantisation, start + tensor.position) for name, tensor in listed}
    if len(tensors) < len(listed):
        raise GgufError("it is damaged")
    return tensors


def read_weights(file: BinaryIO, tensor: GgufTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the numbers of a tensor. Raises `GgufError`.

    The caller has checked that the shape is one that it can hold.
    """
    # They take a moment to import, and a bot without such a model needs neither.
    import numpy as np
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    try:
        quantisation = GGMLQuantizationType(tensor.quantisation)
        block, block_bytes = GGML_QUANT_SIZES[quantisation]
    except (ValueError, KeyError) as error:
        raise GgufError(f"it has weights of type {tensor.quantisation}") from error
    *rows, width = tensor.shape
    if width % block:
        raise GgufError("it is damaged")
    size = math.prod(rows) * (width // block) * block_bytes
    if tensor.position + size > file.seek(0, os.SEEK_END):
        raise GgufError("it is cut short")
    file.seek(tensor.position)
    # Of its own memory, unlike bytes: numbers that are not packed are changed in place later.
    packed = np.frombuffer(bytearray(_exactly(file, size)), dtype=np.uint8)
    try:
        # Damaged scales overflow; they are found below.
        with np.errstate(all="ignore"):
            numbers = dequantize(packed.reshape(*rows, width // block * block_bytes), quantisation)
    except NotImplementedError as error:
        raise GgufError(f"it has weights of type {quantisation.name}") from error
    weights = np.asarray(numbers, dtype=np.float32).reshape(tensor.shape)
    if not np.isfinite(weights).all():
        raise GgufError("it is damaged")
    return weights


def _tensor(file: BinaryIO) -> tuple[str, GgufTensor]:
    name = _string(file)
    dimensions = _number(file, "<I")
    if not 0 < dimensions <= _MOST_DIMENSIONS:
        raise GgufError("it is damaged")
    shape = tuple(reversed([int(_number(file, "<Q")) for _ in range(dimensions)]))
    return name, GgufTensor(shape, _number(file, "<I"), _number(file, "<Q"))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        item = _number(file, "<I")
        count = _bounded(_number(file, "<Q"), _MOST_ITEMS)
        if item in _PACKED:
            # Scores and types of tokens are not needed.
            file.seek(count * struct.calcsize(_PACKED[item]), os.SEEK_CUR)
            return None
        if item != _STRING:
            raise GgufError(f"it has a list of values of type {item}")
        return [_string(file) for _ in range(count)]
    if kind not in _PACKED:
        raise GgufError(f"it has a value of type {kind}")
    return _number(file, _PACKED[kind])


def _string(file: BinaryIO) -> str:
    size = _number(file, "<Q")
    if size > _MOST_BYTES:
        raise GgufError("it is damaged")
    return _exactly(file, size).decode("utf-8", "replace")


def _number(file: BinaryIO, packed: str) -> Any:
    (value,) = struct.unpack(packed, _exactly(file, struct.calcsize(packed)))
    return value


def _bounded(count: int, most: int) -> int:
    if count > most:
        raise GgufError("it is damaged")
    return count


def _exactly(file: BinaryIO, size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        raise GgufError("it is cut short")
    return read

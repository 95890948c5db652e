"""Reads the weights of a Whisper model in CTranslate2's format (`model.bin`), quantised or not.

Source: OpenNMT/CTranslate2, python/ctranslate2/specs/model_spec.py (`ModelSpec._serialize` and `_quantize`). All
numbers are little-endian:

    u32 version, string "WhisperSpec", u32 revision
    u32 count, then of each variable: string name, u8 rank, u32 of each dimension, u8 type, u32 bytes, the values
    u32 count, then of each alias: string alias, string name
    a string is its length with the final zero as u16, the text, and the zero
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]
    Floats = np.ndarray[Any, np.dtype[np.float32]]

_VERSION = 6
_SPEC = "WhisperSpec"
# Type in the file -> numpy's. numpy has no bfloat16 (5).
_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}


@dataclass(frozen=True, slots=True)
class WhisperWeights:
    """The variables of a model by name. They stay in the file until they are used."""

    variables: Mapping[str, Array]
    aliases: Mapping[str, str]

    def stored(self, name: str, *, rank: int) -> Array:
        """Return a variable with `rank` dimensions as it is in the file.

        Raises ModelFormatError, a plain sentence, if the model has no such variable.
        """
        found = self.variables.get(self.aliases.get(name, name))
        if found is None:
            raise ModelFormatError(f"The model has no {name}, so it is no Whisper model that can be converted.")
        if found.ndim != rank or not found.size:
            raise ModelFormatError(f"The model is damaged: {name} has the shape {found.shape}.")
        return found

    def floats(self, name: str, *, rank: int) -> Floats:
        """Return a variable as float32, with the values that are computed with if it is quantised.

        Raises ModelFormatError.
        """
        values = self.stored(name, rank=rank)
        if values.dtype.kind == "f":
            return values.astype(np.float32)
        scale = self.variables.get(f"{self.aliases.get(name, name)}_scale")
        # int8 has a scale for each row, int16 one for all.
        if scale is None or scale.size not in (1, len(values)) or not np.all(np.isfinite(scale) & (scale > 0)):
            raise ModelFormatError(f"The model is damaged: the scale of {name} does not fit it.")
        by_row = scale.astype(np.float32).reshape(-1, *(1 for _ in values.shape[1:]))
        with np.errstate(over="ignore"):
            return np.asarray(values / by_row, np.float32)

    def number(self, name: str) -> int:
        """Return a variable that is one whole number. Raises ModelFormatError."""
        return int(self.stored(name, rank=0))


def read_weights(path: Path) -> WhisperWeights:
    """Return the weights of a `model.bin`. Raises ModelFormatError, a plain sentence, for any other file."""
    try:
        content = np.memmap(path, np.uint8, mode="r")
    except (OSError, ValueError) as error:  # ValueError: the file is empty
        raise ModelFormatError(f"{path} cannot be read: {error}.") from error
    file = _Reader(content, path)
    version = file.number("<I")
    if version != _VERSION:
        raise ModelFormatError(f"{path} is no model of CTranslate2's binary version {_VERSION}.")
    spec = file.string()
    if spec != _SPEC:
        raise ModelFormatError(f"{path} is no Whisper model ({spec[:40]!r}).")
    file.number("<I")
    variables = dict(file.variable() for _ in range(file.number("<I")))
    aliases = {file.string(): file.string() for _ in range(file.number("<I"))}
    return WhisperWeights(variables, aliases)


@dataclass(slots=True)
class _Reader:
    """Reads one thing after the other."""

    content: Array
    path: Path
    at: int = 0

    def variable(self) -> tuple[str, Array]:
        name = self.string()
        shape = tuple(self.number("<I") for _ in range(self.number("<B")))
        kind, size = self.number("<B"), self.number("<I")
        values = self.take(size)
        dtype = _TYPES.get(kind)
        if dtype is None:
            raise ModelFormatError(f"{self.path} has values of a type ({kind}) that is not read here.")
        if math.prod(shape) * np.dtype(dtype).itemsize != size:
            raise ModelFormatError(f"{self.path} is damaged: the size of {name[:80]!r} is wrong.")
        return name, values.view(dtype).reshape(shape)

    def string(self) -> str:
        text = self.take(self.number("<H")).tobytes()
        return text.removesuffix(b"\0").decode("utf-8", "replace")

    def number(self, packed: str) -> int:
        (value,) = struct.unpack(packed, self.take(struct.calcsize(packed)).tobytes())
        return int(value)

    def take(self, size: int) -> Array:
        found = self.content[self.at : self.at + size]
        if found.size < size:
            raise ModelFormatError(f"{self.path} is cut short.")
        self.at += size
        return found

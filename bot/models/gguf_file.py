"""Reads GGUF files, the format of llama.cpp, with its own library: what the header says, and weights as numbers.

A downloaded file has the hash that the catalogue says. A file that a person copied may be damaged, so what the library
does not expect is one error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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

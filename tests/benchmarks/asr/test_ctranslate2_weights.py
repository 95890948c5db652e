"""The reader of CTranslate2's models returns what the model computes with, and a plain sentence for any other file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.asr.ctranslate2_weights import read_weights
from benchmarks.errors import ModelFormatError
from tests.benchmarks.asr.made_up_model import packed_model

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

VARIABLES: dict[str, Array] = {
    "plain": np.array([[1.5, -2], [0.25, 8]], np.float32),
    "half": np.array([0.5, 3], np.float16),
    "by_row": np.array([[127, -64], [2, 4]], np.int8),
    "by_row_scale": np.array([127, 4], np.float32),
    "as_one": np.array([[512], [-1024]], np.int16),
    "as_one_scale": np.array(1024, np.float32),
    "heads": np.array(8, np.int16),
}
ALIASES = {"other": "by_row"}
SMALL = packed_model(VARIABLES, ALIASES)


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "model.bin"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", [[1.5, -2], [0.25, 8]]),
        ("half", [0.5, 3]),
        ("by_row", [[1, -64 / 127], [0.5, 1]]),
        ("other", [[1, -64 / 127], [0.5, 1]]),
        ("as_one", [[0.5], [-1]]),
    ],
)
def test_a_variable_has_the_values_that_are_computed_with(name: str, expected: list[Any], tmp_path: Path) -> None:
    """Quantised values are divided by the scale of their row or of all; an alias has its variable's values."""
    weights = read_weights(_written(tmp_path, SMALL))
    wanted = np.array(expected, np.float32)
    found = weights.floats(name, rank=wanted.ndim)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted)


def test_types_and_numbers_are_read(tmp_path: Path) -> None:
    """A variable keeps the type that it has in the file, and a number is one."""
    weights = read_weights(_written(tmp_path, SMALL))
    assert weights.stored("by_row", rank=2).dtype == np.int8
    assert weights.number("heads") == 8


def test_a_file_that_is_cut_short_is_a_plain_sentence(tmp_path: Path) -> None:
    """Wherever a download broke off, the sentence says so."""
    for length in range(1, len(SMALL)):
        with pytest.raises(ModelFormatError, match="is cut short"):
            read_weights(_written(tmp_path, SMALL[:length]))


@given(at=st.integers(0, len(SMALL) - 1), byte=st.integers(0, 255))
def test_damage_raises_nothing_but_a_plain_sentence(
    at: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file with a wrong byte is read with the same shapes, or refused with the error of a wrong model."""
    damaged = SMALL[:at] + bytes([byte]) + SMALL[at + 1 :]
    path = _written(tmp_path_factory.mktemp("damaged"), damaged)
    for name, values in VARIABLES.items():
        with suppress(ModelFormatError):
            assert read_weights(path).floats(name, rank=values.ndim).ndim == values.ndim


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "cannot be read"),
        (packed_model({}, version=5), "is no model of CTranslate2's binary version 6"),
        (packed_model({}, spec="TransformerSpec"), "is no Whisper model"),
        (
            SMALL.replace(b"\x02\x02\x00\x00\x00\x02\x00\x00\x00\x00", b"\x02\x02\x00\x00\x00\x03\x00\x00\x00\x00"),
            "size of",
        ),
        (SMALL.replace(b"heads\0\0\x02", b"heads\0\0\x05"), "values of a type"),
    ],
)
def test_another_file_is_a_plain_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    """An empty file, other formats, and sizes or types that cannot be are refused."""
    with pytest.raises(ModelFormatError, match=sentence):
        read_weights(_written(tmp_path, content))


def test_a_missing_file_is_a_plain_sentence(tmp_path: Path) -> None:
    """The file is named."""
    with pytest.raises(ModelFormatError, match=r"model\.bin cannot be read"):
        read_weights(tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "has no weight"),
        ({"weight": np.zeros(2, np.float32)}, r"weight has the shape \(2,\)"),
        ({"weight": np.zeros((2, 0), np.float32)}, r"weight has the shape \(2, 0\)"),
        ({"weight": np.zeros((2, 2), np.int8)}, "the scale of weight does not fit"),
        ({"weight": np.zeros((2, 2), np.int8), "weight_scale": np.ones(3, np.float32)}, "the scale of weight"),
        ({"weight": np.zeros((2, 2), np.int8), "weight_scale": np.zeros(2, np.float32)}, "the scale of weight"),
        ({"weight": np.zeros((2, 2), np.int8), "weight_scale": np.full(2, np.nan, np.float32)}, "the scale of weight"),
    ],
)
def test_a_variable_that_does_not_fit_is_a_plain_sentence(
    variables: dict[str, Array], sentence: str, tmp_path: Path
) -> None:
    """A variable that is missing, has another shape or has a wrong scale is named."""
    weights = read_weights(_written(tmp_path, packed_model(variables)))
    with pytest.raises(ModelFormatError, match=sentence):
        weights.floats("weight", rank=2)

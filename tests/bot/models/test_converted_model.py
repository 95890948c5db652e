"""A language model is converted once, and half a conversion is never taken for a model."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from bot.errors import ModelError
from bot.models import turn_text
from bot.models.catalogue import TURN_TEXT
from bot.models.gguf_conversion import CONVERTED_FILES, convert_llama_gguf
from bot.models.turn_text import converted_folder
from tests.bot.models.tiny_llama import TinyLlama

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted((*CONVERTED_FILES, "converted-from.json"))


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """The folder of an installed model."""
    folder = tmp_path / TURN_TEXT.name
    folder.mkdir()
    TinyLlama().write(folder / TURN_TEXT.main_file.name)
    return folder


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def refuse(gguf_file: Path, folder: Path) -> None:
    """Stand in for a conversion that must not happen."""
    raise AssertionError(f"{gguf_file} is converted into {folder}")


def test_a_model_is_converted_once(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call makes the whole folder and leaves nothing else; later ones find it."""
    folder = converted_folder(model_folder)
    assert folder == model_folder / "ctranslate2"
    assert names(folder) == FILES
    assert names(model_folder) == ["ctranslate2", "model.gguf"]
    monkeypatch.setattr(turn_text, "convert_llama_gguf", refuse)
    assert converted_folder(model_folder) == folder


def test_two_conversions_at_once_agree(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two processes convert at the same time, both get the one whole folder."""
    both = Barrier(2, timeout=60)

    def convert(gguf_file: Path, folder: Path) -> None:
        both.wait()
        convert_llama_gguf(gguf_file, folder)
        both.wait()

    monkeypatch.setattr(turn_text, "convert_llama_gguf", convert)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(converted_folder, [model_folder] * 2))
    assert found == [model_folder / "ctranslate2"] * 2
    assert names(found[0]) == FILES
    assert names(model_folder) == ["ctranslate2", "model.gguf"]


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, r"is full\. Make room, or set models\.directory"),
        (errno.EROFS, r"cannot be written\. Give this user the right"),
    ],
)
def test_a_conversion_that_cannot_be_written_leaves_nothing(
    number: int, told: str, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or read-only disk is told with the remedy; what was written is removed, and the next call converts."""

    def convert(gguf_file: Path, folder: Path) -> None:
        del gguf_file
        (folder / "model.bin").write_bytes(b"half")
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(turn_text, "convert_llama_gguf", convert)
        with pytest.raises(ModelError, match=told):
            converted_folder(model_folder)
    assert names(model_folder) == ["model.gguf"]
    assert names(converted_folder(model_folder)) == FILES


def test_a_folder_that_lacks_a_file_is_made_anew(model_folder: Path) -> None:
    """A folder from which a file was removed is replaced."""
    (converted_folder(model_folder) / FILES[0]).unlink()
    assert names(converted_folder(model_folder)) == FILES
    assert names(model_folder) == ["ctranslate2", "model.gguf"]


def test_another_file_is_converted_anew(model_folder: Path) -> None:
    """If the GGUF file is replaced by another, so is what was made from it."""
    converted_folder(model_folder)
    (model_folder / "model.gguf").write_bytes(b"another")
    with pytest.raises(ModelError):
        converted_folder(model_folder)


def test_a_damaged_file_keeps_the_folder_clean(model_folder: Path) -> None:
    """A damaged file is told, and nothing of its conversion stays."""
    (model_folder / "model.gguf").write_bytes(b"GGUF, but no more")
    with pytest.raises(ModelError, match="models pull turn-text --again"):
        converted_folder(model_folder)
    assert names(model_folder) == ["model.gguf"]


def test_a_model_that_is_not_here_is_told_with_the_command(tmp_path: Path) -> None:
    """Without the GGUF file the error names the command that brings it."""
    with pytest.raises(ModelError, match="Run `roomtone models pull turn-text`"):
        converted_folder(tmp_path / TURN_TEXT.name)

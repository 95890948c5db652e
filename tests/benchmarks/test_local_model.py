"""Finding a language model for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.local_model import find_model_file
from bot.models.catalogue import CHAT_QWEN
from rehearsal.errors import LanguageModelError

if TYPE_CHECKING:
    from pathlib import Path


def test_chosen_file_goes_before_the_pulled_one(tmp_path: Path) -> None:
    """A model file that the user names is preferred to the pulled one."""
    chosen = tmp_path / "own.gguf"
    chosen.write_bytes(b"")
    assert find_model_file(chosen, tmp_path) == chosen


def test_pulled_model_is_found_on_the_shelf(tmp_path: Path) -> None:
    """If the user names no file, the pulled chat model of the catalogue is used."""
    place = tmp_path / CHAT_QWEN.name
    place.mkdir()
    (place / CHAT_QWEN.main_file.name).write_bytes(b"")
    assert find_model_file(None, tmp_path) == place / CHAT_QWEN.main_file.name


def test_missing_model_says_how_to_get_one(tmp_path: Path) -> None:
    """The error for a missing model names the command that fetches it."""
    with pytest.raises(LanguageModelError, match=r"roomtone models pull chat.*--model-file"):
        find_model_file(None, tmp_path)
    with pytest.raises(LanguageModelError, match="There is no model file"):
        find_model_file(tmp_path / "absent.gguf", tmp_path)

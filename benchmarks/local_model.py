"""The model file of the language model that a run serves here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.models.catalogue import CHAT_QWEN
from bot.models.directory import ModelDirectory
from rehearsal.errors import LanguageModelError

if TYPE_CHECKING:
    from pathlib import Path


def find_model_file(chosen: Path | None, models_dir: Path) -> Path:
    """Return the GGUF file to serve: `chosen` if given, or else the downloaded model.

    Raises `LanguageModelError` when there is none.
    """
    if chosen is not None:
        if not chosen.is_file():
            raise LanguageModelError(f"There is no model file {chosen}. Give the path of a GGUF file.")
        return chosen
    model_directory = ModelDirectory(models_dir)
    if not model_directory.holds(CHAT_QWEN):
        raise LanguageModelError(
            f"{CHAT_QWEN.name} is not here. Run `roomtone models pull chat`, or name a GGUF file with --model-file."
        )
    return model_directory.path(CHAT_QWEN) / CHAT_QWEN.main_file.name

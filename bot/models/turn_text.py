"""Opens the model that reads whether a sentence is finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.models.catalogue import TURN_TEXT
from bot.models.directory import CONVERTED_NAME, ModelDirectory
from voice.asr.text_end import LANGUAGE, QueuedSentenceReader, SentenceReader
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class OpenedReader:
    """The model, once somebody has tried to open it. `reader`: None: it is not wanted, not there, or not loaded.
    `is_damaged`: it is there and was not loaded.
    """

    reader: QueuedSentenceReader | None = None
    is_damaged: bool = False


def text_end_folder(models: ModelsSettings, asr: AsrSettings) -> Path | None:
    """Return where the model is to be, if it is there; None if its language is not spoken."""
    if asr.fixed_language not in {None, LANGUAGE}:
        return None
    return ModelDirectory(models.directory).path(TURN_TEXT)


async def open_text_end_reader(stack: AsyncExitStack, folder: Path | None) -> OpenedReader:
    """Load the model in `folder` (`text_end_folder`; None: it is not wanted) onto `stack`. If it cannot be loaded, log
    this and do not raise: the recogniser hears without it.
    """
    if folder is None or not ModelDirectory(folder.parent).holds(TURN_TEXT):
        return OpenedReader()
    reader = QueuedSentenceReader(lambda: SentenceReader(folder / CONVERTED_NAME))
    try:
        return OpenedReader(await stack.enter_async_context(reader))
    except TurnModelError as error:
        log.warning("no_text_end_model", problem=error)
        return OpenedReader(is_damaged=True)

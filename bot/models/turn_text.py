"""Opens the model that reads whether a sentence is finished, and keeps the form of it that CTranslate2 runs beside the
GGUF file that it is made from.

A conversion takes seconds, so it is done once. It is made in a folder of its own and moved into place whole, so half of
one is never taken for a model.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from bot.errors import ModelError
from bot.models.catalogue import TURN_TEXT
from bot.models.directory import ModelDirectory, describe_disk_error
from bot.models.gguf_conversion import CONVERSION, CONVERTED_FILES, convert_llama_gguf
from bot.private_files import sync_names, sync_to_disk
from voice.asr.text_end import LANGUAGE, QueuedSentenceReader, SentenceReader
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings

_GGUF_NAME = "model.gguf"
_CONVERTED_NAME = "ctranslate2"
_SCRATCH_PREFIX = f".{_CONVERTED_NAME}-"
# Says what a converted model was made from, and by which rules.
_ORIGIN_NAME = "converted-from.json"


def converted_folder(model_folder: Path) -> Path:
    """Return the folder with the CTranslate2 form of the `model.gguf` in `model_folder`. Converts it the first time.

    A model of 135 million weights takes some 2 s of CPU, so call it in a thread. Several processes may do so at once.
    The folder holds `CONVERTED_FILES`. Raises `ModelError` with the remedy.
    """
    gguf_file, converted = model_folder / _GGUF_NAME, model_folder / _CONVERTED_NAME
    try:
        if not gguf_file.is_file():
            raise ModelError(f"{gguf_file} is not here. Run `roomtone models pull {model_folder.name}`.")
        # `models pull` replaces the whole folder. The size finds most files that were exchanged in another way.
        origin = json.dumps({"conversion": CONVERSION, "gguf_bytes": gguf_file.stat().st_size})
        if not _is_made_from(origin, converted):
            _convert(gguf_file, converted, origin)
    except OSError as exc:
        raise ModelError(describe_disk_error(exc, model_folder)) from exc
    return converted


def _is_made_from(origin: str, converted: Path) -> bool:
    try:
        is_same = (converted / _ORIGIN_NAME).read_text(encoding="utf-8") == origin
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False
    return is_same and all((converted / name).is_file() for name in CONVERTED_FILES)


def _convert(gguf_file: Path, converted: Path, origin: str) -> None:
    with tempfile.TemporaryDirectory(
        dir=converted.parent, prefix=_SCRATCH_PREFIX, ignore_cleanup_errors=True
    ) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        convert_llama_gguf(gguf_file, made)
        (made / _ORIGIN_NAME).write_text(origin, encoding="utf-8")
        # Else a power failure could leave the name of the folder with empty files.
        for path in made.iterdir():
            sync_to_disk(path)
        sync_names(made)
        _put_in_place(made, converted, origin, former=Path(scratch, "former"))
    sync_names(converted.parent)


def _put_in_place(made: Path, converted: Path, origin: str, *, former: Path) -> None:
    if _is_made_from(origin, converted):
        # Another process was faster, and may be reading it.
        return
    with suppress(FileNotFoundError):
        converted.rename(former)
    try:
        made.rename(converted)
    except OSError:
        if not _is_made_from(origin, converted):
            raise


_log: Any = structlog.get_logger()


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
    reader = QueuedSentenceReader(lambda: SentenceReader(converted_folder(folder)))
    try:
        return OpenedReader(await stack.enter_async_context(reader))
    except (TurnModelError, ModelError) as error:
        _log.warning("no_text_end_model", problem=error)
        return OpenedReader(is_damaged=True)

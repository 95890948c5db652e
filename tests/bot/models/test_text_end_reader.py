"""The model that reads whether a sentence is finished is used if it is there and intact."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.models.turn_text import OpenedReader, open_text_end_reader, text_end_folder
from bot.settings import ModelsSettings
from voice.asr.settings import AsrSettings
from voice.asr.text_end import QueuedSentenceReader

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_reader_is_optional(tmp_path: Path, tiny_reading_model: Path) -> None:
    """If it is switched off, missing or damaged, pauses are judged by the sound and the recogniser's marks."""
    damaged = tmp_path / "damaged" / "turn-text"
    damaged.mkdir(parents=True)
    (damaged / "model.gguf").write_bytes(b"no model")
    async with AsyncExitStack() as stack:
        assert await open_text_end_reader(stack, None) == OpenedReader()
        assert await open_text_end_reader(stack, tmp_path / "turn-text") == OpenedReader()
        with capture_logs() as logs:
            opened = await open_text_end_reader(stack, damaged)
        assert opened == OpenedReader(is_damaged=True)
        assert [(line["event"], line["log_level"]) for line in logs] == [("no_text_end_model", "warning")]
        opened = await open_text_end_reader(stack, tiny_reading_model.parent)
        assert isinstance(opened.reader, QueuedSentenceReader)


@pytest.mark.parametrize(("languages", "wanted"), [((), True), (("en",), True), (("de", "en"), True), (("de",), False)])
def test_it_is_wanted_where_english_may_be_spoken(tmp_path: Path, languages: tuple[str, ...], wanted: bool) -> None:
    """It takes memory, so nobody loads it in vain."""
    folder = text_end_folder(ModelsSettings(directory=tmp_path), AsrSettings(languages=languages))
    assert folder == (tmp_path / "turn-text" if wanted else None)

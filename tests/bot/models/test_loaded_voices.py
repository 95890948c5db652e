"""The embedded voices are loaded on demand, shared, and closed when nobody wants them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.errors import ModelError
from bot.models.directory import ModelDirectory
from bot.models.loaded_voices import LoadedVoices
from bot.models.voices import VOICES, EmbeddedVoice, find_voice
from voice.errors import SynthesisError
from voice.speaking.piper import PiperSynthesizer
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from bot.models.catalogue import ModelEntry


def voice(name: str) -> EmbeddedVoice:
    found = find_voice(name)
    assert found is not None
    return found


class Silence:
    """Stands for a loaded voice."""

    async def stream(self, _text: str) -> AsyncGenerator[AudioChunk, None]:
        yield AudioChunk(np.zeros(100, np.int16), 22_050)


class Engines:
    """Stands for Piper: notes which voices are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.loads = 0
        self.fails = False

    @asynccontextmanager
    async def piper(self, directory: Path, *, speed: float, variety: float) -> AsyncIterator[Silence]:
        del speed, variety
        self.loads += 1
        if self.fails:
            raise SynthesisError("There is no voice.")
        self.open.append(directory.name)
        await asyncio.sleep(0)
        yield Silence()
        self.open.remove(directory.name)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    made = Engines()
    monkeypatch.setattr(PiperSynthesizer, "open", made.piper)
    return made


@pytest.mark.asyncio
async def test_a_voice_is_loaded_once_for_all(tmp_path: Path, engines: Engines) -> None:
    """Callers at the same time share one model, which is closed at the end."""
    async with LoadedVoices(ModelDirectory(tmp_path), chosen=tuple) as voices:

        async def use() -> object:
            async with voices.using(voice("joe")) as synthesizer:
                return synthesizer

        first, second = await asyncio.gather(use(), use())
        assert first is second
        assert (engines.loads, engines.open) == (1, ["voice-joe"])
    assert engines.open == []


@pytest.mark.asyncio
async def test_what_nobody_uses_or_has_chosen_is_closed(tmp_path: Path, engines: Engines) -> None:
    """When another voice is loaded, models that no server has chosen and nobody uses are closed."""
    chosen = {"kristin"}
    async with LoadedVoices(ModelDirectory(tmp_path), chosen=lambda: chosen) as voices:
        await voices.load(voice("kristin"))
        async with voices.using(voice("joe")):
            await voices.load(voice("thorsten"))
            assert engines.open == ["voice-kristin", "voice-joe", "voice-thorsten"]
        chosen.clear()
        await voices.load(voice("joe"))
        await voices.load(voice("kristin"))
        await asyncio.sleep(0)
        # The one that is in memory already needs no room.
        await voices.load(voice("thorsten"))
        assert engines.loads == 3
        chosen.add("joe")
        voices._loading.pop("thorsten")
        await voices.load(voice("thorsten"))
        assert "voice-kristin" not in engines.open


@pytest.mark.asyncio
async def test_a_voice_that_could_not_be_loaded_is_tried_again(tmp_path: Path, engines: Engines) -> None:
    """A failure is told each time, and the next time may succeed."""
    async with LoadedVoices(ModelDirectory(tmp_path), chosen=tuple) as voices:
        engines.fails = True
        voices.prepare(voice("joe"))
        with pytest.raises(SynthesisError, match="no voice"):
            await voices.load(voice("joe"))
        engines.fails = False
        await voices.load(voice("joe"))
        assert engines.open == ["voice-joe"]


@pytest.mark.asyncio
async def test_a_voice_is_downloaded_once(tmp_path: Path) -> None:
    """Two people who want the same voice wait for one download; a failure is told to who caused it."""
    installed: list[str] = []

    async def install(entry: ModelEntry, models: ModelDirectory, report: Callable[[float], Awaitable[None]]) -> None:
        if entry.name == "voice-thorsten":
            raise ModelError("The hub cannot be reached.")
        await report(1.5)
        installed.append(entry.name)
        folder = models.path(entry)
        folder.mkdir(parents=True)
        (folder / entry.main_file.name).write_bytes(b"weights")

    heard: list[float] = []

    async def report(megabytes: float) -> None:
        heard.append(megabytes)

    async with LoadedVoices(ModelDirectory(tmp_path), chosen=tuple, install=install) as voices:
        assert not voices.holds(voice("heart"))
        await asyncio.gather(voices.install(voice("heart"), report), voices.install(voice("emma"), report))
        assert (installed, heard) == (["voice-kokoro"], [1.5])
        assert voices.holds(voice("emma"))
        with pytest.raises(ModelError, match="hub"):
            await voices.install(voice("thorsten"), report)


def test_every_voice_has_a_name_of_its_own_and_its_file() -> None:
    """Names are unique, every style is a file of its model, and every language has a sample."""
    assert len({each.name for each in VOICES}) == len(VOICES)
    for each in VOICES:
        assert each.sample
        if each.style is not None:
            assert each.style.file in {file.name for file in each.model.files}
    assert find_voice(" Emma ") is voice("emma")
    assert find_voice("nobody") is None

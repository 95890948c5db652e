"""The embedded voices are loaded on demand, shared, and closed when nobody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from bot.errors import ModelError
from bot.models import loaded_voices
from bot.models.directory import ModelDirectory
from bot.models.entry import ModelEntry
from bot.models.loaded_voices import GONE, TRIED_AGAIN, LoadedVoices
from bot.models.voices import DEFAULT_VOICE, VOICES, EmbeddedVoice, find_voice
from tests.fakes.clock import FakeClock
from tests.fakes.virtual_time import virtually
from tests.fakes.voices import SilentVoice
from voice.errors import SynthesisError, VoiceLoadingError
from voice.speaking.embedded import EmbeddedModel, VoiceEngine, VoiceManner


def voice(name: str) -> EmbeddedVoice:
    found = find_voice(name)
    assert found is not None
    return found


class Engines:
    """Stands for the engines: notes which models are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.loads = 0
        self.load_s = 0.0
        self.fails = False

    @asynccontextmanager
    async def open_model(self, _engine: VoiceEngine, directory: Path) -> AsyncIterator[SilentModel]:
        self.loads += 1
        if self.fails:
            raise SynthesisError("There is no voice.")
        self.open.append(directory.name)
        await asyncio.sleep(self.load_s)
        yield SilentModel()
        self.open.remove(directory.name)


class SilentModel:
    """Stands for a model, whose voices share it."""

    async def voice(self, _style: str, _manner: VoiceManner) -> SilentVoice:
        return SilentVoice()


class AllHere(ModelDirectory):
    """A models directory that has every model but those in `gone`."""

    gone: ClassVar[set[str]] = set()

    def holds(self, entry: ModelEntry) -> bool:
        return entry.name not in self.gone


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    made = Engines()
    monkeypatch.setattr(EmbeddedModel, "open", made.open_model)
    return made


async def test_a_voice_is_loaded_once_for_all(tmp_path: Path, engines: Engines) -> None:
    """Callers at the same time share one model, which is closed at the end."""
    async with LoadedVoices(AllHere(tmp_path), chosen=tuple) as voices:

        async def use() -> object:
            async with voices.using(voice("joe")) as synthesizer:
                return synthesizer

        first, second = await asyncio.gather(use(), use())
        assert first is second
        assert (engines.loads, engines.open) == (1, ["voice-joe"])
    assert engines.open == []


async def test_what_nobody_uses_or_has_chosen_is_closed(tmp_path: Path, engines: Engines) -> None:
    """When another voice is loaded, models that no server has chosen and nobody uses are closed."""
    chosen = {"kristin"}
    async with LoadedVoices(AllHere(tmp_path), chosen=lambda: chosen) as voices:
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
        await voices.load(voice("heart"))
        await voices.load(voice("emma"))
        assert "voice-kristin" not in engines.open
        assert engines.loads == 4


async def settled() -> None:
    """Let the tasks that load voices end."""
    loading = [task for task in asyncio.all_tasks() if task.get_name().startswith("voice-")]
    await asyncio.gather(*loading, return_exceptions=True)


async def test_a_voice_that_fails_is_tried_again_after_growing_pauses(tmp_path: Path, engines: Engines) -> None:
    """Who wants it asks often; it is loaded seldom. What it was lasts until it is loaded, and then nothing is known."""
    clock, joe = FakeClock(), voice("joe")
    async with LoadedVoices(AllHere(tmp_path), chosen=tuple, clock=clock) as voices:
        engines.fails = True
        voices.prepare(joe)
        await settled()
        for number, pause_s in enumerate((30, 60, 120, 240, 480, 600, 600), start=1):
            clock.advance(pause_s - 1)
            voices.retry(joe)
            await settled()
            assert engines.loads == number
            clock.advance(1)
            voices.retry(joe)
            assert voices.problem(joe) == f"There is no voice. {TRIED_AGAIN}"
            await settled()
            assert engines.loads == number + 1
        engines.fails = False
        clock.advance(600)
        voices.retry(joe)
        await settled()
        assert voices.problem(joe) is None
        assert engines.open == ["voice-joe"]
        voices.retry(joe)
        await settled()
        assert engines.open == ["voice-joe"]


async def test_a_voice_whose_files_are_gone_says_so_until_they_are_back(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in memory goes on speaking; what has to be loaded says what to do."""
    async with LoadedVoices(AllHere(tmp_path), chosen=tuple) as voices:
        await voices.load(voice("joe"))
        monkeypatch.setattr(AllHere, "gone", {"voice-joe", "voice-kristin"})
        assert voices.problem(voice("joe")) is None
        with pytest.raises(SynthesisError, match="choose"):
            await voices.load(voice("kristin"))
        assert voices.problem(voice("kristin")) == GONE
        monkeypatch.setattr(AllHere, "gone", set())
        await voices.look()
        assert voices.problem(voice("kristin")) is None
        engines.fails = True
        with pytest.raises(SynthesisError):
            await voices.load(voice("kristin"))
        assert voices.problem(voice("kristin")) == f"There is no voice. {TRIED_AGAIN}"


async def test_a_voice_that_another_process_has_downloaded_is_loaded_when_it_is_chosen(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`roomtone models pull` has downloaded it since this process has looked. Nothing is said against it meanwhile."""
    monkeypatch.setattr(AllHere, "gone", {"voice-joe"})
    async with LoadedVoices(AllHere(tmp_path), chosen=tuple) as voices:
        assert voices.problem(voice("joe")) == GONE
        monkeypatch.setattr(AllHere, "gone", set())
        voices.prepare(voice("joe"))
        assert voices.problem(voice("joe")) is None
        async with voices.using(voice("joe")):
            assert engines.open == ["voice-joe"]


@virtually
async def test_a_sentence_does_not_wait_long_for_its_voice(tmp_path: Path, engines: Engines) -> None:
    """If a voice takes long to load, the sentence goes on without it, and the loading goes on too."""
    engines.load_s = loaded_voices.WAIT_FOR_VOICE_S + 1
    async with LoadedVoices(AllHere(tmp_path), chosen=tuple) as voices:
        with pytest.raises(VoiceLoadingError, match="still"):
            async with voices.using(voice("joe")):
                pass
        await voices.load(voice("joe"))
        assert engines.loads == 1


async def test_one_voice_is_downloaded_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one comes, others are refused with a sentence; a failure is told, and then the next may be tried."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def install(entry: ModelEntry, models: ModelDirectory, report: Callable[[float], Awaitable[None]]) -> None:
        if entry.name == "voice-thorsten":
            raise ModelError("The hub cannot be reached.")
        begun.set()
        await go_on.wait()
        await report(1.5)
        folder = models.path(entry)
        folder.mkdir(parents=True)
        (folder / entry.main_file.name).write_bytes(b"weights")

    heard: list[float] = []

    async def report(megabytes: float) -> None:
        heard.append(megabytes)

    monkeypatch.setattr(loaded_voices, "install", install)
    async with LoadedVoices(ModelDirectory(tmp_path), chosen=tuple) as voices:
        assert not voices.holds(voice("heart"))
        first = asyncio.create_task(voices.install(voice("heart"), report))
        await begun.wait()
        with pytest.raises(ModelError, match="Heart"):
            await voices.install(voice("emma"), report)
        go_on.set()
        await first
        await voices.install(voice("emma"), report)
        assert voices.holds(voice("emma"))
        assert heard == [1.5]
        for _ in range(2):
            with pytest.raises(ModelError, match="download"):
                await voices.install(voice("thorsten"), report)


def test_every_voice_has_a_name_of_its_own_and_its_file() -> None:
    """Names are unique, every style is a file of its model, and every language has a sample."""
    assert len({each.name for each in VOICES}) == len(VOICES)
    for each in VOICES:
        assert each.sample
        files = () if each.model is None else (file.name for file in each.model.files)
        assert not each.style or f"{each.style}.bin" in files
    assert find_voice(" Emma ") is voice("emma")
    assert find_voice("nobody") is None


async def test_a_voice_that_comes_with_its_library_is_always_here(tmp_path: Path) -> None:
    async with LoadedVoices(ModelDirectory(tmp_path), chosen=tuple) as voices:
        assert voices.holds(DEFAULT_VOICE)
        assert not voices.holds(voice("joe"))

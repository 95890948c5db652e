"""Which voices are installed is known without a wait for the disk."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.models import installed_voices
from bot.models.installed_voices import LOOK_AGAIN_S, InstalledVoices
from bot.models.voices import DEFAULT_VOICE
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from bot.models.entry import ModelEntry


class Disk:
    """Has the usual voice, and hangs until `gate` is set. `looks`: the names of the threads that have looked."""

    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.looks: list[str] = []
        self.failure: Exception | None = None
        self.has_it = True

    def holds(self, entry: ModelEntry) -> bool:
        """See `ModelDirectory.holds`."""
        if entry != DEFAULT_VOICE.model:
            return False
        self.looks.append(threading.current_thread().name)
        self.begun.set()
        self.gate.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        return self.has_it


@pytest.mark.asyncio
async def test_a_disk_that_hangs_is_not_waited_for_and_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen last counts until it answers, and the event loop never waits for it."""
    monkeypatch.setattr(installed_voices, "LOOK_TIMEOUT_S", 0.0)
    disk = Disk()
    async with InstalledVoices(disk.holds, FakeClock().monotonic) as voices:
        await asyncio.to_thread(disk.begun.wait, PATIENCE_S)
        for _ in range(3):
            await voices.look()
        assert not voices.holds(DEFAULT_VOICE)
        monkeypatch.setattr(installed_voices, "LOOK_TIMEOUT_S", PATIENCE_S)
        disk.gate.set()
        await voices.look()
        assert voices.holds(DEFAULT_VOICE)
    assert disk.looks == ["models-folder"]


@pytest.mark.asyncio
async def test_the_end_does_not_wait_for_a_disk_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is left behind, which the log tells."""
    monkeypatch.setattr(installed_voices, "LOOK_TIMEOUT_S", 0.0)
    monkeypatch.setattr(installed_voices, "STOP_TIMEOUT_S", 0.0)
    disk = Disk()
    with capture_logs() as logs:
        async with InstalledVoices(disk.holds, FakeClock().monotonic):
            await asyncio.to_thread(disk.begun.wait, PATIENCE_S)
    assert [(line["event"], line["worker"]) for line in logs] == [("model_thread_left_behind", "models-folder")]
    disk.gate.set()


@pytest.mark.asyncio
async def test_a_voice_that_is_wanted_is_looked_for_twice_a_minute() -> None:
    """Somebody may have put its files back. A sentence in each second asks for it."""
    clock, disk = FakeClock(), Disk()
    disk.gate.set()
    disk.has_it = False
    async with InstalledVoices(disk.holds, clock.monotonic) as voices:
        clock.advance(LOOK_AGAIN_S - 1)
        voices.look_soon()
        clock.advance(1)
        disk.has_it = True
        for _ in range(3):
            voices.look_soon()
        # The look that has begun.
        await voices.look()
        assert voices.holds(DEFAULT_VOICE)
    assert len(disk.looks) == 2


@pytest.mark.asyncio
async def test_a_folder_that_cannot_be_read_changes_nothing() -> None:
    """The log says why, and the next look may succeed."""
    disk = Disk()
    disk.gate.set()
    async with InstalledVoices(disk.holds, FakeClock().monotonic) as voices:
        disk.failure = PermissionError(13, "Permission denied")
        with capture_logs() as logs:
            await voices.look()
        assert [line["event"] for line in logs] == ["voices_not_looked_up"]
        assert voices.holds(DEFAULT_VOICE)


@pytest.mark.asyncio
async def test_a_look_that_fails_of_a_defect_is_logged_at_once() -> None:
    """Nobody awaits it, and the voices go on as they were seen last."""
    disk = Disk()
    disk.gate.set()
    async with InstalledVoices(disk.holds, FakeClock().monotonic) as voices:
        disk.failure = KeyError("voice")
        with capture_logs() as logs:
            await voices.look()
            await asyncio.sleep(0)
        assert [(line["event"], line["task"]) for line in logs] == [("task_failed", "installed-voices")]
        assert voices.holds(DEFAULT_VOICE)

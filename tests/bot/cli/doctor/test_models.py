"""The models for hearing, speaking and memory search: absent, broken, elsewhere or not wanted."""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import (
    PULL_ALL,
    check_device,
    check_embedder,
    check_limits,
    check_memory_mode,
    check_recogniser,
    check_turns,
    check_voice,
)
from bot.models import catalogue
from bot.models.entry import ModelFile
from bot.participation.settings import ParticipationSettings, ServerLimits
from bot.settings import CompactionSection, ModelsSettings, RecallSettings
from compaction.model import Mode
from voice.asr.settings import AsrSettings
from voice.speaking.settings import SpeakingSettings

AT = "http://127.0.0.1:9/v1"


@pytest.fixture
def whisper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Whisper base of a few bytes, which the catalogue knows."""
    file = ModelFile("model.bin", hashlib.sha256(b"weights").hexdigest())
    entry = replace(catalogue.WHISPER_BASE, files=(file,))
    monkeypatch.setattr("bot.cli.doctor.machine.CATALOGUE", (entry,))
    folder = tmp_path / entry.name
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"weights")
    return folder


def test_recogniser_of_the_catalogue_is_checked_by_hash(whisper: Path) -> None:
    """A model with a changed byte is missing. At an endpoint it is only the fallback, so that is a warning."""
    models, settings = ModelsSettings(directory=whisper.parent), AsrSettings()
    elsewhere = AsrSettings(base_url=AT)
    assert check_recogniser(models, settings).status is Status.OK
    assert f"whisper-1 at {AT}; behind it " in check_recogniser(models, elsewhere).detail
    (whisper / "model.bin").write_bytes(b"weighed")
    finding = check_recogniser(models, settings)
    assert (finding.status, finding.remedy) == (Status.MISSING, PULL_ALL)
    assert "SHA-256 differs" in finding.detail
    finding = check_recogniser(models, elsewhere)
    assert finding.status is Status.WARNING
    assert "with nothing behind it" in finding.detail


def test_a_recogniser_of_ones_own_is_looked_for(tmp_path: Path) -> None:
    """A folder without a model names the setting and the command that shows the models."""
    models, settings = ModelsSettings(), AsrSettings(model=str(tmp_path / "mine"))
    finding = check_recogniser(models, settings)
    assert (finding.status, "`roomtone models list`" in finding.remedy) == (Status.MISSING, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.bin").touch()
    assert check_recogniser(models, settings).status is Status.OK


def test_listening(tmp_path: Path, turn_model: Path, stacking_vad_model: Path) -> None:
    """The listening models share one finding. Without them the bot still runs."""
    models = ModelsSettings(directory=tmp_path)
    finding = check_turns(models)
    assert (finding.status, finding.remedy) == (Status.WARNING, PULL_ALL)
    assert finding.detail.startswith("turn-smart is not here; vad-silero is not here: turns end")
    for model in (stacking_vad_model, turn_model):
        folder = tmp_path / ("vad-silero" if model is stacking_vad_model else "turn-smart")
        folder.mkdir()
        shutil.copy(model, folder)
    assert check_turns(models).status is Status.OK


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "damaged: the bot answers in writing"),
        ({"base_url": AT}, f"tts at {AT}, with nothing behind it: "),
    ],
)
@pytest.mark.slow
async def test_voice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], told: str) -> None:
    """A missing voice is a warning with its remedy; the bot then answers in writing, unless an endpoint speaks."""
    speaking = SpeakingSettings(model="tts", **settings)  # type: ignore[arg-type]
    assert (await check_voice(speaking, tmp_path)).status is Status.OK
    monkeypatch.setitem(sys.modules, "hibari", None)
    finding = await check_voice(speaking, tmp_path)
    assert finding.status is Status.WARNING
    assert told in finding.detail
    assert "pip install" in finding.remedy


@pytest.mark.parametrize(
    ("settings", "status", "told"),
    [
        (RecallSettings(), Status.WARNING, "embed-sentences is not here: only the same words"),
        (RecallSettings(enabled=False), Status.OK, "switched off"),
        (RecallSettings(base_url=AT), Status.OK, f"text-embedding-3-small at {AT}"),
    ],
)
def test_memory_search(tmp_path: Path, settings: RecallSettings, status: Status, told: str) -> None:
    """Without its model the bot finds the same words alone, which is a warning."""
    finding = check_embedder(tmp_path, settings)
    assert (finding.status, told in finding.detail) == (status, True)


@pytest.mark.parametrize(
    ("mode", "searches", "status", "told"),
    [
        (Mode.SUMMARY, False, Status.OK, "summary, where"),
        (Mode.ROLLING, True, Status.OK, "rolling, where"),
        (Mode.ROLLING, False, Status.WARNING, "summary: rolling needs memory search"),
    ],
)
def test_mode_in_force(mode: Mode, searches: bool, status: Status, told: str) -> None:
    """Without memory search `rolling` would lose what was said, so `summary` takes its place."""
    finding = check_memory_mode(CompactionSection(mode=mode), RecallSettings(enabled=searches))
    assert (finding.status, told in finding.detail) == (status, True)


@pytest.mark.parametrize(("devices", "said"), [(0, "runs on the CPU"), (1, "1 device; the recogniser runs there")])
def test_device(devices: int, said: str) -> None:
    """A missing CUDA device is no fault."""
    finding = check_device(devices)
    assert (finding.status, said in finding.detail) == (Status.OK, True)


def test_a_limit_of_0_is_told() -> None:
    """It takes the limit away: who wants no calls means something else."""
    assert check_limits(ParticipationSettings()).status is Status.OK
    theirs = ServerLimits(id=7, max_tokens_per_hour=0)
    found = check_limits(ParticipationSettings(max_calls_per_hour=0, servers=(theirs,)))
    assert found.status is Status.WARNING
    assert found.detail == (
        "max_calls_per_hour in participation, max_tokens_per_hour in participation.servers of 7: 0 means no limit"
    )

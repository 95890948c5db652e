"""The recogniser and the voice: absent, broken, unreadable or on another device."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.speech_models import (
    PULL_ALL,
    check_device,
    check_engine,
    check_recogniser,
    check_turns,
    check_voice,
)
from bot.models import catalogue
from bot.models.entry import ModelFile
from bot.settings import ModelsSettings
from tests.bot.cli.doctor.findings import is_missing
from voice.asr.placement import choose_placement
from voice.asr.settings import AsrSettings
from voice.listening.settings import ListeningSettings
from voice.speaking.settings import SpeakingSettings

if TYPE_CHECKING:
    from pathlib import Path


def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsrSettings:
    """Replace the catalogue's Whisper base by a model of a few bytes and install it."""
    file = ModelFile("model.bin", hashlib.sha256(b"weights").hexdigest())
    entry = replace(catalogue.WHISPER_BASE, files=(file,))
    monkeypatch.setattr("bot.cli.doctor.speech_models.CATALOGUE", (entry,))
    folder = tmp_path / entry.name
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"weights")
    return AsrSettings.model_validate({"model_dir": folder})


def test_recogniser_of_the_catalogue_is_checked_by_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a changed byte fails the check, and the remedy is to pull it again."""
    settings = model(tmp_path, monkeypatch)
    assert check_recogniser(settings).status is Status.OK
    (settings.model_dir / "model.bin").write_bytes(b"weighed")
    finding = check_recogniser(settings)
    assert is_missing(finding, detail="SHA-256 differs", remedy="Run `roomtone models pull`.")


def test_absent_recogniser_names_the_command(tmp_path: Path) -> None:
    """A missing model is reported with the remedy, for the default directory and for the operator's own."""
    settings = AsrSettings.model_validate({"model_dir": tmp_path / "whisper-base"})
    finding = check_recogniser(settings)
    assert is_missing(finding, detail="whisper-base is not here.", remedy="`roomtone models pull`")
    assert "`" not in finding.detail
    settings = AsrSettings.model_validate({"model_dir": tmp_path / "mine"})
    assert is_missing(check_recogniser(settings), detail="no Whisper model in", remedy="Set asr.model to")
    assert "`roomtone models list`" in check_recogniser(settings).remedy
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.bin").touch()
    assert check_recogniser(settings).status is Status.OK


def test_a_recogniser_elsewhere_does_without_the_model_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a recogniser at an endpoint, the local model is only its fallback: if it is absent, the finding is a
    warning.
    """
    elsewhere = {"engine": "endpoint", "base_url": "http://127.0.0.1:9/v1"}
    finding = check_recogniser(AsrSettings.model_validate({"model_dir": tmp_path / "none", **elsewhere}))
    assert finding.status is Status.WARNING
    assert "whisper-1 at http://127.0.0.1:9/v1, with nothing behind it" in finding.detail
    finding = check_recogniser(model(tmp_path, monkeypatch).model_copy(update=elsewhere))
    assert (finding.status, "; behind it " in finding.detail) == (Status.OK, True)


def test_unreadable_model_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model file that cannot be read is reported as unreadable, not as absent."""
    settings = model(tmp_path, monkeypatch)
    weights = settings.model_dir / "model.bin"
    weights.unlink()
    # Reading this file fails for every user, root included.
    weights.symlink_to("/proc/self/mem")
    assert is_missing(check_recogniser(settings), detail="cannot be read: Input/output error", remedy="right")


def test_listening(tmp_path: Path, turn_model: Path, stacking_vad_model: Path) -> None:
    """The listening models share one finding. Without them the bot still runs. What is switched off is not missed, nor
    is the model that reads texts where nobody speaks its language, or an endpoint recognises.
    """
    models, asr = ModelsSettings(directory=tmp_path), AsrSettings()
    finding = check_turns(models, asr, ListeningSettings())
    assert finding.status is Status.WARNING
    assert finding.detail.startswith("turn-smart is not here; turn-text is not here; vad-silero is not here: turns end")
    assert finding.remedy == PULL_ALL
    (tmp_path / "vad-silero").mkdir()
    shutil.copy(stacking_vad_model, tmp_path / "vad-silero")
    assert check_turns(models, asr, ListeningSettings(turn_model="off")).status is Status.OK
    (tmp_path / "turn-smart").mkdir()
    shutil.copy(turn_model, tmp_path / "turn-smart")
    assert check_turns(models, asr, ListeningSettings()).detail.startswith("turn-text is not here: turns end later")
    assert check_turns(models, asr, ListeningSettings(turn_model="sound")).status is Status.OK
    assert check_turns(models, AsrSettings(language="de"), ListeningSettings()).status is Status.OK
    assert check_turns(models, AsrSettings(engine="endpoint"), ListeningSettings()).status is Status.OK


def test_voice(tmp_path: Path) -> None:
    """A missing engine and a missing voice model are separate warnings; the bot then answers in writing."""
    embedded = SpeakingSettings()
    finding = check_voice(embedded, tmp_path, installed=False)
    assert finding.status is Status.WARNING
    assert "in writing" in finding.detail
    assert "piper" in finding.remedy
    finding = check_voice(embedded, tmp_path, installed=True)
    assert finding.status is Status.WARNING
    assert finding.detail == "voice-joe is not here: the bot answers in writing"
    assert finding.remedy == PULL_ALL


def test_a_voice_at_an_endpoint_speaks_without_the_embedded_one(tmp_path: Path) -> None:
    """The embedded voice only stands in for it, if it is wanted at all, so the bot does not answer in writing."""
    here = "http://127.0.0.1:8880/v1"
    finding = check_voice(SpeakingSettings(base_url=here, model="kokoro"), tmp_path, installed=False)
    assert finding.status is Status.WARNING
    assert (
        finding.detail
        == f"kokoro at {here}, with nothing behind it: Piper, the engine of the embedded voice, is absent"
    )
    assert "piper" in finding.remedy
    finding = check_voice(SpeakingSettings(engine="endpoint"), tmp_path, installed=True)
    assert finding.detail == "gpt-4o-mini-tts at OpenAI, with nothing behind it: voice-joe is not here"
    assert finding.remedy == PULL_ALL
    finding = check_voice(SpeakingSettings(engine="endpoint", fallback="none"), tmp_path, installed=False)
    assert finding.status is Status.OK
    assert finding.detail == "gpt-4o-mini-tts at OpenAI; what it fails to speak is written"


@pytest.mark.parametrize(
    ("device", "devices", "status", "said"),
    [
        ("auto", 0, Status.OK, "runs on the CPU"),
        ("auto", 1, Status.OK, "1 device; the recogniser runs there"),
        ("cpu", 2, Status.OK, "not used"),
        ("cuda", 0, Status.MISSING, "no CUDA device was found"),
        ("cuda", 1, Status.OK, "the recogniser runs there"),
    ],
)
def test_device(device: str, devices: int, status: Status, said: str) -> None:
    """A missing CUDA device is an error only if the settings ask for CUDA."""
    settings = AsrSettings.model_validate({"device": device})
    finding = check_device(
        settings, cuda_devices=devices, place=lambda: choose_placement(settings, cuda_devices=devices)
    )
    assert finding.status is status
    assert said in finding.detail


def test_a_recogniser_whose_libraries_do_not_load() -> None:
    """A library that does not load is a finding with a remedy, and the other checks continue."""
    finding = check_engine(ImportError("libopus.so.0: file too short"))
    assert finding.status is Status.MISSING
    assert "file too short" in finding.detail
    assert "make clean setup" in finding.remedy

"""The VAD and end-of-turn models are used if their files are intact; otherwise the bot works without them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from bot.clock import SystemClock
from bot.health import Health
from bot.models.catalogue import CATALOGUE, TURN_MODEL, VAD_SILERO
from bot.models.entry import ModelEntry, ModelKind
from bot.settings import ModelsSettings
from bot.wiring.speech_models import TURN_MODELS, open_turn_model, open_vad
from tests.voice.recordings import silence
from voice.listening.end_policy import GateLine
from voice.listening.turn_detection import SmartTurn, TurnModelDetector, TurnModelError
from voice.listening.vad import SileroVad, StackedSileroVad


def _shelf(folder: Path, entry: ModelEntry, model: Path | None) -> ModelsSettings:
    """Return settings whose models directory `folder` holds the model, or a broken file in its place."""
    file = folder / entry.name / entry.main_file.name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no model" if model is None else model.read_bytes())
    return ModelsSettings(directory=folder)


def test_everybody_is_scored_in_one_call_where_the_model_is_there(tmp_path: Path, stacking_vad_model: Path) -> None:
    """If the stacking VAD model is missing or damaged, the recogniser's own copy is used; damage is logged."""
    assert isinstance(open_vad(ModelsSettings(directory=tmp_path)), SileroVad)
    whole = _shelf(tmp_path / "whole", VAD_SILERO, stacking_vad_model)
    assert isinstance(open_vad(whole), StackedSileroVad)
    with capture_logs() as logs:
        assert isinstance(open_vad(_shelf(tmp_path, VAD_SILERO, None)), SileroVad)
    assert [line["event"] for line in logs] == ["no_stacking_vad"]


async def test_the_judge_is_optional(tmp_path: Path, turn_model: Path) -> None:
    """If the end-of-turn model is missing or damaged, only silence ends a turn."""
    health = Health(SystemClock())
    async with AsyncExitStack() as stack:
        assert await open_turn_model(stack, ModelsSettings(directory=tmp_path), health=health) is None
        with capture_logs() as logs:
            assert await open_turn_model(stack, _shelf(tmp_path, TURN_MODEL, None), health=health) is None
        assert [line["log_level"] for line in logs] == ["warning"]
        whole = _shelf(tmp_path / "whole", TURN_MODEL, turn_model)
        assert isinstance(await open_turn_model(stack, whole, health=health), TurnModelDetector)


def test_each_end_of_turn_model_has_its_module_and_its_line_of_the_gate() -> None:
    """One that nobody can load would be pulled in vain."""
    assert set(TURN_MODELS) == {entry for entry in CATALOGUE if entry.kind is ModelKind.TURN}
    assert all(isinstance(model.line, GateLine) for model in TURN_MODELS.values())


def _broken(*_: object) -> NoReturn:
    raise TurnModelError("It broke.")


async def test_status_tells_while_the_judge_fails(
    tmp_path: Path, turn_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told once it answers again."""
    health = Health(SystemClock())
    health.started()
    async with AsyncExitStack() as stack:
        judge = await open_turn_model(stack, _shelf(tmp_path, TURN_MODEL, turn_model), health=health)
        assert judge is not None
        with monkeypatch.context() as patched:
            patched.setattr(SmartTurn, "probability", _broken)
            assert await judge.judge(silence(1)) is None
        assert ["`turn_model_failed`" in fault.sentence for fault in health.faults()] == [True]
        assert await judge.judge(silence(1)) is not None
        assert health.faults() == []

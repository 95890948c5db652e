"""The models that hear: Silero tells speech from silence, and Smart Turn tells finished sentences."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from structlog.typing import EventDict

from tests.patience import PATIENCE_S
from tests.voice.recordings import bicycle, silence
from voice.audio import Pcm
from voice.listening import turn_detection
from voice.listening.turn_detection import HANGS_AFTER_S, MOST_WAITING, SmartTurn, TurnModelDetector, TurnModelError
from voice.listening.vad import (
    WINDOW_SAMPLES,
    SileroVad,
    SpeechProbability,
    StackedSileroVad,
    VadError,
    VadState,
    WindowRun,
)


@pytest.fixture(scope="module", params=["bundled", "stacked"])
def vad(request: pytest.FixtureRequest, stacking_vad_model: Path) -> SpeechProbability:
    """Return each of the model's two exports in turn."""
    return SileroVad() if request.param == "bundled" else StackedSileroVad(stacking_vad_model)


def _whole_windows(pcm: Pcm) -> Pcm:
    return pcm[: len(pcm) // WINDOW_SAMPLES * WINDOW_SAMPLES]


def test_speech_is_probable_and_silence_is_not(vad: SpeechProbability) -> None:
    """A spoken sentence is mostly over 0.5; digital silence is always under 0.35."""
    spoken, silent = vad.score(
        [WindowRun(VadState(), _whole_windows(bicycle())), WindowRun(VadState(), _whole_windows(silence(2)))]
    )
    assert np.mean(np.array(spoken) > 0.5) > 0.6
    assert max(silent) < 0.35


def test_a_run_scored_window_by_window_is_the_same_run(vad: SpeechProbability) -> None:
    """Scoring window by window gives the same result as scoring the whole run, because the state is kept
    between calls.
    """
    pcm = _whole_windows(bicycle())
    [whole] = vad.score([WindowRun(VadState(), pcm)])
    state = VadState()
    one_by_one = [
        vad.score([WindowRun(state, pcm[at : at + WINDOW_SAMPLES])])[0][0] for at in range(0, len(pcm), WINDOW_SAMPLES)
    ]
    np.testing.assert_allclose(one_by_one, whole, atol=1e-4)


@pytest.mark.parametrize(
    ("load", "error", "remedy"), [(SileroVad, VadError, "faster-whisper"), (SmartTurn, TurnModelError, "pull turn")]
)
def test_an_unreadable_model_is_a_plain_sentence(
    tmp_path: Path, load: Callable[[Path], object], error: type[Exception], remedy: str
) -> None:
    """It names what brings the file."""
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(error, match=remedy):
        load(broken)


def test_runs_of_any_length_are_stacked(stacking_vad_model: Path) -> None:
    """Stacked runs of different lengths, some of them empty, score the same as each run alone."""
    vad = StackedSileroVad(stacking_vad_model)
    pcm = _whole_windows(bicycle())
    lengths = [3, 0, 40, 1]
    alone = [vad.score([WindowRun(VadState(), pcm[: count * WINDOW_SAMPLES])])[0] for count in lengths]
    stacked = vad.score([WindowRun(VadState(), pcm[: count * WINDOW_SAMPLES]) for count in lengths])
    assert [len(one) for one in stacked] == lengths
    for one, other in zip(stacked, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_the_other_export_is_told_apart(stacking_vad_model: Path) -> None:
    """The class for one export refuses the other export and names the inputs that it expects."""
    with pytest.raises(VadError, match="and not"):
        SileroVad(stacking_vad_model)


def test_a_finished_sentence_sounds_finished(turn_model: Path) -> None:
    """A whole sentence scores over 0.9, and one that breaks off in the middle of a phrase scores under 0.1."""
    model = SmartTurn(turn_model)
    whole = bicycle()
    assert model.probability(np.concatenate([whole, silence(0.2)])) > 0.9
    # This part says 'I bought a green'.
    assert model.probability(whole[: int(len(whole) * 0.45)]) < 0.1


def test_only_the_last_eight_seconds_count(turn_model: Path) -> None:
    """Only the last eight seconds of sound count, and empty sound raises no error."""
    model = SmartTurn(turn_model)
    spoken = np.concatenate([silence(8), bicycle()])[-8 * 16_000 :]
    assert model.probability(np.concatenate([bicycle(), spoken])) == model.probability(spoken)
    assert 0.0 <= model.probability(silence(0)) <= 1.0


class _Model(SmartTurn):
    """Returns a fixed answer once the test opens the gate."""

    def __init__(self, answer: float | Exception = 0.7) -> None:
        self.answer = answer
        self.asked = 0
        self.started = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def probability(self, pcm: Pcm) -> float:
        """Return the answer, once the gate is open."""
        self.asked += 1
        self.started.set()
        self.gate.wait(PATIENCE_S)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model take as long as a busy machine needs."""
    monkeypatch.setattr(turn_detection, "ANSWER_TIMEOUT_S", PATIENCE_S)


@pytest.mark.usefixtures("patient")
async def test_too_many_questions_are_shed() -> None:
    """When too many questions wait, a further one gets no answer at once, and the others are still answered."""
    model = _Model()
    model.gate.clear()
    async with TurnModelDetector(lambda: model) as judge, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(judge.judge(silence(1))) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        assert await judge.judge(silence(1)) is None
        model.gate.set()
    assert [task.result() for task in asked] == [0.7] * MOST_WAITING
    assert model.asked == MOST_WAITING


@pytest.mark.usefixtures("patient")
async def test_a_failing_model_is_told_once(logs: list[EventDict]) -> None:
    """Failures of the model are logged only once, because turns then end by silence."""
    async with TurnModelDetector(lambda: _Model(TurnModelError("It broke."))) as judge:
        assert [await judge.judge(silence(1)) for _ in range(3)] == [None] * 3
    assert [line["event"] for line in logs] == ["turn_model_failed"]
    assert judge.failing_since is not None


@pytest.mark.usefixtures("patient")
async def test_a_model_that_hangs_is_asked_no_more_until_it_has_come_back(logs: list[EventDict]) -> None:
    """A thousand pauses beside a model that hangs neither wait for it nor pile up before it. That is logged once, and
    told until the model answers again.
    """
    now, model = [0.0], _Model()
    model.gate.clear()
    async with TurnModelDetector(lambda: model, monotonic=lambda: now[0]) as judge:
        asked = asyncio.create_task(judge.judge(silence(1)))
        await asyncio.to_thread(model.started.wait)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        now[0] = HANGS_AFTER_S + 1
        assert [await judge.judge(silence(1)) for _ in range(1_000)] == [None] * 1_000
        assert [line["event"] for line in logs] == ["turn_model_failed"]
        assert judge.failing_since == now[0]
        model.gate.set()
        while (told := await judge.judge(silence(1))) is None:
            await asyncio.to_thread(time.sleep, 0)
        assert told == 0.7
        assert not judge.failing_since
    assert model.asked == 2

"""The pauses of one room: asks the models about each, and has its words acted on when `voice.listening.pause` says so.

Every pause is recognised, however finished the person sounds, whoever else speaks, and however slow the recogniser is.
If the person goes on, that was in vain, and it is nearly free: the recogniser serves finished speech first, so others
wait for one recognition at most, and what still waits in its queue leaves it. Holding back cost more, by whatever rule
(docs/decisions/0011). Only where finished speech has waited for seconds nobody is asked: no text would come sooner.

If the person goes on, the text is discarded. Otherwise it is ready as soon as the speech is over.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from voice.listening.pause import (
    Began,
    Heard,
    PauseAct,
    PauseEvent,
    PauseState,
    PauseVerdict,
    Previewed,
    TextKnown,
    step,
)

if TYPE_CHECKING:
    from bot.conversation.hearing import Hearing
    from bot.conversation.transcriber import TranscribedUtterance, Transcriber
    from bot.events import SpokenText
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.utterance import PauseBegan, Utterance


@dataclass(slots=True, eq=False)
class _Pause:
    utterance: Utterance
    state: PauseState = field(default_factory=PauseState)
    spoken: SpokenText | None = None
    transcribing: asyncio.Task[TranscribedUtterance] | None = None
    hearing: asyncio.Task[None] | None = None


class Pauses:
    """The pauses of one room. `hearing`: acts on their words. `transcriber`: makes the text of each.

    *Ownership*: `run` owns the tasks; before it runs, only the long silence ends speech. Not thread-safe.
    """

    def __init__(
        self, hearing: Hearing, *, turn_end_detector: TurnEndDetector | None, transcriber: Transcriber
    ) -> None:
        self._hearing = hearing
        self._turn_end_detector = turn_end_detector
        self._transcriber = transcriber
        self._tasks: asyncio.TaskGroup | None = None
        self._open: dict[str, _Pause] = {}

    async def run(self) -> None:
        """Own the tasks in progress. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def begin(self, began: PauseBegan) -> None:
        """Ask about a pause."""
        if self._tasks is not None and not self._hearing.is_behind:
            utterance = began.utterance
            pause = self._open[utterance.id] = _Pause(utterance)
            self._take(pause, Began(utterance.ended_at - utterance.started_at, began.longest_pause_s))

    def tick(self) -> None:
        """Act on the words of the pauses that have lasted long enough. Call it often."""
        # In a crowd, dozens pause at a time, and few of them speak to the bot.
        for pause in [each for each in self._open.values() if each.state.is_wanted]:
            silence = self._hearing.silence_of(pause.utterance, pause.spoken)
            if silence is not None:
                self._take(pause, silence)

    def discard(self, utterance_id: str) -> None:
        """Drop a pause, because the person goes on or the utterance is dropped."""
        pause = self._open.pop(utterance_id, None)
        if pause is not None and pause.transcribing is not None and pause.hearing is not None:
            pause.transcribing.cancel()
            pause.hearing.cancel()

    async def take(self, utterance_id: str) -> TranscribedUtterance | None:
        """Remove the pause of a finished utterance and return its text; None if there is none."""
        pause = self._open.get(utterance_id)
        if pause is None or pause.transcribing is None or pause.hearing is None:
            return None
        # `wait` and not `await`: if a closing room cancels the task, that must not look like our own cancellation.
        await asyncio.wait({pause.transcribing})
        self._open.pop(utterance_id, None)
        pause.hearing.cancel()
        return None if pause.transcribing.cancelled() else pause.transcribing.result()

    def _take(self, pause: _Pause, event: PauseEvent) -> None:
        """Do what the table says about `event`."""
        pause.state, act = step(pause.state, event)
        match act:
            case PauseAct.JUDGE if self._tasks is not None:
                who = pause.utterance.user_id
                pause.transcribing = self._tasks.create_task(self._read(pause), name=f"early-text-{who}")
                pause.hearing = self._tasks.create_task(self._hear(pause), name=f"turn-end-{who}")
            case PauseAct.PREVIEW:
                self._take(pause, Previewed(self._hearing.preview(pause.spoken)))
            case PauseAct.RELEASE:
                self._release(pause)
            case PauseAct.END:
                self._hearing.end(pause.utterance)

    def _release(self, pause: _Pause) -> None:
        verdict = PauseVerdict.DUE
        if pause.spoken is not None and pause.state.verdict is PauseVerdict.HELD:
            verdict = self._hearing.release(pause.spoken)
        if verdict is PauseVerdict.DUE:
            self._hearing.end(pause.utterance)
        elif verdict is not PauseVerdict.SOUNDING:
            self._take(pause, Previewed(verdict))

    async def _read(self, pause: _Pause) -> TranscribedUtterance:
        transcription = await self._transcriber.transcribe(pause.utterance)
        if self._open.get(pause.utterance.id) is not pause:
            return transcription
        pause.spoken = self._hearing.read(pause.utterance, transcription)
        if pause.spoken is None:
            self._take(pause, Previewed(self._hearing.preview(None)))
        else:
            self._take(pause, TextKnown())
        return transcription

    async def _hear(self, pause: _Pause) -> None:
        detector = self._turn_end_detector
        heard = Heard(None) if detector is None else Heard(await detector.judge(pause.utterance.pcm), detector.line)
        self._take(pause, heard)

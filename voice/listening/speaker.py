"""One person's audio time line, and the utterances cut from it.

Discord sends nothing while a person is silent, so the listener inserts silence: between packets by their times, and by
the clock when no packets arrive. It keeps the sound that may still become part of an utterance (30 s at most);
`endpointing` decides where utterances begin and end.
"""

from __future__ import annotations

import math
import uuid
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm
from voice.listening.end_policy import OwnPauses
from voice.listening.endpointing import (
    WINDOW_S,
    AudioWindow,
    Endpointer,
    EndpointingEvent,
    EndpointingParameters,
    SpeechClosed,
    SpeechDismissed,
    SpeechOpened,
    SpeechPaused,
    SpeechResumed,
)
from voice.listening.utterance import (
    DropReason,
    ListeningEvent,
    PauseBegan,
    PauseEnded,
    SpeechStarted,
    Utterance,
    UtteranceDropped,
)
from voice.listening.vad import WINDOW_SAMPLES, VadState, WindowRun
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames, TalkspurtEnded

if TYPE_CHECKING:
    from collections.abc import Iterable


# The transport reports a talkspurt's end after 200 ms without a packet. So long after the last sound that report is
# lost, and the utterance must still end. More sound than this never waits for the event loop (`handover`).
STALL_S = 10.0

# An utterance is dropped as near silence when all three apply (full scale is 1): its RMS is below the first value, its
# loudest sample is below the second, and a smaller share of its samples than the third is above half of the second.
NEAR_SILENCE_RMS = 0.003
NEAR_SILENCE_PEAK = 0.012
NEAR_SILENCE_ACTIVE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class _Piece:
    """One window of the time line. `silent`: inserted silence, which the model need not score."""

    start_at: float
    pcm: Pcm
    silent: bool


class SpeakerListener:
    """Turns one person's frames into utterances. Owned by `RoomListener`; not thread-safe.

    Three steps allow scoring several people's windows in one call: `hear` and `pass_time` extend the time line,
    `unscored` returns the windows that need a probability, `decide` takes the probabilities.
    """

    def __init__(self, user_id: int, parameters: EndpointingParameters) -> None:
        self.user_id = user_id
        self._late_packets_s = parameters.late_packets_s
        self._endpointing = Endpointer(parameters)
        # The current pause, and the utterance that results if it is the end.
        self._pause: tuple[SpeechPaused, Utterance] | None = None
        self._own_pauses = OwnPauses()
        self._left = False
        # The time line has `_laid` samples since `_anchor`, which is None before the first sound and after long
        # silence.
        self._anchor: float | None = None
        self._laid = 0
        self._partial = np.zeros(WINDOW_SAMPLES, dtype=np.int16)
        self._partial_samples = 0
        self._partial_silent = True
        self._silent_windows = 0
        # When time begins to pass without sound: both must be over. `_awaited_until` is after a standstill, of which
        # several talkspurts may be under way.
        self._silent_from = float("-inf")
        self._awaited_until = float("-inf")
        self._vad_state = VadState()
        self._pending: list[_Piece] = []
        # Decided windows that an utterance may still need; `_kept_from` is the index of the first.
        self._kept: deque[_Piece] = deque()
        self._kept_from = 0

    @property
    def is_speaking(self) -> bool:
        return self._endpointing.is_speaking

    @property
    def is_sounding(self) -> bool:
        """Whether they speak and do not pause."""
        return self._endpointing.is_speaking and self._pause is None

    @property
    def voiced_s(self) -> float:
        """Seconds of voiced sound in the current speech, even before it is certain; 0.0 without any."""
        return self._endpointing.voiced_windows * WINDOW_S

    def hear(self, event: AudioEvent) -> None:
        match event:
            case SpeechFrames():
                self._lay_silence_until(event.captured_at)
                # Sound may come before the line's end: it was late, or its sender's clock is fast. What follows has the
                # right times all the same; otherwise an open microphone that gains 0.1 % is 4 s ahead in an hour.
                self._anchor = event.captured_at - self._laid / LISTEN_RATE_HZ
                self._lay(event.pcm, silent=False)
                self._silent_from = self._position(self._anchor) + STALL_S
            case TalkspurtEnded():
                self._silent_from = float("-inf")
            case SpeakerLeft():
                self._left = True
            case _:
                assert_never(event)

    def await_sound(self, until: float) -> None:
        """Take nothing for silence before `until` (monotonic seconds), also after a talkspurt's end, because sound is
        under way.
        """
        self._awaited_until = until

    def pass_time(self, now: float) -> bool:
        """If the packets have stopped, insert silence up to `now` less the allowance for late packets.

        Returns whether there is something to decide.
        """
        if self._anchor is None or now < max(self._silent_from, self._awaited_until):
            return False
        self._lay_silence_until(now - self._late_packets_s)
        return bool(self._pending)

    def unscored(self) -> list[WindowRun]:
        """Return the windows that need a probability, as runs between silences."""
        runs: list[WindowRun] = []
        run: list[Pcm] = []
        for piece in self._pending:
            if not piece.silent:
                run.append(piece.pcm)
                continue
            if run:
                runs.append(WindowRun(self._vad_state, np.concatenate(run)))
                run = []
            # Sound after inserted silence does not continue the sound before it.
            self._vad_state = VadState()
        if run:
            runs.append(WindowRun(self._vad_state, np.concatenate(run)))
        return runs

    def decide(self, probabilities: Iterable[float], now: float) -> list[ListeningEvent]:
        """Process the new windows. `probabilities`: one for each window of `unscored`, in order."""
        scores = iter(probabilities)
        pending, self._pending = self._pending, []
        events: list[ListeningEvent] = []
        for piece in pending:
            self._kept.append(piece)
            window = AudioWindow(0.0, 0.0) if piece.silent else AudioWindow(next(scores), _rms(piece.pcm))
            for effect in self._endpointing.handle(window):
                events.extend(self._events(effect, now))
            self._drop_unneeded()
        if self._left:
            for effect in self._endpointing.finish():
                events.extend(self._events(effect, now))
            self._drop_unneeded()
        return events

    def silence_s(self, utterance_id: str) -> float | None:
        """Return how long the pause of that utterance has lasted by now, in seconds; None: it is over."""
        if self._pause is None or self._pause[1].id != utterance_id:
            return None
        return self._endpointing.silent_windows * WINDOW_S

    def end_in_pause(self, utterance_id: str, now: float) -> list[ListeningEvent]:
        """End the utterance with that id, which has paused. One whose pause is over is ignored."""
        if self._pause is None or self._pause[1].id != utterance_id:
            return []
        effects = self._endpointing.end_in_pause(self._pause[0].last)
        events = [event for effect in effects for event in self._events(effect, now)]
        self._drop_unneeded()
        return events

    def _position(self, anchor: float) -> float:
        return anchor + self._laid / LISTEN_RATE_HZ

    def _lay_silence_until(self, at: float) -> None:
        """Insert silence up to `at`. An earlier `at` changes nothing."""
        if self._anchor is None:
            return
        missing = round((at - self._anchor) * LISTEN_RATE_HZ) - self._laid
        # After this much silence the time line ends and restarts with the next sound, so an absence of hours costs no
        # more than one of a second.
        enough = self._endpointing.forgetting_silence
        while missing > 0:
            count = min(missing, WINDOW_SAMPLES - self._partial_samples)
            self._lay(np.zeros(count, dtype=np.int16), silent=True)
            missing -= count
            if self._silent_windows >= enough:
                self._anchor = None
                self._laid = 0
                self._partial_samples = 0
                self._partial_silent = True
                self._silent_windows = 0
                return

    def _lay(self, pcm: Pcm, *, silent: bool) -> None:
        assert self._anchor is not None, "sound is laid on a time line that has begun"
        offset = 0
        while offset < len(pcm):
            count = min(len(pcm) - offset, WINDOW_SAMPLES - self._partial_samples)
            self._partial[self._partial_samples : self._partial_samples + count] = pcm[offset : offset + count]
            self._partial_samples += count
            self._partial_silent = self._partial_silent and silent
            self._laid += count
            offset += count
            if self._partial_samples == WINDOW_SAMPLES:
                self._complete_window(self._position(self._anchor) - WINDOW_S)

    def _complete_window(self, start_at: float) -> None:
        self._pending.append(_Piece(start_at, self._partial.copy(), self._partial_silent))
        self._silent_windows = self._silent_windows + 1 if self._partial_silent else 0
        self._partial_samples = 0
        self._partial_silent = True

    def _events(self, effect: EndpointingEvent, now: float) -> list[ListeningEvent]:
        match effect:
            case SpeechOpened(first):
                return [SpeechStarted(self.user_id, self._start_of(first))]
            case SpeechDismissed(first, last):
                return [self._dropped(first, last, DropReason.TOO_SHORT)]
            case SpeechPaused():
                return self._on_pause(effect, now)
            case SpeechResumed(windows):
                self._own_pauses.went_on(windows * WINDOW_S)
                return self._end_pause()
            case SpeechClosed():
                self._own_pauses.ended()
                return self._on_closed(effect, now)
            case _:
                assert_never(effect)

    def _on_pause(self, pause: SpeechPaused, now: float) -> list[ListeningEvent]:
        utterance = self._utterance(pause.start, pause.end, pause.first, pause.last, now)
        if self._is_near_silence(utterance.pcm):
            return []
        self._pause = (pause, utterance)
        return [PauseBegan(utterance, self._own_pauses.longest_s)]

    def _end_pause(self) -> list[ListeningEvent]:
        if self._pause is None:
            return []
        utterance, self._pause = self._pause[1], None
        return [PauseEnded(self.user_id, utterance.id)]

    def _on_closed(self, closed: SpeechClosed, now: float) -> list[ListeningEvent]:
        if self._pause is not None:
            pause, expected = self._pause
            if (pause.start, pause.end, pause.last) == (closed.start, closed.end, closed.last):
                self._pause = None
                return [replace(expected, closed_at=now, cut=closed.cut)]
        events = self._end_pause()
        utterance = self._utterance(closed.start, closed.end, closed.first, closed.last, now, cut=closed.cut)
        if self._is_near_silence(utterance.pcm):
            return [*events, self._dropped(closed.first, closed.last, DropReason.NEAR_SILENCE)]
        return [*events, utterance]

    def _utterance(self, start: int, end: int, first: int, last: int, now: float, *, cut: bool = False) -> Utterance:
        return Utterance(
            id=uuid.uuid4().hex,
            user_id=self.user_id,
            started_at=self._start_of(first),
            ended_at=self._end_of(last),
            closed_at=now,
            pcm=self._sound(start, end),
            cut=cut,
        )

    def _dropped(self, first: int, last: int, reason: DropReason) -> UtteranceDropped:
        return UtteranceDropped(self.user_id, self._start_of(first), self._end_of(last), reason)

    def _start_of(self, index: int) -> float:
        return self._kept[index - self._kept_from].start_at

    def _end_of(self, index: int) -> float:
        """Return the end time of window `index - 1`."""
        return self._start_of(index - 1) + WINDOW_S

    def _sound(self, start: int, end: int) -> Pcm:
        pieces = [self._kept[index - self._kept_from].pcm for index in range(start, end)]
        return np.concatenate(pieces)

    def _drop_unneeded(self) -> None:
        while self._kept_from < self._endpointing.oldest_needed and self._kept:
            self._kept.popleft()
            self._kept_from += 1

    def _is_near_silence(self, pcm: Pcm) -> bool:
        loudness = np.abs(pcm.astype(np.float32)) / INT16_FULL_SCALE
        return bool(
            _rms(pcm) < NEAR_SILENCE_RMS
            and loudness.max() < NEAR_SILENCE_PEAK
            and (loudness > NEAR_SILENCE_PEAK / 2).mean() < NEAR_SILENCE_ACTIVE_SHARE
        )


def _rms(pcm: Pcm) -> float:
    sound = pcm.astype(np.float32)
    return math.sqrt(float(np.dot(sound, sound)) / len(sound)) / INT16_FULL_SCALE

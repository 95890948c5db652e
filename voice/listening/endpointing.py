"""Endpointing: decides when a person's speech begins, pauses and ends. A state machine without audio or clock.

It gets every window of the person's time line in order, including silence. It counts windows instead of seconds, so the
same sound gives the same utterances however it arrived. The listener keeps the audio; events name the windows of an
utterance.

Speech ends after one long silence, so that stories stay whole. Where somebody acts on it sooner, because the bot begins
to answer, its owner ends it in the pause (`end_in_pause`). `pause` decides when that may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from voice.audio import LISTEN_RATE_HZ
from voice.listening.end_policy import LONG_SILENCE_S
from voice.listening.vad import WINDOW_SAMPLES

WINDOW_S = WINDOW_SAMPLES / LISTEN_RATE_HZ
# Longer silence within the first quarter of a second means clicks, not the beginning of speech.
ARMING_DIP_S = 0.2
# A hard cut falls within this last part of an utterance, which is long enough to contain a breath.
CUT_SEARCH_S = 10.0
# After a hard cut, less voiced sound than this is the end of a breath and not speech.
REMAINDER_MIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointingParameters:
    """The thresholds of endpointing. The room uses the defaults; tests and benchmarks vary them.

    `roomtone bench listen` measures which share of pauses is cut. More silence before the end of an utterance cuts
    fewer pauses, but delays the answer by the same time.
    """

    # Speech begins at this voice-activity probability (0-1), and pauses below `speech_off`. The second value is lower,
    # so that the state does not flicker.
    speech_on: float = 0.5
    speech_off: float = 0.35
    # Seconds of voiced sound before it counts as speech: a click or a cough is shorter.
    min_speech_s: float = 0.25
    # Seconds kept from before the first voiced sound: soft consonants come before it.
    pre_roll_s: float = 0.3
    # Seconds of silence that end an utterance on which nobody acts.
    end_silence_s: float = LONG_SILENCE_S
    # Seconds of silence after which the end-of-turn model is asked and recognition begins: two windows. With four a
    # text is there 64 ms later, for 7 to 12 % fewer recognitions, and neither the words nor the judgements are better
    # (docs/decisions/0011-endpointing.md).
    pause_s: float = 0.064
    # Seconds of sound kept after the last voiced sound; at most end_silence_s. A pause asks when they are complete.
    tail_s: float = 0.064
    # Seconds after which an unbroken utterance is cut at its quietest point, because Whisper hears only 30 s.
    max_utterance_s: float = 30.0
    # Seconds of sound that may still be on its way (batching, a busy event loop) when packets stop. Sound that arrives
    # later is not lost, but the silence before it seems longer. This value adds to every latency.
    late_packets_s: float = 0.02


ENDPOINTING = EndpointingParameters()


@dataclass(frozen=True, slots=True)
class AudioWindow:
    """One window of 32 ms. `probability`: of speech, 0-1. `rms`: 0-1, relative to full scale."""

    probability: float
    rms: float


@dataclass(frozen=True, slots=True)
class SpeechOpened:
    """Speech is certain. `first`: the window it began in (without pre-roll)."""

    first: int


@dataclass(frozen=True, slots=True)
class SpeechClosed:
    """An utterance is complete: windows `start` to `end` (exclusive, with pre-roll and tail).

    Voiced sound is from `first` to `last` (exclusive). `cut`: the person was still speaking.
    """

    start: int
    end: int
    first: int
    last: int
    cut: bool


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The person is silent. If they have finished, the utterance is `start` to `end`, voiced from `first` to `last`."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The person goes on speaking after a pause of so many silent `windows`."""

    windows: int


@dataclass(frozen=True, slots=True)
class SpeechDismissed:
    """A sound that began like speech was too short. Its voiced windows are between `first` and `last`."""

    first: int
    last: int


EndpointingEvent: TypeAlias = SpeechOpened | SpeechPaused | SpeechResumed | SpeechClosed | SpeechDismissed


@dataclass(slots=True)
class _Stretch:
    """Current speech, or a sound that may become speech. Indices count windows from the start of the time line."""

    first: int
    start: int
    last: int
    voiced: int
    armed: bool
    min_voiced: int
    paused: bool = False


def window_count(seconds: float) -> int:
    """Return `seconds` in windows, rounded up so that a limit is never shorter than asked for."""
    return math.ceil(round(seconds / WINDOW_S, 6))


class Endpointer:
    """Cuts one person's windows into utterances. Owned by their listener; not thread-safe."""

    def __init__(self, parameters: EndpointingParameters) -> None:
        self._on = parameters.speech_on
        self._off = parameters.speech_off
        self._min_voiced = window_count(parameters.min_speech_s)
        self._pre_roll = window_count(parameters.pre_roll_s)
        self._end_silence = window_count(parameters.end_silence_s)
        self._arming_dip = min(window_count(ARMING_DIP_S), self._end_silence)
        self._tail = min(window_count(parameters.tail_s), self._end_silence)
        # Wait until the tail is complete, so that exactly the samples of the later utterance can be recognised ahead.
        self._pause = max(window_count(parameters.pause_s), self._tail)
        # Rounded down, because the recogniser takes at most 30 s.
        self._longest = int(parameters.max_utterance_s / WINDOW_S)
        self._cut_search = window_count(CUT_SEARCH_S)
        self._next = 0
        self._free_from = 0  # windows before it belong to an utterance already closed
        self._speaking = False
        self._stretch: _Stretch | None = None
        self._loudness: list[float] = []  # of the windows since the stretch's start

    @property
    def is_speaking(self) -> bool:
        """Whether speech is certain and has not ended."""
        return self._stretch is not None and self._stretch.armed

    @property
    def voiced_windows(self) -> int:
        return 0 if self._stretch is None else self._stretch.voiced

    @property
    def oldest_needed(self) -> int:
        """The first window whose sound may still become part of an utterance."""
        if self._stretch is not None:
            return self._stretch.start
        return max(self._free_from, self._next - self._pre_roll)

    @property
    def forgetting_silence(self) -> int:
        """The number of silent windows after which all earlier windows can be forgotten."""
        return max(self._end_silence, self._pre_roll) + 1

    @property
    def silent_windows(self) -> int:
        """The number of windows since the last voiced one of the current speech; 0 without speech."""
        return 0 if self._stretch is None else self._next - self._stretch.last

    def end_in_pause(self, last: int) -> list[EndpointingEvent]:
        """End the speech in the pause after window `last` (exclusive). A pause that is over is ignored."""
        stretch = self._stretch
        return self._close(stretch) if stretch is not None and stretch.paused and stretch.last == last else []

    def handle(self, window: AudioWindow) -> list[EndpointingEvent]:
        """Add the next window; return the events in order."""
        index = self._next
        self._next += 1
        self._speaking = window.probability >= (self._off if self._speaking else self._on)
        stretch = self._stretch
        if stretch is None:
            if not self._speaking:
                return []
            stretch = self._begin(index)
        # Pre-roll windows are not measured: they come before the speech, so the cut is never there.
        self._loudness.append(window.rms)
        if self._speaking:
            return self._on_voiced(stretch, index)
        return self._on_silence(stretch, index)

    def finish(self) -> list[EndpointingEvent]:
        """End the current speech, because the person left."""
        stretch = self._stretch
        if stretch is None:
            return []
        self._speaking = False
        return self._close(stretch)

    def _begin(self, index: int) -> _Stretch:
        stretch = _Stretch(
            first=index,
            start=max(self._free_from, index - self._pre_roll),
            last=index,
            voiced=0,
            armed=False,
            min_voiced=self._min_voiced,
        )
        self._stretch = stretch
        self._loudness = []
        return stretch

    def _on_voiced(self, stretch: _Stretch, index: int) -> list[EndpointingEvent]:
        effects: list[EndpointingEvent] = []
        if stretch.paused:
            stretch.paused = False
            effects.append(SpeechResumed(index - stretch.last))
        stretch.voiced += 1
        stretch.last = index + 1
        if not stretch.armed and stretch.voiced >= stretch.min_voiced:
            stretch.armed = True
            effects.append(SpeechOpened(stretch.first))
        return effects + self._cut_if_too_long(stretch)

    def _on_silence(self, stretch: _Stretch, index: int) -> list[EndpointingEvent]:
        silence = index + 1 - stretch.last
        if silence >= (self._end_silence if stretch.armed else self._arming_dip):
            return self._close(stretch)
        effects: list[EndpointingEvent] = []
        if stretch.armed and silence == self._pause < self._end_silence:
            stretch.paused = True
            effects.append(SpeechPaused(stretch.start, stretch.last + self._tail, stretch.first, stretch.last))
        return effects + self._cut_if_too_long(stretch)

    def _close(self, stretch: _Stretch) -> list[EndpointingEvent]:
        self._stretch = None
        self._loudness = []
        if not stretch.armed:
            # Its sound stays available as pre-roll of later speech.
            return [SpeechDismissed(stretch.first, stretch.last)] if stretch.voiced else []
        end = min(stretch.last + self._tail, self._next)
        self._free_from = end
        return [SpeechClosed(stretch.start, end, stretch.first, stretch.last, cut=False)]

    def _cut_if_too_long(self, stretch: _Stretch) -> list[EndpointingEvent]:
        if self._next - stretch.start < self._longest:
            return []
        at = self._quietest(stretch)
        self._free_from = at
        remainder_voiced = max(0, stretch.last - at)
        closed = SpeechClosed(stretch.start, at, stretch.first, min(stretch.last, at), cut=remainder_voiced > 0)
        self._loudness = self._loudness[at - self._next :] if at < self._next else []
        if remainder_voiced == 0:
            self._stretch = None
            self._loudness = []
            return [closed]
        rest = _Stretch(
            first=at,
            start=at,
            last=stretch.last,
            voiced=remainder_voiced,
            armed=False,
            min_voiced=min(self._min_voiced, window_count(REMAINDER_MIN_S)),
        )
        self._stretch = rest
        if rest.voiced >= rest.min_voiced:
            rest.armed = True
            return [closed, SpeechOpened(at)]
        return [closed]

    def _quietest(self, stretch: _Stretch) -> int:
        """Return the window to cut before: the quietest of the last ten seconds, and the latest among equals.

        Loudness is taken over three windows (96 ms), so that the closure of a 'p' is not mistaken for a breath.
        """
        loudness = self._loudness
        first_measured = self._next - len(loudness)
        earliest = max(first_measured + 1, self._next - self._cut_search, stretch.start + 1)
        best, best_at = math.inf, self._next
        for at in range(earliest, self._next - 1):
            here = at - first_measured
            level = loudness[here - 1] + loudness[here] + loudness[here + 1]
            if level <= best:
                best, best_at = level, at
        return best_at

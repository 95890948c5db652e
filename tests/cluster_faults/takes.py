"""What was said, and a recogniser that says which part of which recording it heard.

Each time that somebody plays a recording is a take with a number. The recogniser finds the sound that it gets among the
takes of the last minute and answers with the number and the part: `take 12 tenths 4 to 31`. So the words in the store
tell exactly what was heard of everything that was said, and what is there twice.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rehearsal.people.clip import Clip
from rehearsal.people.person import ClipPlayback
from rehearsal.servers.transcription import Transcription, TranscriptionRequest
from voice.transport.opus import Decoder

# Two samples a millisecond tell recordings apart and where a part begins, for an eighth of the work.
RATE_HZ = 2_000
_EVERY = 16_000 // RATE_HZ
# A recogniser is asked within some seconds, and within a minute when a cluster was away.
RECENT_S = 90.0
# What a part of a recording has at least in common with itself after encoding; others have less than half of it.
LEAST_LIKENESS = 0.55
# Below it a recording is silent, in the units of 16 bits.
VOICED_RMS = 150.0
# The smallest part of a recording that is heard or not, and how many a packet that was lost may blur.
_BLOCK = RATE_HZ // 10
_UNHEARD_BLOCKS = 2
# Less sound than this beside a part that was found is its own edge.
_LEAST_REST_S = 0.4
# So much of a recording, found block by block, is no accident, however little of the whole it is.
_SURE_PART_S = 0.4
# A sound has some recordings in it, or parts of them.
_MOST_PLACES = 8
_MARK = re.compile(r"take (\d+) tenths (\d+) to (\d+)")
_SENTENCE = "the garden gate stood open while the light came slowly over the wall and two people spoke of the weather"
_WORDS = tuple(_SENTENCE.split())
_CALL = "Roomtone, do you hear me? "
_SCRIPTED = {*_WORDS, *re.findall(r"\w+", _CALL.casefold())}
# Whoever is heard from here on has said the bot's name.
_CALL_S = 0.3
# A text with fewer letters for its length is dropped as one that nobody said.
_LETTERS_A_S = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """A recording, its sound at `RATE_HZ`, and from when to when it has voice, in its seconds."""

    clip: Clip
    sound: NDArray[np.float64]
    voiced: tuple[float, float]

    @classmethod
    def of(cls, clip: Clip) -> Sample:
        """Decode a recording as a listener does."""
        decoder = Decoder(rate_hz=16_000)
        sound = _coarse(np.concatenate([decoder.decode(packet) for packet in clip.packets]))
        spans = _heard(sound, sound, 0)
        return cls(clip, sound, (spans[0][0], spans[-1][1]))


@dataclass(slots=True)
class Take:
    """One time that a recording was played. `room`: where. `asked_at`: when it was to begin, in monotonic seconds.

    `question`: the recogniser adds the bot's name to its beginning, so that the bot answers: once also where a busy
    machine cuts it in two.
    """

    number: int
    room: int
    speaker_id: int
    sample: Sample
    asked_at: float
    question: bool = False
    played: ClipPlayback | None = None

    @property
    def spoken(self) -> tuple[float, float]:
        """Return from when to when there was voice in it, in monotonic seconds."""
        assert self.played is not None, "it is over"
        return self.played.speech_started_at, self.played.speech_ended_at

    def at(self, seconds: float) -> float:
        """Return when a place of the recording was sent."""
        return (self.played.started_at if self.played is not None else self.asked_at) + seconds


@dataclass(frozen=True, slots=True)
class HeardPart:
    """The part of a take that a text in the store tells of, in seconds of the recording."""

    take: int
    from_s: float
    to_s: float


def parts_in(text: str) -> Iterator[HeardPart]:
    """Yield the parts of takes that a stored text tells of."""
    for found in _MARK.finditer(text):
        yield HeardPart(int(found[1]), int(found[2]) / 10, int(found[3]) / 10)


@dataclass(slots=True)
class Takes:
    """Every take so far, and the engine of the recogniser.

    `executor`: searches sounds in a process of its own, because people and Discord share this process's event loop.
    """

    executor: Executor | None = None
    all: list[Take] = field(default_factory=list)

    def begin(self, room: int, speaker_id: int, sample: Sample, *, question: bool = False) -> Take:
        """Return the next take, which begins now."""
        take = Take(len(self.all), room, speaker_id, sample, time.monotonic(), question)
        self.all.append(take)
        return take

    async def recognise(self, request: TranscriptionRequest) -> Transcription:
        """Say which parts of which takes the sound has; nothing if it has none."""
        latest = self.latest()
        search = partial(find_parts, _coarse(request.pcm), [take.sample.sound for take in latest])
        found = await asyncio.get_running_loop().run_in_executor(self.executor, search)
        texts = [self.text_of(latest[index], from_s, to_s) for index, from_s, to_s in found]
        return Transcription(" ".join(texts), no_speech_probability=0.0 if texts else 1.0)

    def latest(self) -> list[Take]:
        """Return the last take of each recording that was played lately."""
        now = time.monotonic()
        return list({id(take.sample): take for take in self.all if now - take.asked_at < RECENT_S}.values())

    def text_of(self, take: Take, from_s: float, to_s: float) -> str:
        """Return what the recogniser answers for a part of a take."""
        words: list[str] = []
        letters = 0
        while letters < _LETTERS_A_S * (to_s - from_s):
            words.append(_WORDS[(take.number + len(words)) % len(_WORDS)])
            letters += len(words[-1])
        called = take.question and from_s <= take.sample.voiced[0] + _CALL_S
        mark = f"take {take.number} tenths {round(10 * from_s)} to {round(10 * to_s)}"
        return f"{_CALL if called else ''}{' '.join(words)} {mark}"


def has_other_words(text: str) -> bool:
    """Return whether a text has words that the script never says, so that a bot's own model heard some of it."""
    words = re.findall(r"[^\W\d_]+", _MARK.sub("", text).casefold())
    return any(word not in _SCRIPTED for word in words)


def find_parts(sound: NDArray[np.float64], recordings: Sequence[NDArray[np.float64]]) -> list[tuple[int, float, float]]:
    """Return which parts of which recordings are in a sound, in its order: the number, and from when to when."""
    found: list[tuple[float, int, float, float]] = []
    rest = sound.copy()
    # A recording is looked for again: where a connection was made anew within it, its end comes sooner than it should.
    for _ in range(_MOST_PLACES):
        if np.count_nonzero(np.abs(rest) > 60) < _LEAST_REST_S * RATE_HZ:
            break
        index, lag, likeness = max(
            ((index, *_place(rest, recording)) for index, recording in enumerate(recordings)), key=lambda each: each[2]
        )
        recording = recordings[index]
        begin, end = max(0, -lag), min(len(rest), len(recording) - lag)
        spans = _heard(rest[begin:end], recording[begin + lag : end + lag], begin + lag)
        if not spans or (likeness < LEAST_LIKENESS and sum(to_s - from_s for from_s, to_s in spans) < _SURE_PART_S):
            break
        for from_s, to_s in spans:
            found.append((from_s - lag / RATE_HZ, index, from_s, to_s))
            rest[max(0, round(from_s * RATE_HZ) - lag) : max(0, round(to_s * RATE_HZ) - lag)] = 0
    return [(index, from_s, to_s) for _, index, from_s, to_s in sorted(found)]


def _heard(sound: NDArray[np.float64], recording: NDArray[np.float64], first: int) -> list[tuple[float, float]]:
    """Return the spans of a recording, in seconds, of which the voice is in a sound of the same length.

    `first`: the place of both in the whole recording. Silence of the sound where the recording has voice is not heard.
    """
    spans: list[tuple[float, float]] = []
    unheard = 0
    for at in range(0, len(sound) - _BLOCK + 1, _BLOCK):
        ours, its = sound[at : at + _BLOCK], recording[at : at + _BLOCK]
        size, its_size = float(np.linalg.norm(ours)), float(np.linalg.norm(its))
        if its_size < VOICED_RMS * _BLOCK**0.5:
            continue
        if size < its_size / 4 or float(np.dot(ours, its)) < LEAST_LIKENESS * size * its_size:
            unheard += 1
            continue
        from_s, to_s = (first + at) / RATE_HZ, (first + at + _BLOCK) / RATE_HZ
        if spans and unheard <= _UNHEARD_BLOCKS:
            spans[-1] = (spans[-1][0], to_s)
        else:
            spans.append((from_s, to_s))
        unheard = 0
    return spans


def _coarse(pcm: NDArray[np.int16]) -> NDArray[np.float64]:
    """Return 16 kHz sound at `RATE_HZ`."""
    whole = pcm[: len(pcm) // _EVERY * _EVERY].astype(np.float64)
    coarse: NDArray[np.float64] = whole.reshape(-1, _EVERY).mean(axis=1)
    return coarse


def _place(sound: NDArray[np.float64], recording: NDArray[np.float64]) -> tuple[int, float]:
    """Return where in the recording the sound begins (negative: before it), and how alike they are there, 0 to 1."""
    size = 1 << (len(sound) + len(recording) - 1).bit_length()
    products = np.fft.irfft(np.fft.rfft(recording, size) * np.conj(np.fft.rfft(sound, size)), size)
    at = int(np.argmax(products))
    lag = at if at < len(recording) else at - size
    begin, end = max(0, -lag), min(len(sound), len(recording) - lag)
    ours, its = sound[begin:end], recording[begin + lag : end + lag]
    if end - begin < RATE_HZ // 5:
        return lag, 0.0
    size_of_both = float(np.linalg.norm(ours) * np.linalg.norm(its))
    return lag, float(np.dot(ours, its)) / size_of_both if size_of_both else 0.0


def distinct(clips: Sequence[Clip], *, least_s: float) -> list[Clip]:
    """Return the recordings of at least that length, each sound once."""
    return list({clip.packets: clip for clip in clips if clip.voiced_end_s - clip.voiced_start_s >= least_s}.values())

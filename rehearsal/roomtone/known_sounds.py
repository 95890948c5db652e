"""Tells the words of sound that is known: a recogniser for rehearsals, without a model.

It looks for known sounds in what it is given, at any place, whole or in part. So it hears the words so far of a
recording that was cut in a pause, and both of two recordings that follow each other. What it does not know has no
words.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rehearsal.people.clip import voiced_frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

# 20 ms at 16 kHz.
FRAME_SAMPLES = 320
# Sounds are compared at 2 kHz, without what is above 1 kHz: enough for the pitch of a voice, which no other sound has
# for a whole word.
THINNED = 8
_LOW = np.hanning(4 * THINNED + 3)[1:-1] / (2 * THINNED + 1)
# A pause of so many frames lies between two words. With them, the words of every cut of the bundled recordings in a
# pause are those that Whisper hears.
PAUSE_FRAMES = 7
# The pause is taken for the one at a comma or a full stop up to so many voiced frames away.
MARK_FRAMES = 25
# A word is heard if at least half of it is there, and so like the known one (1: the same wave).
LIKE = 0.5
# What is left of less than this share of the energy are the edges of words, and no more words are looked for in it.
REST = 0.02


@dataclass(frozen=True, slots=True)
class _Word:
    """`begin` and `end`: in samples of the thinned sound."""

    text: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _KnownSound:
    """`energy`: of all samples before each."""

    wave: NDArray[np.float64]
    energy: NDArray[np.float64]
    words: tuple[_Word, ...]


class KnownSounds:
    """Sounds with their texts, and the recogniser of them (`rehearsal.runner.ports.HeardSoundRecogniser`)."""

    def __init__(self) -> None:
        self._sounds: list[_KnownSound] = []

    def add(self, pcm: NDArray[np.int16], text: str) -> None:
        """Know one more sound: mono int16 at 16 kHz, in which `text` is said."""
        wave = _thinned(pcm)
        energy = np.concatenate([[0.0], np.cumsum(wave**2)])
        self._sounds.append(_KnownSound(wave, energy, tuple(_words(pcm, text))))

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """Return the words of mono int16 sound at 16 kHz."""
        return await asyncio.to_thread(self.words_in, pcm)

    def words_in(self, pcm: NDArray[np.int16]) -> str:
        """Return the words of all known sounds in `pcm`, in their order. Blocking: some milliseconds."""
        left, heard = _thinned(pcm), list[_Word]()
        rest = REST * float(left @ left)
        while float(left @ left) > rest and (found := self._most_of(left)):
            heard += found
            for word in found:
                left[max(0, word.begin) : word.end] = 0.0
        return " ".join(word.text for word in sorted(heard, key=lambda word: word.begin))

    def _most_of(self, left: NDArray[np.float64]) -> list[_Word]:
        """Return the words, at their places in `left`, of the known sound that is most of it."""
        placed = [(*_best_place(left, sound), sound) for sound in self._sounds]
        _, at, best = max(placed, key=lambda each: each[0], default=(0.0, 0, None))
        here = [_Word(word.text, word.begin + at, word.end + at) for word in best.words] if best is not None else []
        return [word for word in here if best is not None and _is_heard(word, left, best.wave, at)]


def _thinned(pcm: NDArray[np.int16]) -> NDArray[np.float64]:
    return np.convolve(pcm.astype(np.float64), _LOW, "same")[::THINNED] if len(pcm) >= len(_LOW) else np.zeros(0)


def _best_place(left: NDArray[np.float64], sound: _KnownSound) -> tuple[float, int]:
    """Return how much energy of `left` is `sound` where it fits best, and where that is."""
    size = 1 << (len(left) + len(sound.wave)).bit_length()
    alike = np.fft.irfft(np.fft.rfft(left, size) * np.conj(np.fft.rfft(sound.wave, size)), size)
    places = np.arange(1 - len(sound.wave), len(left))
    last, first = (np.clip(each, 0, len(sound.wave)) for each in (len(left) - places, -places))
    # A place where next to nothing of the sound would be in `left` is none.
    own = np.maximum(sound.energy[last] - sound.energy[first], 0.001 * sound.energy[-1] + 1.0)
    explained = np.maximum(alike[places], 0.0) ** 2 / own
    best = int(explained.argmax()) if len(explained) else 0
    return (float(explained[best]), int(places[best])) if len(explained) else (0.0, 0)


def _is_heard(word: _Word, left: NDArray[np.float64], wave: NDArray[np.float64], at: int) -> bool:
    begin, end = max(0, word.begin), min(len(left), word.end)
    given, known = left[begin:end], wave[begin - at : max(begin, end) - at]
    strength = float(np.sqrt((given @ given) * (known @ known))) if end > begin else 0.0
    return 2 * (end - begin) >= word.end - word.begin and strength > 0 and float(given @ known) >= LIKE * strength


def _words(pcm: NDArray[np.int16], text: str) -> list[_Word]:
    """Return when each word of `text` is said: by its share of the letters between the pauses."""
    texts = text.split()
    voiced = voiced_frames(pcm, FRAME_SAMPLES)
    before = np.concatenate([[0], np.cumsum(voiced)])
    letters = np.concatenate([[0], np.cumsum([1 + sum(map(str.isalnum, each)) for each in texts])])
    guessed = letters / letters[-1] * before[-1]
    # Words that are over, and the voiced frames that they took.
    known = {0: 0, len(texts): int(before[-1])}
    for pause in _pauses(voiced):
        off = {
            over: abs(guessed[over] - before[pause]) - MARK_FRAMES * (not texts[over - 1][-1].isalnum())
            for over in range(1, len(texts))
        }
        over = min(off, key=off.__getitem__, default=0)
        if max(known[each] for each in known if each < over or not each) < before[pause]:
            known.setdefault(over, int(before[pause]))
    overs = sorted(known)
    frames = np.interp(letters, letters[overs], [known[over] for over in overs])
    # Silence belongs to no word.
    begins = (np.searchsorted(before, frames, side="right") - 1) * (FRAME_SAMPLES // THINNED)
    ends = np.searchsorted(before, frames) * (FRAME_SAMPLES // THINNED)
    return [_Word(each, int(begins[over]), int(ends[over + 1])) for over, each in enumerate(texts)]


def _pauses(voiced: NDArray[np.bool_]) -> list[int]:
    """Return the frames at which pauses begin."""
    edges = np.flatnonzero(np.diff(voiced.astype(np.int8)))
    return [int(end) + 1 for end, on in pairwise(edges) if voiced[end] and on - end >= PAUSE_FRAMES]

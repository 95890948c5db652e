"""Tells the words of sound that is known: a recogniser for rehearsals, without a model.

It looks for known sounds in what it is given, at any place, whole or in part. So it hears the words so far of a
recording that was cut in a pause, and both of two recordings that follow each other. What it does not know has no
words.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rehearsal.people.clip import voiced_frames

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


class _Word(NamedTuple):
    """`begin` and `end`: in samples of the thinned sound."""

    begin: int
    end: int
    text: str


class KnownSounds:
    """Sounds with their texts, and the recogniser of them (`rehearsal.runner.ports.HeardSoundRecogniser`)."""

    def __init__(self) -> None:
        # The thinned sounds, with their words.
        self._sounds: list[tuple[NDArray[np.float64], list[_Word]]] = []

    def add(self, pcm: NDArray[np.int16], text: str) -> None:
        """Know one more sound: mono int16 at 16 kHz, in which `text` is said."""
        self._sounds.append((_thinned(pcm), _words(pcm, text)))

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """Return the words of mono int16 sound at 16 kHz."""
        return await asyncio.to_thread(self.words_in, pcm)

    def words_in(self, pcm: NDArray[np.int16]) -> str:
        """Return the words of all known sounds in `pcm`, in their order. Blocking: some milliseconds."""
        left, heard = _thinned(pcm), list[_Word]()
        rest = REST * float(left @ left)
        while self._sounds and float(left @ left) > rest and (found := self._most_of(left)):
            heard += found
            for word in found:
                left[max(0, word.begin) : word.end] = 0.0
        return " ".join(word.text for word in sorted(heard))

    def _most_of(self, left: NDArray[np.float64]) -> list[_Word]:
        """Return the words, at their places in `left`, of the known sound that is most of it."""
        placed = ((*_best_place(left, wave), wave, words) for wave, words in self._sounds)
        _, at, wave, words = max(placed, key=lambda each: each[0])
        here = [_Word(word.begin + at, word.end + at, word.text) for word in words]
        return [word for word in here if _is_heard(word, left, wave, at)]


def _thinned(pcm: NDArray[np.int16]) -> NDArray[np.float64]:
    return np.convolve(pcm.astype(np.float64), _LOW, "same")[::THINNED] if len(pcm) >= len(_LOW) else np.zeros(0)


def _best_place(left: NDArray[np.float64], wave: NDArray[np.float64]) -> tuple[float, int]:
    """Return how much energy of `left` is `wave` where it fits best, and where that is."""
    size = 1 << (len(left) + len(wave)).bit_length()
    alike = np.fft.irfft(np.fft.rfft(left, size) * np.conj(np.fft.rfft(wave, size)), size)
    places = np.arange(1 - len(wave), len(left))
    energy = np.concatenate([[0.0], np.cumsum(wave**2)])
    own = energy[np.minimum(len(left) - places, len(wave))] - energy[np.maximum(-places, 0)]
    # A place where next to nothing of the sound would be in `left` is none.
    explained = np.maximum(alike[places], 0.0) ** 2 / np.maximum(own, 0.001 * energy[-1] + 1.0)
    best = int(explained.argmax())
    return float(explained[best]), int(places[best])


def _is_heard(word: _Word, left: NDArray[np.float64], wave: NDArray[np.float64], at: int) -> bool:
    begin, end = max(0, word.begin), min(len(left), word.end)
    if 2 * (end - begin) < word.end - word.begin:
        return False
    given, known = left[begin:end], wave[begin - at : end - at]
    strength = float(np.sqrt((given @ given) * (known @ known)))
    return strength > 0 and float(given @ known) >= LIKE * strength


def _words(pcm: NDArray[np.int16], text: str) -> list[_Word]:
    """Return when each word of `text` is said: by its share of the letters between the pauses."""
    texts = text.split()
    voiced = voiced_frames(pcm, FRAME_SAMPLES)
    before = np.concatenate([[0], np.cumsum(voiced)])
    letters = np.concatenate([[0], np.cumsum([1 + sum(map(str.isalnum, each)) for each in texts])])
    guessed = letters / letters[-1] * before[-1]
    # How many words are over after how many voiced frames.
    known = {0: 0, int(before[-1]): len(texts)}
    off_mark = np.array([0 if each[-1].isalnum() else -MARK_FRAMES for each in texts[:-1]])
    for end, on in pairwise(np.flatnonzero(np.diff(voiced.astype(np.int8)))):
        if voiced[end] and on - end >= PAUSE_FRAMES and len(texts) > 1:
            known[int(before[on])] = 1 + int((abs(guessed[1:-1] - before[on]) + off_mark).argmin())
    taken = sorted(known)
    frames = np.interp(letters, letters[np.maximum.accumulate([known[each] for each in taken])], taken)
    # Silence belongs to no word.
    samples = FRAME_SAMPLES // THINNED
    begins, ends = (
        (np.searchsorted(before, frames, side="right") - 1) * samples,
        np.searchsorted(before, frames) * samples,
    )
    return [_Word(int(begins[over]), int(ends[over + 1]), each) for over, each in enumerate(texts)]

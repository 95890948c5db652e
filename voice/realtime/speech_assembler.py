"""Converts a reply's pieces to speech for playback: 48 kHz, whole frames, each piece with its words. Pure.

Words are assigned to the sound at a usual speaking rate (`voice.realtime.word_timing`). If the reply is interrupted,
about the right words are therefore remembered. The remaining words go with the last piece. A text without spaces, as in
Chinese, is one word here, which is assigned when its item is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.realtime.port import REALTIME_RATE_HZ
from voice.realtime.word_timing import words_within
from voice.speaking.port import Speech
from voice.speaking.resample import StreamResampler

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.realtime.port import ReplyPiece

# Minimum sound that is passed on at once.
LEAST_S = 0.2


class SpeechAssembler:
    """Assembles one reply."""

    def __init__(self) -> None:
        self._resampler = StreamResampler(REALTIME_RATE_HZ, DISCORD_RATE_HZ)
        self._sound = np.zeros(0, np.int16)
        self._words: list[str] = []
        self._partial = ""
        self._item_id = ""
        self._spoken_s = 0.0
        self._words_assigned = 0

    @property
    def words(self) -> str:
        """Return all words of the reply so far, also those that wait for their sound; the last may be unfinished."""
        return " ".join([*self._words, self._partial] if self._partial else self._words)

    def feed(self, piece: ReplyPiece) -> Speech | None:
        """Add a piece; return the speech that can be played now."""
        if piece.item_id != self._item_id:
            self._item_id = piece.item_id
            self._finish_word()
        self._add_words(piece.words)
        if piece.pcm is not None:
            self._sound = np.concatenate([self._sound, self._resampler.feed(piece.pcm)])
        if len(self._sound) < LEAST_S * DISCORD_RATE_HZ:
            return None
        whole = len(self._sound) // DISCORD_FRAME_SAMPLES * DISCORD_FRAME_SAMPLES
        pcm, self._sound = self._sound[:whole], self._sound[whole:]
        self._spoken_s += whole / DISCORD_RATE_HZ
        return self._speech(pcm, until=words_within(self._spoken_s))

    def resume(self, said: str) -> None:
        """Continue after a lost connection. `said`: the words that have sound; the others will not get any."""
        self._words, self._partial = said.split(), ""
        self._words_assigned = min(self._words_assigned, len(self._words))

    def end(self) -> Speech | None:
        """Return the remaining sound with all remaining words."""
        self._finish_word()
        pcm = np.concatenate([self._sound, self._resampler.flush()])
        self._sound = self._sound[:0]
        if len(pcm) == 0 and self._words_assigned >= len(self._words):
            return None
        if len(pcm) == 0:
            # Words need some sound to be played with.
            pcm = np.zeros(DISCORD_FRAME_SAMPLES, np.int16)
        return self._speech(pcm, until=len(self._words))

    def _add_words(self, words: str) -> None:
        """Split off whole words. The last word may continue in the next piece."""
        text = self._partial + words
        found = text.split()
        self._partial = "" if not found or text[-1:].isspace() else found.pop()
        self._words += found

    def _finish_word(self) -> None:
        if self._partial:
            self._words.append(self._partial)
            self._partial = ""

    def _speech(self, pcm: Pcm, *, until: int) -> Speech:
        assigned = self._words[self._words_assigned : max(self._words_assigned, until)]
        self._words_assigned += len(assigned)
        return Speech(" ".join(assigned), pcm, DISCORD_RATE_HZ)

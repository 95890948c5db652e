"""Pieces of a spoken answer become speech that playback takes: 48 kHz, whole frames, with the words that belong to it.

Words come faster than the sound they stand for, and nobody says which belong to which. They are dealt out at a
speaker's usual pace, so that of an answer that is talked over about the words that were heard are remembered; what
is left at the end goes with the last piece. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.realtime.port import REALTIME_RATE_HZ
from voice.speaking.port import Speech
from voice.speaking.resample import StreamResampler

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.realtime.port import ReplyPiece

# Enough to begin with; more is taken at once when more has come.
LEAST_S = 0.2
# Of English speech-to-speech voices at their default speed.
WORDS_A_SECOND = 2.8


class SpeechAssembler:
    """One answer on its way to the room."""

    def __init__(self) -> None:
        self._resampler = StreamResampler(REALTIME_RATE_HZ, DISCORD_RATE_HZ)
        self._sound = np.zeros(0, np.int16)
        self._words: list[str] = []
        self._partial = ""
        self._item_id = ""
        self._spoken_s = 0.0
        self._dealt = 0

    def feed(self, piece: ReplyPiece) -> Speech | None:
        """Take a piece in; return what can be played now."""
        if piece.item_id != self._item_id:
            self._item_id = piece.item_id
            self._finish_word()
        self._read(piece.words)
        if piece.pcm is not None:
            self._sound = np.concatenate([self._sound, self._resampler.feed(piece.pcm)])
        if len(self._sound) < LEAST_S * DISCORD_RATE_HZ:
            return None
        whole = len(self._sound) // DISCORD_FRAME_SAMPLES * DISCORD_FRAME_SAMPLES
        pcm, self._sound = self._sound[:whole], self._sound[whole:]
        self._spoken_s += whole / DISCORD_RATE_HZ
        return self._speech(pcm, until=round(self._spoken_s * WORDS_A_SECOND))

    def end(self) -> Speech | None:
        """Return the rest: what sound is left, and all words that nobody has spoken yet."""
        self._finish_word()
        pcm = np.concatenate([self._sound, self._resampler.flush()])
        self._sound = self._sound[:0]
        if len(pcm) == 0 and self._dealt >= len(self._words):
            return None
        if len(pcm) == 0:
            # Words need a moment in which they are heard.
            pcm = np.zeros(DISCORD_FRAME_SAMPLES, np.int16)
        return self._speech(pcm, until=len(self._words))

    def _read(self, words: str) -> None:
        """Take words in; the last one may go on in the next piece."""
        text = self._partial + words
        found = text.split()
        self._partial = "" if not found or text[-1:].isspace() else found.pop()
        self._words += found

    def _finish_word(self) -> None:
        if self._partial:
            self._words.append(self._partial)
            self._partial = ""

    def _speech(self, pcm: Pcm, *, until: int) -> Speech:
        dealt = self._words[self._dealt : max(self._dealt, until)]
        self._dealt += len(dealt)
        return Speech(" ".join(dealt), pcm, DISCORD_RATE_HZ)

"""Converts a reply's pieces to speech for playback: 48 kHz, whole frames, each piece with its words. Pure.

Words are assigned to the sound at a usual speaking rate (`voice.realtime.active_reply`). If the reply is interrupted,
about the right words are therefore remembered. The remaining words go with the last piece. In scripts without spaces a
piece may end within a sentence without a space, and the next one is then `glued` to it.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from voice.asr.unspaced import word_ends
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, Pcm
from voice.realtime.active_reply import words_within
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece
from voice.speaking.port import Speech
from voice.speaking.resample import StreamResampler

# Minimum sound that is passed on at once.
LEAST_S = 0.2


class SpeechAssembler:
    """Assembles one reply."""

    def __init__(self) -> None:
        self._resampler = StreamResampler(REALTIME_RATE_HZ, DISCORD_RATE_HZ)
        self._sound = np.zeros(0, np.int16)
        # As it came, so that it is known whether its last word has ended; items are a space apart.
        self._text = ""
        self._item_id = ""
        self._spoken_s = 0.0
        # What of the text is assigned to sound: how many words, and where the last of them ends.
        self._words_assigned = 0
        self._assigned_end = 0

    @property
    def words(self) -> str:
        """Return all words of the reply so far, also those that wait for their sound; the last may be unfinished."""
        return " ".join(self._text.split())

    def feed(self, piece: ReplyPiece) -> Speech | None:
        """Add a piece; return the speech that can be played now."""
        if piece.item_id != self._item_id:
            self._item_id = piece.item_id
            self._finish_word()
        self._text += piece.words
        if piece.pcm is not None:
            self._sound = np.concatenate([self._sound, self._resampler.feed(piece.pcm)])
        if len(self._sound) < LEAST_S * DISCORD_RATE_HZ:
            return None
        whole = len(self._sound) // DISCORD_FRAME_SAMPLES * DISCORD_FRAME_SAMPLES
        pcm, self._sound = self._sound[:whole], self._sound[whole:]
        self._spoken_s += whole / DISCORD_RATE_HZ
        return self._speech(pcm, most_words=max(0, words_within(self._spoken_s) - self._words_assigned))

    def resume(self, said: str) -> None:
        """Continue after a lost connection. `said`: the words that have sound; the others will not get any."""
        self._text = said
        ends = [0, *islice(word_ends(said), self._words_assigned)]
        self._words_assigned, self._assigned_end = len(ends) - 1, ends[-1]
        self._finish_word()

    def end(self) -> Speech | None:
        """Return the remaining sound with all remaining words."""
        self._finish_word()
        pcm = np.concatenate([self._sound, self._resampler.flush()])
        self._sound = self._sound[:0]
        if len(pcm) == 0 and not self._text[self._assigned_end :].strip():
            return None
        if len(pcm) == 0:
            # Words need some sound to be played with.
            pcm = np.zeros(DISCORD_FRAME_SAMPLES, np.int16)
        return self._speech(pcm, most_words=None)

    def _finish_word(self) -> None:
        """Have the last word end here: what comes next is another word."""
        self._text += " "

    def _speech(self, pcm: Pcm, *, most_words: int | None) -> Speech:
        """Return the sound with the next words, at most so many. The last word may go on in the next piece until
        something follows it.
        """
        start = self._assigned_end
        ends = [end for end in islice(word_ends(self._text, start), most_words) if end < len(self._text)]
        self._words_assigned += len(ends)
        self._assigned_end = ends[-1] if ends else start
        words = self._text[start : self._assigned_end]
        glued = start > 0 and bool(words) and not words[0].isspace()
        return Speech(" ".join(words.split()), pcm, DISCORD_RATE_HZ, glued)

"""A sign that the bot has heard a question whose answer takes a while: a soft tone, or "Hm." in its voice.

It is no part of the answer and no turn. It gives way at once to people and to the answer. Where the model was slow to
answer last time, whoever calls the bot gets the sign as soon as their words are known. Otherwise the answer may still
come in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import structlog

from bot.brain.decider import Reason
from bot.brain.question import Question, Spoken
from bot.brain.reply_life import ReplyStage
from bot.texts.text import Text, in_language
from voice.audio import DISCORD_RATE_HZ
from voice.errors import SynthesisError
from voice.speaking.port import AudioChunk, Speech, Synthesizer, synthesize_all

if TYPE_CHECKING:
    from bot.brain.reply import Reply
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.server_settings import ServerSettingsBook
    from voice.listening.listener import RoomListener
    from voice.speaking.playback import Playback

log = structlog.get_logger()

# After the end of the question, or of the bot's last words: a shorter pause is one between people who talk.
AFTER_S = 1.2
# How often to look whether the sign has to give way: every frame.
LOOK_EVERY_S = 0.02
HM = Text("Hm.")
# Two notes upwards, at a tenth of the loudest that there is.
_NOTES_HZ = (440.0, 587.0)
_NOTE_S = 0.12
_LOUDNESS = 3_300


def soft_tone() -> Speech:
    """Return the sound of the sign. It has no words, so nothing that people say is taken for its echo."""
    times = np.arange(round(_NOTE_S * DISCORD_RATE_HZ)) / DISCORD_RATE_HZ
    # Each note swells and fades, so that nothing clicks.
    notes = [np.sin(2 * np.pi * hertz * times) * np.hanning(len(times)) for hertz in _NOTES_HZ]
    return Speech("", (_LOUDNESS * np.concatenate(notes)).astype(np.int16), DISCORD_RATE_HZ)


def sign_due_at(question: Question, *, last_words_at: float, is_slow: bool = False) -> float | None:
    """Return when a sign is due if no answer sounds by then; None: nobody waits for one, or the model may say nothing.

    `last_words_at`: when the bot last fell silent. `is_slow`: the answer will take long. Monotonic seconds.
    """
    if not isinstance(question, Spoken) or question.decision.may_skip:
        return None
    after_s = 0.0 if is_slow and question.decision.reason is Reason.WAKE_NAME else AFTER_S
    return max(question.ended_at, last_words_at) + after_s


@dataclass(slots=True)
class HeardSign:
    """The signs of one room in `channel`, of the kind that its server has chosen. `listener`: hears people there."""

    playback: Playback
    synthesizer: Synthesizer
    clock: Clock
    channel: RoomChannel
    servers: ServerSettingsBook
    listener: RoomListener
    # The reply before; when the bot last fell silent; how long the model last took to begin; and whether nothing was
    # heard of any reply since the last sign.
    _last: Reply | None = field(default=None, init=False)
    _last_words_at: float = field(default=float("-inf"), init=False)
    _first_token_s: float = field(default=0.0, init=False)
    _unanswered: bool = field(default=False, init=False)

    async def accompany(self, reply: Reply) -> None:
        """Give a sign if the first sound of a reply takes long. *Cancellation*: the sign is cut off."""
        last, self._last = self._last, reply
        if last is not None and last.first_audio_at is not None:
            self._last_words_at, self._unanswered = last.ended_at, False
        if last is not None and last.model_first_token_ms is not None:
            self._first_token_s = last.model_first_token_ms / 1000
        is_slow = self._first_token_s >= AFTER_S
        due_at = sign_due_at(reply.question, last_words_at=self._last_words_at, is_slow=is_slow)
        if due_at is None:
            return
        await self.clock.sleep(max(0.0, due_at - self.clock.monotonic()))
        if not is_slow:
            # Whoever goes on is not interrupted for an answer that comes at once.
            await reply.until_released(ready=False)
        kind = self.servers.of(self.channel.guild_id).heard_sign
        # Not twice in a row.
        if kind == "off" or self._unanswered or not self._is_free(reply):
            return
        try:
            word = in_language(HM, self.channel.language)
            sound = soft_tone() if kind == "sound" else await synthesize_all(self.synthesizer, word)
        except SynthesisError as error:
            log.warning("sign_not_given", problem=error)
            return
        # The voice may have taken its time.
        if self._is_free(reply):
            self._unanswered = True
            await self._play(sound, reply)

    async def _play(self, sound: Speech, reply: Reply) -> None:
        # Before a sentence of the reply whose voice takes long.
        piece = await self.playback.open(sound.text, first=True)
        piece.add(AudioChunk(sound.pcm, sound.rate_hz))
        piece.end()
        log.info("sign_given")
        try:
            while not piece.done.done() and not self._gives_way(reply):
                await self.clock.sleep(LOOK_EVERY_S)
        finally:
            self.playback.stop_one(piece.done)

    def _is_free(self, reply: Reply) -> bool:
        """Return whether nothing waits to be played but the reply, and the sign would have to give way to nobody."""
        return self.playback.pieces.waiting <= len(reply.opened) and not self._gives_way(reply)

    def _gives_way(self, reply: Reply) -> bool:
        is_over = reply.stopped or reply.stage is ReplyStage.WITHDRAWN
        return bool(reply.pieces or self.listener.sounding) or is_over

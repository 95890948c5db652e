"""Makes text of a voice message that somebody has sent to the bot, by the recogniser that hears the room.

It is held in memory until it is recognised, one at a time, and no longer than `MOST_S` of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from bot.errors import BotError
from bot.places import Places
from bot.texts.text import Text
from voice.audio import LISTEN_RATE_HZ, Pcm, duration_s
from voice.listening.listener import RoomListener
from voice.listening.utterance import Utterance
from voice.transport.audio_events import SpeakerLeft, SpeechFrames
from voice.transport.ogg import decode_ogg_opus

if TYPE_CHECKING:
    from bot.channel.port import Recording
    from bot.clock import Clock
    from bot.conversation.transcriber import Transcriber
    from voice.listening.vad import SpeechProbability

# Whisper base needs half of this on two cores.
MOST_S: Final = 120
# Discord's client records 32 kbit/s; this is four times as much.
MOST_BYTES: Final = 2_000_000
HEARD_WITHIN_S: Final = 120.0

TOO_LONG = Text("Your voice message is too long for me. Send one of at most {seconds} seconds.", seconds=MOST_S)
NO_WORDS = Text("I heard no words in your voice message. Record it again, closer to the microphone.")
OTHER_FORMAT = Text("I cannot play this voice message. Record it with Discord's own button, or write it.")
NOT_HEARD_IN_TIME = Text("I could not listen to your voice message in time. Send it again, or write it.")
PLACES: Final = Places(
    4,
    2,
    full=Text("I have too many voice messages now. Send yours again in a minute."),
    full_for_one=Text(
        "I am still listening to your last voice messages. Send this one again when I have answered them."
    ),
)


class NotHeardError(BotError):
    """A voice message has not become text. The message says why, and what to do."""


class VoiceMessages:
    """The voice messages of one room. Not thread-safe. `detector`: finds where somebody speaks in one."""

    def __init__(self, transcriber: Transcriber, detector: SpeechProbability, *, clock: Clock) -> None:
        self._transcriber = transcriber
        self._detector = detector
        self._clock = clock
        # Of whom each one is that waits or is recognised.
        self._waiting: list[int] = []
        self._one_at_a_time = asyncio.Lock()

    async def text_of(self, user_id: int, recording: Recording) -> str:
        """Return what a person says in a voice message. Raises `NotHeardError`, and `ChatError` if Discord does not
        send it.
        """
        if recording.duration_s > MOST_S or recording.size_bytes > MOST_BYTES:
            raise NotHeardError(TOO_LONG)
        if (refusal := PLACES.refusal(self._waiting, user_id)) is not None:
            raise NotHeardError(refusal)
        self._waiting.append(user_id)
        try:
            async with asyncio.timeout(HEARD_WITHIN_S), self._one_at_a_time:
                return await self._text_of(user_id, recording)
        except TimeoutError:
            raise NotHeardError(NOT_HEARD_IN_TIME) from None
        finally:
            self._waiting.remove(user_id)

    async def _text_of(self, user_id: int, recording: Recording) -> str:
        content = await recording.fetch()
        pcm = await asyncio.to_thread(decode_ogg_opus, content, most_s=MOST_S + 1.0)
        if pcm is None:
            raise NotHeardError(OTHER_FORMAT)
        if duration_s(pcm) > MOST_S:
            raise NotHeardError(TOO_LONG)
        said = [await self._recognised(each) for each in await self._utterances(user_id, pcm)]
        if not (text := " ".join(filter(None, said))):
            raise NotHeardError(NO_WORDS)
        return text

    async def _utterances(self, user_id: int, pcm: Pcm) -> list[Utterance]:
        """Return what is said between pauses, as if it was said until now. The room's own sound has its turn."""
        listener, now = RoomListener(self._detector), self._clock.monotonic()
        begun_at, found = now - duration_s(pcm), []
        for start in range(0, len(pcm), LISTEN_RATE_HZ):
            sound = pcm[start : start + LISTEN_RATE_HZ]
            found += listener.hear([SpeechFrames(user_id, 0, begun_at + start / LISTEN_RATE_HZ, sound)], now)
            await asyncio.sleep(0)
        found += listener.hear([SpeakerLeft(user_id, now)], now)
        return [each for each in found if isinstance(each, Utterance)]

    async def _recognised(self, utterance: Utterance) -> str:
        """Return the words of an utterance; empty if there are none that can be believed."""
        transcriber = self._transcriber
        transcriber.pending.add(utterance.id)
        try:
            heard = await transcriber.transcribe(utterance)
        finally:
            transcriber.pending.discard(utterance.id)
        if heard.recognition is None or transcriber.guard(utterance, heard) is not None:
            return ""
        transcriber.on_accepted(utterance, heard)
        return heard.recognition.text.strip()

"""The voice of one room: the one that its server has chosen, or the bot's usual one.

An answer to somebody who speaks another language has an installed voice of that language.

A change applies to the next sentence. If the chosen voice fails, the usual one says the sentence. The channel is told
once; /status says so for as long as it lasts.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from bot.models.voices import NO_SUCH_VOICE, VOICES, EmbeddedVoice, find_voice, replaced_sentence
from bot.texts.text import Text, sentence_of, verbatim
from voice.errors import SynthesisError, UnreadableTextError, VoiceLoadingError
from voice.speaking.fallback import FallbackSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.channel.notice_queue import NoticeQueue
    from bot.channel.port import RoomChannel
    from bot.models.loaded_voices import LoadedVoices
    from bot.server_settings import ServerSettingsBook
    from voice.speaking.port import AudioChunk, Synthesizer


class RoomVoice:
    """Speaks with the voice that the server of `channel` has chosen, and with `usual` if it has chosen none or that one
    fails. `voices`: has the embedded voices; None: there are none to choose from. `usual_voice`: which of them the
    usual one is; None: none, and it speaks all languages.

    `notices`: has a sentence written into the channel at a later time: the next sentence must not wait for Discord.
    """

    def __init__(
        self,
        channel: RoomChannel,
        usual: Synthesizer,
        notices: NoticeQueue,
        *,
        servers: ServerSettingsBook,
        voices: LoadedVoices | None,
        usual_voice: EmbeddedVoice | None,
    ) -> None:
        self._channel, self._servers = channel, servers
        self._usual_voice = usual_voice
        # What the next sentences are written in; empty: the language of the voice.
        self._wanted = ""
        # The voice of another language that speaks at present.
        self._other: EmbeddedVoice | None = None
        self._voices = voices
        self._usual = usual
        self._notices = notices
        self._choice: _Choice | None = None
        # The voices of which the channel knows that they failed. One that fails now and then would fill the channel.
        self._notified: set[str] = set()
        self._follow_choice()

    @property
    def language(self) -> str:
        return (self._own_code() if self._other is None else self._other.code) or self._wanted

    @property
    def _chosen(self) -> str | None:
        """Return the name of the voice that the server has chosen; None: none, or the usual one."""
        name = self._servers.of(self._channel.guild_id).voice
        return None if self._usual_voice is not None and name == self._usual_voice.name else name

    def _own_code(self) -> str:
        """Return the language of the server's voice, as a code; empty: it speaks all."""
        voice = (None if self._chosen is None else find_voice(self._chosen)) or self._usual_voice
        return "" if voice is None else voice.code

    def prefer(self, language: str) -> None:
        code = self._own_code()
        self._wanted, self._other = language, None
        if self._voices is not None and language and code and language != code:
            installed = (each for each in VOICES if each.code == language and _can_speak(each, self._voices))
            self._other = next(installed, None)
        self._follow_choice()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield `text` as sound. Raises `SynthesisError` if the usual voice fails too."""
        choice = self._follow_choice()
        known = None if choice is None else choice.problem()
        if choice is not None and known is not None:
            # This sentence does not wait for it.
            choice.retry()
        speaker = self._usual if choice is None or known is not None else choice.with_fallback
        async with aclosing(speaker.stream(text)) as stream:
            async for sound in stream:
                yield sound
        why = known if choice is None or known is not None else choice.failure
        if choice is not None and why is not None and choice.name not in self._notified:
            self._notified.add(choice.name)
            self._notices.add(replaced_sentence(choice.name, why))

    def status(self) -> Text:
        choice = self._follow_choice()
        why = None if choice is None else choice.problem() or choice.outage()
        return verbatim("") if choice is None or why is None else replaced_sentence(choice.name, why)

    def _follow_choice(self) -> _Choice | None:
        """Return the voice that speaks now, None: the usual one. Another one than before is prepared."""
        name = self._chosen if self._other is None else self._other.name
        if name != (None if self._choice is None else self._choice.name):
            known = None if name is None or self._voices is None else _Choice(name, self._voices, self._usual)
            self._choice = known
        return self._choice


class _Choice:
    """The voice that a server has chosen, by its name, and what is wrong with it.

    `voice`: None if there is no longer one of that name. `failure`: why its last sentence failed; None: it did not.
    """

    def __init__(self, name: str, voices: LoadedVoices, usual: Synthesizer) -> None:
        self.name = name
        self.voice = find_voice(name)
        self.failure: Text | None = None
        self.with_fallback = FallbackSynthesizer(self, usual)
        self._voices = voices
        if self.voice is not None:
            voices.prepare(self.voice)

    def retry(self) -> None:
        """Begin to load the voice again, if it could not be loaded and has rested for long enough."""
        if self.voice is not None:
            self._voices.retry(self.voice)

    def problem(self) -> Text | None:
        """Return why there is no point in trying the voice, or None."""
        return NO_SUCH_VOICE if self.voice is None else self._voices.problem(self.voice)

    def outage(self) -> Text | None:
        """Return why the voice is left alone for a while, or None."""
        return None if self.with_fallback.outage is None else self.failure

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Speak with the voice alone, without another in its place."""
        assert self.voice is not None, "then it has a problem"
        try:
            async with self._voices.using(self.voice) as synthesizer, aclosing(synthesizer.stream(text)) as stream:
                async for sound in stream:
                    yield sound
        except (VoiceLoadingError, UnreadableTextError):
            # Soon it speaks, or with the next sentence, so nobody needs to be told.
            raise
        except SynthesisError as error:
            self.failure = sentence_of(error)
            raise
        self.failure = None


def _can_speak(voice: EmbeddedVoice, voices: LoadedVoices) -> bool:
    """Return whether nothing is known against a voice. One that could not be loaded is tried again, for later."""
    if voices.problem(voice) is None:
        return True
    voices.retry(voice)
    return False

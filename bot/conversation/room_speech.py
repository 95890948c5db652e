"""What may be said in a room, as it is now: names, words, languages, and the bot's own words, which may be an echo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.server_settings import language_to_assume
from voice.asr.glossary import choose_glossary, spoken_form

if TYPE_CHECKING:
    from bot.channel.participants import Participants
    from bot.conversation.services import RoomContext
    from bot.conversation.speaking import Speaking
    from bot.participation.participation import Participation


class RoomSpeech:
    """The speech of a session's room. Who opted out is in none of it."""

    def __init__(
        self, session: RoomContext, participants: Participants, participation: Participation, speaking: Speaking
    ) -> None:
        self._session, self._channel, self._services = session, session.channel, session.services
        self._participants, self._participation, self._speaking = participants, participation, speaking

    @property
    def own_names(self) -> tuple[str, ...]:
        """Return the bot's names."""
        return self._participation.wake_names

    def glossary(self) -> tuple[str, ...]:
        """Return the names and words to expect, the bot's names among them."""
        channel, words = self._channel, self._session.words
        return choose_glossary(
            wake_names=self.own_names,
            display_names=[person.name for person in channel.members() if not words.excludes(person.id)],
            words=(*self._services.asr.glossary_words, channel.guild_name, channel.name),
            occasions=channel.occasions,
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of the people who are or were there, which a text gets as they write them."""
        return tuple(map(spoken_form, self._participants.names().values()))

    def languages(self) -> tuple[str, ...]:
        """Return the codes of those that may be spoken; one alone is everybody's, none: any."""
        return self._services.languages(self._channel.guild_id)

    def assumed_language(self) -> str:
        """Return the code of the language to assume while detection is unsure and nothing is known of the person;
        empty: the recogniser's own fallback.
        """
        settings = self._services.servers.of(self._channel.guild_id)
        spoken, assumed = self.languages(), language_to_assume(settings, self._channel.language)
        return assumed if not spoken or assumed in spoken else spoken[0]

    def own_words(self, since: float, until: float) -> str:
        """Return the words that the bot spoke between two times."""
        return self._speaking.playback.words_between(since, until)

    def is_present(self, user_id: int) -> bool:
        """Return whether a person is in the channel."""
        return self._participants.find(user_id) is not None

    @property
    def is_heard_again(self) -> bool:
        """Return whether finished speech is recognised anew, by a speech-to-speech model."""
        return self._speaking.replier.answers_in_speech

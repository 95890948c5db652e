"""What is recognised so far of people who still speak in a room. It is shown and forgotten, never stored or logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.channel.port import UnfinishedWords

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.channel.port import Place


class UnfinishedSpeech:
    """The unfinished words of a room's speakers, the latest of each. Give it all events of the room."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._texts: dict[int, str] = {}

    def on_event(self, event: events.Event) -> None:
        """Take an interim text, or forget it once the speech is transcribed or dropped."""
        match event:
            case events.InterimTranscribed():
                # Whose words are the latest comes last.
                self._texts.pop(event.speaker_id, None)
                self._texts[event.speaker_id] = event.text
            case events.UtteranceTranscribed() | events.SpeechDropped():
                self._texts.pop(event.speaker_id, None)
            case _:
                pass

    def words(self, hides: Callable[[int], bool]) -> tuple[UnfinishedWords, ...]:
        """Return the words of the people in the channel, the latest first. `hides`: returns whether nobody is shown
        what a person says.
        """
        names = {person.id: person.name for person in self._place.members()}
        return tuple(
            UnfinishedWords(names[user_id], text)
            for user_id, text in reversed(self._texts.items())
            if user_id in names and not hides(user_id)
        )

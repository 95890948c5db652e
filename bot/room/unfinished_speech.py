"""What is recognised so far of people who still speak in a room. It is shown and forgotten, never stored or logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.channel.port import UnfinishedWords

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.channel.port import Place


class UnfinishedSpeech:
    """The unfinished words of the people in a room, the latest of each. Give it all events of the room."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._texts: dict[int, str] = {}

    def on_event(self, event: events.Event) -> None:
        """Take an interim text, or forget it once the speech is transcribed or dropped."""
        match event:
            case events.InterimTranscribed():
                self._take(event.speaker_id, event.text)
            case events.UtteranceTranscribed() | events.SpeechDropped():
                self._texts.pop(event.speaker_id, None)
            case _:
                pass

    def _take(self, speaker_id: int, text: str) -> None:
        """Keep the words of somebody in the channel, and of nobody who has left it."""
        present = {person.id for person in self._place.members()}
        # Whose words are the latest comes last.
        self._texts = {each: said for each, said in self._texts.items() if each in present and each != speaker_id}
        if speaker_id in present:
            self._texts[speaker_id] = text

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

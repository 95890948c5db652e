"""Speech of a session that has its text and is no turn yet, kept so that it outlives the room that heard it.

Text waits while others are in mid-sentence. If the room crashes then, or its process is lost, the session's next room
records it (`bot.room.earlier_speech`). It is kept in memory alone. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot import events
from voice.asr.sound_effect import is_sound_effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# As many utterances may wait for the recogniser. The oldest go first.
MOST_UTTERANCES = 64
# Words wait for ten seconds in a room that lives (`bot.room.conversation.hearing`), and then for the database.
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class UnrecordedUtterance:
    """What somebody said. Its times are in seconds before it was asked for: the clocks of two processes differ.

    `name`: the speaker's, who may leave the channel; empty if they had left by then.
    """

    utterance_id: str
    speaker_id: int
    name: str
    text: str
    started_s_ago: float
    ended_s_ago: float


class UnrecordedSpeech:
    """The unrecorded speech of one session. Give it all events of its rooms, in order.

    `now` is in monotonic seconds of this process. The times in events may be of another process's clock.
    """

    def __init__(self) -> None:
        # As they were at zero of this process's clock, by the id of the utterance.
        self._utterances: dict[str, UnrecordedUtterance] = {}

    def on_event(self, event: events.Event, now: float, name_of: Callable[[int], str]) -> None:
        """Keep an utterance that has its text, until it is part of a turn or dropped.

        `name_of`: returns the name of somebody in the channel; empty if they are not there.
        """
        match event:
            case events.UtteranceTranscribed():
                self._keep(event, now, name_of(event.speaker_id))
            case events.SpeechDropped():
                self._utterances.pop(event.utterance_id, None)
            case events.TurnRecorded():
                for spoken in event.utterances:
                    self._utterances.pop(spoken.utterance.id, None)
            case events.RoomOpened():
                # It has recorded what the room before it had left, and hears people from now on.
                self._utterances.clear()
            case _:
                pass

    def _drop_old(self, now: float) -> None:
        """Drop what the room did not record and told nothing of. It hears, so it is not lost."""
        self._utterances = {
            utterance_id: kept
            for utterance_id, kept in self._utterances.items()
            if kept.ended_s_ago + now <= LONGEST_WAIT_S
        }

    def _keep(self, event: events.UtteranceTranscribed, now: float, name: str) -> None:
        if is_sound_effect(event.text):
            # It waits for nobody, and one that is repeated becomes no turn.
            return
        self._drop_old(now)
        if len(self._utterances) >= MOST_UTTERANCES:
            del self._utterances[next(iter(self._utterances))]
        self._utterances[event.utterance_id] = UnrecordedUtterance(
            event.utterance_id,
            event.speaker_id,
            name,
            event.text,
            event.text_at - event.started_at - now,
            event.text_at - event.ended_at - now,
        )

    def utterances(self, now: float) -> tuple[UnrecordedUtterance, ...]:
        """Return what is kept, in the order in which it was recognised."""
        return tuple(_later(kept, now) for kept in self._utterances.values())

    def restore(self, utterances: Iterable[UnrecordedUtterance], now: float) -> None:
        """Keep this, and nothing else. It comes from another process."""
        self._utterances = {kept.utterance_id: _later(kept, -now) for kept in utterances}

    def drop(self, speaker_id: int) -> None:
        """Drop what somebody has said: they opted out, or are forgotten."""
        self._utterances = {
            utterance_id: kept for utterance_id, kept in self._utterances.items() if kept.speaker_id != speaker_id
        }

    def clear(self) -> None:
        """Drop everything."""
        self._utterances.clear()


def _later(kept: UnrecordedUtterance, seconds: float) -> UnrecordedUtterance:
    return replace(kept, started_s_ago=kept.started_s_ago + seconds, ended_s_ago=kept.ended_s_ago + seconds)

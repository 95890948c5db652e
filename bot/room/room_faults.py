"""Judges whether a room hears people, people hear the bot, and what is said is stored. Pure.

It sees what happens in the room and is asked with what the voice connection says. Its sentences have no names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot import events
from bot.dropped_sounds import RECOGNISER_FAILED
from bot.health import FaultKind, HealthFault

if TYPE_CHECKING:
    from bot.channel.port import Link, Place

# A broken connection is resumed or made anew in less time, also when Discord moves it to another server.
LINK_GRACE_S = 2.0
# One failure may be due to the sound.
FAILURES_OF_RECOGNISER = 2
UNSPOKEN = (
    "The last answer in a room could not be spoken: the voice failed, or the connection took no sound. "
    "`roomtone doctor` tries the voice."
)
UNSTORED = HealthFault(
    FaultKind.DATABASE,
    "What is said in a room is kept in memory only: the database refuses it. The log says why (`roomtone tail`).",
)


@dataclass(slots=True)
class RoomFaults:
    """The state of one room. `unstored`: the database refuses what waits to be stored."""

    unstored: bool = False

    _failed_recognitions: int = 0
    _unspoken: bool = False

    def on_event(self, event: events.Event) -> None:
        """Take one of the room's events."""
        match event:
            case events.UtteranceTranscribed():
                self._failed_recognitions = 0
            case events.SpeechDropped(reason=reason) if reason == RECOGNISER_FAILED:
                self._failed_recognitions += 1
            case events.ReplyFinished(outcome=events.ReplyOutcome.UNSPOKEN):
                self._unspoken = True
            case events.ReplyFinished(outcome=events.ReplyOutcome.SPOKEN | events.ReplyOutcome.INTERRUPTED):
                self._unspoken = False
            case _:
                pass

    @property
    def understands_nobody(self) -> bool:
        """Whether the recogniser has failed several times in a row."""
        return self._failed_recognitions >= FAILURES_OF_RECOGNISER

    def faults(self, link: Link, place: Place, *, speaks: bool, now: float) -> list[HealthFault]:
        """Return why nobody is heard, nobody hears the bot, or nothing is stored. `speaks`: it wants to speak in this
        room. `now`: monotonic seconds.
        """
        down = link.down_since is not None and now - link.down_since >= LINK_GRACE_S
        found = [
            HealthFault(FaultKind.ROOM_DEAF, sentence)
            for sentence in self._deaf(link, deafened=place.deafened, down=down)
        ]
        if self.unstored:
            found.append(UNSTORED)
        if speaks:
            found += [
                HealthFault(FaultKind.ROOM_MUTE, sentence) for sentence in self._mute(audible=place.audible, down=down)
            ]
        return found

    def _deaf(self, link: Link, *, deafened: bool, down: bool) -> list[str]:
        if down:
            return ["A room hears nobody: its voice connection is down and is being made anew."]
        found = []
        if deafened:
            found.append("A room hears nobody: somebody has deafened me there.")
        elif link.unheard:
            found.append(
                "A room hears nobody: somebody speaks, and no sound of it arrives. Check that UDP gets out of this "
                "machine and back in."
            )
        if self.understands_nobody:
            found.append(
                "A room understands nobody: the speech recogniser has failed several times in a row. "
                "`roomtone doctor` asks it."
            )
        return found

    def _mute(self, *, audible: bool, down: bool) -> list[str]:
        if down:
            return []
        if not audible:
            return ["Nobody in a room can hear me: somebody has muted me there, or I am in the audience of a stage."]
        if self._unspoken:
            return [UNSPOKEN]
        return []

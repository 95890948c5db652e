"""What is wrong in a room: that it hears nobody, nobody hears the bot, or nothing is stored. For monitoring, without
names, and for the people there, when it begins and when it is over. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot import events
from bot.dropped_sounds import RECOGNISER_FAILED
from bot.health import FaultKind, HealthFault
from bot.texts.text import Text

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


UNDERSTANDS_NOBODY: Final = Text(
    "I cannot understand you: my speech recogniser fails, and what you say is lost. I go on trying. /status says more."
)
UNDERSTANDS_AGAIN: Final = Text("My speech recogniser works again: I understand you.")
MUTED: Final = Text(
    "I am muted on this server, so nobody can hear me. I listen and answer nobody until somebody who may mute members "
    "unmutes me."
)
UNMUTED: Final = Text("I am no longer muted: I answer again.")
SUPPRESSED: Final = Text(
    "I may not speak here, so nobody can hear me. I listen and answer nobody until somebody gives me the permission "
    "Speak, or makes me a speaker of the stage."
)
UNSUPPRESSED: Final = Text("I may speak here now: I answer.")
DEAFENED: Final = Text(
    "I am deafened on this server, so Discord sends me no sound and I hear nobody, until somebody who may deafen "
    "members undoes that."
)
UNDEAFENED: Final = Text("I am no longer deafened: I hear you again.")
# What fails and works in turn must not fill the chat.
TELL_AGAIN_AFTER_S: Final = 600.0


class TroubleNotice:
    """Remembers what a room was told of one trouble. `begun`, `over`: what people read when it begins and ends."""

    def __init__(self, begun: Text, over: Text) -> None:
        self._begun = begun
        self._over = over
        self._told_at: float | None = None
        self._is_told = False

    def take_as_told(self) -> None:
        """Note that people have read of the trouble elsewhere: only its end is news."""
        self._is_told = True

    def next(self, *, is_there: bool, now: float) -> Text | None:
        """Return the sentence to write now, or None. `is_there`: the trouble is there. `now`: monotonic seconds."""
        if is_there == self._is_told:
            return None
        if not is_there:
            self._is_told = False
            return self._over
        if self._told_at is not None and now - self._told_at < TELL_AGAIN_AFTER_S:
            return None
        self._is_told, self._told_at = True, now
        return self._begun


class RoomTroubles:
    """The troubles of one room that people in its channel are told of."""

    def __init__(self) -> None:
        self._not_understanding = TroubleNotice(UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN)
        self._muted = TroubleNotice(MUTED, UNMUTED)
        self._suppressed = TroubleNotice(SUPPRESSED, UNSUPPRESSED)
        self._is_first = True
        self._deafened = TroubleNotice(DEAFENED, UNDEAFENED)

    def next(self, *, not_understanding: bool, muted: bool, suppressed: bool, deafened: bool, now: float) -> list[Text]:
        """Return the sentences to write now. `not_understanding`: the recogniser has failed several times in a row.

        `suppressed`: the bot is not muted, but may not speak. Who arrives in the audience of a stage says so there
        (`bot.discord.voice_presence`).
        """
        if self._is_first and suppressed:
            self._suppressed.take_as_told()
        self._is_first = False
        told = (
            self._not_understanding.next(is_there=not_understanding, now=now),
            self._muted.next(is_there=muted, now=now),
            self._suppressed.next(is_there=suppressed, now=now),
            self._deafened.next(is_there=deafened, now=now),
        )
        return [sentence for sentence in told if sentence is not None]

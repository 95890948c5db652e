"""What is wrong in one room: that it hears nobody, nobody hears the bot, or nothing is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot import events
from bot.dropped_sounds import RECOGNISER_FAILED
from bot.health import Actor, FaultDates, FaultKind, HealthFault, database_fault
from bot.room_part import RoomPart
from bot.texts.text import Text

if TYPE_CHECKING:
    from bot.channel.port import RoomChannel, VoiceConnection
    from bot.clock import Clock
    from compaction.errors import StoreError

# A broken connection is resumed or made anew in less time, also when Discord moves it to another server.
CONNECTION_GRACE_S = 2.0
# One failure may be due to the sound.
FAILURES_OF_RECOGNISER = 2

DOWN = HealthFault(
    FaultKind.ROOM_DEAF,
    Text("My voice connection is broken, so I hear nobody. I am connecting again."),
    acts=Actor.NOBODY,
)
DEAFENED = HealthFault(
    FaultKind.ROOM_DEAF,
    Text("I am deafened on this server. Discord sends me no sound, so I hear nobody."),
    Text("Somebody with the permission Deafen Members can switch my sound on again."),
    acts=Actor.MEMBERS,
    over=Text("I am no longer deafened, so I can hear you again."),
)
UNHEARD = HealthFault(
    FaultKind.ROOM_DEAF,
    Text("I hear nobody. Somebody is speaking, but Discord sends me no sound of it."),
    "Check that UDP gets out of my machine and back in.",
)
UNDERSTANDS_NOBODY = HealthFault(
    FaultKind.ROOM_DEAF,
    Text("I cannot understand you at the moment, so I miss what you say. I keep trying."),
    "My speech recogniser fails. `roomtone doctor` tests it.",
    over=Text("I understand you again."),
)
MUTED = HealthFault(
    FaultKind.ROOM_MUTE,
    Text("I am muted on this server, so nobody can hear me. I listen, but I do not answer."),
    Text("Somebody with the permission Mute Members can let me speak again."),
    acts=Actor.MEMBERS,
    over=Text("I am no longer muted, so you can hear me again."),
)
SUPPRESSED = HealthFault(
    FaultKind.ROOM_MUTE,
    Text("I am not allowed to speak here, so nobody can hear me. I listen, but I do not answer."),
    Text("Invite me to speak on the stage, or give my role the permission Speak."),
    acts=Actor.MEMBERS,
    over=Text("I am allowed to speak here now, so you can hear me again."),
)
UNSPOKEN = HealthFault(
    FaultKind.ROOM_MUTE,
    Text("I could not say my last answer, because my voice failed or the connection did not take the sound."),
    "`roomtone doctor` tests the voice.",
)


class RoomFaults(RoomPart):
    """What is wrong in one room. `unstored`: why the database refuses what waits to be stored, if it does. Set it from
    outside.
    """

    def __init__(self, clock: Clock) -> None:
        self.unstored: StoreError | None = None
        self._clock = clock
        self._dates = FaultDates(clock)
        self._failed_recognitions = 0
        self._unspoken = False

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

    def faults(self, connection: VoiceConnection, channel: RoomChannel, *, speaks: bool) -> list[HealthFault]:
        """Return why nobody is heard, nobody hears the bot, or nothing is stored. `speaks`: it wants to speak in this
        room.
        """
        found = [] if self.unstored is None else [database_fault(self.unstored)]
        down_since = connection.down_since
        if down_since is not None and self._clock.monotonic() - down_since >= CONNECTION_GRACE_S:
            found.append(replace(DOWN, since=down_since))
        if channel.deafened:
            found.append(DEAFENED)
        elif connection.unheard and down_since is None:
            found.append(UNHEARD)
        if self._failed_recognitions >= FAILURES_OF_RECOGNISER:
            found.append(UNDERSTANDS_NOBODY)
        if speaks and not channel.audible:
            found.append(MUTED if channel.muted else SUPPRESSED)
        elif speaks and self._unspoken:
            found.append(UNSPOKEN)
        return self._dates.dated(found)

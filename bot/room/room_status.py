"""What people are shown of an open room: what is wrong there, /status, sentence by sentence, and what is being said.
Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot import events
from bot.channel.port import COMING, UnfinishedWords
from bot.dropped_sounds import RECOGNISER_FAILED, reasons_text
from bot.health import FaultKind, HealthFault
from bot.texts.text import Text, counted, joined, verbatim
from bot.time_phrases import format_duration
from compaction.model import Mode
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections import Counter

    from bot.channel.port import RoomChannel, VoiceConnection
    from bot.room.conversation.conversation import Conversation
    from bot.withdrawal import WordsWithdrawn
    from compaction.memory.tiers import TierCounts
    from compaction.session import SessionTimeline


# A broken connection is resumed or made anew in less time, also when Discord moves it to another server.
CONNECTION_GRACE_S = 2.0
# One failure may be due to the sound.
FAILURES_OF_RECOGNISER = 2
INAUDIBLE = "Nobody in a room can hear me: somebody has muted me there, or I am in the audience of a stage."
UNSPOKEN = (
    "The last answer in a room could not be spoken: the voice failed, or the connection took no sound. "
    "`roomtone doctor` tries the voice."
)
DOWN = HealthFault(FaultKind.ROOM_DEAF, "A room hears nobody: its voice connection is down and is being made anew.")
UNSTORED = HealthFault(
    FaultKind.DATABASE,
    "What is said in a room is kept in memory only: the database refuses it. The log says why (`roomtone tail`).",
)
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
REPORT_AGAIN_AFTER_S: Final = 600.0


class TroubleNotice:
    """Remembers what a room was told of one trouble. `begun`, `over`: what people read when it begins and ends."""

    def __init__(self, begun: Text, over: Text) -> None:
        self._begun = begun
        self._over = over
        self._reported_at: float | None = None
        self._is_reported = False

    def take_as_reported(self) -> None:
        """Note that people have read of the trouble elsewhere: only its end is news."""
        self._is_reported = True

    def next(self, *, is_there: bool, now: float) -> Text | None:
        """Return the sentence to write now, or None. `is_there`: the trouble is there. `now`: monotonic seconds."""
        if is_there == self._is_reported:
            return None
        if not is_there:
            self._is_reported = False
            return self._over
        if self._reported_at is not None and now - self._reported_at < REPORT_AGAIN_AFTER_S:
            return None
        self._is_reported, self._reported_at = True, now
        return self._begun


class RoomFaults:
    """What is wrong in one room: that it hears nobody, nobody hears the bot, or nothing is stored. For monitoring,
    without names, and for the people there, when it begins and when it is over.

    `unstored`: the database refuses what waits to be stored. Set it from outside.
    """

    def __init__(self) -> None:
        self.unstored = False
        self._failed_recognitions = 0
        self._unspoken = False
        self._not_understanding = TroubleNotice(UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN)
        self._muted = TroubleNotice(MUTED, UNMUTED)
        self._suppressed = TroubleNotice(SUPPRESSED, UNSUPPRESSED)
        self._deafened = TroubleNotice(DEAFENED, UNDEAFENED)
        self._is_first = True

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

    def faults(
        self, connection: VoiceConnection, channel: RoomChannel, *, speaks: bool, now: float
    ) -> list[HealthFault]:
        """Return why nobody is heard, nobody hears the bot, or nothing is stored. `speaks`: it wants to speak in this
        room. `now`: monotonic seconds.
        """
        unstored = [UNSTORED] if self.unstored else []
        if connection.down_since is not None and now - connection.down_since >= CONNECTION_GRACE_S:
            return [DOWN, *unstored]
        deaf = [
            HealthFault(FaultKind.ROOM_DEAF, sentence)
            for sentence in self._why_deaf(connection, deafened=channel.deafened)
        ]
        if not speaks or (channel.audible and not self._unspoken):
            return [*deaf, *unstored]
        return [*deaf, *unstored, HealthFault(FaultKind.ROOM_MUTE, INAUDIBLE if not channel.audible else UNSPOKEN)]

    def _why_deaf(self, connection: VoiceConnection, *, deafened: bool) -> list[str]:
        found = []
        if deafened:
            found.append("A room hears nobody: somebody has deafened me there.")
        elif connection.unheard:
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

    def news(self, channel: RoomChannel, *, answers: bool, now: float) -> list[Text]:
        """Return the sentences to write into the channel now. `answers`: the bot does not only write down there.

        Who arrives in the audience of a stage says so there (`bot.discord.voice_presence`).
        """
        suppressed = answers and not channel.audible and not channel.muted
        if self._is_first and suppressed:
            self._suppressed.take_as_reported()
        self._is_first = False
        sentences = (
            self._not_understanding.next(is_there=self.understands_nobody, now=now),
            self._muted.next(is_there=answers and channel.muted, now=now),
            self._suppressed.next(is_there=suppressed, now=now),
            self._deafened.next(is_there=channel.deafened, now=now),
        )
        return [sentence for sentence in sentences if sentence is not None]


def status_before_opening(channel: RoomChannel) -> Text:
    """Return the status of a room that has not joined its channel yet."""
    return COMING.fill(channel=channel.name)


def room_status(
    channel: RoomChannel,
    conversation: Conversation,
    timeline: SessionTimeline,
    connection: VoiceConnection,
    *,
    tiers: TierCounts | None,
    health: Text,
    open_s: float,
    now: float,
) -> Text:
    """Return the status of an open room, each subject on a line: first whether it hears, whether it answers, and what
    does not work. `health`: which parts of the process do not work. `open_s`: for how long the room has been open.
    `now`: monotonic seconds.
    """
    people = sum(not person.is_bot for person in channel.members())
    return joined(
        (
            _hearing_sentence(channel, connection, now),
            joined(
                (_voice_sentence(channel), conversation.participation.why_silent() or _responder_sentence(conversation))
            ),
            health or Text("Everything works."),
            Text(
                "I have been in {channel} for {minutes}, with {people}.",
                channel=channel.name,
                minutes=format_duration(open_s),
                people=counted(people, "{count} person", "{count} people"),
            ),
            joined((memory_sentence(timeline), tiers_sentence(tiers))),
            _dropped_sentence(conversation.hearing.dropped),
            joined((_round_trip_sentence(connection), _encryption_sentence(connection))),
            conversation.participation.status(),
        ),
        "\n",
    )


def _responder_sentence(conversation: Conversation) -> Text:
    """Return what answers, and why another voice than the chosen one speaks."""
    responder = Text("I answer with {responder}.", responder=conversation.responder_name)
    return joined((responder, conversation.answering.speaking.voice.status()))


def _voice_sentence(channel: RoomChannel) -> Text:
    """Return why nobody can hear the bot; nothing if they can."""
    if channel.muted:
        return MUTED
    return verbatim("") if channel.audible else SUPPRESSED


def memory_sentence(timeline: SessionTimeline) -> Text:
    """Return what the bot knows of the session."""
    if timeline.mode is Mode.OFF and timeline.total_turns > RECENT_WINDOW:
        # Also if an earlier mode has made a summary: this one sends none.
        return Text(
            "This session has {count} turns. I see the last {shown}, and older ones only where memory search finds "
            "them.",
            count=timeline.total_turns,
            shown=RECENT_WINDOW,
        )
    if timeline.cursor:
        remembered = Text(
            "I remember {count} turns of this session, the first {folded} of them as a summary.",
            count=timeline.total_turns,
            folded=timeline.cursor,
        )
        return joined((remembered, unsourced_sentence(timeline.unsourced)))
    return counted(
        timeline.total_turns, "I remember {count} turn of this session.", "I remember {count} turns of this session."
    )


def tiers_sentence(tiers: TierCounts | None) -> Text:
    """Return how far what was folded has moved on (docs/memory.md, 'Tiers'); nothing if it has not."""
    if tiers is None or not tiers.queued + tiers.compressed + tiers.archived:
        return verbatim("")
    return Text(
        "Folded segments that wait for compression: {queued}; compressed: {compressed}; in the archive: {archived}.",
        queued=tiers.queued,
        compressed=tiers.compressed,
        archived=tiers.archived,
    )


def unsourced_sentence(count: int) -> Text:
    """Return how many figures and names of the model's summaries stand in nothing that it was given, if any."""
    if not count:
        return verbatim("")
    return counted(
        count,
        "{count} figure or name in the model's summaries stands in nothing that it was given.",
        "{count} figures and names in the model's summaries stand in nothing that it was given.",
    )


def _dropped_sentence(dropped: Counter[str]) -> Text:
    if not dropped:
        return verbatim("")
    return Text(
        "I left out {sounds} ({reasons}).",
        sounds=counted(dropped.total(), "{count} sound", "{count} sounds"),
        reasons=reasons_text(dropped),
    )


def _hearing_sentence(channel: RoomChannel, connection: VoiceConnection, now: float) -> Text:
    if connection.down_since is not None:
        return Text(
            "My voice connection broke {seconds} s ago and is being made anew; until then I hear nobody.",
            seconds=round(now - connection.down_since),
        )
    return DEAFENED if channel.deafened else Text("I can hear this channel.")


def _round_trip_sentence(connection: VoiceConnection) -> Text:
    took_s = connection.round_trip_s
    if took_s is None or connection.down_since is not None:
        return verbatim("")
    return Text("The voice server answers in {ms} ms.", ms=round(1000 * took_s))


def _encryption_sentence(connection: VoiceConnection) -> Text:
    if not connection.connected:
        return verbatim("")
    if not connection.end_to_end:
        return Text("This call is not end-to-end encrypted, so Discord's servers could listen.")
    if not connection.privacy_code:
        return Text("This call is end-to-end encrypted.")
    return Text(
        "This call is end-to-end encrypted; compare its privacy code with yours: {code}.", code=connection.privacy_code
    )


class UnfinishedSpeech:
    """What is recognised so far of people who still speak in a room, the latest of each. It is shown and forgotten,
    never stored or logged. Give it all events of the room.
    """

    def __init__(self, channel: RoomChannel) -> None:
        self._channel = channel
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

    def on_withdrawn(self, event: WordsWithdrawn) -> None:
        """Forget what these people are saying. Of what they said before, no more is recognised."""
        self._texts = {each: said for each, said in self._texts.items() if not event.is_of(each)}

    def _take(self, speaker_id: int, text: str) -> None:
        """Keep the words of somebody in the channel, and of nobody who has left it."""
        present = {person.id for person in self._channel.members()}
        # Whose words are the latest comes last.
        self._texts = {each: said for each, said in self._texts.items() if each in present and each != speaker_id}
        if speaker_id in present:
            self._texts[speaker_id] = text

    def words(self) -> tuple[UnfinishedWords, ...]:
        """Return the words of the people in the channel, the latest first."""
        names = {person.id: person.name for person in self._channel.members()}
        return tuple(
            UnfinishedWords(names[user_id], text) for user_id, text in reversed(self._texts.items()) if user_id in names
        )

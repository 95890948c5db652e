"""What people are shown of an open room: /status, sentence by sentence, and what is being said. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.channel.port import COMING, RoomChannel, UnfinishedWords, VoiceConnection
from bot.dropped_sounds import reasons_text
from bot.room_part import RoomPart
from bot.texts.text import Text, counted, joined, verbatim
from bot.time_phrases import format_duration
from bot.words import Leased, Words
from compaction.model import Mode
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections import Counter

    from bot.conversation.conversation import Conversation
    from compaction.memory.tiers import TierCounts
    from compaction.session import SessionTimeline


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
    open_s: float,
) -> Text:
    """Return the status of an open room, each subject on a line. What is wrong comes before it (`Rooms.status`).
    `open_s`: for how long the room has been open.
    """
    people = sum(not person.is_bot for person in channel.members())
    return joined(
        (
            conversation.talk_sentence(),
            Text(
                "I have been in {channel} for {minutes}, with {people}.",
                channel=channel.name,
                minutes=format_duration(open_s),
                people=counted(people, "{count} person", "{count} people"),
            ),
            joined((memory_sentence(timeline), tiers_sentence(tiers))),
            _dropped_sentence(conversation.parts.hearing.dropped),
            joined((_round_trip_sentence(connection), _encryption_sentence(connection))),
            conversation.parts.participation.status(),
        ),
        "\n",
    )


def memory_sentence(timeline: SessionTimeline) -> Text:
    """Return what the bot knows of the session."""
    if timeline.mode is Mode.OFF and timeline.total_turns > RECENT_WINDOW:
        # Also if an earlier mode has made a summary: this one sends none.
        return Text(
            "{count} things were said in this session. I see the last {shown}. I see older ones only "
            "if memory search finds them.",
            count=timeline.total_turns,
            shown=RECENT_WINDOW,
        )
    if timeline.cursor:
        remembered = Text(
            "I remember {count} things that were said in this session. Of the first {folded}, I have only a summary.",
            count=timeline.total_turns,
            folded=timeline.cursor,
        )
        return joined((remembered, unsourced_sentence(timeline.compactor.unsourced)))
    return counted(
        timeline.total_turns,
        "I remember {count} thing that was said in this session.",
        "I remember {count} things that were said in this session.",
    )


def tiers_sentence(tiers: TierCounts | None) -> Text:
    """Return how far what was folded has moved on (docs/memory.md, 'Tiers'); nothing if it has not."""
    if tiers is None or not tiers.queued + tiers.compressed + tiers.archived:
        return verbatim("")
    return Text(
        "I keep old parts of the session in short form: {queued} are still long, {compressed} are "
        "short, {archived} are in the archive.",
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
        "The summaries have {count} number or name that I cannot find in what was said.",
        "The summaries have {count} numbers or names that I cannot find in what was said.",
    )


def _dropped_sentence(dropped: Counter[str]) -> Text:
    if not dropped:
        return verbatim("")
    return Text(
        "I ignored {sounds} ({reasons}).",
        sounds=counted(dropped.total(), "{count} sound", "{count} sounds"),
        reasons=reasons_text(dropped),
    )


def _round_trip_sentence(connection: VoiceConnection) -> Text:
    took_s = connection.round_trip_s
    if took_s is None or connection.down_since is not None:
        return verbatim("")
    return Text("The voice server answers within {ms} milliseconds.", ms=round(1000 * took_s))


def _encryption_sentence(connection: VoiceConnection) -> Text:
    if not connection.connected:
        return verbatim("")
    if not connection.end_to_end:
        return Text("This call has no end-to-end encryption, so Discord could listen to it.")
    if not connection.privacy_code:
        return Text("Nobody outside this call can listen to it (end-to-end encryption).")
    return Text(
        "Nobody outside this call can listen to it (end-to-end encryption). To be sure, compare this "
        "code with the privacy code in your Discord: {code}.",
        code=connection.privacy_code,
    )


class UnfinishedSpeech(RoomPart):
    """What is recognised so far of people who still speak in a room, the latest of each. It is shown and forgotten,
    never stored or logged. Give it all events of the room.
    """

    def __init__(self, channel: RoomChannel, words: Words) -> None:
        self._channel = channel
        self._words = words
        self._texts: dict[int, Leased[str]] = {}

    def on_event(self, event: events.Event) -> None:
        """Take an interim text, or forget it once the speech is transcribed or dropped."""
        match event:
            case events.InterimTranscribed():
                self._take(event)
            case events.UtteranceTranscribed() | events.SpeechDropped():
                self._texts.pop(event.speaker_id, None)

    def _take(self, event: events.InterimTranscribed) -> None:
        """Keep the words of somebody in the channel, and of nobody who has left it."""
        speaker_id, present = event.speaker_id, {person.id for person in self._channel.members()}
        # Whose words are the latest comes last.
        self._texts = {each: said for each, said in self._texts.items() if each in present and each != speaker_id}
        if speaker_id in present:
            lease = self._words.lease({speaker_id}, since=event.started_at)
            self._texts[speaker_id] = Leased(event.text, lease)

    def words(self) -> tuple[UnfinishedWords, ...]:
        """Return the words of the people in the channel, the latest first."""
        names = {person.id: person.name for person in self._channel.members()}
        return tuple(
            UnfinishedWords(names[user_id], text)
            for user_id, said in reversed(self._texts.items())
            if user_id in names and (text := said.take()) is not None
        )

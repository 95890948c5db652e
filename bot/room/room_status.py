"""What people are shown of an open room: /status, sentence by sentence, and what is being said. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.channel.port import COMING, UnfinishedWords
from bot.dropped_sounds import reasons_text
from bot.room.room_troubles import DEAFENED, MUTED, SUPPRESSED
from bot.texts.text import Text, counted, joined, verbatim
from bot.time_phrases import format_duration
from compaction.model import Mode
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from bot.channel.port import Link, Place
    from bot.room.conversation.conversation import Conversation
    from compaction.memory.tiers import TierCounts
    from compaction.session import SessionMemory


def status_before_opening(place: Place) -> Text:
    """Return the status of a room that has not joined its channel yet."""
    return COMING.fill(channel=place.name)


def room_status(
    place: Place,
    conversation: Conversation,
    memory: SessionMemory,
    link: Link,
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
    people = sum(not person.is_bot for person in place.members())
    return joined(
        (
            _hearing_sentence(place, link, now),
            joined((_voice_sentence(place), conversation.why_silent() or _responder_sentence(conversation))),
            health or Text("Everything works."),
            Text(
                "I have been in {channel} for {minutes}, with {people}.",
                channel=place.name,
                minutes=format_duration(open_s),
                people=counted(people, "{count} person", "{count} people"),
            ),
            joined((memory_sentence(memory), tiers_sentence(tiers))),
            _dropped_sentence(conversation.dropped),
            joined((_round_trip_sentence(link), _encryption_sentence(link))),
            conversation.participation_status(),
        ),
        "\n",
    )


def _responder_sentence(conversation: Conversation) -> Text:
    """Return what answers, and why another voice than the chosen one speaks."""
    responder = Text("I answer with {responder}.", responder=conversation.responder_name)
    return joined((responder, conversation.voice_status()))


def _voice_sentence(place: Place) -> Text:
    """Return why nobody can hear the bot; nothing if they can."""
    if place.muted:
        return MUTED
    return verbatim("") if place.audible else SUPPRESSED


def memory_sentence(memory: SessionMemory) -> Text:
    """Return what the bot knows of the session."""
    if memory.mode is Mode.OFF and memory.total_turns > RECENT_WINDOW:
        # Also if an earlier mode has made a summary: this one sends none.
        return Text(
            "This session has {count} turns. I see the last {shown}, and older ones only where memory search finds "
            "them.",
            count=memory.total_turns,
            shown=RECENT_WINDOW,
        )
    if memory.cursor:
        remembered = Text(
            "I remember {count} turns of this session, the first {folded} of them as a summary.",
            count=memory.total_turns,
            folded=memory.cursor,
        )
        return joined((remembered, unsourced_sentence(memory.unsourced)))
    return counted(
        memory.total_turns, "I remember {count} turn of this session.", "I remember {count} turns of this session."
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


def _hearing_sentence(place: Place, link: Link, now: float) -> Text:
    if link.down_since is not None:
        return Text(
            "My voice connection broke {seconds} s ago and is being made anew; until then I hear nobody.",
            seconds=round(now - link.down_since),
        )
    return DEAFENED if place.deafened else Text("I can hear this channel.")


def _round_trip_sentence(link: Link) -> Text:
    took_s = link.round_trip_s
    if took_s is None or link.down_since is not None:
        return verbatim("")
    return Text("The voice server answers in {ms} ms.", ms=round(1000 * took_s))


def _encryption_sentence(link: Link) -> Text:
    if not link.connected:
        return verbatim("")
    if not link.end_to_end:
        return Text("This call is not end-to-end encrypted, so Discord's servers could listen.")
    if not link.privacy_code:
        return Text("This call is end-to-end encrypted.")
    return Text(
        "This call is end-to-end encrypted; compare its privacy code with yours: {code}.", code=link.privacy_code
    )


class UnfinishedSpeech:
    """What is recognised so far of people who still speak in a room, the latest of each. It is shown and forgotten,
    never stored or logged. Give it all events of the room.
    """

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

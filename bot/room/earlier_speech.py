"""Records what the session's last room had heard and not recorded, because it crashed or its process was lost.

The bot does not answer it: the conversation has gone on meanwhile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import structlog

from bot.events import SpokenText
from bot.store.forgettings import people_among
from voice.asr.port import Recognition
from voice.audio import NO_SOUND
from voice.listening.utterance import Utterance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.participation.guild_participation import GuildParticipation
    from bot.participation.unrecorded_speech import UnrecordedUtterance
    from bot.store.sessions import Sessions
    from compaction.model import SessionId, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# The last room may have stored a turn and not have told so. Its clock may be another machine's.
SAME_WITHIN_S = 5.0
_WORD = re.compile(r"\w+")


async def record_earlier_speech(
    session_id: SessionId,
    guild: GuildParticipation,
    memory: SessionMemory,
    sessions: Sessions,
    place: Place,
    clock: Clock,
    *,
    record: Callable[[Sequence[SpokenText], Sequence[str]], Awaitable[object]],
) -> None:
    """Record what is left of the session's last room as one turn, before anybody is heard. Raises `StoreError`.

    What somebody said who has opted out meanwhile is dropped, and what anybody said who was forgotten in this session.
    `record`: records utterances in order, with the names of their speakers.
    """
    if not guild.unrecorded.utterances(clock.monotonic()):
        return
    # Another process may have forgotten somebody while no room was there.
    notes = [note for note in await sessions.forgettings_after(0) if note.reaches(session_id) and note.seq is None]
    # Somebody may have opted out since the room was told who has.
    is_current = await place.is_current()
    left = guild.unrecorded.utterances(clock.monotonic())
    forgotten = people_among(notes, {str(each.speaker_id) for each in left})
    said = [
        each
        for each in sorted(left, key=lambda each: -each.started_s_ago)
        if is_current
        and not guild.excludes(each.speaker_id)
        and str(each.speaker_id) not in forgotten
        and not _is_recorded(each, memory.turns, clock.now())
    ]
    if said:
        names = _names(place, memory.turns)
        now = clock.monotonic()
        await record([_spoken(each, now) for each in said], [names.get(each.speaker_id, each.name) for each in said])
    guild.unrecorded.clear()
    log.info("earlier_speech_recorded", utterance_count=len(said), left_count=len(left))


def _is_recorded(utterance: UnrecordedUtterance, turns: Iterable[Turn], now: float) -> bool:
    """Return whether a turn of that time has these words of this person."""
    began_at, ended_at = now - utterance.started_s_ago, now - utterance.ended_s_ago
    words = _words(utterance.text)
    return any(
        part.speaker_id == str(utterance.speaker_id) and words in _words(part.text)
        for turn in turns
        if turn.started_at - SAME_WITHIN_S <= began_at and ended_at <= turn.ended_at + SAME_WITHIN_S
        for part in turn.parts
    )


def _words(text: str) -> str:
    """Return the words with a space around each, so that only whole words are found among them."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _names(place: Place, turns: Iterable[Turn]) -> dict[int, str]:
    """Return the names of the people who are in the channel or have spoken, by their id."""
    spoke = {int(part.speaker_id): part.speaker for turn in turns for part in turn.parts if part.speaker_id.isdecimal()}
    return spoke | {person.id: person.name for person in place.members()}


def _spoken(each: UnrecordedUtterance, now: float) -> SpokenText:
    """Return it without its sound, which was lost, and as if it had had its text at once: nobody waited for it."""
    ended_at = now - each.ended_s_ago
    utterance = Utterance(each.utterance_id, each.speaker_id, now - each.started_s_ago, ended_at, ended_at, NO_SOUND)
    return SpokenText(utterance, _recognition(each), ended_at, ended_at)


def _recognition(each: UnrecordedUtterance) -> Recognition:
    """Return its text. It was judged when it was recognised."""
    return Recognition(
        text=each.text,
        language="",
        mean_logprob=0.0,
        compression_ratio=1.0,
        no_speech_probability=0.0,
        duration_s=each.started_s_ago - each.ended_s_ago,
        compute_s=0.0,
    )

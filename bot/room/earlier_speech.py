"""Records what the session's last room had heard and not recorded, because it crashed or its process was lost.

The bot does not answer it: the conversation has gone on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import structlog

from bot.events import SpokenText
from bot.store.forgetting_notes import people_among
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from bot.clock import Clock
    from bot.participation.guild_participation import GuildParticipation
    from bot.participation.unrecorded_speech import UnrecordedUtterance
    from bot.store.sessions import Sessions
    from compaction.model import SessionId, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# The last room may have stored a turn and not have told so. Its clock may be another machine's.
SAME_WITHIN_S = 30.0


async def record_earlier_speech(
    session_id: SessionId,
    guild: GuildParticipation,
    memory: SessionMemory,
    sessions: Sessions,
    clock: Clock,
    *,
    record: Callable[[tuple[SpokenText, ...]], Awaitable[object]],
) -> None:
    """Record what is left of the session's last room as one turn, before anybody is heard. Raises `StoreError`.

    What somebody said who has opted out or was forgotten meanwhile is dropped. `record`: records utterances, in order.
    """
    left = guild.unrecorded.utterances(clock.monotonic())
    if not left:
        return
    people = {str(each.speaker_id) for each in left}
    # Another process may have forgotten somebody while no room was there.
    notes = [note for note in await sessions.forgettings_after(0) if note.reaches(session_id) and note.seq is None]
    forgotten = people_among(notes, people)
    said = [
        each
        for each in left
        if not guild.excludes(each.speaker_id)
        and str(each.speaker_id) not in forgotten
        and not _is_recorded(each, memory.turns, clock.now())
    ]
    if said:
        await record(_spoken(said, clock.monotonic()))
    guild.unrecorded.clear()
    log.info("earlier_speech_recorded", utterance_count=len(said), left_count=len(left))


def _is_recorded(utterance: UnrecordedUtterance, turns: Iterable[Turn], now: float) -> bool:
    ended_at = now - utterance.ended_s_ago
    return any(
        part.speaker_id == str(utterance.speaker_id) and utterance.text in part.text
        for turn in turns
        if abs(turn.ended_at - ended_at) <= SAME_WITHIN_S
        for part in turn.parts
    )


def _spoken(utterances: Sequence[UnrecordedUtterance], now: float) -> tuple[SpokenText, ...]:
    return tuple(
        SpokenText(_utterance(each, now), _recognition(each), now, now)
        for each in sorted(utterances, key=lambda each: -each.started_s_ago)
    )


def _utterance(each: UnrecordedUtterance, now: float) -> Utterance:
    """Return it without its sound, which was lost."""
    ended_at = now - each.ended_s_ago
    return Utterance(
        each.utterance_id, each.speaker_id, now - each.started_s_ago, ended_at, ended_at, np.zeros(0, np.int16)
    )


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

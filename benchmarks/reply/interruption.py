"""Measure how soon the bot falls silent when somebody speaks over it, as another participant hears it.

The overlap counts as speech after 700 ms of voiced sound, judged by the recording's own loudness. The bot's silence
begins after the last voiced frame that the listener receives. Both are measured outside the bot.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from benchmarks.figures import spread
from benchmarks.recordings import INTERRUPTION, QUESTION, SpeechRecording, find_recording, voiced_after_s
from benchmarks.reply.measured_room import LONG_ANSWER, SHORT_ANSWER, BenchmarkRoom, open_room
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.errors import PersonError

if TYPE_CHECKING:
    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from rehearsal.servers.chat import ChatCall

QUALIFIES_AFTER_S = 0.7
_SOUND_TIMEOUT_S = 8.0
# Seconds of the bot's answer before somebody interrupts it. Whoever speaks sooner goes on with their question.
_LISTENS_S = 2.5
_STOP_TIMEOUT_S = 6.0
_GAP_S = 1.0


async def measure_interruption(repeats: int, *, progress: Progress) -> dict[str, Json]:
    """Let one person ask a question and then talk over the answer, `repeats` times."""
    progress.step("answers that are talked over", total=repeats)
    question, interruption = find_recording(QUESTION), find_recording(INTERRUPTION)
    qualifies_s = await asyncio.to_thread(voiced_after_s, interruption.path, QUALIFIES_AFTER_S)
    stopped: list[float] = []
    async with open_room(people=1) as room:
        room.model.behaviour.answer = _answer
        for _ in range(repeats):
            after_ms = await _interrupt(room, question, interruption, qualifies_s)
            if after_ms is not None:
                stopped.append(after_ms)
            progress.advance()
        troubles = room.troubles
    return {
        "interruptions": repeats,
        "not_measured": repeats - len(stopped),
        "silent_after_ms": spread(stopped),
        "warned_of": [*troubles],
    }


def _answer(call: ChatCall) -> str:
    """Give a long answer to the question, and a short one to the interruption."""
    said = (str(each.get("content", "")) for each in reversed(call.messages) if each.get("role") == "user")
    last = next(said, "")
    return LONG_ANSWER if "colour" in last or "color" in last else SHORT_ANSWER


async def _interrupt(
    room: BenchmarkRoom, question: SpeechRecording, interruption: SpeechRecording, qualifies_s: float
) -> float | None:
    """Return the milliseconds from the qualified overlap to the bot's silence, or None if the bot spoke on or never
    spoke.
    """
    replies = len(room.record.replies)
    asked = await room.say(question.path)
    try:
        await room.listener.wait_for_sound(ROOMTONE_BOT_ID, since=asked.speech_ended_at, timeout_s=_SOUND_TIMEOUT_S)
    except PersonError:
        return None
    await asyncio.sleep(_LISTENS_S)
    said = await room.say(interruption.path)
    qualified_at = said.speech_started_at + qualifies_s
    broke_off = await room.record.wait_until(
        lambda: any(one.interrupted for one in room.record.replies[replies:]), timeout_s=_STOP_TIMEOUT_S
    )
    if not broke_off:
        return None
    reply = next(one for one in room.record.replies[replies:] if one.interrupted)
    voiced = room.heard.voiced_at(since=asked.speech_ended_at, until=reply.ended_at + _GAP_S / 2)
    # The bot answers the interruption too. Wait for the end of that answer before the next question.
    await room.record.wait_until(lambda: len(room.record.replies) > replies + 1, timeout_s=_STOP_TIMEOUT_S)
    await asyncio.sleep(_GAP_S)
    return None if voiced is None else (voiced[1] - qualified_at) * 1000

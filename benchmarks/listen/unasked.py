"""Measures how often the bot speaks in real talk among people, of whom nobody means it.

Supplied transcripts are played to a room's participation. Texts are those of the transcripts; what a recogniser would
mishear is not in them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.figures import number_at, sample_at
from benchmarks.listen.talk_room import play_talk
from benchmarks.listen.timed_talk import UtteranceCut, make_talk
from benchmarks.memory.conversations.transcripts import read_conversations
from benchmarks.report import Target, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.measuring import Progress
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.report import Json

PART = "unasked"
# Conversations of these origins were written, by language models and people; nobody spoke them.
_WRITTEN = frozenset({"LoCoMo"})
# The report tells at most this many places of unasked replies. It never quotes: the conversations may be private.
_EXAMPLES = 24


async def measure_unasked(folder: Path, progress: Progress) -> tuple[dict[str, Json], list[str]]:
    """Play every conversation of a directory. Returns the figures, and remarks about conversations left out.

    Raises `TranscriptFormatError`.
    """
    every = await asyncio.to_thread(read_conversations, folder)
    reasons: Counter[str] = Counter(reason for each in every if (reason := why_left_out(each)))
    played = [each for each in every if not why_left_out(each)]
    progress.step("talk among people", total=len(UtteranceCut) * len(played))
    figures: dict[str, Json] = {}
    for cut in UtteranceCut:
        replies: list[Json] = []
        kept_silent: Counter[str] = Counter()
        duration_s, utterances = 0.0, 0
        for conversation in played:
            talk = make_talk(conversation, cut)
            duration_s += talk.duration_s
            utterances += len(talk.lines)
            for line, done in zip(talk.lines, await play_talk(talk), strict=True):
                if done.answers:
                    replies.append(f"{talk.name}, {line.kind}, {done.reason}")
                elif done.reason is not None:
                    kept_silent[done.reason] += 1
            progress.advance()
        figures[cut.value] = {
            "conversations": len(played),
            "minutes": round(duration_s / 60, 1),
            "utterances": utterances,
            "spoken_unasked": len(replies),
            "kept_silent": {str(reason): count for reason, count in sorted(kept_silent.items())},
            "examples": replies[:_EXAMPLES],
        }
    remarks = [
        f"Of {len(every)} conversations, {count} {reason}, and were left out." for reason, count in reasons.items()
    ]
    return figures, remarks


def why_left_out(conversation: RecordedConversation) -> str:
    """Return why a conversation is no talk among people; empty if it is one."""
    if conversation.origin in _WRITTEN:
        return "were written and not spoken"
    if any(line.by_bot for line in conversation.lines):
        return "have an assistant in them"
    return "have one speaker, who would be alone with the bot" if len(conversation.speakers) < 2 else ""


def unasked_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    return tuple(
        at_most(
            f"spoken unasked in real talk among people, {cut.value}",
            "0",
            number_at(ours, PART, cut.value, "spoken_unasked"),
            0,
            sample_at(ours, "minutes", PART, cut.value, "minutes"),
        )
        for cut in UtteranceCut
    )

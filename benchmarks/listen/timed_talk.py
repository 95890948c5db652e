"""Talk as a room hears it: lines with their speakers and times. And transcripts turned into it.

Transcripts have neither sound nor, mostly, times, so times come from the number of words. A room cuts a turn where the
speaker pauses, which a transcript does not tell either. So a talk is made in both extremes, each turn in one piece and
each sentence alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.language.text import sentences
from rehearsal.roomtone.written.channel import speech_duration_s

if TYPE_CHECKING:
    from benchmarks.memory.conversations.conversation import RecordedConversation

# From one utterance to the next. The median between two speakers of ten languages (Stivers et al., 2009).
PAUSE_S = 0.2
# How long an answer of the bot takes.
ANSWER_S = 4.0
# The origin whose reader joins the names of people who spoke at the same time.
_JOINS_SPEAKERS = "CRD3"
# What nobody says: '(laughter)', '{disfmarker}', '[cheering]'.
_REMARK = re.compile(r"[\[({][^\[\](){}]*[\])}]")
# QMSum's meetings have spaces before marks and in 'it 's'.
_SPACE_BEFORE = re.compile(r"\s+(?=[,.;:?!]|['’]\w)")


class UtteranceCut(StrEnum):
    """What is one utterance."""

    TURNS = "whole turns"
    SENTENCES = "sentence by sentence"


class ReplyExpected(StrEnum):
    """Whether the bot should answer a line. MAY: both an answer and silence are right, or nobody has told."""

    YES = "yes"
    NO = "no"
    MAY = "may"


@dataclass(frozen=True, slots=True)
class TimedLine:
    """One utterance, as a recogniser writes it. `speakers`: more than one said it together. Times are seconds of the
    talk. `kind`: of the episode that it belongs to; in a transcript, the number of its line from 0.
    """

    speakers: tuple[str, ...]
    text: str
    started_s: float
    ended_s: float
    kind: str = ""
    owed: ReplyExpected = ReplyExpected.MAY


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation. `people`, and other `bots`: who is in the channel, all the time."""

    name: str
    people: tuple[str, ...]
    lines: tuple[TimedLine, ...]
    duration_s: float
    bots: tuple[str, ...] = ()


def make_talk(conversation: RecordedConversation, cut: UtteranceCut) -> Talk:
    """Return the conversation as utterances. Lines without a spoken word are left out."""
    people: dict[str, None] = {}
    lines: list[TimedLine] = []
    now_s = ended_s = 0.0
    for number, line in enumerate(conversation.lines):
        speakers = tuple(line.speaker.split(" and ")) if conversation.origin == _JOINS_SPEAKERS else (line.speaker,)
        people.update(dict.fromkeys(speakers))
        text = " ".join(_SPACE_BEFORE.sub("", _REMARK.sub(" ", line.text)).split())
        for piece in sentences(text) if cut is UtteranceCut.SENTENCES else (text,):
            if not any(letter.isalnum() for letter in piece):
                continue
            ended_s = now_s + speech_duration_s(piece)
            lines.append(TimedLine(speakers, piece, now_s, ended_s, f"line {number}"))
            now_s = ended_s + PAUSE_S
    return Talk(conversation.name, tuple(people), tuple(lines), ended_s)

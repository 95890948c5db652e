"""Turn a transcript into utterances with times, as a room hears them.

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


@dataclass(frozen=True, slots=True)
class TimedUtterance:
    """One utterance. `line`: its line in the transcript, from 0. `speakers`: more than one said it together. Times are
    seconds of the talk.
    """

    line: int
    speakers: tuple[str, ...]
    text: str
    started_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation. `people`: everybody who speaks in it; all of them are in the channel all the time."""

    name: str
    origin: str
    people: tuple[str, ...]
    utterances: tuple[TimedUtterance, ...]

    @property
    def duration_s(self) -> float:
        return self.utterances[-1].ended_s if self.utterances else 0.0


def make_talk(conversation: RecordedConversation, cut: UtteranceCut) -> Talk:
    """Return the conversation as utterances. Lines without a spoken word are left out."""
    people: dict[str, None] = {}
    utterances: list[TimedUtterance] = []
    now_s = 0.0
    for number, line in enumerate(conversation.lines):
        speakers = tuple(line.speaker.split(" and ")) if conversation.origin == _JOINS_SPEAKERS else (line.speaker,)
        people.update(dict.fromkeys(speakers))
        text = " ".join(_SPACE_BEFORE.sub("", _REMARK.sub(" ", line.text)).split())
        for piece in sentences(text) if cut is UtteranceCut.SENTENCES else (text,):
            if not any(letter.isalnum() for letter in piece):
                continue
            ended_s = now_s + speech_duration_s(piece)
            utterances.append(TimedUtterance(number, speakers, piece, now_s, ended_s))
            now_s = ended_s + PAUSE_S
    return Talk(conversation.name, conversation.origin, tuple(people), tuple(utterances))

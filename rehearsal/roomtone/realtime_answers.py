"""The answers of the local speech-to-speech server, taken from the session's own conversation.

They replace a real speech-to-speech model, and contain only what the bot has put into the session.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

from bot.brain.decider import Reason
from bot.brain.embedded.chat import answer
from bot.brain.embedded.evidence import Evidence, EvidenceOrigin, best_match
from bot.brain.realtime_instructions import NOTES_HEAD, SUMMARY_HEAD
from bot.brain.skip import SKIP, skip_instruction
from bot.brain.wakeword import strip_call
from compaction.language.text import QUESTION_MARKS, sentences
from compaction.untrusted_text import without_marks
from rehearsal.servers.realtime_behaviour import FunctionCall, ResponseRequest
from voice.realtime.protocol import BROKEN_OFF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rehearsal.servers.realtime_behaviour import ResponseContent

SEARCH = "memory_search"
_TOOL_RESULT = "function_call_output"
# A turn in a tool result, and a quote in the instructions.
_SAID = re.compile(r"^\[\d\d:\d\d\] (?P<name>[^:\n]{1,60}): (?P<text>.+)$", re.MULTILINE)
_RECALLED = re.compile(r"^\[[^\]\n]+\] From memory[^:\n]*, (?P<name>[^:,\n]{1,60}): (?P<text>.+)$", re.MULTILINE)
_SPEAKS = re.compile(r"(?P<names>.+?) (?:speaks|speak at the same time):")
_TOLD = re.compile(r"\[\d\d:\d\d\] (?P<name>[^:]{1,60}): (?P<text>.*)", re.DOTALL)


def answer_request(asked: ResponseRequest, *, names: Sequence[str]) -> ResponseContent:
    """Return the answer, or a memory search first (once) if nothing is known about a question.

    If nobody asked anything, it comments on the newest screen note or stays silent.
    """
    if (
        skip_instruction(Reason.SCREEN) in asked.instructions
        or skip_instruction(Reason.QUIET_ROOM) in asked.instructions
    ):
        return _remark(asked.instructions) if skip_instruction(Reason.SCREEN) in asked.instructions else SKIP
    evidence, question, asker = _read(asked)
    searched = any(role == _TOOL_RESULT for role, _ in asked.items)
    if searched or SEARCH not in asked.tools or not question.rstrip().endswith(QUESTION_MARKS):
        return answer_text(asked, names=names)
    if best_match(question, evidence, ignore=names, asker=asker) is not None:
        return answer_text(asked, names=names)
    return FunctionCall(SEARCH, json.dumps({"query": strip_call(question, tuple(names))}))


def answer_text(asked: ResponseRequest, *, names: Sequence[str]) -> str:
    """Return the answer to the last input. An interrupted answer is continued."""
    evidence, question, asker = _read(asked)
    whole = answer(question, evidence, asker=asker, now=time.time(), names=names)
    if asked.items and asked.items[-1] == ("system", BROKEN_OFF):
        begun = next((text for role, text in reversed(asked.items) if role == "assistant"), "")
        return " ".join(whole.split()[len(begun.split()) :]) or "That was all."
    return whole


def _section(instructions: str, head: str) -> str:
    return without_marks(instructions.partition(f"{head}\n")[2].partition("\n\n")[0])


def _remark(instructions: str) -> str:
    """Return a comment on the newest screen note, or `SKIP` without one."""
    seen = _TOLD.fullmatch(_section(instructions, NOTES_HEAD).rpartition("\n")[2])
    return SKIP if seen is None else f"{seen['name']}, I see {seen['text']}"


def _read(asked: ResponseRequest) -> tuple[list[Evidence], str, str]:
    """Return the session's evidence, the last question, and its speaker."""
    found: list[Evidence] = []
    summary = _section(asked.instructions, SUMMARY_HEAD)
    for order, sentence in enumerate(sentences(summary)):
        found.append(Evidence(sentence, EvidenceOrigin.SUMMARY, order))
    for recalled in _RECALLED.finditer(asked.instructions):
        found.append(Evidence(recalled["text"], EvidenceOrigin.TURN, len(found), speaker=recalled["name"]))
    for said in (said for role, text in asked.items if role == _TOOL_RESULT for said in _SAID.finditer(text)):
        found.append(Evidence(said["text"], EvidenceOrigin.TURN, len(found), speaker=said["name"]))
    speaker = asker = "friend"
    question = ""
    known = len(found)
    for text in (text for role, text in asked.items if role == "user"):
        if label := _SPEAKS.fullmatch(text):
            speaker = label["names"]
            continue
        written = _TOLD.fullmatch(text)
        asker, question = (written["name"], written["text"]) if written else (speaker, text)
        found.append(Evidence(question, EvidenceOrigin.TURN, len(found), speaker=asker))
    # The question itself is left out of the evidence, so that it is not quoted as its own answer.
    return found[: max(known, len(found) - 1)], question, asker

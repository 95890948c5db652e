"""The mind of the local chat server: it answers from the messages that it is sent, as the embedded responder would.

It stands for a language model where none is. What the bot did not put into the prompt it cannot say, so an answer
shows what a model would have known.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from bot.brain.embedded.chat import answer
from bot.brain.embedded.evidence import Evidence, EvidenceOrigin
from compaction.language.wording import sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUMMARY_HEAD = "Earlier in this session: "
_CLOCK = re.compile(r"\[\d\d:\d\d\] ")
_LINE = re.compile(r"(?P<name>[^:\n]{1,60}): (?P<text>.+)")


def words_for(messages: Sequence[Mapping[str, Any]], *, names: Sequence[str]) -> str:
    """Return what is said to the last thing that a person said. `names`: what the bot is called."""
    found: list[Evidence] = []
    spoken: list[tuple[str, str]] = []
    for message in messages:
        text = str(message.get("content") or "")
        if message.get("role") == "system" and text.startswith(SUMMARY_HEAD):
            found += _summary(text.removeprefix(SUMMARY_HEAD), len(found))
        if message.get("role") == "user":
            # Somebody who does not tell turns as the bot does: the whole message is what was said.
            lines = [(line["name"], line["text"]) for line in _LINE.finditer(_CLOCK.sub("", text, count=1))]
            spoken += lines or [("friend", text)]
    if not spoken:
        return "Nobody has said anything yet."
    # The question is no answer to itself.
    for speaker, text in spoken[:-1]:
        found += [Evidence(each, EvidenceOrigin.TURN, len(found), speaker=speaker) for each in sentences(text)]
    asker, question = spoken[-1]
    return answer(question, found, asker=asker, now=time.time(), names=names)


def _summary(text: str, order: int) -> list[Evidence]:
    """Return the summary's sentences, without the line that says which turns it stands for."""
    told = text.partition("\n(turns ")[0]
    return [Evidence(each, EvidenceOrigin.SUMMARY, order) for each in sentences(told)]

"""Parses a model's answer to a summarising prompt and refuses unusable answers. Pure.

Reads JSON (alone, in a code fence, or with text around it), and otherwise plain lines. The error names only the kind of
problem, because the answer may contain what people said.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.language.wording import as_sentence, ends_a_sentence, plain, sentences, words
from compaction.model import FactKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from compaction.model import Turn
    from compaction.ports import CompletionAnswer

# If a gist has this many words in a row from one turn, it is a copy of that turn.
_COPIED_WORDS = 30
_LINE = re.compile(r"^\W*(?:turn\s*)?(\d+)\]?\W*[|:]\s*\W*([a-z]+)\W*[|:]\s*(.+)$", re.IGNORECASE)
# A heading before the summary: 'Summary:', '**Updated summary**', 'Here is the summary of the conversation:'.
_HEADING = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|okay)\W+)?(?:here(?:'s| is| are)\b[^:\n]{0,80}|"
    r"(?:the |an? )?(?:\w+ ){0,2}summary(?: of [^:\n]{0,60})?)\W*(?::|\n)\W*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```\w*\n?")
_GIST_LINE = re.compile(r"^\W*gist\W*:\s*(.+)$", re.IGNORECASE)
_INPUT_LINE = re.compile(r"\[\d+\] \d\d:\d\d ")
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|unable|not able|afraid)|sorry\b|i (?:can't|cannot|can not|won't|am not able)\b|"
    r"unfortunately, i\b|as an? (?:ai|language model|assistant)\b|i don't have (?:access|enough)|"
    r"there (?:is|are) no (?:new )?(?:turns?|conversation|text|content))",
    re.IGNORECASE,
)
_ERROR_TEXT = re.compile(
    r"^\W*(?:error\b|exception\b|traceback\b|internal server error|bad gateway|service unavailable|"
    r"rate limit|too many requests|quota|timed? ?out|\d{3} (?:error|bad|internal|service|gateway)|<!doctype|<html|"
    r"(?:the )?(?:conversation|text|input) (?:is |was )?too long|invalid (?:api|request)|\{\"error)",
    re.IGNORECASE,
)
_REPLY_TO_THE_TURNS = re.compile(
    r"^\W*(?:sure\b|of course\b|certainly\b|absolutely\b|hello\b|hi\b|hey\b|thanks?\b|great (?:question|idea)|"
    r"no problem|you're welcome|good (?:question|idea)|happy to|i(?:'d| would) (?:recommend|suggest|love|say)|"
    r"i (?:think|recommend|suggest|hope|believe) |my (?:recommendation|suggestion|advice)|you (?:should|could|can) )|"
    r"\b(?:let me know|how can i (?:help|assist)|feel free to|would you like me to|is there anything else|"
    r"here(?:'s| is) (?:a|the) (?:summary|json))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ModelFact:
    """A fact as the model wrote it. `supersedes`: the numbers that the replaced facts have in the prompt."""

    turn_seq: int
    kind: FactKind
    text: str
    supersedes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A parsed answer. `gist` is empty if the answer had none. `structured`: whether the answer was JSON."""

    gist: str
    facts: tuple[ModelFact, ...]
    structured: bool


def parse_answer(answer: CompletionAnswer, turns: Sequence[Turn], *, labels: Collection[str] = ()) -> ModelAnswer:
    """Return the gist and facts of an answer about these turns. `labels`: section headings of the prompt to remove.

    Raises SummaryRefusedError for an answer that is blank, cut off, an error, a refusal, a reply to the conversation, a
    copy of the prompt, or unreadable.
    """
    text = answer.text.strip()
    if not text:
        raise SummaryRefusedError("The model gave a blank answer.")
    if answer.finish_reason == "length":
        raise SummaryRefusedError("The model's answer was cut off at its length limit.")
    if answer.finish_reason == "content_filter":
        raise SummaryRefusedError("The model's provider withheld the answer.")
    if _ERROR_TEXT.search(text):
        raise SummaryRefusedError("The model answered with an error text.")
    parsed = _from_json(text)
    if parsed is None:
        # If the answer is not JSON, the whole text is checked here. Of a JSON answer, only the gist is checked, below.
        _refuse_gist(text, turns)
        parsed = _from_lines(text.splitlines())
    parsed = replace(parsed, gist=_without_labels(parsed.gist, labels))
    if parsed.gist:
        _refuse_gist(parsed.gist, turns)
    if not parsed.gist and not parsed.facts:
        raise SummaryRefusedError("The model's answer has neither a gist nor facts.")
    return parsed


def parse_paragraph(answer: CompletionAnswer, turns: Sequence[Turn], *, labels: Collection[str] = ()) -> str:
    """Return the model's paragraph as whole sentences on one line, without a heading and without `labels`.

    Raises SummaryRefusedError as `parse_answer` does, except for an answer that was cut off, because the caller then
    asks the model again.
    """
    text = _without_labels(_without_heading(answer.text.strip()), labels)
    if not text:
        raise SummaryRefusedError("The model gave a blank answer.")
    if answer.finish_reason == "content_filter":
        raise SummaryRefusedError("The model's provider withheld the answer.")
    if text.startswith("{") or not words(text):
        raise SummaryRefusedError("The model's answer is no prose.")
    _refuse_gist(text, turns)
    found = sentences(text)
    if answer.finish_reason == "length" and not ends_a_sentence(found[-1]):
        return " ".join(found)
    return " ".join([*found[:-1], as_sentence(found[-1], len(found[-1]) + 1)])


def _without_heading(text: str) -> str:
    """Remove a first line, or words before a colon, if they only announce the summary."""
    text = _FENCE.sub("", text).strip()
    return _HEADING.sub("", text, count=1).strip()


def _without_labels(text: str, labels: Collection[str]) -> str:
    """Remove the prompt's section headings, which small models copy into answers. The text under the headings stays."""
    if not labels:
        return text
    either = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.sub(rf"(?:^|(?<=\W))(?:{either})(?: \([^)]*\))?\s*:\s*", "", text, flags=re.IGNORECASE).strip()


def _refuse_gist(gist: str, turns: Sequence[Turn]) -> None:
    if _ERROR_TEXT.search(gist):
        raise SummaryRefusedError("The model wrote an error text for a summary.")
    if _REFUSAL.search(gist):
        raise SummaryRefusedError("The model refused to summarise.")
    if _REPLY_TO_THE_TURNS.search(gist):
        raise SummaryRefusedError("The model replied to the conversation instead of summarising it.")
    if len(_INPUT_LINE.findall(gist)) > 1 or _copies(gist, turns):
        raise SummaryRefusedError("The model copied its input.")


def _copies(gist: str, turns: Iterable[Turn]) -> bool:
    said = words(gist)
    if len(said) < _COPIED_WORDS:
        return False
    runs = {tuple(said[at : at + _COPIED_WORDS]) for at in range(len(said) - _COPIED_WORDS + 1)}
    spoken = [word for turn in turns for part in turn.parts for word in words(part.text)]
    return any(tuple(spoken[at : at + _COPIED_WORDS]) in runs for at in range(len(spoken) - _COPIED_WORDS + 1))


def _from_json(text: str) -> ModelAnswer | None:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        # strict=False accepts raw line breaks in strings, which small models write.
        answer = json.loads(text[start : end + 1], strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    gist = answer.get("gist")
    listed = answer.get("facts")
    facts = [_json_fact(each) for each in listed] if isinstance(listed, list) else []
    return ModelAnswer(
        gist=plain(gist) if isinstance(gist, str) else "",
        facts=tuple(fact for fact in facts if fact is not None),
        structured=True,
    )


def _json_fact(written: object) -> ModelFact | None:
    if not isinstance(written, dict):
        return None
    seq, text, kind = written.get("turn_seq"), written.get("text"), _kind(written.get("kind"))
    if not isinstance(seq, int) or isinstance(seq, bool) or not isinstance(text, str) or not text.strip():
        return None
    replaced = written.get("supersedes")
    numbers = tuple(each for each in replaced if type(each) is int) if isinstance(replaced, list) else ()
    return ModelFact(seq, kind, plain(text), numbers)


def _from_lines(lines: Iterable[str]) -> ModelAnswer:
    gist = ""
    facts: list[ModelFact] = []
    for line in lines:
        if (fact := _LINE.match(line)) is not None:
            facts.append(ModelFact(int(fact[1]), _kind(fact[2]), plain(fact[3])))
        elif not gist and (found := _GIST_LINE.match(line)) is not None:
            gist = plain(found[1])
    return ModelAnswer(gist, tuple(facts), structured=False)


def _kind(written: object) -> FactKind:
    """Return the kind of this name; an unknown name is `other`, since the fact may still be good."""
    try:
        return FactKind(str(written).strip().casefold())
    except ValueError:
        return FactKind.OTHER

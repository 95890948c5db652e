"""Parses a model's answer to a summarising prompt and refuses unusable answers. Pure.

Reads JSON (alone, in a code fence, or with text around it), and otherwise plain lines. The error names only the kind of
problem, because the answer may contain what people said.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from compaction.errors import SummaryRefusedError
from compaction.language.text import as_sentence, ends_a_sentence, plain, sentences, words
from compaction.model import FactKind, Importance
from compaction.untrusted_text import without_copied_marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from compaction.model import Turn
    from compaction.ports import CompletionAnswer

# If a gist has this many words in a row from one turn, it is a copy of that turn.
_COPIED_WORDS = 30
# Spaces belong to the fields, which are stripped later. Looked for apart from them, a row of padded empty fields that
# is no fact would be tried in as many ways as the product of their lengths.
_FACT_LINE = re.compile(
    r"^\W*(?:turns?\s*)?(?P<turns>\d+(?:[\s,;]+\d+)*)\]?\s*\|(?P<subject>[^|]*)\|(?P<kind>[^|]*)\|"
    r"(?P<importance>[^|]*)\|(?P<text>[^|]+)(?:\|(?P<supersedes>[^|]*))?$",
    re.IGNORECASE,
)
# A heading before the summary: '**Updated summary**', 'The summary now:', 'Here is the summary of the conversation:'.
_HEADING = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|okay)\W+)?(?:here(?:'s| is| are)\b[^:\n]{0,80}|"
    r"(?:the |an? )?(?:\w+ ){0,2}summary(?: now| so far)?(?: of [^:\n]{0,60})?)\W*(?::|\n)\W*",
    re.IGNORECASE,
)
# A longer number is no turn.
_DIGITS = 10
_IMPORTANCE: Final[dict[str, Importance]] = {"1": 1, "2": 2, "3": 3}
_FENCE = re.compile(r"```\w*\n?")
_TEXT_LINE = re.compile(r"^\W*(gist|paragraph|facts)\W*:\s*(.+)$", re.IGNORECASE)
_LABEL = re.compile(r"\d+[a-z]*")
_INPUT_LINE = re.compile(r"\[\d+\] \d\d:\d\d ")
# These open a text that is no summary, but only if its first sentence names none of the speakers: 'Sorry, Bob said.'
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|unable|not able|afraid)|"
    r"(?:sorry\W+(?:but )?)?i (?:can't|cannot|can not|won't|am not able)\b|"
    r"unfortunately, i\b|as an? (?:ai|language model|assistant)\b|i don't have (?:access|enough)|"
    r"there (?:is|are) no (?:new )?(?:turns?|conversation|text|content))",
    re.IGNORECASE,
)
_ERROR_TEXT = re.compile(
    r"^\W*(?:(?:error|exception)\W*(?::|\d|$)|traceback \(|internal server error|bad gateway|service unavailable|"
    r"rate limit (?:reached|exceeded)|too many requests|quota exceeded|timed? ?out\W*$|"
    r"\d{3} (?:error|bad|internal|service|gateway)|<!doctype|<html|"
    r"(?:the )?(?:conversation|text|input) (?:is |was )?too long|invalid (?:api|request)|\{\"error)",
    re.IGNORECASE,
)
_REPLY_TO_THE_TURNS = re.compile(
    r"^\W*(?:sure\b|of course\b|certainly\b|absolutely\b|hello\b|hi\b|hey\b|thanks?\b|great (?:question|idea)|"
    r"no problem|you're welcome|good (?:question|idea)|happy to|i(?:'d| would) (?:recommend|suggest|love|say)|"
    r"i (?:think|recommend|suggest|hope|believe) |my (?:recommendation|suggestion|advice)|you (?:should|could|can) )",
    re.IGNORECASE,
)
# A sentence that speaks to the reader. Within a sentence it is what somebody said to somebody.
_SPEAKS_TO_THE_READER = re.compile(
    r"(?:^|[.!?]\s)\W{0,4}(?:let me know|how can i (?:help|assist)|feel free to|would you like me to|"
    r"is there anything else|here(?:'s| is) (?:a|the) (?:summary|json))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ModelFact:
    """A fact as the model wrote it. `supersedes`: labels of the known facts in its prompt."""

    turns: tuple[int, ...]
    kind: FactKind
    text: str
    subject: str = ""
    importance: Importance = 2
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A parsed answer. `gist` and `paragraph` are empty if there were none or they can't be used, and
    `paragraph_problem` says why. `refs`: labels, of a chapter's answer."""

    gist: str
    facts: tuple[ModelFact, ...] = ()
    paragraph: str = ""
    paragraph_problem: str = ""
    refs: tuple[str, ...] = ()


def parse_answer(answer: CompletionAnswer, turns: Sequence[Turn], *, labels: Collection[str] = ()) -> ModelAnswer:
    """Return gist, facts and paragraph of an answer about these turns. `labels`: headings of the prompt, removed.

    Raises SummaryRefusedError for an answer that is blank, cut off, an error, a refusal, a reply to the conversation,
    a copy of the prompt, or unreadable. A paragraph alone that is one of these leaves the gist and the facts.
    """
    text = answer.text.strip()
    if not text:
        raise SummaryRefusedError("The model gave a blank answer.")
    if answer.finish_reason == "length":
        raise SummaryRefusedError("The model's answer was cut off at its length limit.")
    if answer.finish_reason == "content_filter":
        raise SummaryRefusedError("The model's provider withheld the answer.")
    if _opens_with(_ERROR_TEXT, text, turns):
        raise SummaryRefusedError("The model answered with an error text.")
    parsed = _from_json(text) or _from_lines(without_copied_marks(text).splitlines())
    if not parsed.gist and not parsed.facts:
        # There is nothing else to judge it by.
        _refuse_prose(text, turns)
        raise SummaryRefusedError("The model's answer has neither a gist nor facts.")
    gist = _without_labels(parsed.gist, labels)
    try:
        _refuse_prose(gist, turns)
    except SummaryRefusedError:
        if not parsed.facts:
            raise
        gist = ""
    try:
        paragraph, problem = _prose(parsed.paragraph, turns, labels), ""
    except SummaryRefusedError as refused:
        paragraph, problem = "", str(refused)
    return replace(parsed, gist=gist, paragraph=paragraph, paragraph_problem=problem)


def parse_paragraph(answer: CompletionAnswer, turns: Sequence[Turn], *, labels: Collection[str] = ()) -> str:
    """Return the model's paragraph as whole sentences on one line, without a heading and without `labels`.

    The answer is prose, or JSON with a `paragraph`. Raises SummaryRefusedError as `parse_answer` does, but not for an
    answer that was cut off: the caller asks again then.
    """
    if not answer.text.strip():
        raise SummaryRefusedError("The model gave a blank answer.")
    if answer.finish_reason == "content_filter":
        raise SummaryRefusedError("The model's provider withheld the answer.")
    written = _from_json(answer.text)
    text = without_copied_marks(answer.text) if written is None or not written.paragraph else written.paragraph
    if text.lstrip().startswith("{"):
        raise SummaryRefusedError("The model's answer is not prose.")
    return _prose(text, turns, labels, cut=answer.finish_reason == "length")


def _prose(text: str, turns: Sequence[Turn], labels: Collection[str], *, cut: bool = False) -> str:
    text = _without_labels(_without_heading(text), labels)
    if not words(text):
        raise SummaryRefusedError("The model wrote no summary.")
    _refuse_prose(text, turns)
    found = sentences(text)
    if cut and not ends_a_sentence(found[-1]):
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


def _refuse_prose(gist: str, turns: Sequence[Turn]) -> None:
    if _opens_with(_ERROR_TEXT, gist, turns):
        raise SummaryRefusedError("The model wrote an error text for a summary.")
    if _opens_with(_REFUSAL, gist, turns):
        raise SummaryRefusedError("The model refused to summarise.")
    if _opens_with(_REPLY_TO_THE_TURNS, gist, turns) or _SPEAKS_TO_THE_READER.search(gist):
        raise SummaryRefusedError("The model replied to the conversation instead of summarising it.")
    if len(_INPUT_LINE.findall(gist)) > 1 or _copies(gist, turns):
        raise SummaryRefusedError("The model copied its input.")


def _opens_with(words_of_a_reply: re.Pattern[str], text: str, turns: Sequence[Turn]) -> bool:
    """Return whether a text opens with such words, and its first sentence names nobody who spoke."""
    if words_of_a_reply.search(text) is None:
        return False
    speakers = {word for turn in turns for part in turn.parts for word in words(part.speaker)}
    first = {word.removesuffix("'s") for sentence in sentences(text)[:1] for word in words(sentence)}
    return speakers.isdisjoint(first)


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
    listed = answer.get("facts")
    items = listed if isinstance(listed, list) else []
    facts = [_json_fact(each) for each in items if isinstance(each, dict)]
    return ModelAnswer(
        gist=plain(_text(answer.get("gist"))),
        facts=tuple(fact for fact in facts if fact is not None),
        paragraph=plain(_text(answer.get("paragraph"))),
        refs=_json_labels(listed),
    )


def _json_fact(written: Mapping[str, object]) -> ModelFact | None:
    text = plain(_text(written.get("text")))
    cited = written.get("turns")
    turns = _numbers(cited if isinstance(cited, list) else [cited])
    if not turns or not text:
        return None
    return ModelFact(
        turns,
        _kind(written.get("kind")),
        text,
        plain(_text(written.get("subject"))),
        _importance(written.get("importance")),
        _json_labels(written.get("supersedes")),
    )


def _text(written: object) -> str:
    return without_copied_marks(written) if isinstance(written, str) else ""


def _numbers(written: Iterable[object]) -> tuple[int, ...]:
    """Return the turn numbers, as numbers or as digits in a string, each once and in their order."""
    found = (
        each if type(each) is int else int(each)
        for each in written
        if type(each) is int or (isinstance(each, str) and each.isascii() and each.isdigit() and len(each) < _DIGITS)
    )
    return tuple(dict.fromkeys(found))


def _json_labels(written: object) -> tuple[str, ...]:
    items = written if isinstance(written, list) else []
    return tuple(str(each).strip() for each in items if type(each) is int or isinstance(each, str))


def _importance(written: object) -> Importance:
    """Return the importance; one in the middle if it is none."""
    return _IMPORTANCE.get(str(written).strip(), 2)


def _from_lines(lines: Iterable[str]) -> ModelAnswer:
    texts: dict[str, str] = {}
    facts: list[ModelFact] = []
    for line in lines:
        if (fact := _FACT_LINE.match(line)) is not None:
            turns = _numbers(re.findall(r"\d+", fact["turns"]))
            superseded = tuple(_LABEL.findall(fact["supersedes"] or ""))
            text = plain(fact["text"])
            if turns and text:
                facts.append(
                    ModelFact(
                        turns,
                        _kind(fact["kind"]),
                        text,
                        plain(fact["subject"]),
                        _importance(fact["importance"]),
                        superseded,
                    )
                )
        elif (found := _TEXT_LINE.match(line)) is not None:
            texts.setdefault(found[1].casefold(), plain(found[2]))
    return ModelAnswer(
        texts.get("gist", ""),
        tuple(facts),
        texts.get("paragraph", ""),
        refs=tuple(_LABEL.findall(texts.get("facts", ""))),
    )


def _kind(written: object) -> FactKind:
    """Return the kind of this name; an unknown name is `other`, since the fact may still be good."""
    try:
        return FactKind(str(written).strip().casefold())
    except ValueError:
        return FactKind.OTHER

"""Makes the requests: for one batch (gist, facts and paragraph), for a paragraph alone, and for a chapter.

The texts are files under `prompts/` (`prompt_texts`). Everything that came from people, screens or names stands in the
user message, marked as data; the system message is the same for every conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.text import plain, sentences
from compaction.model import FactKind
from compaction.ports import CompletionRequest
from compaction.summary.day import format_day
from compaction.summary.paragraph_checks import CheckedText, Fault
from compaction.summary.port import CHAPTER_FACTS, MAX_FACTS, KnownFact
from compaction.summary.prompt_data import (
    format_chapters,
    format_known,
    format_notes,
    format_parts,
    format_since,
    format_turns,
    marked,
)
from compaction.summary.prompt_texts import CHAPTER_VERSION, LEDGER_VERSION, RECURSIVE_VERSION
from compaction.summary.required_facts import further_facts, required_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import tzinfo

    from compaction.model import Fact, Turn
    from compaction.summary.port import ChapterRequest, FoldRequest
    from compaction.summary.prompt_texts import PromptTexts

# A small model confuses more facts than this; a strong one may answer more.
_ASKED_FACTS = 8
# The prompt asks for fewer characters than are allowed, because models overshoot.
_ASKED_GIST_CHARS = 250
_ASKED_FACT_CHARS = 160
_ASKED_CHAPTER_GIST_CHARS = 350
REQUESTED_CHARS = 1_170
# Below 1,200 characters: English has some 4.4 characters a token.
PARAGRAPH_TOKENS = 270
# What is told of older facts: 3,000 characters that a summary must have or that belong in it, and 2,000 of others that
# the turns may close. Of a chapter it is more, because its summary is made of them.
_KNOWN_CHARS = 5_000
_CHAPTER_KNOWN_CHARS = 8_000
# A known fact that shares so many words with the new turns may be corrected or closed by them.
_LEAST_SHARED = 2
_NO_SECTIONS = dict.fromkeys(("previous", "chapters", "known", "notes", "before", "day", "turns"), "")
# What was said so few turns ago is often answered, corrected or done in the next ones.
_RECENT = 20
# Turns shown before the batch.
_BEFORE = 4
# What the form of a JSON answer says of the paragraph. It is left out where none is wanted, and so is its price.
_PARAGRAPH_OF_JSON = re.compile(r',\s*"paragraph": "\.\.\."|^paragraph:.*\n?', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to the model, and the known facts that it shows, which alone an answer may name."""

    request: CompletionRequest
    shown: tuple[KnownFact, ...]


class LedgerPrompts:
    """The prompt of the ledger strategy. `version` identifies its texts; `zone`: of the times that it tells."""

    def __init__(self, texts: PromptTexts, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._system, self._user = texts.halves(LEDGER_VERSION)
        self._output = {form: texts.whole(f"{LEDGER_VERSION}.{form}.txt") for form in ("json", "lines")}
        self.version = texts.version(LEDGER_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the section headings, which must not appear in an answer."""
        return self._user.labels

    def write(self, fold: FoldRequest, *, structured: bool, max_output_tokens: int) -> Prompt:
        """Return the request for one batch. `structured` asks for JSON, else for plain lines."""
        shown = _shown_in(fold)
        limits = {
            "gist_chars": _ASKED_GIST_CHARS,
            "fact_chars": _ASKED_FACT_CHARS,
            "max_facts": _ASKED_FACTS,
            "paragraph_chars": REQUESTED_CHARS,
        }
        output = self._output["json" if structured else "lines"].substitute(limits)
        if structured and not fold.wants_paragraph:
            output = _PARAGRAPH_OF_JSON.sub("", output)
        schema = _ledger_schema(fold.turns, shown, paragraph=fold.wants_paragraph)
        return Prompt(
            CompletionRequest(
                system=self._system.substitute(limits, output=output),
                prompt=self._user.fill({**_sections(fold, shown, self._zone), **limits}),
                max_output_tokens=max_output_tokens,
                schema=schema if structured else None,
            ),
            shown,
        )


class RecursivePrompts:
    """The prompt for a paragraph alone: the recursive strategy, and a second attempt at any paragraph."""

    def __init__(self, texts: PromptTexts) -> None:
        self._system, self._user = texts.halves(RECURSIVE_VERSION)
        self.version = texts.version(RECURSIVE_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the section headings, which must not appear in an answer."""
        return self._user.labels

    def write(
        self, sections: Mapping[str, str], *, max_output_tokens: int, fault: Fault | None = None, attempt: str = ""
    ) -> CompletionRequest:
        """Return the request for one paragraph about `sections` (of `fold_sections` or `chapter_sections`).

        `fault`: what is wrong with the last `attempt`, if there was one.
        """
        correction = "" if fault is None else f"{fault.correction}\n{marked('what is wrong', fault.material)}".strip()
        told = _NO_SECTIONS | dict(sections)
        told |= {
            "attempt": marked("your last attempt", attempt),
            "correction": correction,
        }
        return CompletionRequest(
            system=self._system.substitute(paragraph_chars=REQUESTED_CHARS),
            prompt=self._user.fill(told | {"paragraph_chars": REQUESTED_CHARS}),
            max_output_tokens=min(max_output_tokens, _cap_tokens("".join(sections.values()))),
        )


class ChapterPrompts:
    """The prompt of a chapter. `version` identifies its texts."""

    def __init__(self, texts: PromptTexts) -> None:
        self._system, self._user = texts.halves(CHAPTER_VERSION)
        self._output = {form: texts.whole(f"{CHAPTER_VERSION}.{form}.txt") for form in ("json", "lines")}
        self.version = texts.version(CHAPTER_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the section headings, which must not appear in an answer."""
        return self._user.labels

    def write(self, chapter: ChapterRequest, *, structured: bool, max_output_tokens: int) -> Prompt:
        """Return the request for one chapter and the paragraph."""
        limits = {
            "gist_chars": _ASKED_CHAPTER_GIST_CHARS,
            "fact_chars": _ASKED_FACT_CHARS,
            "max_facts": CHAPTER_FACTS,
            "paragraph_chars": REQUESTED_CHARS,
        }
        parts, standing = _labelled_parts(chapter)
        told = {
            "chapters": format_chapters(chapter.chapters),
            "parts": format_parts(chapter, parts),
            "since": format_since(chapter),
            "known": format_known(_shown_at_end(chapter, standing), standing, previous=None),
        }
        of_parts = tuple(fact for facts in parts for fact in facts)
        output = self._output["json" if structured else "lines"].substitute(limits)
        return Prompt(
            CompletionRequest(
                system=self._system.substitute(limits, output=output),
                prompt=self._user.fill({**told, **limits}),
                max_output_tokens=max_output_tokens,
                schema=_chapter_schema(of_parts) if structured else None,
            ),
            of_parts,
        )


def _shown_in(fold: FoldRequest) -> tuple[KnownFact, ...]:
    """Return the facts that the prompt of a batch shows: what the summary lacks comes before what it tells."""
    told = CheckedText(fold.previous or "")
    return shown_facts(fold.known, fold.turns, prefer=lambda fact: not told.tells(fact))


def _shown_at_end(chapter: ChapterRequest, standing: Sequence[KnownFact]) -> tuple[KnownFact, ...]:
    """Return the facts that a chapter's prompt shows: what the summary tells now comes first, since it shall stay."""
    told = CheckedText(chapter.summary)
    return shown_facts(standing, (), prefer=told.tells, max_chars=_CHAPTER_KNOWN_CHARS)


def shown_facts(
    known: Sequence[KnownFact],
    turns: Sequence[Turn],
    *,
    prefer: Callable[[Fact], bool] = lambda _: False,
    max_chars: int = _KNOWN_CHARS,
) -> tuple[KnownFact, ...]:
    """Return the standing facts that a prompt shows, in the order of talk, each with a label of its own.

    Chosen within `max_chars`: those that the summary must have, those that belong in it, those of the last turns and
    important ones that the new turns may correct or close, then by importance. Among equals come those to `prefer`,
    then open and new ones.
    """
    labelled = with_labels(known)
    said = frozenset(
        each for turn in turns for part in turn.parts for one in sentences(part.text) for each in meaning(one).about
    )
    standing = [each.fact for each in labelled]
    musts, belonging = set(required_facts(standing)), set(further_facts(standing))
    recent = turns[0].seq - _RECENT if turns else None

    def rank(place: int) -> tuple[bool, bool, bool, int, bool, bool, bool, int]:
        fact = labelled[place].fact
        close = len(meaning(fact.attributed_text).about & said) >= _LEAST_SHARED
        return (
            fact in musts,
            fact in belonging,
            (close and fact.importance > 1) or (recent is not None and fact.turns[-1] >= recent),
            fact.importance,
            close,
            prefer(fact),
            fact.kind is FactKind.OPEN,
            place,
        )

    room = max_chars
    chosen: set[int] = set()
    for place in sorted(range(len(labelled)), key=rank, reverse=True):
        room -= len(labelled[place].fact.attributed_text)
        if room < 0:
            break
        chosen.add(place)
    return tuple(labelled[place] for place in sorted(chosen))


def with_labels(known: Sequence[KnownFact]) -> tuple[KnownFact, ...]:
    """Return the facts with unique labels: the number of the first turn and, for its later facts, a letter."""
    taken: set[str] = set()
    found: list[KnownFact] = []
    for each in known:
        label, number = each.label, 0
        while not label or label in taken:
            label = f"{each.fact.turn_seq}{_letters(number)}"
            number += 1
        taken.add(label)
        found.append(replace(each, label=label))
    return tuple(found)


def _letters(number: int) -> str:
    """Return '' for 0, 'b' for 1, … 'z' for 25, then 'zb' and so on."""
    return "z" * (number // 25) + ("" if number % 25 == 0 else chr(ord("a") + number % 25))


def fold_sections(
    fold: FoldRequest, zone: tzinfo = UTC, *, added: Sequence[Fact] = (), superseded: Collection[str] = ()
) -> dict[str, str]:
    """Return what a request for a paragraph alone tells of a batch.

    `added` and `superseded`: what is certain of the same fold already, its facts and the refs that they supersede.
    """
    known = (
        *(each for each in fold.known if each.ref not in superseded),
        *(KnownFact(f"new#{place}", fact) for place, fact in enumerate(added)),
    )
    after = replace(fold, known=known)
    return _sections(after, _shown_in(after), zone)


def chapter_sections(chapter: ChapterRequest) -> dict[str, str]:
    """Return what a request for a paragraph alone tells of a chapter."""
    parts, standing = _labelled_parts(chapter)
    stretches = (format_chapters(chapter.chapters), format_parts(chapter, parts), format_since(chapter))
    return {
        "chapters": "\n".join(filter(None, stretches)),
        "known": format_known(_shown_at_end(chapter, standing), standing, previous=None),
    }


def _labelled_parts(chapter: ChapterRequest) -> tuple[list[list[KnownFact]], list[KnownFact]]:
    """Return the facts of each part and the standing ones, a fact with the same label in both."""
    every = {each.ref: each for part in chapter.parts for each in part.facts}
    every |= {each.ref: each for each in chapter.known}
    labelled = {each.ref: each for each in with_labels(tuple(every.values()))}
    return [[labelled[each.ref] for each in part.facts] for part in chapter.parts], [
        labelled[each.ref] for each in chapter.known
    ]


def _sections(fold: FoldRequest, shown: Sequence[KnownFact], zone: tzinfo) -> dict[str, str]:
    """Return what a user message tells of the conversation, each part marked as data; an empty part stays empty."""
    return {
        "previous": marked("the summary so far", plain(fold.previous or "")),
        "chapters": format_chapters(fold.chapters),
        "known": format_known(shown, fold.known, previous=fold.previous or ""),
        "notes": marked("shared screens", format_notes(fold.notes, zone)),
        "before": marked("the turns before", "\n".join(format_turns(fold.before[-_BEFORE:], zone))),
        "day": format_day(fold.turns, zone),
        "turns": marked("the new turns", "\n".join(format_turns(fold.turns, zone))),
    }


def _ledger_schema(turns: Sequence[Turn], shown: Sequence[KnownFact], *, paragraph: bool) -> dict[str, object]:
    """Return the JSON schema of an answer: it may cite only these turns and supersede only facts that are shown.

    It limits no text's length: llama.cpp refuses the grammar for `maxLength` 1200, and the answer is checked anyway.
    """
    spoken = [turn.seq for turn in turns if turn.parts]
    fact = _object(
        {
            "turns": {
                "type": "array",
                "items": {"type": "integer", **_one_of(spoken)},
                "minItems": 1,
                "maxItems": 3,
            },
            "subject": {"type": "string"},
            "kind": {"type": "string", "enum": [kind.value for kind in FactKind]},
            "text": {"type": "string"},
            "importance": {"type": "integer", "enum": [1, 2, 3]},
            "supersedes": _labels(shown, most=MAX_FACTS),
        }
    )
    most = min(_ASKED_FACTS, MAX_FACTS) if spoken else 0
    properties: dict[str, object] = {
        "gist": {"type": "string"},
        "facts": {"type": "array", "items": fact, "maxItems": most},
    }
    return _object(properties | ({"paragraph": {"type": "string"}} if paragraph else {}))


def _chapter_schema(facts: Sequence[KnownFact]) -> dict[str, object]:
    return _object(
        {
            "gist": {"type": "string"},
            "facts": _labels(facts, most=CHAPTER_FACTS),
            "paragraph": {"type": "string"},
        }
    )


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _labels(shown: Sequence[KnownFact], *, most: int) -> dict[str, object]:
    names = _one_of([each.label for each in shown])
    return {"type": "array", "items": {"type": "string", **names}, "maxItems": most if shown else 0}


def _one_of(allowed: Sequence[object]) -> dict[str, object]:
    # An empty `enum` is no valid schema.
    return {"enum": list(allowed)} if allowed else {}


def _cap_tokens(text: str) -> int:
    """Return the token limit for an answer in the script of this text.

    Other scripts have fewer characters per token, roughly in proportion to their bytes per character.
    """
    return round(PARAGRAPH_TOKENS * len(text.encode(errors="replace")) / max(1, len(text)))

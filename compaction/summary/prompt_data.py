"""Writes what a prompt shows of a conversation: turns, notes, facts and gists, each marked as data. Pure."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from compaction.clock_time import format_clock_time
from compaction.language.text import as_sentence, plain
from compaction.model import NoteReason, TurnKind
from compaction.notes import condense_notes
from compaction.summary.paragraph_checks import CheckedText
from compaction.summary.required_facts import further_facts, required_facts
from compaction.untrusted_text import mark_as_data

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.model import Chapter, Note, Turn
    from compaction.summary.port import ChapterPart, ChapterRequest, KnownFact

# What is told of earlier stretches: about a thousand tokens.
_CHAPTERS_CHARS = 4_000
_LEAST_CHAPTER_CHARS = 120
# Gists of what came after a chapter. That is little, unless chapters are made anew after somebody was forgotten.
_SINCE_CHARS = 4_000
# Why a note was taken, for a model.
_WHY = {
    NoteReason.SHARE_START: "sharing began",
    NoteReason.CUT: "the picture changed",
    NoteReason.TEXT: "new text",
    NoteReason.INTERVAL: "regular look",
    NoteReason.ASKED: "somebody asked",
}


def format_turns(turns: Sequence[Turn], zone: tzinfo = UTC) -> list[str]:
    """Return one line per turn, uncut: `[12] 21:04 Ada: … / Bob: …`. Forgotten turns have no line.

    The companion's own turns are marked so, because the model does not know its name.
    """
    return [
        f"[{turn.seq}] {format_clock_time(turn.started_at, zone)} "
        + " / ".join(f"{plain(part.speaker)}{_whose(turn)}: {plain(part.text)}" for part in turn.parts)
        for turn in turns
        if turn.parts
    ]


def _whose(turn: Turn) -> str:
    return " (the companion)" if turn.kind is TurnKind.ASSISTANT else ""


def format_notes(notes: Sequence[Note], zone: tzinfo = UTC) -> str:
    """Return screen notes as text of at most 400 characters, with when, whose screen and why."""
    return "; ".join(
        f"{format_clock_time(note.at, zone)} {plain(note.who)}'s screen ({_WHY[note.why]}): {plain(note.what)}"
        for note in condense_notes(notes)
    )


def marked(source: str, text: str) -> str:
    """Return a text of people, screens or names as data; empty if there is none."""
    return mark_as_data(source, text) if text else ""


def format_chapters(chapters: Sequence[Chapter]) -> str:
    """Return a line for each chapter. The more there are, the shorter each."""
    share = max(_LEAST_CHAPTER_CHARS, _CHAPTERS_CHARS // max(1, len(chapters)))
    lines = [f"turns {each.start} to {each.end - 1}: {as_sentence(each.gist, share)}" for each in chapters]
    return marked("gists of earlier stretches", "\n".join(lines))


def format_known(shown: Sequence[KnownFact], known: Sequence[KnownFact], *, previous: str | None) -> str:
    """Return the facts in groups, the most important first. `previous` None: nothing is marked as lacking.

    Only facts of importance 3 are marked: a summary rightly lacks most of the others.
    """
    standing = [each.fact for each in known]
    groups = {
        "must be in the summary": set(required_facts(standing)),
        "belongs in the summary": set(further_facts(standing)),
        **{f"importance {each}": {fact for fact in standing if fact.importance == each} for each in (3, 2, 1)},
    }
    left = list(shown)
    told = None if previous is None else CheckedText(previous)
    lines: list[str] = []
    for heading, facts in groups.items():
        group = [each for each in left if each.fact in facts]
        left = [each for each in left if each.fact not in facts]
        if group:
            lines += [f"{heading}:", *(_fact_line(each, told) for each in group)]
    return marked("known facts", "\n".join(lines))


def _fact_line(known: KnownFact, told: CheckedText | None = None) -> str:
    lacking = "*" if told is not None and known.fact.importance == 3 and not told.tells(known.fact) else ""
    return f"{known.label}{lacking} ({known.fact.kind.value}) {plain(known.fact.attributed_text)}"


def format_parts(chapter: ChapterRequest, facts: Sequence[Sequence[KnownFact]]) -> str:
    """Return each part with its gist and facts."""
    return "\n".join(
        marked(_stretch(part), "\n".join([plain(part.gist), *map(_fact_line, its_facts)]))
        for part, its_facts in zip(chapter.parts, facts, strict=True)
    )


def _stretch(part: ChapterPart) -> str:
    alone = f"shared screens before turn {part.start}"
    return f"turns {part.start} to {part.end - 1}" if part.start < part.end else alone


def shown_since(chapter: ChapterRequest) -> list[str]:
    """Return the gists of the segments after a chapter that a prompt shows: the more, the shorter each, and only the
    newest.
    """
    share = max(_LEAST_CHAPTER_CHARS, _SINCE_CHARS // max(1, len(chapter.since)))
    return [as_sentence(plain(each), share) for each in chapter.since[-(_SINCE_CHARS // share) :]]


def format_since(chapter: ChapterRequest) -> str:
    """Return the gists of `shown_since`, a line for each."""
    return marked("gists of what came after", "\n".join(shown_since(chapter)))

"""Writes what a prompt shows of a conversation: turns, notes, facts, gists and the day, each marked as data. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from compaction.language.text import as_sentence, plain
from compaction.model import NoteReason, TurnKind
from compaction.notes import condense_notes
from compaction.summary.paragraph_checks import ToldText, must_stay
from compaction.untrusted_text import mark_as_data

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.model import Chapter, Note, Turn
    from compaction.summary.port import ChapterRequest, KnownFact

# What is told of earlier stretches: about a thousand tokens.
_CHAPTERS_CHARS = 4_000
_LEAST_CHAPTER_CHARS = 120
# Why a note was taken, for a model.
_WHY = {
    NoteReason.SHARE_START: "sharing began",
    NoteReason.CUT: "the picture changed",
    NoteReason.TEXT: "new text",
    NoteReason.INTERVAL: "regular look",
    NoteReason.ASKED: "somebody asked",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip


def format_turns(turns: Sequence[Turn], zone: tzinfo = UTC) -> list[str]:
    """Return one line per turn, uncut: `[12] 21:04 Ada: … / Bob: …`. Forgotten turns have no line.

    The companion's own turns are marked so, because the model does not know its name.
    """
    return [
        f"[{turn.seq}] {_clock(turn.started_at, zone)} "
        + " / ".join(f"{plain(part.speaker)}{_whose(turn)}: {plain(part.text)}" for part in turn.parts)
        for turn in turns
        if turn.parts
    ]


def _whose(turn: Turn) -> str:
    return " (the companion)" if turn.kind is TurnKind.ASSISTANT else ""


def format_notes(notes: Sequence[Note], zone: tzinfo = UTC) -> str:
    """Return screen notes as text of at most 400 characters, with when, whose screen and why."""
    return "; ".join(
        f"{_clock(note.at, zone)} {plain(note.who)}'s screen ({_WHY[note.why]}): {plain(note.what)}"
        for note in condense_notes(notes)
    )


def format_day(turns: Sequence[Turn], zone: tzinfo = UTC) -> str:
    """Return the day of the last turn and the next day, so that 'tomorrow' can be told; empty without turns."""
    if not turns:
        return ""
    day = datetime.fromtimestamp(turns[-1].started_at, zone)
    return f"{_date(day)} {day.year}; tomorrow is {_date(day + timedelta(days=1))}"


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
    musts = set(must_stay([each.fact for each in known]))
    groups = {
        "must be in the summary": [each for each in shown if each.fact in musts],
        **{
            f"importance {importance}": [
                each for each in shown if each.fact.importance == importance and each.fact not in musts
            ]
            for importance in (3, 2, 1)
        },
    }
    told = None if previous is None else ToldText(previous)
    lines = [
        line
        for heading, group in groups.items()
        if group
        for line in (f"{heading}:", *(_fact_line(each, told) for each in group))
    ]
    return marked("known facts", "\n".join(lines))


def _fact_line(known: KnownFact, told: ToldText | None = None) -> str:
    lacking = "*" if told is not None and known.fact.importance == 3 and not told.tells(known.fact) else ""
    return f"{known.label}{lacking} ({known.fact.kind.value}) {plain(known.fact.attributed_text)}"


def format_parts(chapter: ChapterRequest, facts: Sequence[Sequence[KnownFact]]) -> str:
    """Return each part with its gist and facts."""
    return "\n".join(
        marked(f"turns {part.start} to {part.end - 1}", "\n".join([plain(part.gist), *map(_fact_line, its_facts)]))
        for part, its_facts in zip(chapter.parts, facts, strict=True)
    )


def format_since(chapter: ChapterRequest) -> str:
    """Return the gists of the segments after a chapter."""
    return marked("gists of what came after", "\n".join(map(plain, chapter.since)))


def _clock(at: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%H:%M")


def _date(day: datetime) -> str:
    # Not `strftime`, whose names of days follow the machine's locale.
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]}"

"""Shows a digest of a session as an embed. What people said is shown as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.channel.markdown import escape_markdown
from bot.discord.answers import Field, embed_in
from bot.texts.text import Text, counted, in_language, joined, verbatim
from bot.time_phrases import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    import discord

    from compaction.memory.digest import Digest, DigestLine

RECAP = Text("What it was about in {channel}")
# Discord allows 6,000 characters in an embed and 1,024 in a field.
_ABOUT_CHARS = 1_500
_FIELD_CHARS = 950
_NAMES_CHARS = 300


def digest_embed(digest: Digest, language: str, *, title: Text, shows_last: bool = False) -> discord.Embed:
    """Return the embed in a language. `shows_last`: with the last words. What has nothing by a model says how to
    search.
    """
    spoken = counted(
        digest.turn_count,
        "{start} to {end} ({duration}); people spoke {count} time.",
        "{start} to {end} ({duration}); people spoke {count} times.",
        start=verbatim(f"<t:{digest.started_at:.0f}:f>"),
        end=verbatim(f"<t:{digest.ended_at:.0f}:t>"),
        duration=format_duration(digest.ended_at - digest.started_at),
    )
    about = _lines(digest.about, digest.page, language, most_chars=_ABOUT_CHARS)
    listed = (
        (Text("Decisions"), digest.decisions),
        (Text("To do"), digest.to_do),
        (Text("Open questions"), digest.open),
        (Text("Said last"), digest.last if shows_last else ()),
    )
    fields = [
        Field(name, verbatim(_lines(lines, digest.page, language, most_chars=_FIELD_CHARS)))
        for name, lines in listed
        if lines
    ]
    if digest.people:
        fields.append(Field(Text("Who was there"), verbatim(_names(digest.people))))
    how = Text("/recall finds what was said, word for word.") if digest.is_certain else verbatim("")
    text = joined((spoken, how, verbatim(about)), "\n")
    return embed_in(language, title=title, text=text, fields=fields)


def _lines(lines: Sequence[DigestLine], page: str, language: str, *, most_chars: int) -> str:
    """Return as many lines as fit, and how many more there are. `page`: of the session, to which each line leads."""
    kept: list[str] = []
    for line in lines:
        speaker = f"**{escape_markdown(line.speaker)}:** " if line.speaker else ""
        link = f" [↗]({page}/turn/{line.seq})" if page and line.seq is not None else ""
        written = f"- <t:{line.at:.0f}:t>{link} {speaker}{escape_markdown(line.text)}"
        left = most_chars - sum(len(each) + 1 for each in kept)
        if len(written) > left:
            more = counted(len(lines) - len(kept), "{count} more line.", "{count} more lines.")
            kept.append(f"- … {in_language(more, language)}")
            break
        kept.append(written)
    return "\n".join(kept)


def _names(people: Sequence[str]) -> str:
    kept: list[str] = []
    for name in map(escape_markdown, people):
        if sum(len(each) + 2 for each in kept) + len(name) > _NAMES_CHARS:
            return f"{', '.join(kept)} … (+{len(people) - len(kept)})"
        kept.append(name)
    return ", ".join(kept)

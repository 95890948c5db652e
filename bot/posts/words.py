"""The words of a session as they are posted, in lines or a file. Posting and making anew follow the same rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.channel.markdown import escape_markdown
from bot.memory.transcript_files import TranscriptFile, TranscriptFormat, TranscriptHead, write_transcript
from compaction.model import Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import tzinfo

    from bot.channel.port import RoomChannel
    from bot.events import SpokenText
    from bot.memory.session_views import SessionViews
    from bot.store.sessions import StoredSession

# Discord's limit for one message.
MOST_CHARS = 2_000
# What people say, and what the bot answers.
_ALOUD = frozenset({TurnKind.SPEECH, TurnKind.ASSISTANT})


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """One line of the transcript. `seq`: its turn. `at`: when that began, UTC epoch seconds. `begun_at`: when its
    speaker first said something in that turn, monotonic seconds. `language`: in which they were heard; empty: unknown.

    `translation`: the text in another language; empty: it needs none; None: nobody has translated it yet. `mark`: says
    that it is one.
    """

    seq: Seq
    at: float
    begun_at: float
    speaker_id: str
    speaker: str
    text: str
    language: str = ""
    translation: str | None = None
    mark: str = ""

    def __str__(self) -> str:
        # Discord writes the time as the views's own Discord does.
        head, said = f"<t:{self.at:.0f}:t> **{escape_markdown(self.speaker)}:**", escape_markdown(self.text)
        if not self.translation:
            return f"{head} {said}"
        # Discord uncovers the original for whoever presses it, and for nobody else.
        line = f"{head} {escape_markdown(self.translation)}"
        whole = f"{line}\n-# {self.mark} ||{said}||"
        return whole if len(whole) <= MOST_CHARS else line


def lines_of(turn: Turn, heard: Mapping[str, SpokenText] | None = None) -> Iterator[WrittenLine]:
    """Yield the lines of a turn that was said aloud. `heard`: the first of what each person said in it."""
    for part in turn.parts if turn.kind in _ALOUD else ():
        first = (heard or {}).get(part.speaker_id)
        begun_at, language = (0.0, "") if first is None else (first.started_at, first.recognition.language)
        yield WrittenLine(turn.seq, turn.started_at, begun_at, part.speaker_id, part.speaker, part.text, language)


def first_message(lines: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """Return the first lines that Discord takes as one message, and how many they are. `lines`: each with its turn.

    A message has whole turns, so that it can be made anew by itself; only one that is too long is several messages. A
    line that is too long is cut.
    """
    kept: list[tuple[int, str]] = []
    length = -1
    for seq, line in lines:
        cut = line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 2]} …"
        if kept and length + 1 + len(cut) > MOST_CHARS:
            if seq != kept[0][0]:
                kept = [each for each in kept if each[0] != seq]
            break
        kept.append((seq, cut))
        length += 1 + len(cut)
    return "\n".join(line for _, line in kept), len(kept)


async def transcript_file(
    channel: RoomChannel | None,
    stored: StoredSession,
    views: SessionViews,
    wanted: TranscriptFormat = TranscriptFormat.MARKDOWN,
    *,
    zone: tzinfo,
) -> TranscriptFile:
    """Return a session as a file for everybody in its channel, without withheld words. `channel`: None: its names are
    not known any more. Raises `StoreError`.
    """
    found = await views.read(stored)
    server, name = ("", "") if channel is None else (channel.guild_name, channel.name)
    head = TranscriptHead(stored.id, server, name, stored.started_at, stored.ended_at, missing=found.cut)
    return await asyncio.to_thread(write_transcript, found.turns, head, wanted, zone=zone)

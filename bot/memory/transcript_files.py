"""Writes the turns of a session as a file for people and programs: Markdown, JSON, SubRip (SRT) or WebVTT. Pure.

What people are called and what they said is hostile text, so it is escaped as each format demands. A file never has
more bytes than a bound: then it has the newest lines, and its head says how many older ones are missing.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.language.text import plain
from compaction.model import Turn, TurnKind, TurnPart
from compaction.speaker_names import plain_name

if TYPE_CHECKING:
    from collections.abc import Sequence


# Discord takes ten megabytes from a bot.
MOST_BYTES = 8_000_000
# A subtitle stays at least so long, and needs an end after its start.
SHORTEST_CUE_S = 0.5

# What Markdown and HTML in it give a meaning, wherever it stands in a line.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#!])")
# SubRip knows no escape: players read tags in <> and {}, and `-->` begins a cue.
_SUBRIP = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")"})


# In turns of these kinds the text continues the name: something happened.
_HAPPENED = frozenset({TurnKind.MEMBERSHIP, TurnKind.EFFECT})


class TranscriptFormat(StrEnum):
    """The format of a transcript file. Its value is the ending of the file's name."""

    MARKDOWN = "md"
    JSON = "json"
    SUBRIP = "srt"
    WEBVTT = "vtt"


@dataclass(frozen=True, slots=True)
class TranscriptHead:
    """What a transcript says of its session. Times are UTC epoch seconds; `ended_at`: None while it goes on.

    `missing`: how many of its oldest turns are not known any more.
    """

    session_id: str
    server: str
    channel: str
    started_at: float
    ended_at: float | None
    missing: int = 0


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript. `lines`: how many lines of it the file has. `left_out`: how many older ones it has not."""

    name: str
    content: bytes
    lines: int
    left_out: int


def write_transcript(
    turns: Sequence[Turn],
    head: TranscriptHead,
    wanted: TranscriptFormat,
    *,
    zone: tzinfo,
    most_bytes: int = MOST_BYTES,
) -> TranscriptFile:
    """Return the file. `turns`: those that may be told, in order. `zone`: of the times of day in Markdown.

    Subtitles count from the start of the session, as a recording that was started with it does.
    """
    lines = [
        (turn, TurnPart(part.speaker_id, plain_name(part.speaker), plain(part.text)))
        for turn in turns
        for part in turn.parts
        if part.text.strip()
    ]
    # The head names what is missing, so it is the longest with all of it.
    room = most_bytes - len(_written(wanted, [], head, zone, len(lines)).encode("utf-8", "replace"))
    kept: list[str] = []
    for turn, part in reversed(lines):
        written = _written_line(wanted, turn, part, head, zone)
        room -= len(written.encode("utf-8", "replace")) + len(_BETWEEN[wanted])
        if room < 0:
            break
        kept.append(written)
    left_out = len(lines) - len(kept)
    content = _written(wanted, kept[::-1], head, zone, left_out).encode("utf-8", "replace")
    name = re.sub(r"[^\w-]+", "-", head.session_id)[:60]
    return TranscriptFile(f"roomtone-{name}.{wanted.value}", content, len(kept), left_out)


# What stands between two lines. Two spaces at the end of a line of Markdown break it; the number of a cue of SubRip has
# at most five digits.
_BETWEEN = {
    TranscriptFormat.MARKDOWN: "  \n",
    TranscriptFormat.JSON: ",\n",
    TranscriptFormat.SUBRIP: "\n00000\n",
    TranscriptFormat.WEBVTT: "\n",
}


def _written_line(form: TranscriptFormat, turn: Turn, part: TurnPart, head: TranscriptHead, zone: tzinfo) -> str:
    happened = turn.kind in _HAPPENED
    what = f"{'' if part.text.startswith(part.speaker) else f'{part.speaker} '}{part.text}"
    match form:
        case TranscriptFormat.MARKDOWN:
            at = datetime.fromtimestamp(turn.started_at, zone)
            said = f"*{_md(what)}*" if happened else f"**{_md(part.speaker)}:** {_md(part.text)}"
            return f"`{at:%H:%M:%S}` {said}"
        case TranscriptFormat.JSON:
            line = {
                "kind": turn.kind,
                "at": _iso(turn.started_at),
                "until": _iso(turn.ended_at),
                "speaker": part.speaker,
                "speaker_id": part.speaker_id,
                "text": part.text,
            }
            return json.dumps(line, ensure_ascii=False)
        case TranscriptFormat.SUBRIP:
            text = f"({what})" if happened else f"{part.speaker}: {part.text}"
            return f"{_cue_times(turn, head, ',')}\n{text.translate(_SUBRIP)}\n"
        case TranscriptFormat.WEBVTT:
            said = f"<i>{_vtt(what)}</i>" if happened else f"<v {_vtt(part.speaker)}>{_vtt(part.text)}"
            return f"{_cue_times(turn, head, '.')}\n{said}\n"


def _written(form: TranscriptFormat, lines: Sequence[str], head: TranscriptHead, zone: tzinfo, left_out: int) -> str:
    """Return the file with these lines. `left_out`: how many older ones it has not."""
    missing = _missing(head, left_out)
    match form:
        case TranscriptFormat.MARKDOWN:
            begun = datetime.fromtimestamp(head.started_at, zone)
            until = "now" if head.ended_at is None else f"{datetime.fromtimestamp(head.ended_at, zone):%Y-%m-%d %H:%M}"
            span = f"{begun:%Y-%m-%d %H:%M} to {until}"
            heading = (
                f"# {_md(head.channel)}, {begun:%Y-%m-%d}",
                f"{_md(head.server)}, {span} ({begun:UTC%z}), session {_md(head.session_id)}",
                *(f"*{sentence}*" for sentence in missing),
            )
            return "\n\n".join((*heading, _BETWEEN[form].join(lines))).rstrip() + "\n"
        case TranscriptFormat.JSON:
            about = {
                "session": head.session_id,
                "server": head.server,
                "channel": head.channel,
                "started_at": _iso(head.started_at),
                "ended_at": None if head.ended_at is None else _iso(head.ended_at),
                "missing": head.missing,
                "left_out": left_out,
            }
            # One line of the conversation is one line of the file, so that programs for lines can read it too.
            opened = json.dumps(about, ensure_ascii=False)[:-1]
            return f'{opened}, "lines": [\n{_BETWEEN[form].join(lines)}\n]}}\n'
        case TranscriptFormat.SUBRIP:
            # The format has no place for remarks.
            return "\n".join(f"{number}\n{each}" for number, each in enumerate(lines, start=1))
        case TranscriptFormat.WEBVTT:
            return "WEBVTT\n\n" + "".join(f"NOTE {sentence}\n\n" for sentence in missing) + "\n".join(lines)


def _missing(head: TranscriptHead, left_out: int) -> list[str]:
    """Return what a file says of the turns and lines that it does not have."""
    gone = f"Turns at the beginning that are not kept any more: {head.missing:,}."
    cut = f"Lines at the beginning that are left out, because the file would be too large: {left_out:,}."
    return [sentence for count, sentence in ((head.missing, gone), (left_out, cut)) if count]


def _cue_times(turn: Turn, head: TranscriptHead, point: str) -> str:
    start = max(0.0, turn.started_at - head.started_at)
    end = max(start + SHORTEST_CUE_S, turn.ended_at - head.started_at)
    return f"{_cue_time(start, point)} --> {_cue_time(end, point)}"


def _cue_time(seconds: float, point: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _md(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _vtt(text: str) -> str:
    return html.escape(text, quote=False)

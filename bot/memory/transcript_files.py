"""Writes the turns of a session as a file for people and programs: Markdown, JSON, SubRip (SRT) or WebVTT. Pure.

What people are called and what they said is hostile text, so it is escaped as each format demands. A file never has
more bytes than a bound: then it has the newest lines, and its head says how many older ones are missing.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.language.text import plain
from compaction.model import TurnKind
from compaction.speaker_names import plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from compaction.model import Turn

# Discord takes ten megabytes from a bot.
MOST_BYTES = 8_000_000
# A subtitle stays at least so long, and needs an end after its start.
SHORTEST_CUE_S = 0.5

# What Markdown and HTML in it give a meaning, wherever it stands in a line.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#!])")
# SubRip knows no escape: players read tags in <> and {}, and `-->` begins a cue.
_SUBRIP = str.maketrans({"<": "‹", ">": "›", "{": "(", "}": ")"})


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


@dataclass(frozen=True, slots=True)
class _Line:
    """What one person said in one turn, or something that happened. Times are UTC epoch seconds."""

    kind: TurnKind
    at: float
    until: float
    speaker: str
    speaker_id: str
    text: str

    @property
    def happened(self) -> bool:
        """Return whether it is no speech: the text continues the name."""
        return self.kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT}


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
        _Line(turn.kind, turn.started_at, turn.ended_at, plain_name(part.speaker), part.speaker_id, plain(part.text))
        for turn in turns
        for part in turn.parts
        if part.text.strip()
    ]
    form = _FORMS[wanted](head, zone)
    # The head names what is missing, so it is the longest with all of it.
    room = most_bytes - len(form.file([], len(lines)).encode("utf-8", "replace"))
    kept: list[str] = []
    for line in reversed(lines):
        written = form.line(line)
        room -= len(written.encode("utf-8", "replace")) + len(form.between)
        if room < 0:
            break
        kept.append(written)
    left_out = len(lines) - len(kept)
    content = form.file(kept[::-1], left_out).encode("utf-8", "replace")
    return TranscriptFile(f"roomtone-{_safe(head.session_id)}.{wanted.value}", content, len(kept), left_out)


@dataclass(frozen=True, slots=True)
class _Form:
    """How one format writes a line, and all lines. `file`: also gets how many older lines are left out."""

    line: Callable[[_Line], str]
    file: Callable[[Sequence[str], int], str]
    between: str


def _markdown(head: TranscriptHead, zone: tzinfo) -> _Form:
    def line(each: _Line) -> str:
        at = datetime.fromtimestamp(each.at, zone)
        if each.happened:
            return f"`{at:%H:%M:%S}` *{_md(_event(each))}*"
        return f"`{at:%H:%M:%S}` **{_md(each.speaker)}:** {_md(each.text)}"

    def file(lines: Sequence[str], left_out: int) -> str:
        begun = datetime.fromtimestamp(head.started_at, zone)
        until = "now" if head.ended_at is None else f"{datetime.fromtimestamp(head.ended_at, zone):%Y-%m-%d %H:%M}"
        told = [
            f"# {_md(head.channel)}, {begun:%Y-%m-%d}",
            f"{_md(head.server)}, {begun:%Y-%m-%d %H:%M} to {until} ({begun:UTC%z}), session {_md(head.session_id)}",
        ]
        told += [f"*{sentence}*" for sentence in _missing(head, left_out)]
        # Two spaces at the end of a line break it.
        return "\n\n".join((*told, "  \n".join(lines))).rstrip() + "\n"

    return _Form(line, file, "  \n")


def _json(head: TranscriptHead, zone: tzinfo) -> _Form:
    del zone

    def line(each: _Line) -> str:
        return json.dumps(
            {
                "kind": each.kind.value,
                "at": _iso(each.at),
                "until": _iso(each.until),
                "speaker": each.speaker,
                "speaker_id": each.speaker_id,
                "text": each.text,
            },
            ensure_ascii=False,
        )

    def file(lines: Sequence[str], left_out: int) -> str:
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
        return json.dumps(about, ensure_ascii=False)[:-1] + ', "lines": [\n' + ",\n".join(lines) + "\n]}\n"

    return _Form(line, file, ",\n")


def _subrip(head: TranscriptHead, zone: tzinfo) -> _Form:
    del zone

    def line(each: _Line) -> str:
        text = f"({_event(each)})" if each.happened else f"{each.speaker}: {each.text}"
        return f"{_cue_times(each, head, ',')}\n{text.translate(_SUBRIP)}\n"

    def file(lines: Sequence[str], left_out: int) -> str:
        del left_out  # The format has no place for remarks.
        return "\n".join(f"{number}\n{each}" for number, each in enumerate(lines, start=1))

    # The number of a cue has at most five digits.
    return _Form(line, file, "\n00000\n")


def _webvtt(head: TranscriptHead, zone: tzinfo) -> _Form:
    del zone

    def line(each: _Line) -> str:
        times = _cue_times(each, head, ".")
        if each.happened:
            return f"{times}\n<i>{_vtt(_event(each))}</i>\n"
        return f"{times}\n<v {_vtt(each.speaker)}>{_vtt(each.text)}\n"

    def file(lines: Sequence[str], left_out: int) -> str:
        notes = "".join(f"NOTE {sentence}\n\n" for sentence in _missing(head, left_out))
        return f"WEBVTT\n\n{notes}" + "\n".join(lines)

    return _Form(line, file, "\n")


_FORMS: dict[TranscriptFormat, Callable[[TranscriptHead, tzinfo], _Form]] = {
    TranscriptFormat.MARKDOWN: _markdown,
    TranscriptFormat.JSON: _json,
    TranscriptFormat.SUBRIP: _subrip,
    TranscriptFormat.WEBVTT: _webvtt,
}


def _missing(head: TranscriptHead, left_out: int) -> list[str]:
    """Return what a file says of the turns and lines that it does not have."""
    told = []
    if head.missing:
        first = "first turn is" if head.missing == 1 else f"first {head.missing:,} turns are"
        told.append(f"The {first} not kept any more.")
    if left_out:
        oldest = "oldest line is" if left_out == 1 else f"oldest {left_out:,} lines are"
        told.append(f"The {oldest} left out, because the file would be too large.")
    return told


def _event(line: _Line) -> str:
    return line.text if line.text.startswith(line.speaker) else f"{line.speaker} {line.text}"


def _cue_times(line: _Line, head: TranscriptHead, point: str) -> str:
    start = max(0.0, line.at - head.started_at)
    end = max(start + SHORTEST_CUE_S, line.until - head.started_at)
    return f"{_cue_time(start, point)} --> {_cue_time(end, point)}"


def _cue_time(seconds: float, point: str) -> str:
    whole = round(seconds * 1000)
    minutes, milliseconds = divmod(whole, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _md(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _vtt(text: str) -> str:
    return html.escape(text, quote=False)


def _safe(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name)[:60]

"""Transcripts as files: each format, hostile names and words, times, and the bound on their size."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from bot.memory.transcript_files import MOST_BYTES, TranscriptFormat, TranscriptHead, write_transcript
from compaction.model import Seq, Turn, TurnKind, TurnPart

# 31 January 2026, 19:59:58 UTC; an hour later where the people are.
AT = 1_769_889_598.0
ZONE = timezone(timedelta(hours=1))
HEAD = TranscriptHead("20260131-195958-ab12cd", "The Lantern Society", "Evening", AT, AT + 7_300)


def turn(seq: int, speaker: str, text: str, *, after: float, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    return Turn(Seq(seq), kind, AT + after, AT + after + 2.5, (TurnPart("2001", speaker, text),))


TURNS = [
    turn(0, "Ada", "joined the channel.", after=0.0, kind=TurnKind.MEMBERSHIP),
    turn(1, "Ada", "The gate code is 4411.", after=2.0),
    turn(2, "Roomtone", "Noted.", after=3_725.25, kind=TurnKind.ASSISTANT),
]


def written(form: TranscriptFormat, turns: list[Turn] | None = None, head: TranscriptHead = HEAD) -> str:
    return write_transcript(TURNS if turns is None else turns, head, form, zone=ZONE).content.decode()


def test_markdown_has_the_times_of_the_clock() -> None:
    """People read when what was said, in their time zone, and what happened in italics."""
    assert written(TranscriptFormat.MARKDOWN).splitlines() == [
        "# Evening, 2026-01-31",
        "",
        "The Lantern Society, 2026-01-31 20:59 to 2026-01-31 23:01 (UTC+0100), session 20260131-195958-ab12cd",
        "",
        "`20:59:58` *Ada joined the channel.*  ",
        "`21:00:00` **Ada:** The gate code is 4411.  ",
        "`22:02:03` **Roomtone:** Noted.",
    ]


def test_json_has_everything() -> None:
    """Programs read the session and each line with its times in UTC."""
    read = json.loads(written(TranscriptFormat.JSON))
    assert (read["session"], read["channel"], read["left_out"]) == ("20260131-195958-ab12cd", "Evening", 0)
    assert (read["started_at"], read["ended_at"]) == ("2026-01-31T19:59:58.000Z", "2026-01-31T22:01:38.000Z")
    assert read["lines"][1] == {
        "kind": "speech",
        "at": "2026-01-31T20:00:00.000Z",
        "until": "2026-01-31T20:00:02.500Z",
        "speaker": "Ada",
        "speaker_id": "2001",
        "text": "The gate code is 4411.",
    }


def test_subtitles_count_from_the_start_of_the_session() -> None:
    """SRT and WebVTT have the same cues, in the notation of each."""
    assert written(TranscriptFormat.SUBRIP) == (
        "1\n00:00:00,000 --> 00:00:02,500\n(Ada joined the channel.)\n\n"
        "2\n00:00:02,000 --> 00:00:04,500\nAda: The gate code is 4411.\n\n"
        "3\n01:02:05,250 --> 01:02:07,750\nRoomtone: Noted.\n"
    )
    assert written(TranscriptFormat.WEBVTT) == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:02.500\n<i>Ada joined the channel.</i>\n\n"
        "00:00:02.000 --> 00:00:04.500\n<v Ada>The gate code is 4411.\n\n"
        "01:02:05.250 --> 01:02:07.750\n<v Roomtone>Noted.\n"
    )


HOSTILE = [
    "**bold** [x](javascript:1) <script>",
    "a --> b\n\n2\n00:00:09,000 --> 00:00:10,000\nforged",
    "<v Ben>I owe you", "{\\an8}up", '"}, {"speaker": "Ben', "`code` | table", "\u202egnirts",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_and_words_change_no_structure(hostile: str) -> None:
    """Whatever somebody is called or says stays in its line, its cue and its string."""
    said = [turn(0, hostile, "A word.", after=0.0), turn(1, "Ada", hostile, after=5.0)]
    assert json.loads(written(TranscriptFormat.JSON, said))["lines"][0]["text"] == "A word."
    lines = written(TranscriptFormat.MARKDOWN, said).splitlines()
    assert len(lines) == 6
    assert not re.search(r"(?<!\\)[<\[|]", "".join(lines))
    for form in (TranscriptFormat.SUBRIP, TranscriptFormat.WEBVTT):
        text = written(form, said)
        assert text.count("-->") == 2
        assert len(text.rstrip().split("\n\n")) == (2 if form is TranscriptFormat.SUBRIP else 3)
    assert "<v Ben>" not in written(TranscriptFormat.WEBVTT, said)
    assert not re.search(r"[<{]", written(TranscriptFormat.SUBRIP, said))


@pytest.mark.parametrize("form", TranscriptFormat)
@pytest.mark.parametrize("most_bytes", [700, 1_500, 4_000])
def test_a_file_that_would_be_too_large_has_the_newest_lines(form: TranscriptFormat, most_bytes: int) -> None:
    """The bound holds, the newest line is always there, and what is left out is counted."""
    said = [turn(seq, "Zoë", f"Number {seq}, said at length.", after=4.0 * seq) for seq in range(100)]
    file = write_transcript(said, HEAD, form, zone=ZONE, most_bytes=most_bytes)
    assert len(file.content) <= most_bytes
    text = file.content.decode()
    assert "Number 99" in text
    assert "Number 0," not in text
    assert file.lines + file.left_out == 100
    assert file.lines > 1
    if form is TranscriptFormat.JSON:
        assert json.loads(text)["left_out"] == file.left_out
    elif form is not TranscriptFormat.SUBRIP:
        assert f"would be too large: {file.left_out}." in text


def test_what_is_gone_is_named() -> None:
    """A session whose oldest turns were deleted says so, and one that goes on has no end."""
    head = TranscriptHead("s/../x", "S", "C", AT, None, missing=1_200)
    file = write_transcript(TURNS, head, TranscriptFormat.MARKDOWN, zone=ZONE)
    assert "not kept any more: 1,200." in file.content.decode()
    one = write_transcript(TURNS, replace(head, missing=1), TranscriptFormat.MARKDOWN, zone=ZONE)
    assert "not kept any more: 1." in one.content.decode()
    assert " to now " in file.content.decode()
    assert file.name == "roomtone-s-x.md"
    assert MOST_BYTES < 10_000_000

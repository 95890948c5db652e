"""Read conversations that the user supplied.

The format is recognised by content, not by file name: Roomtone's JSON lines (`{"speaker", "text", "at"}`), and the
published formats of LoCoMo (github.com/snap-research/locomo), QMSum (github.com/Yale-LILY/QMSum) and CRD3
(github.com/RevanthRameshkumar/CRD3, aligned and cleaned data). LoCoMo's questions are used too. None of these data sets
is included here; they have their own licences.
"""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from benchmarks.memory.conversations.conversation import (
    ConversationLine,
    RecordedConversation,
    ReferenceQuestion,
)
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT
from benchmarks.report import TranscriptFormatError
from bot.memory.replay import ASSISTANTS
from bot.memory.transcript import SaidLine, TranscriptError, parse_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# For transcripts without times: the seconds from one turn to the next.
_TURN_S = 6.0
# Discord allows no longer display name.
_MAX_NAME_CHARS = 32
_SUFFIXES = frozenset({".json", ".jsonl"})
_LOCOMO_SESSION = re.compile(r"session_(\d+)")
_LOCOMO_EVIDENCE = re.compile(r"D\d+:\d+")
# LoCoMo's category of questions that have no answer in the conversation.
_LOCOMO_UNANSWERABLE = 5
_FORMATS = (
    'JSON lines like {"speaker": "Ada", "text": "Hello.", "at": 12.5}, or a file of LoCoMo (locomo10.json), QMSum '
    "(a meeting's .json or .jsonl) or CRD3 (an episode's .json)"
)


def read_conversations(folder: Path) -> list[RecordedConversation]:
    """Return every conversation in a directory and its subdirectories, in the order of file names.

    Raises TranscriptFormatError with one sentence for each file that cannot be read.
    """
    if not folder.is_dir():
        raise TranscriptFormatError(f"{folder} is not a directory. Give one that holds {_FORMATS}.")
    conversations: list[RecordedConversation] = []
    mistakes: list[str] = []
    for path in _files(folder):
        try:
            conversations.extend(read_conversation_file(path))
        except TranscriptFormatError as error:
            mistakes.append(str(error))
    if mistakes:
        raise TranscriptFormatError("\n".join(mistakes))
    if not conversations:
        raise TranscriptFormatError(f"{folder} holds no conversation (.json or .jsonl). It should hold {_FORMATS}.")
    return conversations


def _files(folder: Path) -> list[Path]:
    """Return the files of a directory that may hold conversations, in the order of their names.

    Links to directories are followed, each directory once, so that one of links shows what a run reads.
    """
    found: list[Path] = []
    seen: set[str] = set()
    for at, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        found += [each for name in names if (each := Path(at, name)).suffix in _SUFFIXES and each.is_file()]
    return sorted(found)


def read_conversation_file(path: Path) -> list[RecordedConversation]:
    """Return the conversations of one file. Raises TranscriptFormatError."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise TranscriptFormatError(f"{path.name} is not UTF-8 text. Save it as UTF-8.") from error
    except OSError as error:
        raise TranscriptFormatError(f"{path.name} cannot be read: {error.strerror}.") from error
    return list(_parsed(text, path))


def _parsed(text: str, path: Path) -> Iterator[RecordedConversation]:
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _parsed_lines(text, path)
        return
    name = path.stem
    try:
        match whole:
            case {"meeting_transcripts": list()}:
                yield _qmsum(whole, name)
            case {"TURNS": list()}:
                yield _crd3(whole["TURNS"], name)
            case [{"TURNS": list(), "CHUNK": _}, *_]:
                # Chunks overlap, so a turn may be in two of them.
                turns = {int(turn["NUMBER"]): turn for chunk in whole for turn in chunk["TURNS"]}
                yield _crd3([turns[number] for number in sorted(turns)], name)
            case {"conversation": dict()}:
                yield _locomo(whole, name)
            case [{"conversation": dict()}, *_]:
                for number, sample in enumerate(whole):
                    yield _locomo(sample, f"{name}-{number}")
            case {"speaker": _, "text": _}:
                yield from _parsed_lines(text, path)
            case _:
                raise TranscriptFormatError(
                    f"{path.name} is JSON of a form that is not known here. It should be {_FORMATS}."
                )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise TranscriptFormatError(
            f"{path.name} looks like a known format, but a part of it is missing or of another type "
            f"({type(error).__name__}: {error})."
        ) from error


def _parsed_lines(text: str, path: Path) -> Iterator[RecordedConversation]:
    """Read JSON lines. In QMSum's format each line is a meeting; in Roomtone's, each line is a turn."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and '"meeting_transcripts"' in lines[0]:
        for number, line in enumerate(lines, start=1):
            try:
                yield _qmsum(json.loads(line), f"{path.stem}-{number}")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise TranscriptFormatError(f"{path.name} line {number}: this is no meeting of QMSum.") from error
        return
    try:
        said = [line for line in parse_transcript(lines, name=path.name) if isinstance(line, SaidLine)]
    except TranscriptError as error:
        raise TranscriptFormatError(str(error)) from error
    if not said:
        raise TranscriptFormatError(f"{path.name} holds screen notes alone; somebody has to speak.")
    spoken_lines = tuple(
        ConversationLine(each.speaker, each.text, each.at, each.speaker.casefold() in ASSISTANTS) for each in said
    )
    yield RecordedConversation(path.stem, "JSON lines", spoken_lines)


# -- LoCoMo --------------------------------------------------------------------------------------------------


def _locomo(sample: dict[str, Any], name: str) -> RecordedConversation:
    talk = sample["conversation"]
    lines: list[ConversationLine] = []
    seqs: dict[str, int] = {}
    numbers = sorted(int(match[1]) for key in talk if (match := _LOCOMO_SESSION.fullmatch(key)))
    if not numbers:
        raise KeyError("session_1")
    for number in numbers:
        at = _locomo_time(str(talk.get(f"session_{number}_date_time", "")), lines)
        for turn in talk[f"session_{number}"]:
            text = str(turn["text"]).strip()
            if turn.get("blip_caption"):
                text = f"{text} (shares a photo: {turn['blip_caption']})".strip()
            if not text:
                continue
            seqs[str(turn["dia_id"])] = len(lines)
            lines.append(ConversationLine(str(turn["speaker"]), text, at))
            at += _TURN_S
    return RecordedConversation(
        str(sample.get("sample_id") or name), "LoCoMo", tuple(lines), questions=tuple(_locomo_questions(sample, seqs))
    )


def _locomo_questions(sample: dict[str, Any], seqs: dict[str, int]) -> Iterator[ReferenceQuestion]:
    for entry in sample.get("qa", ()):
        if entry.get("category") == _LOCOMO_UNANSWERABLE or "answer" not in entry:
            continue
        # Some entries contain several ids in one string.
        ids = _LOCOMO_EVIDENCE.findall(" ".join(map(str, entry.get("evidence", ()))))
        evidence = tuple(seqs[each] for each in ids if each in seqs)
        yield ReferenceQuestion(str(entry["question"]), evidence)


def _locomo_time(text: str, lines: list[ConversationLine]) -> float:
    """Convert '1:56 pm on 8 May, 2023' to epoch seconds. An unreadable time follows that of the previous turn."""
    after = lines[-1].at + _TURN_S if lines else STARTED_AT
    try:
        said_at = datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return after
    # Sessions are in the order of their numbers, so a time never goes back.
    return max(said_at, after) if lines else said_at


# -- QMSum ---------------------------------------------------------------------------------------------------


def _display_name(speaker: str) -> str:
    """Return a speaker's name as whole words that fit into a display name: some have their office and their place."""
    return shorten(speaker, _MAX_NAME_CHARS, placeholder="") or speaker[:_MAX_NAME_CHARS]


def _qmsum(meeting: dict[str, Any], name: str) -> RecordedConversation:
    spoken = [
        (_display_name(str(turn["speaker"])), str(turn["content"]).strip()) for turn in meeting["meeting_transcripts"]
    ]
    lines = tuple(
        ConversationLine(speaker, text or "…", STARTED_AT + number * _TURN_S)
        for number, (speaker, text) in enumerate(spoken)
    )
    return RecordedConversation(name, "QMSum", lines)


# -- CRD3 ----------------------------------------------------------------------------------------------------


def _crd3(turns: Sequence[dict[str, Any]], name: str) -> RecordedConversation:
    lines = tuple(
        ConversationLine(
            " and ".join(str(each).title() for each in turn["NAMES"]) or "Somebody",
            " ".join(str(each).strip() for each in turn["UTTERANCES"]) or "…",
            STARTED_AT + number * _TURN_S,
        )
        for number, turn in enumerate(turns)
    )
    return RecordedConversation(name, "CRD3", lines)

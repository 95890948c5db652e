"""Importing conversations: hand-made samples in each published format, and invalid files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.memory.conversations.conversation import ReferenceQuestion
from benchmarks.memory.conversations.transcripts import read_conversation_file
from benchmarks.report import TranscriptFormatError

LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "qa": [
        {"question": "When did Ann move?", "answer": 2019, "evidence": ["D1:2"], "category": 2},
        {"question": "Who has a boat?", "answer": "Ben", "evidence": ["D2:1; D1:1", "D9:9"], "category": 1},
        {"question": "Who has a horse?", "adversarial_answer": "Ben", "evidence": ["D1:1"], "category": 5},
    ],
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi Ben!"},
            {"speaker": "Ann", "dia_id": "D1:2", "text": "I moved in 2019.", "blip_caption": "a white house"},
        ],
        "session_2_date_time": "1:14 pm on 25 May, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "I bought a boat."}],
        "session_3_date_time": "9:00 am on 1 June, 2023",
    },
}
QMSUM: dict[str, Any] = {
    "meeting_transcripts": [
        {"speaker": "Marketing", "content": "Welcome."},
        {"speaker": "Designer", "content": "I want yellow."},
        {"speaker": "Designer", "content": " "},
    ],
}
CRD3_ALIGNED: list[dict[str, Any]] = [
    {
        "CHUNK": "Matt greets everyone.",
        "ALIGNMENT": {"CHUNK ID": 0, "TURN START": 4, "TURN END": 5, "ALIGNMENT SCORE": 0.5},
        "TURNS": [
            {"NAMES": ["MATT"], "UTTERANCES": ["Hello everyone.", "Welcome."], "NUMBER": 4},
            {"NAMES": ["SAM", "LIAM"], "UTTERANCES": ["Hi."], "NUMBER": 5},
        ],
    },
    {
        "CHUNK": "Laura asks for a bear.",
        "ALIGNMENT": {"CHUNK ID": 1, "TURN START": 5, "TURN END": 6, "ALIGNMENT SCORE": 0.4},
        "TURNS": [
            {"NAMES": ["SAM", "LIAM"], "UTTERANCES": ["Hi."], "NUMBER": 5},
            {"NAMES": ["LAURA"], "UTTERANCES": ["Can I have a bear?"], "NUMBER": 6},
        ],
    },
]


def written(folder: Path, name: str, content: object) -> Path:
    """Write JSON into a file and return its path."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_own_json_lines(tmp_path: Path) -> None:
    """Speaker, text and time are read, screen notes are left out, and the bot is recognised by its name."""
    lines = (
        '{"speaker": "Ada", "text": "Hello.", "at": 0}\n{"note": "a map", "at": 1}\n{"speaker": "bot", "text": "Hi."}\n'
    )
    (made,) = read_conversation_file(written(tmp_path, "evening.jsonl", lines))
    assert [(line.speaker, line.text, line.by_bot) for line in made.lines] == [
        ("Ada", "Hello.", False),
        ("bot", "Hi.", True),
    ]
    assert (made.name, made.origin) == ("evening", "JSON lines")


def test_locomo(tmp_path: Path) -> None:
    """LoCoMo: sessions have their times, photos become text, and questions have the numbers of their lines."""
    (made,) = read_conversation_file(written(tmp_path, "locomo10.json", [LOCOMO]))
    assert made.name == "conv-1"
    assert made.origin == "LoCoMo"
    assert [line.text for line in made.lines] == [
        "Hi Ben!",
        "I moved in 2019. (shares a photo: a white house)",
        "I bought a boat.",
    ]
    assert made.lines[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    assert made.lines[2].at == datetime(2023, 5, 25, 13, 14, tzinfo=UTC).timestamp()
    assert made.questions == (
        ReferenceQuestion("When did Ann move?", (1,)),
        ReferenceQuestion("Who has a boat?", (2, 0)),
    )


@pytest.mark.parametrize(
    ("name", "content", "origin", "lines"),
    [
        # Every turn is a line of its speaker.
        (
            "ES2002a.json",
            QMSUM,
            "QMSum",
            [("Marketing", "Welcome."), ("Designer", "I want yellow."), ("Designer", "…")],
        ),
        # Turns that two chunks share are read once.
        (
            "C1E001_2_0.json",
            CRD3_ALIGNED,
            "CRD3",
            [("Matt", "Hello everyone. Welcome."), ("Sam and Liam", "Hi."), ("Laura", "Can I have a bear?")],
        ),
    ],
)
def test_talks_of_a_data_set(
    tmp_path: Path, name: str, content: Any, origin: str, lines: list[tuple[str, str]]
) -> None:
    (made,) = read_conversation_file(written(tmp_path, name, content))
    assert made.origin == origin
    assert [(line.speaker, line.text) for line in made.lines] == lines


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", '{"messages": []}', "form"),
        ("a.json", "[]", "form"),
        ("a.json", '{"meeting_transcripts": [{"speaker": "A"}]}', "missing"),
        ("a.json", '{"conversation": {}}', "missing"),
        ("a.json", '{"TURNS": [{"NAMES": 5}]}', "missing"),
        ("a.jsonl", '{"speaker": "Ada"\n{"speaker": "Bob"}', "line 1"),
        ("a.jsonl", '{"note": "a map", "at": 1}\n{"note": "a hat", "at": 2}', "speak"),
        ("a.jsonl", '{"meeting_transcripts": []}\n{"meeting_transcripts": 5', "line 2.*QMSum"),
        ("a.jsonl", "\n", "no line"),
    ],
)
def test_wrong_file_is_told_in_a_sentence(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    """The error for an invalid file names the file and the place of the mistake."""
    with pytest.raises(TranscriptFormatError, match=sentence) as caught:
        read_conversation_file(written(tmp_path, name, content))
    assert "a.json" in str(caught.value)

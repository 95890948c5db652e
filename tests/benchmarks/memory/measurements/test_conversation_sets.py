"""Choosing the conversations of a benchmark run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.errors import TranscriptFormatError
from benchmarks.memory.measurements.conversation_sets import ConversationSets
from benchmarks.memory.options import MemoryBenchOptions, checkpoints

if TYPE_CHECKING:
    from pathlib import Path


def talk(folder: Path, name: str, turns: int) -> None:
    """Write a conversation of that many turns."""
    lines = [json.dumps({"speaker": "Ada", "text": f"This is turn {n}.", "at": n}) for n in range(turns)]
    (folder / name).write_text("\n".join(lines), "utf-8")


def test_who_asks_a_model_hears_fewer_and_shorter_evenings() -> None:
    """Systems that use a model get fewer and shorter conversations, and only held-out ones."""
    options = MemoryBenchOptions(folds=100, evenings=2, model_folds=20, model_evenings=1)
    free, asking = ConversationSets(options).sets(needs_model=False), ConversationSets(options).sets(needs_model=True)
    assert {name: len(heard) for name, heard in free.items()} == {
        "tuning": 2,
        "held_out": 2,
        "written": 2,
        "written, long": 1,
    }
    assert {name: len(heard) for name, heard in asking.items()} == {"held_out": 1, "written": 2}
    written = ConversationSets(MemoryBenchOptions(model_folds=20, model_evenings=0)).sets(needs_model=True)
    assert list(written) == ["written"]
    assert free["tuning"][0].folds == (5, 20, 100)
    assert asking["held_out"][0].folds == (5, 20)
    assert asking["held_out"][0].turns == len(asking["held_out"][0].conversation.lines)


def test_brought_conversations_are_heard_as_far_as_they_go(tmp_path: Path) -> None:
    """Of the user's own conversations, short ones are left out, and long ones are judged after the folds that they
    allow.
    """
    talk(tmp_path, "short.jsonl", 61)
    talk(tmp_path, "long.jsonl", 130)
    sets = ConversationSets(MemoryBenchOptions(transcripts=tmp_path, evenings=1, model_evenings=1)).sets(
        needs_model=True
    )
    (heard,) = sets["JSON lines"]
    assert heard.conversation.name == "long"
    assert heard.folds == (5, 7)


def test_nothing_but_short_conversations_is_told(tmp_path: Path) -> None:
    """If all conversations are too short, the error says how long one has to be."""
    talk(tmp_path, "short.jsonl", 20)
    with pytest.raises(TranscriptFormatError, match="62 turns"):
        ConversationSets(MemoryBenchOptions(transcripts=tmp_path))


@pytest.mark.parametrize(("longest", "looked"), [(3, (3,)), (5, (5,)), (20, (5, 20)), (150, (5, 20, 100, 150))])
def test_checkpoints(longest: int, looked: tuple[int, ...]) -> None:
    """Systems are judged after 5, 20 and 100 folds, and at the end."""
    assert checkpoints(longest) == looked


def test_recorded_systems_hear_what_is_recorded(tmp_path: Path) -> None:
    """Each conversation as far as there are answers."""
    folder = tmp_path / "cabin" / "roomtone"
    folder.mkdir(parents=True)
    (folder / "turns.json").write_text('{"001": "0-9", "002": "11-19", "003": ""}', "utf-8")
    sets = ConversationSets(MemoryBenchOptions()).recorded("roomtone", tmp_path)
    assert {name: [each.folds for each in heard] for name, heard in sets.items()} == {"written": [(2,)]}
    assert not ConversationSets(MemoryBenchOptions()).recorded("pipecat", tmp_path)


def test_facts_of_no_conversation_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    """A file of facts without the conversation of its name is refused with the first look at the folder."""
    talk(tmp_path, "evening.jsonl", 200)
    (tmp_path / "absent.json").write_text(json.dumps({"episode": "absent", "facts": []}), "utf-8")
    with pytest.raises(TranscriptFormatError, match="absent"):
        ConversationSets(MemoryBenchOptions(transcripts=tmp_path))

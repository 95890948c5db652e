"""Prompts come from the package or from an operator's folder. The folder is checked when settings are read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from compaction.settings import CompactionSettings
from compaction.summary.llm import LlmSummariser
from compaction.summary.prompt_texts import LEDGER_VERSION, RECURSIVE_VERSION, PromptTexts
from tests.compaction.rooms import Room
from tests.fakes.completion import MoodyModel
from tests.fakes.virtual_time import run_virtually

if TYPE_CHECKING:
    from pathlib import Path

OWN = "Keep the record of a role-playing game. $output\n=====\nNew turns:\n$turns\n\nSo far:\n$previous\n"


def test_package_has_its_own() -> None:
    """The package has prompts for both strategies, with a version that has no suffix."""
    texts = PromptTexts()
    assert (texts.version(LEDGER_VERSION), texts.version(RECURSIVE_VERSION)) == ("ledger.v8", "recursive.v6")


def test_operators_file_replaces_one_and_changes_the_version(tmp_path: Path) -> None:
    """An operator's file replaces one prompt and changes its version, so that segments show which prompt made them. The
    other prompts stay.
    """
    (tmp_path / "ledger.v8.txt").write_text(OWN, "utf-8")
    texts = PromptTexts(tmp_path)
    assert re.fullmatch(r"ledger\.v8\+[0-9a-f]{8}", texts.version(LEDGER_VERSION))
    assert texts.version(RECURSIVE_VERSION) == "recursive.v6"
    assert texts.halves(LEDGER_VERSION)[0].template == "Keep the record of a role-playing game. $output"


def test_section_with_nothing_in_it_is_left_out(tmp_path: Path) -> None:
    """A section without content is left out with its heading, because a small model would copy the heading. This also
    applies to an operator's prompt. A section with text of its own always stays.
    """
    (tmp_path / "recursive.v6.txt").write_text(
        "Keep it short.\n=====\n\nEarlier (condense it):\n$previous\n\nScreens: $notes\n\nNow:\n$turns\n\nGo on.\n",
        "utf-8",
    )
    _, user = PromptTexts(tmp_path).halves(RECURSIVE_VERSION)
    assert user.fill({"previous": "", "notes": "", "turns": "Ada: Hello."}) == "Now:\nAda: Hello.\n\nGo on.\n".rstrip()
    whole = user.fill({"previous": "They met.", "notes": "a map", "turns": "Ada: Hello."})
    assert whole.startswith("Earlier (condense it):\nThey met.\n\nScreens: a map\n\nNow:")
    assert user.labels == ("Earlier", "Now")


def test_segment_records_the_operators_version(tmp_path: Path) -> None:
    """A segment records the version of the operator's prompt, and the model is asked with the operator's words."""
    (tmp_path / "ledger.v8.txt").write_text(OWN, "utf-8")

    async def main() -> None:
        model = MoodyModel()
        summariser = LlmSummariser(model, max_output_tokens=700, prompts_dir=tmp_path)
        async with Room(summariser=summariser) as room:
            await room.talk(61)
            room.sent()
            await room.memory.settle()
            (segment,) = room.memory.segments
            assert segment.summariser.startswith("llm ledger.v8+")
            assert model.calls[0].system.startswith("Keep the record of a role-playing game.")

    run_virtually(main())


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("ledger.v8.txt", "No parts. $output $turns", "two parts"),
        ("ledger.v8.txt", "System. $output\n=====\nNothing is told.", r"must say \$turns"),
        ("recursive.v6.txt", "System.\n=====\n$previous $turns $weather", r"says \$weather, which nothing stands for"),
        ("recursive.v6.txt", "It costs 5 $.\n=====\n$previous $turns", "begins no word"),
        ("ledger.v8.lines.txt", "Write $facts.", r"says \$facts"),
        ("ledger.v8.json.txt", "a" * 30_000, "at most 20000"),
        ("other.txt", "Hello.", "has no prompt file. They are named ledger.v8.txt"),
    ],
)
def test_what_cannot_be_used_is_said_when_settings_are_read(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    """A prompt that cannot be used is refused when settings are read, not during a session."""
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ValidationError, match=sentence):
        CompactionSettings(prompts_dir=tmp_path)


def test_missing_folder_and_unreadable_file_are_said(tmp_path: Path) -> None:
    """A missing folder and an unreadable prompt file are refused with a clear sentence."""
    with pytest.raises(ValidationError, match="is not a folder"):
        CompactionSettings(prompts_dir=tmp_path / "nowhere")
    (tmp_path / "ledger.v8.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ValidationError, match="can't be read as text"):
        CompactionSettings(prompts_dir=tmp_path)

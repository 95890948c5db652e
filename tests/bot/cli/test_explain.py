"""`roomtone explain` as a person uses it: through the real database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.brain.context import ModelContext
from tests.bot.cli.memory.stored_evening import told
from tests.bot.evening import Evening
from tests.bot.memory.explained import explained_evening as an_evening
from tests.fakes.labelling_summariser import LabellingSummariser


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ModelContext]]:
    """A data folder with the database of an evening with seven replies, and the contexts that were sent."""
    folder = tmp_path_factory.mktemp("data")

    async def play() -> list[ModelContext]:
        async with Evening(folder / "roomtone.db", summariser=LabellingSummariser()) as evening:
            return (await an_evening(evening)).sent

    return folder, asyncio.run(play())


@pytest.fixture(autouse=True)
def here(evening: tuple[Path, list[ModelContext]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty directory with settings for the evening's data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(evening[0]))


def test_a_reply_is_explained_word_for_word(
    evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has each message with its lines and tokens, and each fact behind the summary with its turns."""
    _, sent = evening
    context = sent[-1]
    turn = context.current.seq
    out = told(capsys, "explain", "even", "--turn", str(turn))
    shown = " ".join(out.split())
    assert all(" ".join(part.content.split()) in shown for part in context.parts)
    assert f"{sum(part.tokens for part in context.parts):,} of" in shown
    assert "participants  user" in out
    assert '\n    <data from="summary">\n' in out, "the prompt's lines stay lines"
    assert "evening:0-10 (turns 0-9, by labelling.v1)" in out
    assert "Ada: I live in Lisbon, and the gate code is 4411." in shown
    assert out == told(capsys, "explain", "evening", "--turn", str(turn + 1)), "the bot's own turn means the same"


def test_a_session_is_explained_as_a_whole(
    evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a turn, the command lists the session's replies and explains the current summary, or one fact of it."""
    out = told(capsys, "explain", "evening")
    for context in evening[1]:
        assert f"turn {context.current.seq}  " in out
    assert "The summary now:" in out
    assert "4411" in out.partition("The summary now:")[2].partition("The facts behind")[0]
    found = told(capsys, "explain", "evening", "--fact", "gate code")
    assert "turn 0, " in found
    assert "turn 1, " not in found
    missing = told(capsys, "explain", "evening", "--fact", "gate hippopotamus")
    assert "“gate hippopotamus”" in missing


def test_what_cannot_be_explained_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown session, an unanswered turn, and a number that no turn has each give a plain sentence."""
    assert "There is no session nope." in told(capsys, "explain", "nope", status=1)
    assert "No prompt for turn 5 of session evening" in told(capsys, "explain", "evening", "--turn", "5", status=1)
    assert "--turn" in told(capsys, "explain", "evening", "--turn", str(2**63 - 1), status=2)

"""A whole small run by speech-to-speech: the real client library, a local server, real sound both ways."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.cli.realtime_mind import realtime_engines
from config.load import load
from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_conduct import RealtimeConduct, RealtimeMode
from tests.scenarios.program import REPOSITORY, Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal


async def hello_by_speech(folder: Path, conduct: RealtimeConduct) -> tuple[Outcome, LocalRealtimeServer]:
    """Play the small scenario against a server that behaves so; return the run and the server."""
    models = REPOSITORY / "data" / "models"
    settings = load(overrides={"models.directory": str(models), "asr.model_dir": str(models / "whisper-base")})
    async with (
        realtime_engines(settings, names=("Roomtone", "Ada")) as engines,
        LocalRealtimeServer(engines, conduct) as server,
    ):
        words = ("--set", "realtime.enabled=true", "--set", f"realtime.base_url={server.base_url}")
        return await asyncio.to_thread(Program.rehearse(folder, "hello", *words).wait), server


def assert_all_were_heard(played: Outcome) -> None:
    """Everybody's words are in the timeline, each as themselves, and the question was answered aloud."""
    for name in ("reached_the_end", "every_utterance_heard_once", "attributed", "max_wer", "answer ask-bicycle"):
        assert played.expectation(name)["passed"], played.printed
    assert "green" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    assert "Traceback" not in played.printed


@pytest.mark.asyncio
async def test_a_session_that_expires_in_mid_sentence_goes_on(tmp_path: Path) -> None:
    """Answered aloud by the model, transcripts of both sides, and a new session that knows what was said in the old."""
    played, server = await hello_by_speech(tmp_path, RealtimeConduct(expires_in_response=2))
    assert_all_were_heard(played)
    assert played.status == 0, played.printed
    assert server.sessions == 2
    # Three answers and the one that was gone on with.
    assert len(server.asked) == 4
    assert server.asked[2].items[-1][0] == "system"
    said = [text for role, text in server.asked[2].items if role == "user"]
    assert any("green bicycle" in text for text in said)
    assert any(text.startswith("[") and "Hello" in text for text in said)
    answers = [turn["text"] for turn in played.report["bot_turns"]]
    assert answers[1].startswith("I heard you, Ada.")
    assert answers[1].endswith("if you ask me.")


@pytest.mark.asyncio
async def test_when_it_is_away_the_room_answers_otherwise(tmp_path: Path) -> None:
    """The own recogniser, responder and voice serve, and the people are told."""
    played, server = await hello_by_speech(tmp_path, RealtimeConduct(mode=RealtimeMode.WRONG_KEY))
    assert_all_were_heard(played)
    assert not server.asked
    assert any("Speech-to-speech is gone" in str(message) for message in played.report["messages"])

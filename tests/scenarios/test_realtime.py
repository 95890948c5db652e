"""Complete runs by speech-to-speech: the real client library, a local server, and real sound in both directions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.brain.speech_output import MODEL_BROKE_OFF
from config.load import load
from rehearsal.roomtone.speech_engines import realtime_engines
from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_behaviour import RealtimeBehaviour, RealtimeMode
from tests.scenarios.program import REPOSITORY, Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal


async def hello_by_speech(folder: Path, behaviour: RealtimeBehaviour) -> tuple[Outcome, LocalRealtimeServer]:
    """Play the scenario `hello` against a server with this behaviour. Returns the run's outcome and the server."""
    models = REPOSITORY / "data" / "models"
    settings = load(overrides={"models.directory": str(models)})
    async with (
        realtime_engines(settings, names=("Roomtone", "Ada")) as engines,
        LocalRealtimeServer(engines, behaviour) as server,
    ):
        words = ("--set", "realtime.model=gpt-realtime", "--set", f"realtime.base_url={server.base_url}")
        return await asyncio.to_thread(Program.rehearse(folder, "hello", *words).wait), server


def assert_all_were_heard(played: Outcome) -> None:
    """Check that everybody's words were heard under their speaker and that the question was answered aloud."""
    for name in ("reached_the_end", "every_utterance_heard_once", "attributed", "max_wer", "answer ask-bicycle"):
        assert played.expectation(name)["passed"], played.printed
    assert "green" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    assert "Traceback" not in played.printed


async def passes(folder: Path, name: str, *options: str) -> Outcome:
    """Play a scenario, check that every expectation was met, and return its outcome."""
    played = await asyncio.to_thread(Program.rehearse(folder / name, name, *options).wait)
    assert played.status == 0, played.printed
    assert "Traceback" not in played.printed
    return played


async def test_a_session_may_end_in_mid_sentence(tmp_path: Path) -> None:
    """If the session ends in the middle of an answer, a new session continues the answer."""
    await passes(tmp_path, "realtime-expiry")


async def test_people_may_speak_over_the_model(tmp_path: Path) -> None:
    """When people speak over the model, it falls silent, and the server is told how much of its answer was heard."""
    over = await passes(tmp_path, "realtime-interrupted")
    whole, broken_off = over.report["bot_turns"][:2]
    assert len(broken_off["text"]) < len(whole["text"]) / 2
    assert len(over.report["servers"]["heard_ms"]) == 1


async def test_the_model_may_use_a_tool(tmp_path: Path) -> None:
    """The model calls a tool once and answers from the result."""
    looked_up = await passes(tmp_path, "realtime-look-it-up")
    assert [use["name"] for use in looked_up.report["servers"]["tools"]] == ["memory_search"]


async def test_a_screen_is_watched_until_the_model_is_told_to_be_quiet(tmp_path: Path) -> None:
    """The model comments on a shared screen until it is told to be quiet."""
    await passes(tmp_path, "realtime-watched")


async def test_a_service_in_trouble_costs_an_answer_its_end_and_nothing_else(tmp_path: Path) -> None:
    """If the service breaks off during an answer and stays away, only the end of that answer is lost, which the
    embedded voice says.

    The chat model answers meanwhile, and the bot returns to speech-to-speech when the service is back.
    """
    played = await passes(tmp_path, "realtime-trouble")
    hello, broken_off, meanwhile, again = played.report["bot_turns"]
    assert hello["heard_by_others"]
    assert broken_off["text"].endswith(MODEL_BROKE_OFF)
    assert "this morning" not in broken_off["text"]
    assert "ride it every day" in meanwhile["text"]
    assert again["text"].startswith("Ada said")
    written = [str(message) for message in played.report["messages"]]
    assert sum("Speech-to-speech is gone" in text for text in written) == 1
    assert sum("status 503" in text for text in written) == 1
    assert sum("Speech-to-speech is back" in text for text in written) == 1


async def test_a_new_session_knows_what_was_said_in_the_old(tmp_path: Path) -> None:
    """After a session expires in the middle of an answer, the new session is sent what was said before."""
    played, server = await hello_by_speech(tmp_path, RealtimeBehaviour(expires_in_response=2))
    assert_all_were_heard(played)
    assert played.status == 0, played.printed
    assert server.sessions == 2
    # Three answers, and the one that was continued.
    assert len(server.asked) == 4
    assert server.asked[2].items[-1][0] == "system"
    said = [text for role, text in server.asked[2].items if role == "user"]
    assert any("green bicycle" in text for text in said)
    assert any(text.startswith("[") and "Hello" in text for text in said)
    answers = [turn["text"] for turn in played.report["bot_turns"]]
    assert answers[1].startswith("I heard you, Ada.")
    assert answers[1].endswith("if you ask me.")


async def test_without_the_service_the_room_answers_otherwise(tmp_path: Path) -> None:
    """If the service refuses the key, this is reported in the channel and the chat model answers."""
    without, away = await hello_by_speech(tmp_path, RealtimeBehaviour(mode=RealtimeMode.WRONG_KEY))
    assert_all_were_heard(without)
    assert not away.asked
    assert any("Speech-to-speech is gone" in str(message) for message in without.report["messages"])

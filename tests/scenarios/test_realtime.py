"""Complete runs by speech-to-speech: the real client library, a local server, and real sound in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.brain.speech_output import MODEL_BROKE_OFF
from tests.scenarios.program import Program, ProgramOutcome

pytestmark = pytest.mark.rehearsal


def passes(folder: Path, name: str) -> ProgramOutcome:
    """Play a scenario, check that every expectation was met, and return its outcome."""
    played = Program.rehearse(folder, name).wait()
    assert played.status == 0, played.printed
    assert "Traceback" not in played.printed
    return played


def test_a_screen_is_watched_and_people_may_speak_over_the_model(tmp_path: Path) -> None:
    """The model comments on a shared screen until it is told to be quiet. Later it calls a tool once and answers from
    the result. When people speak over it, it falls silent, and the server is told how much of its answer was heard.
    """
    played = passes(tmp_path, "realtime-watched")
    servers = played.report["servers"]
    assert [use["name"] for use in servers["tools"]] == ["memory_search"]
    whole, broken_off = played.report["bot_turns"][-2:]
    assert len(broken_off["text"]) < len(whole["text"]) / 2
    assert len(servers["heard_ms"]) == 1


def test_a_service_in_trouble_costs_an_answer_its_end_and_nothing_else(tmp_path: Path) -> None:
    """If a session ends in the middle of an answer, a new session continues the answer. If the service breaks off
    during an answer and stays away, only the end of that answer is lost, which the embedded voice says.

    The chat model answers meanwhile, and the bot returns to speech-to-speech when the service is back. What is folded
    meanwhile stands in the model's instructions.
    """
    played = passes(tmp_path, "realtime-trouble")
    _, broken_off, meanwhile, again = played.report["bot_turns"]
    assert broken_off["text"].endswith(MODEL_BROKE_OFF)
    assert "this morning" not in broken_off["text"]
    assert "ride it every day" in meanwhile["text"]
    told = next(part for part in again["payload"] if part["kind"] == "summary")
    assert told["content"].startswith("Session conversation summary:")
    written = [str(message) for message in played.report["messages"]]
    assert sum("Speech-to-speech does not work now" in text for text in written) == 1
    assert not any("503" in text for text in written), "what the service said is for the operator"
    assert sum("Speech-to-speech works again" in text for text in written) == 1

"""The messages of the Realtime protocol: sound in pieces, speaker names and settings."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.realtime.port import Briefing, RealtimeTool
from voice.realtime.wire import (
    APPEND_BYTES,
    LEAST_COMMIT_SAMPLES,
    TRANSCRIPTION_MODEL,
    SessionConfiguration,
    decode_audio,
    input_events,
    session_update,
)


@given(st.integers(1, 3 * APPEND_BYTES // 2))
def test_an_input_is_a_name_its_sound_and_a_commit(length: int) -> None:
    """An input is a name, all its sound in order and a commit. Sound that is too short is filled up with silence."""
    pcm = (np.arange(length) % 3000 + 1).astype(np.int16)
    who, *sound, commit = input_events(5, "Ada speaks:", pcm)
    assert who["item"]["content"] == [{"type": "input_text", "text": "Ada speaks:"}]
    assert commit == {"type": "input_audio_buffer.commit"}
    assert all(len(base64.b64decode(each["audio"])) <= APPEND_BYTES for each in sound)
    heard = np.concatenate([decode_audio(each["audio"]) for each in sound])
    assert len(heard) == max(length, LEAST_COMMIT_SAMPLES)
    assert np.array_equal(heard[:length], pcm)
    assert not heard[length:].any()


@pytest.mark.parametrize(("encoded", "length"), [("", 0), ("not base64!", 0), ("AAAA", 1), ("AAAAAA==", 2)])
def test_sound_that_cannot_be_read_is_none(encoded: str, length: int) -> None:
    """Sound with invalid base64 is empty, and half a sample is left out."""
    assert len(decode_audio(encoded)) == length


def test_settings_leave_turns_to_the_room() -> None:
    """The settings turn the server's turn detection off and name the language if there is one."""
    tool = RealtimeTool("look", "Looks.", {"type": "object"})
    session = session_update(SessionConfiguration("marin", "de"), Briefing("Be kind.", tools=(tool,)))["session"]
    assert session["instructions"] == "Be kind."
    assert session["audio"]["input"]["turn_detection"] is None
    assert session["audio"]["input"]["transcription"] == {"model": TRANSCRIPTION_MODEL, "language": "de"}
    assert [each["name"] for each in session["tools"]] == ["look"]
    anything = session_update(SessionConfiguration("marin"), Briefing(""))["session"]
    assert anything["audio"]["input"]["transcription"] == {"model": TRANSCRIPTION_MODEL}


def test_a_tool_s_choice_of_parameters_costs_no_session() -> None:
    """OpenAI refuses a choice at the top of a tool's schema, and with it the whole session. Elsewhere it takes one."""
    when: dict[str, object] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    shown: dict[str, object] = {"type": "object", "properties": {"when": when}}
    tool = RealtimeTool("timer", "Starts.", {**shown, "anyOf": [{"required": ["when"]}]})
    session = session_update(SessionConfiguration("marin"), Briefing("", tools=(tool,)))["session"]
    assert session["tools"][0]["parameters"] == shown

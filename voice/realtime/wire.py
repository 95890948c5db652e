"""Builds the Realtime protocol's client events, and reads parts of the server's. Pure.

Names and shapes are those of the GA protocol (`openai.types.realtime`).
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from voice.asr.language_names import language_name
from voice.realtime.port import REALTIME_RATE_HZ, Briefing, ConversationItem, ItemRole, RealtimeTool, RealtimeToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.audio import Pcm

ClientEvent: TypeAlias = dict[str, Any]

# Bytes of sound in one append event: the protocol allows 15 MiB, but small events do not block the socket.
APPEND_BYTES = 96_000
# The server refuses to commit less sound than this, so shorter sound is padded with silence.
LEAST_COMMIT_SAMPLES = REALTIME_RATE_HZ // 10
# Ids and names have some thirty characters.
MOST_ID_CHARS = 200
MOST_ARGUMENT_CHARS = 20_000
# OpenAI refuses a schema with one of these at its top (https://github.com/home-assistant/core/issues/160600), and the
# whole session with it. They are checked when the tool is called.
_NOT_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
# The id of the event that configures a new session. The server repeats it if it refuses the configuration.
CONFIGURATION_ID = "configuration"
# What is logged and shown of a server's codes. A sentence is none.
_CODE = re.compile(r"[\w.:-]{1,64}", re.ASCII)
# The same of the setting that a server objects to, such as `session.audio.output.voice` or `session.tools[0].name`.
_SETTING = re.compile(r"[\w.\[\]-]{1,64}", re.ASCII)
# How it names a tool there, such as one whose description is too long.
_TOOL = re.compile(r"session\.tools\[(\d{1,4})\]", re.ASCII)
# What the endpoint writes down with what people say: OpenAI's most exact one for this.
TRANSCRIPTION_MODEL = "gpt-4o-mini-transcribe"


def session_update(voice: str, briefing: Briefing) -> ClientEvent:
    """Return the event that configures a new session."""
    pcm = {"type": "audio/pcm", "rate": REALTIME_RATE_HZ}
    transcription: dict[str, Any] = {"model": TRANSCRIPTION_MODEL}
    match briefing.languages:
        case ():
            pass
        case (language,):
            transcription["language"] = language
        case several:
            # The endpoint takes one language; of several it takes a hint.
            names = ", ".join(language_name(code) or code for code in several)
            transcription["prompt"] = f"The people speak one of these languages: {names}."
    return {
        "type": "session.update",
        "event_id": CONFIGURATION_ID,
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "instructions": briefing.instructions,
            "audio": {
                # The room decides when to reply, so the server must neither end turns nor reply by itself.
                "input": {"format": pcm, "transcription": transcription, "turn_detection": None},
                "output": {"format": pcm, "voice": voice},
            },
            "tools": [tool_schema(tool) for tool in briefing.tools],
            "tool_choice": "auto",
        },
    }


def input_events(input_id: int, speakers: str, pcm: Pcm) -> list[ClientEvent]:
    """Return an input as events: a text item that names the speakers, then their sound."""
    if len(pcm) < LEAST_COMMIT_SAMPLES:
        pcm = np.concatenate([pcm, np.zeros(LEAST_COMMIT_SAMPLES - len(pcm), np.int16)])
    sound = pcm.astype("<i2").tobytes()
    return [
        create_item(ConversationItem(_label_id(input_id), ItemRole.USER, speakers)),
        *(
            {"type": "input_audio_buffer.append", "audio": base64.b64encode(sound[at : at + APPEND_BYTES]).decode()}
            for at in range(0, len(sound), APPEND_BYTES)
        ),
        {"type": "input_audio_buffer.commit"},
    ]


def label_ids(input_id: int, item_id: str) -> tuple[str, ...]:
    """Return the ids of an input's items: the label with the speakers, and the sound."""
    return (_label_id(input_id), item_id)


def _label_id(input_id: int) -> str:
    return f"who_{input_id}"


def create_item(item: ConversationItem) -> ClientEvent:
    """Return the event that adds a text item to the conversation."""
    kind = "output_text" if item.role is ItemRole.ASSISTANT else "input_text"
    message = {
        "type": "message",
        "id": item.id,
        "role": item.role.value,
        "content": [{"type": kind, "text": item.text}],
    }
    return {"type": "conversation.item.create", "item": message}


def tool_schema(tool: RealtimeTool) -> dict[str, Any]:
    """Return a tool as the protocol describes it."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": {word: each for word, each in tool.parameters.items() if word not in _NOT_AT_TOP},
    }


def decode_audio(encoded: str) -> Pcm:
    """Decode base64 sound; return no samples if it is invalid."""
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return np.zeros(0, np.int16)
    return np.frombuffer(raw[: len(raw) // 2 * 2], dtype="<i2").astype(np.int16)


def tool_call(event: Mapping[str, Any]) -> RealtimeToolCall:
    """Return the call in a server event. Arguments that are too long are cut, and so are none."""
    arguments = text_of(event.get("arguments"))[:MOST_ARGUMENT_CHARS]
    return RealtimeToolCall(id_of(event.get("call_id")), id_of(event.get("name")), arguments)


def text_of(written: object) -> str:
    """Return a text that a server has written. Null, which some servers send, and what else is no text is empty."""
    return written if isinstance(written, str) else ""


def object_of(written: object) -> Mapping[str, Any]:
    """Return an object that a server has written. What is none is empty: a sentence in the place of an error."""
    return written if isinstance(written, dict) else {}


def id_of(written: object) -> str:
    """Return an id or a name that a server has written."""
    return str(written)[:MOST_ID_CHARS]


def code_of(error: Mapping[str, Any]) -> str:
    """Return the code of an error that a server has written."""
    code = str(error.get("code") or error.get("type") or "unknown")
    return code if _CODE.fullmatch(code) else "unknown"


def setting_of(error: Mapping[str, Any]) -> str:
    """Return the setting that an error of a server is about; empty if it names none."""
    setting = text_of(error.get("param"))
    return setting if _SETTING.fullmatch(setting) else ""


def tool_number_of(error: Mapping[str, Any]) -> int | None:
    """Return which of the tools that were sent an error of a server is about, from 0 on; None if it names none."""
    found = _TOOL.match(text_of(error.get("param")))
    return None if found is None else int(found[1])

"""Client events of the Realtime protocol as they go over the wire, and sound as it comes. Pure.

Names and shapes are those of the GA protocol (`openai.types.realtime`).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from voice.realtime.port import REALTIME_RATE_HZ, ConversationItem, ItemRole

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.realtime.port import Briefing, RealtimeTool

ClientEvent: TypeAlias = dict[str, Any]

# Sound of one input, in bytes of an append event: the protocol takes 15 MiB, small pieces don't stall the socket.
APPEND_BYTES = 96_000
# The server refuses to commit less than this; silence fills what a short word leaves.
LEAST_COMMIT_SAMPLES = REALTIME_RATE_HZ // 10


@dataclass(frozen=True, slots=True)
class SessionConfiguration:
    """What of a session's settings never changes while it lives."""

    voice: str
    transcription_model: str
    language: str | None = None


def session_update(configuration: SessionConfiguration, briefing: Briefing) -> ClientEvent:
    """Return what a fresh session is told about itself."""
    pcm = {"type": "audio/pcm", "rate": REALTIME_RATE_HZ}
    transcription: dict[str, Any] = {"model": configuration.transcription_model}
    if configuration.language:
        transcription["language"] = configuration.language
    return {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "instructions": briefing.instructions,
            "audio": {
                # Who is answered is decided by the room, so the server neither ends turns nor answers by itself.
                "input": {"format": pcm, "transcription": transcription, "turn_detection": None},
                "output": {"format": pcm, "voice": configuration.voice},
            },
            "tools": [tool_schema(tool) for tool in briefing.tools],
            "tool_choice": "auto",
        },
    }


def input_events(input_id: int, speakers: str, pcm: Pcm) -> list[ClientEvent]:
    """Return an input as events: who speaks, in writing, then their sound."""
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
    """Return the items that hold an input: who spoke, and what."""
    return (_label_id(input_id), item_id)


def _label_id(input_id: int) -> str:
    return f"who_{input_id}"


def create_item(told: ConversationItem) -> ClientEvent:
    """Return the event that puts something written into the conversation."""
    kind = "output_text" if told.role is ItemRole.ASSISTANT else "input_text"
    item = {
        "type": "message",
        "id": told.id,
        "role": told.role.value,
        "content": [{"type": kind, "text": told.text}],
    }
    return {"type": "conversation.item.create", "item": item}


def tool_schema(tool: RealtimeTool) -> dict[str, Any]:
    """Return a tool as the protocol tells it."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def decode_audio(encoded: str) -> Pcm:
    """Return sound out of base64; what cannot be read is no sound."""
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return np.zeros(0, np.int16)
    return np.frombuffer(raw[: len(raw) // 2 * 2], dtype="<i2").astype(np.int16)

"""The operator's settings for speech-to-speech."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class RealtimeSettings(BaseModel):
    """Speech-to-speech: one model that hears and speaks, over OpenAI's Realtime protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(
        default="",
        examples=["gpt-realtime"],
        description="The name of a speech-to-speech model that answers instead of recogniser, language model and "
        "voice. It costs many times as much. Where it fails, and with no name, the other three answer.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that speaks the Realtime protocol, for example http://127.0.0.1:8000/v1. Empty "
        "means OpenAI itself.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key.",
    )
    voice: str = Field(
        default="marin",
        min_length=1,
        description="The voice's name at the endpoint.",
    )

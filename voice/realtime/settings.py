"""The operator's settings for speech-to-speech."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class RealtimeSettings(BaseModel):
    """Speech-to-speech: one model that hears and speaks, over OpenAI's Realtime protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=False,
        description="Answer with a speech-to-speech model instead of recogniser, language model and voice. It costs "
        "many times as much. When it fails the other three take over.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that speaks the Realtime protocol, for example http://127.0.0.1:8000/v1. Empty "
        "means OpenAI itself.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key. Without it llm.api_key is used if both are at the same address.",
    )
    model: str = Field(
        default="gpt-realtime",
        min_length=1,
        description="The model's name at the endpoint.",
    )
    voice: str = Field(
        default="marin",
        min_length=1,
        description="The voice's name at the endpoint.",
    )

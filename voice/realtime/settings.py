"""The operator's settings for speech-to-speech."""

from __future__ import annotations

from typing import Literal

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
    transcription_model: str = Field(
        default="gpt-4o-mini-transcribe",
        min_length=1,
        description="The model with which the endpoint writes down what people say.",
    )
    mode: Literal["turns", "mixed"] = Field(
        default="turns",
        description="turns: each person's utterance is sent by itself, after their name, and the endpoint writes it "
        "down. mixed: what several people say at once is sent as one sound after all their names, and the local "
        "recogniser writes it down for each.",
    )
    # Seconds after which the session is renewed, with the summary and the recent turns: a minute less than OpenAI
    # allows. Rehearsals shorten it.
    session_s: float = Field(default=3_540.0, ge=30, le=7_200, json_schema_extra={"internal": True})
    # Seconds after which a model that was given up is tried again. After a short disturbance of the service this costs
    # a minute. The time doubles each time that the model fails again before its first reply, up to half an hour.
    # Rehearsals shorten it.
    retry_after_s: float = Field(default=60.0, ge=1, le=3_600, json_schema_extra={"internal": True})

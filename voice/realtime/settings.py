"""What an operator can tune in speech-to-speech: units, why the default, and when a change takes effect."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class RealtimeSettings(BaseModel):
    """Speech-to-speech: a model that hears and speaks itself, over OpenAI's Realtime protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=False,
        description="Answer by a speech-to-speech model instead of recogniser, language model and voice. It costs "
        "many times as much. When it fails the others take over. Takes effect at the next join.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that speaks the Realtime protocol, for example http://127.0.0.1:8000/v1; "
        "empty means OpenAI itself. Takes effect at the next join.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key; without it llm.api_key serves where realtime.base_url is empty. Takes effect "
        "at start.",
    )
    model: str = Field(
        default="gpt-realtime", min_length=1, description="The model's name. Takes effect at the next join."
    )
    transcription_model: str = Field(
        default="gpt-4o-mini-transcribe",
        min_length=1,
        description="What the endpoint writes down with what people say. Takes effect at the next join.",
    )
    voice: str = Field(default="marin", min_length=1, description="The voice's name. Takes effect at the next join.")
    mode: Literal["turns", "mixed"] = Field(
        default="turns",
        description="turns: each person's utterance is an input of its own, after their name, and the endpoint writes "
        "it down. mixed: what is said at once is heard as one sound after all their names, and the local recogniser "
        "writes it down for each person. Takes effect at the next join.",
    )
    session_s: float = Field(
        default=3_540.0,
        ge=30,
        le=7_200,
        description="Seconds after which the session is renewed, with the summary and the recent turns; a minute less "
        "than the service allows (OpenAI: 3600, some accounts 1800). Takes effect at the next join.",
    )
    renew_patience_s: float = Field(
        default=45.0,
        ge=0,
        le=600,
        description="Seconds that a due renewal waits for a moment in which nobody speaks. Takes effect at the next "
        "join.",
    )
    connect_timeout_s: float = Field(
        default=10.0, gt=0, le=60, description="Seconds that connecting may take. Takes effect at the next join."
    )
    hear_timeout_s: float = Field(
        default=8.0,
        gt=0,
        le=60,
        description="Seconds to wait for what was said in writing; then the local recogniser is asked. Takes effect at "
        "the next join.",
    )
    reply_timeout_s: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Seconds to wait for an answer's sound to begin or go on. Takes effect at the next join.",
    )
    failures_before_fallback: int = Field(
        default=3,
        ge=1,
        le=20,
        description="Failures in a row after which the room answers without it. Takes effect at the next join.",
    )
    retry_after_s: float = Field(
        default=60.0,
        ge=1,
        le=3_600,
        description="Seconds after which it is tried again when it was given up, unless somebody has to mend something "
        "first (key, quota, model); longer each time that it fails again before its first answer, up to half an hour. "
        "Default 60: a passing trouble of the service costs a minute. Takes effect at the next join.",
    )

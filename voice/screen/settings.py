"""What an operator can tune in shared screens: units, why the default, and when a change takes effect."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class ScreenSettings(BaseModel):
    """Watching the screens that people share with the bot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Let people share a screen with the bot by /watch. Nothing is watched until somebody does. Takes "
        "effect at the next /watch.",
    )
    reader: Literal["auto", "ocr", "model"] = Field(
        default="auto",
        description="What looks at a screen. ocr: its text is read on this machine. model: a vision model describes it "
        "(screen.model), and its text is read where the model fails. auto: the model if one is named, else ocr. Takes "
        "effect at start.",
    )
    model: str = Field(
        default="",
        description="The name of a model that takes pictures; each look costs a call of it, and the picture goes to "
        "its endpoint. Empty: none. Takes effect at start.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of the vision model's OpenAI-compatible endpoint; empty means llm.base_url. Takes effect at "
        "start.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where screen.base_url is empty. Takes effect "
        "at start.",
    )
    model_timeout_s: float = Field(
        default=15.0,
        gt=0,
        le=120,
        description="Seconds that one look of the vision model may take; then the screen's text is read instead. Who "
        "asks about a screen waits 8 s at most. Takes effect at start.",
    )
    active_interval_s: float = Field(
        default=10.0,
        ge=2,
        le=600,
        description="Seconds between looks of the vision model while the screen changes. Default 10. A change of scene "
        "is looked at sooner. Takes effect at the next share.",
    )
    idle_interval_s: float = Field(
        default=30.0,
        ge=5,
        le=3600,
        description="Seconds between looks of the vision model while little changes; a screen that stands still is not "
        "looked at again. Takes effect at the next share.",
    )
    max_looks_per_hour: int = Field(
        default=400,
        ge=0,
        le=100_000,
        description="Most looks of the vision model in any hour, of all rooms together; then the screen's text is read "
        "instead. Default 400: one screen that moves all the time. 0 means no limit. Takes effect at start.",
    )
    busy_share: float = Field(
        default=0.3,
        ge=0.05,
        le=1,
        description="Share of one processor core (0-1) that reading text may take while screens keep changing. Default "
        "0.3: a new line is noted within a second or two and the rest is left for hearing. Takes effect at start.",
    )
    link_valid_s: float = Field(
        default=300.0,
        ge=30,
        le=3600,
        description="Seconds within which the link of /watch start has to be opened. Default 300. Takes effect at "
        "start.",
    )
    resume_within_s: float = Field(
        default=45.0,
        ge=5,
        le=600,
        description="Seconds for which a share waits for a page whose connection broke. Takes effect at the next "
        "share.",
    )
    max_shares: int = Field(
        default=4,
        ge=1,
        le=50,
        description="Most screens shared in one room at a time. Takes effect at the next /watch.",
    )
    commentary: bool = Field(
        default=True,
        description="Let the bot say something about a screen of its own accord, where it would also answer the room "
        "(brain settings and /talk). Takes effect at the next join.",
    )
    commentary_every_s: float = Field(
        default=15.0,
        ge=5,
        le=3600,
        description="Least seconds between two such remarks. Default 15. Takes effect at the next join.",
    )
    commentary_quiet_s: float = Field(
        default=2.2,
        ge=0.5,
        le=60,
        description="Seconds for which nobody has spoken before such a remark. Default 2.2. Takes effect at the next "
        "join.",
    )

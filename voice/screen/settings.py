"""The operator's settings for shared screens."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class ScreenSettings(BaseModel):
    """Watching the screens that people share with the bot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Let people share a screen with the bot by /watch. Nothing is watched until somebody does. Off: "
        "nobody gets a link; the dashboard is served either way.",
    )
    model: str = Field(
        default="",
        description="The name of a vision model that describes screens; each look costs one call, and the picture goes "
        "to its endpoint. Where it fails, and with no name, the bot reads the screen's text on this machine.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of the vision model's OpenAI-compatible endpoint. Empty means llm.base_url.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key. Without it llm.api_key is used if screen.base_url is empty.",
    )
    max_looks_per_hour: int = Field(
        default=400,
        ge=0,
        le=100_000,
        json_schema_extra={"internal": True},
        description="Most looks of the vision model in an hour, of all rooms together; then the bot reads the screen's "
        "text instead. Default 400: one screen that moves all the time. 0 means no limit.",
    )
    commentary_every_s: float = Field(
        default=15.0,
        ge=0,
        le=3600,
        json_schema_extra={"internal": True},
        description="Least seconds between two remarks about a screen that nobody asked for. The bot makes them only "
        "alone with one person, to somebody who is talking with it, or with participation.voice_mode = free. 0 means "
        "none.",
    )
    # Maximum number of screens shared in one room at the same time.
    max_shares: int = Field(default=4, ge=1, le=50, json_schema_extra={"internal": True})
    # The share of one CPU core (0-1) that reading text may use while screens keep changing. A new line is then noted
    # within a second or two, and the rest of the CPU is left for speech recognition.
    busy_share: float = Field(default=0.3, ge=0.05, le=1, json_schema_extra={"internal": True})

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
        description=(
            "The name of a vision model that describes screens; the picture goes to its endpoint. Where it fails, "
            "and with no name, the bot reads the screen's text on this machine."
        ),
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of the vision model's OpenAI-compatible endpoint. Empty means llm.base_url.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key.",
    )

"""The operator's settings for the bot's voice."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl
from voice.server_keys import ServerKey


class SpeakingSettings(BaseModel):
    """The bot's own voice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/speech, for example http://127.0.0.1:8880/v1. "
        "Empty with speaking.api_key set means OpenAI itself.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key.",
    )
    model: str = Field(default="gpt-4o-mini-tts", min_length=1, description="The endpoint's speech model.")
    voice_name: str = Field(default="alloy", min_length=1, description="The endpoint's voice by name.")
    speed: float = Field(
        default=1.0,
        ge=0.5,
        le=2,
        description="Pace of speech, a factor; 1 is the voice's own.",
    )
    pronunciations: dict[ServerKey, dict[str, str]] = Field(
        default_factory=dict,
        examples=[{"all": {"Xiomara": "see oh mara"}}],
        description=(
            'How to say words that the voice gets wrong, by server id, or by `all`: { all = { Xiomara = "see oh '
            'mara" }, 123456789012345678 = { GG = "good game" } }. Whole words. The transcript keeps them as they '
            "are written."
        ),
    )
    blocked_words: dict[ServerKey, list[str]] = Field(
        default_factory=dict,
        examples=[{"all": ["some phrase", "rude*"]}],
        description=(
            'Words that the bot does not say aloud, by server id, or by `all`: { all = ["some phrase", "rude*"] }. * '
            "stands for any letters. A sentence with one is left out, and the text channel is told."
        ),
    )
    moderation: Literal["off", "endpoint"] = Field(
        default="off",
        description=(
            "endpoint: the moderation API at llm.base_url checks every sentence; one that is flagged, or cannot be "
            "checked, is not spoken. This adds about 0.2 s to each. Speech-to-speech does not answer then."
        ),
    )

    @property
    def by_endpoint(self) -> bool:
        """Return whether sentences go to a voice at an endpoint."""
        return self.sent_to is not None

    @property
    def sent_to(self) -> str | None:
        """Return the address that gets the sentences, which the notice names; None: none does."""
        return self.base_url if self.base_url or self.api_key is not None else None

    def blocked_in(self, guild_id: int) -> tuple[str, ...]:
        """Return the words that must not be spoken in one server."""
        return tuple(word for place in ("all", str(guild_id)) for word in self.blocked_words.get(place, ()))

    def pronounced_in(self, guild_id: int) -> dict[str, str]:
        """Return one server's pronunciations: word -> how to say it."""
        return {
            word.casefold(): said
            for place in ("all", str(guild_id))
            for word, said in self.pronunciations.get(place, {}).items()
        }

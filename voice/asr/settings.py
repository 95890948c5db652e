"""The operator's settings for the speech recogniser."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl

# The model that hears where no other is named.
LOCAL_RECOGNISER = "whisper-base"


class AsrSettings(BaseModel):
    """The speech recogniser: what turns speech into text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    languages: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] = Field(
        default=(),
        examples=[["en", "de"]],
        description=(
            "Language codes of what is spoken on your servers: nobody is heard in another language, if an endpoint "
            "(asr.base_url) obeys. A server may narrow them. One alone, for example en, makes fewer errors. Empty: "
            "each person's is detected."
        ),
    )
    glossary_words: tuple[str, ...] = Field(
        default=(),
        examples=[["Valheim", "Xiomara"]],
        description=(
            "Names and words that the recogniser should expect in every room. It already expects the names of the "
            "bot, the people present, the server, the channel, its events, and topics of text channels that "
            "everybody there may read."
        ),
    )
    base_url: EndpointUrl = Field(
        default="",
        description=(
            "URL of an endpoint with OpenAI's /audio/transcriptions, to which everybody's speech is sent; where it "
            "fails whisper-base takes over. Empty: no sound leaves this machine."
        ),
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key.",
    )
    model: str = Field(
        default="",
        examples=["whisper-small"],
        description=(
            "The Whisper model: its name in models.directory, or the path of its folder; empty means whisper-base "
            "(`roomtone models list`). With asr.base_url the endpoint's model; empty means whisper-1."
        ),
    )

    @property
    def by_endpoint(self) -> bool:
        """Return whether speech is sent to an endpoint."""
        return bool(self.base_url)

    @property
    def local_model(self) -> str:
        """Return the name or the path of the model that hears on this machine, also behind an endpoint."""
        return LOCAL_RECOGNISER if self.by_endpoint or not self.model else self.model

    @property
    def endpoint_model(self) -> str:
        """Return the name of the model to ask an endpoint for."""
        return self.model or "whisper-1"

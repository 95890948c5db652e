"""The operator's settings for the speech recogniser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class AsrSettings(BaseModel):
    """The speech recogniser: what turns speech into text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str = Field(
        default="auto",
        pattern=r"^(auto|[a-z]{2,3})$",
        description="Language code that everybody speaks, for example en. auto detects it for each person. A fixed "
        "language makes fewer errors on short words.",
    )
    languages: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] = Field(
        default=(),
        examples=[["en", "de"]],
        description="Language codes of what is spoken on your servers. With asr.language = auto, nobody is heard in "
        "another language than these. Empty: in any that the model knows.",
    )
    # Assumed with asr.language = auto while detection is unsure, as on a short first word, on servers that have chosen
    # no language on Discord or with /settings. Whoever expects another one chooses it there.
    fallback_language: str = Field(default="en", pattern=r"^[a-z]{2,3}$", json_schema_extra={"internal": True})
    glossary_words: tuple[str, ...] = Field(
        default=(),
        examples=[["Valheim", "Xiomara"]],
        description="Names and words of your community that the recogniser should expect in every room. It already "
        "expects the bot's names, the people present, the server, the channel, the server's events and the topics of "
        "text channels beside it that everybody there may read.",
    )
    engine: Literal["local", "endpoint"] = Field(
        default="local",
        description="What recognises speech. local: a model in models.directory; no sound leaves the machine. "
        "endpoint: asr.base_url, to which everybody's speech is sent; where it fails whisper-base takes over, if it is "
        "in models.directory.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/transcriptions, for example "
        "http://127.0.0.1:8000/v1. Empty with asr.engine = endpoint means OpenAI itself.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key. Without it llm.api_key is used if both are at the same address.",
    )
    model: str = Field(
        default="",
        examples=["whisper-small"],
        description="The model. With asr.engine = local a CTranslate2 Whisper model: its name in models.directory, or "
        "the path of its folder; empty means whisper-base. Larger ones make fewer errors and are slower (`roomtone "
        "models list`). With asr.engine = endpoint the endpoint's model; empty means whisper-1. Whisper models say how "
        "sure they are and which language they heard, which helps to tell noise from speech; OpenAI's later models say "
        "less.",
    )
    # The folder of the local model. `config.load` sets it from `model` and models.directory.
    model_dir: Path = Field(default=Path("data/models/whisper-base"), json_schema_extra={"internal": True})
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="Where the local model runs. auto takes a CUDA device if there is one.",
    )
    cpu_threads: int = Field(
        default=2,
        ge=0,
        le=64,
        json_schema_extra={"internal": True},
        description="Threads that encode speech on the CPU; 0 lets CTranslate2 choose. Default 2: encoding takes three "
        "quarters of the time of one, for hardly more CPU. Words are then found in one thread with a model of up to "
        "200 MB, which is faster than with several, and in as many with a larger one.",
    )

    @property
    def fixed_language(self) -> str | None:
        """Return the one language that everybody speaks; None: it is detected."""
        if self.language != "auto":
            return self.language
        return self.languages[0] if len(self.languages) == 1 else None

    @property
    def endpoint_model(self) -> str:
        """Return the name of the model to ask an endpoint for."""
        return self.model or "whisper-1"

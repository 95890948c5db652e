"""Combines the packages' settings classes into one schema, and iterates over its settings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from bot.brain.settings import BrainSettings
from bot.llm.settings import LlmSettings
from bot.mcp.settings import McpSettings
from bot.participation.settings import ParticipationSettings
from bot.settings import (
    CompactionSection,
    DiscordSettings,
    ModelsSettings,
    MonitoringSettings,
    RecallSettings,
    RoomSettings,
    StorageSettings,
    WebSettings,
)
from compaction.settings import BudgetSettings, PeopleSettings, TierSettings
from voice.asr.settings import AsrSettings
from voice.realtime.settings import RealtimeSettings
from voice.screen.settings import ScreenSettings
from voice.speaking.settings import SpeakingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

Key = tuple[str, ...]

VARIABLE_PREFIX = "ROOMTONE_"

# Instructions and a question need this much of what a model can take.
LEAST_INPUT_TOKENS = 512


class Settings(BaseModel):
    """All sections, in the order in which the page shows them: first what most operators set.

    Every field has a default. `config.load` reads the sources.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    discord: DiscordSettings = Field(default_factory=DiscordSettings)
    llm: LlmSettings = Field(default_factory=LlmSettings)
    brain: BrainSettings = Field(default_factory=BrainSettings)
    participation: ParticipationSettings = Field(default_factory=ParticipationSettings)
    asr: AsrSettings = Field(default_factory=AsrSettings)
    speaking: SpeakingSettings = Field(default_factory=SpeakingSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    models: ModelsSettings = Field(default_factory=ModelsSettings)
    room: RoomSettings = Field(default_factory=RoomSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    screen: ScreenSettings = Field(default_factory=ScreenSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    monitoring: MonitoringSettings = Field(default_factory=MonitoringSettings)
    realtime: RealtimeSettings = Field(default_factory=RealtimeSettings)
    compaction: CompactionSection = Field(default_factory=CompactionSection)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    recall: RecallSettings = Field(default_factory=RecallSettings)
    people: PeopleSettings = Field(default_factory=PeopleSettings)
    tiers: TierSettings = Field(default_factory=TierSettings)

    @model_validator(mode="after")
    def _answers_leave_room(self) -> Settings:
        """Refuse an answer as long as all that the model can take: there would be no room for any question."""
        longest = self.llm.max_output_tokens
        sizes = {"budget.max_context_tokens": self.budget.max_context_tokens} | {
            f"max_context_tokens of the model {each.model} in llm.fallback_models": each.max_context_tokens
            for each in self.llm.fallback_models
            if each.max_context_tokens is not None
        }
        for name, size in sizes.items():
            if size - longest < LEAST_INPUT_TOKENS:
                raise ValueError(
                    f"llm.max_output_tokens ({longest}) and {name} ({size}) do not fit together: less than "
                    f"{LEAST_INPUT_TOKENS} tokens are left for what is sent. Make answers shorter, for example "
                    "llm.max_output_tokens = 300, or set the size that the model really has"
                )
        return self

    @model_validator(mode="after")
    def _tools_know_their_servers(self) -> Settings:
        """Refuse tools on a bot that serves whoever invites it, and tools for a server that it does not serve."""
        if self.mcp.servers and not self.discord.guilds:
            raise ValueError(
                "discord.guilds must name the servers of a bot that has tools (mcp.servers): without it, anybody's "
                "server of which an owner is a member is served"
            )
        for server in self.mcp.servers:
            if strangers := [guild_id for guild_id in server.guilds if guild_id not in self.discord.guilds]:
                raise ValueError(
                    f"guilds of the server {server.name!r} in mcp.servers has {strangers[0]}, which discord.guilds "
                    "does not have; add it there or take it out"
                )
        return self


# Names that other programs use too. Each sets one setting, unless that setting's own variable is set.
WELL_KNOWN_VARIABLES: dict[str, Key] = {
    "DISCORD_TOKEN": ("discord", "token"),
    "DISCORD_CLIENT_SECRET": ("discord", "client_secret"),
    "OPENAI_API_KEY": ("llm", "api_key"),
    "PUBLIC_URL": ("web", "public_url"),
    "ROOMTONE_DATABASE_URL": ("storage", "database_url"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the schema. `key` is its path, such as ("asr", "language")."""

    key: Key
    field: FieldInfo

    @property
    def name(self) -> str:
        """Return the dotted name, for example `asr.languages`."""
        return ".".join(self.key)

    @property
    def variable(self) -> str:
        """Return the environment variable for this setting, for example ROOMTONE_ASR__LANGUAGES."""
        return VARIABLE_PREFIX + "__".join(self.key).upper()

    @property
    def default(self) -> Any:
        """Return the default value."""
        return self.field.get_default(call_default_factory=True)

    @property
    def secret(self) -> bool:
        """Return whether the value must never be shown."""
        return _has_secret(self.field.annotation)

    @property
    def entry_type(self) -> type[BaseModel] | None:
        """Return the class of the entries of a list of tables; None for any other setting."""
        parts = get_args(self.field.annotation)
        return next((each for each in parts if isinstance(each, type) and issubclass(each, BaseModel)), None)


def settings_of(model: type[BaseModel] = Settings, *, under: Key = ()) -> Iterator[Setting]:
    """Yield every field below `model` in the schema's order."""
    for name, field in model.model_fields.items():
        section = section_type(field)
        if section is None:
            yield Setting((*under, name), field)
        else:
            yield from settings_of(section, under=(*under, name))


def section_type(field: FieldInfo) -> type[BaseModel] | None:
    """Return the settings class of a section, or None for a single setting."""
    annotation = field.annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


SETTINGS: dict[Key, Setting] = {setting.key: setting for setting in settings_of()}


def secrets_in(value: object) -> Iterator[str]:
    """Yield every secret that is set in `value`, at any depth, and the password in each that is a URL.

    These values must not appear in any log.
    """
    match value:
        case SecretStr():
            secret = value.get_secret_value()
            password: str | None = None
            with suppress(ValueError):
                password = urlsplit(secret).password
            yield from dict.fromkeys(filter(None, (secret, password, unquote(password or ""))))
        # An address that was written with more than may be shown.
        case str() if isinstance(whole := getattr(value, "whole", None), SecretStr):
            if whole.get_secret_value() != value:
                yield from secrets_in(whole)
        case BaseModel() | dict() | tuple():
            for each in value if isinstance(value, tuple) else dict(value).values():
                yield from secrets_in(each)


def _has_secret(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any(_has_secret(field.annotation) for field in annotation.model_fields.values())
    return annotation is SecretStr or any(map(_has_secret, get_args(annotation)))

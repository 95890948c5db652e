"""The settings sections that the running bot needs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from bot.settings import (
    CompactionSection,
    DiscordSettings,
    ModelsSettings,
    MonitoringSettings,
    RecallSettings,
    RehearsedDiscordSettings,
    RoomSettings,
    StorageSettings,
    WebSettings,
)
from bot.tuning import UNTUNED, Tuning

if TYPE_CHECKING:
    from pydantic import BaseModel

    from bot.brain.settings import BrainSettings
    from bot.llm.settings import LlmSettings
    from bot.mcp.settings import McpSettings
    from bot.participation.settings import ParticipationSettings
    from compaction.settings import BudgetSettings, PeopleSettings, TierSettings
    from voice.asr.settings import AsrSettings
    from voice.realtime.settings import RealtimeSettings
    from voice.screen.settings import ScreenSettings
    from voice.speaking.settings import SpeakingSettings


@dataclass(frozen=True, slots=True)
class BotSettings:
    """All settings sections of the running bot. `config` loads them."""

    discord: DiscordSettings
    room: RoomSettings
    asr: AsrSettings
    speaking: SpeakingSettings
    realtime: RealtimeSettings
    screen: ScreenSettings
    web: WebSettings
    monitoring: MonitoringSettings
    brain: BrainSettings
    participation: ParticipationSettings
    llm: LlmSettings
    mcp: McpSettings
    compaction: CompactionSection
    budget: BudgetSettings
    models: ModelsSettings
    tiers: TierSettings
    people: PeopleSettings
    recall: RecallSettings
    storage: StorageSettings
    tuning: Tuning = UNTUNED

    @classmethod
    def from_schema(cls, schema: BaseModel, tuning: Tuning = UNTUNED) -> Self:
        """Return the sections of `schema` (`config.schema.Settings`) that the bot needs."""
        sections = {field.name: getattr(schema, field.name) for field in fields(cls) if field.name != "tuning"}
        if tuning.discord_certificate:
            discord = dict(sections["discord"])
            sections["discord"] = RehearsedDiscordSettings(**discord, certificate=tuning.discord_certificate)
        return cls(**sections, tuning=tuning)

    @property
    def speech_to_speech(self) -> bool:
        """Return whether a speech-to-speech model answers. Its sentences cannot be checked before they are heard, so it
        does not where a moderation model has to check them.
        """
        return bool(self.realtime.model) and self.speaking.moderation == "off"

"""The slash commands that need more than Discord, each with the parts of the bot that it shows or changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bot.discord.commands.help import add_help
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.privacy import PrivacyFacts, add_privacy_commands
from bot.discord.commands.recall import add_recall
from bot.discord.commands.reminders import add_reminders
from bot.discord.commands.sessions import add_sessions
from bot.discord.commands.setting_table import BY_KEY
from bot.discord.commands.setting_values import OperatorSettings, SettingStores
from bot.discord.commands.settings import add_settings
from bot.discord.commands.voice import VoiceCommands, add_voice
from bot.discord.commands.watch import add_watch_commands
from bot.errors import SetupError
from bot.guild import VoiceMode
from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonalData, PersonForgetter
from bot.posts.notice import ListeningNotice
from bot.texts.text import Text, verbatim
from bot.wiring.recipients import recipients, remote_database_hosts
from bot.wiring.rooms import RoomForgetting

if TYPE_CHECKING:
    from bot.discord.client import AddCommands
    from bot.memory.personal_recall import MemoryReaders
    from bot.participation.guild_state import GuildStates
    from bot.posts.renewal import PostedRenewal
    from bot.web.watching import WatchService
    from bot.webhook_sender import WebhookSender
    from bot.wiring.process import ProcessParts
    from bot.wiring.settings import BotSettings


def slash_commands(
    parts: ProcessParts,
    participation: GuildStates,
    *,
    readable: MemoryReaders,
    watching: WatchService,
    voice_commands: VoiceCommands,
    posts: PostedRenewal,
    webhooks: WebhookSender,
) -> list[AddCommands]:
    """Return what adds the commands to a command tree. `posts`: those that have words of people. `webhooks`:
    tries the addresses that managers choose.
    """
    settings, stores = parts.settings, parts.stores
    operator = _operator(settings)
    logs = log_path(settings.storage.data_dir).parent
    forgetter = PersonForgetter(stores.database, parts.clock, log_folder=logs)
    rooms = RoomForgetting(participation, stores.upkeeps, stores.servers, posts=posts)
    notice = ListeningNotice(recipients(settings))
    facts = PrivacyFacts(
        notice,
        stores.servers,
        operator,
        log_days=settings.tiers.retention_days,
        keeps_facts=settings.people.enabled,
        database_host=", ".join(remote_database_hosts(settings)),
    )
    return [
        partial(
            add_privacy_commands,
            records=PersonalData(stores.database, forgetter, stores.people, rooms=rooms),
            people=stores.people,
            facts=facts,
        ),
        partial(add_participation_commands, participation=participation),
        partial(add_watch_commands, watching=watching),
        partial(add_settings, stores=SettingStores(stores.servers, operator, voice_commands, webhooks)),
        partial(add_recall, recall=readable.recall, views=readable.views, clock=parts.clock, zone=parts.zone),
        partial(add_sessions, views=readable.views, digests=readable.digests, clock=parts.clock, zone=parts.zone),
        partial(add_reminders, store=stores.sessions.reminders, participation=participation, zone=parts.zone),
        partial(add_voice, commands=voice_commands),
        partial(add_help, participation=participation),
    ]


def _operator(settings: BotSettings) -> OperatorSettings:
    fixed = frozenset(settings.discord.fixed_settings)
    if unknown := sorted(fixed - BY_KEY.keys()):
        raise SetupError(
            Text(
                "There is a wrong name in discord.fixed_settings: {name}. Use only these: {names}.",
                name=unknown[0],
                names=verbatim(", ".join(BY_KEY)),
            )
        )
    return OperatorSettings(
        leave_when_empty_s=settings.tuning.leave_when_empty_s,
        retention_days=settings.tiers.retention_days,
        room=settings.room,
        mode=settings.compaction.mode,
        budget_enabled=settings.budget.enabled,
        max_input_tokens=settings.budget.max_input_tokens,
        searchable=settings.recall.enabled,
        voice_mode=VoiceMode(settings.participation.voice_mode),
        wake_names=settings.brain.names,
        languages=settings.asr.languages,
        fixed=fixed,
    )

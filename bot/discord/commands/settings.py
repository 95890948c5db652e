"""/settings: one panel on which the managers of a server see and change what the bot does there.

The panel is an answer that only one person sees: all settings, a menu of each group, and below these the menu of what
can be chosen for one of them; what is written is asked for in a window. Each press is checked as the command is.
Nothing is remembered between presses, so a panel works as long as Discord shows it, also after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord import app_commands

from bot.channel.markdown import in_message
from bot.discord.answers import (
    FIELD_CHARS,
    Answer,
    answer_when_known,
    change,
    defer,
    embed_in,
    failure_sentence,
    guild_id_of,
    language_of,
)
from bot.discord.command_tree import CheckedCommandTree, CheckedView, use_failed
from bot.discord.commands.setting_table import BY_KEY, GROUPS, SETTINGS
from bot.discord.commands.setting_values import (
    Here,
    OneOf,
    ServerSetting,
    SettingError,
    SettingStores,
    SomeOf,
    Written,
    webhook_secret,
)
from bot.discord.posting import message_parts
from bot.discord.voice_channels import member_of, vocal_channels, voice_channel_of
from bot.errors import BotError
from bot.texts.text import ENGLISH, Text, in_language, joined, verbatim
from compaction.errors import StoreError
from compaction.language.text import cut_at_word
from voice.transport.discord_gateway import VoiceChannel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    Menu = (
        discord.ui.Select[Any] | discord.ui.ChannelSelect[Any] | discord.ui.RoleSelect[Any] | discord.ui.UserSelect[Any]
    )

log = structlog.get_logger()

WHAT = Text("What do you want to change?")
FIXED = Text("The owner of this bot decides this for all servers.")
NOT_ANY_MORE = Text("You cannot choose that any more.")
# How long somebody may write.
WINDOW_S = 15 * 60.0
# Discord's limit for an option's name and for what it says of itself.
_OPTION_CHARS = 100
# What may be longer is written in a field of several lines.
_LONGEST_LINE_CHARS = 200
# Discord's own menus, by the kind of what is chosen: how each is made, and what finds one of these by its id (None: it
# is gone).
_MENUS: Mapping[str, tuple[Callable[..., Menu], dict[str, Any], Callable[[discord.Guild, int], object]]] = {
    "channels": (
        discord.ui.ChannelSelect,
        {"channel_types": [discord.ChannelType.voice, discord.ChannelType.stage_voice]},
        discord.Guild.get_channel,
    ),
    "text channels": (
        discord.ui.ChannelSelect,
        {"channel_types": [discord.ChannelType.text]},
        discord.Guild.get_channel,
    ),
    "roles": (discord.ui.RoleSelect, {}, discord.Guild.get_role),
    # People who have left the server may be taken out too.
    "people": (discord.ui.UserSelect, {}, lambda _, each: discord.Object(each, type=discord.User)),
}


def add_settings(tree: CheckedCommandTree, *, stores: SettingStores) -> None:
    """Put /settings and /rolling-context on `tree`."""
    panel = SettingsPanel(tree, stores)
    tree.lasting_views.append(panel.lasting_views)

    @tree.command(
        name="settings", description="See and change what I do on this server, and where I send what was said."
    )
    @app_commands.guild_only()
    async def settings(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, panel.drawn(interaction))

    @tree.command(name="rolling-context", description="See or choose how I remember long conversations.")
    @app_commands.guild_only()
    async def rolling_context(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, panel.drawn(interaction, BY_KEY["memory"]))


@dataclass(frozen=True, slots=True)
class SettingsPanel:
    """Shows the settings, and stores what is chosen."""

    tree: CheckedCommandTree
    stores: SettingStores

    def lasting_views(self) -> list[discord.ui.View]:
        """Return the views for presses on panels of an earlier process."""
        return [PanelView(self, ENGLISH, setting=each) for each in SETTINGS if not isinstance(each.control, Written)]

    async def open(self, interaction: discord.Interaction, setting: ServerSetting) -> None:
        """Answer a press in the menu: show what can be chosen, or the window to write in."""
        if isinstance(setting.control, Written):
            written = setting.control.now(self._here(interaction))
            await interaction.response.send_modal(
                SettingWindow(self, setting, setting.control, written, language_of(interaction))
            )
        else:
            await defer(interaction, in_place=True)
            await self._redraw(interaction, setting)

    async def choose(self, interaction: discord.Interaction, setting: ServerSetting, chosen: list[str]) -> None:
        """Store what somebody chose or wrote, and show what holds."""
        await defer(interaction, in_place=True)
        guild_id, by = guild_id_of(interaction), interaction.user.id
        try:
            if setting.key in self.stores.operator.fixed:
                raise SettingError(FIXED)
            control = setting.control
            if isinstance(control, OneOf) and not set(chosen) <= set(control.options(self.stores, guild_id)):
                # The menu was drawn before the bot was updated, or before its operator chose otherwise.
                raise SettingError(NOT_ANY_MORE)
            here = self._here(interaction)
            changes = setting.changes(chosen, here)
            if setting.prepare is not None:
                await setting.prepare(changes, self.stores, interaction)
            # Of what holds then: another change may be under way.
            await self.stores.servers.change(
                guild_id, lambda now: replace(now, **setting.changes(chosen, replace(here, server=now))), by=by
            )
            log.info("setting_chosen", setting=setting.key, guild_id=guild_id, user_id=by)
            now = self._here(interaction)
            said = joined(
                (setting.describe(now), webhook_secret(now) if setting.shows_secret else "", setting.effect), "\n"
            )
        except (BotError, StoreError) as error:
            said = failure_sentence(error)
        await self._redraw(interaction, setting, said)

    def _here(self, interaction: discord.Interaction) -> Here:
        """Return what holds on the server of a command or press. The voice channel is that of the chat where it came
        from, or the one in which the person is.
        """
        guild_id, here = guild_id_of(interaction), interaction.channel
        channel = here if isinstance(here, VoiceChannel) else voice_channel_of(member_of(interaction))
        there = [] if interaction.guild is None else vocal_channels(interaction.guild)
        return Here(
            self.stores,
            guild_id,
            self.stores.servers.of(guild_id),
            None if channel is None else channel.id,
            frozenset(each.id for each in there),
        )

    async def _redraw(self, interaction: discord.Interaction, setting: ServerSetting, said: Text | None = None) -> None:
        panel = await self.drawn(interaction, setting, said)
        await change(interaction, panel.text, embed=panel.embed, view=panel.view)

    async def drawn(
        self, interaction: discord.Interaction, setting: ServerSetting | None = None, said: Text | None = None
    ) -> Answer:
        """Return the panel, open at `setting`: what is said above it, all settings, and the menus. `said`: None: what
        to do.
        """
        language = language_of(interaction)
        await self.stores.voices.voices.look()
        here = self._here(interaction)
        embed = embed_in(
            language,
            title=Text("Settings of {server}", server=interaction.guild.name if interaction.guild else ""),
            fields=[
                (heading, verbatim(text))
                for heading, keys in GROUPS.items()
                # A longer group goes on in another field.
                for text in message_parts("\n".join(_lines(keys, here, language)), most_chars=FIELD_CHARS)
            ],
        )
        text = WHAT if setting is None else setting.about
        return Answer(said or text, embed, PanelView(self, language, interaction.guild, setting, here))


def _lines(keys: Sequence[str], here: Here, language: str) -> list[str]:
    """Return what holds, each setting with its name. Those that one sentence tells together are one line."""
    told = {each.describe: each for each in reversed([BY_KEY[key] for key in keys])}
    return [
        f"**{in_message(each.name, language)}**: {in_message(describe(here), language)}"
        for describe, each in reversed(told.items())
    ]


class PanelView(CheckedView):
    """A menu of each group of settings, and one of what can be chosen for `setting`. `here`: None: nobody can tell."""

    def __init__(
        self,
        panel: SettingsPanel,
        language: str,
        guild: discord.Guild | None = None,
        setting: ServerSetting | None = None,
        here: Here | None = None,
    ) -> None:
        super().__init__(panel.tree, "settings")
        for heading, keys in GROUPS.items():
            shown = [BY_KEY[key] for key in keys if key not in panel.stores.operator.fixed]
            if not shown:
                continue
            self._add(
                discord.ui.Select(
                    custom_id=f"roomtone:settings-{heading.template.lower()}",
                    placeholder=in_language(heading, language),
                    options=[_option(language, each.key, each.name, each.about, now=each is setting) for each in shown],
                ),
                lambda interaction, picked: panel.open(interaction, BY_KEY[picked[0]]),
            )
        if setting is not None and not isinstance(setting.control, Written):
            how: dict[str, Any] = {
                "custom_id": f"roomtone:setting-{setting.key}",
                "placeholder": in_language(setting.name, language),
            }
            if isinstance(setting.control, SomeOf):
                menu = _menu_of_some(setting.control, guild, here, how)
            else:
                now = () if here is None else setting.control.now(here)
                # Nobody sees the view for panels of an earlier process.
                options = {} if guild is None else setting.control.options(panel.stores, guild.id)
                if setting.control.several:
                    how |= {"min_values": 0, "max_values": len(options) or 1}
                menu = discord.ui.Select(
                    **how, options=[_option(language, key, text, now=key in now) for key, text in options.items()]
                )
            self._add(menu, lambda interaction, picked: panel.choose(interaction, setting, picked))

    def _add(self, menu: Menu, on_pick: Callable[[discord.Interaction, list[str]], Coroutine[Any, Any, None]]) -> None:
        async def picked(interaction: discord.Interaction) -> None:
            # One view serves all panels of an earlier process, so what was picked is read from the press itself.
            data: Mapping[str, Any] = interaction.data or {}
            await on_pick(interaction, list(data.get("values", ())))

        menu.callback = picked  # type: ignore[method-assign]
        self.add_item(menu)


class SettingWindow(discord.ui.Modal):
    """The window in which a setting is written."""

    def __init__(
        self, panel: SettingsPanel, setting: ServerSetting, control: Written, written: str, language: str
    ) -> None:
        super().__init__(title=in_language(setting.name, language), timeout=WINDOW_S)
        self._panel = panel
        self._setting = setting
        is_long = control.most_chars > _LONGEST_LINE_CHARS
        self._field: discord.ui.TextInput[SettingWindow] = discord.ui.TextInput(
            custom_id="text",
            style=discord.TextStyle.paragraph if is_long else discord.TextStyle.short,
            default=written[: control.most_chars],
            required=False,
            max_length=control.most_chars,
        )
        about = in_language(setting.about, language)
        self.add_item(discord.ui.Label(text=self.title, description=about, component=self._field))

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        return await self._panel.tree.may_use(interaction, command="settings")

    async def on_submit(self, interaction: discord.Interaction, /) -> None:
        await self._panel.choose(interaction, self._setting, [self._field.value])

    async def on_error(  # type: ignore[override]
        self, interaction: discord.Interaction, error: Exception, /
    ) -> None:
        await use_failed(interaction, error, name=self._setting.key)


def _option(language: str, key: str, text: Text, about: Text | None = None, *, now: bool) -> discord.SelectOption:
    label = cut_at_word(in_language(text, language), _OPTION_CHARS)
    described = None if about is None else in_language(about, language)[:_OPTION_CHARS]
    return discord.SelectOption(label=label, value=key, description=described, default=now)


def _menu_of_some(control: SomeOf, guild: discord.Guild | None, here: Here | None, how: dict[str, Any]) -> Menu:
    """Return Discord's own menu of channels, roles or people, with those that are chosen and still there."""
    menu, kind, find = _MENUS[control.kind]
    found = [] if here is None or guild is None else [find(guild, each) for each in control.now(here)]
    present = [each for each in found if each is not None]
    return menu(**how, **kind, min_values=0, max_values=control.most, default_values=present)

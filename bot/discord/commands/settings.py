"""/settings: what the managers of a server choose about the bot there.

`/settings show` has all of it; each other subcommand changes one thing and says when the change takes effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import discord
from discord import app_commands

from bot.discord.answers import answer, answer_when_known, embed_in, guild_id_of, language_of
from bot.discord.commands.default_word import DEFAULT, means_default
from bot.discord.commands.setting_sentences import (
    FOLLOWS,
    auto_join_sentence,
    catch_up_sentence,
    channels_sentence,
    consent_sentence,
    empty_sentence,
    history_sentence,
    language_sentence,
    live_sentence,
    longest_sentence,
    notice_text,
    recap_sentence,
    retention_sentence,
    roles_sentence,
    setting_fields,
)
from bot.discord.commands.store_failures import not_looked_up, not_stored
from bot.discord.commands.voice import choose_voice, voice_choices, voice_sentence
from bot.discord.failures import NOT_FOUND
from bot.errors import BotError
from bot.server_settings import (
    LONGEST_SESSION_H,
    MOST_CHANNELS,
    MOST_NOTICE_CHARS,
    MOST_PEOPLE,
    MOST_ROLES,
    SHORTEST_SESSION_H,
)
from bot.texts.catalogue import languages
from bot.texts.text import Text, counted, joined, sentence_of, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.discord.commands.setting_sentences import OperatorSettings
    from bot.discord.commands.voice import VoiceCommands
    from bot.participation.all_guilds import GuildParticipations
    from bot.server_settings import ServerSettings, ServerSettingsBook

TOO_SHORT = Text("A session cannot be limited to less than an hour. Choose 1 to 24 hours, or 0 for no limit.")
AT_ONCE = Text("This takes effect at once.")
NEXT_SESSION = Text("This takes effect with the next session.")
NEXT_COMER = Text("This takes effect when somebody next comes into a voice channel.")
WITHIN_A_DAY = Text("This takes effect within a day, when I next tidy up.")
NOTICE_TELLS = Text("This takes effect at once. My notice says it from the next session on.")
SESSION_END = Text("This takes effect when a session next ends.")

TOO_MANY_CHANNELS = Text("At most {most} channels can be chosen.", most=MOST_CHANNELS)
TOO_MANY_ROLES = Text("At most {most} roles can be chosen.", most=MOST_ROLES)
TOO_MANY_PEOPLE = Text("At most {most} people can be chosen.", most=MOST_PEOPLE)

VoiceChannelOption = discord.VoiceChannel | discord.StageChannel


class TooManyChosenError(BotError):
    """A manager wants one more channel, role or person than a server can choose. The message names the limit."""


def add_settings_command(
    tree: app_commands.CommandTree[Any],
    *,
    servers: ServerSettingsBook,
    participation: GuildParticipations,
    operator: OperatorSettings,
    voice_commands: VoiceCommands,
) -> None:
    """Put /settings on `tree`."""
    tree.add_command(SettingsCommands(servers, participation, operator, voice_commands))


class SettingsCommands(
    app_commands.Group, name="settings", description="Show and change what I do on this server.", guild_only=True
):
    """The subcommands of /settings, in the order in which Discord shows them."""

    def __init__(
        self,
        servers: ServerSettingsBook,
        participation: GuildParticipations,
        operator: OperatorSettings,
        voice_commands: VoiceCommands,
    ) -> None:
        super().__init__()
        self._servers = servers
        self._participation = participation
        self._operator = operator
        self._voice_commands = voice_commands

    @app_commands.command(name="show", description="All settings of this server, and how to change them.")
    async def show(self, interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, self._shown(interaction))

    async def _shown(self, interaction: discord.Interaction) -> discord.Embed | Text:
        """Return all settings of the server, or why they cannot be read."""
        guild_id = guild_id_of(interaction)
        try:
            here = await self._participation.of_guild(guild_id)
        except StoreError as error:
            return not_looked_up(error)
        await self._voice_commands.voices.look()
        fields = setting_fields(
            self._servers.of(guild_id),
            self._operator,
            guild_id=guild_id,
            mode=here.voice_mode,
            names=here.wake_names,
            voice=voice_sentence(self._voice_commands.voices, self._servers.of(guild_id).voice),
        )
        title = Text("Settings of {server}", server=interaction.guild.name if interaction.guild else "")
        hint = Text(
            "Each of them has a command of its own: /settings and its name. /persona and /rolling-context show what "
            "else is chosen here."
        )
        return embed_in(language_of(interaction), title=title, text=hint, fields=fields)

    @app_commands.command(name="language", description="The language of what everybody in a channel reads.")
    @app_commands.describe(language="A language that I know; default: that of the server.")
    async def language(self, interaction: discord.Interaction, language: str) -> None:
        code = DEFAULT if means_default(language, language_of(interaction)) else language_code(language)
        if code is None:
            names = ", ".join(languages().values())
            await answer(interaction, Text("I know these languages: {languages}.", languages=names))
            return
        chosen = None if code == DEFAULT else code
        await self._change(interaction, lambda now: replace(now, language=chosen), language_sentence)

    @language.autocomplete("language")
    async def complete_language(self, interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return language_choices(current)

    @app_commands.command(name="voice", description="The voice that I speak with, as /voice choose sets it.")
    @app_commands.describe(name="A voice; default: my usual one.")
    async def voice(self, interaction: discord.Interaction, name: str) -> None:
        await choose_voice(interaction, name, self._voice_commands)

    @voice.autocomplete("name")
    async def complete_voice(self, interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return voice_choices(current, language_of(interaction), self._voice_commands.voices, with_default=True)

    @app_commands.command(name="notice", description="The first sentences of my notice that I listen, in your words.")
    @app_commands.describe(text="What I write when I come; default: the usual sentences.")
    async def notice(
        self, interaction: discord.Interaction, text: app_commands.Range[str, 1, MOST_NOTICE_CHARS]
    ) -> None:
        wanted = text.strip()
        chosen = None if not wanted or means_default(wanted, language_of(interaction)) else wanted

        def told(new: ServerSettings) -> Text:
            return joined((Text("My notice begins like this:"), notice_text(new), NEXT_SESSION), "\n")

        await self._change(interaction, lambda now: replace(now, notice=chosen), told, verbatim(""))

    @app_commands.command(
        name="consent", description="Whom I hear: everybody after my notice, or only people who agree."
    )
    @app_commands.describe(whom="notice: everybody, after my notice. ask: only people who press a button.")
    async def consent(self, interaction: discord.Interaction, whom: Literal["notice", "ask"]) -> None:
        if whom == "notice" and self._operator.asks(guild_id_of(interaction)):
            await answer(interaction, Text("Whoever runs me has decided that I ask here; I may not hear more."))
            return
        asks = whom == "ask"
        await self._change(
            interaction, lambda now: replace(now, asks=asks), lambda _: consent_sentence(asks), NEXT_SESSION
        )

    @app_commands.command(name="channel", description="Choose the voice channels that I may come into.")
    @app_commands.describe(channel="A voice channel.", allowed="Whether I may come. While none is chosen, I may.")
    async def channel(self, interaction: discord.Interaction, channel: VoiceChannelOption, allowed: bool) -> None:
        def change(now: ServerSettings) -> ServerSettings:
            chosen = with_or_without(_still_there(interaction, now.channels), channel.id, wanted=allowed)
            return replace(now, channels=at_most(MOST_CHANNELS, chosen, TOO_MANY_CHANNELS))

        await self._change(interaction, change, lambda new: channels_sentence(new, self._operator))

    @app_commands.command(name="role", description="Choose the roles whose members may call me. Moderators always may.")
    @app_commands.describe(role="A role.", allowed="Whether its members may. While none is chosen, everybody may.")
    async def role(self, interaction: discord.Interaction, role: discord.Role, allowed: bool) -> None:
        def change(now: ServerSettings) -> ServerSettings:
            chosen = with_or_without(_still_there(interaction, now.roles), role.id, wanted=allowed)
            return replace(now, roles=at_most(MOST_ROLES, chosen, TOO_MANY_ROLES))

        await self._change(interaction, change, lambda new: roles_sentence(new, self._operator))

    @app_commands.command(
        name="auto-join", description="Choose the voice channels that I come into without being called."
    )
    @app_commands.describe(
        channel="A voice channel.", joins="Whether I come by myself.", people="How many have to be there first."
    )
    async def auto_join(
        self,
        interaction: discord.Interaction,
        channel: VoiceChannelOption,
        joins: bool = True,
        people: app_commands.Range[int, 1, 99] | None = None,
    ) -> None:
        def change(now: ServerSettings) -> ServerSettings:
            chosen = with_or_without(_still_there(interaction, now.auto_join_channels), channel.id, wanted=joins)
            return replace(
                now,
                auto_join_channels=at_most(MOST_CHANNELS, chosen, TOO_MANY_CHANNELS),
                auto_join_people=people or now.auto_join_people,
            )

        await self._change(interaction, change, lambda new: auto_join_sentence(new, self._operator), NEXT_COMER)

    @app_commands.command(
        name="join-with", description="Choose people whom I join when they come into a voice channel."
    )
    @app_commands.describe(person="Somebody on this server.", joins="Whether I come when they do.")
    async def join_with(
        self, interaction: discord.Interaction, person: discord.Member | discord.User, joins: bool = True
    ) -> None:
        if joins and not isinstance(person, discord.Member):
            # Whoever has left the server is taken off the list by their id.
            await answer(interaction, NOT_FOUND)
            return

        def change(now: ServerSettings) -> ServerSettings:
            chosen = with_or_without(now.auto_join_with, person.id, wanted=joins)
            return replace(now, auto_join_with=at_most(MOST_PEOPLE, chosen, TOO_MANY_PEOPLE))

        await self._change(interaction, change, lambda new: auto_join_sentence(new, self._operator), NEXT_COMER)

    @app_commands.command(name="follow", description="Whether I go along when people go to another voice channel.")
    @app_commands.describe(whom="people: those of join-with. everybody: when the last of you goes.")
    async def follow(self, interaction: discord.Interaction, whom: Literal["nobody", "people", "everybody"]) -> None:
        told = Text("{rule}.", rule=FOLLOWS[whom])
        await self._change(interaction, lambda now: replace(now, follow=whom), lambda _: told)

    @app_commands.command(
        name="leave-when-empty", description="How many minutes I stay in a voice channel without people."
    )
    @app_commands.describe(minutes="Minutes; 0 leaves it to whoever runs me.")
    async def leave_when_empty(
        self, interaction: discord.Interaction, minutes: app_commands.Range[float, 0, 1440]
    ) -> None:
        await self._change(
            interaction,
            lambda now: replace(now, leave_when_empty_s=60 * minutes or None),
            lambda new: empty_sentence(new, self._operator),
        )

    @app_commands.command(name="longest-session", description="After how many hours a session ends by itself.")
    @app_commands.describe(hours="Hours, from 1 to 24; 0: never.")
    async def longest_session(
        self, interaction: discord.Interaction, hours: app_commands.Range[float, 0, LONGEST_SESSION_H]
    ) -> None:
        if 0 < hours < SHORTEST_SESSION_H:
            await answer(interaction, TOO_SHORT)
            return
        await self._change(interaction, lambda now: replace(now, longest_session_h=hours or None), longest_sentence)

    @app_commands.command(name="retention", description="For how many days I keep what was said here.")
    @app_commands.describe(days="Days; 0 leaves it to whoever runs me. Never longer than their setting.")
    async def retention(self, interaction: discord.Interaction, days: app_commands.Range[int, 0, 36_500]) -> None:
        if self._operator.retention_days and days > self._operator.retention_days:
            longest = counted(
                self._operator.retention_days,
                "Whoever runs me keeps nothing longer than {count} day.",
                "Whoever runs me keeps nothing longer than {count} days.",
            )
            await answer(interaction, longest)
            return
        await self._change(
            interaction,
            lambda now: replace(now, retention_days=float(days) or None),
            lambda new: retention_sentence(new, self._operator),
            WITHIN_A_DAY,
        )

    @app_commands.command(name="history", description="Who may read what was said while they were not in the channel.")
    @app_commands.describe(
        opened="True: who may manage the server may. False: everybody reads only what they heard.",
        role="Its members may too.",
    )
    async def history(self, interaction: discord.Interaction, opened: bool, role: discord.Role | None = None) -> None:
        role_id = None if role is None or not opened else role.id
        await self._change(
            interaction,
            lambda now: replace(now, opens_history=opened, history_role=role_id),
            history_sentence,
            NOTICE_TELLS,
        )

    @app_commands.command(
        name="recap", description="Whether I post in the channel what it was about when a session ends."
    )
    @app_commands.describe(posted="True: everybody in the channel can read it.")
    async def recap(self, interaction: discord.Interaction, posted: bool) -> None:
        await self._change(interaction, lambda now: replace(now, posts_recap=posted), recap_sentence, SESSION_END)

    @app_commands.command(name="catch-up", description="Whether I offer who comes back to tell them what was said.")
    @app_commands.describe(offered="True: a quiet message in the channel with a button; only who presses it reads on.")
    async def catch_up(self, interaction: discord.Interaction, offered: bool) -> None:
        await self._change(interaction, lambda now: replace(now, offers_catch_up=offered), catch_up_sentence, AT_ONCE)

    @app_commands.command(
        name="live-message", description="Whether one message in the channel shows how a session goes."
    )
    @app_commands.describe(shown="True: it shows who spoke, what I do, and what it has cost.")
    async def live_message(self, interaction: discord.Interaction, shown: bool) -> None:
        await self._change(interaction, lambda now: replace(now, live_message=shown), live_sentence, NEXT_SESSION)

    async def _change(
        self,
        interaction: discord.Interaction,
        change: Callable[[ServerSettings], ServerSettings],
        told: Callable[[ServerSettings], Text],
        effect: Text = AT_ONCE,
    ) -> None:
        """Store what `change` makes of the server's settings, and answer what `told` says of the new ones."""

        async def changed() -> Text:
            try:
                new = await self._servers.change(guild_id_of(interaction), change, by=interaction.user.id)
            except TooManyChosenError as error:
                return sentence_of(error)
            except StoreError as error:
                return not_stored(error)
            return joined((told(new), effect))

        await answer_when_known(interaction, changed())


def at_most(most: int, chosen: tuple[int, ...], problem: Text) -> tuple[int, ...]:
    """Return the ids. Raises `TooManyChosenError` with `problem` if they are more than `most`."""
    if len(chosen) > most:
        raise TooManyChosenError(problem)
    return chosen


def with_or_without(chosen: tuple[int, ...], number: int, *, wanted: bool) -> tuple[int, ...]:
    """Return the ids with one more (`wanted`), or without it."""
    others = tuple(each for each in chosen if each != number)
    return (*others, number) if wanted else others


def _still_there(interaction: discord.Interaction, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return the chosen channels or roles without those that were deleted on Discord: nobody could pick one of these
    there to take it off the list, and a list of deleted ones alone would keep everybody out.
    """
    guild = interaction.guild
    if guild is None or guild.unavailable:
        return chosen
    return tuple(each for each in chosen if guild.get_channel(each) or guild.get_role(each))


def language_code(written: str) -> str | None:
    """Return the code of a language, or `default`; None if it is none of these.

    Discord sends what somebody has typed, unless they pick a suggestion: a code or, as the answer lists them, a name.
    """
    typed = written.strip().casefold()
    known = {DEFAULT: DEFAULT} | languages()
    return next((code for code, name in known.items() if typed in (code.casefold(), name.casefold())), None)


def language_choices(current: str) -> list[app_commands.Choice[str]]:
    """Return the languages that begin like what somebody has typed, each in its own words."""
    typed = current.strip().casefold()
    known = {DEFAULT: DEFAULT} | languages()
    fitting = {
        code: name for code, name in known.items() if name.casefold().startswith(typed) or code.startswith(typed)
    }
    return [app_commands.Choice(name=name, value=code) for code, name in fitting.items()][:25]

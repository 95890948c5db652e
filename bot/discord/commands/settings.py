"""/settings: what the managers of a server choose about the bot there.

`/settings show` has all of it; each other subcommand changes one thing and says when the change takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import discord
from discord import app_commands

from bot.discord.answers import Field, answer, embed_in, language_of
from bot.discord.commands.participation import MODES
from bot.discord.commands.voice import choose_voice, voice_choices, voice_sentence
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

    from bot.discord.commands.voice import VoiceCommands
    from bot.guild import VoiceMode
    from bot.participation.guild_participation import GuildParticipations
    from bot.server_settings import FollowRule, ServerSettings, ServerSettingsBook

DEFAULT = "default"

AT_ONCE = Text("This takes effect at once.")
NEXT_SESSION = Text("This takes effect with the next session.")
NEXT_COMER = Text("This takes effect when somebody next comes into a voice channel.")
WITHIN_A_DAY = Text("This takes effect within a day, when I next tidy up.")
SESSION_END = Text("This takes effect when a session next ends.")

FOLLOWS: dict[FollowRule, Text] = {
    "nobody": Text("I follow nobody"),
    "people": Text("I follow the people whom I join"),
    "everybody": Text("I go along when the last of you goes to another channel"),
}
VoiceChannelOption = discord.VoiceChannel | discord.StageChannel


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What applies where a server has chosen nothing, and what it cannot loosen. `retention_days` 0: for ever."""

    leave_when_empty_s: float
    retention_days: float
    asks: Callable[[int], bool]

    def kept_days(self, settings: ServerSettings) -> float:
        """Return for how many days a server's sessions are kept: the shorter of both times; 0: for ever."""
        chosen = [days for days in (self.retention_days, settings.retention_days or 0) if days]
        return min(chosen, default=0)


def add_settings_command(
    tree: app_commands.CommandTree[Any],
    *,
    servers: ServerSettingsBook,
    participation: GuildParticipations,
    operator: OperatorSettings,
    voice_commands: VoiceCommands,
) -> None:
    """Put /settings on `tree`."""
    group: app_commands.Group = app_commands.Group(
        name="settings", description="Show and change what I do on this server.", guild_only=True
    )

    async def change(
        interaction: discord.Interaction, new: ServerSettings | None, told: Text, effect: Text = AT_ONCE
    ) -> None:
        """Store `new`, if there is anything to store, and answer."""
        if new is None:
            await answer(interaction, told)
            return
        try:
            await servers.change(_guild_id(interaction), new, by=interaction.user.id)
        except StoreError as error:
            await answer(interaction, Text("That could not be stored. {error}", error=sentence_of(error)))
            return
        await answer(interaction, joined((told, effect)))

    def now(interaction: discord.Interaction) -> ServerSettings:
        return servers.of(_guild_id(interaction))

    @group.command(name="show", description="All settings of this server, and how to change them.")
    async def show(interaction: discord.Interaction) -> None:
        guild_id = _guild_id(interaction)
        try:
            here = await participation.of_guild(guild_id)
        except StoreError as error:
            await answer(interaction, Text("I cannot look that up now. {error}", error=sentence_of(error)))
            return
        fields = setting_fields(
            servers.of(guild_id),
            operator,
            guild_id=guild_id,
            mode=here.voice_mode,
            names=here.wake_names,
            voice=voice_sentence(voice_commands.voices, servers.of(guild_id).voice),
        )
        title = Text("Settings of {server}", server=interaction.guild.name if interaction.guild else "")
        hint = Text("Each of them has a command of its own: /settings and its name.")
        await answer(
            interaction, verbatim(""), embed=embed_in(language_of(interaction), title=title, text=hint, fields=fields)
        )

    @group.command(name="language", description="The language of what everybody in a channel reads.")
    @app_commands.describe(language="A language that I know; default: that of the server.")
    async def language(interaction: discord.Interaction, language: str) -> None:
        known = languages()
        if language != DEFAULT and language not in known:
            names = ", ".join(known.values())
            await answer(interaction, Text("I know these languages: {languages}.", languages=names))
            return
        new = replace(now(interaction), language=None if language == DEFAULT else language)
        await change(interaction, new, language_sentence(new))

    @language.autocomplete("language")
    async def complete_language(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return language_choices(current)

    @group.command(name="voice", description="The voice that I speak with, as /voice choose sets it.")
    @app_commands.describe(name="A voice; default: my usual one.")
    async def voice(interaction: discord.Interaction, name: str) -> None:
        await choose_voice(interaction, name, voice_commands)

    @voice.autocomplete("name")
    async def complete_voice(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return voice_choices(current, language_of(interaction), voice_commands.voices, with_default=True)

    @group.command(name="notice", description="The first sentences of my notice that I listen, in your words.")
    @app_commands.describe(text="What I write when I come; default: the usual sentences.")
    async def notice(interaction: discord.Interaction, text: app_commands.Range[str, 1, MOST_NOTICE_CHARS]) -> None:
        wanted = text.strip()
        new = replace(now(interaction), notice=None if wanted.casefold() in {"", DEFAULT} else wanted)
        told = joined((Text("My notice begins like this:"), notice_text(new)), "\n")
        await change(interaction, new, joined((told, NEXT_SESSION), "\n"), verbatim(""))

    @group.command(name="consent", description="Whom I hear: everybody after my notice, or only people who agree.")
    @app_commands.describe(whom="notice: everybody, after my notice. ask: only people who press a button.")
    async def consent(interaction: discord.Interaction, whom: Literal["notice", "ask"]) -> None:
        if whom == "notice" and operator.asks(_guild_id(interaction)):
            await change(interaction, None, Text("Whoever runs me has decided that I ask here; I may not hear more."))
            return
        new = replace(now(interaction), asks=whom == "ask")
        await change(interaction, new, consent_sentence(new.asks), NEXT_SESSION)

    @group.command(name="channel", description="Choose the voice channels that I may come into.")
    @app_commands.describe(channel="A voice channel.", allowed="Whether I may come. While none is chosen, I may.")
    async def channel(interaction: discord.Interaction, channel: VoiceChannelOption, allowed: bool) -> None:
        chosen = with_or_without(now(interaction).channels, channel.id, wanted=allowed)
        if len(chosen) > MOST_CHANNELS:
            await change(interaction, None, Text("At most {most} channels can be chosen.", most=MOST_CHANNELS))
            return
        await change(interaction, replace(now(interaction), channels=chosen), channels_sentence(chosen))

    @group.command(name="role", description="Choose the roles whose members may call me. Moderators always may.")
    @app_commands.describe(role="A role.", allowed="Whether its members may. While none is chosen, everybody may.")
    async def role(interaction: discord.Interaction, role: discord.Role, allowed: bool) -> None:
        chosen = with_or_without(now(interaction).roles, role.id, wanted=allowed)
        if len(chosen) > MOST_ROLES:
            await change(interaction, None, Text("At most {most} roles can be chosen.", most=MOST_ROLES))
            return
        await change(interaction, replace(now(interaction), roles=chosen), roles_sentence(chosen))

    @group.command(name="auto-join", description="Choose the voice channels that I come into without being called.")
    @app_commands.describe(
        channel="A voice channel.", joins="Whether I come by myself.", people="How many have to be there first."
    )
    async def auto_join(
        interaction: discord.Interaction,
        channel: VoiceChannelOption,
        joins: bool = True,
        people: app_commands.Range[int, 1, 99] | None = None,
    ) -> None:
        before = now(interaction)
        chosen = with_or_without(before.auto_join_channels, channel.id, wanted=joins)
        if len(chosen) > MOST_CHANNELS:
            await change(interaction, None, Text("At most {most} channels can be chosen.", most=MOST_CHANNELS))
            return
        new = replace(before, auto_join_channels=chosen, auto_join_people=people or before.auto_join_people)
        await change(interaction, new, auto_join_sentence(new), NEXT_COMER)

    @group.command(name="join-with", description="Choose people whom I join when they come into a voice channel.")
    @app_commands.describe(person="Somebody on this server.", joins="Whether I come when they do.")
    async def join_with(interaction: discord.Interaction, person: discord.Member, joins: bool = True) -> None:
        chosen = with_or_without(now(interaction).auto_join_with, person.id, wanted=joins)
        if len(chosen) > MOST_PEOPLE:
            await change(interaction, None, Text("At most {most} people can be chosen.", most=MOST_PEOPLE))
            return
        new = replace(now(interaction), auto_join_with=chosen)
        await change(interaction, new, auto_join_sentence(new), NEXT_COMER)

    @group.command(name="follow", description="Whether I go along when people go to another voice channel.")
    @app_commands.describe(whom="people: those of join-with. everybody: when the last of you goes.")
    async def follow(interaction: discord.Interaction, whom: Literal["nobody", "people", "everybody"]) -> None:
        new = replace(now(interaction), follow=whom)
        await change(interaction, new, Text("{rule}.", rule=FOLLOWS[whom]))

    @group.command(name="leave-when-empty", description="How many minutes I stay in a voice channel without people.")
    @app_commands.describe(minutes="Minutes; 0 leaves it to whoever runs me.")
    async def leave_when_empty(interaction: discord.Interaction, minutes: app_commands.Range[float, 0, 1440]) -> None:
        new = replace(now(interaction), leave_when_empty_s=60 * minutes or None)
        await change(interaction, new, empty_sentence(new, operator))

    @group.command(name="longest-session", description="After how many hours a session ends by itself.")
    @app_commands.describe(hours="Hours, from 1 to 24; 0: never.")
    async def longest_session(
        interaction: discord.Interaction, hours: app_commands.Range[float, 0, LONGEST_SESSION_H]
    ) -> None:
        if 0 < hours < SHORTEST_SESSION_H:
            await change(interaction, None, Text("A session may last an hour at least."))
            return
        new = replace(now(interaction), longest_session_h=hours or None)
        await change(interaction, new, longest_sentence(new))

    @group.command(name="retention", description="For how many days I keep what was said here.")
    @app_commands.describe(days="Days; 0 leaves it to whoever runs me. Never longer than their setting.")
    async def retention(interaction: discord.Interaction, days: app_commands.Range[int, 0, 36_500]) -> None:
        if operator.retention_days and days > operator.retention_days:
            most = operator.retention_days
            await change(interaction, None, Text("Whoever runs me keeps nothing longer than {days} days.", days=most))
            return
        new = replace(now(interaction), retention_days=float(days) or None)
        await change(interaction, new, retention_sentence(new, operator), WITHIN_A_DAY)

    @group.command(name="recap", description="Whether I post in the channel what it was about when a session ends.")
    @app_commands.describe(posted="True: everybody in the channel can read it.")
    async def recap(interaction: discord.Interaction, posted: bool) -> None:
        new = replace(now(interaction), posts_recap=posted)
        await change(interaction, new, recap_sentence(new), SESSION_END)

    @group.command(name="catch-up", description="Whether I offer who comes back to tell them what was said.")
    @app_commands.describe(offered="True: a quiet message in the channel with a button; only who presses it reads on.")
    async def catch_up(interaction: discord.Interaction, offered: bool) -> None:
        new = replace(now(interaction), offers_catch_up=offered)
        await change(interaction, new, catch_up_sentence(new), AT_ONCE)

    @group.command(name="live-message", description="Whether one message in the channel shows how a session goes.")
    @app_commands.describe(shown="True: it shows who spoke, what I do, and what it has cost.")
    async def live_message(interaction: discord.Interaction, shown: bool) -> None:
        new = replace(now(interaction), live_message=shown)
        await change(interaction, new, live_sentence(new), NEXT_SESSION)

    tree.add_command(group)


def setting_fields(
    settings: ServerSettings,
    operator: OperatorSettings,
    *,
    guild_id: int,
    mode: VoiceMode,
    names: tuple[str, ...],
    voice: Text,
) -> list[Field]:
    """Return all settings of a server with their values, as people read them. `voice`: which one speaks."""
    called = ", ".join(discord.utils.escape_markdown(name) for name in names)
    asks = settings.asks or operator.asks(guild_id)
    return [
        Field(Text("language"), language_sentence(settings)),
        Field(Text("voice"), voice),
        Field(Text("notice"), notice_text(settings)),
        Field(Text("consent"), consent_sentence(asks)),
        Field(Text("when I speak (/voice-mode)"), MODES[mode]),
        Field(Text("my names (/wake-names)"), verbatim(called)),
        Field(Text("channel"), channels_sentence(settings.channels)),
        Field(Text("role"), roles_sentence(settings.roles)),
        Field(Text("auto-join, join-with"), auto_join_sentence(settings)),
        Field(Text("follow"), Text("{rule}.", rule=FOLLOWS[settings.follow])),
        Field(Text("leave-when-empty"), empty_sentence(settings, operator)),
        Field(Text("longest-session"), longest_sentence(settings)),
        Field(Text("retention"), retention_sentence(settings, operator)),
        Field(Text("recap"), recap_sentence(settings)),
        Field(Text("catch-up"), catch_up_sentence(settings)),
        Field(Text("live-message"), live_sentence(settings)),
    ]


def with_or_without(chosen: tuple[int, ...], number: int, *, wanted: bool) -> tuple[int, ...]:
    """Return the ids with one more (`wanted`), or without it."""
    others = tuple(each for each in chosen if each != number)
    return (*others, number) if wanted else others


def language_choices(current: str) -> list[app_commands.Choice[str]]:
    """Return the languages that begin like what somebody has typed, each in its own words."""
    typed = current.strip().casefold()
    known = {DEFAULT: DEFAULT} | languages()
    fitting = {
        code: name for code, name in known.items() if name.casefold().startswith(typed) or code.startswith(typed)
    }
    return [app_commands.Choice(name=name, value=code) for code, name in fitting.items()][:25]


def language_sentence(settings: ServerSettings) -> Text:
    if settings.language is None:
        return Text("What everybody in a channel reads is in the language of the server.")
    name = languages().get(settings.language, settings.language)
    return Text("What everybody in a channel reads is in this language: {language}.", language=name)


def notice_text(settings: ServerSettings) -> Text:
    if settings.notice is None:
        return Text("as set by whoever runs me")
    return verbatim(discord.utils.escape_mentions(settings.notice))


def consent_sentence(asks: bool) -> Text:
    if asks:
        return Text("I hear only people who press the button below my notice.")
    return Text("I hear everybody in my channel, after my notice.")


def channels_sentence(chosen: tuple[int, ...]) -> Text:
    if not chosen:
        return Text("I may come into all voice channels.")
    return Text("I may come into these voice channels only: {channels}.", channels=_mentions("#", chosen))


def roles_sentence(chosen: tuple[int, ...]) -> Text:
    if not chosen:
        return Text("Everybody may call me.")
    return Text("Members with one of these roles may call me, and moderators: {roles}.", roles=_mentions("@&", chosen))


def auto_join_sentence(settings: ServerSettings) -> Text:
    """Return where and when the bot comes without being called."""
    sentences = []
    if settings.auto_join_channels:
        sentences.append(
            counted(
                settings.auto_join_people,
                "I come into {channels} by myself as soon as {count} person is there.",
                "I come into {channels} by myself as soon as {count} people are there.",
                channels=_mentions("#", settings.auto_join_channels),
            )
        )
    if settings.auto_join_with:
        people = _mentions("@", settings.auto_join_with)
        sentences.append(Text("I come when one of these people does: {people}.", people=people))
    return joined(sentences) if sentences else Text("I come only when I am called.")


def empty_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    minutes = (settings.leave_when_empty_s or operator.leave_when_empty_s) / 60
    return Text("I leave a voice channel after {minutes} minutes without people.", minutes=round(minutes, 1))


def longest_sentence(settings: ServerSettings) -> Text:
    if settings.longest_session_h is None:
        return Text("A session may last as long as people stay.")
    return Text("A session ends after {hours} hours; /join begins a new one.", hours=settings.longest_session_h)


def retention_sentence(settings: ServerSettings, operator: OperatorSettings) -> Text:
    days = operator.kept_days(settings)
    if not days:
        return Text("I keep what was said until somebody deletes it.")
    return Text("I delete what was said after {days} days.", days=days)


def recap_sentence(settings: ServerSettings) -> Text:
    if settings.posts_recap:
        return Text("When a session ends, I post in the channel what it was about.")
    return Text("When a session ends, I post nothing about it.")


def catch_up_sentence(settings: ServerSettings) -> Text:
    if settings.offers_catch_up:
        return Text("Who comes back after five minutes is offered once in a session what was said meanwhile.")
    return Text("Who comes back is offered nothing; /catch-up tells them what was said.")


def live_sentence(settings: ServerSettings) -> Text:
    if settings.live_message:
        return Text("One message in the channel shows how a session goes.")
    return Text("No message shows how a session goes; /status tells.")


def _mentions(kind: str, ids: tuple[int, ...]) -> str:
    """Return Discord's mentions of channels (`#`), roles (`@&`) or people (`@`). An answer pings nobody."""
    return ", ".join(f"<{kind}{number}>" for number in ids)


def _guild_id(interaction: discord.Interaction) -> int:
    assert interaction.guild_id is not None, "guild_only"
    return interaction.guild_id

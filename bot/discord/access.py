"""Decides who may use which command, and how often. `RULES` is the only table of this; docs/commands.md and /help show
it.

Pure: `bot.discord.command_tree` finds out who somebody is and asks here before every command. Permissions count on the
whole server, not in the channel where the command is typed: some servers let people manage a channel of their own.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import discord
from discord.app_commands import Cooldown

from bot.texts.text import Text, counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Who(StrEnum):
    """Whom a command is for. `PEOPLE` has the words for them."""

    EVERYBODY = "everybody"
    # If the bot is in no voice channel, the command itself says so.
    PRESENT_OR_MANAGERS = "present_or_managers"
    # What is on somebody's screen concerns the people who are there.
    PRESENT = "present"
    MANAGERS = "managers"


# They complete the sentence `Only … can do that.`
PEOPLE: Mapping[Who, Text] = {
    Who.EVERYBODY: Text("members of this server"),
    Who.PRESENT_OR_MANAGERS: Text("people in my voice channel and members who can manage the server"),
    Who.PRESENT: Text("people in my voice channel"),
    Who.MANAGERS: Text("members who can manage the server"),
}


# The headings of /help.
CALLING = Text("Calling me")
SAID = Text("What was said")
SPEAKING = Text("When and how I speak")
OWN_WORDS = Text("Your words")
SCREENS = Text("Shared screens")
MORE = Text("More")


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may use one command, with all its options. `heading`: below which /help shows it.

    `of_own_words`: it is about what the bot has of the person who uses it. `needs_role`: only with one of the roles
    that the server has chosen, if there are any, or as a manager. `default`: the permission without which Discord does
    not show the command; a server's administrators can change that for their server (Integrations).
    """

    who: Who
    heading: Text = MORE
    of_own_words: bool = False
    needs_role: bool = False
    default: discord.Permissions | None = None
    # How often one person may use it; None: as often as Discord lets them.
    cooldown: Cooldown | None = None


# Who cannot connect to voice channels has no use for these.
_CONNECT = discord.Permissions(connect=True)
_MANAGE = discord.Permissions(manage_guild=True)

# A connection takes seconds; a file of everything and a look at a screen take a model or much of the database.
_SELDOM = Cooldown(5, 60.0)

# An opt-out takes effect at once, and ends the reply in progress, which may hold the person's words. Somebody who opted
# out and in again and again, from wherever on the server, would leave the bot no answer. So nobody waits to opt out.
_OFTEN_IN = Cooldown(3, 60.0)

# Who is in the channel can always silence the bot or send it away, and everybody decides about their own words, so
# these commands need neither role nor permission. In the order of /help.
RULES: Mapping[str, Rule] = {
    "join": Rule(Who.EVERYBODY, CALLING, needs_role=True, default=_CONNECT, cooldown=_SELDOM),
    "leave": Rule(Who.PRESENT_OR_MANAGERS, CALLING),
    "status": Rule(Who.PRESENT_OR_MANAGERS, CALLING),
    # Each press searches, or reads a whole session.
    "recap": Rule(Who.EVERYBODY, SAID, cooldown=_SELDOM),
    "recall": Rule(Who.EVERYBODY, SAID, cooldown=Cooldown(20, 60.0)),
    "transcript": Rule(Who.EVERYBODY, SAID, cooldown=_SELDOM),
    "quiet": Rule(Who.PRESENT_OR_MANAGERS, SPEAKING),
    # It holds on the whole server until a manager ends it, as what they choose by /settings does.
    "silence": Rule(Who.MANAGERS, SPEAKING),
    # It writes, and while the bot is in no channel everybody may use it.
    "talk": Rule(Who.PRESENT_OR_MANAGERS, SPEAKING, default=_CONNECT, cooldown=Cooldown(5, 60.0)),
    "voice": Rule(Who.PRESENT, SPEAKING, needs_role=True, cooldown=_SELDOM),
    "reminders": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True),
    "opt-out": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True),
    "opt-in": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True, cooldown=_OFTEN_IN),
    "privacy": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True),
    "my-data": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True, cooldown=Cooldown(2, 60.0)),
    "forget-me": Rule(Who.EVERYBODY, OWN_WORDS, of_own_words=True, cooldown=Cooldown(3, 60.0)),
    # Each link is good for one share, whose beginning and end are turns.
    "watch start": Rule(Who.PRESENT, SCREENS, needs_role=True, default=_CONNECT, cooldown=_SELDOM),
    "watch stop": Rule(Who.EVERYBODY, SCREENS, default=_CONNECT),
    "watch stop-all": Rule(Who.PRESENT_OR_MANAGERS, SCREENS, default=_CONNECT),
    "watch status": Rule(Who.PRESENT_OR_MANAGERS, SCREENS, default=_CONNECT),
    "watch look": Rule(Who.PRESENT, SCREENS, needs_role=True, default=_CONNECT, cooldown=_SELDOM),
    # The panel, on which each press counts as a use.
    "settings": Rule(Who.MANAGERS, default=_MANAGE, cooldown=Cooldown(60, 60.0)),
    "rolling-context": Rule(Who.MANAGERS, default=_MANAGE),
    "help": Rule(Who.EVERYBODY),
}

NOT_SERVED = Text("The owner of this bot does not want me to answer you. You can still use /my-data and /forget-me.")
NO_ROLE = Text("Only server managers and members with certain roles can do that.")
SERVER_CHOSE_OTHER_CHANNELS = Text("You cannot call me into {channel}. This server has chosen other channels for me.")


@dataclass(frozen=True, slots=True)
class CommandUser:
    """Somebody who uses a command. `permissions`: on the whole server.

    `is_owner`: they run the bot. `is_refused`: who runs it does not serve them. `has_role`: they have one of the roles
    that the server has chosen, or there are none. `is_present`: they are in the bot's voice channel. `bot_is_away`: the
    bot is in no voice channel of the server.
    """

    permissions: discord.Permissions
    is_owner: bool = False
    is_refused: bool = False
    has_role: bool = True
    is_present: bool = False
    bot_is_away: bool = False

    @property
    def is_manager(self) -> bool:
        return self.is_owner or self.permissions.administrator or self.permissions.manage_guild

    def is_one_of(self, who: Who) -> bool:
        match who:
            case Who.EVERYBODY:
                return True
            case Who.PRESENT_OR_MANAGERS:
                return self.is_present or self.bot_is_away or self.is_manager
            case Who.PRESENT:
                return self.is_present or self.bot_is_away
            case Who.MANAGERS:
                return self.is_manager


def refusal(command: str, user: CommandUser) -> Text | None:
    """Return why `user` may not use a command, as a sentence for them, or None if they may.

    `command`: the name with its group, such as `watch start`. Raises `KeyError` for a command without a rule.
    """
    rule = RULES[command]
    if user.is_refused and not rule.of_own_words:
        return NOT_SERVED
    if not user.is_one_of(rule.who):
        return Text("Only {who} can do that.", who=PEOPLE[rule.who])
    if rule.needs_role and not (user.has_role or user.is_manager):
        return NO_ROLE
    return None


def channel_refusal(channel_id: int, name: str, chosen_here: Collection[int]) -> Text | None:
    """Return why the bot may not come into a voice channel, or None.

    `chosen_here`: the channels that the server has chosen; empty: all.
    """
    if chosen_here and channel_id not in chosen_here:
        return SERVER_CHOSE_OTHER_CHANNELS.fill(channel=name)
    return None


# Beyond this many people and commands the longest unused are forgotten: they may then use theirs again.
MOST_KEPT = 2_000


class Cooldowns:
    """When who used which command or button. `now`: monotonic seconds."""

    def __init__(self) -> None:
        self._used: OrderedDict[tuple[int, int, str], Cooldown] = OrderedDict()

    def use(self, guild_id: int, user_id: int, command: str, cooldown: Cooldown, *, now: float) -> int:
        """Count one use. Returns 0, or for how many seconds the person has to wait. `cooldown`: how often one person
        may use the command on one server.
        """
        key = (guild_id, user_id, command)
        used = self._used.setdefault(key, cooldown.copy())
        self._used.move_to_end(key)
        while len(self._used) > MOST_KEPT:
            self._used.popitem(last=False)
        return math.ceil(used.update_rate_limit(now) or 0)


def often(wait_s: int) -> Text:
    """Return what to say to somebody who has to wait for so many seconds."""
    return counted(
        wait_s, "Please wait {count} second, then try again.", "Please wait {count} seconds, then try again."
    )

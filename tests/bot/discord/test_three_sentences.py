"""The three sentences that a server owner remembers, over the wire: no command, option or button needs a fourth.

1. People in the channel may talk to it, silence it, send it away, and later read what was said while they were there.
2. People with a role that you choose may call it, share a screen with it, ask about screens and try its voices. People
   who may manage the server change its settings, and may call it, silence it and send it away from anywhere.
3. The bot does nothing outside of the talk before the person who asked has pressed a button.

The third is in `tests/bot/brain/tools/test_sentences.py` and `test_chat.py`, the first for the pages of the
dashboard in `tests/bot/dashboard/test_discord_login.py`. Each button and menu is pressed by somebody who may not in
the test of what it does: *Do it* in `test_chat.py`; *Talk again*, and *Hear me* of another evening, in
`commands/test_participation.py`; the panel and its window in `commands/test_settings.py`.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

import bot.discord
from bot.channel.port import Person
from bot.discord.access import NO_ROLE, PEOPLE, RULES, Cooldowns
from bot.discord.command_tree import CheckedCommandTree
from bot.discord.connection import connected
from bot.server_settings import ServerSettings, no_server_settings
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import GuildSpec, Member, Role
from tests.bot.discord.client import FakeRooms, room_channel_in, settings_for
from tests.bot.discord.commands.all_commands import all_command_adders
from tests.bot.discord.commands.searching import recall_command
from tests.bot.discord.remembered import (
    ADA,
    BEN,
    CHLOE,
    GUILD,
    LOUNGE,
    Remembered,
    remembered,
    seen,
    session_commands,
)
from tests.patience import PATIENCE_S, settle
from tests.sources import nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.discord.client import AddCommands
    from bot.memory.session_views import SessionViews
    from rehearsal.discord.server import LocalDiscord
    from tests.bot.evening import Evening


CALLERS, MUTERS, MANAGERS = 77, 78, 79
# Two are in the bot's channel, the second with the role that was chosen. The others are elsewhere: with the role,
# without any, with the right to mute members, and with the one to manage the server.
INSIDE, GUEST, CALLER, OUTSIDE, MUTER, MANAGER = 2002, 2007, 2003, 2004, 2005, 2006
EVERYBODY = {INSIDE, GUEST, CALLER, OUTSIDE, MUTER, MANAGER}
SERVER = GuildSpec(
    people=(
        Member(ADA, "Ada", moderator=True),
        Member(INSIDE, "Ben"),
        Member(CALLER, "Chloe", role_ids=(CALLERS,)),
        Member(OUTSIDE, "Dmitri"),
        Member(MUTER, "Elin", role_ids=(MUTERS,)),
        Member(MANAGER, "Farid", role_ids=(MANAGERS,)),
        Member(GUEST, "Greta", role_ids=(CALLERS,)),
    ),
    roles=(
        Role(CALLERS, "Callers"),
        Role(MUTERS, "Muters", int(DiscordPermission.MUTE_MEMBERS)),
        Role(MANAGERS, "Managers", int(DiscordPermission.MANAGE_GUILD)),
    ),
)
# Who may manage the server may call, silence and send away the bot from anywhere.
TALKS = ({INSIDE, GUEST, MANAGER}, ("leave", "status", "quiet", "talk", "watch status", "watch stop-all"))
CALLS = ({GUEST, CALLER, MANAGER}, ("join",))
HAS_IT_SHOW = ({GUEST}, ("voice", "watch start", "watch look"))
# A silence of the whole server is one of its settings.
CHOOSES = ({MANAGER}, ("settings", "rolling-context", "silence"))
OWN = (EVERYBODY, ("reminders", "opt-out", "opt-in", "privacy", "my-data", "forget-me", "watch stop", "help"))
# Everybody reads what they have heard: the second test.
READS = (EVERYBODY, ("recall", "recap", "transcript"))
ALLOWED = {name: people for people, names in (TALKS, CALLS, HAS_IT_SHOW, CHOOSES, OWN, READS) for name in names}
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "forget-me": {"sure": False},
    "recall": {"words": "tea"},
    "voice": {"name": "joe"},
}
REFUSALS = {f"Only {people} can do that." for people in PEOPLE.values()} | {str(NO_ROLE)}


@pytest.mark.parametrize("local_guild", [SERVER])
async def test_every_command_asks_whether_somebody_is_in_the_channel_or_has_the_role(
    local: LocalDiscord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a server's administrators let Discord show all commands to everybody. What stands behind the commands
    is missing, so who may use one reads that it broke.
    """
    monkeypatch.setattr(CheckedCommandTree, "apply_rules", lambda _: None)
    monkeypatch.setattr(Cooldowns, "use", lambda *_, **__: 0)
    assert ALLOWED.keys() == RULES.keys()
    rooms, allowed = FakeRooms(), {name: set[int]() for name in ALLOWED}
    servers = no_server_settings()
    await servers.change(local.guild.id, lambda chosen: replace(chosen, roles=(CALLERS,)), by=MANAGER)
    # No traceback of what is missing is drawn.
    with capture_logs():
        async with connected(settings_for(local), rooms, all_command_adders(), servers=servers) as client:
            await local.join(INSIDE, channel_id=LOUNGE)
            await local.join(GUEST, channel_id=LOUNGE)
            await settle(lambda: len(rooms.movements) == 2)
            for name, person in product(ALLOWED, EVERYBODY):
                rooms.room_channel = client.find_channel(local.guild.id, LOUNGE)
                result = await local.invoke(person, name, NEEDED.get(name))
                await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
                if result.replies[0].content not in REFUSALS:
                    allowed[name].add(person)
    wrong = {name: users ^ ALLOWED[name] for name, users in allowed.items() if users != ALLOWED[name]}
    assert wrong == {}, wrong


async def test_people_read_what_was_said_while_they_were_there(tmp_path: Path) -> None:
    """Ben was there all the time, Chloe left, and Ada, who may manage the server and enter every channel, never came.
    Once the server has opened its history, Ada reads all of it, and the others no more than before.
    """

    def commands(evening: Evening, views: SessionViews) -> list[AddCommands]:
        return [recall_command(evening, views), session_commands(evening, views)]

    async with remembered(tmp_path, commands, present=(BEN, CHLOE)) as here:
        await here.say(BEN, "We decided to hide the lantern key under the old boat.")
        here.evening.clock.advance(4.0)
        await here.go(CHLOE)
        await here.say(BEN, "We decided to sell the lantern boat to Chloe's brother.")
        room_channel = room_channel_in(here.client, LOUNGE)
        assert await room_channel.offer_catch_up(Person(BEN, "Ben", is_bot=False), minutes=12)

        assert await self_read(here, BEN) == {"hide", "sell"}
        assert await self_read(here, CHLOE) == {"hide"}
        assert await self_read(here, ADA) == set()
        await here.client.tree.servers.change(GUILD.id, lambda _: ServerSettings(opens_history=True), by=None)
        assert await self_read(here, ADA) == {"hide", "sell"}
        assert await self_read(here, CHLOE) == {"hide"}


async def self_read(here: Remembered, person: int) -> set[str]:
    """Return which of the two things that were said somebody reads by all commands and buttons together."""
    found = await here.use(person, "recall", words="lantern boat", channel_id=LOUNGE)
    shown = [found]
    for row in found.payload.get("components", ()):
        # Each is for the page that was shown first, and a press replaces the buttons.
        (button, *_) = [each["custom_id"] for each in row["components"]]
        shown.append(await here.press(person, found, button))
    shown.append(await here.use(person, "recap", channel_id=LOUNGE))
    shown.append(await here.use(person, "recap", minutes=60, channel_id=LOUNGE))
    shown.append(await here.use(person, "transcript", channel_id=LOUNGE))
    (offer,) = here.local.messages
    shown += (await here.local.press(person, offer.id, "What did I miss?")).replies
    assert all(reply.ephemeral for reply in shown)
    # Of a file its length is shown.
    lines = int("1 line." in seen(shown[-2]) or "1 Zeile." in seen(shown[-2])) + 2 * int("2 lines." in seen(shown[-2]))
    read = {word for word in ("hide", "sell") if any(word in seen(reply) for reply in shown)}
    assert lines == len(read)
    suggested = await here.local.suggest(person, "recap", "session", channel_id=LOUNGE)
    assert bool(suggested) is bool(read)
    return read


def test_every_view_is_checked_as_a_command_is() -> None:
    """But for what asks the room whether the press counts, what says that it is over, and what checks by itself."""
    unchecked: set[str] = set()
    for path in Path(bot.discord.__file__).parent.rglob("*.py"):
        for node in nodes(path):
            match node:
                case ast.ClassDef(name=name, bases=bases):
                    names = {ast.unparse(base) for base in bases}
                    is_view = any(base.endswith(("View", "Modal")) for base in names) and "CheckedView" not in names
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    made = {ast.unparse(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
                    is_view = bool(made & {"AnsweringView", "View", "ui.View", "discord.ui.View"})
                case _:
                    continue
            unchecked |= {name} if is_view else set()
    views = {"AnsweringView", "CheckedView", "SettingWindow"}
    assert unchecked == views | {"call_buttons", "over_buttons", "consent_buttons", "_ask_who_heard"}

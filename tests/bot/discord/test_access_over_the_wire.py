"""Every command that Discord is told of, with each of its options, used by people of each kind in the local Discord.

Who may use what stands in `tests.bot.discord.test_access`. What is walked through is what the bot has registered, so a
new command or option is walked through too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import discord
import pytest
from discord import app_commands

from bot.discord.command_tree import CheckedCommandTree
from bot.discord.connection import connected
from rehearsal.discord.guild.spec import GuildSpec, Member, Role
from rehearsal.discord.interactions import commands
from rehearsal.discord.interactions.commands import OptionType
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_access import KINDS, WANTED
from tests.bot.discord.test_client import FakeSupervisor, settings_for, settle
from tests.bot.discord.test_command_tree import all_command_adders
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.discord.guild.payloads import Json

RAN = "It ran."
CHANNEL = 600
SERVED_ROLE = 700
ROLES = {kind: Role(701 + at, kind, granted.value) for at, (kind, granted) in enumerate(KINDS.items())}
PEOPLE = {kind: 3001 + at for at, kind in enumerate(KINDS)}
# Ada owns the guild, and nobody else is more than their role makes them.
GUILD = GuildSpec(
    people=(
        Member(2001, "Ada"),
        *(
            Member(PEOPLE[kind], kind, role_ids=(role.id, *([SERVED_ROLE] if kind.endswith("+") else ())))
            for kind, role in ROLES.items()
        ),
    ),
    roles=(Role(SERVED_ROLE, "Roomtone's friends"), *ROLES.values()),
)
# What somebody gives for an option, by its type.
VALUES: Mapping[int, object] = {
    OptionType.STRING: "words",
    OptionType.BOOLEAN: True,
    OptionType.USER: 2001,
    OptionType.CHANNEL: CHANNEL,
    OptionType.ROLE: SERVED_ROLE,
}


def registered(tree: list[Json]) -> Iterator[tuple[str, list[Json]]]:
    """Yield the full name of each command that Discord was told of, with its options."""
    for command in tree:
        options = command.get("options") or []
        groups = [each for each in options if each["type"] in (OptionType.SUB_COMMAND, OptionType.SUB_COMMAND_GROUP)]
        if groups:
            for name, inner in registered(groups):
                yield f"{command['name']} {name}", inner
        else:
            yield command["name"], options


def value_of(option: Json) -> object:
    """Return something that the option takes."""
    if option.get("choices"):
        return option["choices"][0]["value"]
    if option["type"] in (OptionType.INTEGER, OptionType.NUMBER):
        return option.get("min_value") or 1
    return VALUES[option["type"]]


def uses(options: list[Json]) -> dict[str | None, dict[str, object]]:
    """Return what somebody can give: what is required alone (None), and each other option besides."""
    needed = {each["name"]: value_of(each) for each in options if each.get("required")}
    others = {each["name"]: {**needed, each["name"]: value_of(each)} for each in options if not each.get("required")}
    return {None: needed, **others}


@pytest.fixture
def open_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's administrators show every command to everybody, nobody has to wait, and a command that may run says
    only that.
    """

    async def ran(_: app_commands.Command[Any, ..., Any], interaction: discord.Interaction, _values: object) -> None:
        await interaction.response.send_message(RAN, ephemeral=True)

    monkeypatch.setattr(commands, "_check_permission", lambda *_: None)
    monkeypatch.setattr(CheckedCommandTree, "_cooldown", lambda *_: None)
    monkeypatch.setattr(app_commands.Command, "_do_call", ran)


@pytest.mark.asyncio
@pytest.mark.usefixtures("open_server")
async def test_each_command_by_people_of_each_kind() -> None:
    """Inside the bot's voice channel and outside, exactly those of the table may use a command; everybody else gets a
    sentence that only they see.
    """
    supervisor = FakeSupervisor()
    async with LocalDiscord(guild=GUILD) as local:
        wanted = settings_for(local).model_copy(update={"roles": (SERVED_ROLE,), "owners": (PEOPLE["owner"], 2001)})
        async with connected(wanted, supervisor, all_command_adders()) as client:
            supervisor.place = client.place(GUILD.id, CHANNEL)
            told = dict(registered([command for _, command in local._state.all_commands()]))
            assert set(told) == {name for name, _ in WANTED}
            for who in PEOPLE.values():
                await local.join(who, channel_id=CHANNEL)
            await settle(lambda: len(supervisor.movements) == len(PEOPLE))
            inside = await walk(local, told)
            for who in PEOPLE.values():
                await local.leave(who)
            await settle(lambda: len(supervisor.movements) == 2 * len(PEOPLE))
            outside = await walk(local, told)
    assert inside == {use: set(WANTED.get(use, WANTED[use[0], None])[0]) for use in inside}
    assert outside == {use: set(WANTED.get(use, WANTED[use[0], None])[1]) for use in outside}
    assert {(name, option) for name, option in WANTED} <= set(inside)


async def walk(local: LocalDiscord, told: Mapping[str, list[Json]]) -> dict[tuple[str, str | None], set[str]]:
    """Let everybody use everything. Returns who might use each command with each option."""
    found: dict[tuple[str, str | None], set[str]] = {}
    for name, options in told.items():
        for option, given in uses(options).items():
            answers = await asyncio.gather(*(use(local, who, name, given) for who in PEOPLE.values()))
            assert all(answer == RAN or answer.startswith("Only ") for answer in answers), (name, option, answers)
            found[name, option] = {kind for kind, answer in zip(PEOPLE, answers, strict=True) if answer == RAN}
    return found


async def use(local: LocalDiscord, who: int, name: str, given: Mapping[str, object]) -> str:
    """Use a command and return the answer, which nobody else sees."""
    result = await local.invoke(who, name, given, timeout_s=PATIENCE_S)
    [reply] = result.replies
    assert reply.ephemeral
    return reply.content

"""Which servers the bot serves: those in the settings or those of its owners. It leaves the others, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import discord
import pytest
from structlog.typing import EventDict

from bot.background_task import background_task
from bot.discord.admission import GuildAdmission, Verdict, owners_of
from bot.discord.connection import LOOK_EVERY_S, follow_decisions
from bot.settings import DiscordSettings
from bot.texts.text import Text
from compaction.errors import StoreError
from rehearsal.discord.guild.spec import GuildSpec, Member
from tests.bot.discord.client import ADA, BEN, answered, online
from tests.bot.discord.refusals import FORBIDDEN, NOT_FOUND
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.patience import settle

STRANGER = 9_999
GUILD = 500


@pytest.mark.parametrize(
    "settings",
    [{"guilds": (77,)}, {"guilds": (77,), "owners": (ADA,)}, {"owners": (STRANGER,)}, {"owners": (STRANGER, BEN)}],
    ids=["other guild", "other guild although an owner is here", "a stranger's guild", "an owner is a plain member"],
)
async def test_an_uninvited_guild_is_told_and_left(settings: dict[str, tuple[int, ...]], logs: list[EventDict]) -> None:
    """A server that is not in the settings, or that none of the owners manages, gets one sentence, and is left."""
    async with online(settings=settings) as (local, client, _):
        await settle(lambda: not client.guilds)
        (told,) = local.messages
        assert told.channel_id == local.guild.text_channel.id
        assert "I am leaving" in told.content
        assert str(GUILD) in told.content
    # The terminal shows this to whoever wonders why the bot leaves their server each time.
    (left,) = [each for each in logs if each["event"] == "guild_left"]
    assert f"servers admit {GUILD}" in left["remedy"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"guilds": (77, GUILD)}, {"guilds": (GUILD,), "owners": (STRANGER,)}, {"owners": (STRANGER, BEN)}],
    ids=["Discord names the owner", "in the settings", "in the settings without its owner", "an owner manages it"],
)
async def test_a_guild_of_the_owners_is_served(settings: dict[str, tuple[int, ...]]) -> None:
    """The bot serves the servers in the settings; if there are none, those that one of its owners manages."""
    people = Member(ADA, "Ada"), Member(BEN, "Ben", moderator=True)
    async with online(GuildSpec(people=people), settings=settings) as (local, client, _):
        assert await answered(local, BEN, "status") == ["I am well."]
        assert await client.admission.serves(GUILD)
        assert not await client.admission.serves(77)
        assert local.messages == ()


async def test_the_operators_decision_holds_before_the_settings() -> None:
    """A server that they admit is served, whoever manages it, and one that they refuse is left, room and all, when they
    do so.
    """
    async with online(settings={"guilds": (77,)}, decided={GUILD: True}) as (local, client, rooms):
        assert await client.admission.serves(GUILD)
        rooms.room_channel = client.find_channel(GUILD, 600)
        await client.decide({GUILD: True, 78: False})
        assert rooms.room_channel_of(GUILD) is not None
        await client.decide({GUILD: False, 78: False})
        await settle(lambda: not client.guilds)
        assert rooms.room_channel_of(GUILD) is None
        assert local.messages
    for others in ({"guilds": (GUILD,)}, {"owners": (ADA,)}):
        async with online(settings=others, decided={GUILD: False}) as (_, client, _):
            await settle(lambda: not client.guilds)


async def test_decisions_of_other_processes_are_noticed() -> None:
    """Every few seconds, also after the database was away."""
    clock = FakeClock()
    told: list[Mapping[int, bool]] = []
    stored: list[Mapping[int, bool] | StoreError] = [{5: True}, StoreError("It is away."), {5: False}]

    store = AsyncMock(all=AsyncMock(side_effect=stored))
    client = AsyncMock(decide=AsyncMock(side_effect=told.append))
    async with background_task(follow_decisions(store, client, clock), name="admissions"):
        for count in (1, 2, 3):
            await until(lambda: clock.sleeping == 1)
            clock.advance(LOOK_EVERY_S)
            await until(lambda count=count: store.all.await_count == count)  # type: ignore[misc]
        await until(lambda: len(told) == 2)
    assert told == [{5: True}, {5: False}]


async def test_commands_are_refused_where_it_could_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Discord does not let the bot leave, it refuses every command there."""

    async def refuse(_: discord.Guild) -> None:
        raise FORBIDDEN

    monkeypatch.setattr(discord.Guild, "leave", refuse)
    async with online(settings={"guilds": (77,)}) as (local, client, _):
        await settle(lambda: local.messages)
        assert await answered(local, ADA, "join") == [Verdict.UNINVITED.value]
        assert client.guilds


async def test_an_owner_has_a_managers_commands() -> None:
    """Who runs the bot may use the commands of managers, without any permission on the server."""
    for owner, expected in ((BEN, "I am well."), (ADA, "Only people in my voice channel and members")):
        async with online(settings={"guilds": (GUILD,), "owners": (owner,)}) as (local, client, rooms):
            rooms.room_channel, rooms.sums = client.find_channel(GUILD, 600), Text("All used nothing.")
            told = (await answered(local, BEN, "status"))[0]
            assert told.startswith(expected)
            # Also what all servers have used, which nobody else is told.
            assert ("All used nothing." in told) is (owner == BEN)


class Guild:
    """A server that counts how often Discord is asked about a member."""

    id = GUILD
    owner_id = ADA
    unavailable = False
    system_channel = None
    text_channels = ()
    roles = (object(),)

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.manages = True
        self.asked = 0
        self.left = 0

    async def fetch_member(self, user_id: int) -> object:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return SimpleNamespace(guild_permissions=discord.Permissions(manage_guild=self.manages))

    async def leave(self) -> None:
        self.left += 1


def admission(**settings: tuple[int, ...]) -> GuildAdmission:
    """Return the admission of a bot whose application is not known yet."""
    client: Any = SimpleNamespace(application=None)
    return GuildAdmission(client, DiscordSettings.model_validate(settings))


@pytest.mark.parametrize(
    ("error", "verdict", "left"),
    [
        (None, Verdict.SERVED, 0),
        (NOT_FOUND, Verdict.UNINVITED, 1),
        (FORBIDDEN, Verdict.UNKNOWN, 0),
        (TimeoutError(), Verdict.UNKNOWN, 0),
        (OSError("the network is gone"), Verdict.UNKNOWN, 0),
    ],
)
async def test_it_leaves_only_when_discord_says_so(error: Exception | None, verdict: Verdict, left: int) -> None:
    """If Discord does not answer whether an owner is a member, the bot does nothing on that server, and stays."""
    guild: Any = Guild(error)
    gate = admission(owners=(STRANGER,))
    assert await gate.check(guild) is verdict
    await gate.admit(guild)
    assert guild.left == left


async def test_a_served_guild_is_asked_about_once() -> None:
    """A server is checked once, and anew after the bot has left it. One that Discord cannot show is left alone."""
    guild: Any = Guild()
    gate = admission(owners=(STRANGER,))
    for _ in range(3):
        assert await gate.check(guild) is Verdict.SERVED
    assert guild.asked == 1
    gate.forget(GUILD)
    guild.error = NOT_FOUND
    assert await gate.check(guild) is Verdict.UNINVITED
    guild.unavailable = True
    await gate.admit(guild)
    assert guild.left == 0


async def test_an_owner_who_does_not_manage_a_guild_lets_nobody_in() -> None:
    """A stranger may invite the bot into a server that its owner has joined once."""
    guild: Any = Guild()
    guild.manages = False
    gate = admission(owners=(STRANGER,))
    assert await gate.check(guild) is Verdict.UNINVITED
    guild.roles = ()
    assert await gate.check(guild) is Verdict.UNKNOWN, "Discord has not said yet what roles may do"
    guild.roles = Guild.roles
    await gate.admit(guild)
    assert guild.left == 1


async def test_without_known_owners_no_guild_is_served() -> None:
    """If neither the settings nor Discord name an owner, the bot serves nobody."""
    assert await admission().check(cast("Any", Guild())) is Verdict.UNINVITED


def test_discord_names_the_owners() -> None:
    """Without owners in the settings they are the application's owner, or those of its team who may change it."""
    role, state = discord.TeamMemberRole, discord.TeamMembershipState
    team = SimpleNamespace(
        owner_id=5,
        members=[
            SimpleNamespace(id=1, role=role.admin, membership_state=state.accepted),
            SimpleNamespace(id=2, role=role.developer, membership_state=state.accepted),
            SimpleNamespace(id=3, role=role.read_only, membership_state=state.accepted),
            SimpleNamespace(id=4, role=role.admin, membership_state=state.invited),
        ],
    )
    alone: Any = SimpleNamespace(team=None, owner=SimpleNamespace(id=7))
    together: Any = SimpleNamespace(team=team, owner=SimpleNamespace(id=8))
    assert owners_of(DiscordSettings(), alone) == {7}
    assert owners_of(DiscordSettings(), together) == {1, 2, 5}
    assert owners_of(DiscordSettings(owners=(9,)), together) == {9}
    assert owners_of(DiscordSettings(), None) == frozenset()

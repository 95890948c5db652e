"""Commands whose database or room answers late, against the local Discord, which waits as long as Discord does."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import discord
import pytest

from bot.discord import admission, answers
from bot.discord.answers import answer_when_known
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.privacy import add_privacy_commands
from bot.discord.commands.setting_values import SettingStores
from bot.discord.commands.settings import add_settings
from bot.discord.commands.voice import VoiceCommands
from bot.discord.connection import connected
from bot.server_settings import MemoryServerSettings, ServerSettings, ServerSettingsBook
from bot.texts.text import Text
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.commands.test_participation import participation_with
from tests.bot.discord.commands.test_settings import operator
from tests.bot.discord.remembered import seen
from tests.bot.discord.test_client import ADA, FakeSupervisor, settings_for
from tests.fakes.choices import FakeOptOuts
from tests.fakes.voices import FakePlayer, FakeVoices
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from bot.discord.client import AddCommands

# The tests give it more.
CHECK_S = admission.CHECK_TIMEOUT_S


class BusyStore(MemoryServerSettings):
    """Stands for all stores. It answers only once Discord was told to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Wait, and say how many facts are gone."""
        del guild_id, person_id
        await self.free.wait()
        return 3

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        """Wait, and store."""
        await self.free.wait()
        await super().put(guild_id, settings, by=by)


class BusyOptOuts(FakeOptOuts):
    """Stores opt-outs once `free` is set."""

    def __init__(self, free: asyncio.Event) -> None:
        super().__init__()
        self._free = free

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Wait, and store."""
        await self._free.wait()
        await super().put(guild_id, person_id, out=out)


def commands_on(store: BusyStore) -> list[AddCommands]:
    """Return what adds the commands to a tree."""
    participation, book = participation_with(store, BusyOptOuts(store.free)), ServerSettingsBook(store)
    stores = SettingStores(book, operator(), VoiceCommands(FakeVoices(), FakePlayer().play_sample))
    records, facts = cast("Any", store), cast("Any", None)
    return [
        partial(add_participation_commands, participation=participation),
        partial(add_privacy_commands, records=records, people=records, facts=facts),
        partial(add_settings, stores=stores),
    ]


@pytest.mark.parametrize(
    ("command", "options", "told"),
    [
        ("opt-out", {}, "I no longer hear you"),
        ("silence", {}, "I am silent on this server until a moderator"),
        ("forget-me", {"sure": True, "what": "facts"}, "I have deleted all 3 things"),
        ("settings", {}, "I keep what was said until somebody deletes it."),
    ],
)
async def test_who_uses_a_command_while_the_database_is_busy_is_answered(
    monkeypatch: pytest.MonkeyPatch, command: str, options: dict[str, object], told: str
) -> None:
    """Discord is told in time that the answer comes later; then it has all of it, for the person alone."""
    store = BusyStore()
    defer = discord.InteractionResponse.defer

    async def deferred(response: discord.InteractionResponse[Any], **how: bool) -> None:
        await defer(response, **how)
        store.free.set()

    monkeypatch.setattr(discord.InteractionResponse, "defer", deferred)
    monkeypatch.setattr(answers, "DEFER_AFTER_S", 0.0)
    async with LocalDiscord() as local, connected(settings_for(local), FakeSupervisor(), commands_on(store)):
        result = await local.invoke(ADA, command, options)
        assert result.deferred
        (reply,) = result.replies
        assert told in seen(reply)
        assert reply.ephemeral


async def test_what_somebody_wants_is_done_though_discord_does_not_take_the_delay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An opt-out that is being stored is not given up because Discord is away for a moment."""
    monkeypatch.setattr(answers, "DEFER_AFTER_S", 0.0)
    free, sent = asyncio.Event(), list[str]()

    async def refuse(**_: object) -> None:
        free.set()
        raise ConnectionResetError

    async def send(text: str, **_: object) -> None:
        sent.append(text)

    async def work() -> Text:
        await free.wait()
        return Text("I may speak again.")

    response = SimpleNamespace(defer=refuse, send_message=send, is_done=lambda: False)
    async with asyncio.timeout(PATIENCE_S):
        await answer_when_known(
            cast(
                "Any",
                SimpleNamespace(
                    locale=discord.Locale.american_english,
                    response=response,
                    extras={},
                    created_at=discord.utils.utcnow(),
                ),
            ),
            work(),
        )
    assert sent == ["I may speak again."]


@pytest.mark.parametrize(
    ("age_s", "expected"), [(-5.0, 1.0), (0.0, 1.0), (1.5, 1.0), (2.0, 0.5), (2.5, 0.0), (60.0, 0.0)]
)
def test_a_command_that_came_late_is_put_off_sooner(age_s: float, expected: float) -> None:
    """Its three seconds began when the person used it."""
    assert answers.patience_s(age_s) == expected


def test_a_check_and_the_work_after_it_leave_time_to_tell_discord() -> None:
    """Discord waits 3 s for the first answer; half a second is for the way there and back."""
    assert CHECK_S + answers.DEFER_AFTER_S <= 2.5


async def test_work_does_not_go_on_without_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect while Discord is told that the answer comes later ends the work: nobody would see what becomes of it."""
    monkeypatch.setattr(answers, "DEFER_AFTER_S", 0.0)
    ended = asyncio.Event()

    async def fail(**_: object) -> None:
        raise KeyError

    async def work() -> Text:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Text("I may speak again.")

    interaction = SimpleNamespace(response=SimpleNamespace(defer=fail), extras={}, created_at=discord.utils.utcnow())
    with pytest.raises(KeyError):
        await answer_when_known(cast("Any", interaction), work())
    assert ended.is_set()

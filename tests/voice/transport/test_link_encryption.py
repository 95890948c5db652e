"""The link in an encrypted call: bad MLS messages, frames in the clear, downgrades, upgrades and the privacy code."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

import pytest

from rehearsal.runner.scripted_member import scripted_member
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import until
from tests.rehearsal.people.sounds import clip_of
from tests.voice.transport.link_scene import ADA, BOT, scene
from voice.transport import watchdog
from voice.transport.connector import NOT_ENCRYPTED
from voice.transport.link_events import Connected, Deaf, Recovering
from voice.transport.watchdog import RecoverGroup

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_frames_in_the_clear_are_not_heard_and_recover_nothing(tmp_path: Path) -> None:
    """Frames that come in the clear though the call is encrypted are not heard. The rest of the talkspurt is, and the
    group is left alone.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("clear_frames", share=0.1)
        for _ in range(3):
            await room.hears(ada)
        assert room.link.counters().clear > 0
        await room.local.fault("clear_frames", share=1)
        before = room.link.counters()
        await ada.say(clip_of(tmp_path, voice_s=1.0))
        await until(lambda: room.link.counters().clear >= before.clear + 50, "the beeps")
        counts = room.link.counters()
        assert (counts.decoded, counts.dave_failures) == (before.decoded, 0)
        assert not room.link._receiver.check(connected=True, runner_alive=True, in_transition=False, deafened=False)
    assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_who_is_alone_and_comes_in_the_clear_sees_the_bot_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing but frames in the clear comes, nobody is heard, which is told, and the connection stays."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        monkeypatch.setattr(watchdog, "DEAF_AFTER_S", 0.5)
        await room.local.fault("clear_frames", share=1)
        for times in (1, 2, 3):
            await ada.say(room.clip)
            await until(lambda: room.listener.kinds().count(Deaf) == times, "telling it")  # noqa: B023
        assert room.link.unheard
        assert room.listener.kinds() == [Connected, Deaf, Deaf, Deaf]


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_bad_mls_messages_are_survived(tmp_path: Path, fault: str) -> None:
    """After garbage as op 27 or op 29 the bot joins the MLS group again and hears on the same connection."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        epoch = room.local.status()["epoch"]
        await room.local.fault(fault, user_id=BOT)
        await until(lambda: room.local.status()["epoch"] > epoch + 1, "the rejoining")
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)
        assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_a_recovery_that_was_not_sent_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The voice websocket takes nothing just then. After a resumption the group is recovered for the same person."""

    async def broken(_: object) -> None:
        raise ConnectionResetError

    async with scene(tmp_path) as room:
        client, watched = room.link._connector.client, room.link._receiver._watchdog
        assert client is not None
        for n, now in enumerate((1.0, 20.0, 40.0)):
            for _ in range(watchdog.FAILURES_BEFORE_RECOVERY):
                watched.failed(ADA, in_group=False)
            found = watched.check(now, connected=True, runner_alive=True, in_transition=False, deafened=False)
            assert found == ([RecoverGroup(ADA, watchdog.FAILURES_BEFORE_RECOVERY)] if n < 2 else [])
            with monkeypatch.context() as patch:
                if n == 0:
                    patch.setattr(client.connection.ws, "send_as_json", broken)
                for finding in found:
                    assert not await room.link._replaced_for(finding, client)


@pytest.mark.asyncio
async def test_the_privacy_code_is_that_of_the_others(tmp_path: Path) -> None:
    """In an encrypted call the link has the privacy code that everybody else has; after a downgrade it has none."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.end_to_end
        assert re.fullmatch(r"(\d{5} ){5}\d{5}", room.link.privacy_code)
        await room.local.fault("downgrade")
        await until(lambda: not room.link.end_to_end, "the downgrade")
        assert room.link.privacy_code == ""


@pytest.mark.asyncio
async def test_a_downgrade_is_refused_where_encryption_is_required(tmp_path: Path) -> None:
    """With `require_e2ee`, nothing is heard or sent after a downgrade, and the link ends with the reason."""
    async with scene(tmp_path, require_e2ee=True) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        client = room.link._connector.client
        assert client is not None
        await room.local.fault("downgrade")
        await until(lambda: not client.connection.end_to_end, "the downgrade")
        assert not client.can_send
        before = room.listener.seconds_of(ADA)
        with contextlib.suppress(Exception):
            await ada.say(room.clip)
        async with asyncio.timeout(PATIENCE_S):
            assert str(await room.link.lost()) == NOT_ENCRYPTED
        assert room.listener.seconds_of(ADA) == before


@pytest.mark.asyncio
async def test_downgrade_and_upgrade_are_heard(tmp_path: Path) -> None:
    """People are heard after encryption goes down to version 0 and after it goes up again."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        await room.local.fault("downgrade")
        await until(lambda: ada.dave_version == 0, "the downgrade")
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.dave_version == 1, "the upgrade")
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.counters().undecodable == 0


@pytest.mark.asyncio
async def test_a_session_that_began_without_encryption_hears_after_an_upgrade(tmp_path: Path) -> None:
    """The bot joins an unencrypted call, which becomes encrypted then: it hears before and after, on one connection."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("downgrade")
        await until(lambda: ada.dave_version == 0, "the downgrade")
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        await until(lambda: room.listener.kinds()[-2:] == [Recovering, Connected], "coming back")
        assert not room.link.end_to_end
        await ada.meet(BOT)
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.dave_version == 1, "the upgrade")
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)
        assert room.link.privacy_code
        assert room.listener.kinds()[-1] is Connected

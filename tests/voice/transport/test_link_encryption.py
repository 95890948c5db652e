"""The link in an encrypted call: bad MLS messages, frames in the clear, downgrades, upgrades and the privacy code."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from rehearsal.people.person import scripted_member
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import until
from tests.voice.transport.link_scene import ADA, BOT, scene
from voice.transport.connector import NOT_ENCRYPTED
from voice.transport.link_events import Connected, Recovering

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_bad_mls_message_is_survived(tmp_path: Path) -> None:
    """After garbage as op 29 the bot joins the MLS group again and hears on the same connection."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        epoch = room.local.status()["epoch"]
        await room.local.fault("invalid_commit", user_id=BOT)
        await until(lambda: room.local.status()["epoch"] > epoch + 1, "the rejoining")
        await room.is_back_with(ada)
        assert room.listener.kinds() == [Connected]


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
        await room.is_back_with(ada)
        assert room.link.privacy_code
        assert room.listener.kinds()[-1] is Connected


async def test_downgrade_and_upgrade_are_heard(tmp_path: Path) -> None:
    """People are heard after encryption goes down to version 0 and after it goes up again. In an encrypted call the
    link has the privacy code that everybody else has; after the downgrade it has none.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.end_to_end
        assert re.fullmatch(r"(\d{5} ){5}\d{5}", room.link.privacy_code)
        await room.local.fault("downgrade")
        await until(lambda: ada.dave_version == 0 and not room.link.end_to_end, "the downgrade")
        assert room.link.privacy_code == ""
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.dave_version == 1, "the upgrade")
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.counters().undecodable == 0

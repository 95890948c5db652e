"""Each fault affects real clients as the real Discord would, and clients that can recover do recover."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.discord.faults.injector import FAULTS
from rehearsal.errors import LocalDiscordError
from rehearsal.runner.scripted_member import scripted_member
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import Tone, connect, encrypted, stock_bot, until
from tests.rehearsal.people.sounds import clip_of

if TYPE_CHECKING:
    import discord

    from rehearsal.people.person import ScriptedPerson

BOT, SPARE, ADA, BEN = 1001, 1002, 2001, 2002


async def _hears(listener: ScriptedPerson, voice: discord.VoiceClient) -> None:
    """Check that `listener` hears the bot now."""
    # Unmodified discord.py sends unencrypted audio until it has its keys.
    state = voice._connection
    await until(lambda: state.can_encrypt or state.dave_protocol_version == 0, "the bot's keys")
    heard = listener.heard(BOT)
    before = len(heard)
    voice.play(Tone(0.2))
    await until(lambda: len(heard) >= before + 8 and not voice.is_playing(), "the bot's tone")


@pytest.mark.asyncio
async def test_an_invalid_commit_is_recovered_from() -> None:
    """After an invalid commit, the client sends op 31 and a new key package. It is removed, added again, and heard."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        await _hears(ada, voice)
        before = local.status()["epoch"]
        affected = await local.fault("invalid_commit")
        assert affected == {"fault": "invalid_commit", "user_ids": [str(BOT)]}
        await until(lambda: local.status()["epoch"] >= before + 2, "removal and addition")
        await until(lambda: voice._connection.can_encrypt and ada.epochs == before + 2, "everybody's new keys")
        await _hears(ada, voice)
        assert ada.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_everybody_makes_the_group_anew_on_request() -> None:
    """On op 24 with epoch 1, all members discard their keys and agree on new ones."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, stock_bot(local, SPARE) as spare:
        first, second = await connect(bot), await connect(spare)
        await until(lambda: encrypted(first, second), "the first epoch")
        assert first._connection.dave_session is not None
        before = first._connection.dave_session.get_epoch_authenticator()
        await local.fault("request_reset")
        await until(
            lambda: (
                encrypted(first, second) and first._connection.dave_session.get_epoch_authenticator() != before  # type: ignore[union-attr]
            ),
            "new keys",
        )
        await until(lambda: local.status()["channels"][0]["pending_transitions"] == [], "the transition's end")


@pytest.mark.asyncio
async def test_encryption_ends_and_begins_again() -> None:
    """A downgrade is announced, made ready and executed. After the upgrade, the bot is heard encrypted again."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        await local.fault("downgrade")
        await until(lambda: voice._connection.dave_protocol_version == 0 and ada.dave_version == 0, "version 0")
        assert local.status()["channels"][0]["dave_version"] == 0
        await _hears(ada, voice)
        await local.fault("upgrade")
        await until(lambda: voice._connection.can_encrypt and ada.dave_version == 1, "version 1")
        await ada.meet(BOT)
        await _hears(ada, voice)
        assert ada.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_a_broken_voice_websocket_is_resumed_with_what_was_missed() -> None:
    """A person's client resumes (op 7, op 9) with the same keys, and learns who joined while it was disconnected."""
    async with LocalDiscord() as local, scripted_member(local, ADA) as ada, scripted_member(local, BEN) as ben:
        await ada.meet(BEN)
        for close_code in (0, 4015):
            resumes = ada.resumes
            await local.fault("kill_voice_websocket", user_id=ADA, close_code=close_code)
            async with scripted_member(local, 2003) as chloe:
                await ada.meet(2003)
                await chloe.meet(ADA)
            assert (ada.resumes, ada.sessions) == (resumes + 1, 1)
        await ben.meet(ADA)


@pytest.mark.asyncio
async def test_a_session_that_nobody_resumes_ends() -> None:
    """A session that is not resumed within the time window ends."""
    async with (
        LocalDiscord(resume_window_s=0.05) as local,
        scripted_member(local, ADA),
        scripted_member(local, BEN) as ben,
    ):
        await ben.meet(ADA)
        session = local._voice.session_of(ADA)
        assert session is not None
        assert session.connection is not None
        session.connection.close(4006, "not resumable")
        await until(lambda: local._voice.session_of(ADA) is not session, "the session's end")


@pytest.mark.asyncio
async def test_stock_discord_py_comes_back_with_a_new_key() -> None:
    """discord.py does not resume. It leaves, joins again, and gets a new key and a new SSRC."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        old_key, old_ssrc = list(voice._connection.secret_key), voice._connection.ssrc
        # The reader thread of discord.py may block in select() on the old socket for 30 s. A packet wakes the thread.
        await ada._link.set_speaking(True)
        await until(lambda: ada._link.send(b"\xf8\xff\xfe") and local.status()["packets"]["out"], "her packet")
        await local.fault("kill_voice_websocket")
        await until(lambda: list(voice._connection.secret_key) != old_key, "another key")
        await until(lambda: voice.is_connected() and voice._connection.can_encrypt, "its return")
        assert voice._connection.ssrc != old_ssrc
        await ada.meet(BOT)
        await _hears(ada, voice)


@pytest.mark.asyncio
async def test_a_channel_migrates_to_another_endpoint() -> None:
    """After a VOICE_SERVER_UPDATE during a call, discord.py and a person's client change to the new endpoint."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        old_endpoint, old_ssrc = local.voice_endpoint, voice._connection.ssrc
        told = await local.fault("migrate")
        assert told["servers"][str(BOT)]["endpoint"] == local.voice_endpoint != old_endpoint
        await until(lambda: voice._connection.ssrc != old_ssrc and voice.is_connected(), "the bot's change")
        assert voice.endpoint == local.voice_endpoint
        await until(lambda: voice._connection.can_encrypt, "the bot's keys")
        await _hears(ada, voice)
        told = await local.fault("migrate", user_id=ADA)
        await ada.move(told["servers"][str(ADA)])
        await until(lambda: ada.sessions == 2, "her change")
        await ada.meet(BOT)
        await _hears(ada, voice)


@pytest.mark.asyncio
async def test_rtcp_and_video_come_between_and_disturb_nobody(tmp_path: Path) -> None:
    """Injected RTCP and video packets reach the clients, and audio sent at the same time is still heard."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        kinds: list[int] = []
        voice._connection.add_socket_listener(lambda data: kinds.append(data[1]))
        rtcp, video = await local.fault("rtcp", count=7), await local.fault("video", count=5)
        assert (rtcp["packets"], video["packets"]) == (7, 5)
        await ada.say(clip_of(tmp_path))
        await until(lambda: kinds.count(0x78) > 20, "her words")
        assert (kinds.count(200), kinds.count(101)) == (7, 5)
        await local.fault("rtcp", user_id=ADA, count=3)
        await _hears(ada, voice)
        assert local.status()["packets"]["injected"] == 15


@pytest.mark.asyncio
async def test_op_5_comes_late_when_asked() -> None:
    """With the fault `late_speaking`, audio arrives before op 5, until the delay is set back to 0."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        order: list[str] = []

        async def hook(websocket: object, message: dict[str, object]) -> None:
            if message["op"] == 5:
                order.append("op 5")

        voice._connection.ws._hook = hook  # type: ignore[method-assign]
        voice._connection.add_socket_listener(lambda data: order.append("packet"))
        await ada._link.set_speaking(True)
        await until(lambda: order == ["op 5"], "op 5 at once")
        await local.fault("late_speaking", delay_s=0.1)
        await ada._link.set_speaking(True)
        ada._link.send(b"\xf8\xff\xfe")
        await until(lambda: len(order) == 3, "both")
        assert order == ["op 5", "packet", "op 5"]
        await local.fault("late_speaking", delay_s=0)
        await ada._link.set_speaking(True)
        await until(lambda: len(order) == 4, "op 5 at once again")


@pytest.mark.asyncio
async def test_malformed_proposals_reach_the_bot() -> None:
    """Malformed proposals end the reader of unmodified discord.py, while the client still seems connected."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, scripted_member(local, ADA) as ada:
        voice = await connect(bot)
        await ada.meet(BOT)
        runner = voice._connection._runner
        assert runner is not None
        await local.fault("malformed_proposals")
        await asyncio.wait({runner}, timeout=PATIENCE_S)
        assert isinstance(runner.exception(), ValueError)
        assert voice.is_connected()


@pytest.mark.asyncio
async def test_a_person_recovers_from_malformed_proposals() -> None:
    """A person's client reports malformed proposals (op 31), is removed, and is added again."""
    async with LocalDiscord() as local, scripted_member(local, ADA) as ada, scripted_member(local, BEN) as ben:
        await ada.meet(BEN)
        before = local.status()["epoch"]
        await local.fault("malformed_proposals", user_id=ADA)
        await until(lambda: local.status()["epoch"] == before + 2, "removal and addition")
        await ben.meet(ADA)


@pytest.mark.asyncio
async def test_faults_that_cannot_be_are_plain_sentences() -> None:
    """Unknown faults and options, and faults without an affected user, raise a clear error."""
    async with LocalDiscord() as local:
        with pytest.raises(LocalDiscordError, match=r"There is no fault 'earthquake'\. The faults are clear_frames, "):
            await local.fault("earthquake")
        with pytest.raises(LocalDiscordError, match="Nobody is connected to voice"):
            await local.fault("rtcp")
        with pytest.raises(LocalDiscordError, match="Ada is not connected to voice"):
            await local.fault("rtcp", user_id=ADA)
        with pytest.raises(LocalDiscordError, match="User 9 is not a member"):
            await local.fault("rtcp", user_id=9)
        with pytest.raises(LocalDiscordError, match=r"rtcp has no option 'speed'\. Its options: count"):
            await local.fault("rtcp", speed=1)
        with pytest.raises(LocalDiscordError, match="count of the fault rtcp is a number from 1 to 1000; 0 is not"):
            await local.fault("rtcp", count=0)
        async with scripted_member(local, ADA):
            with pytest.raises(LocalDiscordError, match="close_code is 0"):
                await local.fault("kill_voice_websocket", close_code=7)


def test_every_fault_is_documented() -> None:
    """The documentation of the control API names every fault and option, and no others."""
    page = (Path(__file__).parents[4] / "docs" / "rehearsal-control-api.md").read_text()
    documented = set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE))
    assert documented == set(FAULTS)
    for name, fault in FAULTS.items():
        section = page.split(f"### `{name}`")[1].split("###")[0]
        assert all(f"`{option}`" in section for option in fault.options), name

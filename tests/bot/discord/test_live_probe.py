"""The live probe in the local Discord: people are told, packets are counted, faults are seen."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.live_report import live_findings
from bot.discord import live_probe
from bot.discord.live_probe import probe_channel
from bot.errors import SetupError
from bot.settings import DiscordSettings
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.people.person import scripted_member
from tests.bot.discord.client import settings_for
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import repointed, until
from tests.rehearsal.people.sounds import clip_of
from voice.transport.connector import Connector
from voice.transport.counters import PacketCounters
from voice.transport.keepalive import Keepalive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rehearsal.discord import LocalDiscord

BOT, ADA = 1001, 2001
CHANNEL = 600


class Watch:
    """The time of a probe. It stands still until the test has done what the probe is to see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_over = False
        monkeypatch.setattr(live_probe, "time", SimpleNamespace(monotonic=self._monotonic))

    def _monotonic(self) -> float:
        return 1e9 if self.is_over else 0.0


async def test_packets_are_counted_and_nobody_is_decrypted(
    local: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody counts as opted out. The people are told before and after, and the counts name nobody."""
    said: list[str] = []
    watch = Watch(monkeypatch)
    async with scripted_member(local, ADA) as ada:
        with repointed(local):

            async def speak() -> None:
                await until(lambda: local.status()["members"] and _connected(local), "the bot")
                await ada.meet(BOT)
                await local.fault("rtcp", count=3)
                await ada.say(clip_of(tmp_path, voice_s=1.0))
                watch.is_over = True

            speaking = asyncio.create_task(speak(), name="speak")
            record = await probe_channel(settings_for(local), CHANNEL, seconds=8.0, say=said.append)
            await speaking
        messages = [message.content for message in local.messages]
    assert len(said) == 1
    assert "8 seconds" in messages[0]
    assert len(messages) == 2
    assert record["packets"]["excluded"] > 40
    assert record["packets"]["rtcp"] == 3
    assert record["packets"]["decoded"] == 0
    assert record["end_to_end"]
    assert all(finding.status is Status.OK for finding in live_findings(record))
    text = json.dumps(record)
    assert str(ADA) not in text
    assert "Ada" not in text


@pytest.mark.parametrize(
    ("fault", "options", "told"),
    [
        ("kill_voice_websocket", {"close_code": 4006}, "The voice server ended the connection (close code 4006)"),
        ("kill_voice_websocket", {"close_code": 0}, "broke 1 time and came back"),
        ("leave", {}, "Somebody took the bot out of the channel after"),
        ("silence", {}, "The voice server stopped answering"),
        ("", {}, "held to the end"),
    ],
)
async def test_what_became_of_the_connection_is_named(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch, fault: str, options: dict[str, Any], told: str
) -> None:
    """The probe sends keepalives as a room does, ends when its connection is lost, and says why."""
    echoes: list[bool] = []
    echoed = Keepalive.echoed

    def counted(self: Keepalive, datagram: bytes, now: float) -> bool:
        echoes.append(echoed(self, datagram, now))
        return echoes[-1]

    monkeypatch.setattr(Keepalive, "echoed", counted)
    changes: list[bool] = []

    def counted_connector(*given: Any, on_state: Callable[[bool], None], **options: Any) -> Connector:
        def noted(up: bool) -> None:
            changes.append(up)
            on_state(up)

        return Connector(*given, on_state=noted, **options)

    monkeypatch.setattr(live_probe, "Connector", counted_connector)
    watch = Watch(monkeypatch)
    with repointed(local):

        async def harm() -> None:
            await until(lambda: any(echoes), "an echo")
            match fault:
                case "leave":
                    await local.leave(BOT)
                case "silence":
                    monkeypatch.setattr(Keepalive, "dead", lambda *_: True)
                case _ if fault:
                    await local.fault(fault, **options)
            # One that comes back, or was never away, ends when its time is over.
            if not fault or options.get("close_code") == 0:
                await until(lambda: changes.count(True) == 1 + bool(fault), "the connection")
                watch.is_over = True

        harming = asyncio.create_task(harm(), name="harm")
        async with asyncio.timeout(PATIENCE_S):
            record = await probe_channel(settings_for(local), CHANNEL, seconds=60.0, say=lambda _: None)
        await harming
    assert "is over" in local.messages[-1].content
    assert not local.status()["voice_states"]
    assert record["keepalive_round_trips_ms"]
    findings = {finding.name: finding for finding in live_findings(record)}
    assert findings["connection"].detail.startswith(told)
    assert findings["keepalives"].detail.startswith("answered within ")


def _connected(local: LocalDiscord) -> bool:
    return any(member["id"] == str(BOT) and member["voice_connected"] for member in local.status()["members"])


@pytest.mark.parametrize(
    "local_guild",
    [GuildSpec(voice_channels=(Channel(CHANNEL, "Evening", denied=int(DiscordPermission.SEND_MESSAGES)),))],
)
async def test_where_nobody_can_be_told_the_probe_does_not_come(local: LocalDiscord) -> None:
    """Nobody's packets are noted without a word: the bot does not even join."""
    with repointed(local):
        with pytest.raises(SetupError, match="Send Messages"):
            await probe_channel(settings_for(local), CHANNEL, seconds=60.0, say=lambda _: None)
        assert not local.messages
        assert not local.status()["voice_states"]


async def test_what_cannot_be_is_a_plain_sentence(local: LocalDiscord) -> None:
    with pytest.raises(SetupError, match="no bot token"):
        await probe_channel(DiscordSettings(), CHANNEL, seconds=1.0, say=lambda _: None)
    with repointed(local):
        with pytest.raises(SetupError, match="77"):
            await probe_channel(settings_for(local), 77, seconds=1.0, say=lambda _: None)
        with pytest.raises(SetupError, match="refused"):
            await probe_channel(settings_for(local, token="9.wrong"), CHANNEL, seconds=1.0, say=lambda _: None)


def test_findings_name_what_is_odd() -> None:
    record = {
        "seconds": 30.0,
        "mode": "aead_new_mode",
        "end_to_end": False,
        "packets": {**PacketCounters().as_dict(), "received": 5, "rtcp": 5, "overflowed": 2},
        "connection": [{"after_s": 0.0, "change": "up"}],
        "keepalive_round_trips_ms": [],
    }
    found = {finding.name: finding for finding in live_findings(record)}
    odd = {name for name, finding in found.items() if finding.status is Status.WARNING}
    assert odd == {"packets", "encryption", "loss"}
    assert "5 rtcp" in found["packets"].detail

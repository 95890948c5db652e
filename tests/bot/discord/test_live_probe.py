"""The live probe in the local Discord: people are told, each step is tried, packets are counted, faults are seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from bot.background_task import owned_task
from bot.cli.doctor.finding import Status
from bot.cli.doctor.live_report import live_findings
from bot.cli.report.command import MOST_CHARS
from bot.discord import live_probe
from bot.discord.endpoint import IntentsClient
from bot.discord.live_probe import (
    ELSEWHERE,
    MOST_ROUND_TRIPS,
    NOTED,
    QUESTION,
    YES,
    CallStep,
    LiveRecord,
    probe_channel,
)
from bot.discord.permissions import PERMISSIONS
from bot.errors import SetupError
from bot.settings import DiscordSettings
from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.discord.media import packet_encryption
from rehearsal.people.person import scripted_member
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import TOKEN, settings_for
from tests.patience import patiently
from tests.rehearsal.discord.stock import repointed, until
from tests.rehearsal.people.sounds import clip_of
from voice.transport.connector import Connector
from voice.transport.counters import PacketCounters
from voice.transport.keepalive import Keepalive

BOT, ADA, BEN = 1001, 2001, 2002
CHANNEL = 600


class Watch:
    """The time of a probe. It stands still until the test has done what the probe is to see; then it flies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_over = False
        self._now = 0.0
        monkeypatch.setattr(live_probe, "time", SimpleNamespace(monotonic=self._monotonic))

    def _monotonic(self) -> float:
        self._now += 1e9 * self.is_over
        return self._now


# Which steps fail if one is spoilt. Who is alone in a channel has no group, hears nobody and asks nobody.
SPOILT: Mapping[CallStep | None, set[CallStep]] = {
    None: set(),
    CallStep.INTENTS: {CallStep.INTENTS},
    CallStep.COMMANDS: {CallStep.COMMANDS},
    CallStep.PERMISSIONS: {CallStep.PERMISSIONS},
    CallStep.VOICE_SERVER: {CallStep.VOICE_SERVER},
    CallStep.MODE: {CallStep.MODE},
    CallStep.EPOCH: {CallStep.EPOCH, CallStep.HEARD, CallStep.SENT, CallStep.CONFIRMED},
    CallStep.HEARD: {CallStep.HEARD},
    CallStep.SENT: {CallStep.PERMISSIONS, CallStep.SENT},
    CallStep.CONFIRMED: {CallStep.CONFIRMED},
}
DENIED = {CallStep.PERMISSIONS: DiscordPermission.ATTACH_FILES, CallStep.SENT: DiscordPermission.SPEAK}


async def _always_asks(self: IntentsClient) -> None:
    self._asked_for.message_content = True


async def _register(local: LocalDiscord) -> None:
    """Register a command, as a start of the bot does."""
    command = {"name": "join", "description": "Come", "type": 1}
    headers = {"Authorization": f"Bot {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        await http.put(f"{local.api_base}/applications/{BOT}/commands", json=[command], raise_for_status=True)


async def _meet(local: LocalDiscord, tmp_path: Path, spoilt: CallStep | None) -> None:
    """Do what Ada is asked to: speak, listen for the tone, and press the button."""
    if spoilt is CallStep.EPOCH:
        await until(lambda: _connected(local), "the bot")
        return
    async with scripted_member(local, ADA) as ada:
        await until(lambda: _connected(local), "the bot")
        await ada.meet(BOT)
        await local.fault("rtcp", user_id=BOT, count=3)
        if spoilt is not CallStep.HEARD:
            await ada.say(clip_of(tmp_path, voice_s=1.0))
        await until(lambda: any(each.content == QUESTION for each in local.messages), "the question")
        (question,) = [each for each in local.messages if each.content == QUESTION]
        if spoilt is None:
            assert len(ada.heard(BOT)) > 40
        if spoilt is not CallStep.CONFIRMED:
            for person, told in ((BEN, ELSEWHERE), (ADA, NOTED)):
                (reply,) = (await local.press(person, question.id, YES)).replies
                assert reply.content == told


@pytest.mark.parametrize("spoilt", SPOILT, ids=str)
async def test_each_step_of_a_call_is_tried(
    spoilt: CallStep | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not work has a remedy, what comes behind it is told if it can be tried, and the record names nobody."""
    watch = Watch(monkeypatch)
    if spoilt is CallStep.INTENTS:
        monkeypatch.setattr(IntentsClient, "setup_hook", _always_asks)
    if spoilt is CallStep.MODE:
        monkeypatch.setattr(packet_encryption, "MODES", (packet_encryption.AES_MODE,))
    denied = int(DENIED[spoilt]) if spoilt in DENIED else 0
    guild = GuildSpec(voice_channels=(Channel(CHANNEL, "Evening", denied=denied),))
    async with open_discord(guild) as opened:
        local = opened.discord
        settings = settings_for(local)
        if spoilt is CallStep.VOICE_SERVER:
            settings = DiscordSettings(token=settings.token, api_base=settings.api_base)
        if spoilt is not CallStep.COMMANDS:
            await _register(local)

        async def meet() -> None:
            try:
                await _meet(local, tmp_path, spoilt)
            finally:
                watch.is_over = True

        with repointed(local):
            async with owned_task(meet(), name="meeting") as meeting:
                record = await probe_channel(settings, CHANNEL, seconds=8.0, say=lambda _: None)
                if record.packets is not None:
                    await meeting
        assert not any(each.payload.get("components") for each in local.messages)
        assert str(BOT) not in [each["user_id"] for each in local.status()["voice_states"]]
    assert {step for step, result in record.steps.items() if not result["works"]} == SPOILT[spoilt]
    findings = {each.name: each for each in live_findings(record)}
    assert {name for name, each in findings.items() if each.status is not Status.OK} == SPOILT[spoilt]
    assert all(each.remedy for each in findings.values() if each.status is not Status.OK)
    text = json.dumps(record.as_json())
    assert not [mark for mark in (str(ADA), "Ada", "Evening", "local guild", "127.0.0.1") if mark in text]
    if record.packets is not None:
        assert record.packets["decoded"] == 0
    if spoilt is None:
        assert record.packets is not None
        assert record.packets["excluded"] > 40
        assert record.packets["rtcp"] == 3


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
        record = await patiently(probe_channel(settings_for(local), CHANNEL, seconds=60.0, say=lambda _: None))
        await harming
    assert "is over" in local.messages[-1].content
    assert not local.status()["voice_states"]
    assert record.round_trips_ms
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
        record = await probe_channel(settings_for(local), CHANNEL, seconds=60.0, say=lambda _: None)
        assert not local.messages
        assert not local.status()["voice_states"]
    assert not record.steps[CallStep.PERMISSIONS]["works"]
    assert "Send Messages" in record.problem


async def test_what_cannot_be_is_a_plain_sentence(local: LocalDiscord) -> None:
    with pytest.raises(SetupError, match="no bot token"):
        await probe_channel(DiscordSettings(), CHANNEL, seconds=1.0, say=lambda _: None)
    with repointed(local):
        for settings, channel, step, told in (
            (settings_for(local), 77, CallStep.PERMISSIONS, "77"),
            (settings_for(local, token="9.wrong"), CHANNEL, CallStep.INTENTS, "refused"),
        ):
            record = await probe_channel(settings, channel, seconds=1.0, say=lambda _: None)
            (finding,) = [each for each in live_findings(record) if each.status is Status.MISSING]
            assert (finding.name, told in f"{finding.detail} {finding.remedy}") == (step, True)


def test_a_record_fits_into_an_issue_whatever_the_voice_server_does() -> None:
    """A report and the longest record together have fewer characters than an issue may have, and lost packets are
    told.
    """
    packets = dict.fromkeys(PacketCounters().as_dict(), 10**9)
    record = LiveRecord(600.0, packets=packets, round_trips_ms=[1000.1] * MOST_ROUND_TRIPS)
    for step in CallStep:
        record.note(step, works=False, missing=list(PERMISSIONS), error="VoiceConnectionError")
    for _ in range(1000):
        record.changed("removed", close_code=4014)
    assert len(json.dumps(record.as_json(), indent=2)) + MOST_CHARS < 65_536
    assert {each.name: each for each in live_findings(record)}["loss"].status is Status.WARNING

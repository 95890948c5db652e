"""The live probe in the local Discord, as in the real one: people are told, faults are seen, and the record replays."""

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
from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.discord.media.header_replay import HeaderReplay
from rehearsal.runner.scripted_member import scripted_member
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import repointed, until
from tests.rehearsal.people.sounds import clip_of
from voice.transport import keepalive
from voice.transport.keepalive import Keepalive
from voice.transport.mls_kinds import BINARY_OPS, KNOWN_KINDS

if TYPE_CHECKING:
    from pathlib import Path

BOT, ADA = 1001, 2001
CHANNEL = 600
SECRET = "a word of somebody's"


def settings_of(local: LocalDiscord, *, token: str = f"{BOT}.test") -> DiscordSettings:
    return DiscordSettings.model_validate(
        {
            "token": token,
            "api_base": local.api_base,
            "gateway": local.gateway_url,
            "ca_file": str(local.certificate_path),
        }
    )


class Watch:
    """The time of a probe. It stands still until the test has done what the probe is to see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_over = False
        monkeypatch.setattr(live_probe, "time", SimpleNamespace(monotonic=self._monotonic))

    def _monotonic(self) -> float:
        return 1e9 if self.is_over else 0.0


@pytest.mark.asyncio
async def test_what_comes_is_noted_and_can_be_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    watch = Watch(monkeypatch)
    async with LocalDiscord() as local, scripted_member(local, ADA) as ada:
        with repointed(local):

            async def speak() -> None:
                await until(lambda: local.status()["members"] and _connected(local), "the bot")
                await ada.meet(BOT)
                await local.fault("padding_bursts", count=20)
                await local.fault("rtcp", count=3)
                await ada.say(clip_of(tmp_path, voice_s=1.0))
                watch.is_over = True

            speaking = asyncio.create_task(speak(), name="speak")
            record = await probe_channel(settings_of(local), CHANNEL, seconds=8.0, say=said.append)
            await speaking
        messages = [message.content for message in local.messages]
    assert [sentence.endswith("for 8 s.") for sentence in said] == [True]
    assert "I am testing the voice connection for 8 seconds" in messages[0]
    assert messages[-1] == "The test of the voice connection is over. Thank you."
    (stream,) = record["streams"]
    assert stream["kinds"]["e"] > 40
    assert stream["kinds"]["p"] > 5
    assert record["other_packets"]["rtcp 200"] == 3
    assert "aead_xchacha20_poly1305_rtpsize" in record["modes_offered"]
    findings = {finding.name: finding for finding in live_findings(record)}
    assert findings["packets"].status is findings["modes"].status is findings["unknown"].status is Status.OK
    assert "DAVE version 1" in findings["encryption"].detail
    assert record["binary_messages"].keys() <= {str(op) for op in BINARY_OPS}
    assert record["mls_messages"].keys() <= KNOWN_KINDS
    text = json.dumps(record)
    assert str(ADA) not in text
    assert "Ada" not in text
    path = tmp_path / "live.json"
    path.write_text(text, "utf-8")
    replay = HeaderReplay.load(path)
    assert replay.rtcp == (200, 200, 200)
    (replayed,) = replay.streams
    assert sum(packet.kind == "p" for packet in replayed) == stream["kinds"]["p"]


@pytest.mark.asyncio
async def test_what_nobody_knows_of_the_voice_gateway_is_named() -> None:
    """Opcodes and kinds of MLS messages, also in messages that the connection refuses, but nothing of what is in them.

    The connection ends behind them, and the test with it.
    """
    async with LocalDiscord() as local:
        with repointed(local):

            async def send() -> None:
                # It says that it is silent once it has its keys.
                await until(lambda: _session(local) is not None and _session(local).leg.announced, "the bot")
                session = _session(local)
                session.send_json(98, {"said": SECRET})
                session.send_unsequenced({"op": 99})
                session.send_binary(77, SECRET.encode())
                await local.fault("malformed_proposals")
                await local.fault("kill_voice_websocket", close_code=4006)

            sending = asyncio.create_task(send(), name="send")
            async with asyncio.timeout(PATIENCE_S):
                record = await probe_channel(settings_of(local), CHANNEL, seconds=60.0, say=lambda _: None)
            await sending
    unknown = next(finding for finding in live_findings(record) if finding.name == "unknown")
    assert unknown.status is Status.WARNING
    for named in ("op 98 (1, at most ", "op 99 (1, at most 9 bytes)", "binary op 77 (1, at most 23 bytes)"):
        assert named in unknown.detail
    assert "MLS: version 258 (1, at most 63 bytes)" in unknown.detail
    assert SECRET not in json.dumps(record)


@pytest.mark.parametrize(
    ("fault", "options", "seconds", "told"),
    [
        ("kill_voice_websocket", {"close_code": 4006}, 60.0, "The voice server ended the connection (close code 4006)"),
        ("kill_voice_websocket", {"close_code": 0}, 10.0, "broke 1 time and came back"),
        ("leave", {}, 60.0, "Somebody took the bot out of the channel after"),
        ("silence", {}, 60.0, "The voice server stopped answering"),
        ("", {}, 3.0, "held to the end"),
    ],
)
@pytest.mark.asyncio
async def test_what_became_of_the_connection_is_named(
    monkeypatch: pytest.MonkeyPatch, fault: str, options: dict[str, Any], seconds: float, told: str
) -> None:
    """The probe sends keepalives as a room does, ends when its connection is lost, and says why."""
    monkeypatch.setattr(keepalive, "KEEPALIVE_EVERY_S", 0.1)
    echoes: list[bool] = []
    echoed = Keepalive.echoed

    def counted(self: Keepalive, datagram: bytes, now: float) -> bool:
        echoes.append(echoed(self, datagram, now))
        return echoes[-1]

    monkeypatch.setattr(Keepalive, "echoed", counted)
    async with LocalDiscord() as local:
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

            harming = asyncio.create_task(harm(), name="harm")
            async with asyncio.timeout(PATIENCE_S):
                record = await probe_channel(settings_of(local), CHANNEL, seconds=seconds, say=lambda _: None)
            await harming
        assert local.messages[-1].content == "The test of the voice connection is over. Thank you."
        assert not local.status()["voice_states"]
    assert record["keepalive_round_trips_ms"]
    findings = {finding.name: finding for finding in live_findings(record)}
    assert findings["connection"].detail.startswith(told)
    assert findings["keepalives"].detail.startswith("answered within ")


def _session(local: LocalDiscord) -> Any:
    return local._voice.session_of(BOT)


def _connected(local: LocalDiscord) -> bool:
    return any(member["id"] == str(BOT) and member["voice_connected"] for member in local.status()["members"])


@pytest.mark.asyncio
async def test_where_nobody_can_be_told_the_probe_does_not_come() -> None:
    """Nobody's packets are noted without a word: the bot does not even join."""
    silent = GuildSpec(voice_channels=(Channel(CHANNEL, "Evening", denied=int(DiscordPermission.SEND_MESSAGES)),))
    async with LocalDiscord(guild=silent) as local:
        with repointed(local):
            with pytest.raises(SetupError, match=r"could not be told .* the permission Send Messages there"):
                await probe_channel(settings_of(local), CHANNEL, seconds=60.0, say=lambda _: None)
            assert not local.messages
            assert not local.status()["voice_states"]


@pytest.mark.asyncio
async def test_what_cannot_be_is_a_plain_sentence() -> None:
    with pytest.raises(SetupError, match="There is no bot token"):
        await probe_channel(DiscordSettings(), CHANNEL, seconds=1.0, say=lambda _: None)
    async with LocalDiscord() as local:
        with repointed(local):
            with pytest.raises(SetupError, match="The bot sees no voice channel 77"):
                await probe_channel(settings_of(local), 77, seconds=1.0, say=lambda _: None)
            with pytest.raises(SetupError, match="Discord refused the bot's token"):
                await probe_channel(settings_of(local, token="9.wrong"), CHANNEL, seconds=1.0, say=lambda _: None)


def test_findings_name_what_is_odd() -> None:
    stream = {
        "stream": 0,
        "packets": 100,
        "kinds": {"e": 90, "c": 10},
        "padding_bytes": {"5": 3},
        "extensions": {"bede:9.1": 100},
        "missing": 10,
        "behind": 1,
        "speaking_after_first_packet_ms": [20.0, 900.0],
    }
    record = {
        "seconds": 30.0,
        "modes_offered": ["aead_new_mode"],
        "session": {"mode": "aead_new_mode", "dave_protocol_version": "1"},
        "gateway_messages": {"2": 1, "77": 4},
        "unknown_messages": {"77": {"count": 4, "total_bytes": 90, "largest_bytes": 30}},
        "binary_messages": {
            "27": {"count": 2, "total_bytes": 900, "largest_bytes": 500},
            "32": {"count": 1, "total_bytes": 70, "largest_bytes": 70},
        },
        "mls_messages": {
            "add by external sender": {"count": 2, "total_bytes": 800, "largest_bytes": 400},
            "wire format 9": {"count": 1, "total_bytes": 90, "largest_bytes": 90},
        },
        "transitions": [],
        "streams": [stream],
        "other_packets": {"rtcp 201": 5},
        "counters": {"overflowed": 2},
        "connection": [{"after_s": 0.0, "change": "up"}],
        "keepalive_round_trips_ms": [],
    }
    found = {finding.name: finding for finding in live_findings(record)}
    assert found["modes"].status is Status.MISSING
    assert {name for name, finding in found.items() if finding.status is Status.WARNING} == {
        "encryption", "speaking", "loss", "unknown",
    }  # fmt: skip
    assert found["unknown"].detail == (
        "op 77 (4, at most 30 bytes), binary op 32 (1, at most 70 bytes), MLS: wire format 9 (1, at most 90 bytes), "
        "rtcp 201 (5)"
    )
    assert "10 in the clear" in found["encryption"].detail
    assert found["packets"].detail == "100 packets of 1 stream in 30 s"
    quiet = {**record, "streams": [], "modes_offered": ["aead_xchacha20_poly1305_rtpsize"]}
    assert live_findings(quiet)[0].status is Status.WARNING
    assert found["connection"].status is found["keepalives"].status is Status.OK
    assert "answered none of them" in found["keepalives"].detail


@pytest.mark.asyncio
async def test_a_chat_that_does_not_answer_tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test is not made, rather than waiting with no word on the terminal."""
    monkeypatch.setattr(live_probe, "_TELL_TIMEOUT_S", 0.0, raising=False)
    channel: Any = SimpleNamespace(
        send=lambda _: asyncio.Event().wait(),
        guild=SimpleNamespace(preferred_locale=SimpleNamespace(value="en-US")),
    )
    async with asyncio.timeout(5):
        assert not await live_probe._tell(channel, live_probe.notice(60))

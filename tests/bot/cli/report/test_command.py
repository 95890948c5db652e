"""`roomtone report` shows the report before it writes it, and keeps it short enough for an issue."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import discord
import pytest

from bot.cli.app import run_command_line
from bot.cli.doctor import command as doctor
from bot.cli.doctor.finding import Finding, Status
from bot.cli.report.command import MOST_CHARS, report_text
from bot.logs.log_file import log_path
from bot.logs.output import configured_logging
from bot.logs.reader import LogEvent
from config.load import default_settings
from config.schema import Settings
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from tests.bot.discord.client import online
from tests.patience import settle

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with an empty data folder."""
    defaults = default_settings()
    return defaults.model_copy(update={"storage": defaults.storage.model_copy(update={"data_dir": tmp_path})})


def write_log(settings: Settings, *events: LogEvent) -> None:
    path = log_path(settings.storage.data_dir)
    path.parent.mkdir()
    stamp = {"timestamp": (NOW - timedelta(minutes=5)).isoformat()}
    path.write_text("".join(json.dumps(stamp | each) + "\n" for each in events), "utf-8")


def test_the_log_is_summed_up(settings: Settings) -> None:
    """Equal events are counted, with their times; packets are added up; what is older is left out."""
    refused = {"event": "request_refused", "method": "POST", "status": 403, "code": 50013}
    write_log(
        settings,
        {**refused, "timestamp": (NOW - timedelta(hours=7)).isoformat()},
        refused,
        refused,
        *(
            {"event": "dave_transition_executed", "protocol_version": 1, "duration_ms": each}
            for each in (100, 200, 900)
        ),
        *({"event": "voice_packets_counted", "dave_failures": each} for each in (4, 5)),
        {"event": "turn_recorded", "text": "we meet at nine"},
    )
    text = report_text(settings, [], now=NOW, hours=6.0)
    assert "2  request_refused code=50013 method=POST status=403 (You lack permissions" in text
    assert "3  dave_transition_executed protocol_version=1  duration_ms 200 (most 900)" in text
    assert "9 dave_failures" in text
    assert "turn_recorded" not in text


def test_a_report_is_short_enough_for_an_issue(settings: Settings) -> None:
    """However much happened; the last events are there."""
    mistakes = ["embeds.0." * 100] * 5
    write_log(
        settings,
        *({"event": "request_refused", "code": each, "mistakes": mistakes} for each in range(1000)),
        {"event": "bot_taken_out"},
    )
    text = report_text(settings, [Finding("discord", Status.OK, "none")] * 1000, now=NOW, hours=6.0)
    assert MOST_CHARS / 2 < len(text) < MOST_CHARS
    assert "bot_taken_out" in text


async def test_what_discord_did_is_in_the_report(settings: Settings) -> None:
    """A gateway that was closed, how the session went on, and a request that was refused, all in the local Discord."""
    with configured_logging(settings.storage.data_dir):
        async with online() as (local, client, _):
            await local.fault("kill_gateway", user_id=ROOMTONE_BOT_ID, close_code=4000)
            await settle(lambda: "shard_connected" in log_path(settings.storage.data_dir).read_text("utf-8"))
            with pytest.raises(discord.NotFound):
                await client.fetch_channel(77)
    text = report_text(settings, [], now=datetime.now(UTC), hours=1.0)
    assert "gateway_closed close_code=4000 shard=0" in text
    assert "shard_connected resumed=yes shard=0" in text
    assert "request_refused code=10003 method=GET route=/api/v10/channels/{} status=404 (Unknown channel)" in text


@pytest.mark.usefixtures("in_tmp_path")
def test_it_is_shown_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody can say yes, nothing is written; --yes writes what was shown, for its owner alone."""
    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(doctor, "run_checks", lambda: [Finding("discord", Status.OK, "none")])
    file = tmp_path / "roomtone-report.txt"
    assert run_command_line(["report"]) == 1
    shown = capsys.readouterr().out
    assert "discord.py" in shown
    assert not file.exists()
    assert run_command_line(["report", "--yes"]) == 0
    assert file.read_text("utf-8").splitlines()[1:] == shown.splitlines()[1 : len(file.read_text("utf-8").splitlines())]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "roomtone.toml").write_text("[web]\nport = -1\n")
    assert run_command_line(["report", "--yes"]) == 0
    assert "they cannot be used" in file.read_text("utf-8")

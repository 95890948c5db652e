"""`roomtone servers` tells what each server has used and may use, the dearest first, and where a room is open."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bot.cli.servers import NOBODY
from bot.clock import SystemClock
from bot.cost import Cost
from bot.participation.spending import MONTH_S
from bot.store.database import open_database
from bot.store.servers import UsageStore
from bot.store.sessions import Sessions
from tests.bot.cli.memory.stored_evening import told


def test_servers_are_listed_by_what_they_cost(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is older than a month does not count."""
    assert NOBODY in told(capsys, "servers")
    now = SystemClock().now()

    async def use() -> None:
        async with open_database(data_dir / "roomtone.db") as database:
            usage = UsageStore(database)
            await usage.add({5: Cost(1, 10, 60.0), 6: Cost(2, 7_000, 0.0, 0.0123)}, now=now)
            await usage.add({5: Cost(1, 1_000_000, 0.0)}, now=now - MONTH_S - 3_600.0)

            await Sessions(database, SystemClock()).open(guild_id=5, channel_id=50, resume_within_s=60.0)

    asyncio.run(use())
    (data_dir.parent / "roomtone.toml").write_text("[[participation.servers]]\nid = 5\nmax_calls_per_hour = 0\n")
    listed = json.loads(told(capsys, "servers", "--json"))
    assert [each["guild_id"] for each in listed] == ["6", "5"]
    assert listed[1]["month"] == {"calls": 1, "tokens": 10, "spoken_s": 60.0, "dollars": 0.0}
    assert [(each["in_room"], each["limits"]["calls"], each["name"]) for each in listed] == [
        (False, 240, None),
        (True, 0, None),
    ]
    told_to_people = told(capsys, "servers")
    assert [each in told_to_people for each in ("7,000", "0.0123", "open", "1,000,000")] == [True] * 4


def test_servers_are_admitted_and_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list has them, also before they have used anything."""
    for words in (("admit", f"{10**16}"), ("refuse", f"{10**17}"), ("admit", f"{10**18}"), ("refuse", f"{10**18}")):
        assert words[1] in told(capsys, "servers", *words)
    listed = json.loads(told(capsys, "servers", "--json"))
    assert {each["guild_id"]: each["served"] for each in listed} == {
        f"{10**16}": True,
        f"{10**17}": False,
        f"{10**18}": False,
    }
    assert "admitted" in told(capsys, "servers")


@pytest.mark.parametrize("text", ["0", "123", "0" * 18, "Lounge", "12 34", "²", str(2**63), "9" * 5_000])
def test_what_is_no_servers_id_is_refused(data_dir: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """With how to find it."""
    assert "developer mode" in " ".join(told(capsys, "servers", "admit", text, status=1).split())

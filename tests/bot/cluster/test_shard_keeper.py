"""The actor of a group keeps its bot running, hands it over, and ends with it when another process has its shards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bot.cluster import shard_keeper
from bot.cluster.shard_groups import divided
from bot.cluster.shard_keeper import ShardKeeper, child_command, last_line
from bot.errors import FENCED_STATUS
from tests.patience import settle

GROUP = divided(16, 4)[1]
# Writes its number behind the others, and ends in order when it is asked to.
BOT = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("left my rooms", flush=True), sys.exit(0)))
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
print("on Discord", flush=True)
time.sleep(60)
"""


def bot_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a small program be the bot. Return the file into which it writes its number."""
    numbers = tmp_path / "numbers"
    monkeypatch.setattr(shard_keeper, "child_command", lambda *_, **__: [sys.executable, "-c", BOT, str(numbers)])
    return numbers


async def started(numbers: Path, count: int) -> int:
    """Return the number of the process that was started as the `count`th."""
    await settle(lambda: len(numbers_in(numbers)) >= count)
    return numbers_in(numbers)[count - 1]


def numbers_in(file: Path) -> list[int]:
    """Return the processes that were started."""
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


async def test_a_bot_that_is_killed_is_started_again_and_one_that_is_handed_over_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once. Handing over lets the bot end in order."""
    numbers = bot_program(tmp_path, monkeypatch)
    keeper = ShardKeeper(GROUP)
    os.kill(await started(numbers, 1), signal.SIGKILL)
    second = await started(numbers, 2)
    await keeper.hand_over()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    assert len(numbers_in(numbers)) == 2


def test_a_bot_whose_shards_were_taken_ends_its_keeper(tmp_path: Path) -> None:
    """Ray has started another one, or starts it now."""
    program = textwrap.dedent(f"""
        import asyncio, sys
        from bot.cluster import shard_keeper
        from bot.cluster.shard_groups import divided
        shard_keeper.child_command = lambda *_, **__: [sys.executable, "-c", "raise SystemExit({FENCED_STATUS})"]
        async def keep():
            keeper = shard_keeper.ShardKeeper(divided(1, 1)[0])
            await asyncio.sleep(60)
        asyncio.run(keep())
    """)
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == FENCED_STATUS


def test_the_kernel_asks_a_bot_to_end_whose_keeper_is_gone(tmp_path: Path) -> None:
    """Also when that was killed: nobody else would end it."""
    numbers = tmp_path / "numbers"
    before, *run = child_command(GROUP)[:3], *child_command(GROUP)[3:]
    assert run[-5:] == ["run", "--shards", "4-7/16", "--kept", "1"]
    assert child_command(GROUP, follows=True) == [*child_command(GROUP), "--follows"]
    inner = [*before, sys.executable, "-c", BOT, str(numbers)]
    program = f"import subprocess, time\nsubprocess.Popen({inner!r}, start_new_session=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"on Discord\n"
        keeper.kill()
        assert keeper.stdout.readline() == b"left my rooms\n"


def test_what_a_bot_said_last_is_told() -> None:
    """It says in one line why it cannot begin."""
    assert last_line(b"Starting\nDISCORD_TOKEN was refused.\n\n") == "DISCORD_TOKEN was refused."
    assert last_line(b"\xff\n") == "\N{REPLACEMENT CHARACTER}"
    assert last_line(b"") == ""

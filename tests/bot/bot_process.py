"""Start `roomtone run` as a process in the local Discord, let Ada join its channel, and read what it stores."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from bot.store.forgettings import KEY_FILE
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.person import ScriptedPerson, scripted_member
from rehearsal.script.scenario_file import bundled_scenarios
from tests.patience import PATIENCE_S, patiently, settle

ADA = 2001
CLIPS = bundled_scenarios()["hello"].parent


def logged(folder: Path, event: str) -> list[dict[str, object]]:
    """Return the lines of an event in the log, in order."""
    lines = (json.loads(line) for path in folder.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line.get("event") == event]


class Process:
    """A running `roomtone run` and its output so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.out = ""

    async def says(self, words: str) -> None:
        """Wait until the process has printed `words`."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while words not in self.out:
                line = await self._process.stdout.readline()
                assert line, f"it ended without saying {words!r}: {self.out}"
                self.out += line.decode()

    def send_signal(self, sign: signal.Signals) -> None:
        """Send a signal to the process and its children."""
        os.killpg(self._process.pid, sign)

    async def killed(self) -> None:
        """Kill the process alone, and wait until it is gone. Its children still have its output."""
        self._process.kill()
        # Waiting for the process itself waits for its output too.
        await settle(lambda: self._process.returncode is not None)

    async def ends(self, sign: signal.Signals | None = None) -> tuple[int, str]:
        """Send a signal, if any, to the process and its children, wait for the end, and return its exit status and
        stderr.
        """
        if sign is not None:
            os.killpg(self._process.pid, sign)
        _, err = await patiently(self._process.communicate())
        assert self._process.returncode is not None
        return self._process.returncode, err.decode()

    async def gone(self) -> None:
        """Kill the process if it still runs."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.communicate()


@asynccontextmanager
async def roomtone_run(
    local: LocalDiscord,
    folder: Path,
    whisper: Path,
    *options: str,
    token: str = f"{ROOMTONE_BOT_ID}.local",
    **more: str,
) -> AsyncIterator[Process]:
    """Start `roomtone run` with `folder` as its working and data directory. `options`: of the command; `more`: further
    variables.
    """
    async with roomtone(local, folder, whisper, "run", *options, token=token, **more) as process:
        yield process


@asynccontextmanager
async def roomtone(
    local: LocalDiscord, folder: Path, whisper: Path, *words: str, token: str = "", **more: str
) -> AsyncIterator[Process]:
    """Start `roomtone` with these words, as `roomtone_run` does. `token`: of the bot, if the command needs it."""
    # With a settings file in its folder the program does not look for the tester's own.
    (folder / "roomtone.toml").touch()
    if "ROOMTONE_DATABASE_URL" in more:
        # The processes of one database have the same key.
        (folder / KEY_FILE).write_bytes(bytes(32))
    own = {
        "DISCORD_TOKEN": token,
        "ROOMTONE_ASR__MODEL": str(whisper),
        "ROOMTONE_STORAGE__DATA_DIR": str(folder),
        "OPENAI_API_KEY": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
        **more,
    }
    async with started([sys.executable, "-m", "bot", *words], local, folder, **own) as process:
        yield process


@asynccontextmanager
async def started(command: list[str], local: LocalDiscord, folder: Path, **own: str) -> AsyncIterator[Process]:
    """Start a command that leads to the bot in the local Discord. `own`: its environment besides."""
    tokens = {"DISCORD_TOKEN", "OPENAI_API_KEY", "MAKEFLAGS", "MAKELEVEL"}
    environment = {
        **{
            name: value for name, value in os.environ.items() if not name.startswith("ROOMTONE_") and name not in tokens
        },
        "ROOMTONE_DISCORD__API_BASE": local.api_base,
        "SSL_CERT_FILE": str(local.certificate_path),
        "ROOMTONE_ASR__LANGUAGES": "en",
        "PYTHONUNBUFFERED": "1",
        **own,
    }
    process = Process(
        await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            # Whoever runs the tests in the background of a shell ignores it, and so would the command.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
    )
    try:
        yield process
    finally:
        await process.gone()


def ada_in(local: LocalDiscord) -> ScriptedPerson:
    """Return Ada, who is in the voice channel while her context lasts."""
    return scripted_member(local, ADA)


def stored(folder: Path) -> list[tuple[str, int, str, str]]:
    """Read every stored turn from outside the bot's process. Returns session, seq, kind and parts of each."""
    path = folder / "roomtone.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return list(
            database.execute("SELECT session_id, seq, kind, parts FROM turns ORDER BY session_id, seq").fetchall()
        )


async def until_stored(folder: Path, words: str, *, since: int = 0) -> None:
    """Wait until a turn with `words` is stored. `since`: how many of the first turns to leave out."""
    for _ in range(round(PATIENCE_S / 0.1)):
        if any(words in parts for _, _, _, parts in stored(folder)[since:]):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"no turn with {words!r}: {stored(folder)}")

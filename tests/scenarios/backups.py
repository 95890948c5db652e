"""Backups of a bot that plays a rehearsal, and a bot that goes on with one of them."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.people.clip import Clip
from rehearsal.pytest_plugin import open_discord
from tests.bot.bot_process import ada_in, roomtone_run, stored, until_stored
from tests.patience import PATIENCE_S, patiently
from tests.scenarios.program import REPOSITORY, Program

# The evening's stored turns when it begins (history.jsonl).
EARLIER_TURNS = 58
# Each is taken after this many more turns.
TURNS_BETWEEN = 3
TOWN_QUESTION = REPOSITORY / "rehearsal" / "scenarios" / "evening" / "20-chloe.ogg"


Command: TypeAlias = "Callable[..., str]"


def back_up_meanwhile(playing: Program, trial: Path, folder: Path, command: Command) -> list[Path]:
    """Back up the bot that plays `evening`: at its begin, and twice once its first turns are folded.

    Meanwhile `restore` is refused. `command` runs a command on a data folder in this process, because one more start of
    Python could disturb the people who listen; it returns what was printed.
    """
    moments: list[Callable[[], bool]] = [
        lambda: turns_in(trial / "roomtone.db") > EARLIER_TURNS,
        lambda: folded(trial)[0] > 0,
        lambda: turns_in(trial / "roomtone.db") >= turns_in(copies[-1]) + TURNS_BETWEEN,
    ]
    copies: list[Path] = []
    for moment in moments:
        wait_until(moment, playing)
        copies.append(folder / f"copy-{len(copies)}.db")
        assert "Backed up and checked: 1 session with " in command(trial, "backup", str(copies[-1]))
        if len(copies) == 1:
            assert "Another Roomtone uses " in command(trial, "restore", str(copies[0]), "--yes", status=1)
    assert playing.running
    return copies


def wait_until(what: Callable[[], bool], playing: Program) -> None:
    """Poll `what` until it is true. Another process gives no event that could be awaited."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert playing.running, playing.printed()
        assert time.monotonic() < deadline, playing.printed()
        time.sleep(0.1)


def turns_in(file: Path) -> int:
    """Return how many turns a database has; 0 if its tables are not made yet."""
    return int(selected(file, "SELECT count(*) FROM turns")[0][0]) if has_tables(file) else 0


def folded(folder: Path) -> tuple[Any, ...]:
    """Return cursor, revision and summary of the one session in a data folder."""
    return selected(folder / "roomtone.db", "SELECT cursor, revision, summary FROM sessions")[0]


def has_tables(file: Path) -> bool:
    """Return whether a database has been made."""
    return file.exists() and bool(selected(file, "SELECT name FROM sqlite_schema WHERE name = 'turns'"))


def selected(file: Path, query: str) -> list[tuple[Any, ...]]:
    """Read from a database that another process may write."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def segments_in(folder: Path) -> list[tuple[Any, ...]]:
    """Return every folded segment in a data folder."""
    return selected(folder / "roomtone.db", "SELECT * FROM segments ORDER BY position")


async def assert_a_bot_goes_on(folder: Path, trial: Path, whisper: Path) -> None:
    """Start a bot on the data folder `folder`, into which a copy was restored.

    That is one moment of the evening in `trial`: its first turns, without a gap. The bot comes back to its channel
    and answers a question that nothing but the restored summary can answer. The session's turns go on where the copy
    ends.
    """
    before, memory, segments = stored(folder), folded(folder), segments_in(folder)
    assert before == stored(trial)[: len(before)]
    assert memory[0] == 10
    models = str(REPOSITORY / "data" / "models")
    async with (
        open_discord() as opened,
        ada_in(opened.discord) as ada,
        roomtone_run(opened.discord, folder, whisper, ROOMTONE_MODELS__DIRECTORY=models) as bot,
    ):
        await bot.says("is on Discord")
        await patiently(ada.meet(ROOMTONE_BOT_ID))
        assert folded(folder) == memory
        asked = await ada.say(Clip.load(TOWN_QUESTION))
        await ada.wait_for_sound(ROOMTONE_BOT_ID, since=asked.speech_ended_at, timeout_s=PATIENCE_S)
        # The answer is stored when it has been spoken.
        await until_stored(folder, "Lisbon", since=len(before))
        status, err = await bot.ends(signal.SIGTERM)
    assert (status, err.count("Traceback")) == (0, 0)
    after = stored(folder)
    assert after[: len(before)] == before
    assert {session for session, _, _, _ in after} == {before[0][0]}
    assert [seq for _, seq, _, _ in after] == list(range(len(after)))
    new = [(kind, " ".join(text for _, _, text, _ in json.loads(parts))) for _, _, kind, parts in after[len(before) :]]
    (answer,) = [text for kind, text in new if kind == "assistant"]
    assert "Lisbon" in answer
    assert len([kind for kind, _ in new if kind == "speech"]) == 1
    assert segments_in(folder)[: len(segments)] == segments
    assert folded(folder)[0] >= memory[0]

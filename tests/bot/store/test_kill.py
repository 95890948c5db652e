"""A SIGKILL at any moment loses nothing that was acknowledged, and nothing is stored twice."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from pydantic import SecretStr

from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import Seq
from tests.bot.store.writer import BATCH, SESSION
from tests.compaction.turn_store_contract import turn
from tests.fakes.clock import FakeClock

ROOT = Path(__file__).parents[3]
ROUNDS = 3


def promises_until_killed(place: Path | SecretStr, *, after_lines: int) -> list[list[str]]:
    """Start a writer, kill it after `after_lines` printed lines, and return the words of all its lines."""
    database = place.get_secret_value() if isinstance(place, SecretStr) else str(place)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bot.store.writer", database], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as writer:
        assert writer.stdout is not None
        lines = []
        for line in writer.stdout:
            lines.append(line)
            if len(lines) == after_lines:
                # The writer is killed wherever it is by now: between statements, inside one, or in a commit.
                writer.kill()
        return [line.split() for line in lines if line.endswith("\n")]


async def test_killed_processes_keep_their_promises(place: Path | SecretStr) -> None:
    """After three killed writers, the session has all acknowledged turns and notes, one segment for each batch, and the
    acknowledged cursor.
    """
    rng = random.Random(20_261_120)
    told = [promise for _ in range(ROUNDS) for promise in promises_until_killed(place, after_lines=rng.randint(20, 90))]
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        memory = await store.load(SESSION)
        everything = await store.turns(SESSION, Seq(0), Seq(memory.total_turns))
    promised_turns = [int(words[1]) for words in told if words[0] == "turn"]
    assert list(everything) == [turn(seq) for seq in range(memory.total_turns)]
    assert len(promised_turns) == len(set(promised_turns))
    assert memory.total_turns - 1 >= max(promised_turns)
    # For each writer, at most one turn was stored without being acknowledged.
    assert memory.total_turns - len(promised_turns) <= ROUNDS

    cursors = [int(words[1]) for words in told if words[0] == "landed"]
    assert cursors == sorted(set(cursors))
    assert memory.state.cursor >= cursors[-1]
    assert memory.state.revision == memory.state.cursor // BATCH
    assert [(each.start, each.end) for each in memory.segments] == [
        (start, start + BATCH) for start in range(0, memory.state.cursor, BATCH)
    ]
    assert [each.seq for each in memory.window] == list(range(memory.state.cursor, memory.total_turns))

    folded = [note_id for each in memory.segments for note_id in each.note_ids]
    kept = [each.id for each in (*memory.state.pending_notes, *memory.live_notes)]
    promised_notes = {words[1] for words in told if words[0] == "note"}
    assert len(folded) == len(set(folded))
    assert not set(folded) & set(kept)
    assert promised_notes <= {*folded, *kept}

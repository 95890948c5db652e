"""A process that stores turns, notes and landings until it is killed, and prints each one once it is stored.

Run as `python -m tests.bot.store.writer DATABASE`, a file or a URL. Like a bot it keeps other bots away from a server's
database. It continues where the previous run stopped. Every printed line
promises that something is stored: `turn SEQ`, `note ID`, `landed CURSOR REVISION`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from bot.clock import SystemClock
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import CompactionState, NoteId, Seq, SessionId
from compaction.ports import Landing
from tests.compaction.turn_store_contract import note, segment, turn

SESSION = SessionId("evening")
BATCH = 10


def tell(*words: object) -> None:
    """Print one line and flush it."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def main(place: Path | SecretStr) -> None:
    """Store turns, notes and landings until the process is killed."""
    async with open_database(place) as database, database.held_by_bot():
        store = SqlTurnStore(database, SystemClock())
        while True:
            memory = await store.load(SESSION)
            seq = memory.total_turns
            await store.append_turn(SESSION, turn(seq))
            tell("turn", seq)
            await store.add_note(SESSION, note(f"n{seq}"))
            tell("note", f"n{seq}")
            await store.move_notes_to_pending(SESSION, [NoteId(f"n{seq}")])
            state = memory.state
            if seq - state.cursor > 2 * BATCH:
                end = Seq(state.cursor + BATCH)
                folded = tuple(each.id for each in state.pending_notes)
                after = CompactionState(end, state.revision + 1, f"Turns to {end - 1}.", 1.0)
                folding = segment(state.cursor, end, note_ids=folded)
                assert await store.land(Landing(SESSION, state.cursor, state.revision, folding, after, folded))
                tell("landed", end, after.revision)


if __name__ == "__main__":
    asyncio.run(main(SecretStr(sys.argv[1]) if "://" in sys.argv[1] else Path(sys.argv[1])))

"""A process that is frozen while it writes for a server, and goes on later.

Run as `python -m tests.bot.store.frozen_writer URL`. It claims the room of server 1, says `writing` in the middle of a
transaction, and stays there until it is continued. Then it says what came of the transaction and of another one.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from pydantic import SecretStr

from bot.clock import SystemClock
from bot.store.claims import claim_room, fenced
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import SessionId
from tests.compaction.turn_store_contract import turn

SERVER = 1
# How long the database waits for its next statement: longer than a busy machine takes for one.
STEP_S = 2.0


def emit(*words: object) -> None:
    """Print one line and flush it."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def main(url: str) -> None:
    """Claim, freeze in a transaction, and write again."""
    async with open_database(SecretStr(url)) as database:
        async with database.writing() as connection:
            mine = fenced(database, await claim_room(connection, SERVER))
        store = SqlTurnStore(mine, SystemClock())
        await store.append_turn(SessionId("one"), turn(0))
        try:
            async with mine.writing(step_s=STEP_S) as connection:
                emit("writing")
                signal.raise_signal(signal.SIGSTOP)
                await connection.exec_driver_sql("SELECT 1")
        except StoreError:
            emit("ended")
        try:
            await store.append_turn(SessionId("one"), turn(1))
        except StaleOwnerError:
            emit("stale")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""One process of the benchmark: stores turns for a server of its own.

Run as `python -m benchmarks.store.writer URL SERVER SECONDS`. Says `ready`, waits for a line, stores turns for so many
seconds, and says how many, and how long each took, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from pydantic import SecretStr

from bot.clock import SystemClock
from bot.store.claims import claim_room, fenced
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart


async def main(url: str, server: int, seconds: float) -> None:
    """Claim the room of the server, and store its turns."""
    async with open_database(SecretStr(url)) as database:
        async with database.writing() as connection:
            claim = await claim_room(connection, server)
        store = SqlTurnStore(fenced(database, claim), SystemClock())
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        took_s: list[float] = []
        until = time.monotonic() + seconds
        while (begun := time.monotonic()) < until:
            seq = Seq(len(took_s))
            said = TurnPart("1", "Ada", f"Parcel {seq} with the lantern was measured near the market by Ada.")
            await store.append_turn(
                SessionId(f"bench-{server}"), Turn(seq, TurnKind.SPEECH, float(seq), seq + 1.0, (said,))
            )
            took_s.append(time.monotonic() - begun)
        sys.stdout.write(json.dumps(took_s) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))

"""What a session does in its voice channel besides the conversation: it joins, bears the mark that it listens, keeps up
with who may do what, and notices that the connection is lost.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from bot.background_task import background_task
from bot.errors import first_cause
from bot.room.endings import EXPELLED, HANDED_OVER
from compaction.errors import StaleOwnerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from bot.channel.port import Link, Place
    from bot.clock import Clock
    from bot.room.endings import RoomEnding
    from bot.room.other_processes import ClaimWatch

# How often Discord is asked what newcomers and what all people present may do.
CHECK_NEWCOMERS_S: Final = 2.0
REFRESH_RIGHTS_S: Final = 30.0


async def joined(
    stack: AsyncExitStack, connection: AbstractAsyncContextManager[Link], ending: RoomEnding
) -> Link | None:
    """Return the voice connection, opened on `stack`; None if the room was asked to end before it was there."""

    async def break_off() -> None:
        await ending.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as limit, background_task(break_off(), name="join-watch"):
            return await stack.enter_async_context(connection)
    except TimeoutError:
        if not limit.expired():
            raise
        return None


@asynccontextmanager
async def shown_as_listening(place: Place, ending: RoomEnding) -> AsyncIterator[None]:
    """Remove the mark that the bot listens when the block ends, unless another process listens there. The announcer
    sets it.
    """
    is_elsewhere = False
    try:
        yield
        is_elsewhere = await ending.wait() == HANDED_OVER
    except Exception as error:
        is_elsewhere = isinstance(first_cause(error), StaleOwnerError)
        raise
    finally:
        if not is_elsewhere:
            await place.show_listening(on=False)


async def watch_link(link: Link, claim_watch: ClaimWatch, ending: RoomEnding) -> None:
    """Wait until the connection ends. End the room if somebody removed the bot, else raise `LinkError`, or
    `StaleOwnerError` if another process has taken the room over: then Discord has ended this connection for that.
    """
    reason = await link.lost()
    await claim_watch.check()
    if not link.removed:
        raise reason
    ending.ask(EXPELLED)


async def refresh_rights(place: Place, clock: Clock) -> None:
    """Keep what the people present may do up to date: of newcomers soon, of everybody at intervals. Never returns."""
    asked_at = float("-inf")
    while True:
        due = clock.monotonic() - asked_at >= REFRESH_RIGHTS_S
        if due:
            asked_at = clock.monotonic()
        await place.refresh_rights(newcomers_only=not due)
        await clock.sleep(CHECK_NEWCOMERS_S)


async def cancel_all(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)

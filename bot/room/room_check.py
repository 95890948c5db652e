"""Looks at an open room every few seconds: measures it, stores what waits, tells of troubles, ends it at a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.health import HealthFault, ToldFaults, without_repeats
from bot.room.leaving import RoomEnding, SessionLimits
from bot.texts.text import joined
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.channel.port import VoiceConnection
    from bot.room.assemble import RoomParts

log = structlog.get_logger()

CHECK_ROOM_S: Final = 5.0


def connection_state(connection: VoiceConnection, now: float) -> events.ConnectionChanged:
    """Return the state of a connection, with its packet counters. `now`: monotonic seconds."""
    state = "connected" if connection.connected else "disconnected"
    return events.ConnectionChanged(state, connection.counters().as_dict(), now, connection.round_trip_s)


async def check_room(parts: RoomParts, connection: VoiceConnection, ending: RoomEnding) -> None:
    """Check an open room at intervals. Returns when the session has reached a limit, and the room is asked to end."""
    session, services = parts.session, parts.session.services
    channel, clock = session.channel, services.clock
    began_at, shown, told = clock.monotonic(), list[HealthFault](), ToldFaults()
    limits = SessionLimits(started_at=session.opened.session.started_at, leave_when_empty_s=services.leave_when_empty_s)
    while True:
        await clock.sleep(CHECK_ROOM_S)
        measure_room(parts, connection)
        await parts.membership.record_due()
        await _store_waiting(parts)
        now, faults = clock.monotonic(), parts.found_faults(connection)
        if (faults := without_repeats([*services.health.process_faults(), *faults])) != shown:
            shown = faults
            services.observe(events.FaultsFound(tuple(faults), now))
        # /status alone tells what was wrong before.
        news = [fault for fault in faults if fault.since is None or fault.since >= began_at]
        for sentence in told.news(news, now):
            await channel.write(sentence)
        if session.upkeep is not None:
            # It sees whether another process has changed the memory.
            session.upkeep.wake()
        reached = limits.check(
            services.servers.of(channel.guild_id),
            accompanied=any(not person.is_bot for person in channel.members()),
            epoch=clock.now(),
            now=clock.monotonic(),
        )
        if reached is not None:
            if reached.sentence is not None:
                await channel.write(reached.sentence)
            ending.ask(reached.reason)
            return


def measure_room(parts: RoomParts, connection: VoiceConnection) -> None:
    """Tell observers the state of the connection, how much waits in the room's queues, and how the bot takes part."""
    services = parts.session.services
    now = services.clock.monotonic()
    services.observe(connection_state(connection, now))
    waiting = (queue for part in (*parts.working, *parts.posting) for queue in part.queues)
    services.observe(events.QueuesMeasured((connection.queue, *waiting), now))
    told = (parts.conversation.talk_sentence(), parts.conversation.parts.participation.status())
    services.observe(events.StatusTold(joined(told, "\n")))


async def _store_waiting(parts: RoomParts) -> None:
    """Store what the database has refused before, if it takes it now."""
    timeline, faults = parts.session.timeline, parts.faults
    waiting = timeline.store_queue.waiting
    try:
        await timeline.store_queue.flush()
    except StoreError as error:
        # The log has the first refusal.
        faults.unstored = error
        return
    if faults.unstored is not None:
        log.info("turns_stored_again", count=waiting)
    faults.unstored = None

"""One trial: people speak, something breaks, and the store and the people's own ears tell what became of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import psycopg

from rehearsal.fault_plan import Faults, FaultStep
from tests.cluster_faults.answers import bot_heard
from tests.cluster_faults.evidence import (
    EDGE_S,
    HeardSpan,
    KeptTurn,
    TakeCheck,
    begun_and_ended,
    changed,
    check_takes,
    connected_at,
    gaps_in_numbers,
    handed_over_at,
    heard_again_s,
    heard_spans,
    heard_without_script,
    hears_after_s,
    read_turns,
)
from tests.cluster_faults.faults import Cluster, ClusterFault, Pace
from tests.cluster_faults.rooms import WATCHED, RoomUnderTest
from tests.cluster_faults.takes import Take

# People go on speaking until all rooms hear again, or for so long.
HEARS_WITHIN_S = 60.0
# A sentence ends in a pause, is recognised, and is stored: what was said in this time before a kill may not be.
UNSTORED_S = 4.0
# The store has everything once nothing has come for this long.
STILL_S, STILL_WITHIN_S = 6.0, 60.0
# A room has heard the end of what was said last.
LAST_TURN_S = 3.0


@dataclass(frozen=True, slots=True)
class RoomOutcome:
    """What a fault did to one room that it concerned.

    `heard_again_s`: after the fault, when the first speech was sent that is stored; None: none. `connected_s`: after
    the fault, when the bot's voice connection began; None: it did not. Between the two nobody may have spoken;
    `hears_after_s` is when it heard again, after the fault, or after its former voice connection ended in order.
    `missing_s`: voice of the trial that is not stored. `connections`: how often the bot's voice connection began or was
    resumed from before the fault until all was well; two processes that take it from each other in turns make many.
    `after_mend`: those of them that came when what broke had been mended. `moved_s`: of a room that was handed over,
    when its former voice connection ended, after the fault; None: the fault ended it.
    """

    room: int
    heard_again_s: float | None
    hears_after_s: float | None
    connected_s: float | None
    missing_s: float
    connections: int
    after_mend: int
    moved_s: float | None = None


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What was seen of one fault.

    `connections_elsewhere`: voice connections of the bot in rooms that the fault does not concern. `absent`: rooms into
    which the bot did not come back. `sentences`: that were judged; `unjudged`: that this machine did not speak in time.
    `changed`: turns that were stored before and are gone or other. `numbers`: of turns, missing or twice. `lost`:
    sentences that are not stored as a whole, although their room heard; `cut`: those that the fault fell into. `twice`:
    sentences of which a part is stored more than once. `questions`, `answers`: asked during the fault and afterwards,
    and how many answers each of the two people in the room heard to each of them. `unasked`, `at_once`: what people
    heard of the bot besides, in any room and at any time (`BotHeard`). `silent_rooms`: in which `/status` did not
    say that the recogniser is away.
    """

    rooms: tuple[RoomOutcome, ...]
    connections_elsewhere: int
    absent: tuple[int, ...]
    sentences: int
    unjudged: int
    changed: int
    numbers: int
    lost: tuple[str, ...]
    cut: tuple[str, ...]
    twice: tuple[str, ...]
    questions: int
    answers: tuple[int, ...]
    unasked: int
    at_once: int
    silent_rooms: int


@dataclass(frozen=True, slots=True)
class Moments:
    """When something broke, and when it had been mended, in monotonic seconds."""

    fault_at: float
    mended_at: float


async def try_fault(
    cluster: Cluster,
    fault: ClusterFault,
    url: str,
    pace: Pace,
    rooms_without_bot: Callable[[Cluster], Awaitable[tuple[int, ...]]],
) -> TrialOutcome:
    """Break something while people speak, wait until all is well, and return what was seen. `rooms_without_bot`: waits
    for that.
    """
    cluster.told = []
    for room in cluster.rooms:
        room.begin_trial()
    takes = cluster.rooms[0].takes
    concerned = fault.rooms
    before = await asyncio.to_thread(read_turns, url)
    first = len(takes.all)
    moments = await _speak_through(cluster, fault, pace)
    fault_at = moments.fault_at
    await _all_hear(concerned, takes.all[first:], fault_at, url)
    await _fall_silent(cluster.rooms)
    await asyncio.gather(*(_ask(room) for room in concerned[:WATCHED]))
    turns = await _still(url)
    absent = await rooms_without_bot(cluster)
    said = [take for take in takes.all[first:] if not take.question]
    guilds = {room.number: room.guild_id for room in cluster.rooms}
    checks = [heard_without_script(each, guilds[each.take.room], turns) for each in check_takes(said, turns)]
    short = [check for check in checks if check.missing_s > EDGE_S]
    outcomes = tuple(_of_room(room, said, checks, turns, moments, is_orderly=fault.is_orderly) for room in concerned)
    of_room = {outcome.room: outcome for outcome in outcomes}

    def heard_whole(check: TakeCheck) -> bool:
        return room_heard(check, fault_at, of_room.get(check.take.room))

    heard = [bot_heard(spurts, room.asked_at) for room in cluster.rooms for spurts in room.bot_heard()]
    return TrialOutcome(
        rooms=outcomes,
        connections_elsewhere=sum(len(connected_at(room.voices)) for room in cluster.rooms if room not in concerned),
        absent=absent,
        sentences=len(checks),
        unjudged=len(said) - len(checks),
        changed=changed(before, turns),
        numbers=gaps_in_numbers(turns),
        lost=tuple(_describe(check, fault_at) for check in short if heard_whole(check)),
        cut=tuple(_describe(check, fault_at) for check in short if not heard_whole(check)),
        twice=tuple(_describe(check, fault_at) for check in checks if check.twice_s > EDGE_S),
        questions=sum(len(room.asked_at) for room in cluster.rooms),
        answers=tuple(count for each in heard for count in each.answers),
        unasked=sum(each.unasked for each in heard),
        at_once=sum(each.at_once for each in heard),
        silent_rooms=cluster.told.count(False),
    )


async def _speak_through(cluster: Cluster, fault: ClusterFault, pace: Pace) -> Moments:
    """Let people speak while something breaks and is mended, and for a while afterwards."""
    for room in fault.rooms[:WATCHED]:
        room.watched.set()
    for room in cluster.rooms:
        room.quiet.clear()
    begins, ends = FaultStep(pace.lead_s, fault), FaultStep(fault.lasts_s, fault, mends=True)
    faults: Faults[ClusterFault] = Faults(lambda each: each.broken)
    await asyncio.sleep(begins.after_s)
    fault_at = time.monotonic()
    await faults.carry_out(begins)
    await asyncio.sleep(ends.after_s)
    await faults.carry_out(ends)
    mended_at = time.monotonic()
    asked = [room for room in fault.rooms if room.asked_at]
    await asyncio.gather(*(room.answered() for room in asked))
    for room in asked:
        room.quiet.clear()
    await asyncio.sleep(pace.follow_s)
    return Moments(fault_at, mended_at)


async def _fall_silent(rooms: Sequence[RoomUnderTest]) -> None:
    """Let nobody speak any more, and return when the rooms have heard the end of what was said last."""
    for room in rooms:
        room.watched.clear()
        room.quiet.set()
    for room in rooms:
        await room.silent()
    await asyncio.sleep(LAST_TURN_S)


async def _ask(room: RoomUnderTest) -> None:
    await room.ask()
    await room.answered()


def room_heard(check: TakeCheck, fault_at: float, outcome: RoomOutcome | None) -> bool:
    """Return whether a room heard all the time in which a sentence was said. `outcome`: None if the fault does not
    concern the room.
    """
    if outcome is None:
        return True
    begun_at, ended_at = check.take.spoken
    heard_s = outcome.heard_again_s
    if outcome.moved_s is not None:
        # It heard until it was handed over. What was said just before is stored by who had it.
        hears_s = None if outcome.hears_after_s is None else outcome.moved_s + outcome.hears_after_s
        return ended_at < fault_at + outcome.moved_s or (hears_s is not None and begun_at > fault_at + hears_s)
    # What was said just before the fault may not have been a turn yet.
    return ended_at < fault_at - UNSTORED_S or (heard_s is not None and begun_at > fault_at + heard_s)


def _describe(check: TakeCheck, fault_at: float) -> str:
    begun_at, ended_at = check.take.spoken
    return (
        f"room {check.take.room}, take {check.take.number}, said from {begun_at - fault_at:.1f} to "
        f"{ended_at - fault_at:.1f} s: {check.missing_s:.1f} s missing, {check.twice_s:.1f} s twice, stored "
        f"{', '.join(f'{part.from_s:g} to {part.to_s:g}' for part in check.parts)} of "
        f"{check.take.sample.clip.voiced_end_s:.1f} s"
    )


def _of_room(
    room: RoomUnderTest,
    said: Sequence[Take],
    checks: Sequence[TakeCheck],
    turns: Sequence[KeptTurn],
    moments: Moments,
    *,
    is_orderly: bool,
) -> RoomOutcome:
    fault_at = moments.fault_at
    ours = [check for check in checks if check.take.room == room.number]
    begun_at = [at for at, begins in begun_and_ended(room.voices) if begins and at >= fault_at]
    connected_s = begun_at[0] - fault_at if begun_at else None
    # A room that is handed over hears until then.
    deaf_at = handed_over_at(begun_and_ended(room.voices), fault_at) if is_orderly else fault_at
    own = [take for take in said if take.room == room.number]
    spans = _spans(room, said, turns)
    connections = connected_at(room.voices)
    return RoomOutcome(
        room.number,
        heard_again_s(spans, fault_at),
        hears_after_s(own, spans, deaf_at, begun_at[0] - deaf_at if begun_at else None),
        connected_s,
        sum(check.missing_s for check in ours if check.missing_s > EDGE_S),
        len(connections),
        sum(at > moments.mended_at for at in connections),
        deaf_at - fault_at if is_orderly else None,
    )


def _spans(room: RoomUnderTest, takes: Sequence[Take], turns: Sequence[KeptTurn]) -> list[HeardSpan]:
    return heard_spans(takes, [turn for turn in turns if turn.guild_id == room.guild_id])


async def _all_hear(rooms: Sequence[RoomUnderTest], takes: Sequence[Take], fault_at: float, url: str) -> None:
    """Wait until all rooms have heard somebody since the fault; on a busy machine a process may have to be loaded."""
    until = time.monotonic() + HEARS_WITHIN_S
    while time.monotonic() < until:
        turns = await _read(url) or []
        if all(heard_again_s(_spans(room, takes, turns), fault_at) is not None for room in rooms):
            return
        await asyncio.sleep(1)


async def _still(url: str) -> list[KeptTurn]:
    """Return the turns of the store once no more come."""
    turns: list[KeptTurn] = []
    still_since = begun = time.monotonic()
    while time.monotonic() - begun < STILL_WITHIN_S:
        await asyncio.sleep(1)
        now = await _read(url)
        if now is None:
            continue
        if now != turns:
            turns, still_since = now, time.monotonic()
        elif time.monotonic() - still_since >= STILL_S:
            break
    return turns


async def _read(url: str) -> list[KeptTurn] | None:
    """Return the turns of the store; None if it does not answer, because it has only just come back."""
    try:
        return await asyncio.to_thread(read_turns, url)
    except psycopg.OperationalError:
        return None

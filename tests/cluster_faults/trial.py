"""One trial: people speak, something breaks, and the store and the people's own ears tell what became of it."""

from __future__ import annotations

import asyncio
import math
import time
from bisect import bisect
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from tests.cluster_faults.evidence import (
    EDGE_S,
    changed,
    check_takes,
    deaf_span,
    gaps_in_numbers,
    heard_spans,
    heard_without_script,
    read_turns,
)
from tests.cluster_faults.rooms import ANSWER_S, WATCHED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from rehearsal.people.received_speech import HeardTalkspurt
    from tests.cluster_faults.evidence import Span, StoredTurn, TakeCheck
    from tests.cluster_faults.faults import Cluster, Fault, Pace
    from tests.cluster_faults.rooms import RoomUnderTest
    from tests.cluster_faults.takes import Take

# People go on speaking until all rooms hear again, or for so long.
HEARS_WITHIN_S = 60.0
# A sentence ends in a pause, is recognised, and is stored: what was said in this time before a kill may not be.
UNSTORED_S = 4.0
# The store has everything once nothing has come for this long.
STILL_S, STILL_WITHIN_S = 6.0, 60.0
# A room has heard the end of what was said last.
LAST_TURN_S = 3.0
_EDGE_OF_ANSWER_S = 0.1


@dataclass(frozen=True, slots=True)
class RoomOutcome:
    """What a fault did to one room that it concerned.

    `watched`: somebody spoke in it all the time. `hears_after_s`: the longest time from the fault on of which nothing
    is stored, so also one in which nobody spoke; None: nothing ever was again.
    `missing_s`: voice of the trial that is not stored. `connections`: how often the bot's voice connection began or was
    resumed; two processes that take it from each other in turns make many.
    """

    room: int
    watched: bool
    hears_after_s: float | None
    missing_s: float
    connections: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen of one fault.

    `connections_elsewhere`: voice connections of the bot in rooms that the fault does not concern. `absent`: rooms into
    which the bot did not come back. `sentences`: that were judged; `unjudged`: that this machine did not speak in time.
    `changed`: turns that were stored before and are gone or other. `numbers`: of turns, missing or twice. `lost`:
    sentences that are not stored as a whole, although their room heard; `cut`: those that the fault fell into. `twice`:
    sentences of which a part is stored more than once. `questions`, `answers`: asked during the fault and afterwards,
    and how many answers each of the two people in the room heard to each of them. `unasked`: what people heard of the
    bot before the first question. `silent_rooms`: in which `/status` did not say that the recogniser is away.
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
    silent_rooms: int


async def try_fault(
    cluster: Cluster,
    fault: Fault,
    url: str,
    pace: Pace,
    rooms_without_bot: Callable[[Cluster], Awaitable[tuple[int, ...]]],
) -> Outcome:
    """Break something while people speak, wait until all is well, and return what was seen. `rooms_without_bot`: waits
    for that.
    """
    cluster.told = []
    for room in cluster.rooms:
        room.begin_trial()
    takes = cluster.rooms[0].takes
    concerned = await anext(fault)
    before = await asyncio.to_thread(read_turns, url)
    first = len(takes.all)
    fault_at = await _speak_through(cluster, fault, concerned, pace)
    await _all_hear(concerned, takes.all[first:], fault_at, url)
    await _fall_silent(cluster.rooms)
    for room in concerned[:WATCHED]:
        await room.ask()
    await asyncio.gather(*(room.answered() for room in concerned[:WATCHED]))
    turns = await _still(url)
    absent = await rooms_without_bot(cluster)

    said = [take for take in takes.all[first:] if not take.question]
    guilds = {room.number: room.guild_id for room in cluster.rooms}
    checks = [heard_without_script(each, guilds[each.take.room], turns) for each in check_takes(said, turns)]
    deaf = {room.number: deaf_span(_spans(room, said, turns), fault_at) for room in concerned}
    short = [check for check in checks if check.missing_s > EDGE_S]
    lost = [check for check in short if check.take.room not in deaf or _heard_all(check, deaf[check.take.room])]
    heard = [answers_in(spurts, room.asked_at) for room in cluster.rooms for spurts in room.bot_heard()]
    return Outcome(
        rooms=tuple(
            _of_room(room, checks, deaf[room.number], watched=number < WATCHED) for number, room in enumerate(concerned)
        ),
        connections_elsewhere=sum(room.connections for room in cluster.rooms if room not in concerned),
        absent=absent,
        sentences=len(checks),
        unjudged=len(said) - len(checks),
        changed=changed(before, turns),
        numbers=gaps_in_numbers(turns),
        lost=tuple(_told(check, fault_at) for check in lost),
        cut=tuple(_told(check, fault_at) for check in short if check not in lost),
        twice=tuple(_told(check, fault_at) for check in checks if check.twice_s > EDGE_S),
        questions=sum(len(room.asked_at) for room in cluster.rooms),
        answers=tuple(count for _, *answers in heard for count in answers),
        unasked=sum(unasked for unasked, *_ in heard),
        silent_rooms=cluster.told.count(False),
    )


async def _speak_through(cluster: Cluster, fault: Fault, concerned: Sequence[RoomUnderTest], pace: Pace) -> float:
    """Let people speak while something breaks and is mended, and for a while afterwards. Returns when it broke."""
    for room in concerned[:WATCHED]:
        room.watched.set()
    for room in cluster.rooms:
        room.quiet.clear()
    await asyncio.sleep(pace.lead_s)
    fault_at = time.monotonic()
    await anext(fault)
    await anext(fault, None)
    asked = [room for room in concerned if room.asked_at]
    await asyncio.gather(*(room.answered() for room in asked))
    for room in asked:
        room.quiet.clear()
    await asyncio.sleep(pace.follow_s)
    return fault_at


async def _fall_silent(rooms: Sequence[RoomUnderTest]) -> None:
    """Let nobody speak any more, and return when the rooms have heard the end of what was said last."""
    for room in rooms:
        room.watched.clear()
        room.quiet.set()
    for room in rooms:
        await room.silent()
    await asyncio.sleep(LAST_TURN_S)


def _heard_all(check: TakeCheck, deaf: Span | None) -> bool:
    """Return whether a room heard all the time in which a sentence was said. What was said just before it became deaf
    may not have been a turn yet.
    """
    begun_at, ended_at = check.take.spoken
    return deaf is not None and (ended_at < deaf.from_at - UNSTORED_S or begun_at > deaf.to_at)


def answers_in(spurts: Iterable[HeardTalkspurt], asked_at: Sequence[float]) -> list[int]:
    """Return how many answers somebody heard before the first question and after each of them, who asked at these
    moments, in order. All are monotonic seconds.

    Counted is the sound of each voice session and not time: where the machine is too busy to listen, one answer comes
    in pieces. One that was cut counts as one.
    """
    heard_s = [defaultdict[int, float](float) for _ in range(len(asked_at) + 1)]
    for spurt in spurts:
        heard_s[bisect(asked_at, spurt.began_at)][spurt.ssrc] += spurt.sound_s
    return [
        sum(max(1, math.ceil((sound_s - _EDGE_OF_ANSWER_S) / ANSWER_S)) for sound_s in by_session.values())
        for by_session in heard_s
    ]


def _told(check: TakeCheck, fault_at: float) -> str:
    begun_at, ended_at = check.take.spoken
    return (
        f"room {check.take.room}, take {check.take.number}, said from {begun_at - fault_at:.1f} to "
        f"{ended_at - fault_at:.1f} s: {check.missing_s:.1f} s missing, {check.twice_s:.1f} s twice, stored "
        f"{', '.join(f'{part.from_s:g} to {part.to_s:g}' for part in check.parts)} of "
        f"{check.take.sample.clip.voiced_end_s:.1f} s"
    )


def _of_room(room: RoomUnderTest, checks: Sequence[TakeCheck], deaf: Span | None, *, watched: bool) -> RoomOutcome:
    missing = [check.missing_s for check in checks if check.take.room == room.number and check.missing_s > EDGE_S]
    return RoomOutcome(room.number, watched, None if deaf is None else deaf.seconds, sum(missing), room.connections)


def _spans(room: RoomUnderTest, takes: Sequence[Take], turns: Sequence[StoredTurn]) -> list[Span]:
    return heard_spans(takes, [turn for turn in turns if turn.guild_id == room.guild_id])


async def _all_hear(rooms: Sequence[RoomUnderTest], takes: Sequence[Take], fault_at: float, url: str) -> None:
    """Wait until all rooms have heard somebody since the fault; on a busy machine a process may have to be loaded."""
    until = time.monotonic() + HEARS_WITHIN_S
    while time.monotonic() < until:
        turns = await _read(url) or []
        if all(deaf_span(_spans(room, takes, turns), fault_at) is not None for room in rooms):
            return
        await asyncio.sleep(1)


async def _still(url: str) -> list[StoredTurn]:
    """Return the turns of the store once no more come."""
    turns: list[StoredTurn] = []
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


async def _read(url: str) -> list[StoredTurn] | None:
    """Return the turns of the store; None if it does not answer, because it has only just come back."""
    try:
        return await asyncio.to_thread(read_turns, url)
    except psycopg.OperationalError:
        return None

"""What the store has, compared with what was said: when speech was heard again, and what is lost or there twice."""

from __future__ import annotations

import itertools
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import psycopg

from rehearsal.discord.voice.gateway import VoiceSessionChange
from tests.cluster_faults.takes import HeardPart, Take, has_other_words, parts_in

# Marks have tenths of seconds, the edges of speech are cut a little differently each time, and a pause within a
# recording may be left out. Less than this is no loss and nothing heard twice.
EDGE_S = 0.6
MARK_S = 0.1
# The store has times of the day.
_SINCE = time.time() - time.monotonic()
# A speaker's own connection takes part in a change of keys, which may cost a few packets.
SENT_SHARE = 0.97
# A machine that is too busy to speak evenly sends packets that come too late for everybody.
LATE_S = 0.15


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn of speech in the store. `spoken`: from when to when, in monotonic seconds of this process."""

    guild_id: int
    session: str
    seq: int
    text: str
    spoken: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class HeardSpan:
    """A span of time, in monotonic seconds, of which the words are in the store."""

    from_at: float
    to_at: float


def read_turns(url: str) -> list[KeptTurn]:
    """Return all turns of every session, in their order."""
    with psycopg.connect(url, connect_timeout=10) as database:
        rows = database.execute(
            "SELECT guild_id, session_id, seq, kind, parts, turns.started_at, turns.ended_at "
            "FROM turns JOIN sessions ON sessions.id = session_id "
            "ORDER BY guild_id, session_id, seq"
        ).fetchall()
    return [
        KeptTurn(
            int(guild),
            str(session),
            int(seq),
            _words(parts) if kind == "speech" else "",
            (began - _SINCE, ended - _SINCE),
        )
        for guild, session, seq, kind, parts, began, ended in rows
    ]


def _words(parts: str) -> str:
    return " ".join(str(part[2]) for part in json.loads(parts))


def gaps_in_numbers(turns: Iterable[KeptTurn]) -> int:
    """Return how many numbers of turns are missing or there twice, in all sessions."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for turn in turns:
        numbers[turn.session].append(turn.seq)
    return sum(len(set(range(max(of) + 1)) ^ set(of)) + len(of) - len(set(of)) for of in numbers.values())


def changed(before: Sequence[KeptTurn], after: Sequence[KeptTurn]) -> int:
    """Return how many turns that were stored are not there any more, or have other words."""
    now = {(turn.session, turn.seq): turn.text for turn in after}
    return sum(now.get((turn.session, turn.seq)) != turn.text for turn in before)


def heard_spans(room_takes: Sequence[Take], turns: Iterable[KeptTurn]) -> list[HeardSpan]:
    """Return when the speech of a room was sent of which the words are stored, in order. `turns`: of that room.

    What a busy machine sent late was sent so much later, at the most.
    """
    by_number = {take.number: take for take in room_takes}
    spans = [
        HeardSpan(_sent_at(by_number[part.take], part.from_s), _sent_at(by_number[part.take], part.to_s))
        for turn in turns
        for part in parts_in(turn.text)
        if part.take in by_number
    ]
    return sorted(spans, key=lambda span: span.from_at)


def _sent_at(take: Take, seconds: float) -> float:
    return take.at(seconds) + _late_s(take)


def _late_s(take: Take) -> float:
    late_s = 0.0 if take.played is None else take.played.worst_late_s
    return late_s if late_s > LATE_S else 0.0


def heard_again_s(spans: Iterable[HeardSpan], fault_at: float) -> float | None:
    """Return how long after a fault the first speech was sent that was heard; None: none was.

    0: somebody was heard across the fault.
    """
    after = [max(span.from_at, fault_at) - fault_at for span in spans if span.to_at > fault_at + 0.1]
    return min(after, default=None)


def hears_after_s(
    takes: Iterable[Take], spans: Iterable[HeardSpan], fault_at: float, connected_s: float | None
) -> float | None:
    """Return how long after a fault the room hears again; None: it never did.

    That is when its voice connection began (`connected_s`; None: it has lasted), or later, as long as speech was sent
    that is not stored. When the first speech was heard (`heard_again_s`) says less where nobody had begun to speak. A
    connection that began after that has replaced one that heard. What is stored from its beginning on is not missed,
    also if it was sent late.
    """
    again_s = heard_again_s(spans, fault_at)
    if again_s is None:
        return None
    unheard = [
        min(take.spoken[1] - fault_at, again_s)
        for take in takes
        if take.played is not None
        and take.spoken[0] + _late_s(take) + MARK_S < fault_at + again_s
        and take.spoken[1] > fault_at
    ]
    waited_s = 0.0 if connected_s is None or connected_s > again_s else connected_s
    return max([waited_s, *unheard])


@dataclass(frozen=True, slots=True)
class VoiceChange:
    """A voice connection of the bot began, was resumed or ended. `at`: monotonic seconds."""

    at: float
    change: VoiceSessionChange


def connected_at(changes: Iterable[VoiceChange]) -> list[float]:
    """Return when the bot connected: anew, or by resuming a connection, which another process of it may have had."""
    return [each.at for each in changes if each.change is not VoiceSessionChange.ENDED]


def begun_and_ended(changes: Iterable[VoiceChange]) -> list[tuple[float, bool]]:
    """Return when the bot's voice connections began (True) or ended. One that is resumed does neither."""
    return [
        (each.at, each.change is VoiceSessionChange.BEGUN)
        for each in changes
        if each.change is not VoiceSessionChange.RESUMED
    ]


def handed_over_at(changes: Iterable[tuple[float, bool]], fault_at: float) -> float:
    """Return when the voice connection ended that the first one after the fault replaces; `fault_at` if it had by then.

    `changes`: when connections began (True) or ended, in order.
    """
    after = [(at, begins) for at, begins in changes if at >= fault_at]
    until_next = itertools.takewhile(lambda change: not change[1], after)
    return max((at for at, _ in until_next), default=fault_at)


@dataclass(frozen=True, slots=True)
class TakeCheck:
    """The stored `parts` of a take. `missing_s`: voice of it that is not there; `twice_s`: that is there twice."""

    take: Take
    parts: tuple[HeardPart, ...]
    missing_s: float
    twice_s: float


def check_take(take: Take, parts: Iterable[HeardPart]) -> TakeCheck:
    """Compare a take with the stored parts of it."""
    begin_s, end_s = take.sample.voiced
    missing = twice = 0.0
    reached = begin_s
    found = tuple(sorted(parts, key=lambda each: each.from_s))
    for part in found:
        missing += max(0.0, part.from_s - reached)
        twice += max(0.0, min(reached, part.to_s) - part.from_s)
        reached = max(reached, part.to_s)
    return TakeCheck(take, found, missing + max(0.0, end_s - reached), twice)


def check_takes(takes: Iterable[Take], turns: Iterable[KeptTurn]) -> list[TakeCheck]:
    """Compare each take that was sent whole with the store."""
    parts: dict[int, list[HeardPart]] = defaultdict(list)
    for turn in turns:
        for part in parts_in(turn.text):
            parts[part.take].append(part)
    return [check_take(take, parts[take.number]) for take in takes if was_sent(take)]


def heard_without_script(check: TakeCheck, guild_id: int, turns: Iterable[KeptTurn]) -> TakeCheck:
    """Return the check of a take that a bot's own model may have heard. What that writes has no marks, so the
    time of its turn tells what of the take is in it. The script may have heard another part of the same turn.
    """
    begun_at, ended_at = check.take.spoken
    own = [turn for turn in turns if turn.guild_id == guild_id and has_other_words(turn.text)]
    heard_s = sum(max(0.0, min(ended_at, turn.spoken[1]) - max(begun_at, turn.spoken[0])) for turn in own)
    return replace(check, missing_s=max(0.0, check.missing_s - heard_s))


def was_sent(take: Take) -> bool:
    """Return whether the speaker has sent (nearly) all of a take, and in time."""
    played = take.played
    if played is None or played.worst_late_s > LATE_S:
        return False
    return played.sent_packets >= SENT_SHARE * (played.sent_packets + played.unsent_packets)

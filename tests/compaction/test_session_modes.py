"""The rolling mode, the mode used when search is missing, and mode changes during a session."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from compaction import session as session_module
from compaction.budget.trim import TrimOptions
from compaction.context.build import build_payload
from compaction.context.turn_text import turn_part
from compaction.errors import StoreError
from compaction.model import Mode
from compaction.payload import Coverage, PartKind, PayloadPart, coverage
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.roomtone.evenings.virtual_time import EPOCH_S
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault
from tests.fakes.virtual_time import virtually

LIMIT = 1_500


def rolling_room() -> Room:
    """Return a room in the rolling mode, with memory search."""
    return Room(mode=Mode.ROLLING, searchable=True)


def reply(room: Room, *, limit: int = LIMIT, options: TrimOptions | None = None) -> tuple[PayloadPart, ...]:
    """Build and record the payload for a reply within the limit."""
    context = room.timeline.context(max_input_tokens=limit)
    payload = build_payload(context, system=["You take part."], options=options, searchable=True)
    assert sum(each.tokens for each in payload) <= limit
    room.timeline.record_sent(context, payload)
    return payload


def covered(room: Room, payload: tuple[PayloadPart, ...]) -> Coverage:
    """Return where each turn is covered. No turn may be missing."""
    found = coverage(payload, room.timeline.total_turns)
    assert found.missing == ()
    return found


def note_of(payload: tuple[PayloadPart, ...]) -> str:
    """Return the text of the only eviction note."""
    (note,) = [each.content for each in payload if each.kind is PartKind.EVICTION_NOTE]
    return note


# -- rolling -------------------------------------------------------------------------------------------------


@pytest.mark.covers("2.3")
@virtually
async def test_its_note_is_one_and_cumulative() -> None:
    """There is only one eviction note. It has the count, tokens and time range of all turns ever evicted, and the hint
    to search.
    """
    async with rolling_room() as room:
        await room.talk(60)
        assert [each.kind for each in reply(room, limit=100_000)].count(PartKind.EVICTION_NOTE) == 0
        counts: list[int] = []
        for _ in range(3):
            await room.talk(60)
            payload = reply(room)
            told = re.search(
                r"(\d+) messages evicted \((\d+) tokens\), turns 0 to (\d+), said from (\S+) to (\S+)\.",
                note_of(payload),
            )
            assert told is not None
            assert int(told[3]) + 1 == int(told[1])
            assert int(told[2]) > 8 * int(told[1])
            assert told[4] < told[5]
            assert "memory_search" in note_of(payload)
            assert covered(room, payload).evicted == ((0, int(told[3])),)
            counts.append(int(told[2]))
        assert counts == sorted(set(counts))


@pytest.mark.covers("2.5")
@virtually
async def test_the_log_has_the_figures_of_an_eviction() -> None:
    """How many turns and tokens left and stayed, when they were said, and the sums of the session."""
    async with rolling_room() as room:
        for _ in range(2):
            await room.talk(120)
            reply(room)
        first, second = room.logged("context_rolled")
        window = room.timeline.window
        assert first["first_evicted_timestamp"] == EPOCH_S
        assert second["first_evicted_timestamp"] == EPOCH_S + 3.0 * first["evicted_until"]  # type: ignore[operator]
        assert second["last_evicted_timestamp"] == window[0].started_at - 3.0
        assert second["evicted_until"] == second["total_evicted_count"] == window[0].seq
        parts = [turn_part(turn, PartKind.TURN) for turn in window]
        assert second["kept_tokens"] == sum(part.tokens for part in parts)
        for of_one, of_all in (("evicted_count", "total_evicted_count"), ("evicted_tokens", "total_evicted_tokens")):
            assert second[of_all] == first[of_one] + second[of_one]  # type: ignore[operator]


@virtually
async def test_what_was_evicted_stays_evicted() -> None:
    """Evicted turns do not come back with a larger budget, so the beginning of the prompt stays the same."""
    async with rolling_room() as room:
        await room.talk(150)
        before = covered(room, reply(room))
        assert covered(room, reply(room, limit=100_000)) == before


@pytest.mark.covers("2.6")
@virtually
async def test_the_newest_ten_and_the_target_are_settings() -> None:
    """Settings decide how much of the limit is used after an eviction (here half), how many of the newest turns stay
    (here 25), and whether there is a note.
    """
    options = TrimOptions(target_utilization=0.5, min_keep_messages=25, eviction_note=False)
    async with rolling_room() as room:
        await room.talk(200)
        half = reply(room, options=options)
        assert 0.4 * LIMIT < sum(each.tokens for each in half) <= 0.5 * LIMIT
        assert all(each.kind is not PartKind.EVICTION_NOTE for each in half)
        assert len(reply(room, limit=700, options=options)) - 1 == 25


@virtually
async def test_a_restart_covers_all_again() -> None:
    """After a restart evicted turns are read back, and the note of the first reply covers them."""
    room = rolling_room()
    async with room:
        await room.talk(400)
        reply(room)
    async with room:
        assert room.timeline.total_turns == 400
        found = covered(room, reply(room))
        assert found.evicted[0][0] == 0
        assert len(room.timeline.turns) <= 220


@virtually
async def test_half_of_too_many_turns_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nobody asks the bot anything, the window is halved as soon as it is longer than any payload."""
    monkeypatch.setattr(session_module, "ROLLING_TURNS", 40)
    async with rolling_room() as room:
        await room.talk(40)
        assert len(room.timeline.window) == 40
        await room.talk(1)
        assert [turn.seq for turn in room.timeline.window] == list(range(21, 41))
        assert covered(room, reply(room, limit=100_000)).evicted == ((0, 20),)


@pytest.mark.covers("2.4")
@pytest.mark.parametrize("mode", [Mode.ROLLING, Mode.OFF])
@virtually
async def test_what_is_not_stored_stays_in_memory(mode: Mode) -> None:
    """Turns that the store has refused are not sent any more, and stay until it takes them."""
    store = InMemoryTurnStore()
    async with Room(store=store, mode=mode, searchable=True) as room:
        await room.talk(20)
        store.fault = lambda _: StoreFault.REFUSED
        for _ in range(220 + 80):
            with suppress(StoreError):
                await room.say()
        reply(room)
        assert room.timeline.turns[0].seq == 20
        store.fault = None
        await room.say()
        reply(room)
        await room.say()
        assert len(room.timeline.turns) == 220


@pytest.mark.covers("2.7")
@virtually
async def test_without_search_it_is_summary_with_a_warning() -> None:
    """Without memory search the rolling mode is replaced by the summary mode with a warning, because evicted turns
    could not be found again.
    """
    async with Room(mode=Mode.ROLLING, summariser=ExtractiveSummariser()) as room:
        assert room.timeline.mode is Mode.SUMMARY
        assert len(room.logged("rolling_needs_memory_search")) == 1
        await room.talk(61)
        reply(room, limit=100_000)
        await room.timeline.settle()
        assert room.timeline.cursor == 10
        assert await room.timeline.set_mode(Mode.ROLLING) is Mode.SUMMARY


# -- changing the mode ---------------------------------------------------------------------------------------


@virtually
async def test_from_summary_to_rolling_the_summary_stays() -> None:
    """After a change from summary to rolling the summary stays, because its turns are no longer in the window. Turns
    after the summary are evicted.
    """
    async with Room(searchable=True, summariser=ExtractiveSummariser()) as room:
        await room.talk(75)
        reply(room)
        await room.timeline.settle()
        cursor = room.timeline.cursor
        assert cursor == 20
        assert await room.timeline.set_mode(Mode.ROLLING) is Mode.ROLLING
        await room.talk(200)
        found = covered(room, reply(room))
        assert found.summarised == ((0, cursor - 1),)
        assert found.evicted[0][0] == cursor
        assert room.timeline.cursor == cursor


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.ROLLING, Mode.OFF])
@virtually
async def test_back_to_summary_everything_is_folded(mode: Mode) -> None:
    """After a change back to summary, the turns that the other mode removed from memory are read from the store and
    folded batch by batch, without a gap.
    """
    async with Room(mode=mode, searchable=True, summariser=ExtractiveSummariser()) as room:
        await room.talk(600)
        reply(room)
        assert len(room.timeline.turns) < 600
        assert await room.timeline.set_mode(Mode.SUMMARY) is Mode.SUMMARY
        assert [turn.seq for turn in room.timeline.turns] == list(range(600))
        covered(room, reply(room))
        await room.timeline.settle()
        assert room.timeline.cursor == 600 - 50 - 10
        found = covered(room, reply(room, limit=100_000))
        assert found.summarised == ((0, room.timeline.cursor - 1),)
        assert found.evicted == ()
        assert len(room.timeline.turns) <= 220
        changes = room.logged("compaction_mode_changed")
        assert [(each["old_mode"], each["new_mode"]) for each in changes] == [(mode.value, "summary")]
        assert room.logged("voice_context_compaction_completed")[0]["compaction_mode"] == "summary"


@virtually
async def test_a_store_that_fails_leaves_the_mode_as_it_was() -> None:
    """If the store fails during a change of mode, the mode stays unchanged."""
    faults: list[StoreFault] = []
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    async with Room(store=store, mode=Mode.OFF) as room:
        await room.talk(300)
        faults.append(StoreFault.REFUSED)
        with pytest.raises(StoreError):
            await room.timeline.set_mode(Mode.SUMMARY)
        assert room.timeline.mode is Mode.OFF
        assert len(reply(room, limit=100_000)) - 1 == 50

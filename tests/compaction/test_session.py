"""The memory of a room's session: adding turns, building context, restarts, modes, and replies that never wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from compaction.context.build import build_payload
from compaction.errors import SessionEndedError, StoreError
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, coverage
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.roomtone.evenings.virtual_time import EPOCH_S
from tests.compaction.rooms import EVENING
from tests.compaction.rooms import MemoryRoom as Room
from tests.compaction.turn_store_contract import note
from tests.fakes.completion import Mood, MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault
from tests.fakes.virtual_time import virtually


@virtually
async def test_turns_said_at_once_are_numbered_in_the_order_of_the_calls() -> None:
    """Turns appended at the same time get consecutive numbers in the order of the calls, and each number is
    used once.
    """
    async with Room() as room:
        turns = await asyncio.gather(*(room.say(f"Turn number {number}.") for number in range(8)))
        assert [turn.seq for turn in turns] == list(range(8))
        assert (await room.store.load(EVENING)).window == tuple(turns)


@pytest.mark.parametrize(
    ("recorded", "number"),
    [
        ((), 3),
        (("What now?",), 3),
        (("Wait.",), 4),
        (("Wait.", "What now?"), 4),
        (("Wait.", "No.", "What now?", "Yes."), 5),
    ],
)
@virtually
async def test_a_turn_leaves_out_nobody_elses_turn(recorded: tuple[str, ...], number: int) -> None:
    """Before it is recorded, a turn has the next number, whoever has got the one before; and then that of its words.
    Everything else that was said stands in the window.
    """
    async with Room() as room:
        await room.talk(3)
        early = Turn(Seq(3), TurnKind.SPEECH, EPOCH_S, EPOCH_S, (TurnPart("id-Ada", "Ada", "What now?"),))
        for text in recorded:
            await room.timeline.append(
                TurnKind.SPEECH, (replace(early.parts[0], text=text),), started_at=EPOCH_S, ended_at=EPOCH_S
            )
        current = room.timeline.numbered(early)
        assert current == replace(early, seq=Seq(number))
        window = room.timeline.context(current=current, max_input_tokens=9_000).window
        assert [turn.text for turn in window[3:]] == [text for text in recorded if text != "What now?"]


@virtually
async def test_notes_whose_change_the_last_process_did_not_store_become_pending() -> None:
    """After a restart there are at most twelve live notes, in memory and in the store."""
    room = Room()
    for number in range(12 + 2):
        await room.store.add_note(EVENING, note(f"n{number}"))
    async with room:
        assert [each.id for each in room.timeline.state.pending_notes] == ["n0", "n1"]
        assert len(room.timeline.live_notes) == 12
    stored = await room.store.load(EVENING)
    assert [each.id for each in stored.state.pending_notes] == ["n0", "n1"]


@pytest.mark.covers("1.5", "4.7")
@virtually
async def test_restart_goes_on_where_the_store_says() -> None:
    """After a restart the cursor, summary, window, live notes and pending notes are the same as before."""
    room = Room(summariser=ExtractiveSummariser())
    async with room:
        await room.talk(75)
        for number in range(15):
            await room.see(f"n{number}")
        await room.fold()
        before = (room.timeline.state, room.timeline.window, room.timeline.summary, room.timeline.compactor.segments)
        live = room.timeline.context(max_input_tokens=9_000).live_notes
        assert room.timeline.cursor == 20
        assert room.timeline.state.summary == room.timeline.summary is not None
    async with room:
        after = (room.timeline.state, room.timeline.window, room.timeline.summary, room.timeline.compactor.segments)
        assert after == before
        assert room.timeline.context(max_input_tokens=9_000).live_notes == live
        turn = await room.say()
        assert turn.seq == 75
        assert room.sent().missing == ()


@virtually
async def test_leaving_stores_what_waited() -> None:
    """A turn whose write failed is stored when the session is left. If that fails too, the loss is logged."""
    faults: list[StoreFault] = []
    room = Room(store=InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None))
    async with room:
        faults.append(StoreFault.REFUSED)
        with pytest.raises(StoreError):
            await room.say("Kept.")
    assert (await room.store.load(EVENING)).total_turns == 1
    async with room:
        faults += [StoreFault.REFUSED, StoreFault.REFUSED]
        with pytest.raises(StoreError):
            await room.say("Lost with the disk.")
    (line,) = room.logged("turns_not_stored")
    assert line["count"] == 1


@pytest.mark.parametrize("turns", range(8))
@virtually
async def test_leaving_stores_what_waited_also_if_it_is_cancelled(turns: int) -> None:
    """The room is cut off while the run in flight ends, or during the last write. `turns`: of the event loop."""
    faults: list[StoreFault] = []
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    room = Room(store=store, model=MoodyModel(Mood.HANGS))
    await room.enter()
    await room.begin_fold()
    await asyncio.sleep(1.0)
    faults.append(StoreFault.REFUSED)
    with pytest.raises(StoreError):
        await room.say("Kept.")
    leaving = asyncio.create_task(room.leave(), name="leaving")
    for _ in range(turns + 1):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert (await store.load(EVENING)).total_turns == 62


@virtually
async def test_hole_in_the_store_is_told_and_survived() -> None:
    """A turn that is missing in the store becomes a tombstone and is logged. The other turns keep their numbers."""
    room = Room()
    async with room:
        await room.talk(5)
    room.store.lose(EVENING, Seq(2))
    async with room:
        assert room.timeline.total_turns == 5
        assert [turn.tombstone for turn in room.timeline.window] == [False, False, True, False, False]
        (line,) = room.logged("stored_turns_missing")
        assert (line["first_seq"], line["count"]) == (2, 1)
        assert (await room.say()).seq == 5


@virtually
async def test_ended_session_takes_nothing_and_is_not_opened_again() -> None:
    """An ended session accepts no turns and no notes and cannot be opened again."""
    room = Room()
    async with room:
        await room.talk(3)
        await room.timeline.end()
        with pytest.raises(SessionEndedError):
            await room.say()
        with pytest.raises(SessionEndedError):
            await room.see("n")
        with pytest.raises(SessionEndedError):
            await room.timeline.retire_live_notes()
        assert room.sent().verbatim == ((0, 2),)
    with pytest.raises(SessionEndedError, match="new one"):
        await room.enter()


@pytest.mark.covers("1.7")
@virtually
async def test_silent_bot_stays_bounded() -> None:
    """Even if no context is ever built, folding begins when more than 200 turns are unfolded, so memory
    stays bounded.
    """
    async with Room() as room:
        await room.talk(200)
        await asyncio.sleep(1.0)
        assert room.timeline.cursor == 0
        await room.say()
        await room.timeline.settle()
        assert room.timeline.cursor == 150
        await room.talk(400)
        await room.timeline.settle()
        assert len(room.timeline.turns) <= 220


@pytest.mark.covers("1.7", "1.9", "1.20")
@virtually
async def test_reply_path_never_waits_for_a_run() -> None:
    """A hundred replies, with turns between them, do not wait for a slow run and do not disturb it."""
    async with Room(model=MoodyModel(Mood.SLOW)) as room:
        await room.talk(61)
        began = asyncio.get_running_loop().time()
        for _ in range(100):
            turn = await room.say()
            context = room.timeline.context(current=turn, max_input_tokens=100_000)
            assert context.cursor == 0
            assert context.current == turn
            assert turn not in context.window
        assert asyncio.get_running_loop().time() == began
        assert len(room.model.calls) == 1
        assert context.summary is None
        await asyncio.sleep(40.5)
        assert room.timeline.cursor == 10
        summary = room.timeline.summary
        for _ in range(2):
            # The first begins the next run, and the second is built while it is in flight.
            assert room.timeline.context(max_input_tokens=100_000).summary == summary is not None
        assert len(room.model.calls) == 2


@virtually
async def test_off_sends_the_last_fifty_turns_and_nothing_older() -> None:
    """In mode `off` the payload has the last fifty turns only and no run starts, but memory stays bounded."""
    async with Room(mode=Mode.OFF) as room:
        await room.talk(500)
        turn = await room.say("And now?")
        context = room.timeline.context(current=turn, max_input_tokens=100_000)
        payload = build_payload(context, system=["You take part."])
        sent = coverage(payload, room.timeline.total_turns)
        assert sent.verbatim == ((451, 500),)
        assert (sent.summarised, sent.evicted, sent.missing) == ((), (), ((0, 450),))
        assert not [part for part in payload if part.kind is PartKind.SUMMARY]
        assert room.model.calls == []
        assert len(room.timeline.turns) <= 220 + 1
        await room.timeline.end()
        stored = await room.store.load(EVENING)
        assert stored.ended
        assert stored.total_turns == 501


@virtually
async def test_model_context_built_tells_what_was_sent() -> None:
    """The log line `model_context_built` has the ranges and tokens of the sent parts, but never their words."""
    async with Room(summariser=ExtractiveSummariser()) as room:
        await room.talk(61)
        await room.fold()
        turn = await room.say()
        context = room.timeline.context(current=turn, max_input_tokens=100_000)
        payload = build_payload(context, system=["You take part."])
        room.timeline.record_sent(context, payload)
        (line,) = room.logged("model_context_built")
        assert set(line) == {
            "seq_from",
            "seq_to",
            "answer_to",
            "cursor",
            "summary_revision",
            "tokens",
            "total_tokens",
            "max_input_tokens",
            "evicted",
            "note_ids",
            "participants",
            "recall",
            "session_id",
            "guild_id",
            "compaction_mode",
        }
        assert (line["seq_from"], line["seq_to"], line["summary_revision"], line["evicted"]) == (10, 61, 1, None)
        assert (line["answer_to"], line["cursor"]) == (61, 10)
        tokens = line["tokens"]
        assert isinstance(tokens, dict)
        assert set(tokens) == {"system", "summary", "turn", "current"}
        assert sum(tokens.values()) == sum(part.tokens for part in payload)


@virtually
async def test_unreadable_store_is_an_error_at_once() -> None:
    """Opening a session whose stored turns cannot be read is an error and does not give an empty session."""
    room = Room(store=InMemoryTurnStore(fault=lambda operation: StoreFault.REFUSED if operation == "load" else None))
    with pytest.raises(StoreError):
        await room.enter()

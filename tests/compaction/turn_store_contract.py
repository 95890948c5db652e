"""Contract tests for every `TurnStore`. The in-memory fake and the database adapter both run this class.

A test module inherits `TurnStoreContract` and provides a `store` fixture that yields a fresh, empty store. Behaviour
that only a real database can show (surviving SIGKILL, a full disk) is tested beside its adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from compaction.errors import StoreError
from compaction.model import (
    CompactionState,
    Fact,
    FactKind,
    Note,
    NoteId,
    NoteSource,
    Segment,
    SegmentId,
    Seq,
    SessionId,
    Turn,
    TurnKind,
    TurnPart,
)
from compaction.ports import Landing, TurnStore

EVENING = SessionId("evening")
MORNING = SessionId("morning")
T0 = 1_760_000_000.0


def turn(seq: int, text: str | None = None, *, speaker: str = "Ada") -> Turn:
    """Return a turn in which one person says one thing. A turn begins every three seconds."""
    return Turn(
        seq=Seq(seq),
        kind=TurnKind.SPEECH,
        started_at=T0 + seq * 3.0,
        ended_at=T0 + seq * 3.0 + 2.25,
        parts=(TurnPart(f"id-{speaker}", speaker, text if text is not None else f"This is turn {seq}."),),
    )


def bot_turn(seq: int, text: str) -> Turn:
    """Return a turn in which the bot says one thing."""
    return replace(turn(seq), kind=TurnKind.ASSISTANT, parts=(TurnPart("bot", "Roomtone", text),))


def note(name: str, *, at: float = T0) -> Note:
    """Return a note about something seen on Bob's screen."""
    return Note(
        id=NoteId(name),
        at=at,
        who="Bob",
        what=f"a map with the mark {name}",
        why="the score changed",
        source=NoteSource.MODEL,
        frame_hash="f00d",
    )


def segment(
    start: int,
    end: int,
    *,
    session_id: SessionId = EVENING,
    note_ids: Sequence[str] = (),
    closing: bool = False,
    name: str | None = None,
) -> Segment:
    """Return the segment of turns `start <= seq < end`, with a distinct value in every field."""
    return Segment(
        id=SegmentId(name or f"{session_id}:{start}-{end}{'-closing' if closing else ''}"),
        session_id=session_id,
        start=Seq(start),
        end=Seq(end),
        started_at=T0 + start * 3.0,
        ended_at=T0 + end * 3.0,
        gist=f"Ada counted from {start} to {end - 1}: “done”, 1½ times.",
        facts=(
            Fact(
                turns=(Seq(start), Seq(start + 1)),
                text="Ada leaves at nine.",
                kind=FactKind.DECISION,
                importance=3,
                closes=("old#0", "old#2"),
                speaker="Ada",
                at=T0 + start * 3.0,
                owner="Ada",
                until="Friday",
            ),
            Fact((Seq(start),), "On Bob's screen: a map.", FactKind.DOING, note_id=NoteId("n")),
        ),
        note_ids=tuple(NoteId(each) for each in note_ids),
        prompt_version="fold.v1",
        closing=closing,
        created_at=T0 + 500.5,
        original_tokens=420,
        compressed_tokens=42,
        paragraph=f"Ada counts to {end - 1}; “nobody” minds.",
    )


def landing(
    start: int, end: int, *, revision: int, session_id: SessionId = EVENING, note_ids: Sequence[str] = ()
) -> Landing:
    """Return the landing that folds `start..end`. It expects the cursor `start` and this revision."""
    return Landing(
        session_id=session_id,
        expected_cursor=Seq(start),
        expected_revision=revision,
        segment=segment(start, end, session_id=session_id, note_ids=note_ids),
        state=CompactionState(
            cursor=Seq(end), revision=revision + 1, summary=f"Ada counted to {end - 1}.", last_at=T0 + 600.25
        ),
    )


async def fill(store: TurnStore, count: int, *, session_id: SessionId = EVENING, start: int = 0) -> list[Turn]:
    """Store `count` turns in order and return them."""
    turns = [turn(seq) for seq in range(start, start + count)]
    for each in turns:
        await store.append_turn(session_id, each)
    return turns


class TurnStoreContract:
    """A subclass provides the `store` fixture."""

    # -- turns -----------------------------------------------------------------------------------------------

    async def test_unknown_session_is_empty(self, store: TurnStore) -> None:
        """Loading a session that nobody wrote to gives the state of a new session."""
        memory = await store.load(EVENING)
        assert memory.total_turns == 0
        assert memory.state == CompactionState()
        assert memory.window == ()
        assert memory.segments == ()
        assert memory.live_notes == ()
        assert memory.ended is False

    async def test_turns_come_back_whole_and_in_order(self, store: TurnStore) -> None:
        """Every field of a turn of every kind is stored, including several speakers and unusual characters, and turns
        come back in order.
        """
        turns = [
            turn(0, "Grüße, „Ada“ — 你好 🦄\nnew line"),
            Turn(
                Seq(1),
                TurnKind.SPEECH,
                T0 + 3.125,
                T0 + 9.0,
                (TurnPart("1", "Ada", "first"), TurnPart("2", "Bob", "second"), TurnPart("1", "Ada", "third")),
                called=True,
            ),
            Turn(Seq(2), TurnKind.MEMBERSHIP, T0 + 10.0, T0 + 10.0, (TurnPart("3", "Cy", "joined"),)),
            Turn(Seq(3), TurnKind.EFFECT, T0 + 11.0, T0 + 11.0, (TurnPart("3", "Cy", "airhorn"),)),
            replace(bot_turn(4, "Yes."), told_to=("1",), sources=("1", "2")),
            Turn(Seq(5), TurnKind.SPEECH, T0 + 14.0, T0 + 14.0, (), tombstone=True),
        ]
        for each in turns:
            await store.append_turn(EVENING, each)
        assert tuple(await store.turns(EVENING, Seq(0), Seq(100))) == tuple(turns)
        assert tuple(await store.turns(EVENING, Seq(1), Seq(3))) == tuple(turns[1:3])
        assert tuple(await store.turns(EVENING, Seq(3), Seq(3))) == ()
        memory = await store.load(EVENING)
        assert memory.total_turns == 6
        assert memory.window == tuple(turns)

    async def test_same_turn_twice_is_stored_once(self, store: TurnStore) -> None:
        """Storing the same turn again, as after a lost answer, changes nothing."""
        await store.append_turn(EVENING, turn(0))
        await store.append_turn(EVENING, turn(0))
        assert (await store.load(EVENING)).window == (turn(0),)

    async def test_another_turn_under_a_used_number_is_refused(self, store: TurnStore) -> None:
        """Storing another turn under a used number is an error, and the first turn stays."""
        await store.append_turn(EVENING, turn(0, "the first"))
        with pytest.raises(StoreError):
            await store.append_turn(EVENING, turn(0, "another"))
        assert (await store.load(EVENING)).window == (turn(0, "the first"),)

    async def test_sessions_do_not_see_each_other(self, store: TurnStore) -> None:
        """Turns, notes, landings and ends affect only their own session."""
        await fill(store, 12)
        await fill(store, 12, session_id=MORNING)
        await store.add_note(EVENING, note("n1"))
        assert await store.land(landing(0, 10, revision=0))
        await store.close(EVENING, None, CompactionState(cursor=Seq(10), revision=1))
        morning = await store.load(MORNING)
        assert (morning.total_turns, morning.state, morning.segments) == (12, CompactionState(), ())
        assert (morning.live_notes, morning.ended) == ((), False)
        assert await store.land(landing(0, 10, revision=0, session_id=MORNING))

    # -- notes -----------------------------------------------------------------------------------------------

    async def test_notes_are_live_then_pending_in_their_order(self, store: TurnStore) -> None:
        """Notes keep their fields and the order in which they were taken, while live and while pending."""
        notes = [note(name, at=T0 + at) for at, name in enumerate(("b", "a", "d", "c"))]
        for each in notes:
            await store.add_note(EVENING, each)
        assert (await store.load(EVENING)).live_notes == tuple(notes)
        await store.move_notes_to_pending(EVENING, [notes[0].id])
        await store.move_notes_to_pending(EVENING, [notes[1].id, notes[2].id])
        memory = await store.load(EVENING)
        assert memory.state.pending_notes == tuple(notes[:3])
        assert memory.live_notes == (notes[3],)

    async def test_note_operations_can_be_repeated(self, store: TurnStore) -> None:
        """Adding or moving the same note twice has no further effect, and adding a pending note again does not make it
        live.
        """
        await store.add_note(EVENING, note("a"))
        await store.add_note(EVENING, note("a"))
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        await store.add_note(EVENING, note("a"))
        memory = await store.load(EVENING)
        assert memory.live_notes == ()
        assert memory.state.pending_notes == (note("a"),)

    async def test_dropped_notes_wait_no_more(self, store: TurnStore) -> None:
        """Pending notes that are dropped are neither pending nor live, and a live note is not dropped."""
        for name in ("a", "b", "c"):
            await store.add_note(EVENING, note(name))
        await store.move_notes_to_pending(EVENING, [NoteId("a"), NoteId("b")])
        for _ in range(2):
            await store.drop_notes(EVENING, [NoteId("a"), NoteId("c")])
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        memory = await store.load(EVENING)
        assert memory.state.pending_notes == (note("b"),)
        assert memory.live_notes == (note("c"),)

    # -- landings --------------------------------------------------------------------------------------------

    async def test_landing_moves_everything_at_once(self, store: TurnStore) -> None:
        """A landing stores the segment, cursor, revision, summary and notes together, and the window then starts at the
        new cursor. Notes that it does not carry stay pending, whatever its own state says.
        """
        turns = await fill(store, 12)
        for name in ("a", "b", "c"):
            await store.add_note(EVENING, note(name))
        await store.move_notes_to_pending(EVENING, [NoteId("a"), NoteId("b")])
        land = landing(0, 10, revision=0, note_ids=["a"])
        assert await store.land(land) is True
        memory = await store.load(EVENING)
        assert memory.state == replace(land.state, pending_notes=(note("b"),))
        assert memory.segments == (land.segment,)
        assert memory.window == tuple(turns[10:])
        assert memory.total_turns == 12
        assert memory.live_notes == (note("c"),)
        assert tuple(await store.turns(EVENING, Seq(0), Seq(10))) == tuple(turns[:10])

    async def test_same_landing_twice_lands_once(self, store: TurnStore) -> None:
        """A repeated landing returns False and changes nothing."""
        await fill(store, 10)
        assert await store.land(landing(0, 10, revision=0)) is True
        before = await store.load(EVENING)
        assert await store.land(landing(0, 10, revision=0)) is False
        assert await store.load(EVENING) == before

    async def test_stale_landing_is_refused(self, store: TurnStore) -> None:
        """A landing made on an older cursor or revision changes nothing, not even the notes."""
        await fill(store, 20)
        await store.add_note(EVENING, note("a"))
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        assert await store.land(landing(0, 10, revision=0)) is True
        before = await store.load(EVENING)
        stale_cursor = replace(landing(0, 12, revision=1, note_ids=["a"]), expected_cursor=Seq(0))
        stale_revision = landing(10, 20, revision=0, note_ids=["a"])
        assert await store.land(stale_cursor) is False
        assert await store.land(stale_revision) is False
        assert await store.load(EVENING) == before

    async def test_a_stored_range_is_not_stored_again(self, store: TurnStore) -> None:
        """A range of turns that is stored already is refused, even with another segment id."""
        await fill(store, 12)
        assert await store.land(landing(0, 10, revision=0))
        again = replace(
            landing(0, 10, revision=1),
            expected_cursor=Seq(10),
            segment=segment(0, 10, name="another id"),
        )
        before = await store.load(EVENING)
        assert await store.land(again) is False
        assert await store.load(EVENING) == before

    async def test_notes_only_landing_has_an_empty_range(self, store: TurnStore) -> None:
        """A landing of notes alone leaves the cursor, raises the revision and removes the notes from the
        pending ones.
        """
        await fill(store, 5)
        await store.add_note(EVENING, note("a"))
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        state = CompactionState(cursor=Seq(0), revision=1, summary="On Bob's screen: a map.", last_at=T0)
        made = segment(0, 0, note_ids=["a"])
        land = Landing(EVENING, Seq(0), 0, made, state)
        assert await store.land(land) is True
        memory = await store.load(EVENING)
        assert memory.state == state
        assert memory.segments == (made,)
        assert memory.total_turns == 5

    async def test_notes_only_landing_may_keep_a_segment_of_its_own(self, store: TurnStore) -> None:
        """A run of notes alone may store a segment with the empty range `cursor..cursor`. Two such segments have
        different ids.
        """
        await fill(store, 5)
        first = replace(segment(0, 0, name="notes-1"), facts=())
        second = replace(segment(0, 0, name="notes-2"), facts=())
        assert await store.land(
            Landing(EVENING, Seq(0), 0, first, CompactionState(revision=1, summary="a", last_at=T0))
        )
        assert await store.land(
            Landing(EVENING, Seq(0), 1, second, CompactionState(revision=2, summary="b", last_at=T0))
        )
        assert await store.land(landing(0, 5, revision=2))
        assert [each.id for each in (await store.load(EVENING)).segments] == ["notes-1", "notes-2", "evening:0-5"]

    async def test_segments_come_back_in_order_of_start(self, store: TurnStore) -> None:
        """Segments are loaded in the order of their first turns."""
        await fill(store, 35)
        for revision, start in enumerate(range(0, 30, 10)):
            assert await store.land(landing(start, start + 10, revision=revision))
        memory = await store.load(EVENING)
        assert [(each.start, each.end) for each in memory.segments] == [
            (start, start + 10) for start in range(0, 30, 10)
        ]
        assert memory.state.cursor == 30
        assert memory.state.revision == 3
        assert [each.seq for each in memory.window] == list(range(30, 35))

    async def test_one_of_two_rival_landings_wins(self, store: TurnStore) -> None:
        """If two writers land on the same cursor and revision, exactly one of them succeeds."""
        await fill(store, 10)
        rivals = [replace(landing(0, 10, revision=0), segment=segment(0, 10, name=name)) for name in ("x", "y")]
        results = await asyncio.gather(*(store.land(each) for each in rivals))
        assert sorted(results) == [False, True]
        memory = await store.load(EVENING)
        assert len(memory.segments) == 1
        assert memory.state.revision == 1

    async def test_turns_go_on_while_a_landing_is_written(self, store: TurnStore) -> None:
        """Turns that are appended while a landing is written are stored, and the landing is applied too."""
        await fill(store, 12)
        late = [turn(seq) for seq in range(12, 20)]
        results = await asyncio.gather(
            store.land(landing(0, 10, revision=0)), *(store.append_turn(EVENING, each) for each in late)
        )
        assert results[0] is True
        memory = await store.load(EVENING)
        assert memory.total_turns == 20
        assert [each.seq for each in memory.window] == list(range(10, 20))

    async def test_who_shared_a_screen_is_known_after_a_restart(self, store: TurnStore) -> None:
        """They are among the speakers, after those who spoke. A note without an id names nobody."""
        await fill(store, 1)
        spoke = (await store.load(EVENING)).speakers
        shown = replace(note("a"), person_id="7", who="Cy")
        await store.add_note(EVENING, shown)
        await store.add_note(EVENING, note("b"))
        memory = await store.load(EVENING)
        assert memory.live_notes == (shown, note("b"))
        assert memory.speakers == (*spoke, ("7", "Cy"))

    async def test_closing_marks_the_end(self, store: TurnStore) -> None:
        """Closing stores the closing segment, and the cursor, window and notes stay unchanged."""
        turns = await fill(store, 12)
        assert await store.land(landing(0, 10, revision=0))
        await store.add_note(EVENING, note("a"))
        await store.move_notes_to_pending(EVENING, [NoteId("a")])
        before = await store.load(EVENING)
        closing = segment(10, 12, closing=True)
        await store.close(EVENING, closing, before.state)
        memory = await store.load(EVENING)
        assert memory.ended is True
        assert memory.state == before.state
        assert memory.segments == (*before.segments, closing)
        assert memory.window == tuple(turns[10:])

    async def test_closing_twice_changes_nothing(self, store: TurnStore) -> None:
        """Closing a session again, as after a lost answer, changes nothing."""
        await fill(store, 5)
        closing = segment(0, 5, closing=True)
        await store.close(EVENING, closing, CompactionState())
        before = await store.load(EVENING)
        await store.close(EVENING, closing, CompactionState())
        assert await store.load(EVENING) == before

    async def test_late_landing_on_an_ended_session_is_refused(self, store: TurnStore) -> None:
        """A landing that comes after the end of its session changes nothing."""
        await fill(store, 10)
        await store.close(EVENING, segment(0, 10, closing=True), CompactionState())
        before = await store.load(EVENING)
        assert await store.land(landing(0, 10, revision=0)) is False
        assert await store.load(EVENING) == before

    async def test_ending_on_a_stale_state_is_refused(self, store: TurnStore) -> None:
        """Closing on an older cursor and revision is refused, so that closing cannot move the cursor back."""
        await fill(store, 12)
        assert await store.land(landing(0, 10, revision=0))
        with pytest.raises(StoreError):
            await store.close(EVENING, segment(0, 12, closing=True), CompactionState())
        memory = await store.load(EVENING)
        assert (memory.state.cursor, memory.state.revision, memory.ended) == (10, 1, False)
        assert len(memory.segments) == 1

    async def test_empty_session_can_end(self, store: TurnStore) -> None:
        """A session without turns ends without a segment."""
        await store.close(EVENING, None, CompactionState())
        memory = await store.load(EVENING)
        assert memory.ended is True
        assert memory.segments == ()

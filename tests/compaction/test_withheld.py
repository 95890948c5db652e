"""Nothing of a withheld person reaches a model: not from the window, the summary, a fold or a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from math import inf

from compaction.model import Mode, Note, NoteId, Segment, SegmentId, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import NOTHING_KEPT, Fold, FoldRequest
from compaction.window import PENDING_NOTES_RUN
from compaction.withheld import SOME_SCREEN, SOMEBODY, WithheldPeople
from tests.compaction.turn_store_contract import T0, segment
from tests.fakes.clock import FakeClock
from tests.fakes.completion import MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore

ADA, BO = "1", "2"
SECRET = "walrus"


class WatchedSummariser(ExtractiveSummariser):
    """Keeps what it is asked to fold, as text."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fold(self, request: FoldRequest) -> Fold:
        """Keep the request, and fold it."""
        self.asked.append(repr(request))
        return await super().fold(request)


def turn(seq: int, who: str, text: str, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    """Return a turn of one person."""
    return Turn(Seq(seq), kind, float(seq), float(seq) + 1, (TurnPart(who, f"name {who}", text),))


def people(
    *turns: Turn, out: Collection[str] = (ADA,), known: Iterable[str] = (), quotable: Iterable[str] = ()
) -> WithheldPeople:
    """Return the people of these turns. `out`: who has opted out, until that changes. Others: see `WithheldPeople`."""
    made = WithheldPeople(known, quotable=quotable)
    for each in turns:
        made.note_turn(each)
    made.withhold(lambda: frozenset(out))
    return made


def test_their_parts_leave_the_turns_and_others_stay() -> None:
    """A turn of two keeps the other's part; a turn of theirs alone is empty; a turn of others is the same object."""
    mine, yours = turn(0, ADA, SECRET), turn(1, BO, "rain")
    both = replace(mine, seq=Seq(2), parts=(*mine.parts, *yours.parts))
    known = people(mine, yours, both)
    assert known.update(said_until=Seq(3), folded_until=Seq(0))
    assert (known.turn(mine).parts, known.turn(mine).tombstone) == ((), True)
    assert known.turn(both).parts == yours.parts
    assert known.turn(yours) is yours


def test_what_the_bot_said_since_their_first_turn_may_repeat_them() -> None:
    """The bot's turns from the person's first turn until the opt-out are left out; those before and after stay."""
    turns = [turn(0, "assistant", "Hello.", TurnKind.ASSISTANT), turn(1, ADA, SECRET)]
    turns += [turn(2, "assistant", f"A {SECRET}!", TurnKind.ASSISTANT)]
    known = people(*turns)
    known.update(said_until=Seq(3), folded_until=Seq(0))
    later = turn(3, "assistant", "It rains.", TurnKind.ASSISTANT)
    # Ada had opted out while this was made.
    in_progress = replace(later, seq=Seq(4), answers=Seq(1))
    assert [bool(known.turn(each).parts) for each in (*turns, later, in_progress)] == [True, False, False, True, False]


def test_an_opt_in_gives_everything_back() -> None:
    """Nothing is deleted: once the person allows it again, turns are as before."""
    out = {ADA}
    mine = turn(0, ADA, SECRET)
    known = people(mine, out=out)
    known.update(said_until=Seq(1), folded_until=Seq(0))
    assert not known.turn(mine).parts
    out.clear()
    assert not known.update(said_until=Seq(2), folded_until=Seq(0))
    assert known.turn(mine) is mine


def test_who_never_spoke_withholds_nothing() -> None:
    """Somebody who opted out and has no turn in the session changes nothing there."""
    known = people(turn(0, BO, "rain"))
    assert not known.update(said_until=Seq(1), folded_until=Seq(0))


def test_who_may_be_quoted_withholds_what_the_bot_said_until_then() -> None:
    """The bot may have found their words in another session, though they never spoke in this one. What it says after
    their opt-out has nothing of theirs, and so has everything in a session that begins after it.
    """
    answers = [turn(seq, "assistant", f"She said {SECRET}.", TurnKind.ASSISTANT) for seq in range(2)]
    known = people(*answers, quotable=[ADA])
    assert known.update(said_until=Seq(1), folded_until=Seq(0))
    assert [bool(known.turn(each).parts) for each in answers] == [False, True]
    begun = people(quotable=[ADA])
    begun.update(said_until=Seq(0), folded_until=Seq(0), landed_at=-inf)
    assert [begun.turn(each) for each in answers] == answers
    segments = tuple(folded(3))
    assert begun.segments(segments) == segments
    known.update(said_until=Seq(50), folded_until=Seq(20), landed_at=T0)
    assert known.segments(segments) == segments, "the reach is that of the opt-out"


def hidden_from(first: int, *, folded_until: int, landed_at: float) -> WithheldPeople:
    """Return Ada, who spoke first in this turn and opted out when so many turns were folded, until then."""
    known = people(replace(turn(first, ADA, SECRET), started_at=T0 + first))
    known.update(said_until=Seq(folded_until + 50), folded_until=Seq(folded_until), landed_at=landed_at)
    return known


def folded(count: int) -> list[Segment]:
    """Return folded batches, each made sixty turns later."""
    return [
        replace(segment(number * 10, number * 10 + 10, name=f"s{number}"), created_at=T0 + number * 10 + 60)
        for number in range(count)
    ]


def test_what_was_left_for_one_is_not_what_is_left_for_two() -> None:
    """Somebody else opts out, and no landing has made a new view since: their words leave it all the same."""
    out = {ADA}
    known = people(turn(15, BO, "rain"), turn(45, ADA, SECRET), out=out)
    for person, left in ((ADA, ["s0", "s1", "s2", "s3", "s7", "s8"]), (BO, ["s0", "s7", "s8"])):
        out.add(person)
        known.update(said_until=Seq(120), folded_until=Seq(70), landed_at=T0)
        assert [each.id for each in known.segments(folded(9))] == left


def test_notes_are_of_the_time_of_their_fold() -> None:
    """A segment before the person's first turn may have notes of their screen, if it was made after it."""
    segments = [replace(each, note_ids=(NoteId("n"),)) for each in folded(8)]
    alone = replace(segments[7], id=SegmentId("alone"), start=Seq(80), end=Seq(80))
    later = replace(alone, id=SegmentId("later"), created_at=T0 + 900)
    known = hidden_from(100, folded_until=80, landed_at=T0 + 200)
    clean = known.segments([*segments, alone, later])
    assert [each.id for each in clean] == ["s0", "s1", "s2", "s3", "later"]
    # What is folded next tells of the summary before it. A closing segment is no summary.
    for closing, left in ((False, []), (True, [f"s{each}" for each in range(1, 8)])):
        shown = replace(segments[0], created_at=T0 + 150, closing=closing)
        assert [each.id for each in known.segments([shown, *folded(8)[1:]])] == left


async def test_a_question_asked_just_before_and_a_live_note_are_withheld() -> None:
    """If somebody opts out before their question is answered, the context has neither it nor their name at the note of
    their screen.
    """
    summariser, out, clock = ExtractiveSummariser(), set[str](), FakeClock()
    async with SessionTimeline.open(
        SessionId("s"),
        store=InMemoryTurnStore(),
        summariser=summariser,
        mode=Mode.SUMMARY,
        clock=clock,
    ) as timeline:
        timeline.withhold(lambda: frozenset(out))
        said = (TurnPart(ADA, "Ada", f"Where is my {SECRET}?"),)
        asked = await timeline.append(TurnKind.SPEECH, said, started_at=clock.now(), ended_at=clock.now())
        await timeline.add_note(Note(NoteId("n"), clock.now(), "Ada", "A page.", person_id=ADA))
        for who, parts in (("Ada", said), (SOMEBODY, ())):
            context = timeline.context(current=asked, max_input_tokens=20_000)
            assert [note.who for note in context.live_notes] == [note.who for note in timeline.live_notes] == [who]
            assert context.current is not None
            assert context.current.parts == parts
            out.add(ADA)


async def test_a_screen_of_somebody_who_never_spoke_is_withheld() -> None:
    """Who shares a screen may have no turn. Their notes lose name and content all the same, and segments that were made
    of them are left out.
    """
    summariser, out, clock = WatchedSummariser(), set[str](), FakeClock()
    async with SessionTimeline.open(
        SessionId("s"),
        store=InMemoryTurnStore(),
        summariser=summariser,
        mode=Mode.SUMMARY,
        clock=clock,
    ) as timeline:
        timeline.withhold(lambda: frozenset(out))
        rain = TurnPart(BO, "Bo", "It rains in Oslo.")
        await timeline.append(TurnKind.SPEECH, (rain,), started_at=clock.now(), ended_at=clock.now() + 1)
        name = timeline.name_of(ADA, "Ada")
        for number in range(PENDING_NOTES_RUN):
            await timeline.add_note(
                Note(NoteId(f"n{number}"), clock.now(), name, f"A {SECRET} number {number}.", person_id=ADA)
            )
        await timeline.retire_live_notes()
        timeline.context(max_input_tokens=20_000)
        await timeline.settle()
        assert timeline.summary is not None
        assert SECRET in timeline.summary
        await timeline.add_note(Note(NoteId("live"), clock.now(), name, f"A {SECRET}.", person_id=ADA))
        out.add(ADA)
        context = timeline.context(max_input_tokens=20_000)
        assert [(note.who, note.what) for note in context.live_notes] == [(SOMEBODY, SOME_SCREEN)]
        assert SECRET not in repr(timeline.summary)
        out.clear()
        assert [note.who for note in timeline.context(max_input_tokens=20_000).live_notes] == ["Ada"]
        # Who reads the memory otherwise, as a dashboard does, need not build a context first.
        out.add(ADA)
        assert [note.who for note in timeline.live_notes] == [SOMEBODY]
        out.clear()
        assert SECRET in repr(timeline.summary)
        out.add(ADA)
        assert SECRET not in repr(timeline.summary)


async def test_no_fold_or_context_after_an_opt_out_has_their_words() -> None:
    """Nothing of Ada is in a context or in a fold's request after she
    opted out; what is folded later has a summary again.
    """
    summariser, out = WatchedSummariser(), set[str]()
    store, clock = InMemoryTurnStore(), FakeClock()

    def sees_secret(timeline: SessionTimeline) -> bool:
        context = timeline.context(max_input_tokens=20_000)
        return SECRET in repr((context.summary, context.window)).casefold()

    async with SessionTimeline.open(
        SessionId("s"),
        store=store,
        summariser=summariser,
        mode=Mode.SUMMARY,
        clock=clock,
    ) as timeline:
        timeline.withhold(lambda: frozenset(out))
        for number in range(140):
            ada = number % 3 == 0 and number < 60
            said = (
                f"My {SECRET} number {number} lives in Lisbon." if ada else f"I put parcel {number} into shed {number}."
            )
            part = TurnPart(ADA if ada else BO, "Ada" if ada else "Bo", said)
            await timeline.append(TurnKind.SPEECH, (part,), started_at=clock.now(), ended_at=clock.now() + 1)
            if number == 90:
                timeline.context(max_input_tokens=20_000)
                await timeline.settle()
                assert timeline.cursor > 0
                assert sees_secret(timeline)
                out.add(ADA)
                summariser.asked.clear()
            timeline.context(max_input_tokens=20_000)
            await timeline.settle()
            if number >= 90:
                assert not sees_secret(timeline)
        assert summariser.asked
        assert not any(SECRET in asked.casefold() or "Ada" in asked for asked in summariser.asked)
        assert timeline.summary is not None
        await timeline.end()
        assert SECRET not in repr(timeline.compactor.segments[-1]).casefold()


async def test_batches_of_a_withheld_person_alone_ask_no_model() -> None:
    """Their segments are empty. What the summary told before stays."""
    model, out, clock, store = MoodyModel(), set[str](), FakeClock(), InMemoryTurnStore()
    async with SessionTimeline.open(
        SessionId("s"),
        store=store,
        summariser=LlmSummariser(model),
        mode=Mode.SUMMARY,
        clock=clock,
    ) as timeline:
        timeline.withhold(lambda: frozenset(out))
        for number in range(90):
            part = TurnPart(BO, "Bo", f"I put parcel {number} into shed {number}.")
            if number >= 10:
                out.add(ADA)
                part = TurnPart(ADA, "Ada", f"My {SECRET} {number} lives in Lisbon.")
            await timeline.append(TurnKind.SPEECH, (part,), started_at=clock.now(), ended_at=clock.now() + 1)
            timeline.compactor.check()
            await timeline.settle()
        asked = len(model.calls)
        assert [each.start for each in timeline.compactor.segments] == [0, 10, 20]
        assert timeline.summary is not None
        assert "parcel" in timeline.summary
    empty = (await store.load(SessionId("s"))).segments[1:]
    assert {(each.gist, each.facts) for each in empty} == {(NOTHING_KEPT, ())}
    assert asked == 1


def test_a_note_is_withheld_by_the_id_of_whose_screen_it_is() -> None:
    """Two people may have had one name in a session, one after the other."""
    known = people(known=[ADA])
    known.update(said_until=Seq(0), folded_until=Seq(0))
    shown = {who: known.note(Note(NoteId("n"), 0.0, "Sam", SECRET, person_id=who)).what for who in (ADA, BO)}
    assert shown == {ADA: SOME_SCREEN, BO: SECRET}


async def test_who_shared_a_screen_and_said_nothing_is_withheld_after_a_restart() -> None:
    """No turn names them; the note does."""
    store, clock, model = InMemoryTurnStore(), FakeClock(), WatchedSummariser()
    for withheld in (frozenset[str](), frozenset({ADA})):
        async with SessionTimeline.open(
            SessionId("s"),
            store=store,
            summariser=model,
            mode=Mode.SUMMARY,
            clock=clock,
        ) as timeline:
            timeline.withhold(lambda withheld=withheld: withheld)  # type: ignore[misc]
            if not withheld:
                await timeline.add_note(Note(NoteId("n"), clock.now(), "Ada", SECRET, person_id=ADA))
            context = timeline.context(max_input_tokens=8_000)
            assert (SECRET in str(context)) is (not withheld)

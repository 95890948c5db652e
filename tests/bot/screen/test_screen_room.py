"""The shared screens of a room: who may share, what is stored, and that no note is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from bot.brain.tools.tool import ToolError
from bot.channel.port import Person
from bot.errors import first_cause
from bot.screen.messages import ShareEnd
from bot.screen.screen_room import CHECK_INTERVAL_S, RoomScreens
from bot.screen.sharer import ABSENT_S, Sharer
from bot.texts.text import Text, in_language, sentence_of
from compaction.model import NoteSource, TurnKind
from tests.bot.screen.watching import EVENING, PICTURES, Watching
from tests.fakes.cancellation import cancelled_elsewhere
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.fakes.turn_store import StoreFault
from tests.patience import settle
from voice.cancellation import CancelledInsideError


async def share(room: RoomScreens, person: Person = ADA, *, nonce: str = "n1") -> Sharer:
    """Open a link and share a window."""
    sharer = await room.welcome(person, nonce)
    room.start(sharer, "window")
    return sharer


async def see(watching: Watching, room: RoomScreens, sharer: Sharer, name: str, *texts: str) -> None:
    """Send a picture, and wait for its note."""
    before = len(watching.notes)
    watching.readers.texts = list(texts)
    assert await room.picture(sharer, PICTURES[name]) == "taken"
    await settle(lambda: len(watching.notes) > before)


@asynccontextmanager
async def sharing(*texts: str) -> AsyncIterator[tuple[Watching, RoomScreens, Sharer]]:
    """Open a room in which somebody shares a window; with `texts` it shows them, and there is a note of it."""
    watching = Watching()
    async with watching.room() as room:
        sharer = await share(room)
        if texts:
            await see(watching, room, sharer, "dark", *texts)
        yield watching, room, sharer


async def pass_time(watching: Watching, seconds: float) -> None:
    """Let time pass, one check at a time."""
    for _ in range(round(seconds / CHECK_INTERVAL_S)):
        await watching.clock.until_somebody_sleeps()
        watching.clock.advance(CHECK_INTERVAL_S)
        await loop_turns(20)


async def test_what_is_seen_is_remembered() -> None:
    """A note is stored under the sharing person's name, is live, and is sent to the page."""
    async with sharing("Tokyo 2099") as (watching, room, sharer):
        (note,) = watching.timeline.live_notes
        assert (note.who, note.what) == ("Ada", "a window, just shared. It reads “Tokyo 2099”")
        assert note.person_id == str(ADA.id)
        assert (note.why, note.source) == ("Ada began to share", NoteSource.OCR)
        assert (await watching.stored_notes())[0] == {note.what}
        assert list(sharer.for_page) == [{"t": "note", "what": note.what}]
        assert room.sharing() == ["Ada"]
        assert room.status() == "Ada has shared a window for less than a minute. I made 1 note."


async def test_stopping_loses_no_note_and_is_told() -> None:
    """When a share ends, its live notes wait for the next compaction, and a recap is added to the timeline."""
    async with sharing("Tokyo 2099") as (watching, room, sharer):
        watching.clock.advance(180)
        await room.end(sharer, ShareEnd.STOPPED)
        await room.end(sharer, ShareEnd.LEFT)
        assert watching.timeline.live_notes == ()
        assert await watching.stored_notes() == (set(), set(watching.told()))
        begun, turn = watching.timeline.turns
        assert begun.parts[0].text == "Ada shares a window with the bot from now on."
        assert turn.kind is TurnKind.MEMBERSHIP
        (part,) = turn.parts
        assert part.text == (
            "Ada stopped sharing a window after 3 minutes. Last seen on it: a window, just shared. It reads "
            "“Tokyo 2099”."
        )
        assert watching.turns == [begun, turn]
        assert watching.readers.unloads == 1
        assert sharer.ended is ShareEnd.STOPPED
        assert room.status().startswith("Nobody shares a screen with me.")


@pytest.fixture
def watching() -> Watching:
    """A room in which nothing is shared."""
    return Watching()


@pytest_asyncio.fixture
async def room(watching: Watching) -> AsyncIterator[RoomScreens]:
    """The screens of an open room."""
    async with watching.room() as opened:
        yield opened


async def test_a_note_is_shown_as_long_as_its_share_goes_on(room: RoomScreens, watching: Watching) -> None:
    """The notes of a share that has ended are shown no more, although others share, or the same person does again."""
    ada, bo = await share(room), await share(room, BO, nonce="n2")
    await see(watching, room, ada, "dark", "Tokyo 2099")
    await see(watching, room, bo, "bright", "Castle of Zanzibar")
    of_ada, of_bo = watching.notes
    assert room.is_shown(of_ada)
    assert room.is_shown(of_bo)
    ending = asyncio.create_task(room.end(ada, ShareEnd.STOPPED))
    await asyncio.sleep(0)
    assert not room.is_shown(of_ada), "also while the recap is being stored"
    await ending
    again = await share(room, nonce="n3")
    await see(watching, room, again, "grey", "A parrot")
    assert [room.is_shown(note) for note in (of_ada, of_bo, watching.notes[-1])] == [False, True, True]


async def test_a_page_that_goes_while_it_stops_loses_nothing() -> None:
    """If the caller is cancelled while a share ends, the recap and the notes are still stored."""
    async with sharing("Tokyo 2099") as (watching, room, sharer):
        asking = asyncio.create_task(room.end(sharer, ShareEnd.STOPPED))
        await asyncio.sleep(0)
        asking.cancel()
        await room.finish()
        assert asking.cancelled()
        assert "Ada stopped sharing" in watching.timeline.turns[-1].parts[0].text
        assert await watching.stored_notes() == (set(), set(watching.told()))


async def test_a_crash_loses_no_note() -> None:
    """After a crash, the next room finds the notes in the store and takes them off the live list."""
    async with sharing("Tokyo 2099") as (watching, room, sharer):
        assert room.sharers() == [sharer]
    assert sharer.ended is ShareEnd.CLOSED
    assert room.sharers() == []
    assert (await watching.stored_notes())[0] == set(watching.told())
    async with watching.room():
        await settle(lambda: watching.timeline.live_notes == ())
        assert await watching.stored_notes() == (set(), set(watching.told()))


def endings_in_progress() -> list[asyncio.Task[Any]]:
    """Return the tasks that close shares."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "screen-share-ending"]


async def test_nothing_of_a_room_that_has_crashed_still_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What closes its shares is over when the room is: the next room reads the store."""
    run, left = RoomScreens.run, list[int]()

    async def watched(room: RoomScreens) -> None:
        try:
            await run(room)
        finally:
            left.append(len(endings_in_progress()))

    monkeypatch.setattr(RoomScreens, "run", watched)
    async with sharing("Tokyo 2099") as (_, room, sharer):
        ending = asyncio.create_task(room.end(sharer, ShareEnd.STOPPED))
        await asyncio.sleep(0)
        assert endings_in_progress()
    await asyncio.wait({ending})
    assert left == [0]


async def test_who_leaves_the_channel_shares_no_more() -> None:
    """No pictures are read from a person who left the channel; a long absence ends the share."""
    async with sharing("Tokyo 2099") as (watching, room, sharer):
        watching.channel.people = [BO]
        assert await room.picture(sharer, PICTURES["bright"]) == "dropped"
        await pass_time(watching, CHECK_INTERVAL_S)
        watching.channel.people = [ADA, BO]
        await pass_time(watching, 2 * ABSENT_S)
        assert room.find(ADA.id) is sharer
        watching.channel.people = [BO]
        await pass_time(watching, ABSENT_S + 2 * CHECK_INTERVAL_S)
        assert sharer.ended is ShareEnd.LEFT
        assert "Ada stopped sharing" in watching.timeline.turns[-1].parts[0].text


@pytest.mark.parametrize("ends", [False, True])
async def test_what_a_screen_showed_is_forgotten_with_its_person(
    room: RoomScreens, watching: Watching, *, ends: bool
) -> None:
    """After /forget-me a share notes nothing that it showed before, also if it is just being closed (`ends`), and its
    recap does not tell it. Other people's shares are not touched.
    """
    shares = []
    for person in (ADA, BO):
        sharer = await share(room, person, nonce=f"n{person.id}")
        await see(watching, room, sharer, "dark", "Tokyo 2099")
        await see(watching, room, sharer, "line", "Tokyo 2099", "Get ready")
        # It waits for its turn.
        watching.readers.texts = ["Tokyo 2099", "a secret"]
        await room.picture(sharer, PICTURES["other line"])
        await settle(lambda read=sharer.share.counts: read["read"] == 3)  # type: ignore[misc, union-attr]
        shares.append(sharer)
    endings = [asyncio.create_task(room.end(sharer, ShareEnd.STOPPED)) for sharer in shares if ends]
    await asyncio.sleep(0)
    watching.words.take_back({str(ADA.id)}, turns=False)
    for sharer in shares:
        await room.end(sharer, ShareEnd.STOPPED)
    await asyncio.gather(*endings)
    assert [note.who for note in watching.notes if "a secret" in note.what] == ["Bo"]
    recaps = [turn.parts[0].text for turn in watching.turns[-2:]]
    assert ["Tokyo" in recap for recap in recaps] == [False, True]


async def test_several_people_share(room: RoomScreens, watching: Watching) -> None:
    """Each note names the sharing person. Notes stay live until the last share has ended."""
    ada, bo = await share(room, ADA), await share(room, BO, nonce="n2")
    await see(watching, room, ada, "dark", "Tokyo 2099")
    await see(watching, room, bo, "bright", "A spreadsheet")
    assert [(note.who, "Tokyo" in note.what) for note in watching.notes] == [("Ada", True), ("Bo", False)]
    with pytest.raises(ToolError, match="Ada, Bo"):
        await room.look("what?", who=None)
    assert "A spreadsheet" in await room.look("what?", who="bo")
    await room.end(ada, ShareEnd.STOPPED)
    assert watching.timeline.live_notes
    await room.end(bo, ShareEnd.STOPPED)
    assert watching.timeline.live_notes == ()


async def test_links_that_are_opened_together_leave_one_share() -> None:
    """If a person opens several links at the same time, only the last share stays, and it can be ended."""
    watching = Watching(most_shares=1)
    async with watching.room() as room:
        first = await share(room)
        await see(watching, room, first, "dark", "Tokyo 2099")
        sharers = await asyncio.gather(share(room, nonce="n2"), share(room, nonce="n3"))
        (last,) = [sharer for sharer in sharers if sharer.ended is None]
        assert room.find(ADA.id) is last
        assert {sharer.ended for sharer in (first, *sharers)} == {ShareEnd.SUPERSEDED, None}
        await room.finish()
        assert last.ended is ShareEnd.CLOSED


async def test_a_member_is_looked_at_whatever_they_are_called() -> None:
    """Discord says which member is meant. Names have other signs in the session than on Discord, and two people may
    have the same one.
    """
    first, second = Person(11, "[Lantern] Sam", is_bot=False), Person(12, "[Lantern] Sam", is_bot=False)
    watching = Watching(channel=FakeRoomChannel(people=[first, second, BO]))
    async with watching.room() as room:
        for person, text in ((first, "Tokyo 2099"), (second, "A spreadsheet")):
            sharer = await share(room, person, nonce=f"n{person.id}")
            await see(watching, room, sharer, "dark", text)
            assert text in await room.look("what?", user_id=person.id)
        assert room.sharing() == ["Lantern Sam", "Lantern Sam (2)"]
        with pytest.raises(ToolError, match="This member"):
            await room.look("what?", user_id=BO.id)


async def test_who_looks_without_a_share_is_told(room: RoomScreens, watching: Watching) -> None:
    """A look without a share, at an unknown person or before the first picture raises a ToolError for the model."""
    with pytest.raises(ToolError, match="Nobody shares"):
        await room.look("what?", who=None)
    sharer = await share(room)
    with pytest.raises(ToolError, match="name"):
        await room.look("what?", who="Cy")
    with pytest.raises(ToolError, match="no picture") as refused:
        await room.look("what?", who=None)
    # Whoever typed /watch look reads it in the language of their Discord.
    assert in_language(sentence_of(refused.value), "de").startswith("Ich habe noch kein Bild vom Bildschirm.")
    await see(watching, room, sharer, "dark", "Tokyo 2099")
    told = await room.look("what?", who=None)
    assert told == "Ada shares a window. I see this now:\nTokyo 2099"
    assert in_language(told, "de") == "Ada teilt ein Fenster. Das sehe ich gerade:\nTokyo 2099"


async def looking(watching: Watching, room: RoomScreens, sharer: Sharer) -> asyncio.Task[Text]:
    """Start a look at a screen, and return while it still waits for the reader."""
    await see(watching, room, sharer, "dark", "Tokyo 2099")
    watching.readers.holding = asyncio.Event()
    watching.readers.waiting.clear()
    asked = asyncio.create_task(room.look("what?", who=None))
    await watching.readers.waiting.wait()
    return asked


@pytest.mark.parametrize("opts_out", [False, True])
async def test_a_look_that_waited_past_the_end_sees_nothing(opts_out: bool) -> None:
    """If the share ends or its person opts out while a look waits, the reader gets no picture, and nothing is noted."""
    async with sharing() as (watching, room, sharer):
        asked = await looking(watching, room, sharer)
        assert watching.readers.holding is not None
        if opts_out:
            watching.opted_out = {ADA.id}
            watching.words.take_back({str(ADA.id)}, turns=False)
        else:
            await room.end(sharer, ShareEnd.COMMAND)
        looks, notes = len(watching.readers.looks), len(watching.notes)
        watching.readers.holding.set()
        with pytest.raises(ToolError, match="no longer shared"):
            await asked
        assert (len(watching.readers.looks), len(watching.notes)) == (looks, notes)
        with pytest.raises(ToolError, match="Nobody shares"):
            await room.look("what?", who=None)


async def test_a_look_that_waits_when_the_room_crashes_sees_nothing() -> None:
    """The room's tasks are gone, and the reader of the whole process goes on."""
    async with sharing() as (watching, room, sharer):
        asked = await looking(watching, room, sharer)
        looks = len(watching.readers.looks)
    assert watching.readers.holding is not None
    watching.readers.holding.set()
    with pytest.raises(ToolError, match="no longer shared"):
        await asked
    assert len(watching.readers.looks) == looks


async def test_an_answer_that_comes_after_the_end_is_not_told() -> None:
    """If the share ends while the reader has its picture, the answer is discarded."""
    async with sharing() as (watching, room, sharer):
        asked = await looking(watching, room, sharer)
        assert watching.readers.holding is not None
        watching.readers.thinking = asyncio.Event()
        watching.readers.holding.set()
        await settle(lambda: len(watching.readers.looks) == 2)
        await room.end(sharer, ShareEnd.COMMAND)
        watching.readers.thinking.set()
        with pytest.raises(ToolError, match="no longer shared"):
            await asked
        assert len(watching.notes) == 1
        assert watching.timeline.live_notes == ()


async def test_a_crashing_share_ends_alone(
    room: RoomScreens, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a share crashes, only that share ends, with a recap."""
    ada, bo = await share(room, ADA), await share(room, BO, nonce="n2")
    assert ada.share is not None

    async def crash(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(watching.readers, "read", crash)
        await room.picture(ada, PICTURES["dark"])
        await settle(lambda: ada.ended is ShareEnd.BROKEN)
    await settle(lambda: watching.timeline.turns != ())
    await see(watching, room, bo, "bright", "A spreadsheet")


async def test_a_store_that_refuses_costs_no_note() -> None:
    """A note that could not be stored stays in memory and is stored with the next write."""
    async with sharing() as (watching, room, sharer):
        watching.store.fault = lambda _: StoreFault.REFUSED
        await see(watching, room, sharer, "dark", "Tokyo 2099")
        await room.end(sharer, ShareEnd.STOPPED)
        watching.store.fault = None
        await watching.timeline.append(TurnKind.MEMBERSHIP, (), started_at=0, ended_at=0)
        assert (await watching.stored_notes())[1] == set(watching.told())
        stored = (await watching.store.load(EVENING)).window
        assert len(stored) == 3
        assert watching.turns == list(stored[:2]), "whoever listens to turns has those that were stored late too"


async def test_the_turn_of_a_share_is_told_of_although_the_room_ends_while_it_is_stored(watching: Watching) -> None:
    """It is in memory and stored when that is closed."""
    first = iter([StoreFault.HANGS])
    watching.store.fault = lambda name: next(first, None) if name == "append_turn" else None
    async with watching.room() as room:
        await share(room)
        await settle(lambda: "append_turn" in watching.store.operations)
        assert watching.turns == []
    assert watching.turns == list((await watching.store.load(EVENING)).window)
    assert [turn.parts[0].text for turn in watching.turns] == ["Ada shares a window with the bot from now on."]


async def test_a_check_that_is_cancelled_by_mistake_crashes_the_room(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the shares of people who have left would go on."""
    monkeypatch.setattr(watching.clock, "sleep", cancelled_elsewhere)

    async def evening() -> None:
        async with watching.room() as room:
            await share(room)
            await settle(lambda: room.find(ADA.id) is None)

    with pytest.raises(ExceptionGroup) as caught:
        await evening()
    assert isinstance(first_cause(caught.value), CancelledInsideError)

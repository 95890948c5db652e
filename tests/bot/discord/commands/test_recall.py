"""/recall on the local Discord: who finds what, page by page, and what was said around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.discord.commands.recall import GONE, MOMENT, NOTHING, OFF, OVER
from bot.store.attendance import AttendanceStore, Presence
from bot.store.sessions import Sessions
from compaction.model import (
    CompactionState,
    Fact,
    FactKind,
    Note,
    NoteId,
    Segment,
    SegmentId,
    Seq,
    TurnKind,
    TurnPart,
)
from compaction.ports import Landing
from rehearsal.errors import LocalDiscordError
from tests.bot.discord.commands.searching import searching
from tests.bot.discord.remembered import ADA, BEN, CHLOE, COMMITTEE, GUILD, LOUNGE, Remembered, seen
from tests.bot.evening import forget
from tests.patience import settle


@pytest_asyncio.fixture
async def here(tmp_path: Path) -> AsyncIterator[Remembered]:
    """An evening that can be searched."""
    async with searching(tmp_path) as opened:
        yield opened


async def test_what_was_said_is_found_with_time_speaker_and_the_words_around_it(here: Remembered) -> None:
    """Only the person sees it, escaped and in their language. `who` and `since` narrow it down."""
    assert (await here.use(BEN, "recall", words="gate code")).content == NOTHING
    await here.say(ADA, "What is the code of the gate, @everyone?")
    await here.say(BEN, "The gate code is **4411**, <@2001>.")
    await here.say(ADA, "Thank you.")
    reply = await here.use(BEN, "recall", words="gate code")
    told = seen(reply)
    assert told.startswith("What was said about gate code\n")
    assert "**1.** <t:" in told
    assert "· Evening" in told
    assert "> **Ben: The gate code is \\*\\*4411\\*\\*, \\<@\u200b2001\\>.**" in told
    assert "[More around 1]" in told
    of_ada = seen(await here.use(BEN, "recall", words="code", who="Ada"))
    assert "> **Ada: What is the code" in of_ada
    assert "> **Ben" not in of_ada
    here.evening.clock.advance(60)
    assert (await here.use(BEN, "recall", words="gate", since="30s")).content == NOTHING
    assert (await here.use(BEN, "recall", words="gate", since="soon")).content == MOMENT
    assert "die beste zuerst" in seen(await here.use(CHLOE, "recall", words="gate code"))
    assert here.local.messages == ()


async def test_pages_turn_and_show_what_was_said_around(here: Remembered) -> None:
    """Buttons lead to the next page, to the words around a hit, along them, and back. The pages stay as they were."""
    for number in range(40):
        await here.say((ADA, BEN)[number % 2], f"Parcel {number}: {('lemons', 'sundries', 'string')[number % 3]}.")
    first = await here.use(BEN, "recall", words="lemons")
    assert "14 places, the best first. This is page 1 of 4." in seen(first)
    assert "[Before off] [Next]\n[More around 1] [More around 2] [More around 3] [More around 4]" in seen(first)
    await here.say(ADA, "Lemons are sold out.")
    second = await here.press(BEN, first, "roomtone:recall-next")
    assert "14 places, the best first. This is page 2 of 4." in seen(second)
    assert seen(second) != seen(first)
    around = await here.press(BEN, second, "roomtone:recall-around-1")
    assert seen(around).startswith("What was said in Evening\n<t:")
    assert seen(around).count("Parcel") >= 7
    assert seen(around).count("**") == 2
    assert "[Back] [Earlier" in seen(around)
    earlier = await here.press(BEN, around, "roomtone:recall-earlier")
    assert seen(earlier) != seen(around)
    assert "page 2 of 4" in seen(await here.press(BEN, earlier, "roomtone:recall-back"))
    with pytest.raises(LocalDiscordError, match="Only user"):
        await here.press(ADA, first, "roomtone:recall-next")


async def test_a_button_that_is_over_says_so(here: Remembered) -> None:
    """Discord would say that the interaction has failed. Only the person sees the answer."""
    for number in range(12):
        await here.say(ADA, f"Parcel {number}: lemons.")
    page = await here.use(BEN, "recall", words="lemons")
    buttons = [each["custom_id"] for row in page.payload["components"] for each in row["components"]]
    views, message_id = here.client._connection._view_store._views, int(page.payload["id"])
    await settle(lambda: message_id in views)
    # As a restart does.
    del views[message_id]
    pressed = [custom_id for custom_id in buttons if custom_id != "roomtone:recall-before"]
    assert len(pressed) == 5
    for custom_id in pressed:
        told = await here.press(BEN, page, custom_id)
        assert (told.content, told.ephemeral) == (OVER, True)


async def test_without_memory_search_the_command_says_so(tmp_path: Path) -> None:
    """Nothing is shown."""
    async with searching(tmp_path, reach=None) as here:
        await here.say(ADA, "The gate code is 4411.")
        assert (await here.use(BEN, "recall", words="gate code")).content == OFF


@pytest.mark.parametrize(("reach", "finds"), [("server", True), ("channel", False), ("session", False)])
async def test_a_search_of_the_channel_leaves_other_channels_out(tmp_path: Path, reach: str, finds: bool) -> None:
    """With `channel` and `session`, what was said in the channel where somebody is or types is searched alone."""
    async with searching(tmp_path, reach=reach, channel=COMMITTEE, present=(ADA,)) as here:
        await here.say(ADA, "The gate code is 4411.")
        other = await Sessions(here.evening.database, here.evening.clock).open(
            guild_id=GUILD.id, channel_id=LOUNGE, resume_within_s=60.0
        )
        spoken = (await here.evening.store.turns(here.evening.session_id, 0, 1))[0]  # type: ignore[arg-type]
        there = [Presence(str(each), spoken.started_at, joined=True) for each in (ADA, BEN)]
        await AttendanceStore(here.evening.database).add(other.session.id, there)
        words = TurnPart(str(BEN), "Ben", "Lemons are cheap.")
        await here.evening.store.append_turn(
            other.session.id, spoken.__class__(spoken.seq, spoken.kind, spoken.started_at, spoken.ended_at, (words,))
        )
        assert ("4411" in seen(await here.use(ADA, "recall", words="gate code", channel_id=LOUNGE))) is finds
        assert "Lemons" in seen(await here.use(ADA, "recall", words="lemons", channel_id=LOUNGE))
        assert "Lemons" in seen(await here.use(BEN, "recall", words="lemons"))


async def test_what_is_withheld_or_forgotten_is_gone_from_the_pages(here: Remembered) -> None:
    """Each press searches again: nothing is shown any more of who opted out or was forgotten meanwhile."""
    for number in range(12):
        await here.say((ADA, BEN)[number % 2], f"The lemon {number} is ripe.")
    first = await here.use(CHLOE, "recall", words="lemon")
    assert "Ben: The lemon" in seen(first)
    here.withheld.add(str(BEN))
    second = await here.press(CHLOE, first, "roomtone:recall-next")
    assert "Ada: The lemon" in seen(second)
    assert "Ben" not in seen(second)
    around = await here.press(CHLOE, second, "roomtone:recall-around-1")
    assert "Ben" not in seen(around)
    await forget(here.evening.database, here.evening.clock, str(ADA))
    gone = await here.press(CHLOE, around, "roomtone:recall-later")
    assert "Ada" not in seen(gone)
    assert gone.content.startswith("Das gibt es nicht mehr")
    assert GONE
    back = await here.press(CHLOE, gone, "roomtone:recall-back")
    assert (back.payload["embeds"], back.payload["components"]) == ([], [])


async def corrected(here: Remembered, *, old: int, new: int) -> None:
    """Store the fold in which a model says that one turn takes the place of another."""
    session_id, at = here.evening.session_id, here.evening.clock.now()
    facts = tuple(
        Fact((Seq(seq),), "The gate code is told.", FactKind.LASTING, 2, closes, "Ben", at)
        for seq, closes in ((old, ()), (new, ("s#0",)))
    )
    segment = Segment(SegmentId("s"), session_id, Seq(0), Seq(new + 1), at, at, "The gate.", facts, (), "fold.v1")
    state = CompactionState(cursor=segment.end, revision=1)
    assert await here.evening.store.land(Landing(session_id, Seq(0), 0, segment, state))


async def test_corrections_and_screens_are_told(here: Remembered) -> None:
    """What was corrected later says so, and what was on a screen says whose. Long words are cut."""
    await here.say(BEN, "The gate code is 4411.")
    await here.say(ADA, "The weather is fine.", after_s=60)
    await here.say(BEN, "The gate code is not 4411 any more, it is 7702 now.", after_s=60)
    await corrected(here, old=0, new=2)
    told = seen(await here.use(CHLOE, "recall", words="gate code"))
    assert "später korrigiert" in told
    assert told.index("7702") < told.index("später korrigiert")
    await here.evening.timeline.add_note(
        Note(NoteId("n1"), here.evening.clock.now(), "Ada", "A map of Zanzibarq.", person_id=str(ADA))
    )
    reply = await here.use(BEN, "recall", words="Zanzibarq")
    assert "on Ada's screen\n> A map of Zanzibarq." in seen(reply)
    assert "Around" not in seen(reply)
    for number in range(20):
        await here.say(ADA, f"Quinces {number} {'(and_more) ' * 100}.")
    long = await here.use(BEN, "recall", words="quinces")
    assert " …" in seen(long)
    around = await here.press(BEN, long, "roomtone:recall-around-1")
    assert seen(around).count("**") == 2


async def test_a_turn_that_fills_the_page_alone_is_shown(here: Remembered) -> None:
    """What a crashed room had heard is recorded as one turn, which may have many parts."""
    await here.say(ADA, "Medlars?")
    parts = tuple(TurnPart(str(person), f"Guest {person}", "Medlars, please. " * 20) for person in range(3000, 3020))
    now = here.evening.clock.now() + 4.0
    await here.evening.timeline.append(TurnKind.SPEECH, parts, started_at=now, ended_at=now + 2.0)
    here.evening.clock.advance(10.0)
    found = await here.use(BEN, "recall", words="please")
    around = await here.press(BEN, found, "roomtone:recall-around-1")
    assert "Guest 3000: Medlars, please." in seen(around)

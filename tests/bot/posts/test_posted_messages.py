"""The message that shows how a session goes: what it has, and when it is edited."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import AsyncMock

import pytest

from bot.channel.port import RECAP, Card
from bot.cost import Cost
from bot.events import TurnRecorded
from bot.participation.costs import CostLedger
from bot.posts.live_message import (
    EDIT_EVERY_S,
    LISTENING,
    MOST_FAILURES,
    MOST_PEOPLE,
    OVER,
    LiveMessage,
)
from bot.posts.recap import LEAST_SAID
from bot.posts.renewal import PostedRenewal
from bot.server_settings import ServerSettings
from bot.store.posted_transcripts import PostedKind, TranscriptMessage
from bot.store.sessions import Sessions
from bot.words import Words
from compaction.memory.digest import Digest
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.bot.evening import CHANNEL, GUILD, PEOPLE, Evening, forget
from tests.bot.posts.readable_house import readable_house
from tests.bot.room.room_scene import leave, living
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel

if TYPE_CHECKING:
    from pathlib import Path

    from bot.channel.port import PostContent, Posts, RoomChannel


def turn(speaker_id: str, kind: TurnKind = TurnKind.SPEECH) -> TurnRecorded:
    """Return a recorded turn of one speaker."""
    return TurnRecorded(Turn(Seq(0), kind, 60.0, 61.0, (TurnPart(speaker_id, "Ada", "Secret words.", 35.0),)), 0.0)


class Session:
    """A message, its clock and its channel."""

    def __init__(self) -> None:
        self.clock, self.channel = FakeClock(), FakeRoomChannel()
        self.message = LiveMessage(
            self.channel,
            doing=lambda: LISTENING,
            costs=CostLedger(Cost(calls=240)),
            clock=self.clock,
            words=Words(),
        )

    def field(self, name: str) -> str:
        """Return one field of the card that was shown last."""
        return next(str(text) for title, text in self.channel.cards[-1][1].fields if str(title) == name)

    async def pass_time(self, seconds: float) -> None:
        """Advance the clock and let the message see to itself."""
        self.clock.advance(seconds)
        await loop_turns()


async def test_it_shows_numbers_and_edits_only_what_has_changed() -> None:
    """Who spoke, for how long, and how many answers: in one message, which is edited if that has changed."""
    session = Session()
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    assert session.field("who spoke, and for how long") == "nobody yet"
    await session.pass_time(EDIT_EVERY_S)
    assert len(session.channel.cards) == 1
    for event in (turn("1"), turn("1"), turn("2"), turn("assistant", TurnKind.ASSISTANT)):
        session.message.on_event(event)
    await session.pass_time(EDIT_EVERY_S)
    assert session.channel.cards[-1][0] == 1
    assert session.field("who spoke, and for how long") == "<@1> 1:10, <@2> 0:35"
    assert session.field("my answers") == "1"
    assert "Secret" not in repr(session.channel.cards)
    await session.pass_time(60.0)
    assert session.field("how long") == "2 minutes"
    running.cancel()
    await session.message.finish()
    assert session.channel.cards[-1][1].text == OVER


async def test_many_people_are_counted() -> None:
    """People beyond the first ten are a number."""
    session = Session()
    for person in range(1, MOST_PEOPLE + 4):
        session.message.on_event(turn(str(person)))
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    shown = session.field("who spoke, and for how long")
    assert shown.endswith("and 3 more")
    running.cancel()


async def test_an_edit_that_fails_is_made_up_for_by_the_next_one() -> None:
    """Discord did not answer for a while: the same message shows what is new afterwards, and the end at last."""
    session = Session()
    running = asyncio.create_task(session.message.run(), name="live-message")
    await session.pass_time(0.0)
    for failures in (1, MOST_FAILURES - 1):
        session.message.on_event(turn("1"))
        session.channel.writable = False
        for _ in range(failures):
            await session.pass_time(EDIT_EVERY_S)
        session.channel.writable = True
        await session.pass_time(EDIT_EVERY_S)
    assert [edited for edited, _ in session.channel.cards] == [None, 1, 1]
    assert session.field("who spoke, and for how long") == "<@1> 1:10"
    session.message.on_event(turn("1"))
    session.channel.writable = False
    await session.pass_time(EDIT_EVERY_S)
    session.channel.writable = True
    running.cancel()
    await session.message.finish()
    assert session.channel.cards[-1][0] == 1
    assert session.channel.cards[-1][1].text == OVER


async def test_no_message_is_edited_that_discord_finds_too_old() -> None:
    """It is deleted and posted anew in time, also if Discord refuses once, and its last state is true. One that cannot
    be changed any more is deleted: it would say for ever that the session goes on.
    """
    session = Session()
    running = asyncio.create_task(session.message.run(), name="live-message")
    posted_at: dict[int, float] = {}
    for minute in range(130):
        session.channel.writable = minute not in (50, 51)
        await session.pass_time(60.0)
        newest = session.channel.begun
        posted_at.setdefault(newest, session.clock.monotonic())
        if (edited := session.channel.cards[-1][0]) is not None:
            assert edited == newest
            assert session.clock.monotonic() - posted_at[newest] < 3600.0
    assert session.channel.deleted == [1, 2]
    session.channel.too_old = {3}
    running.cancel()
    await session.message.finish()
    assert session.channel.deleted == [1, 2, 3]


# The first message shows how the session goes.
RECAP_ID = 2


@pytest.mark.parametrize(("chosen", "said", "posted"), [(True, 6, True), (False, 6, False), (True, 2, False)])
async def test_a_recap_is_posted_when_a_session_ends(tmp_path: Path, chosen: bool, said: int, posted: bool) -> None:
    """It is posted if the server has chosen it and enough was said; who opted out is not in it."""
    async with readable_house(tmp_path) as house:
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_recap=chosen), by=1)
        async with living(house) as (room, task):
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            for number in range(said):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
            assert await leave(room, task) == "left"
        assert len(house.channel.recaps) == posted
        for _, digest in house.channel.recaps:
            assert [each.name for each in digest.people] == ["Ada"]
            assert digest.turn_count == LEAST_SAID == said
            assert "Zanzibarq" not in str(digest)
            assert "on Friday" in str(digest.last)
        # It goes with its session, for its age or by the operator.
        assert await house.sessions.posted_transcripts.outdated() == ()
        for session in await house.sessions.recent():
            await house.sessions.delete(session.id)
        channel = house.channel
        recap = TranscriptMessage(channel.guild_id, channel.channel_id, RECAP_ID)
        assert await house.sessions.posted_transcripts.outdated() == ((recap,) if posted else ())


@pytest.mark.parametrize("too_old", [False, True])
async def test_a_posted_recap_loses_what_is_forgotten(tmp_path: Path, too_old: bool) -> None:
    """After somebody is forgotten, also by another process, the message is made anew; with too little left it goes. One
    that Discord finds too old for an edit is deleted, and another has what is left.
    """
    async with readable_house(tmp_path) as house:
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_recap=True), by=1)
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            await leave(room, task)
        ((_, posted),) = house.channel.recaps
        assert "Zanzibarq" in str(posted)
        assert house.readable is not None
        renewal, editor = (
            PostedRenewal(house.sessions, house.readable, zone=UTC),
            Editor(house.channel, {RECAP_ID: True, RECAP_ID + 1: True}),
        )
        await renewal.run_once(editor)
        assert len(house.channel.recaps) == 1
        house.channel.too_old = {RECAP_ID} if too_old else set()
        for person in (BO, ADA):
            await forget(house.database, house.clock, str(person.id))
            house.channel.writable = False
            await renewal.run_once(editor)
            await renewal.run_once(Editor(None))
            house.channel.writable = True
            await renewal.run_once(editor)
            await renewal.run_once(editor)
        _, (renewed, left) = house.channel.recaps
        assert (renewed, editor.deleted) == (RECAP_ID + too_old, [RECAP_ID + too_old])
        assert house.channel.deleted == [RECAP_ID][: int(too_old)]
        assert "Zanzibarq" not in str(left)
        assert [each.name for each in left.people] == ["Ada"]
        assert await house.sessions.posted_transcripts.stale() == ()


async def test_what_is_forgotten_while_a_recap_is_posted_makes_it_stale(tmp_path: Path) -> None:
    """Between reading and posting somebody may be forgotten. It is made anew once it is there."""
    async with readable_house(tmp_path) as house:
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_recap=True), by=1)
        fill = house.channel.fill

        async def slowly(message_id: int, content: PostContent) -> bool:
            if not isinstance(content, Digest):
                return await fill(message_id, content)
            await forget(house.database, house.clock, str(BO.id))
            assert await house.sessions.posted_transcripts.stale() == (), "it is being written"
            return await fill(message_id, content)

        house.channel.fill = slowly  # type: ignore[method-assign]
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            await leave(room, task)
        (stale,) = await house.sessions.posted_transcripts.stale()
        assert [each.message_id for each in stale.messages] == [RECAP_ID]


async def test_a_recap_has_nothing_that_was_taken_back_before_its_post(tmp_path: Path) -> None:
    """Somebody opts out once it is made. It is made anew soon."""
    async with readable_house(tmp_path) as house:
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_recap=True), by=1)
        begin = house.channel.begin

        async def slowly(head: Card) -> int:
            if head.title == RECAP.fill(channel=house.channel.name):
                await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
            return await begin(head)

        house.channel.begin = slowly  # type: ignore[method-assign,assignment]
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(BO.id, f"We decided to take train {number + 20} on Friday.")
            await leave(room, task)
        (stale,) = await house.sessions.posted_transcripts.stale()
        assert (house.channel.recaps, stale.kind) == ([], PostedKind.RECAP)


async def test_messages_go_with_their_session(evening: Evening) -> None:
    """What Discord refuses is tried again; of another process's servers nothing is said to be gone."""
    sessions = Sessions(evening.database, evening.clock)
    posted = sessions.posted_transcripts
    for number, guild_id in ((1, GUILD), (2, GUILD), (3, OTHER_GUILD)):
        message = TranscriptMessage(guild_id, CHANNEL, number)
        turns = Seq(0), Seq(1)
        async with posted.filling(evening.session_id, message, PostedKind.LINES, begun=0, turns=turns):
            assert await posted.stale() == ()
    editor = Editor(None)
    editor.answers = {1: True, 2: False}
    renewal = PostedRenewal(sessions, cast("Any", None), zone=UTC)
    await renewal.run_once(editor)
    assert editor.deleted == []
    await sessions.delete(evening.session_id)
    await renewal.run_once(editor)
    assert editor.deleted == [1, 2]
    assert [each.message_id for each in await posted.outdated()] == [2, 3]
    editor.answers[2] = True
    await renewal.run_once(editor)
    assert [each.message_id for each in await posted.outdated()] == [3]


# Of another process.
OTHER_GUILD = GUILD + 1


@dataclass
class Editor:
    """Discord with one voice channel, or without any. `answers`: whether messages can be deleted."""

    channel: FakeRoomChannel | None
    answers: dict[int, bool] = field(default_factory=dict)
    deleted: list[int] = field(default_factory=list)
    filled: list[tuple[int, str]] = field(default_factory=list)

    async def fill(self, message_id: int, text: str) -> bool:
        self.filled.append((message_id, text))
        return True

    def find_channel(self, guild_id: int, channel_id: int) -> RoomChannel | None:
        """Return the channel."""
        here = self.channel
        is_it = here is not None and (guild_id, channel_id) == (here.guild_id, here.channel_id)
        return here if is_it else None

    def find_posts(self, guild_id: int, channel_id: int) -> Posts | None:
        """Return what the bot has posted, unless another process serves the server."""
        return None if guild_id == OTHER_GUILD else cast("Posts", self)

    async def delete(self, message_id: int) -> bool:
        """Note what is to be deleted."""
        self.deleted.append(message_id)
        return self.answers[message_id]


@pytest.mark.parametrize("forgets", ["first", "later"])
async def test_a_message_that_grows_is_made_anew_for_each_of_its_turns(evening: Evening, forgets: str) -> None:
    """It is stale if somebody is forgotten who said one of them, or was forgotten before it was noted."""
    posted = Sessions(evening.database, evening.clock).posted_transcripts
    turns = [await evening.say(f"Line {number}.") for number in (1, 2)]
    ranges = [(turns[0].seq, each.seq) for each in turns]
    message = TranscriptMessage(GUILD, CHANNEL, 1)
    begun = await posted.begin(evening.session_id)
    for each in ranges:
        async with posted.filling(evening.session_id, message, PostedKind.LINES, begun=begun, turns=each):
            pass
        if each == ranges[0 if forgets == "first" else 1]:
            seq = turns[1].seq
            await forget(evening.database, evening.clock, "id-Ada", session_id=evening.session_id, seq=seq)
    assert [each.turns for each in await posted.stale()] == [ranges[1]]


async def test_what_was_withheld_stays_out_of_a_message_that_is_made_anew(evening: Evening) -> None:
    """Bob had opted out when it was posted, and takes part again. It is made anew for somebody else."""
    sessions = Sessions(evening.database, evening.clock)
    for who in PEOPLE:
        await evening.say(f"{who} was here.", who)
    message, turns = TranscriptMessage(GUILD, CHANNEL, 1), (Seq(0), Seq(2))
    posted = sessions.posted_transcripts
    async with posted.filling(evening.session_id, message, PostedKind.LINES, begun=0, turns=turns, left_out=[Seq(1)]):
        pass
    await posted.mark([1])
    editor, readable = Editor(None), AsyncMock()
    readable.views.read.return_value.turns = evening.timeline.turns
    await PostedRenewal(sessions, readable, zone=UTC).run_once(editor)
    ((_, text),) = editor.filled
    assert [who in text for who in PEOPLE] == [True, False, True]

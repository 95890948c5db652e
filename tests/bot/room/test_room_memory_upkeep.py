"""A room with its memory upkeep: the prompt has facts about the people present, and sent payloads can be rebuilt.

Everything is real except the sound, the models and Discord.
"""

from __future__ import annotations

import zlib
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.typing import EventDict

from bot import events
from bot.channel.port import Person
from bot.logs.log_file import log_path
from bot.memory.access_log import AccessLog
from bot.memory.explain import Explainer
from bot.memory.people import PeopleBook
from bot.memory.personal_data import PersonForgetter
from bot.memory.upkeep import MemoryUpkeep
from bot.store.claims import RoomClaim
from bot.store.database import open_database
from bot.store.people import PeopleStore
from bot.store.personal_data import PersonalDataStore
from bot.store.prompts import PromptStore
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tiers import TierStore
from bot.words import Words
from compaction.memory.people import Audience
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.session import SessionTimeline
from compaction.settings import PeopleSettings
from tests.bot.empty_database import put_empty_database
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, leave, living
from tests.fakes.clock import FakeClock
from tests.fakes.labelling_summariser import LabellingSummariser
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle


class KeptHouse(House):
    """The services for rooms that have memory upkeep."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> KeptHouse:
        clock = FakeClock()
        put_empty_database(self._folder / "a.db")
        database = await self._stack.enter_async_context(open_database(self._folder / "a.db", synchronous="normal"))
        super().__init__(database, clock)
        self.summariser = LabellingSummariser()
        self.people = PeopleBook(PeopleStore(self.database), PeopleSettings())
        self.tier_store = TierStore(self.database)
        self.open_upkeep = self._open_upkeep
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def _open_upkeep(
        self, session_id: SessionId, claim: RoomClaim, timeline: SessionTimeline, words: Words
    ) -> MemoryUpkeep:
        return MemoryUpkeep(
            session_id,
            claim.guild_id,
            timeline=timeline,
            words=words,
            turns=self.store,
            tiers=self.tier_store,
            people=self.people,
            prompts=PromptStore(self.database),
            accesses=AccessLog(self.tier_store, self.clock),
            clock=self.clock,
            max_input_tokens=10_000,
        )

    async def remember(self, count: int) -> SessionId:
        """Store `count` turns in an unfinished session of the channel. In the first two, people say facts about
        themselves.
        """
        opened = await self.sessions.open(
            guild_id=self.channel.guild_id, channel_id=self.channel.channel_id, resume_within_s=0.0
        )
        told = {0: (ADA, "I live in Lisbon."), 1: (BO, "My dog is called Bruno.")}
        for number in range(count):
            person, text = told.get(
                number, (ADA if number % 2 else BO, f"I put parcel {number} into shed {number % 7}.")
            )
            at = self.clock.now() + 4 * number - 4 * count
            parts = (TurnPart(str(person.id), person.name, text),)
            await self.store.append_turn(opened.session.id, Turn(Seq(number), TurnKind.SPEECH, at, at + 2, parts))
        return opened.session.id


async def test_a_reply_knows_who_is_present_and_can_be_shown_again(tmp_path: Path, logs: list[EventDict]) -> None:
    """The prompt has facts that people said about themselves in an earlier session, and none of who has opted out.
    After the session has ended, each sent payload can be rebuilt word for word from the log and the database.
    """
    async with KeptHouse(tmp_path) as house:
        await house.remember(60)
        house.channel.people = [ADA, BO]
        # Of whom nobody asks.
        audience = Audience(house.channel.guild_id, house.channel.shared_channels())
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, where is parcel three?")
            await house.reply(1)
            await settle(lambda: bool(house.people.section(audience, [(str(ADA.id), ADA.name)])))
            await leave(room, task)
        async with living(house) as (room, task):
            await house.say(BO.id, "Roomtone, what is my dog called?")
            await house.reply(2)
            await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
            house.channel.people = [BO]
            await house.say(BO.id, "Roomtone, who is here?")
            await house.reply(3)
            await leave(room, task)
        sent = house.of(events.ContextBuilt)
        assert len(sent) == 3
        _, section = [part for part in sent[1].parts if part.kind is PartKind.PARTICIPANTS]
        assert f"{ADA.name}: I live in Lisbon." in section.content
        assert "My dog is called Bruno." in section.content
        here, section = [part for part in sent[2].parts if part.kind is PartKind.PARTICIPANTS]
        assert "Bruno" in section.content
        assert ADA.name not in here.content + section.content
        stored = [row[0] for row in await house.database.rows("SELECT session_id FROM sent_prompts ORDER BY id")]
        for event, session_id in zip(sent, stored, strict=True):
            explained = await Explainer(house.database, house.store).explain(SessionId(session_id), event.answer_to)
            assert explained is not None
            assert [each.parts for each in explained.sent] == [event.parts]
        assert [line["log_level"] for line in logs if str(line["event"]).startswith("keeping")] == []


async def test_what_was_said_in_another_channel_waits_for_its_audience(tmp_path: Path) -> None:
    """A fact from another channel is in a prompt only while everybody present may enter that channel, or if the person
    that it is about asks aloud; never for a written answer, which anybody may read. Who has left is known by name.
    """
    async with KeptHouse(tmp_path) as house:
        house.channel.people = [ADA, BO]
        house.channel.channel_id = 21
        await house.remember(60)
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, where is parcel three?")
            await house.reply(1)
            await settle(lambda: bool(house.of(events.CompactionLanded)))
            await leave(room, task)
        house.channel.channel_id = 20
        asked = [(ADA, set(), "Lisbon"), (BO, set(), "Bruno"), (BO, {21}, "Lisbon Bruno"), (BO, set(), "Bruno")]
        async with living(house) as (room, task):
            for number, (person, shared, _) in enumerate(asked, start=2):
                house.channel.shared = shared
                await house.say(person.id, f"Roomtone, what is number {number}?")
                await house.reply(number)
            house.channel.shared = {21}
            message = Message("Where do I live?")
            assert await room.take_typed(message) is None
            await settle(lambda: message.answers)
            house.channel.people = [BO]
            await house.say(BO.id, "Roomtone, who was here?")
            await house.reply(number + 1)
            await leave(room, task)
        sent = house.of(events.ContextBuilt)
        for event, told in zip(sent[1:-1], (*(told for _, _, told in asked), ""), strict=True):
            section = str([part.content for part in event.parts if part.kind is PartKind.PARTICIPANTS])
            assert [each for each in ("Lisbon", "Bruno") if each in section] == told.split()
        here, *_ = [part for part in sent[-1].parts if part.kind is PartKind.PARTICIPANTS]
        assert ADA.name in here.content


async def test_what_others_have_changed_in_memory_is_taken_back(tmp_path: Path) -> None:
    """The room finds out with its next turn, before it looks for forgettings."""
    async with KeptHouse(tmp_path) as house, living(house):
        await house.say(ADA.id, "We live in Lisbon.")
        words = (await house.participation.of_guild(house.channel.guild_id)).words
        forgetter = SpeechForgetter(house.database, house.clock)
        await forgetter.forget(*await forgetter.find(str(ADA.id)))
        await house.say(BO.id, "And I do not.")
        await settle(lambda: words.epoch > 0)


async def test_a_reminder_may_have_the_words_of_whom_its_prompt_has_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whom that was is stored before the reminder is."""
    kept = list[int]()

    async def store_waiting(_: MemoryUpkeep) -> None:
        kept.append(len(await house.sessions.reminders.of(house.channel.guild_id)))

    monkeypatch.setattr(MemoryUpkeep, "store_waiting", store_waiting)
    async with KeptHouse(tmp_path) as house, living(house):
        await house.say(ADA.id, "Roomtone, remind us in one minute to take the pizza out.")
        await house.pass_time(3.0, step_s=0.5)
        await house.reply(1)
        assert kept == [0]


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def test_who_said_nothing_and_was_named_to_a_model_is_forgotten(tmp_path: Path) -> None:
    """/my-data tells them so, and /forget-me deletes what the model was sent, also in the files."""
    async with KeptHouse(tmp_path) as house:
        house.channel.people = [ADA, Person(9, "Quentin", False)]
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, who is here?")
            await house.reply(1)
            await leave(room, task)
        store = PersonalDataStore(house.database)
        ((sent,),) = await house.database.rows("SELECT parts FROM sent_prompts")
        assert "Quentin" in str(zlib.decompress(sent))
        assert (await store.of("9"))["sessions_whose_prompts_name_you"]
        forgetter = PersonForgetter(house.database, house.clock, log_folder=log_path(tmp_path).parent)
        done = await forgetter.forget(StoredSpeaker("9", (), 0.0, 0, ()))
        assert (done.stored.prompts, done.wiped) == (1, True)
        assert not (await store.of("9"))["sessions_whose_prompts_name_you"]
        assert not any(sent[:50] in content for content in contents(tmp_path))

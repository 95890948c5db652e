"""/privacy, /my-data and /forget-me against the local Discord and a real store."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.discord.commands.privacy import (
    NO_FACTS,
    NOT_SURE,
    NOTHING_KEPT,
    OUT_OF_REACH,
    PrivacyFacts,
    add_privacy_commands,
    forget_person,
    format_facts,
)
from bot.discord.commands.setting_values import OperatorSettings
from bot.logs.log_file import log_path
from bot.memory import personal_data
from bot.memory.people import PeopleBook
from bot.memory.personal_data import FILE_NAME, PersonalData, PersonForgetReport, PersonForgetter
from bot.posts.notice import ListeningNotice, Recipient
from bot.server_settings import ServerSettings, no_server_settings
from bot.settings import RoomSettings
from bot.store import quoted_turns, rows, speech_forgetting
from bot.store.database import Database
from bot.store.people import ForgottenFacts
from bot.store.servers import SqlServerSettings
from bot.store.speakers import StoredSpeaker
from bot.texts.text import verbatim
from compaction.errors import StoreError
from compaction.memory.people import ExtractedFacts, PersonFact
from compaction.model import Note, NoteId, Seq, SessionId, Turn, TurnKind, TurnPart
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import ADA, BEN
from tests.bot.discord.commands.local_server import private_reply, server_with
from tests.bot.evening import GUILD, HERE, Evening

FACTS = PrivacyFacts(
    ListeningNotice((Recipient(verbatim("your words"), "api.example.org", verbatim("answers")),)),
    no_server_settings(),
    OperatorSettings(leave_when_empty_s=300.0, retention_days=30.0, room=RoomSettings()),
    log_days=30.0,
    keeps_facts=True,
)
SECRET = "I live in Zanzibarq with my aunt and her nine parrots."


def failing(error: Exception) -> PersonalData:
    """Return a store or a log that fails."""

    async def fail(*_: object) -> None:
        raise error

    return cast("PersonalData", SimpleNamespace(file_of=fail, forget=fail, forget_facts=fail))


class Facts(PeopleBook):
    """Facts about one person."""

    def __init__(self, *texts: str, ended: int = 0) -> None:
        self.facts = [
            PersonFact(
                f"e#{at}",
                str(ADA),
                "Ada",
                text,
                SessionId("e"),
                Seq(at),
                1.76e9,
                superseded_at=1.77e9 if at < ended else None,
            )
            for at, text in enumerate(texts)
        ]

    async def facts_about(self, guild_id: int | None, person_id: str) -> tuple[PersonFact, ...]:
        return tuple(each for each in self.facts if (guild_id, each.person_id) == (500, person_id))

    async def forget(self, guild_id: int | None, person_id: str) -> ForgottenFacts:
        found = await self.facts_about(guild_id, person_id)
        self.facts = [each for each in self.facts if each not in found]
        return ForgottenFacts(len(found))


class RecordedRooms:
    """Open rooms that record what they are told."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    async def before_forgetting(self, person_id: str) -> None:
        self._calls.append(f"before {person_id}")

    async def after_forgetting(self, sessions: Collection[SessionId]) -> None:
        self._calls.append(f"after {' '.join(sessions)}")


def online(records: Any, people: Any) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start a local Discord with the commands."""
    return server_with(partial(add_privacy_commands, records=records, people=people, facts=FACTS))


async def say(local: LocalDiscord, user_id: int, command: str, **options: object) -> dict[str, object]:
    """Use a command, and return the answer that only this person sees."""
    reply = await private_reply(local, user_id, command, **options)
    return {**reply.payload, "content": reply.content}


def bytes_in(folder: Path) -> bytes:
    """Return the bytes of all files in a folder."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


@asynccontextmanager
async def an_evening(folder: Path) -> AsyncIterator[tuple[Evening, PersonalData, list[str]]]:
    """Store an evening with Ada and Ben, and yield it with the personal data; the list tells of refreshed rooms."""
    refreshed: list[str] = []
    async with Evening(folder / "roomtone.db") as evening:
        for number, (person, name, text) in enumerate(
            ((ADA, "Ada", SECRET), (BEN, "Ben", "The gate code is 4411."), (ADA, "Ada", "I'm vegan."))
        ):
            at = evening.clock.now() + 4.0 * number
            part = TurnPart(str(person), name, text)
            await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=at, ended_at=at + 2.0)
        reply = TurnPart("assistant", "Roomtone", "Then no cheese.")
        await evening.timeline.append(
            TurnKind.ASSISTANT, (reply,), started_at=at, ended_at=at, answers=Seq(2), told_to=(str(ADA),)
        )
        await evening.timeline.add_note(Note(NoteId("n1"), at, "Ada", "A map of Zanzibarq.", person_id=str(ADA)))
        await evening.timeline.add_note(Note(NoteId("n2"), at, "Ben", "A cat.", person_id=str(BEN)))
        await evening.upkeep.run_once()
        # What a model would label in a fold of these turns.
        of_ada = PersonFact("s#0", str(ADA), "Ada", SECRET, evening.session_id, Seq(0), evening.clock.now())
        extracted = ExtractedFacts((of_ada,))
        await evening.facts.store_facts(evening.session_id, extracted, through=9, is_current=lambda _: True)
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(folder).parent)
        yield (
            evening,
            PersonalData(evening.database, forgetter, evening.people, rooms=RecordedRooms(refreshed)),
            refreshed,
        )


async def test_a_person_gets_their_data_and_forgets_it(tmp_path: Path) -> None:
    """/my-data sends a file that only the person sees; /forget-me asks first, forgets everything of them, and says what
    it cannot reach. Nobody else's data is touched.
    """
    async with an_evening(tmp_path) as (evening, records, refreshed), online(records, evening.people) as local:
        await evening.people.prime(GUILD, [str(ADA)])
        sent = await say(local, ADA, "my-data")
        assert "2 things that you said" in str(sent["content"])
        assert FILE_NAME in str(sent["attachments"])
        assert (await say(local, ADA, "forget-me", sure=False))["content"] == NOT_SURE
        assert SECRET in (await records.file_of(str(ADA))).content.decode()
        done = str((await say(local, ADA, "forget-me", sure=True))["content"])
        assert done.startswith(
            "Done. On all servers I have deleted 2 things that you said or did, 1 reply of mine, 1 note about"
        )
        assert OUT_OF_REACH in done
        assert refreshed == [f"before {ADA}", "after evening"]
        assert evening.people.section(HERE, [(str(ADA), "Ada")]) == ()
        assert (await say(local, ADA, "my-data"))["content"] == NOTHING_KEPT
        assert str((await say(local, ADA, "forget-me", sure=True))["content"]).startswith(NOTHING_KEPT)
        assert "1 thing that you said" in str((await say(local, BEN, "my-data"))["content"])
        left = bytes_in(tmp_path)
        assert b"zanzibarq" not in left.lower()
        assert str(ADA).encode() not in left
        assert b"4411" in left


async def test_forgotten_facts_go_from_what_rooms_have_made_of_them(tmp_path: Path) -> None:
    """An open room on that server drops its replies, once there was something to forget; the session's words stay."""
    async with an_evening(tmp_path) as (_, records, refreshed):
        assert await records.forget_facts(GUILD, str(ADA)) > 0
        assert await records.forget_facts(GUILD, str(ADA)) == 0
        assert refreshed == ["after evening"]
        assert SECRET in (await records.file_of(str(ADA))).content.decode()


async def test_who_chose_for_a_server_is_told_and_forgotten(evening: Evening, tmp_path: Path) -> None:
    """The database knows who has changed a server's choices last. /my-data says so, and /forget-me takes the id out."""
    database, clock = evening.database, evening.clock
    await SqlServerSettings(database, clock).put(GUILD, ServerSettings(posts_recap=True), by=ADA)
    forgetter = PersonForgetter(database, clock, log_folder=log_path(tmp_path).parent)
    records = PersonalData(database, forgetter, evening.people, rooms=RecordedRooms([]))
    told = json.loads((await records.file_of(str(ADA))).content)
    assert told["servers_where_you_chose_last"] == [str(GUILD)]
    await records.forget(str(ADA))
    assert (await records.file_of(str(ADA))).is_empty
    assert str(ADA).encode() not in bytes_in(tmp_path)
    [kept] = (await SqlServerSettings(database, clock).all()).values()
    assert kept.posts_recap


async def test_open_rooms_take_over_what_an_interrupted_attempt_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the log or the database fails, what is in memory of the person goes."""
    log_path(tmp_path).mkdir(parents=True)
    async with an_evening(tmp_path) as (evening, records, refreshed):
        await evening.people.prime(GUILD, [str(ADA), str(BEN)])
        assert evening.people.section(HERE, [(str(ADA), "Ada")]) != ()
        assert "could not delete it from the log" in await forget_person(records, str(ADA))
        assert refreshed == [f"before {ADA}", "after evening"]
        assert evening.people.section(HERE, [(str(ADA), "Ada")]) == ()

        async def fails(*_: object) -> None:
            raise StoreError("The disk is full.")

        monkeypatch.setattr(speech_forgetting, "drop_person", fails)
        assert "The disk is full" in await forget_person(records, str(BEN))
        assert refreshed[2:] == [f"before {BEN}", "after evening"]


async def test_the_file_has_everything_of_the_person_and_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the person's turns, the replies to them, the notes of their screen and the facts about them. A long
    file is compressed.
    """
    async with an_evening(tmp_path) as (_, records, _):
        file = await records.file_of(str(ADA))
        told = json.loads(file.content)
        (session,) = told["sessions"]
        assert [each["text"] for each in session["what_you_said"]] == [SECRET, "I'm vegan."]
        assert [each["text"] for each in session["my_replies_to_you"]] == ["Then no cheese."]
        assert [each["text"] for each in session["notes_of_your_screen"]] == ["A map of Zanzibarq."]
        assert (session["names"], session["server_id"]) == (["Ada"], str(GUILD))
        assert any("Zanzibarq" in each["text"] for each in told["facts_about_you"])
        assert "4411" not in file.content.decode()
        monkeypatch.setattr(personal_data, "MOST_BYTES", 10)
        packed = await records.file_of(str(ADA))
        assert packed.name == f"{FILE_NAME}.gz"
        assert json.loads(gzip.decompress(packed.content)) == told
        assert (await records.file_of("5")).is_empty


async def test_privacy_tells_what_is_kept() -> None:
    """/privacy says what is kept, how long, who gets it and what people can do, in one message of Discord's."""
    async with online(failing(StoreError("No.")), Facts()) as local:
        told = str((await say(local, ADA, "privacy"))["content"])
    for each in ("30 days", "api.example.org", "/my-data", "/forget-me", "/opt-out", "nothing that you say", "backups"):
        assert each in told
    many = ListeningNotice((Recipient(verbatim("x" * 500), "api.example.org", verbatim("answers")),))
    for_ever = replace(FACTS.operator, retention_days=0.0)
    others = replace(FACTS, notice=many, operator=for_ever, log_days=0.0, keeps_facts=False).text(1)
    assert "until somebody deletes it" in others
    assert "lasting facts" not in others
    remote = replace(FACTS, database_host="db.example.org").text(1)
    assert "in a database on db.example.org, and in log files on the computer that runs me" in remote
    assert max(len(told), len(others), len(remote)) < 2_000


@pytest.mark.parametrize(
    ("theirs", "of_log", "told"),
    [
        (7.0, 30.0, "7 days after somebody said or showed it. I delete my log after 30 days.\n"),
        (7.0, 0.0, "7 days after somebody said or showed it. I keep my log until the owner of this bot deletes it.\n"),
        (30.0, 30.0, "30 days after somebody said or showed it.\n"),
        (0.0, 0.0, "I keep everything until somebody deletes it.\n"),
    ],
)
def test_privacy_tells_when_log_lines_stay_longer(theirs: float, of_log: float, told: str) -> None:
    """A server may choose a shorter time, but the log is one for all servers."""
    operator = replace(FACTS.operator, retention_days=theirs)
    assert told in replace(FACTS, operator=operator, log_days=of_log).text(1)


async def test_failures_are_sentences() -> None:
    """A failing store or log is a sentence that says what is left to do."""
    full = failing(StoreError("The disk is full."))
    async with online(full, Facts()) as local:
        for command, options in (("my-data", {}), ("forget-me", {"sure": True, "what": "facts"})):
            told = (await say(local, ADA, command, **options))["content"]
            assert "The disk is full" in str(told)
    assert "The disk is full. Use /forget-me again" in await forget_person(full, "1")
    assert "from the log (No space)" in await forget_person(failing(OSError(28, "No space")), "1")


async def test_facts_are_shown_with_their_days_and_forgotten_alone() -> None:
    """A person sees theirs, and nobody else's; a long list is cut."""
    facts = Facts("I live in *Lisbon*.", "I live in Berlin.", ended=1)
    assert await format_facts(facts, 500, str(ADA)) == (
        "This is what you have said about yourself on this server:\n- I live in Berlin. (<t:1760000000:D>)\n"
        "As far as I know, this is no longer true:\n- I live in \\*Lisbon\\*. (<t:1760000000:D>)"
    )
    records = PersonalData(cast("Any", None), cast("Any", None), facts, rooms=RecordedRooms([]))
    async with online(records, facts) as local:

        async def forget(user_id: int, *, sure: bool = True) -> str:
            return str((await say(local, user_id, "forget-me", sure=sure, what="facts"))["content"])

        assert await forget(ADA, sure=False) == NOT_SURE
        assert (await forget(ADA)).startswith("Done. I have deleted all 2 things")
        assert await forget(ADA) == NO_FACTS
        assert "Please wait " in await forget(ADA)
    many = await format_facts(Facts(*(f"My dog number {at} barks." for at in range(100))), 500, str(ADA))
    assert len(many) < 1_700
    assert many.endswith("There is more in the file.")


async def test_many_who_ask_at_once_keep_nobody_from_being_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data is read and forgotten for one person after the other, and turns are read in threads. For somebody who never
    spoke, no session is searched.
    """
    running, most, on_loop = 0, 0, 0
    searched = list[tuple[str, bool]]()
    describe, forget, find = rows.turn_from_row, PersonForgetter.forget, quoted_turns.first_turns_about

    async def counted(self: PersonForgetter, person: StoredSpeaker, **options: Any) -> PersonForgetReport:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await forget(self, person, **options)
        finally:
            running -= 1

    def watched(row: Any) -> Turn:
        nonlocal on_loop
        on_loop += threading.current_thread() is threading.main_thread()
        return describe(row)

    async def noted(database: Database, person_id: str, where: Collection[SessionId], **options: Any) -> Any:
        searched.append((person_id, bool(where)))
        return await find(database, person_id, where, **options)

    monkeypatch.setattr(PersonForgetter, "forget", counted)
    monkeypatch.setattr(speech_forgetting, "first_turns_about", noted)
    async with an_evening(tmp_path) as (_, records, _):
        monkeypatch.setattr(rows, "turn_from_row", watched)
        assert (await records.file_of(str(ADA))).turn_count == 2
        done = await asyncio.gather(*(records.forget(str(person)) for person in (ADA, ADA, BEN, 999)))
        assert [each.stored.turns for each in done] == [2, 0, 1, 0]
        assert (most, on_loop) == (1, 0)
        assert sorted(searched) == [(str(ADA), False), (str(ADA), True), (str(BEN), True), ("999", False)]

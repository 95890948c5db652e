"""Who is told that the bot listens, when, and how."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from bot.channel.port import Person
from bot.participation.guild_state import SessionConsent
from bot.posts.notice import (
    ALL_LOCAL,
    ASKING,
    CHAT_READ,
    CHAT_READ_ALOUD,
    COMMANDS,
    DEFAULT_NOTICE,
    GATHER_S,
    HEARD_IS_READ,
    MANAGERS_READ,
    NO_MARK,
    OTHERS_READ,
    Announcer,
    ListeningNotice,
    Recipient,
)
from bot.server_settings import ListenRequest, ServerSettings
from bot.texts.text import verbatim
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import ADA, BO, OTHER_BOT, FakeRoomChannel

CY, DEE = Person(4, "Cy", False), Person(5, "Dee", False)


class Hall:
    """A channel with an announcer; the voice works if `voiced`."""

    def __init__(self) -> None:
        self.channel = FakeRoomChannel(people=[ADA, OTHER_BOT])
        self.clock = FakeClock()
        self.voiced = True
        self.spoken: list[Sequence[str]] = []
        self.announcer = Announcer(
            self.channel, ListeningNotice(), speak=self.speak, clock=self.clock, consent=SessionConsent()
        )

    async def speak(self, sentences: Sequence[str]) -> bool:
        if self.voiced:
            self.spoken.append(sentences)
        return self.voiced

    async def come(self, *people: Person) -> None:
        """Let people come in, and all tasks run."""
        for person in people:
            self.channel.people.append(person)
            self.announcer.on_joined()
        await self.wait(0.0)

    async def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await loop_turns(10)


@asynccontextmanager
async def a_hall() -> AsyncIterator[tuple[Hall, asyncio.Task[None]]]:
    """Give the first notice and run the announcer."""
    hall = Hall()
    await hall.announcer.begin()
    running = asyncio.create_task(hall.announcer.run(), name="announcer")
    try:
        yield hall, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_people_who_come_later_are_told_once_and_together() -> None:
    """Newcomers share one notice half a minute after the last; who was told and comes back gets no other."""
    async with a_hall() as (hall, _):
        assert len(hall.channel.notices) == 1
        await hall.come(BO, CY)
        assert len(hall.channel.notices) == 1
        await hall.wait(GATHER_S)
        assert len(hall.channel.notices) == 2
        hall.channel.people.remove(BO)
        await hall.wait(2 * GATHER_S)
        await hall.come(BO)
        await hall.wait(2 * GATHER_S)
        assert len(hall.channel.notices) == 2
        await hall.come(DEE)
        assert len(hall.channel.notices) == 3


async def test_a_bot_that_comes_is_told_nothing() -> None:
    """Another bot is never heard, so it needs no notice."""
    async with a_hall() as (hall, _):
        await hall.wait(GATHER_S)
        await hall.come(Person(6, "Juke two", True))
        assert len(hall.channel.notices) == 1


async def test_each_notice_comes_with_the_mark() -> None:
    """The mark is set again with each notice, and the notice says so if nothing shows that the bot listens."""
    async with a_hall() as (hall, _):
        shown = [hall.channel.shown_as_listening]
        assert NO_MARK not in hall.channel.notices[0]
        hall.channel.markable = False
        await hall.come(BO)
        await hall.wait(GATHER_S)
        shown.append(hall.channel.shown_as_listening)
        assert shown == [True, False]
        assert NO_MARK in hall.channel.notices[1]


RECOGNISER = Recipient(verbatim("the sound of your voices"), "asr.example.org", verbatim("recogniser whisper-1"))
MODEL = Recipient(verbatim("the text of what you say"), "api.openai.com", verbatim("language model gpt-4.1-mini"))


def test_the_notice_names_everybody_who_gets_a_part() -> None:
    """Every recipient is named once with what it gets; without any, the notice says that nothing leaves."""
    text = ListeningNotice((RECOGNISER, MODEL, MODEL)).written()
    assert text.startswith(f"{DEFAULT_NOTICE}\n")
    assert str(RECOGNISER.text) in text
    assert text.count("api.openai.com") == 1
    assert ALL_LOCAL not in text
    assert ALL_LOCAL in ListeningNotice().written()


@pytest.mark.parametrize("wording", [None, "Hello."])
def test_no_wording_removes_the_facts(wording: str | None) -> None:
    """The facts and the commands stay, whatever the server writes."""
    notice = ListeningNotice((MODEL,)).for_room(ServerSettings(notice=wording))
    assert notice.written().startswith(wording or DEFAULT_NOTICE)
    assert all(part in notice.written() for part in ("api.openai.com", COMMANDS))
    assert "api.openai.com gets" in " ".join(notice.spoken())


def test_where_people_must_agree_the_notice_says_so() -> None:
    """Where the bot asks, the notice says that it hears only those who press the button."""
    notice = ListeningNotice()
    assert ASKING in notice.written(asks=True)
    assert ASKING not in notice.written()


LISTENS = "I only write down what is said"


@pytest.mark.parametrize(
    ("listen", "where"),
    [
        (ListenRequest("file", 7), "as a file"),
        (ListenRequest("thread", 7), "in a thread of <#7>"),
        (None, None),
    ],
)
@pytest.mark.parametrize("wording", [None, "Hear ye."])
def test_a_room_that_only_writes_down_says_so_and_where(
    listen: ListenRequest | None, where: str | None, wording: str | None
) -> None:
    """In writing and aloud, below the server's own sentences; without such, nothing says that the bot answers.

    Aloud it does not say where: a voice reads no mention of a channel, and what cannot be written is not promised.
    """
    notice = ListeningNotice().for_room(ServerSettings(notice=wording), listen=listen)
    written, spoken = str(notice.written()), " ".join(map(str, notice.spoken()))
    for told in (written, spoken):
        assert told.startswith(wording or ("I am listening" if listen else DEFAULT_NOTICE))
        assert (LISTENS in told) is (listen is not None)
        assert listen is None or DEFAULT_NOTICE not in told
    assert where is None or where in written
    assert not {"<", "#", "post", "thread"}.intersection(re.findall(r"\w+|\S", spoken))


def test_a_room_with_captions_says_who_reads_them() -> None:
    """The bot takes part there, so the rest of the notice is as ever."""
    listen = ListenRequest("thread", 7, captions=True)
    notice = ListeningNotice().for_room(ServerSettings(chat_channel=8), listen=listen)
    written, spoken = str(notice.written()), " ".join(map(str, notice.spoken()))
    for told in (written, spoken):
        assert told.startswith(DEFAULT_NOTICE)
        assert "I also write down" in told
        assert LISTENS not in told
    assert {"<#7>", "<#8>"} <= set(re.findall(r"<#\d>", written))
    assert "<" not in spoken


def test_a_mark_that_failed_is_told_with_its_remedy() -> None:
    """If nothing marks the bot as listening, the notice says which permission is missing."""
    notice = ListeningNotice()
    assert NO_MARK in notice.written(marked=False)
    assert NO_MARK not in notice.written(marked=True)


def test_the_notice_says_who_may_read_what_is_said() -> None:
    """Those who are there, always; others if the server has opened its history, or answers in a text channel. It is
    then another notice.
    """
    closed = ListeningNotice().for_room(ServerSettings())
    managers = closed.for_room(ServerSettings(opens_history=True))
    role = closed.for_room(ServerSettings(opens_history=True, history_role=77))
    assert all(HEARD_IS_READ in str(each.written()) for each in (closed, managers, role))
    assert [MANAGERS_READ in str(each.written()) for each in (closed, managers, role)] == [False, True, False]
    assert ["<@&77>" in str(each.written()) for each in (closed, managers, role)] == [False, False, True]
    assert [OTHERS_READ in each.spoken() for each in (closed, managers, role)] == [False, True, True]
    chat = closed.for_room(ServerSettings(chat_channel=601))
    assert CHAT_READ.fill(channel=verbatim("<#601>")) in str(chat.written())
    assert CHAT_READ_ALOUD in chat.spoken()
    assert len({each.digest() for each in (closed, managers, role, chat)}) == 4

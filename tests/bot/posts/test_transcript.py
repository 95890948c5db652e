"""Writing down into a thread: few messages, escaped, without people who are left out, and nothing lost on failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.background_task import owned_task
from bot.channel.port import ChannelGoneError, ChatError
from bot.events import SpokenText, TurnRecorded
from bot.memory.transcript_files import TranscriptFile
from bot.posts.transcript import (
    GROWS_FOR_S,
    MOST_FAILURES,
    WRITE_EVERY_S,
    TranscriptFilePost,
    TranscriptWriter,
)
from bot.posts.words import MOST_CHARS, first_message
from bot.server_settings import ListenOnly, ListenRequest, ServerSettings, no_server_settings
from bot.store.posted_transcripts import PostedKind, PostedTranscripts, TranscriptMessage
from bot.words import Words
from compaction.errors import StoreError
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.fakes.recogniser import recognition
from tests.fakes.room_channel import FakeRoomChannel
from voice.audio import NO_SOUND
from voice.listening.utterance import Utterance

FIRST, SECOND = SessionId("first"), SessionId("second")


def spoken(text: str, *, speaker: str = "1", kind: TurnKind = TurnKind.SPEECH, seq: int = 0) -> TurnRecorded:
    return turn((speaker, text, 0.0), kind=kind, seq=seq)


def turn(*said: tuple[str, str, float], kind: TurnKind = TurnKind.SPEECH, seq: int = 0) -> TurnRecorded:
    """Return a turn of what people said, each with when they began (monotonic seconds)."""
    parts = tuple(TurnPart(speaker, f"P{speaker}", text) for speaker, text, _ in said)
    utterances = tuple(
        SpokenText(Utterance("u", int(speaker), at, at + 1.0, at + 1.0, NO_SOUND), recognition(text), at, at)
        for speaker, text, at in said
        if speaker.isdecimal()
    )
    return TurnRecorded(Turn(Seq(seq), kind, 60.0, 61.0, parts), 0.0, utterances)


class Writing:
    """A writer into a thread, its clock and its channel."""

    def __init__(self) -> None:
        self.clock, self.channel = FakeClock(), FakeRoomChannel()
        self.excluded: set[int] = set()
        self.words = Words(lambda user_id: user_id in self.excluded, monotonic=self.clock.monotonic)
        self.broken = self.away = False
        # How often something was forgotten.
        self.begun = 0
        # Each message with its channel and its turns, and those that may have forgotten words.
        self.posted: list[tuple[int, int, tuple[int, int] | None]] = []
        self.suspected: set[int] = set()
        # The turns that the last of them leaves out.
        self.left_out: list[Seq] = []
        posted = cast("PostedTranscripts", self)
        self.file = TranscriptFilePost(self.channel, FIRST, posted, self.read, words=self.words)
        self.servers = no_server_settings()
        self.writer = TranscriptWriter(
            self.channel, FIRST, 601, words=self.words, clock=self.clock, servers=self.servers, posted=posted
        )

    async def begin(self, _: SessionId) -> int:
        return self.begun

    @asynccontextmanager
    async def filling(
        self,
        _: SessionId,
        posted: TranscriptMessage,
        kind: PostedKind,
        *,
        begun: int | None,
        turns: tuple[Seq, Seq] | None = None,
        left_out: Collection[Seq] = (),
    ) -> AsyncIterator[None]:
        self._look()
        self.left_out = list(left_out)
        assert (kind is PostedKind.FILE) is (turns is None)
        self.posted.append((posted.channel_id, posted.message_id, turns))
        yield

    async def mark(self, message_ids: Collection[int]) -> None:
        self._look()
        self.suspected |= set(message_ids)

    def _look(self) -> None:
        if self.away:
            raise StoreError("The database does not answer.")

    async def read(self) -> TranscriptFile:
        if self.broken:
            raise StoreError("The disk is full.")
        return TranscriptFile("a.md", b"without 2" if 2 in self.excluded else b"Ada: Hello.", 1, 0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        async with owned_task(self.writer.run(), name="transcript-under-test") as task:
            await self.clock.until_somebody_sleeps()
            yield task

    async def pass_time(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.advance(WRITE_EVERY_S)
            await loop_turns(10)


@pytest.fixture
def writing() -> Writing:
    """A writer that has nothing to write."""
    return Writing()


async def test_a_thread_gets_few_messages_without_markup(writing: Writing) -> None:
    """What was said in a few minutes is one message; what the bot did, and who is left out, is not in it."""
    async with writing.running():
        writing.writer.on_event(spoken("**Hello** @everyone <@1>"))
        writing.writer.on_event(spoken("Secret.", speaker="2"))
        writing.writer.on_event(spoken("joined", kind=TurnKind.MEMBERSHIP))
        writing.writer.on_event(spoken("Bye."))
        writing.excluded.add(2)
        await writing.pass_time(2)
        assert writing.channel.thread.posted == [
            "<t:60:t> **P1:** \\*\\*Hello\\*\\* @\u200beveryone \\<@\u200b1\\>\n<t:60:t> **P1:** Bye."
        ]
        writing.writer.on_event(spoken("Last."))
        await writing.writer.finish()
    assert [text.splitlines()[-1] for text in writing.channel.thread.posted] == ["<t:60:t> **P1:** Last."]


async def test_what_somebody_says_after_they_were_forgotten_is_written(writing: Writing) -> None:
    """They are heard on, as /forget-me tells them. What waited when they were forgotten is not written."""
    async with writing.running():
        now = writing.clock.monotonic()
        writing.writer.on_event(turn(("1", "Before.", now - 2.0)))
        writing.words.take_back({"1"}, turns=False)
        writing.writer.on_event(turn(("1", "On its way.", now - 1.0)))
        # Somebody else has spoken for long when they begin.
        writing.writer.on_event(turn(("2", "Lanterns.", now - 5.0), ("1", "After.", now + 1.0)))
        await writing.pass_time()
    assert writing.channel.thread.posted == ["<t:60:t> **P2:** Lanterns.\n<t:60:t> **P1:** After."]


async def test_what_discord_refuses_for_a_moment_is_written_later(writing: Writing) -> None:
    """After a failure the lines wait, with what is said meanwhile; after too many in a row the writer gives up."""
    posted: list[str] = []
    refused = MOST_FAILURES - 1

    async def fill(_: int, text: str) -> bool:
        nonlocal refused
        if refused:
            refused -= 1
            raise ChatError("No.")
        posted.append(text)
        return True

    writing.channel.thread.fill = fill  # type: ignore[method-assign, assignment]
    async with writing.running() as task:
        writing.writer.on_event(spoken("One."))
        await writing.pass_time(3)
        writing.writer.on_event(spoken("Two."))
        await writing.pass_time(MOST_FAILURES - 3)
        assert posted == ["<t:60:t> **P1:** One.\n<t:60:t> **P1:** Two."]
        refused = MOST_FAILURES
        writing.writer.on_event(spoken("Three."))
        await writing.pass_time(MOST_FAILURES)
        assert isinstance(task.exception(), ChatError)


async def test_a_thread_that_was_deleted_is_asked_once(writing: Writing) -> None:
    """What waits is not tried again, also not at the end: whoever reads the chat is told by the room."""
    async with writing.running() as task:
        writing.channel.thread.gone = 0
        writing.writer.on_event(spoken("One."))
        await writing.pass_time(MOST_FAILURES)
        assert isinstance(task.exception(), ChannelGoneError)
        await writing.writer.finish()
    assert writing.channel.thread.gone == 1


async def test_nothing_stays_that_could_not_be_forgotten_any_more(writing: Writing) -> None:
    """While the database is away, what was posted is taken back and waits, however long that is. So does the mark of
    messages that may have forgotten words.
    """
    async with writing.running() as task:
        writing.away = True
        writing.writer.on_event(spoken("One.", seq=1))
        await writing.pass_time(MOST_FAILURES + 1)
        assert set(writing.channel.thread.posted) == {""}
        writing.away = False
        await writing.pass_time()
        assert (writing.channel.thread.posted[-1], len(writing.posted)) == ("<t:60:t> **P1:** One.", 1)
        writing.away = True
        writing.words.take_back(turns=True)
        await writing.pass_time()
        writing.away = False
        await writing.pass_time()
        assert len(writing.channel.thread.posted) in writing.suspected
        assert not task.done()


async def test_words_that_discord_took_without_saying_so_go_with_their_person(writing: Writing) -> None:
    """Nobody knows whether the message has them, so it goes as soon as they may not be written any more."""
    thread = writing.channel.thread
    request = thread.fill

    async def unanswered(message_id: int, text: str) -> bool:
        await request(message_id, text)
        raise ChatError("Discord gave no answer.")

    thread.fill = unanswered  # type: ignore[method-assign, assignment]
    async with writing.running():
        writing.writer.on_event(spoken("Secret.", speaker="2"))
        await writing.pass_time()
        assert "Secret." in thread.posted[0]
        writing.excluded.add(2)
        await writing.pass_time()
    assert thread.posted == [""]


async def test_the_last_message_grows_as_long_as_it_may(writing: Writing) -> None:
    """It is noted with all of its turns. One that is old, or that somebody has deleted, gets no more."""
    async with writing.running():
        for seq in (1, 2):
            writing.writer.on_event(spoken("Hello.", seq=seq))
            await writing.pass_time()
        assert writing.posted == [(700, 1, (1, 1)), (700, 1, (1, 2))]
        writing.clock.advance(GROWS_FOR_S)
        writing.writer.on_event(spoken("Later.", seq=3))
        await writing.pass_time()
        await writing.channel.thread.delete(2)
        writing.writer.on_event(spoken("Bye.", seq=4))
        await writing.pass_time()
    first, deleted, last = writing.channel.thread.posted
    assert (first.count("Hello."), deleted, last) == (2, "", "<t:60:t> **P1:** Bye.")


@pytest.mark.parametrize("where", ["here", "in another process"])
async def test_no_edit_brings_withdrawn_words_back(writing: Writing, where: str) -> None:
    """The message that had them grows no more, and what the bot was about to repeat is not written."""
    async with writing.running():
        writing.writer.on_event(spoken("Secret.", seq=1))
        await writing.pass_time()
        writing.channel.thread.posted[0] = "made anew"
        if where == "here":
            writing.writer.on_event(turn(("assistant", "Secret?", 0.0), kind=TurnKind.ASSISTANT, seq=2))
            writing.words.take_back({"1"}, turns=True)
        else:
            writing.begun = 1
        writing.writer.on_event(spoken("Hello.", speaker="2", seq=3))
        await writing.pass_time()
    assert writing.channel.thread.posted == ["made anew", "<t:60:t> **P2:** Hello."]
    assert writing.suspected == ({1} if where == "here" else set())


async def test_each_message_is_noted_with_its_turns(writing: Writing) -> None:
    """A turn that is too long for one message is in several, which have nothing else. Of the last ones the room may
    learn later that somebody was forgotten before they were posted.
    """
    async with writing.running():
        writing.writer.on_event(spoken("One.", seq=1))
        writing.writer.on_event(turn(("1", "Lanterns. " * 190, 0.0), ("2", "Lanterns. " * 190, 0.0), seq=2))
        writing.writer.on_event(spoken("Three.", seq=3))
        await writing.pass_time(2)
        await writing.clock.until_somebody_sleeps()
        assert [turns for _, _, turns in writing.posted] == [(1, 1), (2, 2), (2, 2), (3, 3)]
        writing.words.take_back(turns=True)
        await writing.pass_time()
    assert writing.suspected == {1, 2, 3, 4}


@pytest.mark.parametrize("turns", range(12))
async def test_what_is_being_written_when_the_room_ends_is_written_once(writing: Writing, turns: int) -> None:
    """Discord takes long for a message, and the bot is told to leave before, meanwhile or afterwards. What is left
    comes at the end. `turns`: of the event loop.
    """
    posted: list[str] = []

    async def fill(_: int, text: str) -> bool:
        await asyncio.sleep(0)
        posted.append(text)
        await asyncio.sleep(0)
        return True

    writing.channel.thread.fill = fill  # type: ignore[method-assign, assignment]
    async with writing.running():
        writing.writer.on_event(spoken("Lanterns. " * 198))
        writing.writer.on_event(spoken("Two."))
        writing.clock.advance(WRITE_EVERY_S)
        await loop_turns(turns)
        await writing.writer.finish()
    assert [text.count("Lanterns.") for text in posted] == [198, 0]
    assert posted[1] == "<t:60:t> **P1:** Two."


@pytest.mark.parametrize("slow", ["begin", "fill"])
async def test_who_opts_out_while_discord_is_slow_is_left_out_from_then_on(writing: Writing, slow: str) -> None:
    """What was said is more than one message. Somebody opts out while Discord takes the first one, before it has words
    or with them.
    """
    thread = writing.channel.thread
    request = getattr(thread, slow)

    async def slowly(*given: object) -> object:
        writing.excluded.add(2)
        return await request(*given)

    setattr(thread, slow, slowly)
    async with writing.running():
        if slow == "fill":
            writing.writer.on_event(spoken("Lanterns. " * 198))
        for seq, (text, speaker) in enumerate((("Bye.", "1"), ("Secret.", "2"), ("Bye.", "1"))):
            writing.writer.on_event(spoken(text, speaker=speaker, seq=seq + 1))
        await writing.pass_time()
        await writing.clock.until_somebody_sleeps()
    assert thread.posted[-1] == "\n".join(["<t:60:t> **P1:** Bye."] * 2)
    assert writing.left_out == [2]


async def test_a_file_that_cannot_be_read_is_a_sentence(writing: Writing) -> None:
    """The reason is written into the channel; the session still ends."""
    await writing.file.finish()
    assert writing.channel.files == [(1, "a.md", "Ada: Hello.")]
    writing.broken = True
    await writing.file.finish()
    assert writing.channel.written == ["The disk is full."]
    writing.broken, writing.away = False, True
    await writing.file.finish()
    assert (len(writing.channel.files), writing.channel.deleted) == (1, [2])


TURNS_OF_LINES = st.lists(st.integers(0, 3), min_size=1, max_size=8).map(sorted)


@given(
    TURNS_OF_LINES.flatmap(
        lambda seqs: st.tuples(*(st.tuples(st.just(seq), st.text(max_size=40), st.integers(1, 60)) for seq in seqs))
    )
)
def test_a_message_has_as_many_lines_as_fit(lines: tuple[tuple[int, str, int], ...]) -> None:
    """It is never longer than Discord takes, and has at least one line, and whole turns."""
    message, count = first_message((seq, text * times) for seq, text, times in lines)
    assert len(message) <= MOST_CHARS
    assert 1 <= count <= len(lines)
    turns = [seq for seq, _, _ in lines]
    # It ends with a turn, unless that has more than a message.
    assert count == len(lines) or turns[count] != turns[count - 1] or len(set(turns[:count])) == 1


THREAD = ListenRequest("thread", 601)
CAPTIONS = ListenRequest("thread", 601, captions=True, language="fr")
USUAL = ListenRequest("thread", 20, captions=True, language="de")


@pytest.mark.parametrize(
    ("asked", "posts", "always", "written_down", "captions"),
    [
        (None, True, False, None, None),
        (None, True, True, None, USUAL),
        (ListenOnly(FIRST, THREAD), True, True, THREAD, None),
        (ListenOnly(FIRST, THREAD), False, False, THREAD, None),
        (ListenOnly(FIRST, CAPTIONS), True, True, CAPTIONS, CAPTIONS),
        # The managers have ended it, also in a session that runs.
        (ListenOnly(FIRST, CAPTIONS), False, False, None, None),
        (ListenOnly(SECOND, CAPTIONS), True, False, None, None),
        (ListenOnly(SECOND, CAPTIONS), True, True, None, USUAL),
    ],
)
def test_a_request_holds_for_its_session(
    asked: ListenOnly | None,
    posts: bool,
    always: bool,
    written_down: ListenRequest | None,
    captions: ListenRequest | None,
) -> None:
    """Another session has what the server has in each: captions in the chat of the voice channel, or nothing."""
    chosen = ServerSettings(posts_transcripts=posts, captions=always, captions_language="de", listen_only=asked)
    found = chosen.written_down(FIRST)
    assert (None if found is None else found.request) == written_down
    assert chosen.captions_of(FIRST, 20) == captions


async def test_a_thread_is_kept_as_long_as_its_session(writing: Writing) -> None:
    """The next room goes on with it. Another request begins another."""
    servers, guild_id = writing.servers, writing.channel.guild_id
    await servers.write_down(guild_id, FIRST, THREAD)
    for rooms in (1, 2):
        async with writing.running():
            assert servers.of(guild_id).listen_only == ListenOnly(FIRST, THREAD, 700), rooms
    assert writing.channel.threads == [601]
    await servers.write_down(guild_id, SECOND, THREAD)
    async with writing.running():
        assert servers.of(guild_id).listen_only == ListenOnly(SECOND, THREAD)

"""Whatever is made of words is not used once they are taken back, in whichever way and whenever that happens.

Each scene of `SCENES` gives Ada's words to classes that hold them, and yields at each moment at which she may take them
back. The classes are found by what they use of `bot.words`, so a new one needs its scene.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from structlog.typing import EventDict

from bot.background_task import owned_task
from bot.brain.reply import Reply
from bot.brain.tools.frozen_calls import FrozenCall
from bot.brain.tools.toolbox import ToolExchange
from bot.brain.unanswered import UnansweredQuestions
from bot.channel.notice_queue import NoticeQueue
from bot.channel.participants import Participants
from bot.conversation.transcriber import TranscribedUtterance
from bot.conversation.turn_recorder import TurnRecorder
from bot.events import InterimTranscribed, SpokenText, TurnRecorded, ignore_event
from bot.memory.transcript_files import TranscriptFile
from bot.participation.engagement import Engagement
from bot.posts.live_message import LiveMessage
from bot.posts.transcript import WRITE_EVERY_S, TranscriptFilePost, TranscriptWriter
from bot.room.room_status import UnfinishedSpeech
from bot.room.watches import ForgettingWatch
from bot.screen.messages import ShareEnd
from bot.server_settings import no_server_settings
from bot.store.prompts import SentPrompt
from bot.texts.text import verbatim
from bot.wiring.rooms import RoomForgetting
from bot.words import SESSION, Leased, Words
from compaction.errors import StoreError
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.brain.replying import FIRST, ReplyBench
from tests.bot.brain.tools.calls import ADA, ADA_HERSELF, BO, Desk, a_call
from tests.bot.conversation.hearing import HearingBench
from tests.bot.evening import Evening
from tests.bot.realtime.bridge_scene import desk
from tests.bot.screen.watching import PICTURES, Watching
from tests.compaction.rooms import MemoryRoom
from tests.fakes.brain import ScriptedResponder
from tests.fakes.choices import guild_states
from tests.fakes.clock import FakeClock
from tests.fakes.questions import asked
from tests.fakes.recogniser import recognition
from tests.fakes.room_channel import FakeRoomChannel
from tests.patience import settle
from tests.sources import module_name, parsed, sources, statements
from voice.asr.port import RecognitionRequest
from voice.audio import NO_SOUND
from voice.listening.utterance import Utterance

GUILD, EVENING, SECRET = 10, SessionId("evening"), "walrus"


class Talk:
    """A session on a server where the bot asks, with Ada (1) and Bo (2), who agreed. `used`: what was used of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, FakeClock()
        self.channel = FakeRoomChannel(people=[ADA_HERSELF, BO])
        self.guilds = guild_states(self.clock)
        self.used = ""
        self.words: Words

    async def begin(self) -> None:
        guild = await self.guilds.begin_session(GUILD, EVENING)
        guild.asks, self.words = True, guild.words
        for person in (ADA_HERSELF, BO):
            await self.guilds.set_agreed(GUILD, person.id, agrees=True)
        self.clock.advance(1.0)

    def use(self, *found: object) -> None:
        self.used += str(found)

    def use_if(self, found: object) -> None:
        self.use(SECRET if found else "")

    def turn(self, kind: TurnKind = TurnKind.SPEECH, speaker: str = "1") -> TurnRecorded:
        """Return the event that Ada's words, which she began to say just now, are a turn; or that the bot has repeated
        them.
        """
        at = self.clock.monotonic()
        spoken = SpokenText(self.utterance(), recognition(SECRET), at, at)
        turn = Turn(Seq(0), kind, 60.0, 61.0, (TurnPart(speaker, "P", SECRET),))
        return TurnRecorded(turn, at, (spoken,) if kind is TurnKind.SPEECH else ())

    def utterance(self) -> Utterance:
        at = self.clock.monotonic()
        return Utterance("u", ADA_HERSELF.id, at, at + 1.0, at + 1.0, NO_SOUND)


async def opt_out(talk: Talk) -> None:
    await talk.guilds.set_opt_out(GUILD, ADA_HERSELF.id, out=True)


async def agree_no_longer(talk: Talk) -> None:
    await talk.guilds.set_agreed(GUILD, ADA_HERSELF.id, agrees=False)


async def forget_here(talk: Talk) -> None:
    rooms = RoomForgetting(talk.guilds, {}, no_server_settings(), posts=Mock())
    await rooms.before_forgetting("1")
    await rooms.after_forgetting([EVENING])


async def forget_elsewhere(talk: Talk) -> None:
    found = SimpleNamespace(number=2, seq=None, reaches=lambda _: True)
    # The store is away at first.
    answers = iter([None, (found,)])
    sessions = SimpleNamespace(people_among=lambda here, _: {"1": here})

    async def forgettings_after(_: int) -> tuple[object, ...]:
        if (answer := next(answers)) is None:
            raise StoreError("Away.")
        return answer

    sessions.forgettings_after = forgettings_after
    timeline = cast("Any", SimpleNamespace(session_id=EVENING, turns=(), refresh=AsyncMock()))
    watch = ForgettingWatch(cast("Any", sessions), timeline, talk.words, talk.channel, seen=1, clock=talk.clock)
    await watch.check()
    await watch.check()


WAYS = (opt_out, agree_no_longer, forget_here, forget_elsewhere)


async def unfinished_speech(talk: Talk) -> AsyncGenerator[None, None]:
    speech, at = UnfinishedSpeech(talk.channel, talk.words), talk.clock.monotonic()
    yield
    speech.on_event(InterimTranscribed(ADA_HERSELF.id, SECRET, at, at, at))
    yield
    talk.use(speech.words())


async def names_of_the_gone(talk: Talk) -> AsyncGenerator[None, None]:
    participants = Participants(talk.channel, talk.words)
    participants.present()
    talk.channel.people.remove(ADA_HERSELF)
    yield
    talk.use_if(participants.gone())


async def live_message(talk: Talk) -> AsyncGenerator[None, None]:
    message = LiveMessage(
        talk.channel,
        doing=lambda: verbatim("Hm."),
        costs=(await talk.guilds.of_guild(GUILD)).costs,
        clock=talk.clock,
        words=talk.words,
    )
    message.on_event(talk.turn())
    yield
    async with owned_task(message.run(), name="live-message"):
        await talk.clock.until_somebody_sleeps()
    talk.use_if("<@1>" in str(talk.channel.cards[-1][1].fields))


async def last_text(talk: Talk) -> AsyncGenerator[None, None]:
    bench, heard = HearingBench(words=talk.words), recognition(SECRET, mean_logprob=-0.9)
    first = talk.utterance()
    yield
    bench.transcriber.on_accepted(first, TranscribedUtterance(heard, None, 0.0))
    yield
    talk.use_if(bench.transcriber.guard(talk.utterance(), TranscribedUtterance(heard, None, 0.0)))


async def pause(talk: Talk) -> AsyncGenerator[None, None]:
    bench, said = HearingBench(words=talk.words), talk.utterance()
    yield
    bench.hearing.read(said, TranscribedUtterance(recognition(SECRET), None, 0.0))
    talk.use(bench.seen)


class Posted:
    """Stands for `PostedTranscripts`. While it waits, words may be taken back."""

    async def begin(self, _: SessionId) -> None:
        await asyncio.sleep(0)

    def filling(self, *_: object, **__: object) -> Any:
        return owned_task(asyncio.sleep(0), name="filling")

    async def mark(self, _: object) -> None:
        """See `PostedTranscripts.mark`."""


async def captions(talk: Talk) -> AsyncGenerator[None, None]:
    writer = TranscriptWriter(
        talk.channel,
        EVENING,
        601,
        words=talk.words,
        clock=talk.clock,
        servers=no_server_settings(),
        posted=cast("Any", Posted()),
    )
    said, repeated = talk.turn(), talk.turn(TurnKind.ASSISTANT, "assistant")
    yield
    writer.on_event(said)
    async with owned_task(writer.run(), name="captions"):
        await talk.clock.until_somebody_sleeps()
        if not talk.words.epoch:
            writer.on_event(repeated)
        yield
        talk.clock.advance(WRITE_EVERY_S)
        await asyncio.sleep(0)
        await talk.clock.until_somebody_sleeps()
    talk.use(talk.channel.thread.posted)


async def file_post(talk: Talk) -> AsyncGenerator[None, None]:
    is_read, goes_on = asyncio.Event(), asyncio.Event()

    async def read() -> TranscriptFile:
        content = b"Nothing." if talk.words.epoch else SECRET.encode()
        is_read.set()
        await goes_on.wait()
        return TranscriptFile("a.md", content, 1, 0)

    file = TranscriptFilePost(talk.channel, EVENING, cast("Any", Posted()), read, words=talk.words)
    yield
    posting = asyncio.create_task(file.finish())
    await is_read.wait()
    yield
    goes_on.set()
    await posting
    talk.use(talk.channel.files[-1])


async def engagement(talk: Talk) -> AsyncGenerator[None, None]:
    engaged, at = Engagement(talk.words, window_s=60.0), talk.clock.monotonic()
    engaged.on_reply_ended(1, "So it is.", now=at)
    yield
    talk.use_if(engaged.is_engaged(1, at=at))


async def notices(talk: Talk) -> AsyncGenerator[None, None]:
    queue = NoticeQueue(talk.channel, name="notices")
    queue.add(verbatim(SECRET), lease=talk.words.lease({SESSION}, since=None))
    yield
    async with owned_task(queue.run(), name="notices"):
        await queue.until_written()
    talk.use(talk.channel.written)


async def tool_results(talk: Talk) -> AsyncGenerator[None, None]:
    room = Desk()
    room.toolbox.words = talk.words
    use, later = room.toolbox.for_asker(ADA), room.toolbox.for_asker(ADA)
    yield
    later.record(Seq(6), [ToolExchange((a_call("echo"),), (SECRET,))])
    room.goes_on.clear()
    running = asyncio.create_task(use.run_all([a_call("echo", SECRET)]))
    await asyncio.sleep(0)
    yield
    room.goes_on.set()
    talk.use(await running, room.toolbox.exchanges.steps({6}))


async def late_call(talk: Talk) -> AsyncGenerator[None, None]:
    room = Desk()
    room.toolbox.words = talk.words
    use = room.toolbox.for_asker(ADA)
    yield
    await use.run_all([a_call("post", SECRET)])
    talk.use_if(room.channel.calls)
    room.toolbox.words.take_back(turns=True)


async def pressed_call(talk: Talk) -> AsyncGenerator[None, None]:
    room = Desk()
    room.toolbox.words = talk.words
    await room.toolbox.for_asker(ADA).run_all([a_call("post", SECRET)])
    yield
    room.channel.calls[0].press(ADA_HERSELF)
    yield
    await room.toolbox.frozen.finish(within_s=1.0)
    talk.use(room.called)


async def running_call(talk: Talk) -> AsyncGenerator[None, None]:
    room = Desk()
    room.toolbox.words = talk.words
    room.goes_on.clear()
    (call,) = await room.toolbox.for_asker(ADA).run_all([a_call("post", SECRET)])
    assert isinstance(call, FrozenCall)
    room.channel.calls[0].press(ADA_HERSELF)
    for _ in range(5):
        await asyncio.sleep(0)
    yield
    room.goes_on.set()
    await room.toolbox.frozen.finish(within_s=1.0)
    yield
    talk.use(call.result)


async def unanswered(talk: Talk) -> AsyncGenerator[None, None]:
    kept, at = UnansweredQuestions(talk.words), talk.clock.monotonic()
    question = asked(talk.turn().turn, ended_at=at)
    yield
    kept.keep(question, now=at)
    yield
    talk.use_if(kept.continued_by(1, ended_at=at + 1.0))
    talk.use_if(kept.take_due(at))


async def reply(talk: Talk) -> AsyncGenerator[None, None]:
    goes_on = asyncio.Event()
    bench = ReplyBench(ScriptedResponder(goes_on, SECRET), words=talk.words)
    async with bench.running():
        bench.replier.ask(FIRST)
        await settle(lambda: bench.replier.busy)
        yield
        goes_on.set()
        await settle(lambda: bench.voice.spoken or not bench.replier.busy)
        talk.use(bench.voice.spoken)
        bench.replier.cancel_all("over")


async def recorded_reply(talk: Talk) -> AsyncGenerator[None, None]:
    async with MemoryRoom() as room:
        participants = Participants(talk.channel, talk.words)
        recorder = TurnRecorder(room.timeline, participants, own_name="R", clock=talk.clock, observe=ignore_event)
        made = Reply(FIRST, talk.clock.monotonic(), talk.words.lease({SESSION}, since=None))
        yield
        turn = await recorder.record_written_reply(made, SECRET)
        assert turn.tombstone is not bool(turn.parts)
        talk.use(turn)


async def prompts(talk: Talk) -> AsyncGenerator[None, None]:
    async with Evening(talk.folder / "roomtone.db") as evening:
        evening.words = talk.words
        upkeep = evening.new_upkeep()
        await evening.talk(1)
        upkeep.on_prompt_sent(evening.prompt(SECRET))
        store, goes_on, waiting = evening.prompts.store, asyncio.Event(), list[object]()

        async def slowly(prompts: Sequence[SentPrompt], *, is_current: Callable[[int], bool]) -> bool:
            waiting.append(prompts)
            await goes_on.wait()
            return await store(prompts, is_current=is_current)

        evening.prompts.store = slowly  # type: ignore[method-assign]
        yield
        storing = asyncio.create_task(upkeep.run_once())
        await settle(lambda: waiting or storing.done())
        yield
        goes_on.set()
        await storing
        talk.use(await evening.prompts_kept())


async def sounds(talk: Talk) -> AsyncGenerator[None, None]:
    async with desk(words=talk.words) as room:
        room.session.heard.append(SECRET)
        hearing = asyncio.create_task(
            room.bridge.recognise(RecognitionRequest(np.full(800, 9, np.int16), speaker_id=1))
        )
        await asyncio.sleep(0)
        yield
        await hearing
        yield
        talk.use_if(SECRET in str(room.session.items) and not talk.words.excludes(1))


async def screen(talk: Talk) -> AsyncGenerator[None, None]:
    watching = Watching()
    watching.words = talk.words
    async with watching.room() as room:
        sharer = await room.welcome(ADA_HERSELF, "n1")
        room.start(sharer, "window")
        watching.readers.texts = [SECRET]
        watching.readers.holding = asyncio.Event()
        await room.picture(sharer, PICTURES["dark"])
        await watching.readers.waiting.wait()
        yield
        watching.readers.holding.set()
        await asyncio.sleep(0)
        await room.end(sharer, ShareEnd.STOPPED)
        talk.use(watching.told())


# Each with the classes that it tries. Most of the last line are tried through a whole room (tests/bot/room).
SCENES: dict[Callable[[Talk], AsyncGenerator[None, None]], tuple[str, ...]] = {
    unfinished_speech: ("UnfinishedSpeech",),
    names_of_the_gone: ("Participants",),
    live_message: ("LiveMessage",),
    last_text: ("Transcriber",),
    pause: (),
    captions: ("TranscriptWriter",),
    file_post: ("TranscriptFilePost",),
    engagement: ("Engagement",),
    tool_results: ("Toolbox", "QuestionTools"),
    late_call: ("QuestionTools",),
    pressed_call: ("FrozenCalls",),
    running_call: ("FrozenCall",),
    unanswered: ("Unanswered", "UnansweredQuestions"),
    reply: ("Replier",),
    recorded_reply: ("Reply",),
    prompts: ("MemoryUpkeep",),
    sounds: ("RealtimeBridge", "RealtimeInput"),
    screen: ("RoomScreens", "Sharer"),
    notices: ("NoticeQueue", "Reminding", "LiveRoom", "TypedTalk"),
}


# Of these nobody can tell whose words they repeat.
OF_SESSION = (last_text, notices, tool_results, late_call, unanswered, reply, recorded_reply, prompts)


async def is_used(
    scene: Callable[[Talk], AsyncGenerator[None, None]], way: Callable[[Talk], Awaitable[None]], at: int, folder: Path
) -> tuple[bool, int]:
    """Play a scene, and take words back at one of its moments; -1: at none. Return whether Ada's words were used, and
    how many moments there are.
    """
    (here := folder / str(at)).mkdir()
    talk, moment = Talk(here), 0
    await talk.begin()
    async with aclosing(scene(talk)) as playing:
        async for _ in playing:
            if moment == at:
                talk.clock.advance(1.0)
                await way(talk)
            moment += 1
    return SECRET in talk.used, moment


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_nothing_is_used_that_was_taken_back(
    scene: Callable[[Talk], AsyncGenerator[None, None]], way: Callable[[Talk], Awaitable[None]], tmp_path: Path
) -> None:
    """Before it is there, while it waits, and afterwards. Without that it is used."""
    used, moments = await is_used(scene, way, -1, tmp_path)
    assert used
    for at in range(moments):
        assert await is_used(scene, way, at, tmp_path) == (False, moments), f"at moment {at} of {moments}"


@pytest.mark.parametrize("scene", OF_SESSION, ids=lambda scene: scene.__name__)
async def test_what_may_repeat_anybody_is_not_used_after_anybody_takes_words_back(
    scene: Callable[[Talk], AsyncGenerator[None, None]], tmp_path: Path
) -> None:
    """Bo opts out while it waits."""

    async def bo_opts_out(talk: Talk) -> None:
        await talk.guilds.set_opt_out(GUILD, BO.id, out=True)

    _, moments = await is_used(scene, bo_opts_out, -1, tmp_path)
    assert await is_used(scene, bo_opts_out, moments - 1, tmp_path) == (False, moments)


def test_whatever_leases_words_has_its_scene() -> None:
    """A class that makes or keeps a lease, or compares epochs."""
    marks = ("Leased", "Lease |", "lease: Lease", ".lease(", "words.epoch", "words.times")
    found = {"Engagement"} | {
        node.name
        for path in sources()
        if module_name(path).startswith("bot.") and module_name(path) != "bot.words"
        for node in statements(parsed(path))
        if isinstance(node, ast.ClassDef) and any(mark in ast.unparse(node) for mark in marks)
    }
    assert found == {name for names in SCENES.values() for name in names}


def test_a_lease_ends_once_and_stays_over() -> None:
    """What somebody says after it was taken back is theirs anew. Others' words are not touched."""
    words = Words(monotonic=lambda: 5.0)
    ada, bo, late = (Leased("", words.lease({who}, since=since)) for who, since in ((1, None), ("2", None), (1, 4.0)))
    everybody, ended = words.lease({SESSION}, since=None), list[str]()
    ada.lease.on_end(lambda: ended.append("Ada"))
    words.take_back({"1"}, turns=False)
    assert [each.take() for each in (ada, bo)] == [None, ""]
    assert everybody.valid
    assert late.take() is None
    assert words.lease({1}, since=5.0).valid
    assert not words.lease({1}, since=4.9).valid
    words.take_back(turns=True)
    assert (ended, bo.take(), everybody.valid) == (["Ada"], "", False)


def test_a_stop_that_fails_keeps_no_other_from_being_called(logs: list[EventDict]) -> None:
    """It is logged. One that comes too late is called at once."""
    words, stopped = Words(), list[int]()
    first, second = (words.lease({SESSION}, since=None) for _ in range(2))
    first.on_end(lambda: 1 // 0)
    first.on_end(lambda: stopped.append(1))
    second.on_end(lambda: stopped.append(2))
    words.take_back(turns=True)
    first.on_end(lambda: stopped.append(3))
    assert (stopped, [line["event"] for line in logs]) == ([1, 2, 3], ["words_not_stopped"])


@pytest.mark.parametrize("sources", [(), ("nobody",), (1, "the walrus")])
def test_words_of_nobody_are_not_used(sources: tuple[int | str, ...], logs: list[EventDict]) -> None:
    """It is a fault of ours, which the log has without the words."""
    lease = Words().lease(sources, since=None)
    assert not lease.valid
    assert [line["event"] for line in logs] == ["lease_without_source"]
    assert "walrus" not in str(logs)


def test_a_lease_that_nobody_keeps_holds_nothing(logs: list[EventDict]) -> None:
    """Leases of hours do not pile up."""
    words = Words()
    words.lease({SESSION}, since=None).on_end(lambda: 1 // 0)
    words.take_back(turns=True)
    assert logs == []

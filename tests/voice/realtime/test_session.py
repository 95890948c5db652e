"""The session through the real client library, against the local realtime server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.typing import EventDict

from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_behaviour import ClientError, FunctionCall, RealtimeBehaviour, RealtimeMode
from rehearsal.servers.realtime_session import ServerSession
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.virtual_time import virtually
from tests.patience import PATIENCE_S, patiently
from tests.rehearsal.servers.realtime_client import FakeModel, report_usage, served, tone
from voice.audio import Pcm
from voice.errors import RealtimeError
from voice.realtime import reply_queue
from voice.realtime.connection import RealtimeConnection
from voice.realtime.effects import ResponseStatus
from voice.realtime.port import (
    REALTIME_LIMITS,
    Briefing,
    ConversationItem,
    ItemRole,
    RealtimeFailed,
    RealtimeLimits,
    RealtimeNews,
    RealtimeRenewed,
    RealtimeRestored,
    RealtimeTool,
    RealtimeToolCall,
    ReplyPiece,
    ReplyResumed,
)
from voice.realtime.protocol import BROKEN_OFF
from voice.realtime.reply_queue import FinishedResponse
from voice.realtime.session import NOT_WRITTEN, PROVEN_S, RealtimeSession
from voice.realtime.session_tools import TOOL_TIMEOUT_S, tool_output
from voice.realtime.settings import RealtimeSettings

USAGE = {"total_tokens": 47, "input_tokens": 40, "output_tokens": 7}
# What a busy machine needs.
PATIENT = RealtimeLimits(hear_timeout_s=PATIENCE_S, reply_timeout_s=PATIENCE_S)
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


class Room:
    """A session with its briefing, its clock and the events that it reported."""

    def __init__(self, base_url: str, *, limits: RealtimeLimits = PATIENT, **settings: object) -> None:
        self.clock = FakeClock()
        self.briefing = Briefing(
            "Be kind.", tools=(RealtimeTool("look", "Looks.", {"type": "object", "properties": {}}),)
        )
        self.news: list[RealtimeNews] = []
        self.finished: list[FinishedResponse] = []
        self.calls: list[RealtimeToolCall] = []
        self.before_tool: Callable[[], None] = lambda: None
        self.session = RealtimeSession(
            RealtimeSettings.model_validate({"model": "gpt-realtime", "base_url": base_url, **settings}),
            api_key="local",
            brief=lambda: self.briefing,
            clock=self.clock,
            on_event=self.news.append,
            on_response=self.finished.append,
            run_tool=self._run_tool,
            limits=limits,
        )

    async def _run_tool(self, call: RealtimeToolCall) -> str:
        self.calls.append(call)
        self.before_tool()
        if call.arguments == "{}":
            return "a cat"
        raise ValueError(call.arguments)

    async def answer(self) -> tuple[str, int]:
        """Return the words of a reply and the length of its sound in milliseconds."""
        words, samples = "", 0
        async with asyncio.timeout(PATIENCE_S):
            async for piece in self.session.reply():
                if isinstance(piece, ReplyResumed):
                    # The session was still connecting when the reply was requested.
                    assert piece == ReplyResumed("")
                    continue
                words += piece.words
                samples += 0 if piece.pcm is None else len(piece.pcm)
        return words, samples * 1000 // 24_000

    async def ask(self) -> None:
        """Let Ada say something, and wait for the whole reply."""
        await self.session.send_audio(_speech(), speakers="Ada speaks:")
        await self.answer()

    async def until_reported(self, count: int = 1) -> None:
        """Wait until the session has reported `count` events. The clock moves on meanwhile, so that backoff ends."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.news) < count:
                await asyncio.sleep(0.005)
                self.clock.advance(0.05)

    async def time_passes(self, until: Callable[[], bool], *, step_s: float) -> None:
        """Move the clock until the condition holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not until():
                await asyncio.sleep(0.005)
                self.clock.advance(step_s)


@asynccontextmanager
async def room_of(
    server: LocalRealtimeServer | str, *, limits: RealtimeLimits = PATIENT, **settings: object
) -> AsyncIterator[Room]:
    room = Room(server if isinstance(server, str) else server.base_url, limits=limits, **settings)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(room.session.run())
        yield room
        running.cancel()


def _speech(words: int = 2) -> Pcm:
    return tone(words, 16_000)


async def test_people_are_heard_and_answered() -> None:
    """Speech at 16 kHz is sent at 24 kHz after the speaker's name; its text and the reply's sound and words
    come back.
    """
    mind = FakeModel("hello there")
    async with served(mind) as server, room_of(server) as room:
        heard = await room.session.send_audio(_speech(), speakers="Ada speaks:")
        assert heard.text == "hello there"
        assert len(heard.item_ids) == 2
        assert len(mind.pcm[0]) == pytest.approx(len(tone(2)), abs=200)
        assert await room.answer() == ("You said hello there", 1000)
        assert server.asked[0].items == (("user", "Ada speaks:"), ("user", "hello there"))
        assert server.asked[0].instructions == "Be kind."


async def test_what_each_answer_cost_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens are those that the endpoint reports, and the answer's time is the clock's."""
    report_usage(monkeypatch, USAGE)
    async with served(FakeModel("hello there")) as server, room_of(server) as room:
        await room.ask()
    assert room.finished == [FinishedResponse(ResponseStatus.COMPLETE, 40, 7, 0.0)]


async def test_a_broken_off_answer_is_truncated_on_the_server() -> None:
    """A reply that is broken off is truncated on the server, so the next reply knows what was heard."""
    mind = FakeModel("tell me", "go on")
    mind.answers = ["one two three four"]
    async with served(mind) as server, room_of(server) as room:
        await room.ask()
        room.session.interrupt(500)
        await room.ask()
        assert ("assistant", "one two") in server.asked[1].items


async def test_a_reply_that_comes_too_fast_and_too_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is played; the rest is not, and the model is told where its reply ended. The metric counts one."""
    monkeypatch.setattr(reply_queue, "MOST_SOUND_S", 1)
    mind = FakeModel("tell me", "go on")
    mind.answers = [" ".join(WORDS), "nine"]
    async with served(mind) as server, room_of(server) as room:
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        reply = room.session.reply()
        async with asyncio.timeout(PATIENCE_S):
            taken = [await anext(reply)]
            await room.time_passes(lambda: room.session.queues[1].dropped["full"] == 1, step_s=0)
            taken += [piece async for piece in reply]
        pieces = [piece for piece in taken if isinstance(piece, ReplyPiece)]
        samples = sum(0 if piece.pcm is None else len(piece.pcm) for piece in pieces)
        played = "".join(piece.words for piece in pieces).split()
        assert samples < 2 * 24_000
        assert played == WORDS[: len(played)]
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        assert (await room.answer())[0] == "nine"
        (kept,) = [text for role, text in server.asked[1].items if role == "assistant"]
        assert kept.split() == WORDS[: samples * 4 // 24_000]
        assert room.session.queues[1].dropped == {"full": 1}


async def test_items_instructions_and_tools_change_while_it_lives() -> None:
    """Instructions, items and tools can change during a session, for example after a compaction."""
    async with served(FakeModel("x")) as server, room_of(server) as room:
        room.briefing = Briefing("Be kind.")
        await room.session.ready.wait()
        room.session.add_item(ConversationItem("turn_1", ItemRole.USER, "(Bo joined the channel.)"))
        room.session.add_item(ConversationItem("turn_2", ItemRole.USER, "folded"))
        room.session.delete_items(["turn_2"])
        room.session.set_instructions("Be brief.")
        room.session.set_tools([RealtimeTool("dig", "Digs.", {"type": "object"})])
        await room.ask()
        assert [text for _, text in server.asked[0].items] == ["(Bo joined the channel.)", "Ada speaks:", "x"]
        assert server.asked[0].instructions == "Be brief."
        assert server.asked[0].tools == ("dig",)


async def test_tools_are_run_and_their_failures_told() -> None:
    """The model gets a tool's result, or the message that the tool failed. Both calls and results can be deleted."""
    mind = FakeModel("what is there")
    mind.answers = [FunctionCall("look", "{}"), FunctionCall("look", "[]"), "I see a cat"]
    async with served(mind) as server, room_of(server) as room:
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        words, _ = await room.answer()
        assert words == "I see a cat"
        outputs = [text for kind, text in server.asked[2].items if kind == "function_call_output"]
        assert outputs == ["a cat", "The tool failed."]
        room.session.delete_tool_calls()
        await room.answer()
        assert {kind for kind, _ in server.asked[3].items} == {"user", "assistant"}


async def test_what_tools_take_is_not_the_models_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that looks two things up has its time for the answer after each of them."""
    mind = FakeModel("what is there")
    mind.answers = [FunctionCall("look", "{}"), FunctionCall("look", "{}"), "I see a cat"]
    limits = RealtimeLimits(reply_timeout_s=1.5 * TOOL_TIMEOUT_S)
    async with served(mind) as server, room_of(server, limits=limits) as room:
        room.before_tool = lambda: pass_loop_time(monkeypatch, 0.9 * TOOL_TIMEOUT_S)
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        words, _ = await room.answer()
        assert (words, len(room.calls)) == ("I see a cat", 2)


async def test_it_is_renewed_before_it_expires_with_the_window() -> None:
    """A session is replaced before it expires, while nobody speaks, and the new session knows what was said."""
    async with served(FakeModel("one", "two")) as server, room_of(server, limits=RealtimeLimits(session_s=600)) as room:
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        room.briefing = Briefing("New.", (ConversationItem("turn_1", ItemRole.USER, "[21:04] Ada: one"),))
        room.clock.advance(600)
        await room.until_reported()
        assert room.news == [RealtimeRenewed("expiring")]
        await room.ask()
        assert server.sessions == 2
        assert server.asked[0].items[0] == ("user", "[21:04] Ada: one")
        assert server.asked[0].instructions == "New."


async def test_a_session_that_expires_in_an_answer_goes_on_in_the_next() -> None:
    """If a session expires during a reply, the next session continues the reply, and people hear only a pause."""
    mind = FakeModel("tell me a story")
    mind.answers = ["one two three four five six seven eight", "nine ten"]
    async with served(mind, RealtimeBehaviour(expires_in_response=1)) as server, room_of(server) as room:
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        async with asyncio.timeout(PATIENCE_S):
            taken = [piece async for piece in room.session.reply()]
        pieces = [piece for piece in taken if isinstance(piece, ReplyPiece)]
        (resumed,) = [piece for piece in taken if isinstance(piece, ReplyResumed)]
        words = "".join(piece.words for piece in pieces)
        length_ms = sum(0 if piece.pcm is None else len(piece.pcm) for piece in pieces) * 1000 // 24_000
        assert [item_id.startswith("cut_") for item_id in resumed.item_ids] == [True, True]
        assert words.startswith("one two three")
        assert words.endswith("nine ten")
        assert length_ms > 1000
        assert room.news == [RealtimeRenewed("expired")]
        assert [each.status for each in room.finished] == [ResponseStatus.FAILED, ResponseStatus.COMPLETE]
        assert room.session.usable
        assert server.asked[1].items == (("assistant", resumed.said), ("system", BROKEN_OFF))
        assert words.startswith(resumed.said)


@pytest.mark.parametrize("mode", [RealtimeMode.BROKEN, RealtimeMode.GARBAGE])
async def test_after_failures_in_a_row_it_is_given_up_with_a_sentence(mode: RealtimeMode) -> None:
    """After three failures in a row the session is given up with a message, and waiting callers get an
    error at once.
    """
    async with served(FakeModel(), RealtimeBehaviour(mode=mode)) as server, room_of(server) as room:
        waiting = asyncio.ensure_future(room.session.send_audio(_speech(), speakers="Ada speaks:"))
        await room.until_reported(3)
        assert isinstance(room.news[-1], RealtimeFailed)
        assert not room.session.usable
        await asyncio.wait({waiting})
        assert isinstance(waiting.exception(), RealtimeError)
        with pytest.raises(RealtimeError):
            await room.session.send_audio(_speech(), speakers="Ada speaks:")


async def test_a_session_whose_settings_are_refused_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would answer without instructions, with another voice. The sentence names what was refused."""

    def refuse(self: ServerSession, session: dict[str, Any]) -> None:
        raise ClientError("invalid_value", "Invalid value: 'mariin'.", "session.audio.output.voice")

    monkeypatch.setattr(ServerSession, "configure", refuse)
    async with served(FakeModel()) as server, room_of(server, voice="mariin") as room:
        await room.until_reported()
        (told,) = room.news
        assert isinstance(told, RealtimeFailed)
        assert not told.error.retryable
        assert "(session.audio.output.voice). Check realtime.voice" in str(told.error)
        assert not server.asked


def _refuse_long_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server refuse tools as OpenAI does: the first whose description is too long, and all that was sent."""
    configure = ServerSession.configure

    def refuse(self: ServerSession, session: dict[str, Any]) -> None:
        for number, tool in enumerate(session.get("tools", ())):
            if len(tool["description"]) > 1_024:
                raise ClientError("string_above_max_length", "Too long.", f"session.tools[{number}].description")
        configure(self, session)

    monkeypatch.setattr(ServerSession, "configure", refuse)


@pytest.mark.parametrize("from_start", [True, False])
async def test_a_tool_that_is_refused_is_left_out(from_start: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tool of an MCP server that the service does not take costs neither the session nor the other tools."""
    _refuse_long_descriptions(monkeypatch)
    tools = (RealtimeTool("dig", "D" * 2_000), RealtimeTool("look", "Looks."))
    async with served(FakeModel("a", "b")) as server, room_of(server) as room:
        if from_start:
            room.briefing = Briefing("Be kind.", tools=tools)
            await room.time_passes(room.session.ready.is_set, step_s=0)
        else:
            room.briefing = Briefing("Be kind.")
            await room.time_passes(room.session.ready.is_set, step_s=0)
            room.session.set_tools(tools)
        await room.ask()
        assert (server.asked[-1].tools, server.asked[-1].instructions) == (("look",), "Be kind.")
        assert room.news == [RealtimeRenewed("reconfigured")] * from_start


async def test_a_refused_tool_does_not_keep_a_service_away_that_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each refused tool ends a connection, and none of these is waited for as the service itself is."""
    _refuse_long_descriptions(monkeypatch)
    async with served(FakeModel(), RealtimeBehaviour(mode=RealtimeMode.BROKEN)) as server, room_of(server) as room:
        room.briefing = Briefing(
            "Be kind.", tools=(RealtimeTool("dig", "D" * 2_000), RealtimeTool("fill", "F" * 2_000))
        )
        await room.until_reported(3)
        assert isinstance(room.news[-1], RealtimeFailed)
        server.behaviour.mode = RealtimeMode.ANSWER
        await room.clock.until_somebody_sleeps()
        room.clock.advance(REALTIME_LIMITS.retry_after_s)
        await room.time_passes(lambda: RealtimeRestored() in room.news, step_s=0)


async def test_a_redirect_to_another_server_is_told_and_not_followed() -> None:
    """The sound of the conversation goes to the server that the notice names. Waiting does not help."""
    async with served(FakeModel()) as elsewhere:

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            location = elsewhere.base_url.replace("http", "ws", 1) + "/realtime?model=local-realtime"
            writer.write(f"HTTP/1.1 307 Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()

        async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
            asked = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with room_of(asked) as room:
                await room.until_reported()
        (failed,) = room.news
        assert isinstance(failed, RealtimeFailed)
        assert asked in str(failed.error)
        assert "realtime.base_url" in str(failed.error)


async def test_nobody_there_is_a_sentence() -> None:
    """The message for a server that is not running names its address."""
    async with served(FakeModel()) as server:
        gone = server.base_url
    async with room_of(gone, limits=RealtimeLimits(failures_before_fallback=1)) as room:
        await room.until_reported()
        (failed,) = room.news
        assert isinstance(failed, RealtimeFailed)
        assert str(failed.error) == (
            f"Nothing answers at {gone}. Check realtime.base_url and that the server is running."
        )


async def test_failed_answers_are_errors_and_count() -> None:
    """A failed reply raises an error and is counted. An exceeded quota gives the session up at once."""
    behaviour = RealtimeBehaviour(mode=RealtimeMode.FAIL_RESPONSE)
    async with served(FakeModel("a", "b"), behaviour) as server, room_of(server) as room:
        await room.session.send_audio(_speech(), speakers="Ada speaks:")
        with pytest.raises(RealtimeError, match="server_error"):
            await room.answer()
        assert room.session.usable
        behaviour.mode = RealtimeMode.RATE_LIMITED
        with pytest.raises(RealtimeError, match="quota"):
            await room.answer()
        assert not room.session.usable


async def test_an_answer_that_stalls_is_an_error() -> None:
    """A reply raises an error if no part of it comes within the time limit."""
    behaviour = RealtimeBehaviour(mode=RealtimeMode.STALL)
    async with (
        served(FakeModel("a"), behaviour) as server,
        room_of(server, limits=RealtimeLimits(reply_timeout_s=0.05)) as room,
    ):
        with pytest.raises(RealtimeError, match="in time"):
            await room.answer()


async def test_what_is_never_written_down_is_heard_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that is never transcribed returns the items that hold it. Three of them give the session up, although
    replies come.
    """
    behaviour = RealtimeBehaviour(mode=RealtimeMode.UNWRITTEN)
    async with (
        served(FakeModel(), behaviour) as server,
        room_of(server, limits=RealtimeLimits(hear_timeout_s=15)) as room,
    ):
        for number in range(3):
            assert room.session.usable, number
            hearing = asyncio.ensure_future(room.session.send_audio(_speech(), speakers="Ada speaks:"))
            await room.answer()
            pass_loop_time(monkeypatch, 16)
            heard = await hearing
            assert (heard.text, len(heard.item_ids)) == (None, 2)
        assert [str(each.error) for each in room.news if isinstance(each, RealtimeFailed)] == [NOT_WRITTEN]


async def test_a_service_that_says_nothing_at_all_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that takes the connection and what is said, and sends nothing, is given up although nobody has asked
    for a reply.
    """
    async with (
        served(FakeModel(), RealtimeBehaviour(mode=RealtimeMode.SILENT)) as server,
        room_of(server, limits=RealtimeLimits(hear_timeout_s=15)) as room,
    ):
        # Once it is connected, it sleeps until the connection is to be renewed.
        await room.clock.until_somebody_sleeps()
        for number in range(3):
            assert room.session.usable, number
            hearing = asyncio.ensure_future(room.session.send_audio(_speech(), speakers="Ada speaks:"))
            await room.time_passes(lambda: room.session.queues[0].waiting == 0, step_s=0)
            pass_loop_time(monkeypatch, 16)
            await asyncio.wait({hearing})
            assert str(hearing.exception()) == NOT_WRITTEN
        assert [str(each.error) for each in room.news if isinstance(each, RealtimeFailed)] == [NOT_WRITTEN]


async def test_a_long_quiet_session_that_ends_is_no_failure() -> None:
    """A long quiet session that the server ends is no failure, because some accounts have shorter sessions than the
    setting.
    """
    async with (
        served(FakeModel()) as server,
        room_of(server, limits=RealtimeLimits(failures_before_fallback=1)) as room,
    ):
        for number in range(1, 4):
            await patiently(room.session.ready.wait())
            room.clock.advance(PROVEN_S)
            await server.expire()
            await room.until_reported(number)
        assert room.session.usable


async def test_it_is_tried_again_until_it_is_well_and_nobody_is_told_between() -> None:
    """During an outage the session retries without reporting each failure, and reports once when the service works
    again. It then has the current briefing.
    """
    async with served(FakeModel("hi"), RealtimeBehaviour(mode=RealtimeMode.GONE)) as server, room_of(server) as room:
        await room.until_reported(3)
        failed = room.news[-1]
        assert isinstance(failed, RealtimeFailed)
        assert "status 503" in str(failed.error)
        begun = room.clock.monotonic()
        await room.time_passes(lambda: room.clock.monotonic() > begun + 300, step_s=20)
        assert len(room.news) == 3
        server.behaviour.mode = RealtimeMode.ANSWER
        room.briefing = Briefing("New.", (ConversationItem("turn_1", ItemRole.USER, "[21:04] Ada: tell me"),))
        await room.time_passes(lambda: room.session.usable, step_s=5)
        assert room.news[3:] == [RealtimeRestored()]
        await room.ask()
        assert (server.asked[0].instructions, server.asked[0].items[0]) == ("New.", ("user", "[21:04] Ada: tell me"))


async def test_a_connection_over_which_nothing_comes_is_not_well() -> None:
    async with served(FakeModel(), RealtimeBehaviour(mode=RealtimeMode.BROKEN)) as server, room_of(server) as room:
        await room.until_reported(3)
        server.behaviour.mode = RealtimeMode.SILENT
        before = server.sessions
        await room.time_passes(lambda: server.sessions == before + 2, step_s=5)
        assert not room.session.usable


async def test_a_trouble_that_has_become_lasting_is_told_and_not_tried_again() -> None:
    """If a failure becomes permanent during an outage, for example a withdrawn key, it is reported and not retried."""
    async with served(FakeModel(), RealtimeBehaviour(mode=RealtimeMode.BROKEN)) as server:
        room = Room(server.base_url)
        running = asyncio.create_task(room.session.run(), name="session-under-test")
        await room.until_reported(3)
        server.behaviour.mode = RealtimeMode.WRONG_KEY
        await room.time_passes(running.done, step_s=5)
        await running
        failed = room.news[-1]
        assert isinstance(failed, RealtimeFailed)
        assert not failed.error.retryable
        assert "realtime.api_key" in str(failed.error)


class Socket:
    """A socket from which nothing comes. `received`: what a reader waits for."""

    def __init__(self) -> None:
        self.received = asyncio.get_running_loop().create_future()

    async def recv_bytes(self) -> bytes:
        message: bytes = await self.received
        return message


def held(socket: Socket, **beside: asyncio.Future[None]) -> asyncio.Task[Any]:
    """Return the task that holds a connection, beside waiting for these."""

    def waiting(something: asyncio.Future[None]) -> Any:
        async def wait() -> None:
            await something

        return wait

    errors = SimpleNamespace(translate=lambda error: RealtimeError(type(error).__name__, retryable=True))
    connection = RealtimeConnection(cast("Any", socket), cast("Any", errors))
    waited_for = [(name, waiting(something)) for name, something in beside.items()]
    return asyncio.create_task(connection.hold([("read", connection.receive), *waited_for]), name="connection")


@pytest.mark.parametrize("what", ["read", "renewal"])
async def test_a_task_that_is_cancelled_from_inside_ends_the_connection(what: str) -> None:
    """A task group ignores such a child: the connection would go on without anybody who reads or renews it."""
    socket, renewal = Socket(), asyncio.get_running_loop().create_future()
    task = held(socket, renewal=renewal)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (socket.received if what == "read" else renewal).cancel()
    end = await patiently(task)
    assert (end.reason, str(end.error)) == ("lost", "CancelledInsideError")


CALL = RealtimeToolCall("c1", "search", '{"about": "a secret"}')


@virtually
async def test_a_tool_that_fails_or_hangs_costs_its_output(logs: list[EventDict]) -> None:
    """The log has neither its arguments nor its error."""

    async def fails(call: RealtimeToolCall) -> str:
        raise ValueError(call.arguments)

    async def hangs(_: RealtimeToolCall) -> str:
        return str(await asyncio.Event().wait())

    assert await tool_output(CALL, fails) == "The tool failed."
    assert [(line["event"], line["error_class"]) for line in logs] == [("realtime_tool_failed", "ValueError")]
    assert "secret" not in repr(logs)
    assert "too long" in await tool_output(CALL, hangs)

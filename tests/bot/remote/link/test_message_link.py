"""The link between two processes: asking, telling, failing, and refusing what is wrong."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from yarl import URL

from bot.channel.port import ChatError
from bot.errors import SetupError
from bot.remote.link import listener as listener_module
from bot.remote.link import message_link as module
from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import (
    NO_HELLO,
    PROTOCOL_VERSION,
    Hello,
    RoomIdentity,
    RoomRefusedError,
    introduce,
    read_hello,
    release_here,
)
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.link.token_proof import AUTHORIZATION, gateway_proof, new_number, room_proof
from bot.remote.messages.frames import Head, Notice, Request, frame_of
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.messages.wire_text import WireText
from bot.texts.text import Text, in_language, sentence_of
from compaction.errors import StaleOwnerError
from tests.bot.remote.peers import ROOM, TOKEN, linked, until
from tests.patience import PATIENCE_S
from voice.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bot.remote.link.message_link import MessageLink, Peer, Socket


@dataclass(frozen=True, slots=True)
class Greet(Request[WireText]):
    """Asks for a greeting."""

    name: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Waved(Notice):
    """Somebody waved."""

    hands: tuple[int, ...]


async def greet(asked: Greet) -> Text:
    """Greet."""
    return Text("I am in {channel} already. Use /leave first.", channel=asked.name * asked.times)


def greeting(end: Peer) -> None:
    """Answer greetings at an end."""
    end.handlers.answer(Greet, greet)


@pytest.mark.asyncio
async def test_both_sides_ask_and_tell() -> None:
    """An answer is typed, and a text in it can still be translated. Notices come in their order."""
    heard: list[tuple[int, ...]] = []

    def room(end: GatewayLink) -> None:
        greeting(end)
        end.handlers.hear(Waved, lambda waved: heard.append(waved.hands))

    async with linked(gateway=greeting, room=room) as ends:
        answer = await ends.room.ask(Greet("Bar", times=2), within_s=PATIENCE_S)
        assert in_language(answer, "de") == "Ich bin schon in BarBar. Benutze zuerst /geh."
        assert await ends.gateway.ask(Greet("Hall"), within_s=PATIENCE_S) == "I am in Hall already. Use /leave first."
        for hand in range(50):
            ends.gateway.tell(Waved((hand, 1)))
        await until(lambda: len(heard) == 50)
        assert heard == [(hand, 1) for hand in range(50)]


ERRORS = [
    LinkError("The voice channel {channel} is gone.", channel="Bar", retryable=False),
    LinkError("I am in a voice channel of {guild} already.", guild="Den"),
    ChatError(Text("I cannot post a file in {channel}. Give my role the permission Attach Files there.", channel="A")),
    SetupError(Text("I am shutting down. Try again in a moment.")),
    StaleOwnerError(Text("Somebody has told me something else meanwhile.")),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.asyncio
async def test_an_error_is_raised_at_the_other_end(error: Exception) -> None:
    """It is the same class with the same text, in every language, and a link that may be tried again stays one."""
    async with linked(gateway=lambda end: end.handlers.answer(Greet, failing(error))) as ends:
        with pytest.raises(type(error)) as raised:
            await ends.room.ask(Greet("x"), within_s=PATIENCE_S)
    assert type(raised.value) is type(error)
    assert str(raised.value) == str(error)
    assert in_language(sentence_of(raised.value), "de") == in_language(sentence_of(error), "de")
    assert getattr(raised.value, "retryable", None) == getattr(error, "retryable", None)


@pytest.mark.asyncio
async def test_an_error_that_cannot_be_sent_is_answered_all_the_same() -> None:
    """Half of a character, in a file's name for example, is in no message. Who has asked does not wait in vain."""
    error = ChatError(Text("I cannot post a file in {channel}.", channel="\ud83d"))
    with capture_logs():
        async with linked(gateway=lambda end: end.handlers.answer(Greet, failing(error))) as ends:
            with pytest.raises(OtherProcessError, match="cannot be sent"):
                await ends.room.ask(Greet("x"), within_s=PATIENCE_S)


def failing(error: Exception) -> Callable[[Greet], Awaitable[Text]]:
    """Return a handler that fails."""

    async def fail(_: Greet) -> Text:
        raise error

    return fail


@pytest.mark.asyncio
async def test_an_error_that_is_not_ours_stays_where_it_was() -> None:
    """Its text is in no message: it could have anything in it."""
    secret = ValueError("the words that somebody said")
    async with linked(gateway=lambda end: end.handlers.answer(Greet, failing(secret))) as ends:
        with capture_logs() as logs, pytest.raises(OtherProcessError, match=r"failed \(ValueError\)"):
            await ends.room.ask(Greet("x"), within_s=PATIENCE_S)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["request_failed"]


@pytest.mark.asyncio
async def test_an_ask_ends_in_time() -> None:
    """Who does not answer is not waited for, and the late answer disturbs nobody."""
    waiting = asyncio.Event()

    async def slow(_: Greet) -> Text:
        await waiting.wait()
        return Text("Hello.")

    async with linked(gateway=lambda end: end.handlers.answer(Greet, slow)) as ends:
        with pytest.raises(OtherProcessError, match=r"within 0\.05 s"):
            await ends.room.ask(Greet("x"), within_s=0.05)
        waiting.set()
        assert await ends.room.ask(Greet("x"), within_s=PATIENCE_S) == "Hello."


@pytest.mark.asyncio
async def test_what_was_asked_is_done_though_who_has_asked_is_cut_off() -> None:
    """A room that is cut off while the mark that the bot listens is removed leaves no mark."""
    asked: list[str] = []

    async def take(request: Greet) -> Text:
        asked.append(request.name)
        return await greet(request)

    async with linked(gateway=lambda end: end.handlers.answer(Greet, take)) as ends:
        asking = asyncio.create_task(ends.room.ask(Greet("x"), within_s=PATIENCE_S), name="asking")
        await asyncio.sleep(0)
        asking.cancel()
        await until(lambda: asked == ["x"])
        assert asking.cancelled()


@pytest.mark.asyncio
async def test_everybody_learns_that_a_link_is_over() -> None:
    """One who fails to handle it keeps nobody else from knowing."""
    told: list[str] = []

    def fail() -> None:
        told.append("first")
        raise ValueError

    async with linked(gateway=greeting) as ends:
        ends.gateway.on_closed(fail)
        ends.gateway.on_closed(lambda: told.append("second"))
        with capture_logs() as logs:
            await ends.drop()
        assert told == ["first", "second"]
        assert "link_end_not_handled" in [each["event"] for each in logs]
        assert await ends.room.ask(Greet("x"), within_s=PATIENCE_S)
        ends.links[0].on_closed(lambda: told.append("late"))
        assert told[2:] == ["late"]


@pytest.mark.asyncio
async def test_what_is_asked_fails_at_once_when_the_link_is_lost() -> None:
    """It does not wait for its time limit. The link comes back by itself, with the same handlers."""
    asked = asyncio.Event()

    async def never(_: Greet) -> Text:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    opened: list[int] = []

    def room(end: GatewayLink) -> None:
        greeting(end)
        end.on_opened(lambda: opened.append(1))

    async with linked(gateway=lambda end: end.handlers.answer(Greet, never), room=room) as ends:
        waiting = asyncio.create_task(ends.room.ask(Greet("x"), within_s=600))
        await asked.wait()
        ends.gateway.close()
        with pytest.raises(OtherProcessError, match="not there at the moment"):
            await waiting
        await until(lambda: len(ends.links) == 2 and ends.room.is_open)
        assert opened == [1, 1]
        assert await ends.gateway.ask(Greet("Bar"), within_s=PATIENCE_S)
    with pytest.raises(OtherProcessError, match="not there"):
        await ends.room.ask(Greet("x"), within_s=PATIENCE_S)
    ends.room.tell(Waved(()))


class RawEnd:
    """A process that speaks as it likes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def error(self) -> str:
        """Return the next frame, an error."""
        frame = await self.socket.receive_str(timeout=PATIENCE_S)
        assert '"kind":"error"' in frame
        return frame


def listener_of(links: list[MessageLink], **options: Any) -> RemoteRoomListener:
    """Return a gateway's listener that answers greetings."""

    def on_link(_: RoomIdentity, link: MessageLink) -> None:
        greeting(link)
        links.append(link)

    return RemoteRoomListener(on_link, TOKEN, **options)


@pytest.mark.parametrize(
    ("frame", "answered"),
    [
        ("no head", False),
        ("{}\n{}", False),
        ('{"kind":"shout"}\n{}', False),
        ('{"kind":"tell","name":"Nobody"}\n{}', False),
        ('{"kind":"ask","number":1,"name":"Nobody"}\n{}', True),
        ('{"kind":"ask","number":1,"name":"Greet"}\n{"name": 5}', True),
        ('{"kind":"ask","number":1,"name":"Greet"}\n{"name": "secret", "times": "2"}', True),
        ('{"kind":"ask","number":1,"name":"Greet"}\n[[[[', True),
        ('{"kind":"ask","number":true,"name":"Greet"}\n{"name": "x"}', False),
        ("{" * 1000 + "\n", False),
    ],
)
@pytest.mark.asyncio
async def test_what_is_wrong_is_refused(frame: str, answered: bool) -> None:
    """The link goes on, who asked is told, and the log has no content."""
    links: list[MessageLink] = []
    async with listener_of(links) as listener, raw(listener.url) as end:
        await introduce(end.socket, ROOM)
        with capture_logs() as logs:
            await end.socket.send_str(frame)
            if answered:
                assert "did not understand me" in await end.error()
            await end.socket.send_str(frame_of(Head("ask", 2, "Greet"), Greet("Bar"), Greet))
            assert "Bar" in await end.socket.receive_str(timeout=PATIENCE_S)
    refused = [each for each in logs if each["event"] == "message_refused"]
    assert len(refused) == 1
    assert "secret" not in str(refused)


@pytest.mark.asyncio
async def test_a_flood_of_nonsense_ends_the_link() -> None:
    """A process of the same version sends none."""
    links: list[MessageLink] = []
    async with listener_of(links) as listener, raw(listener.url) as end:
        await introduce(end.socket, ROOM)
        for _ in range(module.MOST_REFUSED):
            await end.socket.send_str("nonsense")
        assert (await end.socket.receive(timeout=PATIENCE_S)).type is aiohttp.WSMsgType.CLOSE
        await until(lambda: not links[0].is_open)


@pytest.mark.asyncio
async def test_a_process_that_is_frozen_is_known() -> None:
    """It has a connection and answers no ping, so the link is over, and what waits for an answer fails."""
    links: list[MessageLink] = []
    async with listener_of(links, heartbeat_s=0.1) as listener, AsyncExitStack() as stack:
        while not links:
            # On a busy machine it may be taken for a frozen one before it has introduced itself.
            end = await stack.enter_async_context(raw(listener.url, autoping=False))
            with suppress(OtherProcessError, ConnectionError):
                await introduce(end.socket, ROOM)
        with pytest.raises(OtherProcessError, match="not there"):
            await links[0].ask(Greet("x"), within_s=600)
        assert not links[0].is_open


@pytest.mark.asyncio
async def test_a_process_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it has a limit."""
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    links: list[MessageLink] = []
    async with listener_of(links) as listener, raw(listener.url) as end:
        await introduce(end.socket, ROOM)
        await until(lambda: links)
        with capture_logs() as logs:
            for _ in range(12):
                links[0].tell(Waved((1, 2)))
        assert [each["event"] for each in logs] == ["link_overflowed"]
        assert not links[0].is_open


@pytest.mark.asyncio
async def test_more_requests_than_anybody_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are being answered go on."""
    monkeypatch.setattr(module, "MOST_ANSWERING", 2)
    free = asyncio.Event()

    async def slow(_: Greet) -> Text:
        await free.wait()
        return Text("Hello.")

    async with linked(gateway=lambda end: end.handlers.answer(Greet, slow)) as ends:
        first = [asyncio.create_task(ends.room.ask(Greet("x"), within_s=PATIENCE_S)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OtherProcessError, match="too busy"):
            await ends.room.ask(Greet("x"), within_s=PATIENCE_S)
        free.set()
        assert await asyncio.gather(*first) == ["Hello.", "Hello."]


@pytest.mark.asyncio
async def test_what_is_too_large_is_not_sent() -> None:
    """Who asks is told, and the link stays."""
    async with linked(gateway=greeting) as ends:
        with pytest.raises(OtherProcessError, match=r"too large \(17 of 16 MiB\)"):
            await ends.room.ask(Greet("x" * (17 << 20)), within_s=PATIENCE_S)
        with pytest.raises(OtherProcessError, match="too large"):
            await ends.room.ask(Greet("x" * (1 << 20), times=17), within_s=PATIENCE_S)
        assert await ends.room.ask(Greet("Bar"), within_s=PATIENCE_S)


@pytest.mark.asyncio
async def test_what_is_no_text_is_not_sent() -> None:
    """Half of a character, as a hostile name may have it, costs one message and neither the link nor who asked."""
    half = "secret \ud800"

    async def broken(asked: Greet) -> Text:
        return Text("I am in {channel} already. Use /leave first.", channel=half if asked.name == "half" else "Bar")

    def room(end: GatewayLink) -> None:
        end.handlers.answer(Greet, broken)

    async with linked(gateway=lambda end: end.handlers.answer(Greet, broken), room=room) as ends:
        with capture_logs() as logs:
            with pytest.raises(OtherProcessError, match="cannot be sent"):
                await ends.room.ask(Greet(half), within_s=PATIENCE_S)
            with pytest.raises(OtherProcessError, match="cannot be sent"):
                await ends.room.ask(Greet("half"), within_s=PATIENCE_S)
            ends.gateway.tell(Waved(("x",)))  # type: ignore[arg-type]
        assert [each["event"] for each in logs] == ["message_not_sent"] * 3
        assert "secret" not in str(logs)
        assert "Bar" in await ends.room.ask(Greet("whole"), within_s=PATIENCE_S)


@asynccontextmanager
async def raw(url: str, *, token: str = TOKEN, autoping: bool = True) -> AsyncIterator[RawEnd]:
    """Yield a process that speaks as it likes."""
    number = new_number()
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, headers={AUTHORIZATION: room_proof(token, number)}, autoping=autoping) as socket,
    ):
        assert await socket.receive_str(timeout=PATIENCE_S) == gateway_proof(token, number)
        yield RawEnd(socket)


@pytest.mark.asyncio
async def test_a_wrong_token_opens_nothing() -> None:
    """There is no websocket for it, and a room's process learns why in a sentence."""
    links: list[MessageLink] = []
    async with listener_of(links) as listener:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with raw(listener.url, token="another"):
                pass
        assert refused.value.status == 401
        with capture_logs() as logs:
            for _ in range(5):
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    async with raw(listener.url, token="another"):
                        pass
        assert logs == [], "one line a minute"
        with pytest.raises(RoomRefusedError, match="refused the token"):
            async with GatewayLink(listener.url, "", ROOM):
                pass
    assert links == []


@pytest.mark.asyncio
async def test_nobody_learns_which_library_listens() -> None:
    """Neither with a token nor without, nor by a request that is none."""
    async with listener_of([]) as listener, aiohttp.ClientSession() as session:
        url = URL(listener.url)
        for path, token, status in ((url.path, "", 401), (url.path, TOKEN, 400), ("/", "", 404)):
            async with session.get(
                url.with_path(path), headers={AUTHORIZATION: room_proof(token, new_number())}
            ) as answer:
                assert (answer.status, answer.headers.get("Server")) == (status, None)
        async with session.ws_connect(url, headers={AUTHORIZATION: room_proof(TOKEN, new_number())}) as socket:
            assert "Server" not in socket._response.headers
        reader, writer = await asyncio.open_connection(LOOPBACK, url.port)
        writer.write(b"secret words\r\n\r\n")
        assert b"aiohttp" not in await reader.read()
        writer.close()


@pytest.mark.asyncio
async def test_a_socket_of_another_protocol_is_refused_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """No room's process asks for one, and the library would log each."""
    async with listener_of([]) as listener, aiohttp.ClientSession() as session:
        with capture_logs() as logs, pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
            await session.ws_connect(
                listener.url, headers={AUTHORIZATION: room_proof(TOKEN, new_number())}, protocols=["chat"]
            )
    assert (logs, caplog.text) == ([], "")


@pytest.mark.asyncio
async def test_who_says_nothing_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the connections of this machine without a request the oldest is closed for the next one, and links stay."""
    monkeypatch.setattr(listener_module, "MOST_SILENT", 2)
    links: list[MessageLink] = []
    async with listener_of(links) as listener, AsyncExitStack() as stack:
        first = await stack.enter_async_context(GatewayLink(listener.url, TOKEN, ROOM))
        readers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, URL(listener.url).port)
            stack.callback(writer.close)
            readers.append(reader)
        with capture_logs() as logs:
            await stack.enter_async_context(GatewayLink(listener.url, TOKEN, ROOM))
            async with asyncio.timeout(PATIENCE_S):
                assert await readers[0].read(1) == b""
        assert [each["crowded_count"] for each in logs if "crowded_count" in each] == [1]
        assert (readers[1].at_eof(), first.is_open) == (False, True)


@pytest.mark.parametrize("said", [b"", b"GET", b"GET / HTTP/1.1\r\n\r\n"])
@pytest.mark.asyncio
async def test_who_does_not_prove_anything_is_let_go(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Also in the middle of a request, and after one without the token."""
    monkeypatch.setattr(listener_module, "REQUEST_WITHIN_S", 0.05)
    async with listener_of([]) as listener:
        reader, writer = await asyncio.open_connection(LOOPBACK, URL(listener.url).port)
        writer.write(said)
        async with asyncio.timeout(PATIENCE_S):
            # What it has not read by then resets the connection.
            with suppress(ConnectionError):
                await reader.read()
        writer.close()


@pytest.mark.parametrize(
    "which",
    [
        f'"version":{PROTOCOL_VERSION + 1}',
        f'"version":{PROTOCOL_VERSION},"release":"9"',
        f'"version":{PROTOCOL_VERSION},"release":"","room":{{"guild_id":1,"channel_id":2}}',
    ],
)
@pytest.mark.asyncio
async def test_another_version_is_refused_with_a_sentence(which: str) -> None:
    """Whatever else is different in that version or release, the number and the name are where they always were."""
    links: list[MessageLink] = []
    async with listener_of(links) as listener, raw(listener.url) as end:
        await end.socket.send_str(f'{{"kind":"tell","name":"Hello"}}\n{{{which},"new":[]}}')
        assert "Install the same Roomtone everywhere" in await end.error()
        assert (await end.socket.receive(timeout=PATIENCE_S)).type is aiohttp.WSMsgType.CLOSE
    assert links == []


@pytest.mark.asyncio
async def test_another_release_with_the_same_messages_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would write what this one does not know."""
    links: list[MessageLink] = []
    ours = release_here()
    async with listener_of(links) as listener:
        releases = iter(["9.9.9", ours])
        monkeypatch.setattr("bot.remote.link.hello.release_here", lambda: next(releases))
        with pytest.raises(RoomRefusedError, match=rf"of different versions \(9\.9\.9 and {ours}\)\. Install the same"):
            async with GatewayLink(listener.url, TOKEN, ROOM):
                pass
    assert links == []


@pytest.mark.parametrize(
    "frame",
    ["nonsense", f'{{"kind":"tell","name":"Hello"}}\n{{"version":{PROTOCOL_VERSION}}}', '{"kind":"ask"}\n{}'],
)
@pytest.mark.asyncio
async def test_who_does_not_introduce_itself_is_refused(frame: str) -> None:
    """Nobody gets such a link."""
    links: list[MessageLink] = []
    async with listener_of(links) as listener, raw(listener.url) as end:
        await end.socket.send_str(frame)
        assert "did not introduce itself" in await end.error()
    assert links == []


@pytest.mark.asyncio
async def test_a_room_that_was_heard_too_late_introduces_itself_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network that stalls its word takes longer than it is waited for. That is no refusal: the room would end."""
    heard: list[RoomIdentity] = []

    async def read_late(socket: Socket) -> RoomIdentity:
        heard.append(await read_hello(socket))
        if len(heard) == 1:
            raise OtherProcessError(NO_HELLO)
        return heard[-1]

    monkeypatch.setattr(listener_module, "read_hello", read_late)
    links: list[MessageLink] = []
    async with listener_of(links) as listener, GatewayLink(listener.url, TOKEN, ROOM) as end:
        assert "Bar" in await end.ask(Greet("Bar"), within_s=PATIENCE_S)
    assert heard == [ROOM, ROOM]


@pytest.mark.asyncio
async def test_the_gateway_refuses_a_room_that_it_does_not_want() -> None:
    """The room's process learns why, and does not try again."""

    def on_link(room: RoomIdentity, _: MessageLink) -> None:
        raise SetupError(Text("I am in {channel} already. Use /leave first.", channel=str(room.channel_id)))

    async with RemoteRoomListener(on_link, TOKEN) as listener:
        with pytest.raises(RoomRefusedError, match="I am in 20 already"):
            async with GatewayLink(listener.url, TOKEN, ROOM):
                pass


@pytest.mark.asyncio
async def test_a_process_too_many_is_told_what_helps_and_a_room_that_runs_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The room has lost its link or its gateway process, and would have to end."""
    monkeypatch.setattr(listener_module, "MOST_LINKS", 2)
    links: list[MessageLink] = []
    async with listener_of(links) as listener, AsyncExitStack() as stack:
        waiting = RoomIdentity(0, 0, run_id="one")
        for _ in range(2):
            await stack.enter_async_context(GatewayLink(listener.url, TOKEN, waiting))
        with pytest.raises(RoomRefusedError, match=r"\(2 links\).*by --shards .*by --rooms-each\.$"):
            async with GatewayLink(listener.url, TOKEN, waiting):
                pass
        await stack.enter_async_context(GatewayLink(listener.url, TOKEN, ROOM))
        await until(lambda: len(links) == 3)


@pytest.mark.asyncio
async def test_a_room_that_is_refused_later_learns_it() -> None:
    """A gateway process that was started again may want it no more."""
    links: list[MessageLink] = []

    def on_link(_: RoomIdentity, link: MessageLink) -> None:
        if links:
            raise SetupError(Text("I am shutting down. Try again in a moment."))
        links.append(link)

    async with (
        RemoteRoomListener(on_link, TOKEN) as listener,
        GatewayLink(listener.url, TOKEN, ROOM) as end,
    ):
        links[0].close()
        assert "shutting down" in str(await end.refused())
        assert not end.is_open
        assert end.away_since == end.lost_at


@pytest.mark.asyncio
async def test_a_link_that_is_not_admitted_in_time_is_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has it learns that, also the one who is still busy admitting it. Nothing can be asked there."""
    monkeypatch.setattr(listener_module, "_ADMIT_S", 0.0)
    told: list[str] = []
    links: list[MessageLink] = []

    async def admit(link: MessageLink) -> None:
        asking = asyncio.create_task(link.ask(Greet("x"), within_s=600))
        try:
            await asyncio.Event().wait()
        finally:
            link.close()
            told.append("closed")
            with pytest.raises(OtherProcessError, match="not there"):
                await asking

    def on_link(_: RoomIdentity, link: MessageLink) -> Awaitable[None]:
        links.append(link)
        link.on_closed(lambda: told.append("over"))
        return admit(link)

    async with RemoteRoomListener(on_link, TOKEN) as listener:
        hello = Hello(PROTOCOL_VERSION, ROOM, release_here())
        async with raw(listener.url) as end:
            await end.socket.send_str(frame_of(Head("tell", 0, Hello.__name__), hello, Hello))
            assert (await end.socket.receive(timeout=PATIENCE_S)).type is aiohttp.WSMsgType.CLOSE
    assert told == ["over", "closed"]
    await links[0].run()
    assert not links[0].is_open


@pytest.mark.asyncio
async def test_a_part_that_fails_when_the_link_is_opened_keeps_nobody_from_it() -> None:
    """The others learn that it is open, and can ask and tell."""
    called: list[str] = []

    def fail() -> None:
        called.append("fails")
        raise RuntimeError("a part of the room is broken")

    def register(end: GatewayLink) -> None:
        greeting(end)
        end.on_opened(fail)
        end.on_opened(lambda: called.append("works"))

    with capture_logs() as logs:
        async with linked(gateway=greeting, room=register) as ends:
            assert "Hall" in await ends.room.ask(Greet("Hall"), within_s=PATIENCE_S)
            await ends.drop()
            assert "Bar" in await ends.room.ask(Greet("Bar"), within_s=PATIENCE_S)
    assert called == ["fails", "works"] * 2
    assert [line["event"] for line in logs].count("link_opening_not_handled") == 2


@pytest.mark.asyncio
async def test_a_gateway_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first opening has a time limit."""
    monkeypatch.setattr("bot.remote.link.gateway_link.OPEN_WITHIN_S", 0.05)
    async with listener_of([]) as listener:
        url = listener.url
    with pytest.raises(OtherProcessError, match="not there"):
        async with GatewayLink(url, TOKEN, ROOM):
            pass


@pytest.mark.asyncio
async def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    """With its remedy."""
    async with listener_of([]) as listener:
        port = URL(listener.url).port
        assert port is not None
        with pytest.raises(SetupError, match="Choose another address"):
            async with RemoteRoomListener(lambda *_: None, 2 * TOKEN, at=RoomsAddress(LOOPBACK, port)):
                pass


def test_the_hello_of_this_version_is_one_that_every_version_reads() -> None:
    """The number is first and a number."""
    frame = frame_of(Head("tell", 0, "Hello"), Hello(PROTOCOL_VERSION, ROOM, release_here()), Hello)
    assert frame.split("\n")[1].startswith(f'{{"version":{PROTOCOL_VERSION},')

"""The private parts of discord.py that we use are unchanged, and their known traps are avoided."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import inspect
import json
import os
import resource
import socket
import struct
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import davey
import discord
import discord.client
import discord.gateway
import discord.http
import discord.shard
import discord.voice_client
import discord.voice_state
import pytest
import pytest_asyncio
from discord.voice_state import ConnectionFlowState

from rehearsal.discord.dave import mls
from tests.fakes.brain import until
from tests.fakes.loop_time import loop_turns, wait_out
from tests.voice.transport.voice_websocket import Recorder, connection_state, websocket
from voice.errors import VoiceConnectionError
from voice.transport import receive_buffer
from voice.transport.private import socket_reader as socket_reader_module
from voice.transport.private.connection_state import ReceivingState
from voice.transport.private.pending_transitions import PendingTransitions
from voice.transport.private.websocket import DISCOVERY_TRIES, DISCOVERY_WAIT_S, TolerantWebSocket

# The parts of discord.py 2.7.1 that the package overrides, calls or relies on, with a fingerprint of their source. A
# changed part is no error yet: read the change, look at the package again, then note the new fingerprint.
TOUCHED = {
    "SocketReader.__init__": "9f3105c690c6",
    "SocketReader.register": "abd188a05f23",
    "SocketReader.unregister": "fc6f7b9b0770",
    "SocketReader.pause": "ce7d9679953d",
    "SocketReader.resume": "d2780d4b552f",
    "SocketReader.stop": "eebdd27c7780",
    "SocketReader.run": "cd1a27d738fe",
    "SocketReader._do_run": "68f1c756dca7",
    "VoiceConnectionState.__init__": "eaf651b7c215",
    "VoiceConnectionState.state": "9ad5446471a9",
    "VoiceConnectionState.can_encrypt": "482253938950",
    "VoiceConnectionState.reinit_dave_session": "2ae19d6e94d6",
    "VoiceConnectionState._recover_from_invalid_commit": "3cf71ef7eade",
    "VoiceConnectionState._execute_transition": "3b0e7a344c62",
    "VoiceConnectionState.voice_state_update": "5ae711a79689",
    "VoiceConnectionState.voice_server_update": "dd04188e0a92",
    "VoiceConnectionState.connect": "2b79e0a14f95",
    "VoiceConnectionState._wrap_connect": "950602059ffb",
    "VoiceConnectionState._inner_connect": "62b061b1379b",
    "VoiceConnectionState._connect": "fe4abbbdb02a",
    "VoiceConnectionState.disconnect": "5cb8a51b51c4",
    "VoiceConnectionState.soft_disconnect": "e73245f3728d",
    "VoiceConnectionState._wait_for_state": "73e3d0350412",
    "VoiceConnectionState._voice_connect": "498ed7980504",
    "VoiceConnectionState._voice_disconnect": "0662190f95e6",
    "VoiceConnectionState._connect_websocket": "04641fd6df28",
    "VoiceConnectionState._handshake_websocket": "68346047197b",
    "VoiceConnectionState._create_socket": "bcec8a1862dc",
    "VoiceConnectionState._poll_voice_ws": "cb47293e408f",
    "VoiceConnectionState._potential_reconnect": "004de2a8ea91",
    "DiscordVoiceWebSocket.__init__": "fb24eacbce70",
    "DiscordVoiceWebSocket.from_connection_state": "cf80d0595f25",
    "DiscordVoiceWebSocket.received_message": "b780f45eb5f7",
    "DiscordVoiceWebSocket.received_binary_message": "5b7784955f74",
    "DiscordVoiceWebSocket.initial_connection": "597914684007",
    "DiscordVoiceWebSocket.discover_ip": "15e552d6ea25",
    "DiscordVoiceWebSocket.load_secret_key": "c5febd185135",
    "DiscordVoiceWebSocket.poll_event": "c54ba2c080b3",
    "VoiceClient.__init__": "6d29df411aff",
    "VoiceClient.create_connection_state": "8ca2096ce7ec",
    "VoiceClient._get_voice_packet": "ef355f5a0f12",
    "VoiceClient.checked_add": "d10fb00f01fa",
    "VoiceConnectionState.send_packet": "49bf8100aa52",
    "VoiceClient.cleanup": "d6c1b668fc4e",
    # What says whether the main session is ready.
    "Client._get_websocket": "df2abf1101e4",
    "AutoShardedClient._get_websocket": "4cba86bd0989",
    "DiscordWebSocket.from_client": "25ac637bdad3",
    "DiscordWebSocket.received_message": "62c9f5ec6596",
    # What holds requests back, and when its event is made.
    "HTTPClient.request": "02f1209000b1",
    "HTTPClient.static_login": "44c522c43913",
    # What the stand-ins answer.
    "VoiceConnectionState._update_voice_channel": "6946ee8e499a",
    "VoiceConnectionState.self_voice_state": "44a8fe3a4be9",
    "VoiceClient.user": "e79f67408128",
}


def _part(name: str) -> Any:
    owner, attribute = name.split(".")
    homes = (
        discord.voice_state,
        discord.gateway,
        discord.voice_client,
        discord.client,
        discord.shard,
        discord.http,
    )
    found = inspect.getattr_static(next(getattr(home, owner) for home in homes if hasattr(home, owner)), attribute)
    if isinstance(found, classmethod):
        return found.__func__
    return found


def fingerprint(part: Any) -> str:
    """Return the first 12 digits of the source's SHA-256. For a property, the getter and the setter are hashed
    together.
    """
    parts = [part.fget, part.fset] if isinstance(part, property) else [part]
    source = "".join(inspect.getsource(each) for each in parts if each is not None)
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def test_the_version_is_the_one_that_was_read() -> None:
    assert importlib.metadata.version("discord.py") == "2.7.1"


def test_touched_parts_are_unchanged() -> None:
    """Every part of discord.py that the package uses is unchanged. A failure names the changed parts."""
    changed = {name: fingerprint(_part(name)) for name, noted in TOUCHED.items() if fingerprint(_part(name)) != noted}
    assert changed == {}


async def test_a_reader_ends_although_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leaves a silent channel waits for its thread, and the room's next process for them."""
    monkeypatch.setattr(socket_reader_module, "LONGEST_POLL_S", 600.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        async with connection_state() as state:
            flushed = threading.Event()

            def flush() -> float:
                flushed.set()
                return 600.0

            monkeypatch.setattr(state.receiver, "flush", flush)
            state.socket = silent
            state._socket_reader.resume()
            await asyncio.to_thread(flushed.wait)


@pytest_asyncio.fixture
async def state() -> AsyncIterator[ReceivingState]:
    """A connection state without a client."""
    async with connection_state() as made:
        yield made


@pytest.mark.parametrize("ticks", range(8))
async def test_no_state_is_slept_through(state: ReceivingState, ticks: int) -> None:
    """The waiter for the second of two states wakes, however many loop ticks lie between them. discord.py's own code
    hangs at three.
    """
    state.state = ConnectionFlowState.set_guild_voice_state
    waiter = asyncio.create_task(
        state._wait_for_state(ConnectionFlowState.got_both_voice_updates, timeout=5), name="waiter"
    )
    await loop_turns()
    state.state = ConnectionFlowState.got_voice_state_update
    await loop_turns(ticks)
    state.state = ConnectionFlowState.got_both_voice_updates
    await waiter


async def test_answer_that_comes_before_the_question_is_sent_off_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """IP discovery asks again if there is no answer, and receives an answer that comes at once."""
    loop = asyncio.get_running_loop()
    asked: list[bytes] = []

    class Server(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: Any = transport

        def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
            asked.append(data)
            if len(asked) > 1:
                self.transport.sendto(b"\x80\x78", addr)
                answer = struct.pack(">HHI", 2, 70, 7) + b"203.0.113.9".ljust(64, b"\0") + struct.pack(">H", 4567)
                self.transport.sendto(answer, addr)
                self.transport.sendto(answer, addr)

    transport, _ = await loop.create_datagram_endpoint(Server, local_addr=("127.0.0.1", 0))
    async with connection_state() as state:
        state.ssrc = 7
        state._create_socket()
        await loop.sock_connect(state.socket, transport.get_extra_info("sockname"))
        ws = TolerantWebSocket(None, loop)  # type: ignore[arg-type]
        ws._connection = state
        discovering = asyncio.create_task(ws.discover_ip())
        await wait_out(monkeypatch, DISCOVERY_WAIT_S)
        assert await discovering == ("203.0.113.9", 4567)
        assert asked[0] == asked[1] == struct.pack(">HHI", 1, 70, 7) + bytes(66)
        assert len(state._socket_reader._callbacks) == 1
        state.socket.close()
    transport.close()


async def test_voice_server_that_never_answers_over_udp_is_given_up(
    state: ReceivingState, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    state.ssrc = 7
    state._create_socket()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        await loop.sock_connect(state.socket, deaf.getsockname())
        ws = TolerantWebSocket(None, loop)  # type: ignore[arg-type]
        ws._connection = state
        discovering = asyncio.create_task(ws.discover_ip())
        for _ in range(DISCOVERY_TRIES):
            await wait_out(monkeypatch, DISCOVERY_WAIT_S)
        with pytest.raises(TimeoutError):
            await discovering
    state.socket.close()


async def test_sockets_over_1024_are_heard() -> None:
    """A socket with a number over 1024, as in a process with many open files, is heard. `select` refuses it, and `poll`
    does not.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(soft - 1, 1500)
    assert number >= 1024, "this machine allows too few open files to try it: raise `ulimit -n`"
    async with connection_state() as state:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.bind(("127.0.0.1", 0))
            plain.setblocking(False)
            os.dup2(plain.fileno(), number)
        with socket.socket(fileno=number) as high, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            state.socket = high
            state._socket_reader.resume()
            for _ in range(100):
                sender.sendto(b"\x80\xc8" + bytes(6), high.getsockname())
            await until(lambda: state.receiver.counters().rtcp == 100)


async def test_listener_that_fails_deafens_nobody(state: ReceivingState) -> None:
    heard: list[bytes] = []

    def broken(datagram: bytes) -> None:
        raise ZeroDivisionError

    state.add_socket_listener(broken)
    state.add_socket_listener(heard.append)
    state._create_socket()
    state.socket.bind(("127.0.0.1", 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"one", state.socket.getsockname())
        sender.sendto(b"two", state.socket.getsockname())
    await until(lambda: heard == [b"one", b"two"])
    state.socket.close()


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        {"op": 5, "d": {"ssrc": "x", "user_id": "y"}},
        {"op": 5, "d": None},
        {"op": 11, "d": {}},
        {"op": 11, "d": {"user_ids": [None]}},
        {"op": 13, "d": {"user_id": "nobody"}},
        {"op": 21, "d": {}},
        {"op": 22, "d": {"transition_id": []}},
        {"op": 24, "d": {}},
        {"op": 24, "d": {"epoch": 1, "protocol_version": 2**70}},
        {"op": 99, "d": 7},
    ],
)
async def test_json_that_makes_no_sense_costs_one_message(message: Any) -> None:
    async with websocket() as (ws, _, _):
        await ws.received_message(message)


async def test_torn_messages_are_survived() -> None:
    async with websocket() as (ws, _, recorder):
        recorder.messages = [aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, '{"op": 5', None)]
        await ws.poll_event()
        for torn in (b"", b"\x00", b"\x00\x01"):
            await ws.received_binary_message(torn)


@pytest.mark.parametrize(
    "message",
    [
        {"op": 2, "d": {"ssrc": 1, "ip": "127.0.0.1", "port": 9, "modes": []}},
        {"op": 4, "d": {"mode": "any", "secret_key": [7] * 32, "dave_protocol_version": 2}},
    ],
    ids=["ready", "session description"],
)
async def test_a_handshake_that_makes_no_sense_fails(monkeypatch: pytest.MonkeyPatch, message: Any) -> None:
    """An answer to IP discovery without an end, and a version that davey does not know: there is no connection with
    these, so neither is passed over.
    """

    async def endless(self: TolerantWebSocket) -> tuple[str, int]:
        raise ValueError("no end")

    monkeypatch.setattr(TolerantWebSocket, "discover_ip", endless)
    async with websocket() as (ws, state, recorder):
        state.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        state.socket.setblocking(False)
        state.ssrc = 1
        recorder.messages = [aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, json.dumps(message), None)]
        with state.socket, pytest.raises(ValueError, match=r"no end|version|Version"):
            await ws.poll_event()


@pytest.mark.parametrize("version", [{"x": 1}, None, True, -1, 1.5, 2**16, "1"])
async def test_a_version_that_is_no_number_is_not_kept(version: object) -> None:
    """After a key change with an odd version or id, the next bad MLS message still makes the bot join the group."""
    async with websocket() as (ws, state, recorder):
        for op in (21, 24):
            await ws.received_message({"op": op, "d": {"epoch": 1, "transition_id": 3, "protocol_version": version}})
        await ws.received_message({"op": 21, "d": {"transition_id": version, "protocol_version": 1}})
        assert state.dave_protocol_version == 1
        assert dict(state.dave_pending_transitions) == {}
        await ws.received_binary_message(b"\x00\x07\x1d\x00\x01\x02")
        assert recorder.sent


@pytest.mark.parametrize("op", [25, 27, 29, 30])
@pytest.mark.parametrize("body", [b"", b"\x00", b"\x00\x01\x02", bytes(range(64))])
async def test_mls_that_makes_no_sense_is_answered_with_rejoining(op: int, body: bytes) -> None:
    """Invalid MLS messages are answered once with op 31 and a new key package (op 26). Further ones are ignored
    meanwhile.
    """
    async with websocket() as (ws, state, recorder):
        if op == 27:
            assert state.dave_session is not None
            state.dave_session.set_external_sender(mls.ExternalSender(42).package)
        for _ in range(3):
            await ws.received_binary_message(b"\x00\x07" + bytes([op]) + body)
        kinds = [item if isinstance(item, str) else item[0] for item in recorder.sent]
        assert len(kinds) == 2
        assert '"op":31' in kinds[0].replace(" ", "")
        assert kinds[1] == 26
        assert ws.seq_ack == 7


async def test_a_group_that_davey_cannot_make_is_a_recovery_that_failed() -> None:
    """The server asks for a version of the protocol that davey does not know. No attempt to rejoin raises anything."""
    async with websocket() as (ws, state, recorder):
        await ws.received_message({"op": 24, "d": {"epoch": 1, "protocol_version": 2}})
        assert not await state.recover_group()
        await ws.received_binary_message(b"\x00\x07\x1d\x00\x01\x02")
        assert '"op":31' in recorder.sent[0].replace(" ", "")


async def test_gateway_s_words_reach_the_receiver() -> None:
    """Ops 11, 5, 12 and 13 update the members, and a new connection (op 2) clears them."""
    async with websocket() as (ws, state, _):
        await ws.received_message({"op": 11, "d": {"user_ids": ["1001", "5", "6"]}})
        await ws.received_message({"op": 5, "d": {"ssrc": 31, "user_id": "7", "speaking": 1}})
        await ws.received_message({"op": 12, "d": {"audio_ssrc": 32, "video_ssrc": 33, "user_id": "8"}})
        assert state.receiver.members == {5, 6, 7, 8}
        await ws.received_message({"op": 13, "d": {"user_id": "6"}})
        assert state.receiver.members == {5, 7, 8}
        with pytest.raises(KeyError, match="ssrc"):
            await ws.received_message({"op": 2, "d": {}})
        assert state.receiver.members == frozenset()


async def test_keys_are_tried_anew_when_the_gateway_says_that_all_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Op 22 tells that everybody sends with the new keys, so those that nobody fitted may fit now."""
    async with websocket() as (ws, state, _):
        rekeyed: list[bool] = []
        monkeypatch.setattr(state.receiver, "rekeyed", lambda: rekeyed.append(True))
        await ws.received_message({"op": 22, "d": {"transition_id": 3}})
        assert rekeyed == [True]


@pytest.mark.parametrize("odd", [-1, 2**64, "18446744073709551616"])
async def test_an_id_that_davey_takes_not_is_no_member(odd: object) -> None:
    """Such a member would make every decryption and every proposal for the group fail, for all the others too."""
    async with websocket() as (ws, state, recorder):
        await ws.received_message({"op": 11, "d": {"user_ids": ["5", odd]}})
        await ws.received_message({"op": 5, "d": {"ssrc": 31, "user_id": odd, "speaking": 1}})
        await ws.received_message({"op": 11, "d": {"user_ids": ["6"]}})
        assert state.receiver.members == {6}
        assert recorder.sent == []


async def test_proposals_without_a_local_group_are_ignored() -> None:
    """protocol.md asks to ignore them; op 31 would make the bot be removed and added again. A davey before 0.1.7 makes
    a new object for each status, so none is found here; that is why it is not allowed.
    """
    async with websocket() as (ws, _, recorder):
        await ws.received_binary_message(b"\x00\x07\x1b" + bytes(range(64)))
        assert recorder.sent == []
        assert ws.seq_ack == 7


@pytest.mark.parametrize("other_leaves_first", [True, False])
async def test_a_commit_that_adds_somebody_without_a_welcome_is_not_sent(other_leaves_first: bool) -> None:
    """davey makes one if somebody comes and another goes in two batches of one epoch, and who comes would be shut out.

    Another member commits. If none is left, now or later, the bot joins anew.
    """
    sender = mls.ExternalSender(42)
    newcomers = {each: davey.DaveSession(1, each, 42) for each in (5, 6)}
    for each in newcomers.values():
        each.set_external_sender(sender.package)

    def proposing(proposal: mls.Proposal) -> bytes:
        return b"\x00\x07\x1b" + mls.append_proposals([proposal.message])

    def kinds(recorder: Recorder) -> list[int]:
        return [31 if isinstance(item, str) else item[0] for item in recorder.sent]

    async with websocket() as (ws, state, recorder):
        assert state.dave_session is not None
        state.dave_session.set_external_sender(sender.package)
        await ws.received_message({"op": 11, "d": {"user_ids": ["5", "6"]}})
        packages = {each: bytes(session.get_serialized_key_package()) for each, session in newcomers.items()}
        await ws.received_binary_message(proposing(sender.add(0, packages[5])))
        parts = mls.split_commit_welcome(recorder.sent[0][1:])
        await ws.received_binary_message(b"\x00\x08\x1d\x00\x00" + parts.commit)
        await ws.received_binary_message(proposing(sender.add(1, packages[6])))
        assert kinds(recorder) == [28, 28]
        leaving = {"op": 13, "d": {"user_id": "5"}}
        if other_leaves_first:
            await ws.received_message(leaving)
        await ws.received_binary_message(proposing(sender.remove(1, 1)))
        assert kinds(recorder) == ([28, 28, 31, 26] if other_leaves_first else [28, 28])
        await ws.received_message(leaving)
        assert kinds(recorder) == [28, 28, 31, 26]


def test_a_change_of_keys_that_is_never_executed_is_not_waited_for_for_ever() -> None:
    """A transition that is never executed holds the watchdog back for ten seconds only, and the next one has its own
    time.
    """
    now = 100.0
    pending = PendingTransitions(clock=lambda: now)

    def under_way_at(at: float) -> bool:
        nonlocal now
        now = at
        return pending.under_way

    assert not under_way_at(100.0)
    pending[5] = 1
    assert under_way_at(109.9)
    assert not under_way_at(110.0)
    pending[6] = 1
    assert under_way_at(111.0)
    assert pending.pop(6) == 1
    assert not under_way_at(111.0)
    assert dict(pending) == {5: 1}
    pending[5] = 1
    assert under_way_at(112.0)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [([7] * 32, b"\7" * 32), ([300], b""), (["a"], b""), (10**12, b""), (None, b"")],
    ids=["a key", "no byte", "no number", "a number", "nothing"],
)
async def test_the_transport_key_is_kept_as_bytes(sent: object, kept: object) -> None:
    """Each packet is opened with the key as it is kept. What is no key opens nothing."""
    async with websocket() as (ws, state, _):
        state.ssrc = 1
        await ws.load_secret_key({"secret_key": sent})
        assert ws.secret_key == state.secret_key == kept


async def test_refused_handshake_says_what_to_do(state: ReceivingState) -> None:
    class Refusing:
        secret_key = None

        async def poll_event(self) -> None:
            raise discord.ConnectionClosed(SimpleNamespace(close_code=4017), shard_id=None, code=4017)  # type: ignore[arg-type]

    state.ws = Refusing()  # type: ignore[assignment]
    with pytest.raises(VoiceConnectionError, match="4017") as refused:
        await state._handshake_websocket()
    assert not refused.value.retryable
    assert state.close_code == 4017


async def test_being_back_in_a_channel_takes_back_being_out(state: ReceivingState) -> None:
    """Being back in a channel clears the memory of having left. Otherwise discord.py takes the next move
    for the end.
    """
    state._expecting_disconnect = True
    await state.voice_state_update({"channel_id": None})
    assert state._disconnected.is_set()
    assert state.taken_out is None
    state.state = ConnectionFlowState.set_guild_voice_state
    state.voice_client.channel = SimpleNamespace(id=42)  # type: ignore[assignment]
    await state.voice_state_update({"channel_id": "42", "session_id": "s"})
    assert not state._disconnected.is_set()


async def test_late_word_of_the_client_before_takes_nobody_out(state: ReceivingState) -> None:
    """Discord's late answer to the leaving of an earlier, failed client does not remove the next client."""
    state.state = ConnectionFlowState.set_guild_voice_state
    await state.voice_state_update({"channel_id": None})
    assert state.taken_out is None
    assert state.state is ConnectionFlowState.set_guild_voice_state


async def test_the_voice_socket_has_a_large_receive_buffer(state: ReceivingState) -> None:
    """A new socket gets the largest buffer that the system grants."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        receive_buffer.enlarge(probe)
        most = probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    state._create_socket()
    assert state.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == most
    state._socket_reader.pause()
    state.socket.close()


async def test_changes_of_keys_end_with_their_connection() -> None:
    """If the connection breaks between a transition's announcement and its execution, the new connection does not wait
    for it.
    """
    async with websocket() as (ws, state, _):
        await ws.received_message({"op": 21, "d": {"transition_id": 0, "protocol_version": 0}})
        await ws.received_message({"op": 21, "d": {"transition_id": 5, "protocol_version": 1}})
        assert [state.in_transition, state.dave_downgraded] == [True, True]
        state.begin_anew()
        assert [state.in_transition, state.dave_downgraded] == [False, False]

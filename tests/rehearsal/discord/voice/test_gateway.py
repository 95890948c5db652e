"""The voice gateway's handshake, and the close code for each mistake in it."""

from __future__ import annotations

from typing import Any

from rehearsal.discord import LocalDiscord, VoiceCredentials
from tests.rehearsal.discord.sockets import Bare, bare_voice
from tests.rehearsal.discord.stock import until

ADA, BEN = 2001, 2002
_MODE = "aead_xchacha20_poly1305_rtpsize"


def _identity(joined: VoiceCredentials, **changes: object) -> dict[str, Any]:
    right = {
        "server_id": "500",
        "user_id": joined.state["user_id"],
        "session_id": joined.state["session_id"],
        "token": joined.server["token"],
        "max_dave_protocol_version": 1,
    }
    return {**right, **changes}


def _choice(mode: str = _MODE, protocol: str = "udp") -> dict[str, Any]:
    return {"protocol": protocol, "data": {"address": "127.0.0.1", "port": 1, "mode": mode}}


async def _enter(voice: Bare, joined: VoiceCredentials) -> dict[str, Any]:
    """Complete the handshake and return the session description."""
    await voice.send(0, _identity(joined))
    await voice.receive(2)
    await voice.send(1, _choice())
    described: dict[str, Any] = (await voice.receive(4))["d"]
    return described


async def test_every_wrong_identity_has_its_close_code(local: LocalDiscord) -> None:
    """A wrong token is closed with 4004, a wrong session with 4006, a wrong guild with 4011, no DAVE with 4017."""
    joined = await local.join(ADA)
    for changes, code in (
        ({"token": "stolen"}, 4004),
        ({"user_id": str(BEN)}, 4004),
        ({"user_id": None}, 4004),
        ({"session_id": "old"}, 4006),
        ({"server_id": "501"}, 4011),
        ({"max_dave_protocol_version": 0}, 4017),
    ):
        async with bare_voice(local) as voice:
            await voice.send(0, _identity(joined, **changes))
            assert await voice.close_code() == code, changes


async def test_what_comes_out_of_order_closes_the_connection(local: LocalDiscord) -> None:
    """Each message that is not allowed at its time has its close code.

    The gateway closes with 4003 before identifying, 4005 when identifying twice, 4016 for an unknown mode, 4012 for an
    unknown protocol, 4002 for no JSON, and 4020 for a heartbeat without `seq_ack` or another version in the address.
    """
    joined = await local.join(ADA)
    for opcode, data, code in ((5, {"speaking": 1}, 4003), (1, _choice(), 4003), (7, {"session_id": "x"}, 4006)):
        async with bare_voice(local) as voice:
            await voice.send(opcode, data)
            assert await voice.close_code() == code
    mistakes: tuple[tuple[int, object, int], ...] = (
        (0, _identity(joined), 4005),
        (1, _choice(mode="plain"), 4016),
        (1, _choice(protocol="webrtc"), 4012),
        (1, {"protocol": "udp", "data": 5}, 4016),
        (99, None, 4001),
        (3, {"t": 5}, 4020),
    )
    for opcode, wrong, code in mistakes:
        async with bare_voice(local) as voice:
            await voice.send(0, _identity(joined))
            await voice.receive(2)
            await voice.send(opcode, wrong)
            assert await voice.close_code() == code
    for frame in ("no json", "[]", '{"op": "0"}', "{}"):
        async with bare_voice(local) as voice:
            await voice.websocket.send_str(frame)
            assert await voice.close_code() == 4002
    async with bare_voice(local) as voice:
        await voice.websocket.send_bytes(b"\x1ahello")
        assert await voice.close_code() == 4003
    async with bare_voice(local, version=7) as voice:
        assert await voice.close_code() == 4020


async def test_a_client_that_dies_can_resume_and_one_that_says_goodbye_cannot(local: LocalDiscord) -> None:
    """A session survives a lost TCP connection for a while, for its own server (4011). A close frame with 1000 ends it,
    and so does Discord with 4021: then there is nothing to resume (4006).
    """
    joined = await local.join(ADA)

    def connected() -> dict[str, Any]:
        ada: dict[str, Any] = next(each for each in local.status()["members"] if each["id"] == str(ADA))
        return ada

    async with bare_voice(local) as voice:
        await _enter(voice, joined)
        voice.kill()
        await until(lambda: not connected()["voice_connected"], "the loss")
    assert connected()["ssrc"] is not None
    own = {**_identity(joined), "seq_ack": 0}
    async with bare_voice(local) as voice:
        await voice.send(7, {**own, "server_id": "501"})
        assert await voice.close_code() == 4011
    async with bare_voice(local) as voice:
        await voice.send(7, own)
        await voice.receive(9)
        await local.fault("kill_voice_websocket", close_code=4021)
        assert await voice.close_code() == 4021
    async with bare_voice(local) as voice:
        await voice.send(7, own)
        assert await voice.close_code() == 4006
    async with bare_voice(local) as voice:
        await _enter(voice, joined)
        await voice.websocket.close(code=1000)
        await until(lambda: connected()["ssrc"] is None, "the session's end")

"""The voice gateway's handshake, and the close code for each mistake in it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from rehearsal.discord import LocalDiscord
from rehearsal.discord.voice.gateway import VoiceSessionChange
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.sockets import Bare, bare_voice
from tests.rehearsal.discord.stock import until

if TYPE_CHECKING:
    from rehearsal.discord import VoiceCredentials

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


async def test_the_handshake_in_its_order() -> None:
    """The client gets hello, ready with the modes, session description and external sender, then the other members."""
    async with LocalDiscord() as local:
        first, second = await local.join(ADA), await local.join(BEN)
        async with bare_voice(local) as ada, bare_voice(local) as ben:
            assert (await ada.receive(8))["d"] == {"v": 8, "heartbeat_interval": 13750}
            await ada.send(0, _identity(first))
            ready = (await ada.receive(2))["d"]
            assert ready["modes"] == ["aead_aes256_gcm_rtpsize", "aead_xchacha20_poly1305_rtpsize"]
            assert ready["ip"] == "127.0.0.1"
            await ada.send(1, _choice())
            described = (await ada.receive(4))["d"]
            assert (described["mode"], described["dave_protocol_version"]) == (_MODE, 1)
            assert len(described["secret_key"]) == 32
            sender = await ada.websocket.receive_bytes(timeout=PATIENCE_S)
            assert struct.unpack(">HB", sender[:3]) == (1, 25)
            await _enter(ben, second)
            assert (await ben.receive(11))["d"] == {"user_ids": [str(ADA)]}
            assert (await ada.receive(11)) == {"op": 11, "d": {"user_ids": [str(BEN)]}, "seq": 2}
            await ada.send(3, {"t": 77, "seq_ack": 2})
            assert (await ada.receive(6))["d"] == {"t": 77}
            await ada.send(16, {})
            assert (await ada.receive(16))["d"]["voice"]
            await ada.send(5, {"speaking": 0, "ssrc": ready["ssrc"]})
            await ada.send(5, {"speaking": 1, "ssrc": ready["ssrc"]})
            assert (await ben.receive(5))["d"] == {"user_id": str(ADA), "ssrc": ready["ssrc"], "speaking": 1}
            await ben.websocket.close()
            assert (await ada.receive(13))["d"] == {"user_id": str(BEN)}


async def test_every_wrong_identity_has_its_close_code() -> None:
    """A wrong token is closed with 4004, a wrong session with 4006, a wrong guild with 4011, no DAVE with 4017."""
    async with LocalDiscord() as local:
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


async def test_a_session_resumes_with_what_was_missed() -> None:
    """Op 7 is answered with op 9 and every message after the acknowledged one. A wrong token is refused. Who watches
    sees the session resumed: another process may have taken it.
    """
    seen: list[tuple[int, VoiceSessionChange]] = []
    async with LocalDiscord() as local:
        local.watch_voice(lambda user_id, _, change: seen.append((user_id, change)))
        first, second = await local.join(ADA), await local.join(BEN)
        resume = {"server_id": "500", "session_id": first.state["session_id"], "seq_ack": 1}
        async with bare_voice(local) as ada, bare_voice(local) as ben:
            await _enter(ada, first)
            await _enter(ben, second)
            async with bare_voice(local) as thief:
                await thief.send(7, {**resume, "token": "stolen"})
                assert await thief.close_code() == 4004
            async with bare_voice(local) as again:
                await again.send(7, {**resume, "token": first.server["token"]})
                assert (await again.receive(9))["d"] is None
                assert (await again.receive(11)) == {"op": 11, "d": {"user_ids": [str(BEN)]}, "seq": 2}
                assert await ada.close_code() == 1006
                assert seen[2:] == [(ADA, VoiceSessionChange.RESUMED)]
                await again.send(5, {"speaking": 1})
                assert (await ben.receive(5))["d"]["user_id"] == str(ADA)


async def test_a_client_that_dies_can_resume_and_one_that_says_goodbye_cannot() -> None:
    """A session survives a lost TCP connection for a while. A close frame with 1000 ends the session."""
    async with LocalDiscord() as local:
        joined = await local.join(ADA)

        def connected() -> dict[str, Any]:
            ada: dict[str, Any] = next(each for each in local.status()["members"] if each["id"] == str(ADA))
            return ada

        async with bare_voice(local) as voice:
            await _enter(voice, joined)
            voice.kill()
            await until(lambda: not connected()["voice_connected"], "the loss")
        assert connected()["ssrc"] is not None
        async with bare_voice(local) as voice:
            await _enter(voice, joined)
            await voice.websocket.close(code=1000)
            await until(lambda: connected()["ssrc"] is None, "the session's end")

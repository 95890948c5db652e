"""A scripted person in a voice channel, who plays clips and keeps the speech of everybody there.

The person plays clips at the pace of a real client and reports when the last voiced frame was sent. Its voice protocol
is an independent implementation that shares no code with discord.py or the bot.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from math import inf
from types import TracebackType
from typing import Self

import structlog

from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import FRAME_S, Clip
from rehearsal.people.received_speech import ReceivedSpeech
from rehearsal.people.voice_connection import PersonVoiceConnection
from rehearsal.people.voice_session import JoinChannel, LeaveChannel, ReceivedOpus
from rehearsal.waiting import Changes
from voice.transport.opus import SILENCE_FRAME


class Pacer:
    """Waits for each frame's own deadline, so that a late frame does not delay the next frame.

    Use one pacer for each talkspurt. *Cancellation*: a wait can be cancelled. The pacer stays usable.
    """

    def __init__(self, frame_s: float) -> None:
        """Start now, so that frame 0 is due at once."""
        self._frame_s = frame_s
        self.started_at = time.monotonic()
        self.worst_late_s = 0.0

    async def until(self, index: int) -> float:
        """Wait until frame `index` is due. Return the time at which the frame is sent."""
        due = self.started_at + index * self._frame_s
        # Even a late frame yields once to the event loop, so that a burst after a stall does not block other tasks.
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic()
        self.worst_late_s = max(self.worst_late_s, now - due)
        return now


_log = structlog.get_logger()

# How long to wait for the call's encryption keys before speaking. Only a busy machine needs more than a second.
READY_TIMEOUT_S = 60.0
# Every client sends these silence frames at the end of a talkspurt, so that decoders do not extrapolate the sound.
_CLOSING_FRAMES = 5


@dataclass(frozen=True, slots=True)
class ClipPlayback:
    """When one clip was sent.

    Times are monotonic seconds at which a frame was sent. The `speech_*` times count voiced frames only.
    """

    started_at: float
    speech_started_at: float
    speech_ended_at: float
    sent_packets: int
    unsent_packets: int
    worst_late_s: float


class ScriptedPerson:
    """One member of the call, who joins in `__aenter__` and leaves in `__aexit__`.

    *Cancellation*: a cancelled `say` stops at once and announces the end of speaking. The person stays usable.
    """

    def __init__(
        self,
        *,
        user_id: int,
        name: str,
        join: JoinChannel,
        tls: ssl.SSLContext,
        leave: LeaveChannel | None = None,
        on_opus: Callable[[ReceivedOpus], None] = lambda _: None,
    ) -> None:
        """`join` and `leave` act on the local Discord. `tls` trusts the certificate of Discord's voice websocket.
        `on_opus`: gets each packet as it arrives.
        """
        self.user_id = user_id
        self.name = name
        self._heard: dict[int, ReceivedSpeech] = {}
        self._spoken = count()
        self._pass_on = on_opus
        self._changes = Changes()
        self._speech_lock = asyncio.Lock()
        self._connection = PersonVoiceConnection(join=join, leave=leave, tls=tls, on_opus=self._on_opus)

    async def __aenter__(self) -> Self:
        """Join the channel. Raises `PersonError` when the voice server refuses the connection."""
        await self._connection.__aenter__()
        _log.info("person_joined", user_id=self.user_id)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the channel."""
        await self._connection.__aexit__(kind, error, trace)
        _log.info("person_left", user_id=self.user_id)

    @property
    def dave_failures(self) -> int:
        """Return how many packets could not be decrypted end to end since the person joined."""
        return self._connection.call.dave_failures if self._connection.call is not None else 0

    @property
    def dave_version(self) -> int:
        """Return the DAVE version in use: 1, or 0 while the call is downgraded to plain Opus."""
        return self._connection.call.dave.version if self._connection.call is not None else 0

    def heard(self, user_id: int) -> ReceivedSpeech:
        """Return the speech that this person received from `user_id`. It grows while that user speaks. Of themselves
        they hear the clips that they play.
        """
        return self._heard.setdefault(user_id, ReceivedSpeech())

    @property
    def all_heard(self) -> Collection[ReceivedSpeech]:
        """Return the speech of everybody who spoke."""
        return self._heard.values()

    def forget_heard(self) -> None:
        """Forget all speech that this person received."""
        for each in self._heard.values():
            each.clear()

    async def meet(self, user_id: int, *, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until `user_id` is in the call and the encryption keys are available. Raises `PersonError`."""
        await self._connection.wait_until_with(user_id, timeout_s)
        await self._connection.wait_until_can_send(timeout_s)

    async def say(self, clip: Clip) -> ClipPlayback:
        """Play one clip in real time. Clips play one at a time. Raises `PersonError` when there is no connection.

        Frames that are due while there is no key are lost, as with a real client, and counted as unsent.
        """
        async with self._speaking():
            return await self._send_clip(clip)

    async def speak(self, packets: AsyncIterator[bytes]) -> None:
        """Send Opus packets of 20 ms as they come, until there are no more. Raises `PersonError` as `say` does."""
        async with self._speaking():
            async for packet in packets:
                self._connection.send(packet)
            for _ in range(_CLOSING_FRAMES):
                self._connection.send(SILENCE_FRAME)

    @asynccontextmanager
    async def _speaking(self) -> AsyncIterator[None]:
        async with self._speech_lock:
            await self._connection.wait_until_can_send(READY_TIMEOUT_S)
            await self._connection.set_speaking(True)
            try:
                yield
            finally:
                await self._connection.set_speaking(False)

    async def _send_clip(self, clip: Clip) -> ClipPlayback:
        pacer = Pacer(FRAME_S)
        sent = 0
        speech_started_at = speech_ended_at = pacer.started_at
        for index, packet in enumerate(clip.packets):
            left_at = await pacer.until(index)
            if self._connection.send(packet):
                sent += 1
                number = next(self._spoken) & 0xFFFF
                self.heard(self.user_id).add(arrived_at=left_at, ssrc=0, sequence=number, timestamp=0, opus=packet)
            if index == clip.voiced.first:
                speech_started_at = left_at
            if index == clip.voiced.last:
                speech_ended_at = left_at
        for index in range(_CLOSING_FRAMES):
            await pacer.until(len(clip.packets) + index)
            self._connection.send(SILENCE_FRAME)
        return ClipPlayback(
            started_at=pacer.started_at,
            speech_started_at=speech_started_at,
            speech_ended_at=speech_ended_at,
            sent_packets=sent,
            unsent_packets=len(clip.packets) - sent,
            worst_late_s=pacer.worst_late_s,
        )

    async def wait_for_sound(self, user_id: int, *, since: float, timeout_s: float) -> None:
        """Wait until sound from `user_id` arrives after the time `since`. Raises `PersonError` after `timeout_s`."""
        received = self.heard(user_id)
        if not await self._changes.until(lambda: (received.last_sound_at or -inf) >= since, timeout_s=timeout_s):
            raise PersonError(f"{self.name} heard nothing of member {user_id} within {timeout_s:g} s.")

    async def wait_for_quiet(self, user_id: int, *, quiet_s: float, timeout_s: float) -> None:
        """Wait until nothing has arrived from `user_id` for `quiet_s`, counted from now at the earliest.

        Raises `PersonError` when the user still speaks after `timeout_s`.
        """
        received = self.heard(user_id)
        asked_at = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    quiet_at = max(asked_at, received.last_sound_at or asked_at) + quiet_s
                    left_s = quiet_at - time.monotonic()
                    if left_s <= 0:
                        return
                    await asyncio.sleep(left_s)
        except TimeoutError as exc:
            raise PersonError(f"Member {user_id} was still talking after {timeout_s:g} s.") from exc

    def _on_opus(self, packet: ReceivedOpus) -> None:
        self.heard(packet.user_id).add(
            arrived_at=packet.arrived_at,
            ssrc=packet.ssrc,
            sequence=packet.sequence,
            timestamp=packet.timestamp,
            opus=packet.opus,
        )
        self._changes.tell()
        self._pass_on(packet)


def scripted_member(
    discord: LocalDiscord,
    user_id: int,
    *,
    channel_id: int | None = None,
    on_opus: Callable[[ReceivedOpus], None] = lambda _: None,
) -> ScriptedPerson:
    """Return a member of the server who is in a voice channel, by default the first, while their context lasts.
    `on_opus`: gets each packet that they hear.
    """

    async def join() -> Mapping[str, object]:
        return (await discord.join(user_id, channel_id=channel_id)).as_dict()

    async def leave() -> None:
        await discord.leave(user_id)

    return ScriptedPerson(
        user_id=user_id,
        name=discord.guild.member(user_id).name,
        join=join,
        leave=leave,
        on_opus=on_opus,
        tls=ssl.create_default_context(cafile=str(discord.certificate_path)),
    )

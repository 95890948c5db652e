"""Many members of one voice channel who speak at once, cheaply: one process makes all their packets ahead of time.

They are real members of the encrypted group, and their packets are encrypted as the media server encrypts them for the
one who receives. But they have no websocket and hear nobody, so that a hundred of them fit beside what is measured.

Run as a program, this is the process of a local Discord and its crowd, which `bench` asks (`benchmarks.child_process`).
So the crowd's CPU time is not counted with that of the one who receives.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.child_process import answer_requests
from benchmarks.load.talk import CrowdTalk, bundled_recordings, with_pauses, without_pauses
from benchmarks.local_bot import bot_address
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.media.packet_encryption import RtpPacket, encrypt_packet
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import FRAME_S
from rehearsal.people.dave import MAX_VERSION, BinaryMessage, GatewayMessage, JsonMessage
from rehearsal.people.media_socket import MODE, PAYLOAD_TYPE_OPUS, TIMESTAMP_STEP
from rehearsal.people.voice_session import READY, VoiceServerAccess, VoiceSessionState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AsyncExitStack

    from rehearsal.discord.media.forwarder import MediaLeg

# The datagrams of 20 ms, each member's at their own place; None: they pause.
Slot: TypeAlias = "list[bytes | None]"

_IDENTIFY, _SELECT_PROTOCOL, _HEARTBEAT, _SPEAKING, _HELLO = 0, 1, 3, 5, 8
# A header extension as the local Discord sends it, and its share of padded packets.
_EXTENSION = bytes.fromhex("51000090 10ff0000")
_PADDED_SHARE = 0.05
# The sender wakes this often. The packets of so long are sent together.
_TICK_S = 0.001
_FOUNDERS = 2
_HANDSHAKE_S = 0.5
FIRST_PERSON_ID = 10_001
GUILD_ID, CHANNEL_ID = 500, 600


class CrowdMember:
    """One member without a websocket: the voice gateway calls `send`, and the answers go back to it at once."""

    closed_by_us = False
    close_code: int | None = None
    muted = False

    def __init__(self, discord: LocalDiscord, access: VoiceServerAccess) -> None:
        self._gateway = discord.voice_gateway
        self._access = access
        self.session = VoiceSessionState(access)
        self._loop = asyncio.get_running_loop()
        self._held: list[dict[str, Any] | bytes] | None = None

    def hold(self) -> None:
        """Answer nothing until `go_on`."""
        self._held = []

    def go_on(self) -> None:
        """Answer what came meanwhile, and everything from now on."""
        held, self._held = self._held or [], None
        for message in held:
            self._receive(message)

    def send_json(self, message: dict[str, Any]) -> None:
        self._loop.call_soon(self._receive, message)

    def send(self, frame: str | bytes) -> None:
        self._loop.call_soon(self._receive, json.loads(frame) if isinstance(frame, str) else frame)

    def close(self, code: int, reason: str = "") -> None:
        """Do nothing: the member has gone already."""

    def abort(self) -> None:
        """Do nothing, as `close`."""

    def _receive(self, message: dict[str, Any] | bytes) -> None:
        if self._held is not None:
            self._held.append(message)
            return
        answers = self.session.handle_binary(message) if isinstance(message, bytes) else self._answer(message)
        for answer in answers:
            match answer:
                case BinaryMessage(op, body):
                    self._gateway.binary(self, bytes([op]) + body)
                case JsonMessage(op, body):
                    self._gateway.text(self, {"op": op, "d": body})

    def _beat(self, interval_s: float) -> None:
        """Send heartbeats, without an end: without them the voice gateway ends the session."""
        self._gateway.text(self, {"op": _HEARTBEAT, "d": {"t": 0, "seq_ack": 0}})
        self._loop.call_later(interval_s, self._beat, interval_s)

    def _answer(self, message: dict[str, Any]) -> list[GatewayMessage]:
        op, body = message["op"], message.get("d")
        answers = self.session.handle_json(op, body) if isinstance(body, dict) else []
        if op == _HELLO:
            self._beat(float(message["d"]["heartbeat_interval"]) / 1000)
            who = self._access
            identity: dict[str, Any] = {
                "server_id": str(who.guild_id),
                "session_id": who.session_id,
                "token": who.token,
                "user_id": str(who.user_id),
                "max_dave_protocol_version": MAX_VERSION,
            }
            return [JsonMessage(_IDENTIFY, identity)]
        if op == READY:
            # A member without a socket has no address, so nothing is forwarded to it.
            data = {"address": "127.0.0.1", "port": 9, "mode": MODE}
            return [JsonMessage(_SELECT_PROTOCOL, {"protocol": "udp", "data": data})]
        return answers


@dataclass(frozen=True, slots=True)
class Performance:
    """What was sent: how many packets, and how late the latest left, in milliseconds."""

    packets: int
    latest_ms: float


@dataclass(slots=True)
class Crowd:
    """The members, in the order in which they joined."""

    discord: LocalDiscord
    members: list[CrowdMember] = field(default_factory=list)
    _numbers: dict[int, tuple[int, int]] = field(default_factory=dict)  # by SSRC: sequence and timestamp

    async def join(self, user_ids: Sequence[int], *, timeout_s: float = 120.0) -> None:
        """Let these members join. Returns when all of them have the group's keys.

        Two make the group. They do not answer until all others have joined, so that those are added in one step; one
        after the other would take minutes.
        """
        founders, others = user_ids[:_FOUNDERS], user_ids[_FOUNDERS:]
        for user_id in founders:
            await self._add(user_id)
        await self.settled(len(founders), timeout_s=timeout_s)
        present = list(self.members)
        for member in present:
            member.hold()
        for user_id in others:
            await self._add(user_id)
        # What the new members have to say takes some turns of the loop.
        await asyncio.sleep(_HANDSHAKE_S)
        for member in present:
            member.go_on()
        await self.settled(len(self.members), timeout_s=timeout_s)

    async def _add(self, user_id: int) -> None:
        access = VoiceServerAccess.parse((await self.discord.join(user_id)).as_dict())
        member = CrowdMember(self.discord, access)
        self.members.append(member)
        self.discord.voice_gateway.opened(member)

    async def settled(self, size: int, *, timeout_s: float = 60.0) -> None:
        """Wait until the group has so many members, no change is under way, and everybody here has its keys."""
        async with asyncio.timeout(timeout_s):
            while not self._is_settled(size):  # noqa: ASYNC110 - the delivery service has no event for it
                await asyncio.sleep(0.05)

    async def prepare(self, receiver_id: int, talks: Sequence[CrowdTalk]) -> list[Slot]:
        """Return the datagrams of the first members for one receiver, a slot for each 20 ms: `talks` is what each says.

        This takes seconds. What else is due in this process is done meanwhile.
        """
        leg = self.discord.media.leg_of(receiver_id)
        assert leg is not None, "the receiver is connected"
        chance = random.Random(receiver_id)  # noqa: S311 - which packets are padded
        slots = []
        for packets in zip(*talks, strict=True):
            slots.append(
                [
                    self._datagram(member, opus, leg, padded=chance.random() < _PADDED_SHARE)
                    for member, opus in zip(self.members, packets, strict=False)
                ]
            )
            await asyncio.sleep(0)
        return slots

    def announce(self, *, speakers: int) -> None:
        """Tell the others that the first `speakers` members speak (op 5)."""
        for member in self.members[:speakers]:
            body = {"speaking": 1, "delay": 0, "ssrc": member.session.ssrc}
            self.discord.voice_gateway.text(member, {"op": _SPEAKING, "d": body})

    async def perform(self, receiver_id: int, slots: Sequence[Slot], *, in_step: bool = False) -> Performance:
        """Send what was prepared, 20 ms a slot, from a thread. `in_step`: all members at the same moment; otherwise
        their packets lie evenly in the 20 ms.
        """
        leg = self.discord.media.leg_of(receiver_id)
        assert leg is not None
        assert leg.address is not None, "the receiver has told its address"
        return await asyncio.to_thread(self._send, leg.address, slots, in_step=in_step)

    def _send(self, address: tuple[str, int], slots: Sequence[Slot], *, in_step: bool) -> Performance:
        latest, packets = 0.0, 0
        spread = 0.0 if in_step else FRAME_S
        with self.discord.media.duplicate_socket() as sock:
            sock.setblocking(True)
            start = time.monotonic() + 0.05
            for number, slot in enumerate(slots):
                for place, datagram in enumerate(slot):
                    due = start + number * FRAME_S + place * spread / len(slot)
                    while (now := time.monotonic()) < due:
                        time.sleep(max(_TICK_S, due - now))
                    if datagram is not None:
                        latest = max(latest, now - due)
                        sock.sendto(datagram, address)
                        packets += 1
        return Performance(packets, round(1000 * latest, 1))

    def _datagram(self, member: CrowdMember, opus: bytes | None, leg: MediaLeg, *, padded: bool) -> bytes | None:
        """Return the datagram of a member's next 20 ms, or None in a pause, in which only the RTP clock runs on."""
        ssrc = member.session.ssrc
        sequence, timestamp = self._numbers.get(ssrc, (ssrc & 0xFFFF, ssrc * 1000))
        following = (timestamp + TIMESTAMP_STEP) & 0xFFFF_FFFF
        if opus is None:
            self._numbers[ssrc] = sequence, following
            return None
        self._numbers[ssrc] = (sequence + 1) & 0xFFFF, following
        frame = member.session.dave.encrypt(opus)
        assert frame is not None, "the group has keys"
        assert leg.cipher is not None, "the receiver has a key"
        packet = RtpPacket(PAYLOAD_TYPE_OPUS, sequence, timestamp, ssrc, frame)
        return encrypt_packet(
            packet, leg.cipher, leg.next_counter(), extension=_EXTENSION, padding_bytes=5 if padded else 0
        )

    def _is_settled(self, size: int) -> bool:
        status = self.discord.status()
        channel = status["channels"][0]
        if len(channel["leaves"]) != size or channel["pending_transitions"]:
            return False
        return all(member.session.can_send for member in self.members)


class CrowdProcess:
    """The state of the process. `stack` closes what it opens. What it is asked is in the public methods."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._crowd: Crowd | None = None
        self._slots: list[Slot] = []

    async def open(self, people: int) -> Mapping[str, object]:
        """Let so many people into the channel, and return the addresses of their Discord."""
        ids = [FIRST_PERSON_ID + number for number in range(people)]
        guild = GuildSpec(
            id=GUILD_ID,
            voice_channels=(Channel(CHANNEL_ID, "Evening"),),
            text_channel=Channel(CHANNEL_ID + 1, "chat"),
            people=tuple(Member(user_id, f"Person {user_id}") for user_id in ids),
            bots=(Member(ROOMTONE_BOT_ID, "Roomtone"),),
        )
        discord = await self._stack.enter_async_context(LocalDiscord(guild=guild))
        self._crowd = Crowd(discord)
        await self._crowd.join(ids)
        return bot_address(discord)

    async def prepare(self, *, speakers: int, seconds: float, pauses: bool) -> Mapping[str, object]:
        """Make the packets of the first people, once the receiver is in the group, and announce that they speak."""
        assert self._crowd is not None, "opened before"
        await self._crowd.settled(len(self._crowd.members) + 1)
        recordings = await asyncio.to_thread(bundled_recordings)
        talks = (with_pauses if pauses else without_pauses)(
            recordings, people=speakers, frames=round(seconds / FRAME_S)
        )
        self._slots = await self._crowd.prepare(ROOMTONE_BOT_ID, talks)
        self._crowd.announce(speakers=speakers)
        return {}

    async def perform(self, *, in_step: bool, warm_up_s: float) -> Mapping[str, object]:
        """Send the packets. Returns what was sent, and how much of it after the warm-up (`measured`)."""
        assert self._crowd is not None, "opened before"
        after = self._slots[round(warm_up_s / FRAME_S) :]
        measured = sum(datagram is not None for slot in after for datagram in slot)
        sent = await self._crowd.perform(ROOMTONE_BOT_ID, self._slots, in_step=in_step)
        return {**asdict(sent), "measured": measured}


if __name__ == "__main__":
    answer_requests(CrowdProcess)

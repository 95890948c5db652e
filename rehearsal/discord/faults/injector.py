"""The faults that the local Discord can inject, by name. All of them also happen on the real Discord.

Here are those of voice connections: such a fault affects the given member. Without a member it affects the bots in
voice, or everybody in voice if there is no bot. `services` has those of the main gateway and of REST.
docs/rehearsal-control-api.md describes the table `FAULTS`; a test compares the two.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import structlog

from rehearsal.discord.dave import mls
from rehearsal.discord.dave.effects import DaveOpcode
from rehearsal.discord.faults.services import SERVICE_FAULTS
from rehearsal.discord.faults.spec import FaultSpec, OptionRange
from rehearsal.discord.media.stream_faults import ClearFrames, PaddingBursts
from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.discord.faults.services import ServiceFaults
    from rehearsal.discord.gateway.gateway import Gateway
    from rehearsal.discord.guild.payloads import Json
    from rehearsal.discord.guild.spec import GuildSpec
    from rehearsal.discord.media.forwarder import Forwarder
    from rehearsal.discord.voice.gateway import VoiceGateway
    from rehearsal.discord.voice.room import VoiceRoom, VoiceSession

_log = structlog.get_logger()

# The id of a transition that was never announced.
_UNKNOWN_TRANSITION = 0xFFFF
_FIRST_CLOSE_CODE = 4000
_GARBAGE = bytes(range(1, 64))


class FaultInjector:
    """Injects faults; `service` those that are not of voice. Call it only from the event loop's thread."""

    def __init__(
        self,
        guild: GuildSpec,
        gateway: Gateway,
        voice: VoiceGateway,
        forwarder: Forwarder,
        service: ServiceFaults,
        *,
        switch_endpoint: Callable[[], None],
    ) -> None:
        self._guild = guild
        self._gateway = gateway
        self._voice = voice
        self._forwarder = forwarder
        self._service = service
        self._switch_endpoint = switch_endpoint

    def inject(self, name: str, *, user_id: int | None = None, options: Mapping[str, Any] | None = None) -> Json:
        """Inject a fault. Return its name, the affected users, and the fault's own result.

        Raises `LocalDiscordError` for an unknown fault, for an option that the fault does not take, or when it would
        affect nobody.
        """
        fault = FAULTS.get(name)
        if fault is None:
            raise LocalDiscordError(f"There is no fault {name!r}. The faults are {', '.join(sorted(FAULTS))}.")
        checked = fault.checked(name, options or {})
        if name in SERVICE_FAULTS:
            affected = self._service.inject(fault, user_id, checked)
            result = None
        else:
            targets = self._targets(user_id)
            result = fault.act(self, targets, checked)
            affected = [session.user_id for session in targets]
        _log.info("fault_injected", fault=name, user_ids=affected)
        return {"fault": name, "user_ids": [str(user) for user in affected], **(result or {})}

    def _targets(self, user_id: int | None) -> list[VoiceSession]:
        sessions = [session for session in self._voice.sessions() if session.protocol_selected]
        if user_id is not None:
            member = self._guild.member(user_id)
            found = [session for session in sessions if session.user_id == user_id]
            if not found:
                raise LocalDiscordError(f"{member.name} is not connected to voice. Let them join first.")
            return found
        bots = [session for session in sessions if self._guild.is_bot(session.user_id)]
        if not sessions:
            raise LocalDiscordError("Nobody is connected to voice, so a fault would affect nobody.")
        return bots or sessions

    def _rooms(self, targets: list[VoiceSession]) -> list[VoiceRoom]:
        return list({id(room): room for room in map(self._voice.room_of, targets)}.values())

    # --- the faults --------------------------------------------------------------------------------------------

    def _malformed_proposals(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.PROPOSALS, mls.append_proposals([_GARBAGE]))

    def _invalid_commit(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.ANNOUNCE_COMMIT, struct.pack(">H", _UNKNOWN_TRANSITION) + _GARBAGE)

    def _kill_voice_websocket(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        code = int(options["close_code"])
        if code and code < _FIRST_CLOSE_CODE:
            raise LocalDiscordError(f"close_code is 0 (no close frame) or one of Discord's, 4000 to 4999; not {code}.")
        for session in targets:
            if session.connection is None:
                continue
            if code:
                session.connection.close(code, "The local Discord closed this connection on purpose")
            else:
                session.connection.abort()

    def _remove_silently(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for session in targets:
            self._gateway.leave(session.user_id, told=False)

    def _forgetful_nat(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        self._forwarder.set_nat([session.user_id for session in targets], idle_s=float(options["idle_s"]))

    def _late_speaking(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for room in self._rooms(targets):
            room.speaking_delay_s = float(options["delay_s"])

    def _rtcp(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> Json:
        users = [session.user_id for session in targets]
        return {"packets": self._forwarder.inject_rtcp(users, count=int(options["count"]))}

    def _video(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> Json:
        users = [session.user_id for session in targets]
        for session in targets:
            self._voice.room_of(session).announce_video(session)
        return {"packets": self._forwarder.inject_video(users, count=int(options["count"]))}

    def _padding_bursts(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        bursts = PaddingBursts(int(options["count"]), float(options["empty"]))
        for session in targets:
            self._forwarder.faults.bursts[session.user_id] = bursts

    def _clear_frames(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        clear = ClearFrames(float(options["share"]), float(options["tiny"]))
        for session in targets:
            self._forwarder.faults.clear[session.user_id] = clear

    def _request_reset(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.recreate())

    def _downgrade(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.downgrade())

    def _upgrade(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.upgrade())

    def _migrate(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> Json:
        self._switch_endpoint()
        servers = {str(each.user_id): self._gateway.announce_voice_server(each.user_id) for each in targets}
        return {"servers": servers}

    def _silent_voice_gateway(self, targets: list[VoiceSession], options: Mapping[str, Any]) -> None:
        for session in targets:
            if session.connection is not None:
                session.connection.muted = True


_COUNT = OptionRange(default=20, least=1, most=1000)

FAULTS: Mapping[str, FaultSpec] = {
    "malformed_proposals": FaultSpec(
        "Sends garbage as MLS proposals (op 27).",
        FaultInjector._malformed_proposals,
        {},
    ),
    "invalid_commit": FaultSpec(
        "Sends a commit that cannot be processed (op 29); the client answers op 31 and is removed and added again.",
        FaultInjector._invalid_commit,
        {},
    ),
    "kill_voice_websocket": FaultSpec(
        "Closes the voice websocket, without a close frame or with the given code; the session can be resumed.",
        FaultInjector._kill_voice_websocket,
        {"close_code": OptionRange(default=0, least=0, most=4999)},
    ),
    "remove_silently": FaultSpec(
        "Removes a member from voice (close code 4014) without an event on the main gateway.",
        FaultInjector._remove_silently,
        {},
    ),
    "forgetful_nat": FaultSpec(
        "Drops the audio for a member who has sent no datagram for idle_s seconds, as a NAT does; idle_s 0 ends that.",
        FaultInjector._forgetful_nat,
        {"idle_s": OptionRange(default=30.0, least=0.0, most=600.0)},
    ),
    "late_speaking": FaultSpec(
        "From now on op 5 comes late, so that sound overtakes it; delay_s 0 ends that.",
        FaultInjector._late_speaking,
        {"delay_s": OptionRange(default=0.3, least=0.0, most=10.0)},
    ),
    "rtcp": FaultSpec(
        "Injects RTCP sender reports between the audio packets.",
        FaultInjector._rtcp,
        {"count": _COUNT},
    ),
    "video": FaultSpec(
        "Announces a camera (op 12) and injects its video packets.",
        FaultInjector._video,
        {"count": _COUNT},
    ),
    "padding_bursts": FaultSpec(
        "From now on a burst of padded packets comes whenever somebody falls silent; count 0 ends that.",
        FaultInjector._padding_bursts,
        {
            "count": OptionRange(default=50, least=0, most=500),
            "empty": OptionRange(default=0.5, least=0.0, most=1.0),
        },
    ),
    "clear_frames": FaultSpec(
        "From now on some frames come in the clear although the call is encrypted; share 0 ends that.",
        FaultInjector._clear_frames,
        {
            "share": OptionRange(default=0.03, least=0.0, most=1.0),
            "tiny": OptionRange(default=0.5, least=0.0, most=1.0),
        },
    ),
    "request_reset": FaultSpec(
        "Has everybody in the channel make the encryption group anew (op 24, epoch 1).",
        FaultInjector._request_reset,
        {},
    ),
    "downgrade": FaultSpec(
        "Ends end-to-end encryption in the channel (ops 21 and 22 with protocol version 0).",
        FaultInjector._downgrade,
        {},
    ),
    "upgrade": FaultSpec(
        "Begins end-to-end encryption again after a downgrade (op 24, epoch 1).",
        FaultInjector._upgrade,
        {},
    ),
    "migrate": FaultSpec(
        "Moves to another voice endpoint with a new token (VOICE_SERVER_UPDATE); the answer holds it as `servers`.",
        FaultInjector._migrate,
        {},
    ),
    "silent_voice_gateway": FaultSpec(
        "Sends nothing more on the voice websocket, not even answers to heartbeats. The session can be resumed.",
        FaultInjector._silent_voice_gateway,
        {},
    ),
    **SERVICE_FAULTS,
}

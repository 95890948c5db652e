"""The faults that a test, a scenario or a person at a terminal can order by name. All of them also happen on Discord.

A fault of voice affects the given member; without one, the bots in voice, or everybody in voice if there is no bot. A
fault of the main gateway affects the given bot, or all bots that are online. Faults of REST and of interactions affect
every bot's requests. docs/rehearsal.md lists the table `FAULTS`; a test compares the two.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import structlog

from rehearsal.discord.dave import mls
from rehearsal.discord.dave.effects import DaveOpcode
from rehearsal.discord.rest.gate import OrderedAnswers, error_page, limited
from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.discord.gateway.gateway import Gateway
    from rehearsal.discord.guild.payloads import Json
    from rehearsal.discord.guild.spec import GuildSpec
    from rehearsal.discord.interactions.interactions import Interactions
    from rehearsal.discord.media.forwarder import Forwarder
    from rehearsal.discord.rest.gate import RestFaults
    from rehearsal.discord.voice.gateway import VoiceGateway
    from rehearsal.discord.voice.room import VoiceRoom, VoiceSession

_log = structlog.get_logger()

# The id of a transition that was never announced.
_UNKNOWN_TRANSITION = 0xFFFF
_GARBAGE = bytes(range(1, 64))
# The close codes of Discord's two gateways and of websockets. 0 means that the connection breaks without a close frame.
_FIRST_CLOSE_CODE, _MOST = 1000, 4999


class FaultInjector:
    """Causes the faults. Call it only from the event loop's thread."""

    def __init__(
        self,
        guild: GuildSpec,
        gateway: Gateway,
        voice: VoiceGateway,
        forwarder: Forwarder,
        *,
        rest: RestFaults,
        interactions: Interactions,
        switch_endpoint: Callable[[], None],
    ) -> None:
        self._guild = guild
        self._gateway = gateway
        self._voice = voice
        self._forwarder = forwarder
        self._rest = rest
        self._interactions = interactions
        self._switch_endpoint = switch_endpoint

    def inject(self, name: str, *, user_id: int | None = None, options: Mapping[str, Any] | None = None) -> Json:
        """Cause a fault. Return its name, the affected users, and the fault's own result.

        Raises `LocalDiscordError` for an unknown fault or option, or when it would affect nobody.
        """
        if name not in FAULTS:
            raise LocalDiscordError(f"There is no fault {name!r}. The faults are {', '.join(sorted(FAULTS))}.")
        checked = _checked(name, options or {})
        result: Json | None = None
        if (of_voice := _OF_VOICE.get(name)) is not None:
            targets = self._targets(user_id)
            result = of_voice(self, targets, checked)
            affected = [session.user_id for session in targets]
        elif (of_gateway := _OF_THE_GATEWAY.get(name)) is not None:
            affected = [bot for bot in self._bots(user_id) if self._gateway.online(bot)]
            if not affected:
                raise LocalDiscordError("No such bot is online, so the fault would affect nobody. Start it first.")
            for bot in affected:
                of_gateway(self, bot, checked)
        else:
            affected = self._bots(user_id)
            _OF_REST[name](self, checked)
        _log.info("fault_injected", fault=name, user_ids=affected)
        return {"fault": name, "user_ids": [str(user) for user in affected], **(result or {})}

    def _bots(self, user_id: int | None) -> list[int]:
        if user_id is not None and not self._guild.is_bot(user_id):
            raise LocalDiscordError(f"{self._guild.member(user_id).name} is a person. This fault affects bots.")
        return [user_id] if user_id is not None else [bot.id for bot in self._guild.bots]

    def _targets(self, user_id: int | None) -> list[VoiceSession]:
        sessions = [session for session in self._voice.sessions() if session.protocol_selected]
        if user_id is not None:
            member = self._guild.member(user_id)
            found = [session for session in sessions if session.user_id == user_id]
            if not found:
                raise LocalDiscordError(f"{member.name} is not connected to voice. Let them join first.")
            return found
        if not sessions:
            raise LocalDiscordError("Nobody is connected to voice, so a fault would affect nobody.")
        return [session for session in sessions if self._guild.is_bot(session.user_id)] or sessions

    def _rooms(self, targets: list[VoiceSession]) -> list[VoiceRoom]:
        return list({id(room): room for room in map(self._voice.room_of, targets)}.values())

    # --- voice -------------------------------------------------------------------------------------------------

    def _malformed_proposals(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.PROPOSALS, mls.append_proposals([_GARBAGE]))

    def _invalid_commit(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.ANNOUNCE_COMMIT, struct.pack(">H", _UNKNOWN_TRANSITION) + _GARBAGE)

    def _kill_voice_websocket(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        code = _close_code(options)
        for connection in [session.connection for session in targets if session.connection is not None]:
            if code:
                connection.close(code, "The local Discord closed this connection on purpose")
            else:
                connection.abort()

    def _remove_silently(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for session in targets:
            self._gateway.leave(session.user_id, told=False)

    def _forgetful_nat(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        self._forwarder.set_nat([session.user_id for session in targets], idle_s=options["idle_s"])

    def _late_speaking(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for room in self._rooms(targets):
            room.speaking_delay_s = options["delay_s"]

    def _rtcp(self, targets: list[VoiceSession], options: Mapping[str, float]) -> Json:
        users = [session.user_id for session in targets]
        return {"packets": self._forwarder.inject_rtcp(users, count=int(options["count"]))}

    def _video(self, targets: list[VoiceSession], options: Mapping[str, float]) -> Json:
        users = [session.user_id for session in targets]
        for session in targets:
            self._voice.room_of(session).announce_video(session)
        return {"packets": self._forwarder.inject_video(users, count=int(options["count"]))}

    def _request_reset(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.recreate())

    def _downgrade(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.downgrade())

    def _upgrade(self, targets: list[VoiceSession], options: Mapping[str, float]) -> None:
        for room in self._rooms(targets):
            room.decide(lambda delivery: delivery.upgrade())

    def _migrate(self, targets: list[VoiceSession], options: Mapping[str, float]) -> Json:
        self._switch_endpoint()
        return {"servers": {str(each.user_id): self._gateway.announce_voice_server(each.user_id) for each in targets}}

    # --- the main gateway --------------------------------------------------------------------------------------

    def _invalidate_session(self, bot: int, options: Mapping[str, float]) -> None:
        self._gateway.invalidate(
            bot,
            stays_in_voice=bool(options["stays_in_voice"]),
            ready_after_s=options["ready_after_s"],
            resumable=bool(options["resumable"]),
        )

    def _reconnect(self, bot: int, options: Mapping[str, float]) -> None:
        self._gateway.ask_to_reconnect(bot)

    def _kill_gateway(self, bot: int, options: Mapping[str, float]) -> None:
        self._gateway.cut_off(bot, _close_code(options))

    # --- REST and interactions ---------------------------------------------------------------------------------

    def _rest_errors(self, options: Mapping[str, float]) -> None:
        self._rest.errors = _errors(options)

    def _interaction_errors(self, options: Mapping[str, float]) -> None:
        self._rest.interaction_errors = _errors(options)

    def _rest_limit(self, options: Mapping[str, float]) -> None:
        everywhere = bool(options["everywhere"])
        self._rest.refused = OrderedAnswers(
            int(options["count"]), lambda: limited(options["retry_after_s"], everywhere=everywhere)
        )

    def _late_interactions(self, options: Mapping[str, float]) -> None:
        self._interactions.delivery_delay_s = options["delay_s"]

    def _expire_interactions(self, options: Mapping[str, float]) -> None:
        self._interactions.expire()


def _checked(name: str, options: Mapping[str, Any]) -> dict[str, float]:
    """Return the value of each option of a fault. Raises `LocalDiscordError`."""
    taken = FAULTS[name]
    for key, value in options.items():
        if key not in taken:
            there = ", ".join(taken) or "none"
            raise LocalDiscordError(f"The fault {name} has no option {key!r}. Its options: {there}.")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= _MOST:
            raise LocalDiscordError(f"{key} of the fault {name} is a number from 0 to {_MOST}; {value!r} is not.")
    return {**taken, **options}


def _close_code(options: Mapping[str, float]) -> int:
    code = int(options["close_code"])
    if 0 < code < _FIRST_CLOSE_CODE:
        raise LocalDiscordError(f"close_code is 0 (no close frame) or {_FIRST_CLOSE_CODE} to {_MOST}; not {code}.")
    return code


def _errors(options: Mapping[str, float]) -> OrderedAnswers:
    status, html = int(options["status"]), bool(options["html"])
    return OrderedAnswers(
        int(options["count"]), lambda: error_page(status, html=html), carried_out=bool(options["carried_out"])
    )


_OF_VOICE: Mapping[str, Callable[[FaultInjector, list[VoiceSession], Mapping[str, float]], Json | None]] = {
    "malformed_proposals": FaultInjector._malformed_proposals,
    "invalid_commit": FaultInjector._invalid_commit,
    "kill_voice_websocket": FaultInjector._kill_voice_websocket,
    "remove_silently": FaultInjector._remove_silently,
    "forgetful_nat": FaultInjector._forgetful_nat,
    "late_speaking": FaultInjector._late_speaking,
    "rtcp": FaultInjector._rtcp,
    "video": FaultInjector._video,
    "request_reset": FaultInjector._request_reset,
    "downgrade": FaultInjector._downgrade,
    "upgrade": FaultInjector._upgrade,
    "migrate": FaultInjector._migrate,
}
_OF_THE_GATEWAY: Mapping[str, Callable[[FaultInjector, int, Mapping[str, float]], None]] = {
    "invalidate_session": FaultInjector._invalidate_session,
    "reconnect": FaultInjector._reconnect,
    "kill_gateway": FaultInjector._kill_gateway,
}
_OF_REST: Mapping[str, Callable[[FaultInjector, Mapping[str, float]], None]] = {
    "rest_errors": FaultInjector._rest_errors,
    "interaction_errors": FaultInjector._interaction_errors,
    "rest_limit": FaultInjector._rest_limit,
    "late_interactions": FaultInjector._late_interactions,
    "expire_interactions": FaultInjector._expire_interactions,
}
_ERRORS = {"count": 1, "status": 503, "html": 1, "carried_out": 0}
# The options of each fault with their defaults. All are numbers; 0 and 1 say no and yes, and 0 ends a lasting fault.
FAULTS: Mapping[str, Mapping[str, float]] = {
    **{name: {} for name in (*_OF_VOICE, *_OF_THE_GATEWAY, *_OF_REST)},
    "kill_voice_websocket": {"close_code": 0},
    "forgetful_nat": {"idle_s": 30.0},
    "late_speaking": {"delay_s": 0.3},
    "rtcp": {"count": 20},
    "video": {"count": 20},
    "invalidate_session": {"stays_in_voice": 1, "ready_after_s": 0.0, "resumable": 0},
    "kill_gateway": {"close_code": 0},
    "rest_errors": _ERRORS,
    "interaction_errors": _ERRORS,
    "rest_limit": {"count": 1, "retry_after_s": 1.0, "everywhere": 0},
    "late_interactions": {"delay_s": 2.5},
}

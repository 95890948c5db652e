"""The faults that a test, a scenario or a person at a terminal can order by name. All of them also happen on Discord.

A fault of voice affects the given member; without one, the bots in voice, or everybody in voice if there is no bot. A
fault of the main gateway affects the given bot, or all bots that are online. Faults of REST, of threads and of
interactions affect every bot. docs/rehearsal.md lists the table `FAULTS`; a test compares the two.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import structlog

from rehearsal.discord.dave import mls
from rehearsal.discord.dave.delivery import DeliveryService
from rehearsal.discord.dave.group import DaveOpcode
from rehearsal.discord.gateway.gateway import Gateway
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.guild.state import LocalGuild
from rehearsal.discord.interactions.interactions import Interactions
from rehearsal.discord.media.forwarder import Forwarder
from rehearsal.discord.rest.gate import OrderedAnswers, RestFaults, error_page
from rehearsal.discord.rest.wire import limited
from rehearsal.discord.voice.gateway import ENDING_CODES, VoiceGateway
from rehearsal.discord.voice.voice_room import VoiceSession
from rehearsal.errors import LocalDiscordError

_log = structlog.get_logger()

# The id of a transition that was never announced.
_UNKNOWN_TRANSITION = 0xFFFF
_GARBAGE = bytes(range(1, 64))
# The close codes of Discord's two gateways and of websockets. 0 means that the connection breaks without a close frame.
_FIRST_CLOSE_CODE, _MOST = 1000, 4999


Affected: TypeAlias = "list[VoiceSession]"


class FaultInjector:
    """Causes the faults. Call it only from the event loop's thread.

    Each function of the tables below is a fault; its keywords are the fault's options. All are numbers; 0 and 1 say no
    and yes, and 0 ends a lasting fault.
    """

    def __init__(
        self,
        state: LocalGuild,
        gateway: Gateway,
        voice: VoiceGateway,
        forwarder: Forwarder,
        *,
        rest: RestFaults,
        interactions: Interactions,
        switch_endpoint: Callable[[], None],
    ) -> None:
        self._state = state
        self._gateway = gateway
        self._voice = voice
        self._forwarder = forwarder
        self._rest = rest
        self._interactions = interactions
        self._switch_endpoint = switch_endpoint

    @property
    def _guild(self) -> GuildSpec:
        return self._state.guild

    def inject(self, name: str, *, user_id: int | None = None, options: Mapping[str, Any] | None = None) -> Json:
        """Cause a fault. Return its name, the affected users, and the fault's own result.

        Raises `LocalDiscordError` for an unknown fault or option, or when it would affect nobody.
        """
        if name not in FAULTS:
            raise LocalDiscordError(f"There is no fault {name!r}. The faults are {', '.join(sorted(FAULTS))}.")
        _check(name, options or {})
        cause = functools.partial(_ALL[name], **(options or {}))
        result: Json | None = None
        if name in _OF_VOICE or name in _OF_ENCRYPTION:
            targets = self._targets(user_id)
            if name in _OF_ENCRYPTION:
                for room in {id(room): room for room in map(self._voice.room_of, targets)}.values():
                    room.decide(_OF_ENCRYPTION[name])
            else:
                result = cause(self, targets)
            affected = [session.user_id for session in targets]
        elif name in _OF_THE_GATEWAY:
            affected = [bot for bot in self._bots(user_id) if self._gateway.online(bot)]
            if not affected:
                raise LocalDiscordError("No such bot is online, so the fault would affect nobody. Start it first.")
            for bot in affected:
                cause(self._gateway, bot)
        else:
            affected = self._bots(user_id)
            cause(self)
        _log.info("fault_injected", fault=name, user_ids=affected)
        return {"fault": name, "user_ids": [str(user) for user in affected], **(result or {})}

    def _bots(self, user_id: int | None) -> list[int]:
        if user_id is not None and not self._guild.is_bot(user_id):
            raise LocalDiscordError(f"{self._guild.member(user_id).name} is a person. This fault affects bots.")
        return [user_id] if user_id is not None else [bot.id for bot in self._guild.bots]

    def _targets(self, user_id: int | None) -> Affected:
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

    # --- voice -------------------------------------------------------------------------------------------------

    def _malformed_proposals(self, targets: Affected) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.PROPOSALS, mls.append_proposals([_GARBAGE]))

    def _invalid_commit(self, targets: Affected) -> None:
        for session in targets:
            session.send_binary(DaveOpcode.ANNOUNCE_COMMIT, struct.pack(">H", _UNKNOWN_TRANSITION) + _GARBAGE)

    def _kill_voice_websocket(self, targets: Affected, *, close_code: float = 0) -> None:
        for session in targets:
            connection = session.connection
            if close_code in ENDING_CODES:
                self._voice.disconnect(session.user_id, int(close_code))
            elif connection is not None and close_code:
                connection.close(int(close_code), "The local Discord closed this connection on purpose")
            elif connection is not None:
                connection.abort()

    def _remove_silently(self, targets: Affected) -> None:
        for session in targets:
            self._gateway.leave(session.user_id, notified=False)

    def _forgetful_nat(self, targets: Affected, *, idle_s: float = 30.0) -> None:
        self._forwarder.set_nat([session.user_id for session in targets], idle_s=idle_s)

    def _rtcp(self, targets: Affected, *, count: float = 20) -> Json:
        return {"packets": self._forwarder.inject_rtcp([each.user_id for each in targets], count=int(count))}

    def _video(self, targets: Affected, *, count: float = 20) -> Json:
        for session in targets:
            self._voice.room_of(session).announce_video(session)
        return {"packets": self._forwarder.inject_video([each.user_id for each in targets], count=int(count))}

    def _several_batches(self, targets: Affected, *, on: float = 1) -> None:
        for session in targets:
            self._voice.room_of(session).delivery.several_batches = bool(on)

    def _delete_channel(self, targets: Affected) -> None:
        gone = {session.leg.channel_id for session in targets}
        kept = tuple(each for each in self._guild.voice_channels if each.id not in gone)
        self._gateway.become(replace(self._guild, voice_channels=kept))

    def _migrate(self, targets: Affected) -> Json:
        self._switch_endpoint()
        return {"servers": {str(each.user_id): self._gateway.announce_voice_server(each.user_id) for each in targets}}

    # --- threads, REST and interactions ------------------------------------------------------------------------

    def _archive_threads(self, *, archived: float = 1, locked: float = 0) -> None:
        for thread in list(self._state.threads):
            self._gateway.change_thread(thread, archived=bool(archived), locked=bool(locked))

    def _delete_threads(self) -> None:
        for thread in list(self._state.threads):
            self._gateway.delete_thread(thread)

    def _no_voice_server(self, *, for_s: float = 1.0) -> None:
        self._gateway.voice_server_after_s = for_s

    def _rest_errors(self, *, count: float = 1, status: float = 503, html: float = 1, carried_out: float = 0) -> None:
        self._rest.errors = _errors(count, status, html, carried_out)

    def _interaction_errors(
        self, *, count: float = 1, status: float = 503, html: float = 1, carried_out: float = 0
    ) -> None:
        self._rest.interaction_errors = _errors(count, status, html, carried_out)

    def _rest_limit(self, *, count: float = 1, retry_after_s: float = 1.0, everywhere: float = 0) -> None:
        self._rest.refused = OrderedAnswers(int(count), lambda: limited(retry_after_s, everywhere=bool(everywhere)))

    def _old_edits(self, *, older_than_s: float = 3600.0, allowed: float = 0) -> None:
        self._state.old_after_s, self._state.old_edits_left = older_than_s, int(allowed)

    def _late_interactions(self, *, delay_s: float = 2.5) -> None:
        self._interactions.delivery_delay_s = delay_s

    def _expire_interactions(self) -> None:
        self._interactions.expire()


def _errors(count: float, status: float, html: float, carried_out: float) -> OrderedAnswers:
    return OrderedAnswers(int(count), lambda: error_page(int(status), html=bool(html)), carried_out=bool(carried_out))


def _check(name: str, options: Mapping[str, Any]) -> None:
    """Raise `LocalDiscordError` for an option that a fault does not have, or a value that is no such number."""
    taken = FAULTS[name]
    for key, value in options.items():
        if key not in taken:
            there = ", ".join(taken) or "none"
            raise LocalDiscordError(f"The fault {name} has no option {key!r}. Its options: {there}.")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= _MOST:
            raise LocalDiscordError(f"{key} of the fault {name} is a number from 0 to {_MOST}; {value!r} is not.")
        if key == "close_code" and 0 < value < _FIRST_CLOSE_CODE:
            raise LocalDiscordError(f"{key} is 0 (no close frame) or {_FIRST_CLOSE_CODE} to {_MOST}; not {value}.")


def _named(*faults: Callable[..., Json | None]) -> dict[str, Callable[..., Json | None]]:
    return {fault.__name__.removeprefix("_"): fault for fault in faults}


_OF_VOICE = _named(
    FaultInjector._malformed_proposals,
    FaultInjector._invalid_commit,
    FaultInjector._kill_voice_websocket,
    FaultInjector._remove_silently,
    FaultInjector._forgetful_nat,
    FaultInjector._rtcp,
    FaultInjector._video,
    FaultInjector._several_batches,
    FaultInjector._delete_channel,
    FaultInjector._migrate,
)
# Decisions of the delivery service of each room.
_OF_ENCRYPTION = {
    "request_reset": DeliveryService.recreate,
    "downgrade": DeliveryService.downgrade,
    "upgrade": DeliveryService.upgrade,
}
# What the main gateway does to a bot.
_OF_THE_GATEWAY: Mapping[str, Callable[..., None]] = {
    "invalidate_session": Gateway.invalidate,
    "reconnect": Gateway.ask_to_reconnect,
    "kill_gateway": Gateway.cut_off,
    "kick": Gateway.kick,
}
_OF_ALL = _named(
    FaultInjector._archive_threads,
    FaultInjector._delete_threads,
    FaultInjector._no_voice_server,
    FaultInjector._rest_errors,
    FaultInjector._interaction_errors,
    FaultInjector._rest_limit,
    FaultInjector._old_edits,
    FaultInjector._late_interactions,
    FaultInjector._expire_interactions,
)
_ALL: Mapping[str, Callable[..., Any]] = {**_OF_VOICE, **_OF_ENCRYPTION, **_OF_THE_GATEWAY, **_OF_ALL}
# The options of each fault with their defaults.
FAULTS: Mapping[str, Mapping[str, float]] = {name: fault.__kwdefaults__ or {} for name, fault in _ALL.items()}

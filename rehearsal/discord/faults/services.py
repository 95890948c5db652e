"""Faults of the main gateway, of REST and of interactions, by name.

Those of the gateway affect the given bot, or all bots that are online. Those of REST and of interactions affect every
bot's requests: Discord has trouble with its own servers or with the bot's address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.discord.faults.spec import OFF, ON, FaultSpec, OptionRange
from rehearsal.discord.rest.faults import ErrorAnswers, RefusedRequests
from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.discord.gateway.gateway import Gateway
    from rehearsal.discord.guild.spec import GuildSpec
    from rehearsal.discord.interactions.interactions import Interactions
    from rehearsal.discord.rest.faults import RestFaults


class ServiceFaults:
    """Causes the faults of `SERVICE_FAULTS`. Call it only from the event loop's thread."""

    def __init__(self, guild: GuildSpec, gateway: Gateway, rest: RestFaults, interactions: Interactions) -> None:
        self._guild = guild
        self._gateway = gateway
        self._rest = rest
        self._interactions = interactions

    def inject(self, fault: FaultSpec, user_id: int | None, options: Mapping[str, Any]) -> list[int]:
        """Cause a fault and return the affected bots. Raises `LocalDiscordError` if it is none's."""
        if user_id is not None and not self._guild.is_bot(user_id):
            raise LocalDiscordError(f"{self._guild.member(user_id).name} is a person. This fault affects bots.")
        bots = [user_id] if user_id is not None else [bot.id for bot in self._guild.bots]
        if fault.act in _OF_THE_GATEWAY:
            bots = [bot for bot in bots if self._gateway.online(bot)]
            if not bots:
                raise LocalDiscordError("No such bot is online, so the fault would affect nobody. Start it first.")
        fault.act(self, bots, options)
        return bots

    # --- the main gateway --------------------------------------------------------------------------------------

    def _invalidate_session(self, bots: list[int], options: Mapping[str, Any]) -> None:
        for bot in bots:
            self._gateway.invalidate(
                bot,
                stays_in_voice=bool(options["stays_in_voice"]),
                ready_after_s=options["ready_after_s"],
                resumable=bool(options["resumable"]),
            )

    def _reconnect(self, bots: list[int], options: Mapping[str, Any]) -> None:
        for bot in bots:
            self._gateway.ask_to_reconnect(bot)

    def _silent_gateway(self, bots: list[int], options: Mapping[str, Any]) -> None:
        for bot in bots:
            self._gateway.fall_silent(bot)

    def _kill_gateway(self, bots: list[int], options: Mapping[str, Any]) -> None:
        code = int(options["close_code"])
        if code and code < 1000:
            raise LocalDiscordError(f"close_code is 0 (no close frame) or one from 1000 to 4999; not {code}.")
        for bot in bots:
            self._gateway.cut_off(bot, code)

    # --- REST and interactions ---------------------------------------------------------------------------------

    def _rest_errors(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._rest.errors = _error_answers(options)

    def _interaction_errors(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._rest.interaction_errors = _error_answers(options)

    def _rest_limit(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._rest.refused = RefusedRequests(
            int(options["count"]), options["retry_after_s"], everywhere=bool(options["everywhere"])
        )

    def _cloudflare_ban(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._rest.ban(options["for_s"])

    def _late_interactions(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._interactions.delivery_delay_s = options["delay_s"]

    def _expire_interactions(self, bots: list[int], options: Mapping[str, Any]) -> None:
        self._interactions.expire()


def _error_answers(options: Mapping[str, Any]) -> ErrorAnswers:
    return ErrorAnswers(
        int(options["count"]),
        int(options["status"]),
        html=bool(options["html"]),
        carried_out=bool(options["carried_out"]),
    )


_OF_THE_GATEWAY = frozenset(
    {
        ServiceFaults._invalidate_session,
        ServiceFaults._reconnect,
        ServiceFaults._silent_gateway,
        ServiceFaults._kill_gateway,
    }
)
_REQUESTS = OptionRange(default=1, least=0, most=1000)
_ERRORS = {
    "count": _REQUESTS,
    "status": OptionRange(default=503, least=500, most=599),
    "html": ON,
    "carried_out": OFF,
}

SERVICE_FAULTS: Mapping[str, FaultSpec] = {
    "invalidate_session": FaultSpec(
        "Invalidates a bot's session on the main gateway (op 9); unless it is resumable, its client identifies again.",
        ServiceFaults._invalidate_session,
        {
            "stays_in_voice": ON,
            "ready_after_s": OptionRange(default=0.0, least=0.0, most=10.0),
            "resumable": OFF,
        },
    ),
    "reconnect": FaultSpec(
        "Asks a bot's client to connect to the main gateway again and to resume its session (op 7).",
        ServiceFaults._reconnect,
        {},
    ),
    "silent_gateway": FaultSpec(
        "Sends nothing more on the main gateway, not even answers to heartbeats. The session can be resumed.",
        ServiceFaults._silent_gateway,
        {},
    ),
    "kill_gateway": FaultSpec(
        "Closes the main gateway's websocket, without a close frame or with a code; 4007 and 4009 end the session.",
        ServiceFaults._kill_gateway,
        {"close_code": OptionRange(default=0, least=0, most=4999)},
    ),
    "rest_errors": FaultSpec(
        "Answers the next requests of bots with an error of Discord's servers.",
        ServiceFaults._rest_errors,
        _ERRORS,
    ),
    "interaction_errors": FaultSpec(
        "Answers the next answers to interactions with an error of Discord's servers.",
        ServiceFaults._interaction_errors,
        _ERRORS,
    ),
    "rest_limit": FaultSpec(
        "Refuses the next requests of bots as too many (429).",
        ServiceFaults._rest_limit,
        {
            "count": _REQUESTS,
            "retry_after_s": OptionRange(default=1.0, least=0.0, most=3600.0),
            "everywhere": OFF,
        },
    ),
    "cloudflare_ban": FaultSpec(
        "Refuses every request for some seconds, as Cloudflare does to an address with too many wrong requests.",
        ServiceFaults._cloudflare_ban,
        {"for_s": OptionRange(default=5.0, least=0.0, most=3600.0)},
    ),
    "late_interactions": FaultSpec(
        "From now on commands and buttons reach the bot late, with less than three seconds left; delay_s 0 ends that.",
        ServiceFaults._late_interactions,
        {"delay_s": OptionRange(default=2.5, least=0.0, most=10.0)},
    ),
    "expire_interactions": FaultSpec(
        "Ends the fifteen minutes in which a bot may answer the interactions so far.",
        ServiceFaults._expire_interactions,
        {},
    ),
}

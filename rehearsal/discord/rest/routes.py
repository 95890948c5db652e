"""The part of Discord's REST API v10 that a voice bot uses. Errors have Discord's status, `code` and `message`.

`channels` has what is about one channel, `wire` the form of requests and answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from aiohttp import web

from rehearsal.discord.gateway.gateway import Gateway
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.granted import permission_bits
from rehearsal.discord.guild.identity import Intent, bot_of_token
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.state import LocalGuild
from rehearsal.discord.interactions.interactions import Interactions
from rehearsal.discord.limits import RefusedError
from rehearsal.discord.rest.channels import ChannelRoutes
from rehearsal.discord.rest.gate import RestGate
from rehearsal.discord.rest.wire import (
    API_PREFIX,
    BotHandler,
    Handler,
    RefusedRequest,
    body_of,
    json_response,
    number_in,
    translated,
)

_log = structlog.get_logger()

_UNAUTHORIZED = (401, 0, "401: Unauthorized")
_UNKNOWN_VOICE_STATE = (404, 10065, "Unknown Voice State")
_MISSING_ACCESS = (403, 50001, "Missing Access")
_MISSING_PERMISSIONS = (403, 50013, "Missing Permissions")


class RestApi:
    """The request handlers. Each request acts for the bot whose token it contains."""

    def __init__(
        self, state: LocalGuild, gateway: Gateway, interactions: Interactions, *, gateway_url: Callable[[], str]
    ) -> None:
        self._state = state
        self._gateway = gateway
        self._interactions = interactions
        self._gateway_url = gateway_url
        self._channels = ChannelRoutes(state, gateway)
        # What answers lacked of Discord's specification: mistakes of the local Discord.
        self.wrong_answers: set[str] = set()
        self.refused: Counter[RefusedRequest] = Counter()

    def owns(self, path: Mapping[str, str]) -> bool:
        """Return whether a request is about this guild. `path`: the parts of its path that have a name."""
        number = path.get("channel", "")
        return (
            path.get("guild") == str(self._state.guild.id)
            or (number.isdecimal() and self._state.has_channel(int(number)))
            or self._interactions.knows(path.get("token", ""))
        )

    def handlers(self) -> list[tuple[str, str, Handler]]:
        """Return method, path and handler of each route. The catch-all route comes last."""
        commands = "/applications/{application}/commands"
        guild_commands = "/applications/{application}/guilds/{guild}/commands"
        hook = "/webhooks/{application}/{token}"
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/gateway", self._get_gateway),
            *[("GET", path, self._for_bot(_told(tell))) for path, tell in self._tells().items()],
            ("DELETE", "/users/@me/guilds/{guild}", self._for_bot(self._leave_guild)),
            ("GET", "/users/{user}", self._for_bot(self._get_user)),
            *[("GET", path, self._for_bot(self._get_commands)) for path in (commands, guild_commands)],
            *[("PUT", path, self._for_bot(self._put_commands)) for path in (commands, guild_commands)],
            ("GET", "/guilds/{guild}/members", self._for_bot(self._get_members)),
            ("GET", "/guilds/{guild}/members/{user}", self._for_bot(self._get_member)),
            ("PATCH", "/guilds/{guild}/members/@me", self._for_bot(self._patch_me)),
            ("GET", "/guilds/{guild}/voice-states/@me", self._for_bot(self._get_my_voice_state)),
            ("PATCH", "/guilds/{guild}/voice-states/@me", self._for_bot(self._patch_my_voice_state)),
            *[(method, path, self._for_bot(handler)) for method, path, handler in self._channels.handlers()],
            # These requests are authorised by an interaction token instead of the bot's token.
            ("POST", "/interactions/{interaction}/{token}/callback", self._answer_interaction),
            ("POST", hook, self._post_follow_up),
            ("GET", hook + "/messages/{message}", self._get_reply),
            ("PATCH", hook + "/messages/{message}", self._patch_reply),
            ("DELETE", hook + "/messages/{message}", self._delete_reply),
        ]
        table.append(("*", "/{path:.*}", self._unknown))
        return [
            (method, API_PREFIX + path, translated(method, path, handler, self.wrong_answers, self.refused))
            for method, path, handler in table
        ]

    def _tells(self) -> dict[str, Callable[[int], Any]]:
        """Return what is told by a bot's id alone, by path. A Discord with several guilds tells of the first."""
        return {
            "/gateway/bot": lambda bot_id: {
                "url": self._gateway_url(),
                "shards": self._gateway.recommended_shards,
                "session_start_limit": self._gateway.sessions.start_limit(bot_id),
            },
            "/users/@me": lambda bot_id: payloads.own_user(self._state.guild, bot_id),
            "/users/@me/guilds": lambda bot_id: [payloads.my_guild(self._state.guild, bot_id)],
            "/applications/@me": lambda bot_id: payloads.application(self._state.guild, bot_id),
            "/oauth2/applications/@me": lambda bot_id: payloads.application(self._state.guild, bot_id),
            "/applications/{application}/emojis": lambda _: {"items": []},
            "/soundboard-default-sounds": lambda _: [],
            "/guilds/{guild}": lambda _: payloads.guild_object(self._state.guild),
            "/guilds/{guild}/channels": lambda _: payloads.channels(self._state.guild),
            "/guilds/{guild}/roles": lambda _: payloads.roles(self._state.guild),
        }

    def _for_bot(self, handler: BotHandler) -> Handler:
        async def authenticated(request: web.Request) -> web.Response:
            authorization = request.headers.get("Authorization", "")
            bot_id = bot_of_token(self._state.guild, authorization) if authorization.startswith("Bot ") else None
            if bot_id is None:
                raise RefusedError(*_UNAUTHORIZED)
            if request.match_info.get("guild", guild := str(self._state.guild.id)) != guild:
                raise RefusedError(404, 10004, "Unknown Guild")
            return await handler(request, bot_id)

        return authenticated

    # --- who and where -----------------------------------------------------------------------------------------

    async def _get_gateway(self, request: web.Request) -> web.Response:
        return json_response({"url": self._gateway_url()})

    async def _leave_guild(self, request: web.Request, bot_id: int) -> web.Response:
        self._gateway.kick(bot_id)
        return web.Response(status=204)

    async def _get_user(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(payloads.guild_user(self._state.guild, self._member(request)))

    async def _get_members(self, request: web.Request, bot_id: int) -> web.Response:
        """Return all members to a bot whose owner has allowed it to see them (Discord's "List Guild Members")."""
        guild = self._state.guild
        if not guild.member(bot_id).privileged_intents & Intent.GUILD_MEMBERS:
            raise RefusedError(*_MISSING_ACCESS)
        return json_response([payloads.guild_member(guild, member.id) for member in guild.members])

    async def _get_member(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(self._state.member(self._member(request)))

    async def _patch_me(self, request: web.Request, bot_id: int) -> web.Response:
        """Change the bot's own nickname."""
        nickname = (await body_of(request)).get("nick") or None
        if not permission_bits(self._state.guild, bot_id) & DiscordPermission.CHANGE_NICKNAME:
            raise RefusedError(*_MISSING_PERMISSIONS)
        member = self._state.set_nickname(bot_id, nickname)
        self._gateway.broadcast("GUILD_MEMBER_UPDATE", {**member, "guild_id": str(self._state.guild.id)})
        return json_response(member)

    async def _get_my_voice_state(self, request: web.Request, bot_id: int) -> web.Response:
        state = self._state.voice_states.get(bot_id)
        if state is None:
            raise RefusedError(*_UNKNOWN_VOICE_STATE)
        return json_response(state)

    async def _patch_my_voice_state(self, request: web.Request, bot_id: int) -> web.Response:
        data = await body_of(request)
        state = self._state.voice_states.get(bot_id)
        if state is None or str(data.get("channel_id")) != state["channel_id"]:
            raise RefusedError(*_UNKNOWN_VOICE_STATE)
        guild = self._state.guild
        if not guild.is_stage(int(state["channel_id"])):
            raise RefusedError(400, 50024, "Cannot execute action on this channel type")
        suppress = bool(data.get("suppress", state["suppress"]))
        may_speak = permission_bits(guild, bot_id) & DiscordPermission.MUTE_MEMBERS
        if state["suppress"] and not suppress and not may_speak:
            raise RefusedError(*_MISSING_PERMISSIONS)
        asks_at = data.get("request_to_speak_timestamp")
        changed = self._state.set_stage_role(bot_id, suppress=suppress, asks_at=asks_at)
        self._gateway.broadcast("VOICE_STATE_UPDATE", changed)
        return web.Response(status=204)

    # --- commands ----------------------------------------------------------------------------------------------

    async def _get_commands(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(self._state.commands(bot_id, self._command_scope(request, bot_id)))

    async def _put_commands(self, request: web.Request, bot_id: int) -> web.Response:
        scope = self._command_scope(request, bot_id)
        return json_response(self._state.put_commands(bot_id, scope, await body_of(request) or []))

    def _command_scope(self, request: web.Request, bot_id: int) -> int | None:
        if request.match_info["application"] != str(bot_id):
            raise RefusedError(*_MISSING_ACCESS)
        return self._state.guild.id if "guild" in request.match_info else None

    # --- interactions ------------------------------------------------------------------------------------------

    async def _answer_interaction(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        interaction_id = number_in(request, "interaction")
        answered = self._interactions.answer(interaction_id, request.match_info["token"], body)
        if request.query.get("with_response", "").lower() in ("1", "true"):
            return json_response(answered)
        return web.Response(status=204)

    async def _post_follow_up(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return json_response(self._interactions.follow_up(*_hook(request), body))

    async def _get_reply(self, request: web.Request) -> web.Response:
        return json_response(self._interactions.message(*_hook(request), request.match_info["message"]))

    async def _patch_reply(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return json_response(self._interactions.edit(*_hook(request), request.match_info["message"], body))

    async def _delete_reply(self, request: web.Request) -> web.Response:
        self._interactions.delete(*_hook(request), request.match_info["message"])
        return web.Response(status=204)

    # --- helpers -----------------------------------------------------------------------------------------------

    async def _unknown(self, request: web.Request) -> web.Response:
        _log.info("rest_route_unknown", method=request.method, path=request.path)
        raise RefusedError(404, 0, "404: Not Found")

    def _member(self, request: web.Request) -> int:
        user_id = number_in(request, "user")
        if not self._state.guild.has_member(user_id):
            raise RefusedError(404, 10013, "Unknown User")
        return user_id


def served_routes() -> list[tuple[str, str]]:
    """Return method and path of each route."""
    # The table only names the handlers, so it needs none of their parts.
    nothing: Any = None
    return [(method, path) for method, path, _ in RestApi(nothing, nothing, nothing, gateway_url=str).handlers()]


def rest_routes(guilds: Sequence[RestApi], gate: RestGate) -> list[web.RouteDef]:
    """Return the routes of a Discord with these guilds, which may become more. What is about none is the first's."""
    return [
        web.route(method, path, gate.guarded(method, path.removeprefix(API_PREFIX), _of_guild(guilds, number)))
        for number, (method, path, _) in enumerate(guilds[0].handlers())
    ]


def _told(tell: Callable[[int], Any]) -> BotHandler:
    async def told(request: web.Request, bot_id: int) -> web.Response:
        return json_response(tell(bot_id))

    return told


def _of_guild(guilds: Sequence[RestApi], number: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        guild = next((each for each in guilds if each.owns(request.match_info)), guilds[0])
        _, _, handler = guild.handlers()[number]
        return await handler(request)

    return handle


def _hook(request: web.Request) -> tuple[int, str]:
    return number_in(request, "application"), request.match_info["token"]

"""The part of Discord's REST API v10 that a voice bot uses. Errors have Discord's status, `code` and `message`.

discord.py compares the content type with `application/json` exactly, so no charset is sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import BodyPartReader, web

from rehearsal.discord import payloads
from rehearsal.discord.gateway import bot_of_token
from rehearsal.discord.message_limits import RefusedError, check_message, new_message_fields
from rehearsal.discord.permissions import DiscordPermission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rehearsal.discord.gateway import Gateway
    from rehearsal.discord.guild_state import GuildState
    from rehearsal.discord.interactions import Interactions
    from rehearsal.discord.payloads import Json

    Handler = Callable[[web.Request], Awaitable[web.Response]]

_log = structlog.get_logger()

PREFIX = "/api/v10"
_UNAUTHORIZED = (401, 0, "401: Unauthorized")
_UNKNOWN_CHANNEL = (404, 10003, "Unknown Channel")
_UNKNOWN_VOICE_STATE = (404, 10065, "Unknown Voice State")
_UNKNOWN_MESSAGE = (404, 10008, "Unknown Message")
_MISSING_ACCESS = (403, 50001, "Missing Access")
_MISSING_PERMISSIONS = (403, 50013, "Missing Permissions")
_MOST_NAME_CHARS = 100
_MAX_LISTED = 100
_MAX_NICKNAME = 32


def json_response(body: Any, *, status: int = 200) -> web.Response:
    """Return a response whose content type is exactly `application/json`."""
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


class RestApi:
    """The request handlers. Each request acts for the bot whose token it contains."""

    def __init__(
        self, state: GuildState, gateway: Gateway, interactions: Interactions, *, gateway_url: Callable[[], str]
    ) -> None:
        self._state = state
        self._gateway = gateway
        self._interactions = interactions
        self._gateway_url = gateway_url

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
        message = "/channels/{channel}/messages/{message}"
        hook = "/webhooks/{application}/{token}"
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/gateway", self._get_gateway),
            ("GET", "/gateway/bot", self._for_bot(self._get_gateway_bot)),
            ("GET", "/users/@me", self._for_bot(self._get_me)),
            ("DELETE", "/users/@me/guilds/{guild}", self._for_bot(self._leave_guild)),
            ("GET", "/users/{user}", self._for_bot(self._get_user)),
            ("GET", "/applications/@me", self._for_bot(self._get_application)),
            ("GET", "/oauth2/applications/@me", self._for_bot(self._get_application)),
            ("GET", "/applications/{application}/emojis", self._for_bot(self._no_emojis)),
            ("GET", "/soundboard-default-sounds", self._for_bot(self._nothing)),
            *[("GET", path, self._for_bot(self._get_commands)) for path in (commands, guild_commands)],
            *[("PUT", path, self._for_bot(self._put_commands)) for path in (commands, guild_commands)],
            ("GET", "/guilds/{guild}", self._for_bot(self._get_guild)),
            ("GET", "/guilds/{guild}/channels", self._for_bot(self._get_channels)),
            ("GET", "/guilds/{guild}/roles", self._for_bot(self._get_roles)),
            ("GET", "/guilds/{guild}/members", self._for_bot(self._get_members)),
            ("GET", "/guilds/{guild}/members/{user}", self._for_bot(self._get_member)),
            ("PATCH", "/guilds/{guild}/members/@me", self._for_bot(self._patch_me)),
            ("GET", "/guilds/{guild}/voice-states/@me", self._for_bot(self._get_my_voice_state)),
            ("PATCH", "/guilds/{guild}/voice-states/@me", self._for_bot(self._patch_my_voice_state)),
            ("GET", "/channels/{channel}", self._for_bot(self._get_channel)),
            ("GET", "/channels/{channel}/messages", self._for_bot(self._get_messages)),
            ("POST", "/channels/{channel}/messages", self._for_bot(self._post_message)),
            ("POST", "/channels/{channel}/threads", self._for_bot(self._post_thread)),
            ("POST", "/channels/{channel}/typing", self._for_bot(self._accepted)),
            ("PUT", "/channels/{channel}/voice-status", self._for_bot(self._accepted)),
            ("GET", message, self._for_bot(self._get_message)),
            ("PATCH", message, self._for_bot(self._patch_message)),
            ("DELETE", message, self._for_bot(self._delete_message)),
            ("PUT", message + "/reactions/{emoji}/@me", self._for_bot(self._accepted)),
            ("DELETE", message + "/reactions/{emoji}/@me", self._for_bot(self._accepted)),
            # These requests are authorised by an interaction token instead of the bot's token.
            ("POST", "/interactions/{interaction}/{token}/callback", self._answer_interaction),
            ("POST", hook, self._post_follow_up),
            ("GET", hook + "/messages/{message}", self._get_reply),
            ("PATCH", hook + "/messages/{message}", self._patch_reply),
            ("DELETE", hook + "/messages/{message}", self._delete_reply),
        ]
        table.append(("*", "/{path:.*}", self._unknown))
        return [(method, PREFIX + path, _translated(handler)) for method, path, handler in table]

    def _for_bot(
        self, handler: Callable[[web.Request, int], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def authenticated(request: web.Request) -> web.Response:
            authorization = request.headers.get("Authorization", "")
            bot_id = bot_of_token(self._state, authorization) if authorization.startswith("Bot ") else None
            if bot_id is None:
                raise RefusedError(*_UNAUTHORIZED)
            return await handler(request, bot_id)

        return authenticated

    # --- who and where -----------------------------------------------------------------------------------------

    async def _get_gateway(self, request: web.Request) -> web.Response:
        return json_response({"url": self._gateway_url()})

    async def _get_gateway_bot(self, request: web.Request, bot_id: int) -> web.Response:
        limit = self._gateway.session_start_limit(bot_id)
        return json_response(
            {"url": self._gateway_url(), "shards": self._gateway.recommended_shards, "session_start_limit": limit}
        )

    async def _get_me(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(payloads.guild_user(self._state.guild, bot_id))

    async def _leave_guild(self, request: web.Request, bot_id: int) -> web.Response:
        """Tell the bot that it has left. The local guild keeps it as a member, for whoever starts it again."""
        self._check_guild(request)
        self._gateway.leave(bot_id)
        self._gateway.send_to(bot_id, "GUILD_DELETE", {"id": str(self._state.guild.id)})
        return web.Response(status=204)

    async def _get_user(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(payloads.guild_user(self._state.guild, self._member(request)))

    async def _get_application(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(payloads.application(self._state.guild, bot_id))

    async def _no_emojis(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response({"items": []})

    async def _nothing(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response([])

    async def _accepted(self, request: web.Request, bot_id: int) -> web.Response:
        self._channel(request)
        return web.Response(status=204)

    async def _get_guild(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        return json_response(payloads.guild_object(self._state.guild))

    async def _get_channels(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        guild = self._state.guild
        return json_response([payloads.channel(guild, spec) for spec in guild.channels])

    async def _get_roles(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        return json_response(payloads.roles(self._state.guild))

    async def _get_members(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        guild = self._state.guild
        return json_response([payloads.guild_member(guild, member.id) for member in guild.members])

    async def _get_member(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        return json_response(self._state.member(self._member(request)))

    async def _patch_me(self, request: web.Request, bot_id: int) -> web.Response:
        """Change the bot's own nickname."""
        self._check_guild(request)
        nickname = (await _message_body(request)).get("nick") or None
        if not int(payloads.permission_bits(self._state.guild, bot_id)) & DiscordPermission.CHANGE_NICKNAME:
            raise RefusedError(*_MISSING_PERMISSIONS)
        if nickname is not None and len(nickname) > _MAX_NICKNAME:
            raise RefusedError(400, 50035, "Invalid Form Body")
        member = self._state.set_nickname(bot_id, nickname)
        self._gateway.broadcast("GUILD_MEMBER_UPDATE", {**member, "guild_id": str(self._state.guild.id)})
        return json_response(member)

    async def _get_my_voice_state(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        state = self._state.voice_state(bot_id)
        if state is None:
            raise RefusedError(*_UNKNOWN_VOICE_STATE)
        return json_response(state)

    async def _patch_my_voice_state(self, request: web.Request, bot_id: int) -> web.Response:
        self._check_guild(request)
        data = await _message_body(request)
        state = self._state.voice_state(bot_id)
        if state is None or str(data.get("channel_id")) != state["channel_id"]:
            raise RefusedError(*_UNKNOWN_VOICE_STATE)
        guild = self._state.guild
        if not guild.is_stage(int(state["channel_id"])):
            raise RefusedError(400, 50024, "Cannot execute action on this channel type")
        suppress = bool(data.get("suppress", state["suppress"]))
        may_speak = int(payloads.permission_bits(guild, bot_id)) & DiscordPermission.MUTE_MEMBERS
        if state["suppress"] and not suppress and not may_speak:
            raise RefusedError(*_MISSING_PERMISSIONS)
        asks_at = data.get("request_to_speak_timestamp")
        changed = self._state.set_stage_role(bot_id, suppress=suppress, asks_at=asks_at)
        self._gateway.broadcast("VOICE_STATE_UPDATE", changed)
        return web.Response(status=204)

    async def _get_channel(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        guild = self._state.guild
        spec = next(each for each in guild.channels if each.id == channel_id)
        return json_response(payloads.channel(guild, spec))

    # --- commands ----------------------------------------------------------------------------------------------

    async def _get_commands(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(self._state.commands(bot_id, self._command_scope(request, bot_id)))

    async def _put_commands(self, request: web.Request, bot_id: int) -> web.Response:
        scope = self._command_scope(request, bot_id)
        body = await request.json()
        if not isinstance(body, list) or not all(isinstance(each, dict) and each.get("name") for each in body):
            raise RefusedError(400, 50035, "Invalid Form Body")
        return json_response(self._state.put_commands(bot_id, scope, body))

    def _command_scope(self, request: web.Request, bot_id: int) -> int | None:
        if request.match_info["application"] != str(bot_id):
            raise RefusedError(*_MISSING_ACCESS)
        if "guild" not in request.match_info:
            return None
        self._check_guild(request)
        return self._state.guild.id

    # --- messages ----------------------------------------------------------------------------------------------

    async def _get_messages(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        limit = request.query.get("limit", "50")
        count = min(int(limit), _MAX_LISTED) if limit.isdigit() else 50
        found = [each.payload for each in self._state.messages() if each.channel_id == channel_id]
        return json_response(found[::-1][:count])

    async def _post_message(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        data = await _message_body(request)
        extra = new_message_fields(data)
        message = payloads.message(
            self._state.guild,
            message_id=self._state.snowflake(),
            channel_id=channel_id,
            author_id=bot_id,
            content=data.get("content") or "",
            extra=extra,
        )
        if data.get("nonce") is not None:
            message["nonce"] = data["nonce"]
        self._state.add_message(message)
        self._gateway.broadcast_message("MESSAGE_CREATE", message)
        return json_response(message)

    async def _post_thread(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        if self._state.guild.is_voice(channel_id):
            raise RefusedError(400, 50024, "Cannot execute action on this channel type")
        name = str((await request.json()).get("name") or "")
        if not 1 <= len(name) <= _MOST_NAME_CHARS:
            raise RefusedError(400, 50035, "Invalid Form Body: name must be between 1 and 100 in length.")
        return json_response(self._state.add_thread(channel_id, name, bot_id), status=201)

    async def _get_message(self, request: web.Request, bot_id: int) -> web.Response:
        return json_response(self._message(request))

    async def _patch_message(self, request: web.Request, bot_id: int) -> web.Response:
        message = self._own_message(request, bot_id)
        data = await _message_body(request)
        check_message(data)
        for key in ("content", "embeds", "components", "attachments", "flags"):
            if data.get(key) is not None:
                message[key] = data[key]
        message["edited_timestamp"] = payloads.now()
        self._gateway.broadcast_message("MESSAGE_UPDATE", message)
        return json_response(message)

    async def _delete_message(self, request: web.Request, bot_id: int) -> web.Response:
        message = self._own_message(request, bot_id)
        self._state.delete_message(int(message["id"]))
        gone = {key: message[key] for key in ("id", "channel_id", "guild_id")}
        self._gateway.broadcast("MESSAGE_DELETE", gone)
        return web.Response(status=204)

    # --- interactions ------------------------------------------------------------------------------------------

    async def _answer_interaction(self, request: web.Request) -> web.Response:
        body = await _message_body(request)
        if isinstance(body.get("data"), dict) and "attachments" in body:
            body["data"]["attachments"] = body["attachments"]
        interaction_id = _number(request, "interaction")
        answered = self._interactions.answer(interaction_id, request.match_info["token"], body)
        if request.query.get("with_response", "").lower() in ("1", "true"):
            return json_response(answered)
        return web.Response(status=204)

    async def _post_follow_up(self, request: web.Request) -> web.Response:
        body = await _message_body(request)
        return json_response(self._interactions.follow_up(*_hook(request), body))

    async def _get_reply(self, request: web.Request) -> web.Response:
        return json_response(self._interactions.message(*_hook(request), request.match_info["message"]))

    async def _patch_reply(self, request: web.Request) -> web.Response:
        body = await _message_body(request)
        return json_response(self._interactions.edit(*_hook(request), request.match_info["message"], body))

    async def _delete_reply(self, request: web.Request) -> web.Response:
        self._interactions.delete(*_hook(request), request.match_info["message"])
        return web.Response(status=204)

    # --- helpers -----------------------------------------------------------------------------------------------

    async def _unknown(self, request: web.Request) -> web.Response:
        _log.info("rest_route_unknown", method=request.method, path=request.path)
        raise RefusedError(404, 0, "404: Not Found")

    def _check_guild(self, request: web.Request) -> None:
        if request.match_info["guild"] != str(self._state.guild.id):
            raise RefusedError(404, 10004, "Unknown Guild")

    def _member(self, request: web.Request) -> int:
        user_id = _number(request, "user")
        if not any(member.id == user_id for member in self._state.guild.members):
            raise RefusedError(404, 10013, "Unknown User")
        return user_id

    def _channel(self, request: web.Request) -> int:
        channel_id = _number(request, "channel")
        if not self._state.has_channel(channel_id):
            raise RefusedError(*_UNKNOWN_CHANNEL)
        return channel_id

    def _message(self, request: web.Request) -> Json:
        channel_id = self._channel(request)
        message = self._state.message(_number(request, "message"))
        if message is None or message["channel_id"] != str(channel_id):
            raise RefusedError(*_UNKNOWN_MESSAGE)
        return message

    def _own_message(self, request: web.Request, bot_id: int) -> Json:
        message = self._message(request)
        if message["author"]["id"] != str(bot_id):
            raise RefusedError(403, 50005, "Cannot edit a message authored by another user")
        return message


def routes(guilds: Sequence[RestApi]) -> list[web.RouteDef]:
    """Return the routes of a Discord with these guilds, which may become more. What is about none is the first's."""
    return [
        web.route(method, path, _of_guild(guilds, number))
        for number, (method, path, _) in enumerate(guilds[0].handlers())
    ]


def _of_guild(guilds: Sequence[RestApi], number: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        guild = next((each for each in guilds if each.owns(request.match_info)), guilds[0])
        _, _, handler = guild.handlers()[number]
        return await handler(request)

    return handle


def _translated(
    handler: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Answer errors in Discord's form. A body that is not JSON is error 50109."""

    async def translated(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except RefusedError as error:
            return json_response({"message": str(error), "code": error.code}, status=error.status)
        except (json.JSONDecodeError, UnicodeDecodeError):
            body = {"message": "The request body contains invalid JSON.", "code": 50109}
            return json_response(body, status=400)

    return translated


def _number(request: web.Request, name: str) -> int:
    text = request.match_info[name]
    if not text.isascii() or not text.isdigit():
        raise RefusedError(400, 50035, f"Invalid Form Body: {name} is not a snowflake.")
    return int(text)


def _hook(request: web.Request) -> tuple[int, str]:
    return _number(request, "application"), request.match_info["token"]


async def _message_body(request: web.Request) -> Json:
    """Return the fields of a message from JSON or a multipart form. Only the name and size of a file are used."""
    if not request.content_type.startswith("multipart/"):
        body = await request.json()
        if not isinstance(body, dict):
            raise RefusedError(400, 50035, "Invalid Form Body")
        return body
    fields: Json = {}
    attachments: list[Json] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        content = await part.read(decode=True)
        if part.name == "payload_json":
            decoded = json.loads(content)
            fields |= decoded if isinstance(decoded, dict) else {}
        elif part.filename is not None:
            attachments.append(_attachment(len(attachments), part.filename, len(content)))
    if attachments:
        fields["attachments"] = attachments
    return fields


def _attachment(index: int, filename: str, size_bytes: int) -> Json:
    return {"id": str(index), "filename": filename, "size": size_bytes, "url": "", "proxy_url": ""}

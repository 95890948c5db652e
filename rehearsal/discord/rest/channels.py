"""The part of Discord's REST API that is about one channel: its messages and threads."""

from __future__ import annotations

from aiohttp import web

from rehearsal.discord.gateway.gateway import Gateway
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.state import LocalGuild
from rehearsal.discord.limits import RefusedError, edit_message, new_message_fields, refusal
from rehearsal.discord.rest.wire import BotHandler, body_of, json_response, limited, number_in
from rehearsal.discord.specification import FormMistake

_P = DiscordPermission
_UNKNOWN_CHANNEL = (404, 10003, "Unknown Channel")
_UNKNOWN_MESSAGE = (404, 10008, "Unknown Message")
_MISSING_ACCESS = (403, 50001, "Missing Access")
_MISSING_PERMISSIONS = (403, 50013, "Missing Permissions")
_NO_HISTORY = (400, 160002, "Cannot reply without permission to read message history")
_THREAD_ARCHIVED = (400, 50083, "Thread is archived")
_THREAD_LOCKED = (400, 160005, "Thread is locked")
_OLD_EDITS = "Maximum number of edits to messages older than 1 hour reached. Try again later"
_OLD_RETRY_S = 600.0
_MAX_LISTED = 100


class ChannelRoutes:
    """The request handlers of one guild's channels."""

    def __init__(self, state: LocalGuild, gateway: Gateway) -> None:
        self._state = state
        self._gateway = gateway

    def handlers(self) -> list[tuple[str, str, BotHandler]]:
        """Return method, path and handler of each route."""
        message = "/channels/{channel}/messages/{message}"
        return [
            ("GET", "/channels/{channel}", self._get_channel),
            ("PATCH", "/channels/{channel}", self._patch_channel),
            ("GET", "/channels/{channel}/messages", self._get_messages),
            ("POST", "/channels/{channel}/messages", self._post_message),
            ("POST", "/channels/{channel}/threads", self._post_thread),
            ("POST", "/channels/{channel}/typing", self._accepted(_P.SEND_MESSAGES)),
            ("PUT", "/channels/{channel}/voice-status", self._accepted(_P.SET_VOICE_CHANNEL_STATUS)),
            ("GET", message, self._get_message),
            ("PATCH", message, self._patch_message),
            ("DELETE", message, self._delete_message),
            ("PUT", message + "/reactions/{emoji}/@me", self._accepted(_P.READ_MESSAGE_HISTORY | _P.ADD_REACTIONS)),
            ("DELETE", message + "/reactions/{emoji}/@me", self._accepted(_P.READ_MESSAGE_HISTORY)),
        ]

    def _accepted(self, needed: DiscordPermission) -> BotHandler:
        async def accepted(request: web.Request, bot_id: int) -> web.Response:
            self._check_granted(self._channel(request), bot_id, needed)
            if request.body_exists:
                await body_of(request)
            return web.Response(status=204)

        return accepted

    async def _get_channel(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        self._check_granted(channel_id, bot_id, _P.VIEW_CHANNEL)
        if (thread := self._state.threads.get(channel_id)) is not None:
            return json_response(thread)
        guild = self._state.guild
        spec = next(each for each in guild.channels if each.id == channel_id)
        return json_response(payloads.channel(guild, spec))

    async def _patch_channel(self, request: web.Request, bot_id: int) -> web.Response:
        """Archive or open a thread. Who may not manage threads opens none that is locked, and only its owner closes it.

        A channel is no thread: to change one, a bot would need more than its invitation asks for.
        """
        channel_id = self._channel(request)
        thread, data = self._state.threads.get(channel_id), await body_of(request)
        granted = self._check_granted(channel_id, bot_id, _P.VIEW_CHANNEL if thread else _P.MANAGE_CHANNELS)
        if thread is None:
            raise RefusedError(400, 50024, "Cannot execute action on this channel type")
        is_owner, opens = thread["owner_id"] == str(bot_id), data.get("archived") is False
        may = is_owner or (opens and granted & _P.SEND_MESSAGES_IN_THREADS)
        if not granted & _P.MANAGE_THREADS and (not may or thread["thread_metadata"]["locked"]):
            raise RefusedError(*_MISSING_PERMISSIONS)
        changes = {key: data[key] for key in ("archived", "locked") if key in data}
        return json_response(self._gateway.change_thread(channel_id, **changes))

    async def _get_messages(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        granted = self._check_granted(channel_id, bot_id, _P.VIEW_CHANNEL)
        limit = request.query.get("limit", "50")
        count = min(int(limit), _MAX_LISTED) if limit.isdigit() else 50
        # Who may not read the history gets no messages, and no error.
        may_read = granted & _P.READ_MESSAGE_HISTORY
        found = [each.payload for each in self._state.messages() if each.channel_id == channel_id and may_read]
        return json_response([self._seen(message, bot_id) for message in found[::-1][:count]])

    async def _post_message(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        data = await body_of(request)
        self._check_may_write(channel_id, bot_id, data)
        self._open_for_writing(channel_id, bot_id)
        if data.get("enforce_nonce") and (there := self._with_nonce(channel_id, bot_id, data.get("nonce"))):
            return json_response(there)
        message = payloads.message(
            self._state.guild,
            message_id=self._state.snowflake(),
            channel_id=channel_id,
            author_id=bot_id,
            content=data.get("content") or "",
            extra=new_message_fields(data),
            replies_to=self._replied_to(data, channel_id, bot_id),
            allowed=data.get("allowed_mentions"),
        )
        if data.get("nonce") is not None:
            message["nonce"] = data["nonce"]
        self._state.add_message(message)
        self._gateway.broadcast_message("MESSAGE_CREATE", message)
        return json_response(message)

    def _replied_to(self, data: Json, channel_id: int, bot_id: int) -> Json | None:
        """Return the message that a new one answers. Raises `RefusedError` if it is gone and the bot wants it there."""
        reference = data.get("message_reference")
        if reference is None:
            return None
        if not self._check_granted(channel_id, bot_id, _P.VIEW_CHANNEL) & _P.READ_MESSAGE_HISTORY:
            raise RefusedError(*_NO_HISTORY)
        found = self._state.written.get(int(reference["message_id"]))
        if found is not None and found["channel_id"] == str(channel_id):
            return found
        if reference.get("fail_if_not_exists", True):
            mistake = FormMistake(("message_reference",), "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            raise refusal([mistake])
        return None

    def _with_nonce(self, channel_id: int, bot_id: int, nonce: object) -> Json | None:
        """Return the bot's message that was posted with this nonce before. Discord looks back for some minutes."""
        sent = [each.payload for each in self._state.messages() if each.channel_id == channel_id]
        own = [message for message in sent if message["author"]["id"] == str(bot_id) and "nonce" in message]
        return next((message for message in own if message["nonce"] == nonce), None)

    async def _post_thread(self, request: web.Request, bot_id: int) -> web.Response:
        channel_id = self._channel(request)
        if self._state.guild.is_voice(channel_id):
            raise RefusedError(400, 50024, "Cannot execute action on this channel type")
        self._check_granted(channel_id, bot_id, _P.CREATE_PUBLIC_THREADS)
        thread = self._state.add_thread(channel_id, (await body_of(request))["name"], bot_id)
        self._gateway.broadcast("THREAD_CREATE", {**thread, "newly_created": True})
        return json_response(thread, status=201)

    async def _get_message(self, request: web.Request, bot_id: int) -> web.Response:
        message = self._message(request)
        self._check_granted(int(message["channel_id"]), bot_id, _P.READ_MESSAGE_HISTORY)
        return json_response(self._seen(message, bot_id))

    async def _patch_message(self, request: web.Request, bot_id: int) -> web.Response:
        message = self._own_message(request, bot_id)
        data = await body_of(request)
        if self._state.age_s(int(message["id"])) >= self._state.old_after_s:
            if self._state.old_edits_left <= 0:
                return limited(_OLD_RETRY_S, everywhere=False, code=30046, message=_OLD_EDITS)
            self._state.old_edits_left -= 1
        edit_message(message, data)
        message["edited_timestamp"] = payloads.now()
        self._gateway.broadcast_message("MESSAGE_UPDATE", message)
        return json_response(message)

    async def _delete_message(self, request: web.Request, bot_id: int) -> web.Response:
        message = self._own_message(request, bot_id)
        self._state.written.pop(int(message["id"]), None)
        gone = {key: message[key] for key in ("id", "channel_id", "guild_id")}
        self._gateway.broadcast("MESSAGE_DELETE", gone)
        return web.Response(status=204)

    def _seen(self, message: Json, bot_id: int) -> Json:
        """Return a message as the bot may read it: here counts what the bot's owner has allowed it."""
        allowed = self._state.guild.member(bot_id).privileged_intents
        return payloads.readable(message, user_id=bot_id, intents=allowed)

    def _check_may_write(self, channel_id: int, bot_id: int, data: Json) -> None:
        """Raise `RefusedError` if a bot may not send this message there."""
        in_thread = channel_id in self._state.threads
        needed = _P.SEND_MESSAGES_IN_THREADS if in_thread else _P.SEND_MESSAGES
        if data.get("embeds"):
            needed |= _P.EMBED_LINKS
        if data.get("attachments"):
            needed |= _P.ATTACH_FILES
        self._check_granted(channel_id, bot_id, needed)

    def _check_granted(self, channel_id: int, bot_id: int, needed: DiscordPermission) -> int:
        """Return the bot's permissions in a channel. Raises `RefusedError` without those that it needs."""
        granted = self._state.permissions_in(channel_id, bot_id)
        if not granted & _P.VIEW_CHANNEL:
            raise RefusedError(*_MISSING_ACCESS)
        if needed & ~granted:
            raise RefusedError(*_MISSING_PERMISSIONS)
        return granted

    def _channel(self, request: web.Request) -> int:
        channel_id = number_in(request, "channel")
        if not self._state.has_channel(channel_id):
            raise RefusedError(*_UNKNOWN_CHANNEL)
        return channel_id

    def _message(self, request: web.Request) -> Json:
        channel_id = self._channel(request)
        message = self._state.written.get(number_in(request, "message"))
        if message is None or message["channel_id"] != str(channel_id):
            raise RefusedError(*_UNKNOWN_MESSAGE)
        return message

    def _open_for_writing(self, channel_id: int, bot_id: int) -> None:
        """Open a thread that is archived, as a message does. Raises `RefusedError` if it is locked."""
        thread = self._state.threads.get(channel_id)
        told = {} if thread is None else thread["thread_metadata"]
        may_manage = self._state.permissions_in(channel_id, bot_id) & _P.MANAGE_THREADS
        if told.get("locked") and not may_manage:
            raise RefusedError(*(_THREAD_ARCHIVED if told["archived"] else _THREAD_LOCKED))
        if told.get("archived"):
            self._gateway.change_thread(channel_id, archived=False)

    def _own_message(self, request: web.Request, bot_id: int) -> Json:
        message = self._message(request)
        thread = self._state.threads.get(int(message["channel_id"]))
        if thread is not None and thread["thread_metadata"]["archived"]:
            raise RefusedError(*_THREAD_ARCHIVED)
        if message["author"]["id"] != str(bot_id):
            raise RefusedError(403, 50005, "Cannot edit a message authored by another user")
        return message

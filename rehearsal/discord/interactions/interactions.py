"""Interactions: a bot gets the event over the gateway and answers it through REST.

Discord's rules apply: a bot has three seconds for the first answer, sends only one first answer, and may send
follow-ups and edits for fifteen minutes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from rehearsal.discord.gateway.gateway import Gateway
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.state import BUTTON, STRING_MENU, LocalGuild, buttons_of, menus_of
from rehearsal.discord.interactions.commands import build_invocation, build_suggestion, resolved_picks
from rehearsal.discord.interactions.result import REPLY_TIMEOUT_S, InteractionReply, InteractionResult, ReplyKind
from rehearsal.discord.limits import MAX_ATTACHMENT_BYTES, RefusedError, edit_message, new_message_fields
from rehearsal.discord.timers import Timers
from rehearsal.errors import LocalDiscordError

# The time limits are Discord's.
RESPONSE_TIMEOUT_S = 3.0
TOKEN_LIFETIME_S = 15 * 60.0
EPHEMERAL = 1 << 6
_COMMAND, _COMPONENT, _AUTOCOMPLETE, _WINDOW = 2, 3, 4, 5
_GUILD_CONTEXT = 0
_INTERACTIONS_KEPT = 200


class CallbackType(IntEnum):
    """The kinds of first answer to an interaction."""

    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE_MESSAGE = 7
    AUTOCOMPLETE = 8
    MODAL = 9


@dataclass(slots=True)
class _Interaction:
    kind: int
    token: str
    application_id: int
    channel_id: int
    result: InteractionResult
    started_at: float
    answered: bool = False
    ephemeral: bool = False
    # True while a deferred answer has no text yet.
    loading: bool = False
    original_id: int | None = None
    messages: dict[int, Json] = field(default_factory=dict)
    # The message whose button was pressed.
    source: Json | None = None


class Interactions:
    """The most recent interactions. *Ownership*: the timers of those on their way; `close` cancels them."""

    def __init__(self, state: LocalGuild, gateway: Gateway, *, response_timeout_s: float | None = None) -> None:
        self._state = state
        self._gateway = gateway
        self._response_timeout_s = RESPONSE_TIMEOUT_S if response_timeout_s is None else response_timeout_s
        self._by_token: dict[str, _Interaction] = {}
        # How long an interaction takes to the bot (the fault "late_interactions"). Its time has begun meanwhile.
        self.delivery_delay_s = 0.0
        self._timers = Timers()

    def close(self) -> None:
        """Cancel every timer."""
        self._timers.close()

    def expire(self) -> None:
        """End the time in which the bot may answer the interactions so far."""
        for interaction in self._by_token.values():
            interaction.started_at = float("-inf")

    def knows(self, token: str) -> bool:
        """Return whether the token is that of an interaction here."""
        return token in self._by_token

    async def invoke(
        self,
        user_id: int,
        command_name: str,
        options: Mapping[str, Any] | None = None,
        *,
        channel_id: int | None = None,
        timeout_s: float = REPLY_TIMEOUT_S,
    ) -> InteractionResult:
        """Use a slash command as a member, by default in the text channel. Return once the bot has answered with a
        message; follow-ups and edits are added to the result later.

        Raises `LocalDiscordError` for a wrong command or option, and when the bot is offline, does not respond within
        Discord's three seconds, or sends no text in `timeout_s`.
        """
        state = self._state
        application_id, data = build_invocation(
            state.guild, state.all_commands(), user_id=user_id, name=command_name, options=options or {}
        )
        interaction = self._begin(_COMMAND, user_id, command_name, application_id, channel_id)
        return await self._ask(interaction, data, timeout_s=timeout_s)

    async def suggest(
        self, user_id: int, command_name: str, option: str, typed: str = "", *, channel_id: int | None = None
    ) -> list[tuple[str, Any]]:
        """Type into an option of a command as a member. Returns the names and values that the bot suggests.

        Raises `LocalDiscordError` as `invoke` does, and for an option that suggests nothing.
        """
        state = self._state
        application_id, data = build_suggestion(
            state.guild, state.all_commands(), user_id=user_id, name=command_name, option=option, typed=typed
        )
        interaction = self._begin(_AUTOCOMPLETE, user_id, command_name, application_id, channel_id)
        result = await self._ask(interaction, data, timeout_s=self._response_timeout_s)
        return [(choice["name"], choice["value"]) for choice in result.choices]

    async def press(
        self, user_id: int, message_id: int, button: str, *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> InteractionResult:
        """Press a button below a message as a member. Return once the bot has answered.

        `button`: its custom id, or what stands on it. The bot answers with a message, or by editing the one with the
        button. Raises `LocalDiscordError` if there is no such button, it is disabled, or the member does not see the
        message; and as `invoke` does.
        """
        source = self._seen_by(user_id, message_id)
        open_buttons = [each for each in buttons_of(source) if not each["disabled"]]
        pressed = next((each for each in open_buttons if button in (each["custom_id"], each["label"])), None)
        if pressed is None:
            there = ", ".join(each["custom_id"] for each in open_buttons) or "none"
            raise LocalDiscordError(f"Message {message_id} has no button {button!r} to press. It has {there}.")
        data: Json = {"custom_id": pressed["custom_id"], "component_type": BUTTON}
        return await self._use(_COMPONENT, user_id, source, data, timeout_s=timeout_s)

    async def pick(
        self, user_id: int, message_id: int, menu: str, picked: Sequence[str], *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> InteractionResult:
        """Pick something in a menu below a message as a member. Return once the bot has answered, or opened a window.

        `menu`: its custom id. `picked`: values of its options, or ids of people, roles or channels. Raises
        `LocalDiscordError` as `press` does, and for what cannot be picked.
        """
        source = self._seen_by(user_id, message_id)
        found = next((each for each in menus_of(source) if each["custom_id"] == menu), None)
        if found is None:
            there = ", ".join(each["custom_id"] for each in menus_of(source)) or "none"
            raise LocalDiscordError(f"Message {message_id} has no menu {menu!r}. It has {there}.")
        least, most = found.get("min_values", 1), found.get("max_values", 1)
        values = [option["value"] for option in found.get("options", [])]
        unknown = [each for each in picked if found["type"] == STRING_MENU and each not in values]
        if unknown or not least <= len(picked) <= most:
            raise LocalDiscordError(f"Pick {least} to {most} in {menu!r}: {', '.join(values) or 'ids'}.")
        data: Json = {"custom_id": menu, "component_type": found["type"], "values": list(picked)}
        if found["type"] != STRING_MENU:
            data["resolved"] = resolved_picks(self._state.guild, found["type"], picked)
        return await self._use(_COMPONENT, user_id, source, data, timeout_s=timeout_s)

    async def write(
        self, window: InteractionResult, text: str, *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> InteractionResult:
        """Write into the only field of the window that a press has opened, and submit it. Return once the bot has
        answered. Raises `LocalDiscordError` if no window is open or the text is too long, and as `press` does.
        """
        if window.window is None or window.source is None:
            raise LocalDiscordError(f"{window.command} has opened no window.")
        (label,) = window.window["components"]
        field = label["component"]
        if len(text) > field.get("max_length", 4_000):
            raise LocalDiscordError(f"The field takes at most {field['max_length']} characters.")
        filled = {"type": field["type"], "custom_id": field["custom_id"], "value": text}
        data: Json = {
            "custom_id": window.window["custom_id"],
            "components": [{"type": label["type"], "component": filled}],
        }
        return await self._use(_WINDOW, window.user_id, window.source, data, timeout_s=timeout_s)

    def _seen_by(self, user_id: int, message_id: int) -> Json:
        self._state.guild.member(user_id)
        source, owner = self._find_message(message_id)
        if owner is not None and source["flags"] & EPHEMERAL and owner.result.user_id != user_id:
            raise LocalDiscordError(f"Only user {owner.result.user_id} sees message {message_id}.")
        return source

    async def _use(self, kind: int, user_id: int, source: Json, data: Json, *, timeout_s: float) -> InteractionResult:
        """Send what a member does below a message, and wait for the answer."""
        application_id, channel_id = int(source["author"]["id"]), int(source["channel_id"])
        interaction = self._begin(kind, user_id, data["custom_id"], application_id, channel_id)
        interaction.source = interaction.result.source = source
        return await self._ask(interaction, data, timeout_s=timeout_s)

    async def _ask(self, interaction: _Interaction, data: Json, *, timeout_s: float) -> InteractionResult:
        """Send an interaction to its bot. Return once the bot has answered with what the member waits for."""
        result = interaction.result
        if not self._gateway.online(interaction.application_id):
            sign = "/" if interaction.kind in (_COMMAND, _AUTOCOMPLETE) else ""
            raise LocalDiscordError(f"The bot with {sign}{result.command} is offline. Start it first.")
        event = self._event(interaction, result.user_id, data)
        if interaction.source is not None:
            event["message"] = interaction.source
        bot_id = interaction.application_id
        self._timers.after(self.delivery_delay_s, self._gateway.send_to, bot_id, "INTERACTION_CREATE", event)
        await result.until(lambda _: interaction.answered, timeout_s=self._response_timeout_s)
        if interaction.kind != _AUTOCOMPLETE:
            await result.until(lambda now: bool(now.replies) or now.window is not None, timeout_s=timeout_s)
        return result

    def _find_message(self, message_id: int) -> tuple[Json, _Interaction | None]:
        for interaction in self._by_token.values():
            if message_id in interaction.messages:
                return interaction.messages[message_id], interaction
        for posted in self._state.messages():
            if posted.id == message_id:
                return posted.payload, None
        raise LocalDiscordError(f"There is no message {message_id}.")

    def _begin(
        self, kind: int, user_id: int, command: str, application_id: int, channel_id: int | None
    ) -> _Interaction:
        while len(self._by_token) >= _INTERACTIONS_KEPT:
            del self._by_token[next(iter(self._by_token))]
        result = InteractionResult(id=self._state.snowflake(), command=command, user_id=user_id)
        interaction = _Interaction(
            kind=kind,
            token=secrets.token_urlsafe(32),
            application_id=application_id,
            channel_id=channel_id or self._state.guild.text_channel.id,
            result=result,
            started_at=time.monotonic(),
        )
        self._by_token[interaction.token] = interaction
        return interaction

    def _event(self, interaction: _Interaction, user_id: int, data: Json) -> Json:
        guild = self._state.guild
        here = interaction.channel_id
        shown = self._state.threads.get(here) or payloads.channel(guild, self._state.channel_of(here))
        bits = str(self._state.permissions_in(here, user_id))
        return {
            "id": str(interaction.result.id),
            "application_id": str(interaction.application_id),
            "type": interaction.kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "guild_id": str(guild.id),
            "guild": {"id": str(guild.id), "locale": guild.locale, "features": []},
            "guild_locale": guild.locale,
            "channel_id": str(here),
            "channel": {**shown, "permissions": bits},
            "member": {**payloads.guild_member(guild, user_id), "permissions": bits},
            "app_permissions": str(self._state.permissions_in(here, interaction.application_id)),
            "locale": guild.member(user_id).locale,
            "entitlements": [],
            "authorizing_integration_owners": {"0": str(guild.id)},
            "context": _GUILD_CONTEXT,
            "attachment_size_limit": MAX_ATTACHMENT_BYTES,
        }

    # --- called by REST ----------------------------------------------------------------------------------------

    def answer(self, interaction_id: int, token: str, body: Json) -> Json:
        """Handle the first answer and return the callback response object. Raises `RefusedError`."""
        interaction = self._by_token.get(token)
        late = interaction and time.monotonic() - interaction.started_at > self._response_timeout_s
        if interaction is None or interaction.result.id != interaction_id or (late and not interaction.answered):
            raise RefusedError(404, 10062, "Unknown interaction")
        if interaction.answered:
            raise RefusedError(400, 40060, "Interaction has already been acknowledged.")
        kind = body["type"]
        data = body.get("data") or {}
        resource: Json | None = None
        if kind == CallbackType.MESSAGE:
            message = self._write(interaction, data, "initial")
            interaction.original_id = int(message["id"])
            resource = {"type": kind, "message": message}
        elif kind == CallbackType.DEFERRED_MESSAGE:
            interaction.loading = True
            interaction.result.deferred = True
            interaction.ephemeral = bool(data.get("flags", 0) & EPHEMERAL)
        elif kind == CallbackType.AUTOCOMPLETE and interaction.kind == _AUTOCOMPLETE:
            interaction.result.choices += data.get("choices") or []
        elif kind == CallbackType.MODAL and interaction.kind == _COMPONENT:
            interaction.result.window = data
        elif kind in (CallbackType.DEFERRED_UPDATE, CallbackType.UPDATE_MESSAGE) and interaction.source is not None:
            source = interaction.source
            interaction.original_id = int(source["id"])
            interaction.messages[interaction.original_id] = source
            interaction.ephemeral = bool(source["flags"] & EPHEMERAL)
            if kind == CallbackType.UPDATE_MESSAGE:
                self._change(interaction, source, data)
            resource = {"type": CallbackType.UPDATE_MESSAGE, "message": source}
        else:
            raise RefusedError(400, 50035, "This interaction cannot be answered in this way here.")
        interaction.answered = True
        interaction.result.note(None)
        described: Json = {
            "id": str(interaction_id),
            "type": interaction.kind,
            "response_message_loading": interaction.loading,
            "response_message_ephemeral": interaction.ephemeral,
        }
        if interaction.original_id is not None:
            described["response_message_id"] = str(interaction.original_id)
        return {"interaction": described} | ({} if resource is None else {"resource": resource})

    def follow_up(self, application_id: int, token: str, data: Json) -> Json:
        """Handle a follow-up message. As on Discord, the first one after a deferred answer becomes that answer."""
        interaction = self._find(application_id, token)
        if interaction.loading:
            return self.edit(application_id, token, "@original", data)
        return self._write(interaction, data, "followup")

    def edit(self, application_id: int, token: str, which: str, data: Json) -> Json:
        """Handle an edit of the first answer (`@original`) or of a follow-up. Return the message."""
        interaction = self._find(application_id, token)
        if which == "@original" and interaction.loading:
            interaction.loading = False
            # As on Discord, only the deferred answer decides who sees it.
            flags = data.get("flags", 0) & ~EPHEMERAL | (EPHEMERAL if interaction.ephemeral else 0)
            message = self._write(interaction, {**data, "flags": flags}, "initial")
            interaction.original_id = int(message["id"])
            return message
        message = self.message(application_id, token, which)
        self._change(interaction, message, data)
        return message

    def _change(self, interaction: _Interaction, message: Json, data: Json) -> None:
        edit_message(message, data)
        message["edited_timestamp"] = payloads.now()
        self._note(interaction, "edit", message)

    def message(self, application_id: int, token: str, which: str) -> Json:
        """Return the first answer (`@original`) or a follow-up."""
        interaction = self._find(application_id, token)
        number = interaction.original_id if which == "@original" else int(which) if which.isdigit() else None
        if number is None or number not in interaction.messages:
            raise RefusedError(404, 10008, "Unknown Message")
        return interaction.messages[number]

    def delete(self, application_id: int, token: str, which: str) -> None:
        """Delete the first answer or a follow-up."""
        message = self.message(application_id, token, which)
        number = int(message["id"])
        del self._find(application_id, token).messages[number]
        self._state.written.pop(number, None)

    def _find(self, application_id: int, token: str) -> _Interaction:
        interaction = self._by_token.get(token)
        if interaction is None or interaction.application_id != application_id or not interaction.answered:
            raise RefusedError(404, 10015, "Unknown Webhook")
        if time.monotonic() - interaction.started_at > TOKEN_LIFETIME_S:
            raise RefusedError(401, 50027, "Invalid Webhook Token")
        return interaction

    def _write(self, interaction: _Interaction, data: Json, kind: ReplyKind) -> Json:
        extra = new_message_fields(data)
        message = payloads.message(
            self._state.guild,
            message_id=self._state.snowflake(),
            channel_id=interaction.channel_id,
            author_id=interaction.application_id,
            content=data.get("content") or "",
            extra={**extra, "application_id": str(interaction.application_id)},
            reply_to_command=kind == "initial",
            allowed=data.get("allowed_mentions"),
        )
        interaction.messages[int(message["id"])] = message
        ephemeral = bool(message["flags"] & EPHEMERAL)
        if not ephemeral:
            self._state.add_message(message)
            self._gateway.broadcast_message("MESSAGE_CREATE", message)
        self._note(interaction, kind, message)
        return message

    def _note(self, interaction: _Interaction, kind: ReplyKind, message: Json) -> None:
        reader = self._state.guild.member(interaction.result.user_id)
        reply = InteractionReply(
            kind=kind,
            content=self._state.shown(message["content"], reader.locale),
            ephemeral=bool(message["flags"] & EPHEMERAL),
            payload=dict(message),
        )
        interaction.result.note(reply)

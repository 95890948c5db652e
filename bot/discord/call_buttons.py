"""The message with a tool call that waits for a press: the call in full, and the buttons *Do it* and *Don't*.

Who may press is the room's to say (`bot.brain.tools.frozen_calls`). A press of a call that an earlier process posted is
told that it has lapsed.
"""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import discord
import structlog

from bot.channel.markdown import in_message
from bot.channel.port import Person
from bot.discord.answers import MESSAGE_CHARS, answer
from bot.discord.failures import AnsweringView
from bot.discord.posting import post_message
from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.text import Text, in_language

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.channel.port import CallRequest, OnPress

log = structlog.get_logger()

EDIT_TIMEOUT_S = 10.0
DO_IT = Text("Do it")
DO_NOT = Text("Don't")
SHALL_I = Text("{name}, shall I do this? I do nothing unless you press *Do it* within two minutes.")
OF_SERVER = Text("{tool} of {server}, with these arguments:")
OWN_TOOL = Text("{tool}, with these arguments:")
IN_FILE = Text("The call is too long for a message. All of it is in the file.")
# Room for what became of the call, below it.
_CALL_CHARS = MESSAGE_CHARS - 200
# A longer name is in the file only.
_NAME_CHARS = 100
BUTTONS = _DO_IT_ID, _DO_NOT_ID = "roomtone:do-it", "roomtone:do-not"


class CallButtons(AnsweringView):
    """The two buttons of one call."""

    def __init__(self, on_press: OnPress, language: str) -> None:
        super().__init__(timeout=None)
        self._on_press = on_press
        self.do_it.label = in_language(DO_IT, language)
        self.do_not.label = in_language(DO_NOT, language)

    @discord.ui.button(style=discord.ButtonStyle.success, custom_id=_DO_IT_ID)
    async def do_it(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """Have the call carried out, if it is the asker who presses."""
        await self._press(interaction, do_it=True)

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id=_DO_NOT_ID)
    async def do_not(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """Have the call dropped, if it is the asker who presses."""
        await self._press(interaction, do_it=False)

    async def _press(self, interaction: discord.Interaction, *, do_it: bool) -> None:
        member = interaction.user
        # Discord sends the roles of now with each press.
        roles = frozenset(role.id for role in member.roles) if isinstance(member, discord.Member) else frozenset()
        refused = self._on_press(Person(member.id, member.display_name, member.bot, roles), do_it)
        if refused is not None:
            await answer(interaction, refused)
        else:
            await interaction.response.edit_message(view=None)


class PostedCall:
    """A call that is posted. Implements `bot.channel.port.CallMessage`."""

    def __init__(self, message: discord.Message, buttons: CallButtons, text: str, language: str) -> None:
        self._message = message
        self._buttons = buttons
        self._text = text
        self._language = language

    async def conclude(self, outcome: Text) -> None:
        self._buttons.stop()
        text = f"{self._text}\n{in_message(outcome, self._language)}"
        try:
            async with asyncio.timeout(EDIT_TIMEOUT_S):
                await self._message.edit(content=text, view=None, allowed_mentions=discord.AllowedMentions.none())
        except REQUEST_ERRORS as error:
            log.warning("call_not_concluded", error_class=type(error).__name__)


async def post_call(
    channel: discord.abc.Messageable, request: CallRequest, on_press: OnPress, language: str
) -> PostedCall:
    """Post a call with its buttons. Raises `REQUEST_ERRORS`. It has no time-out."""
    buttons = CallButtons(on_press, language)
    text, content = call_text(request, language)
    file: Callable[[], discord.File] | None = None
    if content is not None:
        whole = content.encode()

        def file() -> discord.File:
            return discord.File(io.BytesIO(whole), "call.json")

    message = await post_message(channel, text, view=buttons, file=file)
    return PostedCall(message, buttons, text, language)


def call_text(request: CallRequest, language: str) -> tuple[str, str | None]:
    """Return the message about a call, and the content of a file with all of it if that is too long for a message."""
    named = OF_SERVER if request.server else OWN_TOOL
    head = in_message(SHALL_I.fill(name=request.asker[:_NAME_CHARS]), language)
    tool = in_message(named.fill(tool=request.tool[:_NAME_CHARS], server=request.server), language)
    text = f"{head}\n{tool}\n```json\n{visible_json(request.arguments)}\n```"
    if len(text) <= _CALL_CHARS and len(request.tool) <= _NAME_CHARS:
        return text, None
    whole = visible_json({"server": request.server, "tool": request.tool, "arguments": request.arguments})
    return f"{head}\n{tool}\n{in_message(IN_FILE, language)}", whole


def visible_json(value: Mapping[str, object]) -> str:
    """Return a value as JSON in which each character can be seen: those that cannot, that turn the direction of the
    text, or that would end a block of code, are escaped.
    """
    written = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(char if char == "\n" or (char.isprintable() and char != "`") else _escaped(char) for char in written)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

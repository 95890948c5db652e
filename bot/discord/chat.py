"""Implements `bot.channel.port.Chat` for Discord: reads posted files and posts messages for one member; and posts the
tool calls that wait for a press, in full, with the buttons *Do it* and *Don't*, and those that run, with *Stop*.

The bot may see channels that the member may not, so each use of the chat first asks Discord for the member and works
out what they may do in this channel now. What they may not do themselves, the bot does not do for them.

Without the Message Content intent, Discord shows a bot only the files of messages that
mention it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import discord

from bot.channel.markdown import in_message
from bot.channel.port import ChatError, DroppedFile
from bot.channel.visible_json import visible_json
from bot.discord.answers import RESPONSE_S, answer
from bot.discord.command_tree import AnsweringView
from bot.discord.posting import MESSAGE_CHARS, attempt, post_message, unless_gone, within
from bot.discord.voice_channels import member_of, person_of
from bot.texts.text import Text, in_language

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bot.channel.port import CallRequest, OnPress
    from voice.transport.discord_gateway import VoiceChannel


# Messages that are searched for files.
MOST_MESSAGES = 50
TIMEOUT_S = 8.0
# Asking who somebody is takes a tenth of a second; a tool has 8 to 12 s for everything.
ASKER_TIMEOUT_S = 2.0

_NO_RIGHT = Text("I am not allowed to {what} in the chat of this channel. Give my role the permission {right} there.")
_NO_RIGHT_OF_ASKER = Text(
    "The person who asks is not allowed to {what} in the chat of this channel, so I do not do it for "
    "them. A moderator can give them the permission {right} there."
)
_NOBODY_ASKS = Text("I use the chat only for a person who asks me, but I cannot tell who is asking.")
_FAILED = Text("Discord did not let me {what} in the chat of this channel. Try again.")


class _Use(NamedTuple):
    """One use of the chat. `what` completes `I may not …`; the permissions have Discord's names."""

    what: Text
    right: Text
    permissions: discord.Permissions

    def failure(self, error: Exception) -> ChatError:
        """Return why it failed."""
        sentence = _NO_RIGHT if isinstance(error, discord.Forbidden) else _FAILED
        return ChatError(sentence.fill(what=self.what, right=self.right))


CHAT_READER = discord.Permissions(view_channel=True, read_message_history=True)
_READ = _Use(Text("read the files that people posted"), Text("Read Message History"), CHAT_READER)
_WRITE = _Use(Text("write"), Text("Send Messages"), discord.Permissions(view_channel=True, send_messages=True))


class DiscordChat:
    """A voice channel's own chat, used with the permissions of one member. `asker_id`: the member; None: nobody."""

    def __init__(self, channel: VoiceChannel, *, asker_id: int | None) -> None:
        self._channel = channel
        self._asker_id = asker_id
        # The files listed last, by id.
        self._attachments: dict[int, discord.Attachment] = {}

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        await self._require(_READ)
        own_id = self._channel.guild.me.id
        found: list[tuple[DroppedFile, discord.Attachment]] = []
        async with within(TIMEOUT_S, _READ.failure):
            async for message in self._channel.history(limit=MOST_MESSAGES):
                # Its own are transcripts: they have words of people who may have opted out or been forgotten since.
                if message.author.id != own_id:
                    found += ((_dropped(message, attachment), attachment) for attachment in message.attachments)
        newest = sorted(found, key=lambda each: each[0].at, reverse=True)[:most]
        self._attachments = {file.id: attachment for file, attachment in newest}
        return [file for file, _ in newest]

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        attachment = self._attachments.get(file.id)
        if attachment is None or attachment.size > max_bytes:
            raise ChatError(Text("Somebody deleted {file}, or it is too large to read.", file=file.name))
        async with within(TIMEOUT_S, _READ._replace(what=Text("read {file}", file=file.name)).failure):
            content = await attachment.read()
        if len(content) > max_bytes:
            raise ChatError(Text("{file} is larger than Discord said.", file=file.name))
        return content

    async def post(self, text: str, *, calls_asker: bool = False) -> None:
        await self._require(_WRITE)
        calls = self._asker_id if calls_asker else None
        async with within(TIMEOUT_S, _WRITE.failure):
            await post_message(self._channel, text[:MESSAGE_CHARS], calls=calls)

    async def _require(self, use: _Use) -> None:
        """Raise `ChatError` unless the asker may do this themselves now.

        The member is fetched anew: discord.py is not told of changed roles without a privileged intent.
        """
        if self._asker_id is None:
            raise ChatError(_NOBODY_ASKS)
        async with within(ASKER_TIMEOUT_S, use.failure):
            member = await unless_gone(self._channel.guild.fetch_member(self._asker_id), None)
        if member is None:
            raise ChatError(_NOBODY_ASKS)
        if not use.permissions <= self._channel.permissions_for(member):
            raise ChatError(_NO_RIGHT_OF_ASKER.fill(what=use.what, right=use.right))
        # Who may not read the history is shown an empty one.
        if not use.permissions <= self._channel.permissions_for(self._channel.guild.me):
            raise ChatError(_NO_RIGHT.fill(what=use.what, right=use.right))


def _dropped(message: discord.Message, attachment: discord.Attachment) -> DroppedFile:
    return DroppedFile(
        id=attachment.id,
        name=attachment.filename,
        size_bytes=attachment.size,
        content_type=attachment.content_type or "",
        by=message.author.display_name,
        by_id=message.author.id,
        at=message.created_at.timestamp(),
    )


DO_IT = Text("Do it")
DO_NOT = Text("Don't")
STOP = Text("Stop")
SHALL_I = Text("{name}, shall I do this? I do it only if you press *Do it* within two minutes.")
OF_SERVER = Text("The tool {tool} of {server} gets this:")
RUNNING = Text("I am still working on this for {name}: {tool}.")
OWN_TOOL = Text("The tool {tool} gets this:")
BEGUN = Text("{name} has pressed *Do it*. I do not know the result yet. You will see it here.")
IN_FILE = Text("This is too long for a message. All of it is in the file.")
NOBODY_CALLED = discord.AllowedMentions.none()
# Room for what became of the call, below it.
_CALL_CHARS = MESSAGE_CHARS - 200
# A longer name is in the file only.
_NAME_CHARS = 100
CALL_BUTTONS = _DO_IT_ID, _DO_NOT_ID = "roomtone:do-it", "roomtone:do-not"


def call_buttons(on_press: OnPress, language: str, text: str, telling: asyncio.Lock, *, runs: bool) -> AnsweringView:
    """Return the two buttons of one call, or the one of a call that runs already. Who may press is the room's to say
    (`bot.brain.tools.frozen_calls`).

    `text`: of the message that they are below. `telling`: held while a press changes it, so that what became of the
    call is told after that.
    """
    view = AnsweringView(timeout=None)

    async def press(interaction: discord.Interaction, *, do_it: bool) -> None:
        # Discord sends the roles of now with each press.
        person = person_of(member_of(interaction))
        begun = f"{text}\n{in_message(BEGUN.fill(name=person.name[:_NAME_CHARS]), language)}" if do_it else text
        async with telling:
            refused = on_press(person, do_it)
            if refused is None:
                edit = interaction.response.edit_message(content=begun, view=None, allowed_mentions=NOBODY_CALLED)
                await attempt(edit, None, event="press_not_shown", within_s=RESPONSE_S)
                return
        await answer(interaction, refused)

    green = discord.ButtonStyle.success
    if not runs:
        view.add_button(_DO_IT_ID, in_language(DO_IT, language), partial(press, do_it=True), style=green)
    view.add_button(_DO_NOT_ID, in_language(STOP if runs else DO_NOT, language), partial(press, do_it=False))
    return view


@dataclass(frozen=True, slots=True)
class PostedCall:
    """A call that is posted. Implements `bot.channel.port.CallMessage`."""

    message: discord.Message
    buttons: AnsweringView
    text: str
    language: str
    telling: asyncio.Lock

    async def conclude(self, outcome: Text) -> None:
        self.buttons.stop()
        text = f"{self.text}\n{in_message(outcome, self.language)}"
        async with self.telling:
            # Else discord.py would have the links of the call unfold.
            request = self.message.edit(content=text, view=None, suppress=True, allowed_mentions=NOBODY_CALLED)
            await attempt(request, None, event="call_not_concluded")


async def post_call(
    channel: discord.abc.Messageable,
    request: CallRequest,
    on_press: OnPress,
    language: str,
    spoken: Collection[str] = (),
) -> PostedCall:
    """Post a call with its buttons. `language`: that of what everybody there reads; `spoken`: those of what they say.

    Raises `REQUEST_ERRORS`. It has no time-out.
    """
    text, content = call_text(request, language, spoken)
    telling = asyncio.Lock()
    buttons = call_buttons(on_press, language, text, telling, runs=request.arguments is None)
    file = None if content is None else ("call.json", content.encode())
    message = await post_message(channel, text, view=buttons, file=file)
    return PostedCall(message, buttons, text, language, telling)


def call_text(request: CallRequest, language: str, spoken: Collection[str] = ()) -> tuple[str, str | None]:
    """Return the message about a call, and the content of a file with all of it if that is too long for a message."""
    languages = (language, *spoken)
    named = OF_SERVER if request.server else OWN_TOOL
    head = in_message(SHALL_I.fill(name=request.asker[:_NAME_CHARS]), language)
    # As JSON writes them, without its quotes: nothing in a name is hidden either.
    name, server = (visible_json(each, languages)[1:-1] for each in (request.tool, request.server))
    if request.arguments is None:
        return in_message(RUNNING.fill(name=request.asker[:_NAME_CHARS], tool=name[:_NAME_CHARS]), language), None
    tool = in_message(named.fill(tool=name[:_NAME_CHARS], server=server[:_NAME_CHARS]), language)
    text = f"{head}\n{tool}\n```json\n{visible_json(request.arguments, languages)}\n```"
    if len(text) <= _CALL_CHARS and max(len(name), len(server)) <= _NAME_CHARS:
        return text, None
    whole = {"server": request.server, "tool": request.tool, "arguments": request.arguments}
    return f"{head}\n{tool}\n{in_message(IN_FILE, language)}", visible_json(whole, languages)

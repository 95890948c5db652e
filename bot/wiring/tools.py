"""Builds a room's toolbox: the built-in tools that the settings allow, and those of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.attachments import attachment_tool
from bot.brain.tools.links import link_tool
from bot.brain.tools.memory import memory_tools
from bot.brain.tools.screen import screen_tool
from bot.brain.tools.toolbox import Toolbox
from bot.memory.recall import RoomRecall
from bot.memory.room_audience import RoomAudience

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from bot.brain.tools.permission import Asker
    from bot.brain.tools.screen import ScreenView
    from bot.brain.tools.settings import ToolsSettings
    from bot.brain.tools.tool import RoomTool
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.memory.access_log import AccessLog
    from bot.memory.recall import Recall, RecallScope
    from bot.store.attendance import AttendanceStore


# Longer files are not read: this suffices for a long text, and keeps out disk images.
ATTACHMENT_BYTES = 512 * 1024


class Toolset:
    """Makes each room's toolbox.

    `attendance` tells who was in which session. `accesses` counts what memory search shows. `reach` is its scope, or
    None if there is no search. `more` returns the tools of the MCP servers that are for a guild. `screens` returns a
    room's view of its shared screens, or None if it has none.
    `withheld` returns the ids of people of a guild whose words and files a model may not get.
    """

    def __init__(
        self,
        settings: ToolsSettings,
        recall: Recall,
        *,
        attendance: AttendanceStore,
        accesses: AccessLog | None = None,
        reach: str | None,
        clock: Clock,
        zone: tzinfo,
        more: Callable[[int], Sequence[RoomTool]] = lambda _: (),
        screens: Callable[[Place], ScreenView | None] = lambda _: None,
        withheld: Callable[[int | None], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._withheld = withheld
        self._attendance = attendance
        self._settings = settings
        self._recall = recall
        self._accesses = accesses
        self._reach = reach
        self._clock = clock
        self._zone = zone
        self._more = more
        self._screens = screens

    def toolbox(self, here: RecallScope, place: Place) -> Toolbox:
        settings = self._settings
        if not settings.max_steps:
            return Toolbox()
        tools: list[RoomTool] = []
        if self._reach is not None:
            room = RoomRecall(
                self._recall,
                here,
                reach=self._reach,
                shared_channels=place.shared_channels,
                accesses=self._accesses,
                withheld=self._withheld,
                audience=RoomAudience(place.readers, self._attendance, here.session_id),
            )
            tools += memory_tools(room, zone=self._zone, now=self._clock.now, question=lambda: toolbox.question)
        screen = self._screens(place)
        if screen is not None:
            tools.append(screen_tool(screen))
        toolbox = Toolbox(
            tools,
            more=lambda: self._more(place.guild_id),
            personal=lambda asker: self._chat_tools(place, asker),
            ask_for_press=place.ask_for_press,
            is_present=lambda user_id: any(person.id == user_id for person in place.members() if not person.is_bot),
            language=lambda: place.language,
        )
        return toolbox

    def _chat_tools(self, place: Place, asker: Asker) -> Sequence[RoomTool]:
        """Return the tools that use the chat of `place` with the permissions of the person who asks."""
        chat = place.chat_for(asker.user_id)
        attachments = attachment_tool(
            chat, max_bytes=ATTACHMENT_BYTES, zone=self._zone, withheld=lambda: self._withheld(place.guild_id)
        )
        return (attachments, link_tool(chat))

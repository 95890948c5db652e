"""The reminders and timers of one room: keeps what people ask for, and has each told when it is due (`bot.reminders`).

Between two looks it holds only a time. What is told is read from the store when nobody speaks, so that nothing is said
that was deleted or forgotten meanwhile.

To remind people in the talk asks nobody first; to write into the channel's chat when the talk is over does something
outside of it, so that waits for a press. Without a language model the words of the examples do the same
(`bot.brain.embedded.chat`).
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import structlog

from bot.brain.question import DueReminder
from bot.brain.tools.tool import Asker, Result, RoomTool, ToolError, only, present
from bot.reminders import MOST_CHARS, MOST_DAYS, MOST_EACH, NO_TIME, REMIND, fate, telling
from bot.store.reminders import Reminder
from bot.texts.text import Text, joined
from bot.time_ahead import parse_moment_ahead
from bot.time_phrases import format_ahead
from compaction.errors import StoreError
from compaction.language.terms import terms
from compaction.language.text import cut_at_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.brain.reply import Reply
    from bot.channel.participants import Participants
    from bot.clock import Clock
    from bot.conversation.conversation import Conversation
    from bot.conversation.services import RoomContext

log = structlog.get_logger()

LOOK_EVERY_S = 1.0
# When to look again for somebody who is not there yet, after a failure, and after a reminder that nobody heard.
AGAIN_S = 30.0


class Reminding:
    """The reminders of one session's channel. `talk`: has each said, once nobody speaks.

    *Ownership*: the conversation runs `run`. Call everything on its loop.
    """

    def __init__(self, session: RoomContext, participants: Participants, talk: Conversation) -> None:
        self._session_id, self._channel = session.id, session.channel
        self._store, self._clock = session.services.memory.sessions.reminders, session.services.clock
        self._words, self._guild, self._upkeep = session.words, session.guild, session.upkeep
        self._participants, self._talk = participants, talk
        # When to look at the store next; those that were heard, and are not deleted yet.
        self._look_at = 0.0
        self._heard: set[int] = set()

    async def add(self, person_id: int, due_at: float, *, what: str, whom: str, in_chat: bool) -> bool:
        """Store what a person wants to be told. Return False if they have `MOST_EACH` on the server already. Raises
        `StoreError`.
        """
        place = (self._session_id, self._channel.guild_id, self._channel.channel_id)
        if self._upkeep is not None:
            # Whose words it may have: also those of whom a prompt has quoted just now.
            await self._upkeep.store_waiting()
        added = await self._store.add(Reminder(*place, person_id, due_at, what, whom, in_chat), most=MOST_EACH)
        self._look_at = min(self._look_at, due_at)
        return added

    async def told_to(self, person_id: int) -> Sequence[tuple[str, Reminder]]:
        """Return the reminders that a person may hear of here, the next one first, each with the name of who asked:
        those of this session, which everybody may have heard, and their own of earlier ones. Raises `StoreError`.
        """
        return [
            (self._participants.name(each.person_id), each.without_words_of(self._guild.opted_out_ids()))
            for each in await self._store.of(self._channel.guild_id, self._channel.channel_id)
            if each.person_id == person_id or each.session_id == self._session_id
        ]

    async def delete(self, number: int) -> bool:
        """Delete a reminder. Return whether it was there. Raises `StoreError`."""
        return await self._store.delete(number)

    async def run(self) -> None:
        """Have reminders told when they are due. Never returns."""
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            if self._clock.now() < self._look_at:
                continue
            try:
                await self._talk.until_free()
                await self._look()
            except StoreError as error:
                log.warning("reminders_not_read", problem=error)
                self._look_at = self._clock.now() + AGAIN_S

    async def _look(self) -> None:
        """Delete what was told or is too late, and begin to tell the first that is due."""
        for number in tuple(self._heard):
            await self._store.delete(number)
            self._heard.discard(number)
        times = self._words.times
        kept = await self._store.of(self._channel.guild_id, self._channel.channel_id)
        if times != self._words.times:
            # The store has lost those of somebody.
            return
        # From here on nothing may be awaited before one is told.
        withheld = self._guild.opted_out_ids()
        now, present = self._clock.now(), {each.id for each in self._channel.members()}
        later = [each.due_at for each in kept if each.due_at > now]
        due = [each for each in kept if each.due_at <= now and not self._words.excludes(each.person_id)]
        self._look_at = min([*later, now + AGAIN_S] if due else later, default=inf)
        for each in due:
            what = fate(each, now=now, session_id=self._session_id, present=present)
            if what == "drop":
                self._heard.add(each.id)
            elif what == "tell":
                name, told = self._participants.name(each.person_id), each.without_words_of(withheld)
                if await self._talk.tell_reminder(told, telling(told, name=name, now=now)):
                    return

    def on_reply(self, reply: Reply) -> None:
        """Take note that a reply is over: a reminder that was heard, or written because no voice works, is told."""
        if isinstance(reply.question, DueReminder) and (reply.text or reply.unsaid):
            self.on_told(reply.question.number)

    def on_told(self, number: int) -> None:
        """Take note that people know a reminder."""
        self._heard.add(number)
        self._look_at = 0.0


OVER = Text("That time is in the past. Tell me a time in the future.")
TOO_FAR = Text(
    "That is too far in the future. I can remind people within {days} days. Tell me an earlier time.", days=MOST_DAYS
)
TOO_MANY = Text(
    "You already have {count} reminders on this server. I cannot keep more for one person. Delete one with /reminders.",
    count=MOST_EACH,
)
PROMISED = Text("I will remind you {when}.")
PROMISED_OTHER = Text("I will remind {whom} {when}.")
NO_SUCH = Text("You have no such reminder here. Type /reminders to see your reminders.")
SEVERAL = Text("You have {count} reminders like that. Type /reminders to delete one of them.")
DELETED = Text("I have deleted it: {what}.")
NONE = Text("There are no reminders and no timers.")
TIMER = Text("a timer")

_WANTED: dict[str, object] = {
    "minutes": {"type": "number", "description": "In how many minutes."},
    "at": {"type": "string", "maxLength": 40, "description": "Or when: the next 21:30, or an ISO date and time."},
    "what": {"type": "string", "maxLength": MOST_CHARS, "description": "What to say then, in their language."},
    "whom": {"type": "string", "maxLength": 60, "description": "Who is to be told, if not who asks: a name."},
}
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["set", "list", "delete"], "description": "Default set."},
        **_WANTED,
        "number": {
            "type": "integer",
            "description": "Which to delete, by its number in the list; or only what it is of.",
        },
    },
    "additionalProperties": False,
}


def reminder_tools(asker: Asker, room: Reminding, *, clock: Clock, zone: tzinfo) -> Sequence[RoomTool]:
    """Return the tools for one person in a room; none if nobody asks. `zone`: the time zone of times of day."""
    if (person_id := asker.user_id) is None:
        return ()

    async def add(arguments: Mapping[str, object], *, in_chat: bool) -> Result:
        due_at, whom = _due(arguments, now=clock.now(), zone=zone), str(arguments.get("whom", ""))
        what = cut_at_word(str(arguments.get("what", "")).strip(), MOST_CHARS)
        if not await room.add(person_id, due_at, what=what, whom=whom, in_chat=in_chat):
            raise ToolError(TOO_MANY)
        when = format_ahead(due_at, now=clock.now(), zone=zone)
        promised = PROMISED_OTHER.fill(whom=whom, when=when) if whom else PROMISED.fill(when=when)
        return Result(promised, present)

    async def remind(arguments: Mapping[str, object]) -> Result:
        match arguments.get("action"):
            case "list":
                return await listed()
            case "delete":
                return await deleted(arguments.get("number"), str(arguments.get("what", "")))
        return await add(arguments, in_chat=False)

    async def fix(arguments: Mapping[str, object]) -> Mapping[str, object]:
        at = datetime.fromtimestamp(_due(arguments, now=clock.now(), zone=zone), zone)
        kept = {name: value for name, value in arguments.items() if name in {"what", "whom"}}
        return {"at": at.isoformat(timespec="seconds"), **kept}

    async def listed() -> Result:
        lines = [
            Text(
                "{number}. {when}, for {whom}: {what}.",
                number=each.id,
                when=format_ahead(each.due_at, now=clock.now(), zone=zone),
                whom=each.whom or name,
                what=each.what or TIMER,
            )
            for name, each in await room.told_to(person_id)
        ]
        # Others may not have heard those of earlier sessions.
        return Result(joined(lines, "\n") if lines else NONE, only(asker))

    async def deleted(number: object, what: str) -> Result:
        about = set(terms(what))
        theirs = [
            each
            for _, each in await room.told_to(person_id)
            if each.person_id == person_id and (each.id == number if number else not about - set(terms(each.what)))
        ]
        if len(theirs) > 1:
            raise ToolError(SEVERAL.fill(count=len(theirs)))
        if not theirs or not await room.delete(theirs[0].id):
            raise ToolError(NO_SUCH)
        return Result(DELETED.fill(what=theirs[0].what or TIMER), present)

    return (
        RoomTool(
            REMIND,
            "Reminds who asks, or is their timer: you say it aloud in this voice channel when it is time. Also lists "
            "and deletes reminders and timers.",
            _SCHEMA,
            remind,
            asks=False,
            lets="remind people later and set timers",
        ),
        RoomTool(
            "remind_in_chat",
            "Sets one that is also written into the channel's chat if this talk is over by then. Only if they want "
            "that.",
            {"type": "object", "properties": _WANTED, "additionalProperties": False},
            partial(add, in_chat=True),
            fix=fix,
        ),
    )


def _due(arguments: Mapping[str, object], *, now: float, zone: tzinfo) -> float:
    """Return when a reminder is due, in UTC epoch seconds. Raises `ToolError` with what to ask for instead."""
    minutes, said = arguments.get("minutes"), str(arguments.get("at", ""))
    due_at = now + 60 * minutes if isinstance(minutes, int | float) else parse_moment_ahead(said, now=now, zone=zone)
    if due_at is None:
        raise ToolError(NO_TIME)
    if due_at <= now:
        raise ToolError(OVER)
    if due_at > now + 86_400 * MOST_DAYS:
        raise ToolError(TOO_FAR)
    return due_at

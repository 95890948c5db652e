"""The message in the voice channel's chat that shows how a session goes."""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.channel.port import Card, ChatError, RoomChannel
from bot.participation.costs import CostLedger, cost_in_words
from bot.room_part import RoomPart
from bot.texts.text import Text, counted, joined, verbatim
from bot.time_phrases import format_minutes
from bot.words import Leased, Words
from compaction.model import TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock

log = structlog.get_logger()

# Discord lets a bot edit far more often, but nobody reads faster.
EDIT_EVERY_S = 15.0
# Edits that fail in a row before the message is left as it is: a minute and a half at least, as edits are 15 s apart.
MOST_FAILURES = 6
# Discord takes few edits of messages that are older than an hour (its error 30046), and does not say how many. Before
# that, the message is deleted and posted anew.
ANEW_AFTER_S = 50 * 60.0
# People beyond these are counted together.
MOST_PEOPLE = 10

LISTENING = Text("I listen and talk with you.")
ANSWERING = Text("I answer.")
SILENT = Text("I listen and say nothing.")
WRITING = Text("I only write down what is said.")
OVER = Text("The session is over.")


class LiveMessage(RoomPart):
    """One message in the channel's chat that shows how the session goes: who spoke, what the bot does, what it has
    cost. It is written and then edited, at most every `EDIT_EVERY_S`, and only if something has changed, and written
    anew after `ANEW_AFTER_S`. It has
    numbers and mentions, which ping nobody, and nothing that was said. A server can switch it off (`/settings`).

    `doing`: returns what the bot does now. `costs`: of the server, of which the room has
    those from now on.

    *Ownership*: the room passes all its events to `on_event`, runs `run` in a task, and calls `finish` when it ends in
    order, before it cancels that task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        *,
        doing: Callable[[], Text],
        costs: CostLedger,
        clock: Clock,
        words: Words,
    ) -> None:
        self._channel = channel
        self._doing = doing
        self._costs = costs
        self._cost_before = costs.total
        self._clock = clock
        # For how many seconds each person spoke, by their id.
        self._spoken: dict[str, Leased[float]] = {}
        self._words = words
        self._answers = 0
        self._begun_at = clock.monotonic()
        self._shown: Card | None = None
        self._message_id: int | None = None
        self._posted_at = float("-inf")
        # Held while Discord posts or edits the message. `finish` waits for that: if it were broken off, nobody would
        # know which message to finish. A room that is cut off or crashes breaks it off, because Discord may stall.
        self._showing = asyncio.Lock()
        # In a row; a later edit tries again.
        self._failures = 0

    def on_event(self, event: events.Event) -> None:
        """Note how long people spoke, and count the bot's answers."""
        if not isinstance(event, events.TurnRecorded):
            return
        if event.turn.kind is TurnKind.ASSISTANT:
            self._answers += 1
        elif event.turn.kind is TurnKind.SPEECH:
            for part in event.turn.parts:
                if part.speaker_id.isdecimal():
                    held = self._spoken.get(part.speaker_id)
                    before = 0.0 if held is None else held.take() or 0.0
                    lease = self._words.lease({part.speaker_id}, since=None)
                    self._spoken[part.speaker_id] = Leased(before + part.spoken_s, lease)

    def _speaking(self) -> dict[str, float]:
        """Return for how many seconds each person spoke, who spoke longest first."""
        spoken = {each: seconds for each, held in self._spoken.items() if (seconds := held.take()) is not None}
        return dict(sorted(spoken.items(), key=itemgetter(1), reverse=True))

    async def run(self) -> None:
        """Keep the message up to date. Returns if Discord refuses the first one, or `MOST_FAILURES` edits in a row, or
        somebody has deleted it.
        """
        self._begun_at = self._clock.monotonic()
        while True:
            async with self._showing:
                if not await self._show(self._doing()):
                    return
            await self._clock.sleep(EDIT_EVERY_S)

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Show a last time how the session went, if there is a message. `run` shows nothing more, but waits."""
        await self._showing.acquire()
        if self._message_id is None:
            return
        await self._show(OVER)
        # One that cannot say that the session is over would say for ever that it goes on.
        if self._message_id is not None and (self._shown is None or self._shown.text != OVER):
            await self._channel.posts.delete(self._message_id)

    async def _show(self, doing: Text) -> bool:
        """Show what is new, if anything. Return whether it is worth trying again later."""
        card = self._card(doing)
        if card == self._shown:
            return True
        posts = self._channel.posts
        try:
            now = self._clock.monotonic()
            if self._message_id is not None and now - self._posted_at >= ANEW_AFTER_S:
                # What cannot be deleted is edited.
                self._message_id = None if await posts.delete(self._message_id) else self._message_id
            if self._message_id is None:
                self._message_id = await posts.begin(card)
                self._posted_at = now
            elif not await posts.fill(self._message_id, card):
                # Somebody has deleted it.
                return False
        except ChatError as error:
            log.warning("card_not_shown", channel_id=self._channel.channel_id, problem=error)
            self._failures += 1
            return self._shown is not None and self._failures < MOST_FAILURES
        self._shown, self._failures = card, 0
        return True

    def _card(self, doing: Text) -> Card:
        people = list(self._speaking().items())
        named = [verbatim(f"<@{number}> {format_minutes(seconds)}") for number, seconds in people[:MOST_PEOPLE]]
        if others := len(people) - len(named):
            named.append(counted(others, "and {count} more", "and {count} more"))
        minutes = round((self._clock.monotonic() - self._begun_at) / 60)
        return Card(
            title=Text("This session"),
            text=doing,
            fields=(
                (Text("who spoke, and for how long"), joined(named, ", ") if named else Text("nobody yet")),
                (Text("how long"), counted(minutes, "{count} minute", "{count} minutes")),
                (Text("my answers"), Text("{count}", count=self._answers)),
                (Text("cost so far"), cost_in_words(self._costs.total - self._cost_before)),
            ),
        )

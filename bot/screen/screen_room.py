"""The shared screens of one room: who shares, and for how long. `sharer` has what session memory stores of it.

A turn in the timeline marks the start of a share, and a recap its end. No way of ending loses a note.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.tool import ToolError
from bot.room_part import RoomPart
from bot.screen.messages import NOT_HEARD, TOO_MANY, ScreenError, ShareEnd, describe_surface
from bot.screen.share import DROPPED, TAKEN, UNDECODED, Share
from bot.screen.sharer import PAGE_MESSAGES, Sharer, ShareRecorder
from bot.texts.text import Text, counted, for_people, joined, sentence_of
from bot.time_phrases import format_duration
from voice.cancellation import fail_if_cancelled_inside
from voice.queue_figures import QueueFigures
from voice.screen.port import VisionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot import events
    from bot.channel.port import Person, RoomChannel
    from bot.llm.model_calls import Payer
    from bot.screen.screens import Screens
    from bot.words import Words
    from compaction.model import Note, SessionId
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# Time between checks that sharers are still in the channel and connected.
CHECK_INTERVAL_S = 2.0

# Screens shared in one room at the same time.
MOST_SHARES = 4


class RoomScreens(RoomPart):
    """The shared screens of one room. Implements `bot.brain.tools.built_in.ScreenView`.

    `screens`: those of the process. `observe`: told of the turns recorded here, and of the notes. `words`: those of the
    session. `payer`: pays for the looks of a vision model. *Ownership*: `run` is a task of the room; end it with
    `finish`. *Cancellation* of `run` ends the shares; their notes are stored already.
    """

    task = "screens"

    def __init__(
        self,
        screens: Screens,
        session_id: SessionId,
        channel: RoomChannel,
        *,
        timeline: SessionTimeline,
        observe: events.Observer,
        words: Words,
        payer: Payer,
    ) -> None:
        self.session_id = session_id
        self.channel = channel
        self._screens, self._clock = screens, screens.clock
        self._timeline = timeline
        self._words = words
        self._payer = payer
        self._recorder = ShareRecorder(
            timeline, guild_id=channel.guild_id, clock=screens.clock, observe=observe, words=words
        )
        # Pages call from tasks whose log context lacks the session.
        self._log = log.bind(session_id=session_id, guild_id=channel.guild_id)
        self._sharers: dict[int, Sharer] = {}
        # Those whose share has ended and whose last notes are not stored yet, with the task that stores them.
        self._closing: dict[Sharer, asyncio.Task[None]] = {}
        # Set when somebody has begun to share whose share does not run yet.
        self._share_started = asyncio.Event()

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many messages wait for the pages that share screens here."""
        sharers = self._sharers.values()
        waiting, dropped = sum(len(each.for_page) for each in sharers), sum(each.dropped for each in sharers)
        return (QueueFigures("screen_page", waiting, PAGE_MESSAGES * len(sharers), {"full": dropped}),)

    # -- tasks ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the shares and check their sharers, for ever."""
        # Live notes from before a crash of the process or the room; nobody shares those screens any more.
        if self._timeline.live_notes:
            await self._recorder.retire_notes()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail_if_cancelled_inside(self._check_sharers), name="screen-sharers")
                while True:
                    await self._share_started.wait()
                    self._share_started.clear()
                    for sharer, share in self._shares().items():
                        if sharer.task is None:
                            sharer.task = tasks.create_task(self._run_share(sharer, share), name="screen-share")
        finally:
            # After a crash. The notes are stored; the next room retires them.
            for closing in self._closing.values():
                closing.cancel()
            for sharer in self._sharers.values():
                sharer.end(ShareEnd.CLOSED)
            self._sharers.clear()
            if self._closing:
                await asyncio.wait(list(self._closing.values()))

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """End every share, with its recap, because the room ends."""
        for sharer in list(self._sharers.values()):
            await self.end(sharer, ShareEnd.HANDED_OVER if goes_on else ShareEnd.CLOSED)
        if self._closing:
            await asyncio.wait(self._closing.values())

    async def _run_share(self, sharer: Sharer, share: Share) -> None:
        """Run one share, whose crash ends no other. Its start is recorded first, so that remarks on it come after."""
        try:
            await self._recorder.record_start(sharer, share)
            await fail_if_cancelled_inside(share.run)
        except Exception:  # noqa: BLE001 - logged; a crash ends only this share
            self._log.exception("screen_share_crashed", user_id=sharer.person.id)
            await self.end(sharer, ShareEnd.BROKEN)

    async def _check_sharers(self) -> None:
        while True:
            await self._clock.sleep(CHECK_INTERVAL_S)
            now = self._clock.monotonic()
            here = {person.id for person in self.channel.members()}
            for sharer in list(self._sharers.values()):
                if (ending := sharer.due_end(now, present=sharer.person.id in here)) is not None:
                    await self.end(sharer, ending)

    # -- sharers ---------------------------------------------------------------------------------------------

    def person(self, user_id: int) -> Person | None:
        """Return the person, or None if they are a bot or not in the channel now."""
        return next((each for each in self.channel.members() if each.id == user_id and not each.is_bot), None)

    def require_present(self, user_id: int) -> None:
        """Raises `ScreenError` unless that person is in the channel now."""
        if self.person(user_id) is None:
            raise ScreenError(
                Text(
                    "First join {channel}. I only watch the screens of people who are there.", channel=self.channel.name
                )
            )

    def require_heard(self, user_id: int) -> None:
        """Raises `ScreenError` if that person may not be heard: then their screen is not watched either."""
        if self._words.excludes(user_id):
            raise ScreenError(NOT_HEARD)

    def full(self) -> bool:
        """Return whether the room has reached its limit of shared screens."""
        return len(self._sharers) >= self._screens.most_shares

    async def welcome(self, person: Person, nonce: str) -> Sharer:
        """Admit a person who opened their link; their earlier share ends. Raises `ScreenError`."""
        self.require_heard(person.id)
        # While one share ends, another link of this person may be opened, so this is a loop. The last page stays,
        # because nothing is awaited after the loop.
        while (earlier := self._sharers.get(person.id)) is not None:
            await self.end(earlier, ShareEnd.SUPERSEDED)
        if self.full():
            raise ScreenError(TOO_MANY)
        named = replace(person, name=self._timeline.name_of(str(person.id), person.name))
        sharer = self._sharers[person.id] = Sharer(named, nonce)
        self._begin_lease(sharer)
        return sharer

    def start(self, sharer: Sharer, surface: str) -> None:
        """Begin a share, or replace the screen of a running one. `surface`: the browser's `displaySurface`."""
        if sharer.ended is not None:
            return
        share = sharer.share
        if share is not None:
            if share.change(describe_surface(surface)):
                self._log.info("screen_share_changed", user_id=sharer.person.id, surface=share.surface)
            return

        share = sharer.share = Share(
            sharer.person.name,
            describe_surface(surface),
            readers=self._screens.readers,
            payer=self._payer,
            clock=self._clock,
            on_note=partial(self._recorder.take_note, sharer),
            on_trouble=lambda sentence: sharer.send(t="trouble", sentence=sentence),
        )
        self._log.info("screen_share_started", user_id=sharer.person.id, surface=share.surface)
        # `run` begins it: a task of the page's would lack the session in its log context.
        self._share_started.set()

    async def picture(self, sharer: Sharer, data: bytes) -> str:
        """Offer a picture to the share; see `Share.offer`. Dropped if there is no share, or if the person is not in the
        channel. Too many pictures in vain end the share.
        """
        share, user_id, outcome = sharer.share, sharer.person.id, DROPPED
        if share is not None and sharer.ended is None and self.person(user_id):
            outcome = await share.offer(data)
        if outcome not in {TAKEN, UNDECODED} and not sharer.offences.take(self._clock.monotonic()):
            await self.end(sharer, ShareEnd.MISBEHAVED)
        return outcome

    async def end(self, sharer: Sharer, ending: ShareEnd) -> None:
        """End a share, or dismiss a person who only opened the page. A second call does nothing.

        *Cancellation*: the share still ends, with its recap, because the page that requested it may be gone.
        """
        if (closing := self._begin_end(sharer, ending)) is not None:
            await asyncio.shield(closing)

    def _begin_lease(self, sharer: Sharer) -> None:
        sharer.lease = self._words.lease({sharer.person.id}, since=None)
        sharer.lease.on_end(partial(self._on_taken_back, sharer))

    def _on_taken_back(self, sharer: Sharer) -> None:
        """Drop what a person's screen has shown and what is not noted yet. The share of somebody who may not be heard
        any more ends at once; what others show from now on is noted again.
        """
        sharer.forget()
        if self._words.excludes(sharer.person.id):
            self._begin_end(sharer, ShareEnd.OPTED_OUT)
        else:
            self._begin_lease(sharer)

    def _begin_end(self, sharer: Sharer, ending: ShareEnd) -> asyncio.Task[None] | None:
        """End a share, and return the task that closes it; None if there is nothing to close."""
        if sharer.ended is not None:
            return None
        sharer.end(ending)
        del self._sharers[sharer.person.id]
        if sharer.share is None:
            return None
        closing = asyncio.create_task(self._close(sharer, sharer.share, ending), name="screen-share-ending")
        self._closing[sharer] = closing
        closing.add_done_callback(lambda _: self._closing.pop(sharer))
        return closing

    async def _close(self, sharer: Sharer, share: Share, ending: ShareEnd) -> None:
        """Take the last note of a share, record its recap, and retire live notes if it was the last share."""
        try:
            if sharer.task is not None:
                sharer.task.cancel()
                await asyncio.wait({sharer.task})
            await share.finish()
            sharer.share = None
            await self._recorder.record_end(sharer, share)
            if not self._shares():
                await self._recorder.retire_notes()
                await self._screens.unload_readers()
        except Exception:  # noqa: BLE001 - logged; it must not end the room
            self._log.exception("screen_share_not_closed", user_id=sharer.person.id)
        self._log.info(
            "screen_share_ended",
            user_id=sharer.person.id,
            reason=ending.value,
            duration_s=round(self._clock.monotonic() - share.began_at, 1),
            **{f"{name}_count": count for name, count in sorted(share.counts.items())},
        )

    def sharers(self) -> list[Sharer]:
        """Return all who share or have only opened the page."""
        return list(self._sharers.values())

    def find(self, user_id: int) -> Sharer | None:
        return self._sharers.get(user_id)

    def is_shown(self, note: Note) -> bool:
        """Return whether the share that a note is of goes on."""
        return any(sharer.took(note) for sharer in self._shares())

    def status(self) -> Text:
        """Return plain sentences that say who shares what."""
        sentences: list[Text] = []
        for sharer, share in self._shares().items():
            shares = Text(
                "{name} has shared {surface} for {minutes}. I made {notes}.",
                name=share.who,
                surface=share.surface,
                minutes=format_duration(self._clock.monotonic() - share.began_at),
                notes=counted(sharer.notes, "{count} note", "{count} notes"),
            )
            sentences += (shares, share.trouble)
        return joined(sentences or [Text("Nobody shares a screen with me. To share yours, use /watch start.")])

    def _shares(self) -> dict[Sharer, Share]:
        """Return the shares that go on, each with whose it is."""
        return {sharer: sharer.share for sharer in self._sharers.values() if sharer.share is not None}

    # -- called by the tool `look_at_screen` (`ScreenView`) ------------------------------------------------------

    def sharing(self) -> Sequence[str]:
        return [share.who for share in self._shares().values()]

    async def look(self, question: str, *, who: str | None = None, user_id: int | None = None, asker: str = "") -> Text:
        """Return what a shared screen shows about `question`. Without `who` and `user_id`: the only screen.

        `who`: whose it is, by their name in the session or a part of it. `user_id`: whose it is. `asker`: named in the
        note that is taken; without it, whoever spoke last. Raises `ToolError`.
        """
        shown = list(self._shares().items())
        nobody = Text("Nobody shares a screen now.")
        if user_id is not None:
            shown = [each for each in shown if each[0].person.id == user_id]
            nobody = Text("This member does not share a screen now.")
        elif who is not None:
            wanted = who.strip().casefold()
            exact = [each for each in shown if each[1].who.casefold() == wanted]
            shown = exact or [each for each in shown if wanted in each[1].who.casefold()]
            nobody = Text("Nobody with that name shares a screen now.")
        if not shown:
            raise ToolError(nobody)
        if len(shown) > 1:
            names = ", ".join(share.who for _, share in shown)
            raise ToolError(Text("Several people share a screen: {names}. Say whose screen you mean.", names=names))
        ((sharer, share),) = shown
        if sharer.disconnected_since is not None:
            raise ToolError(Text("{name}'s page is not connected, so I get no picture now.", name=share.who))
        try:
            seen = await share.look(question, asker=asker)
        except VisionError as error:
            raise ToolError(for_people(sentence_of(error))) from error
        heading = Text("{name} shares {surface}. I see this now:", name=share.who, surface=share.surface)
        return joined((heading, seen), "\n")

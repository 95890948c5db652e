"""What a reply is reminded of: a few quotes of what was said before the window, found while the answer is prepared.

The reply never waits for long and never fails for it. What the model has before it anyway is not repeated.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from compaction.errors import StoreError
from compaction.memory.query import ask
from compaction.memory.quotes import quotes_for
from compaction.model import TurnKind
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from bot.memory.recall import Recall, RoomRecall
    from bot.settings import RecallSettings
    from compaction.memory.quotes import Quote
    from compaction.memory.recall import Recalled
    from compaction.model import Seq, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# What an evicted window keeps is four fifths of its room; system prompts and summary take of the rest.
SURE_SHARE = 0.6
# Name, clock time and the message itself.
TURN_OVERHEAD_TOKENS = 16
# Found for each quote that is wanted: what is in view already is left out of them.
SEARCHED = 3
# A search ahead has the time of a pause, and nobody waits for it.
AHEAD_S = 2.0
# Texts that share so much of their words are about the same: a recogniser hears an end or a name anew.
NEAR_SHARE = 0.8


class QuoteFinder:
    """Finds quotes for the replies of one room. `max_input_tokens` and `zone` are those of its prompts."""

    def __init__(
        self, recall: Recall, room: RoomRecall, settings: RecallSettings, *, max_input_tokens: int, zone: tzinfo
    ) -> None:
        self._recall = recall
        self._room = room
        self._settings = settings
        self._max_input_tokens = max_input_tokens
        self._zone = zone
        self._ahead: _Ahead | None = None

    def foresee(self, question: Turn, memory: SessionMemory) -> None:
        """Search for what somebody seems to ask, while it is not sure yet that this is all. Returns at once.

        `quotes` takes what is found if that was nearly it. *Ownership*: the newest search is kept, ended by the next
        one, and bounded in time.
        """
        text, sent = _text_of(question), self._sent(question, memory)
        seen_from = sent[0].seq if sent else question.seq
        if self._ahead is not None:
            if self._ahead.fits(text, seen_from):
                return
            self._ahead.task.cancel()
        task = asyncio.create_task(self._search_ahead(text, seen_from), name="recall-ahead")
        self._ahead = _Ahead(_words(text), seen_from, task)

    def _sent(self, question: Turn, memory: SessionMemory) -> tuple[Turn, ...]:
        """Return what the model has before it anyway, besides the question."""
        window = [turn for turn in memory.window if turn.seq != question.seq]
        return select_turns_surely_sent(window, max_input_tokens=self._max_input_tokens)

    async def _search_ahead(self, text: str, seen_from: Seq) -> Sequence[Recalled]:
        try:
            async with asyncio.timeout(AHEAD_S):
                return await self._search(text, seen_from, embed_within_s=AHEAD_S / 2)
        except (TimeoutError, StoreError) as error:
            log.info("recall_ahead_failed", error_class=type(error).__name__)
            return ()

    async def _search(self, text: str, seen_from: Seq, *, embed_within_s: float) -> Sequence[Recalled]:
        return await self._recall.search(
            text,
            self._room.scope_beyond(seen_from),
            limit=SEARCHED * self._settings.quotes,
            embed_within_s=embed_within_s,
        )

    async def quotes(self, question: Turn, memory: SessionMemory) -> tuple[Quote, ...]:
        """Return the quotes for a reply to `question`, best first; none when nothing else is about it, when the
        search took longer than `recall.wait_ms`, or when it failed."""
        settings = self._settings
        within_s = settings.wait_ms / 1000
        text = _text_of(question)
        sent = self._sent(question, memory)
        seen_from = sent[0].seq if sent else question.seq
        ahead = self._ahead
        try:
            async with asyncio.timeout(within_s):
                if ahead is not None and ahead.fits(text, seen_from):
                    found = await ahead.found()
                else:
                    # The embedding has the first half of the time; without it the full text is ready in the second.
                    found = await self._search(text, seen_from, embed_within_s=within_s / 2)
        except TimeoutError:
            log.info("recall_late", within_s=within_s)
            return ()
        except StoreError as error:
            log.warning("recall_failed", problem=str(error))
            return ()
        quotes = quotes_for(
            found,
            asked=ask(text),
            session_id=self._room.place.session_id,
            asked_at=question.started_at,
            in_view=_texts_in_view(memory, (*sent, question)),
            most=settings.quotes,
            max_tokens=settings.quote_tokens,
            zone=self._zone,
        )
        log.debug(
            "recall_joined", found=len(found), quotes=len(quotes), tokens=sum(each.part.tokens for each in quotes)
        )
        return quotes


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A search for what somebody seemed to ask."""

    words: frozenset[str]
    seen_from: Seq
    task: asyncio.Task[Sequence[Recalled]]

    def fits(self, text: str, seen_from: Seq) -> bool:
        """Return whether it was for nearly these words, in the same view."""
        words = _words(text)
        return seen_from == self.seen_from and len(words & self.words) >= NEAR_SHARE * len(words | self.words)

    async def found(self) -> Sequence[Recalled]:
        """Return what it found. Raises `TimeoutError` when a newer search has ended it.

        *Cancellation*: the search goes on. Awaited as it is, it would be cancelled with whoever gives up waiting, and
        its cancellation would pass for that of everybody who waits for it later.
        """
        await asyncio.wait({self.task})
        if self.task.cancelled():
            raise TimeoutError
        return self.task.result()


def _text_of(turn: Turn) -> str:
    return " ".join(part.text for part in turn.parts)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.casefold()))


def select_turns_surely_sent(window: Sequence[Turn], *, max_input_tokens: int) -> tuple[Turn, ...]:
    """Return the newest turns of a window, as far as they will have room in a prompt whatever else is in it.

    Mostly all of them. Where the window is about to be evicted, its older turns are as good as not sent.
    """
    room = SURE_SHARE * max_input_tokens
    kept: list[Turn] = []
    for turn in reversed(window):
        room -= estimate_text_tokens(" ".join(part.text for part in turn.parts)) + TURN_OVERHEAD_TOKENS
        if room < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def _texts_in_view(memory: SessionMemory, sent: Sequence[Turn]) -> list[str]:
    # Its own words are no source: what the bot has told once it can tell again as somebody's.
    people = [turn for turn in sent if turn.kind is not TurnKind.ASSISTANT]
    texts = [part.text for turn in people for part in turn.parts]
    texts += [sentence.text for sentence in memory.summary.sentences] if memory.summary is not None else []
    texts += [note.what for note in memory.live_notes]
    return texts

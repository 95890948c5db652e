"""Finds quotes for a reply: earlier speech, outside the window, that is about the question.

The search has a time limit, and a failed search never fails the reply. Text that the prompt already holds is not
quoted.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import logged_task
from bot.brain.wakeword import strip_call
from bot.tuning import UNTUNED
from compaction.errors import StoreError
from compaction.memory.quotes import select_quotes
from compaction.memory.recall import parse_query
from compaction.model import Mode, TurnKind
from compaction.summary.folded import summary_texts
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from bot.memory.recall import Recall, RoomRecall
    from compaction.memory.passage import Scope
    from compaction.memory.quotes import Quote
    from compaction.memory.recall import RecallHit
    from compaction.model import Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# The share of the input budget that the window always gets. Eviction leaves the window four fifths, and the other
# parts of the prompt take some of that.
WINDOW_SHARE = 0.6
# Name, clock time and message format.
TURN_OVERHEAD_TOKENS = 16
# The number of search results for each quote. Some results are left out, because the prompt already contains them.
RESULTS_PER_QUOTE = 3
# Tokens that all quotes of a prompt may take together, about 1,200 characters.
QUOTE_TOKENS = 400
# The time limit of a prefetch. Nobody waits for a prefetch.
PREFETCH_S = 2.0
# A prefetch is used if it has at least this share of words in common with the final question. The final recognition
# often differs in an ending or a name.
SAME_QUESTION_SHARE = 0.8


class QuoteFinder:
    """Finds quotes for the replies of one room.

    `wake_names`: the bot's names, which a question begins with but is not about. `max_input_tokens` and `zone` are
    those of the room's prompts.
    """

    def __init__(
        self,
        recall: Recall,
        room: RoomRecall,
        *,
        most: int = UNTUNED.quotes,
        within_s: float = UNTUNED.quote_wait_s,
        wake_names: tuple[str, ...] = (),
        max_input_tokens: int,
        zone: tzinfo,
    ) -> None:
        self._recall = recall
        self._room = room
        self._most = most
        self._within_s = within_s
        self._wake_names = wake_names
        self._max_input_tokens = max_input_tokens
        self._zone = zone
        self._prefetched: _Prefetch | None = None

    def prefetch(self, question: Turn, memory: SessionMemory) -> None:
        """Start a search for a question that may be incomplete. Returns at once.

        `find` uses the result if the final question has nearly the same words. *Ownership*: only the newest search is
        kept; the next one cancels it. Each has a time limit.
        """
        text, sent = self._asked(question), self._turns_sent(question, memory)
        seen_from = sent[0].seq if sent else question.seq
        scope = self._room.scope_beyond(seen_from)
        if self._prefetched is not None:
            if self._prefetched.fits(text, scope):
                return
            self._prefetched.task.cancel()
        task = logged_task(self._run_prefetch(text, scope), name="recall-prefetch")
        self._prefetched = _Prefetch(_words(text), scope, task)

    def discard(self) -> None:
        """Drop a prefetched result, because what may be quoted has changed."""
        if self._prefetched is not None:
            self._prefetched.task.cancel()
            self._prefetched = None

    def _asked(self, question: Turn) -> str:
        return strip_call(question.text, self._wake_names)

    def _turns_sent(self, question: Turn, memory: SessionMemory) -> tuple[Turn, ...]:
        window = [turn for turn in memory.window if turn.seq != question.seq]
        return select_turns_surely_sent(window, max_input_tokens=self._max_input_tokens)

    async def _run_prefetch(self, text: str, scope: Scope) -> Sequence[RecallHit]:
        try:
            async with asyncio.timeout(PREFETCH_S):
                return await self._search(text, scope, embed_within_s=PREFETCH_S / 2)
        except (TimeoutError, StoreError) as error:
            log.info("recall_prefetch_failed", error_class=type(error).__name__)
            return ()

    async def _search(self, text: str, scope: Scope, *, embed_within_s: float) -> Sequence[RecallHit]:
        return await self._recall.search(
            text,
            await self._room.narrowed(scope),
            limit=RESULTS_PER_QUOTE * self._most,
            embed_within_s=embed_within_s,
        )

    async def find(self, question: Turn, memory: SessionMemory) -> tuple[Quote, ...]:
        """Return the quotes for a reply to `question`, best first.

        Empty if no other text matches, if the search took too long, or if it failed.
        """
        within_s = self._within_s
        text = self._asked(question)
        sent = self._turns_sent(question, memory)
        scope = self._room.scope_beyond(sent[0].seq if sent else question.seq)
        prefetched = self._prefetched
        try:
            async with asyncio.timeout(within_s):
                if prefetched is not None and prefetched.fits(text, scope):
                    found = await prefetched.result()
                else:
                    # The embedding gets half of the time; full-text search needs the rest.
                    found = await self._search(text, scope, embed_within_s=within_s / 2)
                # Somebody may have come since the search began.
                found = await self._room.allowed(found)
        except TimeoutError:
            log.info("recall_timed_out", within_s=within_s)
            return ()
        except StoreError as error:
            log.warning("recall_failed", problem=error)
            return ()
        quotes = select_quotes(
            found,
            asked=parse_query(text),
            session_id=self._room.place.session_id,
            asked_at=question.started_at,
            in_view=_texts_in_view(memory, (*sent, question)),
            most=self._most,
            max_tokens=QUOTE_TOKENS,
            zone=self._zone,
        )
        log.debug(
            "recall_quotes_found", found=len(found), quotes=len(quotes), tokens=sum(each.part.tokens for each in quotes)
        )
        return quotes


@dataclass(frozen=True, slots=True)
class _Prefetch:
    """A search for a question that may have been incomplete."""

    words: frozenset[str]
    scope: Scope
    task: asyncio.Task[Sequence[RecallHit]]

    def fits(self, text: str, scope: Scope) -> bool:
        """Return whether the search had nearly these words and looked in the same places."""
        words = _words(text)
        return scope == self.scope and len(words & self.words) >= SAME_QUESTION_SHARE * len(words | self.words)

    async def result(self) -> Sequence[RecallHit]:
        """Return the hits. Raises `TimeoutError` if a newer search has cancelled this one.

        *Cancellation*: the search continues. Awaiting its task directly would cancel it together with the first caller
        that gives up, and later callers would mistake that for their own cancellation.
        """
        await asyncio.wait({self.task})
        if self.task.cancelled():
            raise TimeoutError
        return self.task.result()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.casefold()))


def select_turns_surely_sent(window: Sequence[Turn], *, max_input_tokens: int) -> tuple[Turn, ...]:
    """Return the newest turns of a window that certainly fit into the prompt: usually all of them; shortly before
    eviction the older ones may not fit.
    """
    room = WINDOW_SHARE * max_input_tokens
    kept: list[Turn] = []
    for turn in reversed(window):
        room -= estimate_text_tokens(turn.text) + TURN_OVERHEAD_TOKENS
        if room < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def _texts_in_view(memory: SessionMemory, sent: Sequence[Turn]) -> list[tuple[str, str]]:
    """Return what the prompt has anyway, as (speaker, text)."""
    # The bot's own turns don't count: text that the bot quoted from somebody may be quoted again.
    people = [turn for turn in sent if turn.kind is not TurnKind.ASSISTANT]
    texts = [(part.speaker, part.text) for turn in people for part in turn.parts]
    # A prompt of the mode `off` has no summary, though an earlier mode may have made one.
    if memory.mode is not Mode.OFF and memory.summary is not None:
        texts += summary_texts(memory.summary)
    texts += [(note.who, note.what) for note in memory.live_notes]
    return texts

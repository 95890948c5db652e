"""Finds quotes for a reply: earlier speech, outside the window, that is about the question.

The search has a time limit, and a failed search never fails the reply. Text that the prompt already holds is not
quoted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

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
    from compaction.memory.quotes import Quote
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


@dataclass(frozen=True, slots=True)
class QuoteFinder:
    """Finds quotes for the replies of one room.

    `wake_names`: the bot's names, which a question begins with but is not about. `max_input_tokens` and `zone` are
    those of the room's prompts.
    """

    recall: Recall
    room: RoomRecall
    max_input_tokens: int
    zone: tzinfo
    most: int = UNTUNED.quotes
    within_s: float = UNTUNED.quote_wait_s
    wake_names: tuple[str, ...] = ()

    async def find(self, question: Turn, memory: SessionMemory) -> tuple[Quote, ...]:
        """Return the quotes for a reply to `question`, best first.

        Empty if no other text matches, if the search took too long, or if it failed.
        """
        text = strip_call(question.text, self.wake_names)
        window = [turn for turn in memory.window if turn.seq != question.seq]
        sent = select_turns_surely_sent(window, max_input_tokens=self.max_input_tokens)
        scope = self.room.scope_beyond(sent[0].seq if sent else question.seq)
        try:
            async with asyncio.timeout(self.within_s):
                found = await self.recall.search(
                    text,
                    await self.room.narrowed(scope),
                    limit=RESULTS_PER_QUOTE * self.most,
                    # Full-text search needs the other half.
                    embed_within_s=self.within_s / 2,
                )
                # Somebody may have come since the search began.
                found = await self.room.allowed(found)
        except TimeoutError:
            log.info("recall_timed_out", within_s=self.within_s)
            return ()
        except StoreError as error:
            log.warning("recall_failed", problem=error)
            return ()
        quotes = select_quotes(
            found,
            asked=parse_query(text),
            session_id=self.room.place.session_id,
            asked_at=question.started_at,
            in_view=_texts_in_view(memory, (*sent, question)),
            most=self.most,
            max_tokens=QUOTE_TOKENS,
            zone=self.zone,
        )
        log.debug(
            "recall_quotes_found", found=len(found), quotes=len(quotes), tokens=sum(each.part.tokens for each in quotes)
        )
        return quotes


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

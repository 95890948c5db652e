"""Builds the input of one reply: session memory, quotes and tools as the messages of one model call.

Quotes are earlier speech, outside the window, that is about the question. The search for them has a time limit, and a
failed search never fails the reply. Text that the prompt already holds is not quoted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.tool import NOBODY, Asker, present
from bot.brain.wakeword import strip_call
from bot.llm.budgeted import MEMORY_SEARCH, OFFERS_SHARE, offers_tokens, offers_within, to_message, to_part
from bot.memory.excerpt import payload_with_excerpt
from bot.texts.text import ENGLISH
from bot.tuning import UNTUNED
from compaction.budget.tool_outputs import paths_read
from compaction.budget.trim import TrimOptions
from compaction.context.build import SessionContext, build_payload
from compaction.errors import StoreError
from compaction.log_events import MemoryEvent
from compaction.memory.quote_search import QuoteSearch, last_exchange, searches_for
from compaction.memory.quotes import Quote, parse_citation, quotes_part, select_quotes
from compaction.memory.recall import RecallHit, parse_query
from compaction.model import Mode, Turn
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.summary.folded import summary_texts
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import tzinfo

    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.brain.tools.toolbox import QuestionTools, Toolbox
    from bot.guild import PromptPolicy
    from bot.llm.port import ChatMessage, ChatModelError
    from bot.memory.recall import RoomRecall
    from compaction.memory.passage import Scope
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# On a stage there may be hundreds.
MOST_NAMES = 25
# Of those who have left, those who came last.
MOST_GONE = 10
# The share of the input budget that the window always gets. Eviction leaves the window four fifths, and the other
# parts of the prompt take some of that.
WINDOW_SHARE = 0.6
# Name, clock time and message format.
TURN_OVERHEAD_TOKENS = 16
# The number of search results for each quote. Some results are left out, because the prompt already contains them.
RESULTS_PER_QUOTE = 6
# Tokens that all quotes of a prompt may take together. Single quotes are short (`MAX_QUOTE_CHARS`): only what belongs
# together, of which a question about the past has several hits, needs as many.
QUOTE_TOKENS = 1_200
# Meanings of first sentences that no quote answers. 'What time is it?' may ask for the time of something.
UNQUOTED = frozenset(
    {"recap", "missed", "hears", "greeting", "thanks", "parting", "date", "remind", "cancel", "reminders"}
)


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The input of one reply.

    `messages` are sent to the model. `parts` are the same with their provenance. `session`: the source of the parts.
    `current`: the turn to answer; `asked`: the same with all that its asker has asked, also in turns before it. `now`:
    UTC epoch seconds.
    """

    session: SessionContext
    current: Turn
    asked: Turn
    parts: tuple[PayloadPart, ...]
    messages: tuple[ChatMessage, ...]
    now: float
    # What the model may call while it answers.
    tools: QuestionTools
    # The quotes found; some may not have fitted into the prompt.
    quotes: tuple[Quote, ...] = ()
    # Whether the model's token budget is enforced.
    enforced: bool = True
    # Whether the model may answer SKIP. Then speech starts only when the answer is clearly not SKIP.
    may_skip: bool = False
    # Gets the failure of a model for which something else answers. None: nothing else may answer.
    on_away: Callable[[ChatModelError], None] | None = None
    # The code of the language to answer in; empty if it is not known. And that of the channel, as a Discord locale.
    language: str = ""
    channel_language: str = ENGLISH
    # Names of the people whom the bot hears now.
    present: tuple[str, ...] = ()
    # What the bot is called here, and its own name.
    names: tuple[str, ...] = ()
    # Gets the parts of each model call for this reply, as they are sent.
    on_sent: Callable[[Sequence[PayloadPart]], None] | None = None


def build_context_messages(
    timeline: SessionTimeline,
    current: Turn,
    *,
    asked: Turn | None = None,
    system: Sequence[str],
    reply_prompts: Sequence[str] = (),
    max_input_tokens: int,
    now: float,
    zone: tzinfo,
    toolbox: Toolbox,
    quotes: Sequence[Quote] = (),
    participants: Sequence[PayloadPart] = (),
    policy: PromptPolicy | None = None,
    asker: Asker = NOBODY,
    result_of: FrozenCall | None = None,
    may_skip: bool = False,
    language: str = "",
) -> ModelContext:
    """Build the input of a reply to `current`, which need not be recorded yet. `asked`: see `ModelContext`; by default
    the same turn.

    Order: system prompts, summary, facts about the people present (`participants`), window with the results of tools
    and live notes, quotes, prompts about this reply, current turn; at most `max_input_tokens` in all. `policy`: how the
    prompt is made to fit. `toolbox`: tools to offer on behalf of
    `asker`. `result_of`: the call whose result is told. `may_skip`: a prompt offers SKIP. `language`: see
    `ModelContext`. The call also lets the session check whether a batch is due; folding runs in the background. Raises
    `ContextOverflowError`.
    """
    current = timeline.numbered(current)
    options = TrimOptions() if policy is None else policy.trim
    count = options.tool_outputs.count
    tools = toolbox.for_asker(asker, answering=current.seq, result_of=result_of)
    tools.offers = offers_within(tools.offers, max_input_tokens // OFFERS_SHARE, count)
    max_input_tokens -= offers_tokens(tools.offers, count)
    window = timeline.window
    in_window = {turn.seq for turn in window if not turn.tombstone} | {current.seq}
    oldest = min(turn.seq for turn in (*window[:1], current))
    exchanges: dict[int, list[PayloadPart]] = {}
    for seq, messages in sorted(tools.earlier(in_window, before=oldest).items()):
        parts = [to_part(message, count) for message in messages]
        # A file stays while people speak of it, although its question has left the window.
        if seq in in_window or any(paths_read(parts)):
            exchanges.setdefault(max(seq, oldest), []).extend(parts)
    session = timeline.context(current=current, max_input_tokens=max_input_tokens)
    build = partial(
        build_payload,
        session,
        system=system,
        reply_prompts=reply_prompts,
        recall=quotes_part(quotes),
        participants=participants,
        exchanges=exchanges,
        options=options,
        enforced=policy is None or policy.enforced,
        zone=zone,
        searchable=any(offer.name == MEMORY_SEARCH for offer in tools.offers),
    )
    sent = payload_with_excerpt(session, build, options)
    facts = [cited for part in sent if part.kind is PartKind.PARTICIPANTS for cited in map(parse_citation, part.refs)]
    sessions = {each.recalled.session_id for each in quotes} | {each.session_id for each in facts if each is not None}
    if sessions - {timeline.session_id}:
        # It has words of other sessions: all present may hear them.
        tools.limit_to(present)
    toolbox.exchanges.note_active(sent, options.tool_outputs)
    timeline.record_sent(session, sent)
    return ModelContext(
        session=session,
        current=current,
        asked=current if asked is None else asked,
        parts=sent,
        messages=tuple(map(to_message, sent)),
        now=now,
        tools=tools,
        quotes=tuple(quotes),
        enforced=policy is None or policy.enforced,
        may_skip=may_skip,
        language=language,
    )


def presence_part(names: Sequence[str], *, gone: Sequence[str] = (), unheard: int = 0) -> PayloadPart:
    """Return the part with the people in the channel: those who have said nothing yet are in no turn. `names`: of those
    who are heard, as turns have them. `gone`: of those who were heard and have left. `unheard`: how many are not,
    because they opted out or have not agreed; they are not named.
    """
    listed = [plain_name(name) for name in names[:MOST_NAMES]]
    if (more := len(names) - MOST_NAMES) > 0:
        listed.append(f"{more} more")
    text = f"In the voice channel with you now: {', '.join(listed) or 'nobody whom you hear'}."
    if gone:
        text += f" Here before: {', '.join(map(plain_name, gone[-MOST_GONE:]))}."
    if unheard:
        text += f" Others here whom you do not hear, because they opted out or have not agreed: {unheard}."
    return data_part(PartKind.PARTICIPANTS, text)


@dataclass(frozen=True, slots=True)
class QuoteFinder:
    """Finds quotes for the replies of one room.

    `max_input_tokens` and `zone` are those of the room's prompts. `meaning_of`: that of `FirstSentences`, which tells
    'Catch me up.' from what can be searched.
    """

    room: RoomRecall
    max_input_tokens: int
    zone: tzinfo
    meaning_of: Callable[..., Awaitable[str | None]] | None = None
    most: int = UNTUNED.quotes
    within_s: float = UNTUNED.quote_wait_s

    async def find(
        self, question: Turn, timeline: SessionTimeline, *, names: tuple[str, ...] = (), elsewhere: bool = True
    ) -> tuple[Quote, ...]:
        """Return the quotes for a reply to `question`, oldest first. `names`: the bot's, with which a question begins,
        though it is not about them. `elsewhere`: of other sessions too.

        Empty if no other text matches, if the search took too long, or if it failed.
        """
        question = timeline.numbered(question)
        window = [turn for turn in timeline.window if turn.seq != question.seq]
        sent = select_turns_surely_sent(window, max_input_tokens=self.max_input_tokens)
        scope = self.room.scope_beyond(sent[0].seq if sent else question.seq, elsewhere=elsewhere)
        exchange = last_exchange(sent, (part.speaker_id for part in question.parts))
        searches = searches_for(
            strip_call(question.text, names), " ".join(strip_call(turn.text, names) for turn in exchange)
        )
        if not searches:
            return ()
        try:
            async with asyncio.timeout(self.within_s):
                meaning = self.meaning_of and await self.meaning_of(question.text, names=names, people=())
                if meaning in UNQUOTED:
                    return ()
                found = await self._search(searches, scope)
        except TimeoutError:
            log.info(MemoryEvent.QUOTES_LATE, within_s=self.within_s)
            return ()
        except StoreError as error:
            log.warning(MemoryEvent.QUOTES_FAILED, problem=error)
            return ()
        # A prompt of the mode `off` has no summary, though an earlier mode may have made one.
        in_view = summary_texts("" if timeline.mode is Mode.OFF else timeline.summary or "")
        in_view += [(note.who, note.what) for note in timeline.live_notes]
        return select_quotes(
            found,
            asked=parse_query(searches[0].text),
            session_id=self.room.place.session_id,
            asked_at=question.started_at,
            window=sent,
            in_view=in_view,
            most=self.most,
            max_tokens=QUOTE_TOKENS,
            zone=self.zone,
        )

    async def _search(self, searches: Sequence[QuoteSearch], scope: Scope) -> list[RecallHit]:
        """Return the hits of all searches, those of the first search first."""
        return [
            hit
            for search in searches
            for hit in await self.room.search(
                search.text,
                scope,
                limit=RESULTS_PER_QUOTE * self.most,
                # Full-text search needs the other half.
                embed_within_s=self.within_s / (2 * len(searches)),
            )
            if hit.relevance >= search.least
        ]


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

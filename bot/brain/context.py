"""Builds the input of one reply: session memory, quotes and tools as the messages of one model call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.brain.tools.tool import NOBODY
from bot.llm.budgeted import MEMORY_SEARCH, OFFERS_SHARE, offers_tokens, offers_within, to_message, to_part
from compaction.budget.prompt import summarize_context
from compaction.budget.trim import TrimOptions
from compaction.context.build import build_payload, left_out_turns
from compaction.context.turn_text import turn_part
from compaction.model import Mode
from compaction.payload import PartKind, data_part
from compaction.speaker_names import plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from bot.brain.tools.tool import Asker
    from bot.brain.tools.toolbox import QuestionTools, Toolbox
    from bot.guild import PromptPolicy
    from bot.llm.port import ChatMessage
    from compaction.context.build import SessionContext
    from compaction.memory.quotes import Quote
    from compaction.model import Turn
    from compaction.payload import PayloadPart
    from compaction.session import SessionMemory

# Length of the excerpt that replaces turns that do not fit. Most of them are folded soon.
EXCERPT_CHARS = 600
# On a stage there may be hundreds.
MOST_NAMES = 25


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The input of one reply.

    `messages` are sent to the model. `parts` are the same with their provenance. `session`: the source of the parts.
    `current`: the turn to answer. `now`: UTC epoch seconds.
    """

    session: SessionContext
    current: Turn
    parts: tuple[PayloadPart, ...]
    messages: tuple[ChatMessage, ...]
    now: float
    # The quotes found; some may not have fitted into the prompt.
    quotes: tuple[Quote, ...] = ()
    # Whether the model's token budget is enforced.
    enforced: bool = True
    # The tools that the model may call while it answers, or None.
    tools: QuestionTools | None = None
    # Whether the model may answer SKIP. Then speech starts only when the answer is clearly not SKIP.
    may_skip: bool = False
    # The code of the language to answer in; empty if it is not known.
    language: str = ""
    # Names of the people whom the bot hears now.
    present: tuple[str, ...] = ()
    # Gets the messages of each model call for this reply, as they are sent.
    on_sent: Callable[[Sequence[ChatMessage]], None] | None = None


def build_context_messages(
    memory: SessionMemory,
    current: Turn,
    *,
    system: Sequence[str],
    reply_prompts: Sequence[str] = (),
    max_input_tokens: int,
    now: float,
    zone: tzinfo,
    quotes: Sequence[Quote] = (),
    participants: Sequence[PayloadPart] = (),
    policy: PromptPolicy | None = None,
    toolbox: Toolbox | None = None,
    asker: Asker = NOBODY,
    may_skip: bool = False,
    language: str = "",
) -> ModelContext:
    """Build the input of a reply to `current`.

    Order: system prompts, summary, facts about the people present (`participants`), window with the results of tools,
    live notes, quotes, prompts about this reply, current turn; at most `max_input_tokens` in all. `policy`: how the
    prompt is made to fit, and whether an excerpt replaces turns that do not. `toolbox`: tools to offer on behalf of
    `asker`. `may_skip`: a prompt offers SKIP. `language`: see `ModelContext`. The call also lets the session check
    whether a batch is due; folding runs in the background. Raises `ContextOverflowError`.
    """
    options = TrimOptions() if policy is None else policy.trim
    count = options.tool_outputs.count
    tools: QuestionTools | None = None
    exchanges: dict[int, list[PayloadPart]] = {}
    if toolbox is not None:
        tools = toolbox.for_asker(asker, answering=current.seq)
        tools.offers = offers_within(tools.offers, max_input_tokens // OFFERS_SHARE, count)
        max_input_tokens -= offers_tokens(tools.offers, count)
        in_window = {turn.seq for turn in memory.window if not turn.tombstone}
        exchanged = toolbox.exchanges.messages(in_window | {current.seq}).items()
        exchanges = {seq: [to_part(message, count) for message in messages] for seq, messages in exchanged}
    session = memory.context(current=current, max_input_tokens=max_input_tokens)
    build = partial(
        build_payload,
        session,
        system=system,
        reply_prompts=reply_prompts,
        recall=[quote.part for quote in quotes],
        participants=participants,
        exchanges=exchanges,
        options=options,
        enforced=policy is None or policy.enforced,
        zone=zone,
        searchable=tools is not None and any(offer.name == MEMORY_SEARCH for offer in tools.offers),
    )
    sent = build()
    if policy is not None and policy.summarise_dropped and session.mode is not Mode.ROLLING:
        left_out = [turn_part(turn, PartKind.TURN, zone, count) for turn in left_out_turns(session, sent)]
        if left_out and (text := summarize_context(left_out, max_summary_chars=EXCERPT_CHARS).summary):
            sent = build(condensed=(data_part(PartKind.SUMMARY, f"Of what is left out below: {text}", count=count),))
    memory.record_sent(session, sent)
    return ModelContext(
        session=session,
        current=current,
        parts=sent,
        messages=tuple(map(to_message, sent)),
        now=now,
        quotes=tuple(quotes),
        enforced=policy is None or policy.enforced,
        tools=tools,
        may_skip=may_skip,
        language=language,
    )


def presence_part(names: Sequence[str], *, unheard: int = 0) -> PayloadPart:
    """Return the part with the people in the channel: those who have said nothing yet are in no turn. `names`: of those
    who are heard, as turns have them. `unheard`: how many are not, because they opted out or have not agreed; they are
    not named.
    """
    listed = [plain_name(name) for name in names[:MOST_NAMES]]
    if (more := len(names) - MOST_NAMES) > 0:
        listed.append(f"{more} more")
    text = f"In the voice channel with you now: {', '.join(listed) or 'nobody whom you hear'}."
    if unheard:
        text += f" Others here whom you do not hear, because they opted out or have not agreed: {unheard}."
    return data_part(PartKind.PARTICIPANTS, text)

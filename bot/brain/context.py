"""What the brain hands to whoever finds the words: the session's memory as the messages of one model call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.exchanges import insert_exchanges
from bot.brain.tools.permission import NOBODY
from bot.llm.budget import MEMORY_SEARCH, offers_tokens
from bot.llm.port import ChatMessage, ChatRole
from compaction.budget.messages import Message
from compaction.budget.summarize import SummarizeOptions, summarize_by_rules
from compaction.context.build import build_payload, left_out_turns, turn_text
from compaction.model import Mode
from compaction.payload import PartKind, as_sent, part
from compaction.tokens import estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from bot.brain.tools.permission import Asker
    from bot.brain.tools.toolbox import Toolbox, ToolRunner
    from bot.guild import PromptPolicy
    from bot.llm.port import ToolOffer
    from compaction.context.build import SessionContext
    from compaction.memory.quotes import Quote
    from compaction.model import Seq, Turn
    from compaction.payload import PayloadPart
    from compaction.session import SessionMemory

log = structlog.get_logger()

# What is left out is mostly folded soon; until then half a summary stands for it.
CONDENSED_CHARS = 600
# What tools answered before takes at most this part of a prompt.
EXCHANGES_SHARE = 4
# So do the tools themselves: servers describe theirs at length, and a prompt is for the talk.
OFFERS_SHARE = 4


@dataclass(frozen=True, slots=True)
class ModelContext:
    """What is sent for one answer. `parts` is what is sent of the session, with where it comes from; `messages` the
    same as it is sent, and between them what tools answered lately, of which the last parts tell.

    `session` is what the parts were made of; `current` the turn that is answered; `now` UTC epoch seconds.
    """

    session: SessionContext
    current: Turn
    parts: tuple[PayloadPart, ...]
    messages: tuple[ChatMessage, ...]
    now: float
    # What the recalled parts were made of; not all of them need have had room.
    quotes: tuple[Quote, ...] = ()
    # Whether it has to stay within the model's budget on its way.
    enforced: bool = True
    # What the model may call while it answers; None: nothing. What tools answered before is among the messages.
    tools: ToolRunner | None = None
    # Whether the answer may be that there is nothing to say: then nothing is said before that is known.
    may_skip: bool = False


def build_context_messages(
    memory: SessionMemory,
    current: Turn,
    *,
    system: Sequence[str],
    max_input_tokens: int,
    now: float,
    zone: tzinfo,
    quotes: Sequence[Quote] = (),
    participants: Sequence[PayloadPart] = (),
    policy: PromptPolicy | None = None,
    toolbox: Toolbox | None = None,
    asker: Asker = NOBODY,
    may_skip: bool = False,
) -> ModelContext:
    """Return what a model is sent to answer `current`, and log `model_context_built`.

    System prompts, what is known of the people present (`participants`), the summary, the window word for word, live
    notes, recalled quotes, the current turn: within `max_input_tokens`. `policy`: how they are counted and what is put
    in the place of what has no room. `toolbox`: what may be called on behalf of `asker`. `may_skip`: the model was told
    that it may say nothing. This is where the session
    asks itself whether a batch is due for folding; that
    happens in the background and never delays the answer. Raises `ContextOverflowError`.
    """
    count = estimate_text_tokens if policy is None else policy.count_tokens
    tools = None if toolbox is None else toolbox.use(asker)
    if tools is not None:
        tools.offers = _affordable(tools.offers, max_input_tokens // OFFERS_SHARE, count)
    offers = () if tools is None else tools.offers
    exchanged: dict[int, list[ChatMessage]] = {}
    if toolbox is not None:
        max_input_tokens -= offers_tokens(offers, count)
        exchanged = toolbox.exchanges.within(
            max_input_tokens // EXCHANGES_SHARE,
            turns={turn.seq for turn in memory.window if not turn.tombstone},
            cost=partial(message_tokens, count=count),
        )
        max_input_tokens -= sum(message_tokens(each, count) for told in exchanged.values() for each in told)
    session = memory.context(current=current, max_input_tokens=max_input_tokens)
    build = partial(
        build_payload,
        session,
        system=system,
        recall=[quote.part for quote in quotes],
        participants=participants,
        zone=zone,
        searchable=any(offer.name == MEMORY_SEARCH for offer in offers),
        count=None if policy is None else policy.count_tokens,
    )
    parts = build()
    if policy is not None and policy.summarise_dropped and session.mode is not Mode.ROLLING:
        condensed = _condensed(left_out_turns(session, parts), zone, policy)
        parts = build(condensed=condensed) if condensed else parts
    whole = (*parts, *(_exchanged(told, count) for told in exchanged.values()))
    memory.sent(session, whole, zone=zone)
    return ModelContext(
        session=session,
        current=current,
        parts=whole,
        messages=insert_exchanges([(_message(part), _turn_in(part)) for part in parts], exchanged),
        now=now,
        quotes=tuple(quotes),
        enforced=policy is None or policy.enforced,
        tools=tools,
        may_skip=may_skip,
    )


def _exchanged(told: Sequence[ChatMessage], count: Callable[[str], int]) -> PayloadPart:
    """Return what was called for one earlier question and what came of it, as one part: for the record alone."""
    lines = [f"{each.name}({each.arguments})" for message in told for each in message.tool_calls]
    lines += [f"{message.name}: {message.content}" for message in told if message.role is ChatRole.TOOL]
    made = as_sent(part("tool", PartKind.TOOL, "\n".join(lines)))
    return replace(made, tokens=sum(message_tokens(message, count) for message in told))


def _affordable(offers: Sequence[ToolOffer], room: int, count: Callable[[str], int]) -> tuple[ToolOffer, ...]:
    """Return the tools that may be told of in `room` tokens, the first of them first."""
    kept: list[ToolOffer] = []
    for offer in offers:
        cost = offers_tokens([offer], count)
        if cost <= room:
            kept.append(offer)
            room -= cost
    if len(kept) < len(offers):
        log.warning("tools_left_out", left_out=[offer.name for offer in offers if offer not in kept])
    return tuple(kept)


def _message(part: PayloadPart) -> ChatMessage:
    return ChatMessage(ChatRole(part.role), part.content, kind=part.kind, timestamp=part.timestamp)


def _turn_in(part: PayloadPart) -> Seq | None:
    return part.seq_from if part.kind is PartKind.TURN else None


def _condensed(turns: Sequence[Turn], zone: tzinfo, policy: PromptPolicy) -> tuple[PayloadPart, ...]:
    """Return what stands beside the note for turns that had no room: their best sentences, or nothing."""
    said = [Message("user", turn_text(turn, zone), timestamp=turn.started_at) for turn in turns]
    text = summarize_by_rules(said, SummarizeOptions(max_summary_chars=CONDENSED_CHARS)) if said else ""
    if not text:
        return ()
    return (as_sent(part("system", PartKind.SUMMARY, f"Of what is left out below: {text}", count=policy.count_tokens)),)

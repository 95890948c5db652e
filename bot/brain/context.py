"""Builds the input of one reply: session memory, quotes and tools as the messages of one model call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from bot.brain.tools.exchanges import insert_exchanges, newest_within
from bot.brain.tools.permission import NOBODY
from bot.llm.budget import MEMORY_SEARCH, OFFERS_SHARE, offers_tokens, offers_within, to_budget_message
from bot.llm.port import ChatMessage, ChatRole
from compaction.budget.messages import Message
from compaction.budget.summarize import SummarizeOptions, summarize_context
from compaction.budget.tool_outputs import truncate_old_tool_outputs
from compaction.budget.trim import PRESERVE_RECENT_TURNS
from compaction.context.build import build_payload, left_out_turns
from compaction.context.turn_text import format_turn
from compaction.model import Mode, TurnKind
from compaction.payload import PartKind, data_part, keep_as_sent, make_part
from compaction.tokens import estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo

    from bot.brain.tools.permission import Asker
    from bot.brain.tools.toolbox import QuestionTools, Toolbox
    from bot.guild import PromptPolicy
    from compaction.context.build import SessionContext
    from compaction.memory.quotes import Quote
    from compaction.model import Seq, Turn
    from compaction.payload import PayloadPart
    from compaction.session import SessionMemory

# Length of the excerpt that replaces turns that do not fit. Most of them are folded soon.
EXCERPT_CHARS = 600
# Earlier tool results take at most a quarter of a prompt.
EXCHANGES_SHARE = 4
# What the asker agreed to may have been done for this very question, by speech-to-speech that failed then.
_TURNS = frozenset({PartKind.TURN, PartKind.CURRENT})


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The input of one reply.

    `messages` are sent to the model. `parts` have the same content with its provenance, for the record; they hold
    earlier tool results at the end, while `messages` have them in between. `session`: the source of the parts.
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

    Order: system prompts, summary, facts about the people present (`participants`), window, live notes, quotes,
    prompts about this reply, current turn; at most `max_input_tokens` in all. `policy`: how tokens are counted, and
    whether an excerpt replaces turns that do not fit. `toolbox`: tools to offer on behalf of `asker`. `may_skip`: a
    prompt offers SKIP. `language`: see `ModelContext`. The call also lets the session check whether a batch is due;
    folding runs in the background. Raises `ContextOverflowError`.
    """
    count = estimate_text_tokens if policy is None else policy.count_tokens
    tools: QuestionTools | None = None
    exchanged: dict[int, list[ChatMessage]] = {}
    if toolbox is not None:
        tools = _offer_tools(toolbox, asker, current, max_tokens=max_input_tokens // OFFERS_SHARE, count=count)
        max_input_tokens -= offers_tokens(tools.offers, count)
        exchanged = _earlier_exchanges(toolbox, memory, policy, max_tokens=max_input_tokens // EXCHANGES_SHARE)
        max_input_tokens -= _tokens_of(exchanged, count)
    build = partial(
        build_payload,
        system=system,
        reply_prompts=reply_prompts,
        recall=[quote.part for quote in quotes],
        participants=participants,
        zone=zone,
        searchable=tools is not None and any(offer.name == MEMORY_SEARCH for offer in tools.offers),
        count=None if policy is None else policy.count_tokens,
        newest=PRESERVE_RECENT_TURNS if policy is None else policy.newest_turns,
    )
    fitted = _fit(build, memory.context(current=current, max_input_tokens=max_input_tokens), exchanged, count)
    parts = _with_excerpt(build, fitted, zone, policy)
    recorded = (*parts, *(_exchange_part(messages, count) for messages in fitted.exchanged.values()))
    memory.record_sent(fitted.session, recorded, zone=zone)
    return ModelContext(
        session=fitted.session,
        current=current,
        parts=recorded,
        messages=insert_exchanges([(_message(part), _turn_in(part)) for part in parts], fitted.exchanged),
        now=now,
        quotes=tuple(quotes),
        enforced=policy is None or policy.enforced,
        tools=tools,
        may_skip=may_skip,
        language=language,
    )


def _offer_tools(
    toolbox: Toolbox, asker: Asker, current: Turn, *, max_tokens: int, count: Callable[[str], int]
) -> QuestionTools:
    """Return the tools for a reply to `current`, of which those are offered that fit into `max_tokens`."""
    tools = toolbox.for_asker(asker, answering=current.seq)
    tools.offers = offers_within(tools.offers, max_tokens, count)
    return tools


@dataclass(frozen=True, slots=True)
class _Fitted:
    """What fits into the prompt: the parts, and the earlier tool calls and results of turns among them, by turn.

    `session`: the source of the parts, with the limit that they were built for.
    """

    session: SessionContext
    parts: tuple[PayloadPart, ...]
    exchanged: dict[int, list[ChatMessage]]


def _fit(
    build: Callable[[SessionContext], tuple[PayloadPart, ...]],
    session: SessionContext,
    exchanged: dict[int, list[ChatMessage]],
    count: Callable[[str], int],
) -> _Fitted:
    """Build the parts. Exchanges whose questions are not among them are left out, and the turns get their room."""
    parts = build(session)
    sent = {_turn_in(part) for part in parts}
    kept = {seq: messages for seq, messages in exchanged.items() if seq in sent}
    if len(kept) < len(exchanged):
        freed = _tokens_of(exchanged, count) - _tokens_of(kept, count)
        session = replace(session, max_input_tokens=session.max_input_tokens + freed)
        parts = build(session)
    return _Fitted(session, parts, kept)


def _with_excerpt(
    build: Callable[..., tuple[PayloadPart, ...]], fitted: _Fitted, zone: tzinfo, policy: PromptPolicy | None
) -> tuple[PayloadPart, ...]:
    """Return the parts, with an excerpt of the turns that did not fit if `policy` wants one."""
    if policy is None or not policy.summarise_dropped or fitted.session.mode is Mode.ROLLING:
        return fitted.parts
    excerpt = _excerpt(left_out_turns(fitted.session, fitted.parts), zone, policy)
    return build(fitted.session, condensed=excerpt) if excerpt else fitted.parts


def _earlier_exchanges(
    toolbox: Toolbox, memory: SessionMemory, policy: PromptPolicy | None, *, max_tokens: int
) -> dict[int, list[ChatMessage]]:
    """Return the tool calls and results of questions in the window, by turn: the newest that fit into `max_tokens`."""
    count = estimate_text_tokens if policy is None else policy.count_tokens
    window = [turn for turn in memory.window if not turn.tombstone]
    exchanges = toolbox.exchanges.messages({turn.seq for turn in window})
    return newest_within(_aged(window, exchanges, policy), max_tokens, partial(message_tokens, count=count))


def _tokens_of(exchanges: Mapping[int, list[ChatMessage]], count: Callable[[str], int]) -> int:
    return sum(message_tokens(message, count) for message in chain.from_iterable(exchanges.values()))


def _aged(
    window: Sequence[Turn], exchanges: Mapping[int, list[ChatMessage]], policy: PromptPolicy | None
) -> dict[int, list[ChatMessage]]:
    """Return the exchanges with old outputs shortened, as the budget does when it sends them."""
    if policy is not None and not policy.enforced:
        return dict(exchanges)
    placed: list[tuple[int, Message, ChatMessage | None]] = []
    for turn in window:
        role = ChatRole.ASSISTANT if turn.kind is TurnKind.ASSISTANT else ChatRole.USER
        placed.append((turn.seq, Message(role, turn.text), None))
        placed += [(turn.seq, to_budget_message(each), each) for each in exchanges.get(turn.seq, ())]
    options = None if policy is None else policy.tool_outputs
    aged = truncate_old_tool_outputs([message for _, message, _ in placed], options=options)
    found: dict[int, list[ChatMessage]] = {seq: [] for seq in exchanges}
    for (seq, _, original), message in zip(placed, aged, strict=True):
        if original is not None:
            found[seq].append(replace(original, content=message.content))
    return found


def _exchange_part(messages: Sequence[ChatMessage], count: Callable[[str], int]) -> PayloadPart:
    """Return one earlier question's tool calls and results as a part, for the record only."""
    lines = [f"{each.name}({each.arguments})" for message in messages for each in message.tool_calls]
    lines += [f"{message.name}: {message.content}" for message in messages if message.role is ChatRole.TOOL]
    part = keep_as_sent(make_part("tool", PartKind.TOOL, "\n".join(lines)))
    return replace(part, tokens=sum(message_tokens(message, count) for message in messages))


def _message(part: PayloadPart) -> ChatMessage:
    return ChatMessage(ChatRole(part.role), part.content, kind=part.kind, timestamp=part.timestamp)


def _turn_in(part: PayloadPart) -> Seq | None:
    return part.seq_from if part.kind in _TURNS else None


def _excerpt(turns: Sequence[Turn], zone: tzinfo, policy: PromptPolicy) -> tuple[PayloadPart, ...]:
    """Return an excerpt of turns that do not fit, as one part; empty if the excerpt is empty."""
    lines = [Message("user", format_turn(turn, zone), timestamp=turn.started_at) for turn in turns]
    text = summarize_context(lines, SummarizeOptions(max_summary_chars=EXCERPT_CHARS)).summary if lines else ""
    if not text:
        return ()
    return (keep_as_sent(data_part(PartKind.SUMMARY, f"Of what is left out below: {text}", count=policy.count_tokens)),)

"""Decides what a speech-to-speech session's conversation holds, and keeps it in step with the room's memory.

Every turn from the cursor on is an item, as sound or as text. Folded turns are removed; the instructions carry the
summary instead. A new session gets everything as a briefing, an open one only the changes. Sounds that were sent and
are no turns yet are remembered (`Inputs`), so that none is sent twice, and one that becomes no turn can be removed.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import structlog

from bot.brain.system_prompt import RealtimeInstructions, SystemPrompt, build_realtime_instructions
from bot.brain.tools.tool import NOBODY
from bot.guild import PromptPolicy
from bot.llm.budgeted import MEMORY_SEARCH, OFFERS_SHARE, offers_tokens
from bot.memory.excerpt import excerpt_of
from compaction.budget.eviction_note import EvictedTurns
from compaction.context.build import SessionContext, build_payload, summarize_eviction
from compaction.model import Seq, TurnPart
from compaction.payload import PartKind, PayloadPart
from compaction.tokens import estimate_text_tokens
from voice.asr.port import Recognition
from voice.audio import NO_SOUND, Pcm
from voice.realtime.port import Briefing, ConversationItem, ItemRole, Realtime
from voice.realtime.port import RealtimeTool as CallableTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import tzinfo

    from bot.brain.tools.toolbox import Toolbox
    from bot.realtime.port import RealtimePrompt
    from bot.words import Lease
    from compaction.budget.trim import TrimOptions
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# OpenAI's Realtime API refuses a session with more tools.
MOST_TOOLS = 128
# Every reply pays for the whole conversation, and sound costs more than text: well below what any model takes.
MAX_INPUT_TOKENS = 16_000
# What stands in the conversation for turns without room.
_ASIDES = frozenset({PartKind.SUMMARY, PartKind.EVICTION_NOTE})


@dataclass(frozen=True, slots=True)
class ReplyMaterial:
    """What the instructions have for one reply. `instructions`: how to give it. `result`: of the tool that
    ran on the asker's press. `recalled`, `recalled_earlier`: quotes of this session and of others; `sources`: the ref
    of each.
    """

    instructions: tuple[str, ...] = ()
    result: str = ""
    recalled: tuple[str, ...] = ()
    recalled_earlier: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


class Items:
    """The conversation items and instructions of one room. Belongs to its `RealtimeBridge`.

    `toolbox`: what may be called at present. `prompt`: who is there, and what they speak. Set before a reply: `policy`,
    `asker` and `for_reply`. `conversation` counts the session's conversations; a new connection begins the next one.
    """

    def __init__(
        self,
        timeline: SessionTimeline,
        toolbox: Toolbox,
        prompt: RealtimePrompt,
        *,
        instructions: SystemPrompt,
        zone: tzinfo,
    ) -> None:
        self._instructions = instructions
        self._zone = zone
        self._timeline = timeline
        self._toolbox = toolbox
        self._prompt = prompt
        # The current conversation's items by turn, with the turn's words at that time.
        self._held: dict[int, tuple[tuple[str, ...], tuple[TurnPart, ...]]] = {}
        self._sent_instructions = ""
        self._sent_tools: tuple[CallableTool, ...] = ()
        self._left_out: list[str] = []
        # What stands for turns without room. Each gets a number, because an id can be used only once.
        self._asides: tuple[ConversationItem, ...] = ()
        self._aside_numbers = itertools.count(1)
        # The words of the turns that it may have.
        self._parts: dict[int, tuple[TurnPart, ...]] = {}
        # The conversation has no turn before this one.
        self._oldest = 0
        # How often all turns were sent anew.
        self._times = 0
        self.conversation = 0
        self.policy = PromptPolicy(timeline.mode, MAX_INPUT_TOKENS, enforced=True)
        # Who asked what is being answered, or was answered last.
        self.asker = NOBODY
        self.for_reply = ReplyMaterial()

    @property
    def trim(self) -> TrimOptions:
        """Return how the conversation is made to fit. Of what a speech-to-speech model is sent tokens are estimated."""
        outputs = replace(self.policy.trim.tool_outputs, count=estimate_text_tokens)
        return replace(self.policy.trim, tool_outputs=outputs)

    @property
    def _max_input_tokens(self) -> int:
        return min(self.policy.max_input_tokens, MAX_INPUT_TOKENS)

    def _callable_tools(self) -> tuple[CallableTool, ...]:
        """Return as many tools as a session takes, and a quarter of the budget: our own, which the bot needs for its
        memory and its room, before those of servers. The log says once which are left out.
        """
        wanted = sorted(self._toolbox.tools(), key=lambda tool: bool(tool.server))
        room = self._max_input_tokens // OFFERS_SHARE if self.policy.enforced else self.policy.max_input_tokens
        kept: dict[str, CallableTool] = {}
        for tool in wanted[:MOST_TOOLS]:
            told = CallableTool(tool.name, tool.description, tool.parameters)
            if (cost := offers_tokens([told], estimate_text_tokens)) <= room:
                kept[tool.name] = told
                room -= cost
        left_out = [tool.name for tool in wanted if tool.name not in kept]
        if left_out != self._left_out:
            self._left_out = left_out
            log.warning("realtime_tools_left_out", most=MOST_TOOLS, left_out=left_out)
        return tuple(kept.values())

    def hold(self, seq: Seq, item_ids: tuple[str, ...]) -> None:
        """Record that these items of the current conversation hold a turn."""
        self._held[seq] = item_ids, self._timeline.allowed_part(self._timeline.turn(seq)).parts

    def has(self, seq: Seq) -> bool:
        """Return whether items of the current conversation hold a turn."""
        return seq in self._held

    def _context(self, answer_to: Seq | None = None) -> tuple[RealtimeInstructions, tuple[PayloadPart, ...]]:
        """Return the instructions, and the part of the window that fits beside them, to answer turn `answer_to`."""
        # This also starts a compaction if one is due.
        context = self._timeline.context(max_input_tokens=self._max_input_tokens)
        self._parts = {turn.seq: turn.parts for turn in context.window}
        if self._is_outdated:
            # Every turn is sent anew.
            self._oldest = 0
        offered = self._callable_tools()
        built = build_realtime_instructions(
            context,
            name=self._instructions.name,
            operator_rules=self._instructions.extra,
            server_rules=self.policy.instructions,
            next_reply=self.for_reply.instructions,
            result=self.for_reply.result,
            participants=self._prompt.introductions(self.asker),
            recall=self.for_reply.recalled,
            continuity=self.for_reply.recalled_earlier,
            sources=self.for_reply.sources,
            tools=[each.name for each in offered],
            zone=self._zone,
        )
        taken = sum(each.tokens for each in built.parts) + offers_tokens(offered, estimate_text_tokens)
        room = max(1_000, self._max_input_tokens - taken)
        trim = self.trim

        def build(room: int) -> tuple[PayloadPart, ...]:
            window = build_payload(
                conversation_context(context, built.parts, oldest=self._oldest),
                max_input_tokens=room,
                options=trim,
                enforced=self.policy.enforced,
                zone=self._zone,
                searchable=any(each.name == MEMORY_SEARCH for each in offered),
            )
            self._oldest = next((each.seq_from for each in window if each.kind is PartKind.TURN), None) or self._oldest
            return window

        window = build(room)
        # It stands for all turns that the conversation does not have, also those that left it before.
        older = [turn for turn in context.window if turn.seq < self._oldest]
        excerpt = excerpt_of(context, older, trim)
        taken = sum(each.tokens for each in excerpt)
        if 2 * taken < room:
            # Only where there is no room for it are more turns left out.
            fits = sum(each.tokens for each in window) + taken <= room
            window = (*excerpt, *(window if fits else build(room - taken)))
        self._timeline.record_sent(context, (*built.parts, *window), answer_to=answer_to)
        return built, window

    @property
    def _is_outdated(self) -> bool:
        """Whether words of a turn that the conversation has were taken back or are given back. Sound does not show
        whose they are.
        """
        return any(self._parts.get(seq, parts) != parts for seq, (_, parts) in self._held.items())

    def brief(self) -> Briefing:
        """Return the start of a new conversation: instructions, tools, and all unfolded turns as text."""
        self._oldest = 0
        built, window = self._context()
        self.conversation += 1
        self._sent_instructions = built.text
        self._sent_tools = self._callable_tools()
        self._held = {}
        items: list[ConversationItem] = []
        for each in window:
            if each.kind is PartKind.TURN and each.seq_from is not None:
                items.append(_written(each, self._times))
                self._held[each.seq_from] = (items[-1].id,), self._parts[each.seq_from]
        self._asides = self._as_items(window)
        items[:0] = self._asides
        return Briefing(built.text, tuple(items), self._sent_tools, self._prompt.languages())

    def refresh(self, session: Realtime, *, answer_to: Seq | None = None) -> tuple[PayloadPart, ...]:
        """Bring the session's conversation in step with the memory; return the parts that the model now has.

        `answer_to`: the turn that it is about to answer.
        """
        built, window = self._context(answer_to)
        if built.text != self._sent_instructions:
            self._sent_instructions = built.text
            session.set_instructions(built.text)
        if (offered := self._callable_tools()) != self._sent_tools:
            self._sent_tools = offered
            session.set_tools(offered)
        due = {each.seq_from: each for each in window if each.kind is PartKind.TURN and each.seq_from is not None}
        resend = self._is_outdated
        self._times += resend
        removed = [seq for seq in self._held if resend or seq not in due]
        session.delete_items([item for seq in removed for item in self._held.pop(seq)[0]])
        for seq, each in due.items():
            if seq not in self._held:
                item = _written(each, self._times)
                self._held[seq] = (item.id,), self._parts[seq]
                session.add_item(item)
        if [each.content for each in window if each.kind in _ASIDES] != [each.text for each in self._asides]:
            session.delete_items([each.id for each in self._asides])
            self._asides = self._as_items(window)
            for aside in self._asides:
                session.add_item(aside)
        return (*built.parts, *window)

    def _as_items(self, window: Iterable[PayloadPart]) -> tuple[ConversationItem, ...]:
        """Return what stands for turns without room: our own note, and sentences of people, which no system says."""
        return tuple(
            ConversationItem(
                f"evicted_{next(self._aside_numbers)}",
                ItemRole.SYSTEM if each.role == "system" else ItemRole.USER,
                each.content,
            )
            for each in window
            if each.kind in _ASIDES
        )


def conversation_context(
    context: SessionContext, instructions: Sequence[PayloadPart], *, oldest: int
) -> SessionContext:
    """Return the part of the context that stands in conversation items beside the instructions.

    The turns before `oldest` count as evicted. A conversation grows at its end alone: what was left out for want of
    room would come back behind newer turns. So do the turns of a summary for which the instructions have no room.
    """
    older = [turn for turn in context.window if turn.seq < oldest]
    evicted = context.evicted
    if (
        context.cursor > 0
        and context.summary is not None
        and PartKind.SUMMARY not in {each.kind for each in instructions}
    ):
        start, end = context.summary_started_at or 0.0, context.summary_ended_at or 0.0
        folded = EvictedTurns(Seq(0), context.cursor, 0, start, end)
        evicted = folded if evicted is None else folded.plus(evicted)
    if older:
        gone = summarize_eviction(older)
        evicted = gone if evicted is None else evicted.plus(gone)
    window = context.window[len(older) :]
    return replace(context, window=window, evicted=evicted, summary=None, chapters=(), live_notes=())


def _written(turn: PayloadPart, times: int) -> ConversationItem:
    """Return a turn as a text item. `times`: how often all turns were sent anew; an item id can be used only once."""
    role = ItemRole.ASSISTANT if turn.role == "assistant" else ItemRole.USER
    return ConversationItem(f"turn_{turn.seq_from}" + f"_{times}" * (times > 0), role, turn.content)


# Inputs remembered for each person: many more than wait to become a turn. Older sounds become no turn any more.
MOST_INPUTS = 256


@dataclass(frozen=True, slots=True)
class RealtimeRecognition(Recognition):
    """A recognition, and the items that hold its sound. `conversation`: the number of the session's conversation."""

    item_ids: tuple[str, ...] = ()
    conversation: int = 0


def with_items(own: Recognition, item_ids: tuple[str, ...], conversation: int) -> RealtimeRecognition:
    """Return `own`, from the room's own recogniser, with the items that hold its sound."""
    figures = {field.name: getattr(own, field.name) for field in fields(Recognition)}
    return RealtimeRecognition(**figures, item_ids=item_ids, conversation=conversation)


@dataclass(frozen=True, slots=True)
class RealtimeInput:
    """A sound that the model has heard, and the items that hold it. `conversation`: see `RealtimeRecognition`."""

    pcm: Pcm
    item_ids: tuple[str, ...]
    conversation: int
    lease: Lease


class Inputs:
    """The inputs of one session by speaker (user id; None: it is not known who spoke), the oldest first."""

    def __init__(self) -> None:
        # Only the last input of each person has its sound, because only that one is compared.
        self._sent: defaultdict[int | None, deque[RealtimeInput]] = defaultdict(lambda: deque(maxlen=MOST_INPUTS))

    def add(self, speaker_id: int | None, sent: RealtimeInput) -> list[RealtimeInput]:
        """Remember an input, and return those of this person that are too old to be remembered any more."""
        inputs = self._sent[speaker_id]
        if inputs:
            inputs[-1] = replace(inputs[-1], pcm=NO_SOUND)
        too_old = [inputs.popleft()] if len(inputs) == MOST_INPUTS else []
        inputs.append(sent)
        return too_old

    def find_same(self, speaker_id: int | None, pcm: Pcm) -> RealtimeInput | None:
        """Return the speaker's last input if `pcm` is the same sound."""
        inputs = self._sent[speaker_id]
        if not inputs:
            return None
        last = inputs[-1]
        return last if len(pcm) and np.array_equal(pcm, last.pcm) else None

    def pop_before(self, speaker_id: int | None, item_ids: tuple[str, ...]) -> list[RealtimeInput] | None:
        """Remove the speaker's inputs up to the one that became a turn, and return those before it. None: the one with
        these items was removed before, or is a turn already.
        """
        inputs = self._sent[speaker_id]
        if all(sent.item_ids != item_ids for sent in inputs):
            return None
        dropped: list[RealtimeInput] = []
        while (sent := inputs.popleft()).item_ids != item_ids:
            dropped.append(sent)
        return dropped

    def pop_ended(self, speaker_id: int | None) -> list[RealtimeInput]:
        """Remove and return the inputs of a person that were taken back."""
        inputs = self._sent.pop(speaker_id, ())
        self._sent[speaker_id].extend(each for each in inputs if each.lease.valid)
        return [each for each in inputs if not each.lease.valid]

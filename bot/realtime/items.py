"""What stands in the conversation of a speech-to-speech session, in step with the room's memory.

Every turn from the cursor on is an item of it, as the sound it was or in writing; what is folded is taken out, and the
instructions carry the summary. It sends nothing by itself: who opens a session is handed a briefing, and a session at
hand is told what has changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.brain.realtime_instructions import build_realtime_instructions
from compaction.context.build import build_payload
from compaction.payload import PartKind
from voice.realtime.port import Briefing, ConversationItem, ItemRole
from voice.realtime.port import RealtimeTool as CallableTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from bot.brain.realtime_instructions import RealtimeInstructions
    from bot.brain.system_prompt import SystemPrompt
    from bot.brain.tools.tool import RoomTool
    from compaction.model import Seq
    from compaction.payload import PayloadPart
    from compaction.session import SessionMemory
    from voice.realtime.port import Realtime

# A session's conversation costs at every answer, and sound more than words: less than any model would take.
MAX_INPUT_TOKENS = 16_000
EVICTED_ID = "evicted"


class Items:
    """One room's conversation items and instructions. Belongs to its `RealtimeTalk`.

    `present`: a line on each person who is here. `server`: what its moderators want of the bot. `besides`: what the
    model is told of the answer at hand alone; `recalled`: what it is reminded of, of this session and of `earlier`
    ones. `conversation` counts the conversations there have been.
    """

    def __init__(
        self,
        *,
        instructions: SystemPrompt,
        present: Callable[[], Sequence[str]],
        max_input_tokens: int,
        zone: tzinfo,
    ) -> None:
        self._instructions = instructions
        self._present = present
        self._max_input_tokens = min(max_input_tokens, MAX_INPUT_TOKENS)
        self._zone = zone
        self._memory: SessionMemory | None = None
        self._tools: Callable[[], Iterable[RoomTool]] = tuple
        # Items of the present conversation by the turn they hold.
        self._held: dict[int, tuple[str, ...]] = {}
        self._instructed = ""
        self._offered: tuple[CallableTool, ...] = ()
        self._evicted = ""
        self._external_changes = 0
        self.conversation = 0
        self.server = ""
        self.besides: tuple[str, ...] = ()
        self.recalled: tuple[str, ...] = ()
        self.earlier: tuple[str, ...] = ()

    def open(self, memory: SessionMemory, tools: Callable[[], Iterable[RoomTool]] = tuple) -> None:
        """Begin with a session's memory, and with who knows what may be called at present."""
        self._memory = memory
        self._external_changes = memory.external_changes
        self._tools = tools

    def _callable(self) -> tuple[CallableTool, ...]:
        return tuple(CallableTool(each.name, each.description, each.parameters) for each in self._tools())

    def hold(self, seq: Seq, item_ids: tuple[str, ...]) -> None:
        """Take note that these items of the present conversation hold a turn already."""
        self._held[seq] = item_ids

    def release(self, seq: Seq) -> None:
        """Take note that nothing holds a turn after all: it is told in writing."""
        self._held.pop(seq, None)

    def _context(self, answering: Seq | None = None) -> tuple[RealtimeInstructions, tuple[PayloadPart, ...]]:
        """Return the instructions, and what of the window has room beside them, to answer the turn `answering`."""
        assert self._memory is not None, "the memory is opened before anything is said"
        # This asks whether a batch is due.
        context = self._memory.context(max_input_tokens=self._max_input_tokens)
        built = build_realtime_instructions(
            context,
            name=self._instructions.name,
            operator_rules=self._instructions.extra,
            server_rules=self.server,
            next_reply=self.besides,
            participants=self._present(),
            recall=self.recalled,
            continuity=self.earlier,
            zone=self._zone,
        )
        told = sum(each.tokens for each in built.parts)
        window = build_payload(
            replace(context, summary=None, live_notes=()),
            max_input_tokens=max(1_000, self._max_input_tokens - told),
            zone=self._zone,
        )
        self._memory.record_sent(context, (*built.parts, *window), zone=self._zone, answer_to=answering)
        return built, window

    def brief(self) -> Briefing:
        """Return what a fresh conversation is told: all that is not folded, in writing, and what may be called."""
        if self._memory is None:
            return Briefing("")
        built, window = self._context()
        self._external_changes = self._memory.external_changes
        self.conversation += 1
        self._instructed = built.text
        self._offered = self._callable()
        self._evicted = ""
        self._held = {}
        items: list[ConversationItem] = []
        for each in window:
            if each.kind is PartKind.TURN and each.seq_from is not None:
                items.append(_told(each, self._external_changes))
                self._held[each.seq_from] = (items[-1].id,)
            elif each.kind is PartKind.EVICTION_NOTE:
                self._evicted = each.content
                items.append(ConversationItem(EVICTED_ID, ItemRole.SYSTEM, each.content))
        return Briefing(built.text, tuple(items), self._offered)

    def refresh(self, session: Realtime, *, answering: Seq | None = None) -> tuple[PayloadPart, ...]:
        """Bring the session's conversation in step with the memory; return what the model has before it now.

        `answering`: the turn that it is about to answer.
        """
        built, window = self._context(answering)
        if built.text != self._instructed:
            self._instructed = built.text
            session.instruct(built.text)
        if (offered := self._callable()) != self._offered:
            self._offered = offered
            session.offer(offered)
        wanted = {each.seq_from: each for each in window if each.kind is PartKind.TURN and each.seq_from is not None}
        assert self._memory is not None, "its context was asked for above"
        # Words of any turn may have been forgotten since, and sound can't be told by its look: all are told anew.
        anew = self._memory.external_changes != self._external_changes
        self._external_changes = self._memory.external_changes
        gone = [seq for seq in self._held if anew or seq not in wanted]
        session.forget([item for seq in gone for item in self._held.pop(seq)])
        for seq, each in wanted.items():
            if seq not in self._held:
                told = _told(each, self._external_changes)
                self._held[seq] = (told.id,)
                session.tell(told)
        evicted = next((each.content for each in window if each.kind is PartKind.EVICTION_NOTE), "")
        if evicted != self._evicted:
            if self._evicted:
                session.forget([EVICTED_ID])
            if evicted:
                session.tell(ConversationItem(EVICTED_ID, ItemRole.SYSTEM, evicted))
            self._evicted = evicted
        return (*built.parts, *window)


def _told(turn: PayloadPart, times: int) -> ConversationItem:
    """Return a turn as an item. `times`: how often it was told before, and taken back: an id serves once."""
    role = ItemRole.ASSISTANT if turn.role == "assistant" else ItemRole.USER
    return ConversationItem(f"turn_{turn.seq_from}" + f"_{times}" * (times > 0), role, turn.content)

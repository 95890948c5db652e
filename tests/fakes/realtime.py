"""A speech-to-speech session that hears what the test chooses and keeps its conversation as the server would."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

import numpy as np

from voice.audio import Pcm
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.realtime.port import (
    Briefing,
    ConversationItem,
    InputTranscript,
    RealtimeFailed,
    RealtimeNews,
    RealtimeRestored,
    RealtimeTool,
    RealtimeToolCall,
    ReplyPiece,
    ReplyResumed,
    ToolRunner,
)


async def _nothing(call: RealtimeToolCall) -> str:
    return ""


class FakeRealtime:
    """Implements `voice.realtime.port.Realtime` in memory. An exception in `heard` or `answers` is raised. None in
    `heard` stands for speech that was not understood.
    """

    def __init__(self, brief: Callable[[], Briefing], on_event: Callable[[RealtimeNews], None]) -> None:
        self._brief = brief
        self._on_event = on_event
        self._ids = itertools.count(1)
        self.usable = True
        self.queues = (QueueFigures("realtime_events", 0, 4), QueueFigures("realtime_reply", 0, 8))
        self.run_tool: ToolRunner = _nothing
        self.tools: tuple[str, ...] = ()
        self.heard: list[str | Exception | None] = []
        # An answer as pieces is yielded as it is.
        self.answers: list[str | Exception | Sequence[ReplyPiece | ReplyResumed]] = []
        # If set, the connection is lost before the word of an answer with this number, of which the server has already
        # sent the text. The rest of the answer follows on a new connection.
        self.lost_after: int | None = None
        # The items of an answer that continues on a new connection.
        self.resumed: list[str] = []
        self.connected = False
        # By the label of a sound: what its transcript waits for.
        self.gates: dict[str, asyncio.Event] = {}
        self.instructions = ""
        # The conversation: the text of each item by its id.
        self.items: dict[str, str] = {}
        # The items of tool calls and their results.
        self.tool_items: list[str] = []
        self.interrupted: list[int] = []
        self.sounds: list[Pcm] = []

    def connect(self) -> None:
        """Begin a conversation, at the start or after a loss."""
        briefing = self._brief()
        self.connected = True
        self.instructions = briefing.instructions
        self.tools = tuple(tool.name for tool in briefing.tools)
        self.items = {told.id: told.text for told in briefing.items}
        self.tool_items = []

    def fail(self, sentence: str, *, lasting: bool = False) -> None:
        """Report that the session has failed."""
        self.usable = False
        self._on_event(RealtimeFailed(RealtimeError(sentence, retryable=not lasting)))

    def restore(self) -> None:
        """Report that the session works again, with a new conversation."""
        self.connect()
        self.accept()

    def accept(self) -> None:
        """Report that the service has accepted the new conversation."""
        self.usable = True
        self._on_event(RealtimeRestored())

    def send_audio(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """Add the next text of `heard` to the conversation, as the words of these speakers."""
        number = next(self._ids)
        text = self.heard.pop(0)
        self.sounds.append(pcm)
        if not isinstance(text, Exception):
            self.items[f"who_{number}"] = speakers
            self.items[f"item_{number}"] = text or "(unclear)"
        return self._heard(number, text, self.gates.get(speakers))

    async def _heard(self, number: int, text: str | Exception | None, gate: asyncio.Event | None) -> InputTranscript:
        if gate is not None:
            await gate.wait()
        if isinstance(text, Exception):
            raise text
        return InputTranscript(text, (f"who_{number}", f"item_{number}"))

    async def reply(self) -> AsyncGenerator[ReplyPiece | ReplyResumed, None]:
        """Yield the next answer, with half a second of sound for each word."""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, str):
            for piece in answer:
                yield piece
            return
        item_id, self.resumed = f"reply_{next(self._ids)}", []
        self.items[item_id] = answer
        for number, word in enumerate(answer.split()):
            if number == self.lost_after:
                yield ReplyPiece(item_id, words=f"{word} ")
                self.connect()
                said = " ".join(answer.split()[:number])
                cut = {"cut_1": said, "cut_2": "(go on)"} if said else {}
                item_id = f"reply_{next(self._ids)}"
                self.items |= {**cut, item_id: answer.removeprefix(said).strip()}
                self.resumed = [*cut, item_id] if said else []
                yield ReplyResumed(said, tuple(cut))
            yield ReplyPiece(item_id, np.full(12_000, 300, np.int16), f"{word} ")
        if answer.endswith("…"):
            raise RealtimeError("It broke off.")

    def interrupt(self, heard_ms: int) -> bool:
        """Record how many milliseconds of the answer were heard. An answer that was resumed is deleted."""
        self.interrupted.append(heard_ms)
        self.delete_items(self.resumed)
        return not self.resumed

    def add_item(self, told: ConversationItem) -> None:
        """Add an item to the conversation."""
        self.items[told.id] = told.text

    def delete_items(self, item_ids: Iterable[str]) -> None:
        """Remove items from the conversation."""
        for item_id in item_ids:
            self.items.pop(item_id, None)

    async def call_tool(self, call: RealtimeToolCall) -> str:
        """Let the model call a tool; the call and its result are items of the conversation."""
        result = await self.run_tool(call)
        for item_id, text in ((f"call_{call.call_id}", call.arguments), (f"result_{call.call_id}", result)):
            self.items[item_id] = text
            self.tool_items.append(item_id)
        return result

    def delete_tool_calls(self) -> None:
        """Remove the calls of tools and their results from the conversation."""
        self.delete_items(self.tool_items)
        self.tool_items = []

    def set_instructions(self, instructions: str) -> None:
        """Change the instructions."""
        self.instructions = instructions

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        """Change the tools that the model may call."""
        self.tools = tuple(tool.name for tool in tools)

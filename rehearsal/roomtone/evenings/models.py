"""The models of a simulated evening: recogniser, language model, summariser, voice, and a tool. They fail and hang with
the world's faults, and answer with words that they were sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final

from bot.brain.skip import SKIP
from bot.brain.tools.tool import Result, RoomTool, ToolError, anybody
from bot.llm.port import (
    NO_TOOLS,
    ChatMessage,
    ChatModelError,
    ChatRole,
    FinishReason,
    OfferedTools,
    StreamEnd,
    StreamItem,
)
from bot.texts.text import Text
from compaction.errors import CompletionError
from compaction.notes import condense_notes
from compaction.payload import MessageToolCall
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest
from rehearsal.roomtone.evenings.channel import LOUDNESS
from rehearsal.roomtone.evenings.plan import Fault
from rehearsal.roomtone.evenings.world import World
from rehearsal.roomtone.written.channel import ToneSynthesizer
from rehearsal.roomtone.written.scripted_model import ScriptedEndpoint
from voice.asr.port import Recognition, RecognitionRequest
from voice.audio import duration_s
from voice.errors import RecogniserError, SynthesisError
from voice.speaking.port import AudioChunk

TOOL: Final = "write_down"
# What people say before words that the bot shall answer, or do something with.
CALL, ORDER = "Roomtone, what about", "Roomtone, please write down"
# Longer than the bot waits for a first word; and shorter, but so long that people go on.
_SLOW_S: Final = 6.0
_FAILS = "It fails in this evening."


class EveningRecogniser:
    """Implements `voice.asr.port.Recogniser`: knows words by how loud they are. `texts`: of words, by their numbers."""

    def __init__(self, world: World) -> None:
        self.texts: dict[int, str] = {}
        self._world = world

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        await self._world.suffer(Fault.EARS_HANG, Fault.EARS_ERROR, RecogniserError(_FAILS))
        if self._world.has(Fault.EARS_CRASH):
            raise ZeroDivisionError(_FAILS)
        pcm = request.pcm
        numbers = dict.fromkeys((pcm[pcm > LOUDNESS] - LOUDNESS).tolist())
        return Recognition(
            text=" ".join(self.texts[each] for each in numbers),
            language="en",
            mean_logprob=-0.2,
            compression_ratio=1.0,
            no_speech_probability=0.0,
            duration_s=duration_s(pcm),
            compute_s=0.01,
            language_probability=0.99,
        )

    def confirm(self, speaker_id: int) -> None:
        """Do nothing. See `Recogniser.confirm`."""


class EveningEndpoint(ScriptedEndpoint):
    """A model's server that answers who calls the bot, with the last words that it was sent."""

    model = "evening"

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._calls = 0

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer, or the call of the tool, and its end."""
        world = self._world
        sent = " ".join(f"{each.content} {' '.join(call.arguments for call in each.tool_calls)}" for each in messages)
        world.used("prompt", sent)
        away = ChatModelError(Text("The model is away."), retryable=True)
        await world.suffer(Fault.MODEL_HANG, Fault.MODEL_ERROR, away)
        await asyncio.sleep(_SLOW_S if world.has(Fault.MODEL_SLOW) else 0.3)
        words, asked = world.words_in(sent), messages[-1]
        if world.has(Fault.MODEL_GARBAGE):
            yield "``` {{{ "
        elif ORDER in asked.content and tools.callable_now and TOOL in (each.name for each in tools.offers):
            self._calls += 1
            call = MessageToolCall(f"call-{self._calls}", TOOL, json.dumps({"what": " ".join(words[-2:])}))
            yield StreamEnd(FinishReason.TOOL_CALLS, (call,))
            return
        elif asked.role is ChatRole.TOOL or CALL in asked.content or ORDER in asked.content or "Typed" in asked.content:
            yield f"You spoke of {' and '.join(words[-2:])}. "
            await asyncio.sleep(0.2)
            yield f"Before that came {words[0] if words else 'nothing'}."
        else:
            yield SKIP
        yield StreamEnd(FinishReason.STOP)


class EveningSummariser(ExtractiveSummariser):
    """Folds with quotes. `shown`: the ids of the notes that each fold was given."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def fold(self, request: FoldRequest) -> Fold:
        world = self._world
        world.notes_in_folds.update(note.id for note in request.notes)
        if len(condense_notes(request.notes)) != len(request.notes):
            world.breaks(f"a fold counts {len(request.notes)} notes, more than it can tell of")
        texts = (*(turn.text for turn in (*request.before, *request.turns)), *(note.what for note in request.notes))
        known = (*(each.fact.text for each in request.known), *request.chapters, request.previous or "")
        world.used("fold", " ".join((*texts, *known)))
        await world.suffer(Fault.FOLD_HANG, Fault.FOLD_ERROR, CompletionError(_FAILS, retryable=True))
        await asyncio.sleep(0.5)
        return await super().fold(request)


class EveningVoice(ToneSynthesizer):
    """A voice that may fail. It says nothing while the bot was asked to be silent."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        self._world.used("said", text)
        if self._world.silenced and not self._world.has(Fault.CHAT, within_s=1e9):
            self._world.breaks("the bot speaks, and was asked to be silent")
        await self._world.suffer(Fault.VOICE_HANG, Fault.VOICE_ERROR, SynthesisError(_FAILS))
        async for chunk in super().stream(text):
            yield chunk


def make_tool(world: World, run: Callable[[str], None]) -> RoomTool:
    """Return a tool that waits for a press. `run`: gets what it is called with."""

    async def call(arguments: Mapping[str, object]) -> Result:
        run(str(arguments["what"]))
        await world.suffer(Fault.TOOL_HANG, Fault.TOOL_ERROR, ToolError(_FAILS))
        return Result("It is written down.", anybody)

    parameters = {
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    }
    return RoomTool(TOOL, "Write something down.", parameters, call)

"""Pipecat's context summarisation, in a real pipeline: user aggregator, language model service, assistant aggregator.

All settings are the defaults except those that all systems share: the same endpoint, temperature 0, the same window,
and a sentence in the prompt that limits the length of the summary. Runs in its own environment, see `peer_server`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from loguru import logger
from pipecat.frames.frames import (
    DataFrame,
    EndFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMMessagesAppendFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMAssistantAggregatorParams,
    LLMContextAggregatorPair,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.utils.context.llm_context_summarization import (
    DEFAULT_SUMMARIZATION_PROMPT,
    LLMAutoContextSummarizationConfig,
    LLMContextSummaryConfig,
)
from pipecat.workers.runner import WorkerRunner

PREFIX = "Conversation summary: "
MAX_SUMMARY_TOKENS = 400
TIMEOUT_S = 600.0
POLL_S = 0.01


@dataclass
class Mark(DataFrame):
    """A frame that arrives at the end of the pipeline after all frames queued before it."""


class End(FrameProcessor):
    """The end of the pipeline, which reports when a mark arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Note the arrival of a mark, and pass the frame on."""
        await super().process_frame(frame, direction)
        if isinstance(frame, Mark):
            self.arrived.set()
        await self.push_frame(frame, direction)


class PipecatPeer:
    """A running pipeline whose context Pipecat summarises."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.version = f"pipecat-ai {version('pipecat-ai')}"
        self._recent = request["recent"]
        self._context = LLMContext()
        service = OpenAILLMService(
            api_key=request["api_key"] or "none",
            base_url=request["base_url"],
            settings=OpenAILLMService.Settings(model=request["model"], temperature=0),
        )
        limit = f"The summary must be at most {request['max_chars']} characters long. Generate only the summary"
        config = LLMAutoContextSummarizationConfig(
            max_context_tokens=None,
            max_unsummarized_messages=request["recent"] + request["batch"] + 1,
            summary_config=LLMContextSummaryConfig(
                target_context_tokens=MAX_SUMMARY_TOKENS,
                min_messages_after_summary=request["recent"] + 1,
                summarization_prompt=DEFAULT_SUMMARIZATION_PROMPT.replace("Generate only the summary", limit),
                summarization_timeout=TIMEOUT_S,
            ),
        )
        pair = LLMContextAggregatorPair(
            self._context,
            assistant_params=LLMAssistantAggregatorParams(
                enable_auto_context_summarization=True, auto_context_summarization_config=config
            ),
        )
        self._end = End()
        self._summarizer = pair.assistant()._summarizer
        self._asked = self._applied = 0
        self._summarizer.add_event_handler("on_request_summarization", self._on_asked)
        self._summarizer.add_event_handler("on_summary_applied", self._on_applied)
        self._worker = PipelineWorker(
            Pipeline([pair.user(), service, pair.assistant(), self._end]),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the pipeline and wait until it runs."""
        started = asyncio.Event()

        async def on_started(*_: object) -> None:
            started.set()

        self._worker.add_event_handler("on_pipeline_started", on_started)
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self._worker)
        self._running = asyncio.create_task(runner.run(), name="pipeline")
        async with asyncio.timeout(30):
            await started.wait()

    async def hear(self, text: str, *, by_bot: bool) -> None:
        """Add a message and an empty reply, and wait until a summary is finished. A reply's end triggers the
        summariser.
        """
        self._end.arrived.clear()
        await self._worker.queue_frames(
            [
                LLMMessagesAppendFrame(messages=[_message(text, by_bot=by_bot)], run_llm=False),
                LLMFullResponseStartFrame(),
                LLMFullResponseEndFrame(),
                Mark(),
            ]
        )
        async with asyncio.timeout(30):
            await self._end.arrived.wait()
        async with asyncio.timeout(TIMEOUT_S + 30):
            while self._summarizer._summarization_in_progress:  # noqa: ASYNC110 - the library has no event for it
                await asyncio.sleep(POLL_S)

    async def snapshot(self) -> dict[str, Any]:
        """Return the current summary in the context."""
        return {
            "summary": self._summary(),
            "folds": self._applied,
            "failures": self._asked - self._applied,
            "messages": len(self._context.messages),
        }

    async def barge_in(self, turns: list[dict[str, Any]], turn_s: float) -> dict[str, Any]:
        """Start a real reply at each turn and interrupt it before the next turn."""
        for turn in turns:
            await self._worker.queue_frame(
                LLMMessagesAppendFrame(messages=[_message(turn["text"], by_bot=turn["by_bot"])], run_llm=True)
            )
            await asyncio.sleep(turn_s)
            await self._worker.queue_frame(InterruptionFrame())
        await asyncio.sleep(turn_s)
        behind = max(0, len(self._context.messages) - (self._applied > 0) - self._recent - 10)
        return {"asked": self._asked, "applied": self._applied, "behind": behind}

    async def close(self) -> None:
        """Stop the pipeline."""
        if self._running is not None:
            await self._worker.queue_frame(EndFrame())
            done, _ = await asyncio.wait({self._running}, timeout=10)
            if not done:
                self._running.cancel()

    async def _on_asked(self, *_: object) -> None:
        self._asked += 1

    async def _on_applied(self, *_: object) -> None:
        self._applied += 1

    def _summary(self) -> str:
        for message in self._context.messages:
            content = message.get("content", "")
            if isinstance(content, str) and content.startswith(PREFIX):
                return content.removeprefix(PREFIX)
        return ""


def _message(text: str, *, by_bot: bool) -> dict[str, str]:
    return {"role": "assistant" if by_bot else "user", "content": text}


async def open_peer(request: dict[str, Any]) -> PipecatPeer:
    """Return the running peer for one conversation; its `close` ends it. `request`: the fields of "open" that
    `peer_server` lists for a peer that remembers.
    """
    logger.remove()
    peer = PipecatPeer(request)
    await peer.start()
    return peer

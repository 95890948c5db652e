"""LangChain's `SummarizationMiddleware`, called as an agent calls it: before each model call.

All settings are the defaults except those that all systems share: the same endpoint, temperature 0, the same window,
and a sentence in the prompt that limits the length of the summary. Runs in its own environment, see `peer_server`.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph.message import add_messages

PREFIX = "Here is a summary of the conversation to date:\n\n"
# Enough tokens for the longest summary, so that the length does not decide the comparison.
MAX_SUMMARY_TOKENS = 400
TIMEOUT_S = 600.0


class LangChainPeer:
    """An agent's messages, which the middleware summarises."""

    def __init__(self, middleware: SummarizationMiddleware, recent: int) -> None:
        self.version = f"langchain {version('langchain')}"
        self._middleware = middleware
        self._recent = recent
        self._messages: list[Any] = []
        self._folds = 0
        self._failures = 0

    async def hear(self, text: str, *, by_bot: bool) -> None:
        """Add a message and call the middleware as before a model call."""
        self._add(text, by_bot=by_bot)
        try:
            await self._before_model()
        except Exception:  # noqa: BLE001 - the agent's call would fail here; the turn is kept and tried again
            self._failures += 1

    async def snapshot(self) -> dict[str, Any]:
        """Return the current summary among the messages."""
        return {
            "summary": self._summary(),
            "folds": self._folds,
            "failures": self._failures,
            "messages": len(self._messages),
        }

    async def barge_in(self, turns: list[dict[str, Any]], turn_s: float) -> dict[str, Any]:
        """Start a reply at each turn and cancel it before the next turn."""
        asked = 0
        for turn in turns:
            self._add(turn["text"], by_bot=turn["by_bot"])
            due = self._middleware._should_summarize(self._messages, self._middleware.token_counter(self._messages))
            asked += due
            reply = asyncio.create_task(self._before_model(), name="reply that is talked over")
            await asyncio.sleep(turn_s)
            reply.cancel()
            await asyncio.wait({reply})
        behind = max(0, len(self._messages) - (self._folds > 0) - self._recent - 10)
        return {"asked": asked, "applied": self._folds, "behind": behind}

    async def close(self) -> None:
        """Do nothing, because there is nothing to release."""

    def _add(self, text: str, *, by_bot: bool) -> None:
        message = AIMessage(text) if by_bot else HumanMessage(text)
        self._messages = list(add_messages(self._messages, [message]))

    async def _before_model(self) -> None:
        update = await self._middleware.abefore_model({"messages": self._messages}, None)
        if update is not None:
            self._messages = list(add_messages(self._messages, update["messages"]))
            self._folds += 1

    def _summary(self) -> str:
        for message in self._messages:
            if message.additional_kwargs.get("lc_source") == "summarization":
                return str(message.content).removeprefix(PREFIX)
        return ""


async def open_peer(request: dict[str, Any]) -> LangChainPeer:
    """Return the peer for one conversation. `request`: the fields of "open" that `peer_server` lists for a peer that
    remembers. Nothing is sent to the model yet.
    """
    model = ChatOpenAI(
        base_url=request["base_url"],
        api_key=request["api_key"] or "none",
        model=request["model"],
        temperature=0,
        max_tokens=MAX_SUMMARY_TOKENS,
        timeout=TIMEOUT_S,
    )
    limit = f"The extracted context must be at most {request['max_chars']} characters long.\n\n<messages>"
    recent, batch = request["recent"], request["batch"]
    middleware = SummarizationMiddleware(
        model=model,
        # One message more than the window and a batch, because the summary is a message too.
        trigger=("messages", recent + batch + 2),
        keep=("messages", recent + 1),
        summary_prompt=DEFAULT_SUMMARY_PROMPT.replace("<messages>", limit, 1),
    )
    return LangChainPeer(middleware, recent)

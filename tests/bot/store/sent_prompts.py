"""A prompt with parts of every form."""

from __future__ import annotations

from bot.store.prompts import SentPrompt
from compaction.model import Mode, Seq, SessionId
from compaction.payload import MessageToolCall, PartKind, make_part
from tests.compaction.turn_store_contract import EVENING, T0


def a_prompt(session_id: SessionId = EVENING, *, answer_to: int = 3, text: str = "Ada lives in Lisbon.") -> SentPrompt:
    """Return a prompt with parts of every form."""
    parts = (
        make_part("system", PartKind.SYSTEM, "You take part."),
        make_part("system", PartKind.EVICTION_NOTE, "[Left out.]", seq_from=Seq(0), seq_to=Seq(1)),
        make_part(
            "user", PartKind.TURN, f"{text} 🦊 \ud800", seq_from=Seq(2), seq_to=Seq(2), timestamp=T0, refs=("r",)
        ),
        make_part("assistant", PartKind.TOOL, "", tool_calls=(MessageToolCall("1", "look", "{}"),)),
        make_part("tool", PartKind.TOOL, "A map.", tool_call_id="1", name="look"),
    )
    return SentPrompt.of(parts, session_id, answer_to=answer_to, at=T0, mode=Mode.SUMMARY, cursor=2, summary_revision=1)

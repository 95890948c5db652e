"""What stands in a prompt for the turns without room, with `budget.summarize_on_truncate`: their best sentences. Pure.

Rules pick them, because a reply waits for no second model call. In the rolling mode nothing is summarised.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from compaction.budget.prompt import summarize_context
from compaction.context.build import SessionContext, left_out_turns
from compaction.errors import ContextOverflowError
from compaction.model import Mode, Turn
from compaction.payload import PartKind, PayloadPart, data_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.budget.trim import TrimOptions

# Most of the turns without room are folded soon.
EXCERPT_CHARS = 600


def payload_with_excerpt(
    context: SessionContext, build: Callable[..., tuple[PayloadPart, ...]], options: TrimOptions
) -> tuple[PayloadPart, ...]:
    """Return the payload that `build` makes of a context, with the excerpt of what it leaves out where there is room.

    `build`: takes the `excerpt` of `build_payload`. Raises ContextOverflowError as it does.
    """
    payload = build()
    if excerpt := excerpt_of(context, left_out_turns(context, payload), options):
        with suppress(ContextOverflowError):
            return build(excerpt=excerpt)
    return payload


def excerpt_of(context: SessionContext, turns: Sequence[Turn], options: TrimOptions) -> tuple[PayloadPart, ...]:
    """Return the best sentences of turns that are left out; nothing if none is worth it, or by the options."""
    if not options.summarize_on_truncate or context.mode is Mode.ROLLING:
        return ()
    text = summarize_context(turns, max_summary_chars=EXCERPT_CHARS).summary
    told = f"Of what is left out below: {text}"
    return (data_part(PartKind.SUMMARY, told, count=options.tool_outputs.count),) if text else ()

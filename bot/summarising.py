"""Which summariser folds the turns: the configured text model, or the embedded one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.errors import SetupError
from compaction.settings import SummariserKind
from compaction.summarisers.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.settings import LlmSettings
    from compaction.ports import Completion
    from compaction.settings import CompactionSettings
    from compaction.summarisers.port import Summariser


def summariser_for(kind: SummariserKind, completion: Completion | None, settings: CompactionSettings) -> Summariser:
    """Return the summariser that `kind` names. `completion` is the text model, None where none is configured.

    Raises `SetupError` when a model is asked for and there is none.
    """
    if kind is SummariserKind.EXTRACTIVE or (kind is SummariserKind.AUTO and completion is None):
        return ExtractiveSummariser()
    if completion is None:
        raise SetupError(
            "Folding with a language model needs one: set llm.base_url (for example http://127.0.0.1:11434/v1) or "
            "llm.api_key, and llm.model; or use the extractive summariser."
        )
    from compaction.summarisers.llm import LlmSummariser

    return LlmSummariser(completion, max_output_tokens=settings.max_output_tokens)


@asynccontextmanager
async def chosen_summariser(
    llm: LlmSettings, settings: CompactionSettings, kind: SummariserKind
) -> AsyncIterator[Summariser]:
    """Make the summariser with its own connection to the model, and close it."""
    if not llm.configured or kind is SummariserKind.EXTRACTIVE:
        yield summariser_for(kind, None, settings)
        return
    # Imported where it is needed: the library takes a second to load.
    from bot.llm.openai_chat import OpenAIChat

    async with OpenAIChat(llm) as model:
        yield summariser_for(kind, model, settings)

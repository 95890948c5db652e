"""Who recognises speech: an endpoint with the local model behind it, or the local model alone."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.health import Ailment
from voice.asr.fallback import FallbackRecognizer
from voice.asr.scheduler import QueuedRecognizer
from voice.asr.whisper import WhisperEngine
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.health import Health
    from bot.settings import LlmSettings
    from voice.asr.port import Recognizer
    from voice.asr.settings import AsrSettings

log = structlog.get_logger()


@asynccontextmanager
async def chosen_recognizer(
    settings: AsrSettings, *, llm: LlmSettings, health: Health | None = None
) -> AsyncIterator[Recognizer]:
    """Lend the recogniser that the settings name. `health` is told where to ask whether it works.

    The local model is loaded beside an endpoint too: what fails in the middle of an evening cannot wait for it.
    Raises `RecogniserError` when the local model is needed and cannot be loaded.
    """
    async with AsyncExitStack() as stack:
        if settings.engine == "local":
            yield await _local(stack, settings)
            return
        # Imported where it is needed: the library takes a second to load.
        from voice.asr.remote import RemoteRecognizer
        from voice.endpoint import Endpoint

        key = llm.key_for(settings.base_url, settings.api_key)
        endpoint = Endpoint(settings.base_url, settings.model, key, settings.timeout_s)
        remote = await stack.enter_async_context(RemoteRecognizer(endpoint))
        try:
            local = await _local(stack, settings)
        except RecogniserError as error:
            log.warning("no_local_recogniser", problem=str(error))
            yield remote
            return
        both = FallbackRecognizer(remote, local)
        if health is not None:
            health.watch(partial(_ailing, both, f"the speech recogniser {settings.model}"))
        yield both


def _ailing(recognizer: FallbackRecognizer, what: str) -> list[Ailment]:
    return [] if recognizer.outage is None else [Ailment(what, "the local one hears", recognizer.outage)]


async def _local(stack: AsyncExitStack, settings: AsrSettings) -> Recognizer:
    return await stack.enter_async_context(QueuedRecognizer(lambda: WhisperEngine(settings), settings))

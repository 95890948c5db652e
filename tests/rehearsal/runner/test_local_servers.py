"""A scenario's own model servers are started, the bot's settings point to them, and steps change how they behave."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from pydantic import ValidationError

from bot.llm.settings import LlmSettings
from rehearsal.runner.local_servers import ServerModels, open_local_servers
from rehearsal.runner.observations import ServerObservations
from rehearsal.script.scenario import ServerStep
from rehearsal.script.server_specs import ServersSpec
from tests.rehearsal.people.sounds import tone
from tests.rehearsal.servers.realtime_client import FakeModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import numpy as np
    from numpy.typing import NDArray

    from rehearsal.servers.realtime_behaviour import RealtimeEngines
    from rehearsal.servers.speech import SpeechEngine

ALL: dict[str, Any] = {
    "model": {"answers": [{"asked": ["island"], "say": "Ithaca."}]},
    "fallback": {"otherwise": "I stand in."},
    "speech": {},
    "realtime": {"expires_in_response": 2},
}


async def _speak(text: str) -> tuple[NDArray[np.int16], int]:
    return tone(0.1), 48_000


@asynccontextmanager
async def _voice() -> AsyncIterator[SpeechEngine]:
    yield _speak


@asynccontextmanager
async def _mind() -> AsyncIterator[RealtimeEngines]:
    yield FakeModel().engines()


MODELS = ServerModels(voice=_voice, realtime=_mind)


def behaviour(server: str, how: str, **more: Any) -> ServerStep:
    """Return a step that changes a server's behaviour."""
    return ServerStep.model_validate({"server": server, "conduct": how, **more})


async def posted(url: str, body: dict[str, Any]) -> tuple[int, str]:
    """Post a request and return the answer's status and body."""
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as answer:
        return answer.status, (await answer.read()).decode(errors="replace")


def test_a_model_behind_another_needs_that_one() -> None:
    """A fallback model needs a main model, because otherwise the bot would never ask the fallback."""
    with pytest.raises(ValidationError, match=r"needs \[servers\.model\]"):
        ServersSpec.model_validate({"fallback": {}})


@pytest.mark.asyncio
async def test_the_bot_is_pointed_at_what_there_is() -> None:
    """The settings have the address of each server, and each server behaves as the last step says."""
    async with open_local_servers(ServersSpec.model_validate(ALL), MODELS) as servers:
        settings = servers.settings
        assert settings["realtime.enabled"] is True
        assert str(settings["realtime.base_url"]).startswith("http://127.0.0.1:")
        asked = {"messages": [{"role": "user", "content": "Which island?"}]}
        status, answer = await posted(f"{settings['llm.base_url']}/chat/completions", asked)
        assert (status, json.loads(answer)["choices"][0]["message"]["content"]) == (200, "Ithaca.")
        await servers.set_behaviour(behaviour("model", "broken", first_token_s=1.0))
        assert (await posted(f"{settings['llm.base_url']}/chat/completions", asked))[0] == 500
        (behind,) = LlmSettings.model_validate(
            {"model": settings["llm.model"], "fallback_models": settings["llm.fallback_models"]}
        ).fallbacks()
        assert "I stand in." in (await posted(f"{behind.base_url}/chat/completions", asked))[1]
        await servers.set_behaviour(behaviour("fallback", "broken"))
        assert (await posted(f"{behind.base_url}/chat/completions", asked))[0] == 500
        spoken = {"input": "Hello.", "response_format": "pcm"}
        assert (await posted(f"{settings['speaking.base_url']}/audio/speech", spoken))[0] == 200
        await servers.set_behaviour(behaviour("speech", "broken"))
        assert (await posted(f"{settings['speaking.base_url']}/audio/speech", spoken))[0] == 500
        await servers.set_behaviour(behaviour("realtime", "expire"))
        await servers.set_behaviour(behaviour("realtime", "wrong_key"))
        assert servers.observed == ServerObservations()

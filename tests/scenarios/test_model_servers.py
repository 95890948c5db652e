"""The complete bot with the official client library: chat, speech, recognition and embeddings from local endpoints."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal


@pytest.mark.asyncio
async def test_an_evening_with_endpoints_for_everything(tmp_path: Path) -> None:
    """With an endpoint for every model, people are heard and answered as with local models, and no fallback is used."""
    played = await asyncio.to_thread(Program.rehearse(tmp_path, "hello", "--model-servers").wait)
    assert played.status == 0, played.printed
    assert played.expectation("nothing_raised")["passed"], played.printed
    assert "green bicycle" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    assert "The chat server has no language model and uses the embedded responder" in played.printed
    # A fallback to a model inside the process would have been logged as a warning.
    assert "remote_recogniser_failed" not in played.printed
    assert "voice_failed" not in played.printed

"""The pool of the proof answers as a real one does, until it is killed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.cluster.address import pool_endpoint
from rehearsal.servers.free_port import free_port
from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)
from tests.cluster_faults.pool import Pool
from tests.voice.recordings import voiced
from voice.asr.remote import RemoteRecogniser
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_pool_asks_for_the_token_hears_by_the_script_and_dies(tmp_path: Path) -> None:
    """A room reaches it as it reaches a pool that Ray runs."""

    async def hear(_: TranscriptionRequest) -> Transcription:
        return Transcription("as the script says")

    (tmp_path / "token").write_text("a-long-token")
    async with LocalTranscriptionServer(TranscriptionBehaviour(hear)) as script:
        pool = Pool(free_port(), script.base_url, tmp_path)
        endpoint = replace(pool_endpoint(pool.address, tmp_path), timeout_s=30.0)
        async with (
            pool.running(tmp_path),
            RemoteRecogniser(endpoint, is_own=True) as room,
            RemoteRecogniser(replace(endpoint, api_key="guessed"), is_own=True) as stranger,
        ):
            assert (await room.recognise(voiced(1), language="en", speaker_id=7)).text == "as the script says"
            with pytest.raises(RecogniserError, match="key"):
                await stranger.recognise(voiced(1), language="en")
            await pool.kill()
            with pytest.raises(RecogniserError, match="cannot be reached"):
                await room.recognise(voiced(1), language="en")

"""The local model servers, through the official client library: each does what its local model does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openai
import pytest

from bot.cli.model_servers import as_lines, glossary_of, model_servers
from config.load import load
from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_four_endpoints_as_a_provider_has_them(whisper_model_dir: Path) -> None:
    """What speech says, transcription hears; chat answers from what it is sent; embeddings have a direction."""
    models = REPOSITORY / "data" / "models"
    settings = load(
        overrides={
            "models.directory": str(models),
            "asr.model_dir": str(whisper_model_dir),
            "asr.device": "cpu",
        }
    )
    async with model_servers(settings) as served:
        clients = {
            section: openai.AsyncOpenAI(base_url=str(served[f"{section}.base_url"]), api_key="none", max_retries=0)
            for section in ("llm", "speaking", "asr", "recall")
        }
        sound = await clients["speaking"].audio.speech.create(
            model=str(served["speaking.model"]),
            voice="alloy",
            input="The lantern is on the table.",
            response_format="wav",
        )
        heard = await clients["asr"].audio.transcriptions.create(
            model=str(served["asr.model"]), file=("speech.wav", sound.content), language="en"
        )
        said = await clients["llm"].chat.completions.create(
            model=str(served["llm.model"]),
            messages=[
                {"role": "user", "content": "Ada: The lantern is on the table."},
                {"role": "user", "content": "Ben: Where is the lantern?"},
            ],
        )
        vectors = await clients["recall"].embeddings.create(model=str(served["recall.model"]), input=["lantern"])
        for client in clients.values():
            await client.close()
    assert "table" in heard.text
    assert "on the table" in str(said.choices[0].message.content)
    assert len(vectors.data[0].embedding) == 384
    assert 'asr.engine = "endpoint"' in "\n".join(as_lines(served))


def test_the_words_to_expect_come_out_of_any_prompt() -> None:
    """Ours, a bare list, and none."""
    assert glossary_of("Glossary: Roomtone, Ada.") == ("Roomtone", "Ada")
    assert glossary_of("Xiomara, Tarn") == ("Xiomara", "Tarn")
    assert glossary_of("") == ()

"""The local model servers, called through the official client library: each uses its local model."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import openai
import pytest

from bot.cli.rehearsal.chat_model import LocalLanguageModel, QuotingResponder
from bot.cli.rehearsal.model_servers import as_lines, chat_server, glossary_of, model_servers
from config.load import load
from rehearsal.servers.language_model import CONTEXT_TOKENS
from tests.fakes.llama import llama_python
from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_four_endpoints_as_a_provider_has_them(whisper_model_dir: Path) -> None:
    """Speech, transcription, chat and embeddings each work as a provider's endpoint does."""
    models = REPOSITORY / "data" / "models"
    settings = load(
        overrides={
            "models.directory": str(models),
            "asr.model_dir": str(whisper_model_dir),
            "asr.device": "cpu",
        }
    )
    async with model_servers(settings, QuotingResponder("no model is here")) as servers:
        served = servers.settings
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


@pytest.mark.asyncio
async def test_a_bot_is_told_of_the_language_model_behind_chat(tmp_path: Path) -> None:
    """The served settings name the language model and its context size, and the bot also summarises with that model."""
    model_file = tmp_path / "qwen2.5-tiny.gguf"
    model_file.write_bytes(b"")
    async with AsyncExitStack() as stack:
        mind = LocalLanguageModel(llama_python(tmp_path), model_file)
        served = (await chat_server(stack, load(), mind)).settings
        client = await stack.enter_async_context(
            openai.AsyncOpenAI(base_url=str(served["llm.base_url"]), api_key="none", max_retries=0)
        )
        assert [model.id async for model in client.models.list()] == [served["llm.model"]] == ["qwen2.5-tiny"]
    assert served["budget.max_context_tokens"] == CONTEXT_TOKENS
    assert "compaction.summariser" not in served
    # The bot accepts the served settings, so their names and values are valid.
    assert load(overrides=served).llm.first_token_timeout_s > load().llm.first_token_timeout_s


def test_the_words_to_expect_come_out_of_any_prompt() -> None:
    """The glossary is read from the bot's own prompt, from a plain list, and from an empty prompt."""
    assert glossary_of("Glossary: Roomtone, Ada.") == ("Roomtone", "Ada")
    assert glossary_of("Xiomara, Tarn") == ("Xiomara", "Tarn")
    assert glossary_of("") == ()

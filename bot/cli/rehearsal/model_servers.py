"""OpenAI-compatible servers on 127.0.0.1: chat, speech, transcription and embeddings.

Each server uses a local model; without a language model, chat uses the embedded responder. The bot talks to them
through the official client library, as to a provider, but no audio or text leaves the machine.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.cli.rehearsal.chat_model import LocalLanguageModel, answer_messages
from bot.embedding.minilm import MODEL_NAME, minilm_embedder
from bot.models.catalogue import EMBED_MINILM, VOICE_JOE
from bot.models.directory import ModelDirectory
from rehearsal.servers import embeddings, speech, transcription
from rehearsal.servers.chat import MODEL as CHAT_MODEL
from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from rehearsal.servers.language_model import CONTEXT_TOKENS, serve_model
from rehearsal.servers.upstream import Upstream
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.whisper import whisper_on_best_device
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bot.cli.rehearsal.chat_model import ChatBackend
    from config.schema import Settings
    from voice.audio import Pcm

# The longest timeouts allowed: a CPU reads a prompt at about forty tokens a second, slower if it is busy.
SLOW_MODEL: dict[str, object] = {
    "llm.first_token_timeout_s": 120.0,
    "llm.total_timeout_s": 300.0,
    "compaction.timeout_s": 300.0,
}
# The start of a Whisper glossary prompt. The words of a request's prompt become the expected words.
_GLOSSARY_HEAD = "Glossary:"


@dataclass(frozen=True, slots=True)
class ModelServers:
    """The running servers. `settings`: what makes a bot use them, by dotted name. `chat`: the chat server."""

    settings: Mapping[str, object]
    chat: LocalChatServer


@asynccontextmanager
async def model_servers(settings: Settings, backend: ChatBackend) -> AsyncIterator[ModelServers]:
    """Start all four servers and yield them.

    `backend`: the model behind chat. Without the embedding model there is no embeddings server. Raises `VoiceError` if
    the recogniser or the voice is missing, `RehearsalError` if a server or the language model cannot start.
    """
    async with AsyncExitStack() as stack:
        served = await chat_server(stack, settings, backend)
        others = await _speech(stack, settings)
        others |= await _transcription(stack, settings)
        others |= await _embeddings(stack, settings)
        yield ModelServers({**served.settings, **others}, served.chat)


async def chat_server(stack: AsyncExitStack, settings: Settings, backend: ChatBackend) -> ModelServers:
    """Start only the chat server, on `stack`. See `model_servers`."""
    if isinstance(backend, LocalLanguageModel):
        return await _language_model(stack, backend)
    names = (settings.brain.name, *settings.brain.wake_names)
    behaviour = ChatBehaviour(answer=lambda call: answer_messages(call.messages, names=names))
    server = await stack.enter_async_context(LocalChatServer(behaviour))
    # The embedded responder cannot summarise, so folding uses the extractive summariser.
    quoting = {"llm.base_url": server.base_url, "llm.model": CHAT_MODEL, "compaction.summariser": "extractive"}
    return ModelServers(quoting, server)


async def _language_model(stack: AsyncExitStack, backend: LocalLanguageModel) -> ModelServers:
    served = await stack.enter_async_context(serve_model(backend.python, backend.model_file))
    upstream = await stack.enter_async_context(Upstream(served.base_url, served.name))
    server = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=upstream)))
    thinking = {
        "llm.base_url": server.base_url,
        # The bot gets the model's own name, because the tokenizer is chosen by that name.
        "llm.model": served.name,
        "budget.max_context_tokens": CONTEXT_TOKENS,
        **SLOW_MODEL,
    }
    return ModelServers(thinking, server)


async def _speech(stack: AsyncExitStack, settings: Settings) -> dict[str, object]:
    directory = ModelDirectory(settings.models.directory).path(VOICE_JOE)
    voice = await stack.enter_async_context(PiperSynthesizer.open(directory, variety=0.0))

    async def speak(text: str) -> tuple[Pcm, int]:
        spoken = await voice.synthesize(text)
        return spoken.pcm, spoken.rate_hz

    server = await stack.enter_async_context(speech.LocalSpeechServer(speech.SpeechBehaviour(speak)))
    return {"speaking.engine": "endpoint", "speaking.base_url": server.base_url, "speaking.model": speech.MODEL}


async def _transcription(stack: AsyncExitStack, settings: Settings) -> dict[str, object]:
    recogniser = await stack.enter_async_context(QueuedRecogniser(whisper_on_best_device(settings.asr).load))

    async def hear(upload: transcription.TranscriptionRequest) -> transcription.Transcription:
        heard = await recogniser.recognise(
            upload.pcm, language=upload.language or None, glossary=glossary_of(upload.prompt)
        )
        return transcription.Transcription(
            heard.text, heard.language, heard.mean_logprob, heard.compression_ratio, heard.no_speech_probability
        )

    behaviour = transcription.TranscriptionBehaviour(hear)
    server = await stack.enter_async_context(transcription.LocalTranscriptionServer(behaviour))
    return {"asr.engine": "endpoint", "asr.base_url": server.base_url, "asr.model": transcription.MODEL}


async def _embeddings(stack: AsyncExitStack, settings: Settings) -> dict[str, object]:
    model_directory = ModelDirectory(settings.models.directory)
    if not model_directory.holds(EMBED_MINILM):
        return {}
    embedder = await stack.enter_async_context(minilm_embedder(model_directory.path(EMBED_MINILM)))

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await embedder.embed(texts)

    server = await stack.enter_async_context(embeddings.LocalEmbeddingsServer(embeddings.EmbeddingsBehaviour(embed)))
    return {"recall.embedder": "endpoint", "recall.base_url": server.base_url, "recall.model": MODEL_NAME}


def glossary_of(prompt: str) -> tuple[str, ...]:
    """Return the expected words of a request's prompt, in our glossary form or any other."""
    listed = prompt.strip().removeprefix(_GLOSSARY_HEAD).strip().rstrip(".")
    return tuple(term for each in listed.split(",") if (term := each.strip()))


def as_lines(served: Mapping[str, object]) -> list[str]:
    """Return the settings as lines of `roomtone.toml`."""
    return [f"  {name} = {_toml(value)}" for name, value in served.items()]


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)

"""OpenAI-compatible servers on 127.0.0.1 for what a bot asks of others: chat, speech, transcription, embeddings.

Behind each is the local model of the same kind; behind chat, where there is none, the embedded responder. So a bot,
ours or another's, can be run as with a provider's endpoints, through the official client library, and no sound or word
leaves the machine.
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
from voice.asr.scheduler import QueuedRecognizer
from voice.asr.whisper import WhisperEngine
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bot.cli.rehearsal.chat_model import ChatBackend
    from config.schema import Settings
    from voice.audio import Pcm

# As long as the bot can be made to wait: a processor reads a prompt at some forty tokens a second, less beside others.
SLOW_MODEL: dict[str, object] = {
    "llm.first_token_timeout_s": 120.0,
    "llm.total_timeout_s": 300.0,
    "brain.reply_timeout_s": 120.0,
    "compaction.timeout_s": 300.0,
}
# Whisper's own prompt for a glossary; a request's prompt is handed on as the words to expect.
_GLOSSARY_HEAD = "Glossary:"


@dataclass(frozen=True, slots=True)
class ModelServers:
    """The servers while they run. `settings`: with which a bot uses them, by dotted name; `chat`: the one for chat."""

    settings: Mapping[str, object]
    chat: LocalChatServer


@asynccontextmanager
async def model_servers(settings: Settings, mind: ChatBackend) -> AsyncIterator[ModelServers]:
    """Start the four and lend them.

    `mind`: what is behind chat. Embeddings are left out where their model is not here. Raises `VoiceError` when the
    recogniser or the voice is missing, `RehearsalError` when a server cannot listen or the language model does not
    start.
    """
    async with AsyncExitStack() as stack:
        served = await chat_server(stack, settings, mind)
        others = await _speech(stack, settings)
        others |= await _transcription(stack, settings)
        others |= await _embeddings(stack, settings)
        yield ModelServers({**served.settings, **others}, served.chat)


async def chat_server(stack: AsyncExitStack, settings: Settings, mind: ChatBackend) -> ModelServers:
    """Start the chat server alone, which `stack` ends. See `model_servers`."""
    if isinstance(mind, LocalLanguageModel):
        return await _language_model(stack, mind)
    names = (settings.brain.name, *settings.brain.wake_names)
    behaviour = ChatBehaviour(answer=lambda call: answer_messages(call.messages, names=names))
    server = await stack.enter_async_context(LocalChatServer(behaviour))
    # It quotes and does not summarise: folding is done without a model.
    quoting = {"llm.base_url": server.base_url, "llm.model": CHAT_MODEL, "compaction.summariser": "extractive"}
    return ModelServers(quoting, server)


async def _language_model(stack: AsyncExitStack, mind: LocalLanguageModel) -> ModelServers:
    served = await stack.enter_async_context(serve_model(mind.python, mind.model_file))
    upstream = await stack.enter_async_context(Upstream(served.base_url, served.name))
    server = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=upstream)))
    thinking = {
        "llm.base_url": server.base_url,
        # By its own name, since its vocabulary is told by it.
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
    recognizer = await stack.enter_async_context(QueuedRecognizer(lambda: WhisperEngine(settings.asr)))

    async def hear(upload: transcription.TranscriptionRequest) -> transcription.Transcription:
        heard = await recognizer.recognize(
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
    """Return the words to expect out of a request's prompt, whether they come as our glossary or as anything else."""
    listed = prompt.strip().removeprefix(_GLOSSARY_HEAD).strip().rstrip(".")
    return tuple(term for each in listed.split(",") if (term := each.strip()))


def as_lines(served: Mapping[str, object]) -> list[str]:
    """Return the settings as `roomtone.toml` has them, one line each, for people to copy."""
    return [f"  {name} = {_toml(value)}" for name, value in served.items()]


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)

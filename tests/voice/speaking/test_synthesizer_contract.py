"""The embedded engines, and one of them behind an OpenAI-compatible endpoint, keep the contract."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour
from tests.voice.speaking.synthesizer_contract import SynthesizerContract
from tests.voice.speaking.test_piper import VOICE
from voice.speaking import kokoro
from voice.speaking.kokoro import KokoroModel, KokoroStyle
from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from voice.speaking.embedded import EmbeddedSynthesizer
    from voice.speaking.port import Synthesizer


KOKORO = VOICE.parent / "voice-kokoro"


@pytest.fixture(scope="module")
def embedded_voice() -> Iterator[PiperSynthesizer]:
    """Yield the real voice. It is loaded once, because that takes a second or two, and belongs to no event loop."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(PiperSynthesizer.open(VOICE)))
        runner.run(stack.aclose())


class TestPiper(SynthesizerContract):
    """Runs the contract with the embedded voice."""

    @pytest.fixture
    def synthesizer(self, embedded_voice: PiperSynthesizer) -> Synthesizer:
        """Return the real voice."""
        return embedded_voice


@pytest.fixture(scope="module")
def kokoro_voice() -> Iterator[EmbeddedSynthesizer]:
    """Yield a voice of Kokoro. Loaded once, because that takes seconds."""
    if not (KOKORO / "model.onnx").is_file():
        pytest.skip("Kokoro is not here: roomtone models pull voice-kokoro")
    # The contract is about what is said; a machine that runs other tests too may take long.
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(kokoro, "SENTENCE_TIMEOUT_S", 120.0)
        stack = AsyncExitStack()
        model = runner.run(stack.enter_async_context(KokoroModel.open(KOKORO)))
        yield runner.run(model.voice(KokoroStyle("af_heart.bin", "en-us"), speed=1.0))
        runner.run(stack.aclose())


@pytest.mark.slow
class TestKokoro(SynthesizerContract):
    """Runs the contract with the second engine."""

    @pytest.fixture
    def synthesizer(self, kokoro_voice: EmbeddedSynthesizer) -> Synthesizer:
        """Return the voice."""
        return kokoro_voice


class TestEndpoint(SynthesizerContract):
    """Runs the contract with a local server that uses the embedded voice, through the real client."""

    @pytest_asyncio.fixture
    async def synthesizer(self, embedded_voice: PiperSynthesizer) -> AsyncIterator[Synthesizer]:
        """Yield a synthesizer that points at the local server."""

        async def engine(text: str) -> tuple[NDArray[np.int16], int]:
            speech = await embedded_voice.synthesize(text)
            return speech.pcm, speech.rate_hz

        async with LocalSpeechServer(SpeechBehaviour(engine)) as server:
            endpoint = SpeechEndpoint(
                base_url=server.base_url,
                model="m",
                voice="v",
            )
            async with OpenAISynthesizer(endpoint) as adapter:
                yield adapter

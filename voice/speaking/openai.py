"""A voice over HTTP: OpenAI's `/v1/audio/speech`, also served by Kokoro-FastAPI, Speaches and LocalAI.

This module sets the deadlines, passes sound on as it arrives, and turns the library's errors into one plain sentence
each. The spoken text never appears in a message.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import httpx2

from voice.endpoint import Endpoint, Remedies, describe_failure
from voice.errors import EndpointFailureError, SynthesisError
from voice.speaking.audio_decoder import EndlessAudioError, SpeechAudioDecoder, UndecodableAudioError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from voice.speaking.port import AudioChunk

# A sentence takes seconds. A server that sends more than this is not a speech endpoint.
MAX_SOUND_S = 180.0
# The same limit as 24 kHz PCM, for bodies that are not sound.
MAX_BYTES = 9_000_000
_QUOTED_CHARS = 120


# What people read of the sentences for the operator.
_NOT_SPOKEN = "The service that speaks for me does not answer at the moment."
_REMEDIES = Remedies(section="speaking", refused="speaking.model, speaking.voice_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEndpoint(Endpoint):
    """Address, model and voice of an endpoint.

    `timeout_s`: the longest wait for a sentence's first sound. `stall_s`: the longest wait between two pieces of it.
    `behind_s`: how far the sound may fall behind a person who speaks the sentence without a pause.
    """

    voice: str
    speed: float = 1.0
    timeout_s: float = 8.0
    # Sound that has already arrived plays during a stall, so only a little of the stall is heard as a pause.
    stall_s: float = 2.0
    # A server that is slower than speech breaks each sentence up by pauses, which add up.
    behind_s: float = 4.0


class OpenAISynthesizer:
    """One endpoint and one voice (`voice.speaking.port.Synthesizer`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* aborts the running request. Any
    number of tasks may use it at once.
    """

    def __init__(self, endpoint: SpeechEndpoint) -> None:
        self._endpoint = endpoint
        # The client does not retry: another voice takes over instead.
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        # The library imports its audio part on first use, which would block the event loop for a second.
        await asyncio.to_thread(lambda: self._client.audio.speech)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text` as the endpoint sends it. Raises `SynthesisError`."""
        endpoint = self._endpoint
        now = asyncio.get_running_loop().time
        sounds, next_by, behind_at = False, now() + endpoint.timeout_s, 0.0
        try:
            async with aclosing(self._sounds(text)) as stream:
                while True:
                    async with asyncio.timeout_at(next_by):
                        sound = await anext(stream, None)
                    if sound is None:
                        break
                    behind_at = (behind_at if sounds else now() + endpoint.behind_s) + sound.duration_s
                    sounds = True
                    yield sound
                    next_by = min(now() + endpoint.stall_s, behind_at)
        except SynthesisError:
            raise
        except TimeoutError as error:
            if not sounds:
                raise translate_error(error, endpoint) from error
            raise SynthesisError(
                "The voice {model} at {where} fell silent in the middle of a sentence. Look at its server's log, or "
                "take another voice.",
                model=endpoint.model,
                where=endpoint.where,
            ).for_people(_NOT_SPOKEN) from error
        except Exception as error:
            raise translate_error(error, endpoint) from error
        if not sounds and any(letter.isalnum() for letter in text):
            raise SynthesisError(
                "The voice {voice} at {where} sent no sound. Try another voice.",
                voice=endpoint.voice,
                where=endpoint.where,
            ).for_people(_NOT_SPOKEN)

    async def _sounds(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Send the request and yield the decoded sound."""
        endpoint = self._endpoint
        received = 0
        async with self._client.audio.speech.with_streaming_response.create(
            # JSON cannot carry lone surrogates.
            input=text.encode("utf-8", "replace").decode("utf-8"),
            model=endpoint.model,
            voice=cast("Any", endpoint.voice),
            # It starts soonest.
            response_format="pcm",
            speed=endpoint.speed,
        ) as response:
            content_type = response.headers.get("content-type", "")
            body = SpeechAudioDecoder(content_type, most_s=MAX_SOUND_S)
            try:
                async for piece in response.iter_bytes():
                    received += len(piece)
                    if received > MAX_BYTES:
                        raise EndlessAudioError
                    for sound in body.feed(piece):
                        yield sound
                for sound in body.end():
                    yield sound
            except EndlessAudioError as error:
                raise SynthesisError(
                    "{where} sent sound that did not end. Check speaking.base_url.", where=endpoint.where
                ).for_people(_NOT_SPOKEN) from error
            except UndecodableAudioError as error:
                raise self._unreadable(content_type) from error

    def _unreadable(self, content_type: str) -> SynthesisError:
        kind = content_type.partition(";")[0].strip().lower()
        return SynthesisError(
            "{where} sent {kind}, which is neither PCM nor WAV sound. Check that speaking.base_url points at an "
            "OpenAI-compatible API (it mostly ends in /v1).",
            where=self._endpoint.where,
            kind=kind[:_QUOTED_CHARS] or "?",
        ).for_people(_NOT_SPOKEN)


def translate_error(error: Exception, endpoint: SpeechEndpoint) -> SynthesisError:
    """Describe `error` in a sentence with the remedy, without keys or the spoken text."""
    why = describe_failure(error, _REMEDIES)
    # An unreachable server raises the library's own error, so this is a stream that broke off.
    if isinstance(error, httpx2.HTTPError) and not isinstance(error, httpx2.TimeoutException):
        why = EndpointFailureError("broke off in the middle of a sentence. Try again, or look at its server's log")
    described = SynthesisError(
        "The voice {model} at {where} {why}.", model=endpoint.model, where=endpoint.where, why=why
    )
    return described.for_people(_NOT_SPOKEN)

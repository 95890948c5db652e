"""The recogniser for an endpoint, through the real client library, and what hears in its place when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionMode,
    TranscriptionRequest,
)
from tests.fakes.brain import until
from tests.fakes.hearing import CannedRecogniser
from tests.fakes.loop_time import pass_loop_time
from tests.patience import PATIENCE_S
from tests.voice.recordings import bicycle, voiced
from voice.asr.fallback import FallbackRecogniser, RemoteOutcome
from voice.asr.language_names import language_code
from voice.asr.port import Recognition, RecognitionRequest
from voice.asr.remote import DETECTED_PROBABILITY, RemoteRecogniser
from voice.endpoint import Endpoint
from voice.errors import (
    RecogniserError,
    RecogniserLateError,
    RecogniserOverloadedError,
    RecogniserUnreachableError,
)

SECRET, WORDS = "sk-secret", "Bo brings the lantern."
HEARD = Transcription(WORDS, "de", mean_logprob=-0.4, compression_ratio=1.2, no_speech_probability=0.1)


async def lantern(upload: TranscriptionRequest) -> Transcription:
    """Return the same transcription for every upload."""
    return HEARD


@asynccontextmanager
async def endpoint(
    model: str = "whisper-1", *, timeout_s: float = PATIENCE_S, **behaviour: Any
) -> AsyncIterator[tuple[RemoteRecogniser, LocalTranscriptionServer]]:
    """Start a server with this behaviour and open a recogniser that points at it."""
    async with LocalTranscriptionServer(TranscriptionBehaviour(lantern, **behaviour)) as server:
        where = Endpoint(server.base_url, model, SECRET, timeout_s)
        async with RemoteRecogniser(where) as recogniser:
            yield recogniser, server


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[RemoteRecogniser]:
    """Open a recogniser that gets this answer."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", answer)
    async with TestServer(app) as server:
        where = Endpoint(str(server.make_url("/v1")), "whisper-1", timeout_s=PATIENCE_S)
        async with RemoteRecogniser(where) as recogniser:
            yield recogniser


async def test_what_is_asked_for() -> None:
    """A request has every sample, the model, the language and the expected words, and asks for Whisper's figures."""
    pcm = bicycle()
    async with endpoint() as (recogniser, server):
        await recogniser.recognise(RecognitionRequest(pcm, language="en", glossary=("Roomtone", "Ada")))
    [call] = server.calls
    np.testing.assert_array_equal(call.pcm, pcm)
    assert (call.model, call.language, call.prompt) == ("whisper-1", "en", "Glossary: Roomtone, Ada.")
    assert (call.response_format, call.wants_logprobs, call.key) == ("verbose_json", False, SECRET)


async def test_what_is_left_open_is_not_sent() -> None:
    """Without a language and a glossary neither is sent, and the endpoint reports the language that it detected."""
    async with endpoint(language_names={"de": "german"}) as (recogniser, server):
        heard = await recogniser.recognise(RecognitionRequest(bicycle()))
    assert (server.calls[0].language, server.calls[0].prompt) == ("", "")
    assert (heard.text, heard.language) == (WORDS, "de")
    assert heard.mean_logprob == pytest.approx(-0.4)
    assert heard.no_speech_probability == pytest.approx(0.1)


async def test_a_language_that_nobody_speaks_counts_as_undetected() -> None:
    """The endpoint may detect any; the words are recognised again in one that is spoken (`Transcriber`)."""
    async with endpoint(language_names={"de": "german"}) as (recogniser, server):
        assert (
            await recogniser.recognise(RecognitionRequest(bicycle(), language=("en", "fr")))
        ).language_probability == 0.0
        assert (
            await recogniser.recognise(RecognitionRequest(bicycle(), language=("en", "de")))
        ).language_probability > 0.5
    assert [call.language for call in server.calls] == ["", ""]


async def test_a_model_without_whispers_figures_is_asked_for_log_probabilities() -> None:
    """If a model refuses to give Whisper's figures, the log probabilities of its tokens are requested from then on."""
    async with endpoint(formats=frozenset({"json"})) as (recogniser, server):
        first = await recogniser.recognise(RecognitionRequest(bicycle(), language="en"))
        second = await recogniser.recognise(RecognitionRequest(bicycle(), language="en"))
    assert [call.response_format for call in server.calls] == ["verbose_json", "json", "json"]
    assert all(call.wants_logprobs for call in server.calls[1:])
    assert first.mean_logprob == second.mean_logprob == pytest.approx(-0.4)
    assert first.language == "en"


@pytest.mark.parametrize(
    ("behaviour", "remedy"),
    [
        ({"mode": TranscriptionMode.STALL}, "in time"),
        ({"mode": TranscriptionMode.CUT}, "reached"),
        ({"mode": TranscriptionMode.GARBAGE}, "not a transcription"),
        ({"mode": TranscriptionMode.WORDLESS}, "not a transcription"),
        ({"mode": TranscriptionMode.WRONG_KEY}, "asr.api_key"),
        ({"mode": TranscriptionMode.UNKNOWN_MODEL}, "asr.model"),
        ({"mode": TranscriptionMode.RATE_LIMITED}, "rate limit"),
        ({"mode": TranscriptionMode.REFUSED}, "status 400"),
        ({"mode": TranscriptionMode.BROKEN}, "status 500"),
    ],
)
async def test_failures_are_plain_sentences(
    behaviour: dict[str, Any], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failure is one sentence with a remedy and without the key or the words, and the next call works."""
    async with endpoint(**behaviour) as (recogniser, server):
        asking = asyncio.create_task(recogniser.recognise(RecognitionRequest(bicycle(), language="en")))
        if behaviour.get("mode") is TranscriptionMode.STALL:
            await until(lambda: bool(server.calls))
            pass_loop_time(monkeypatch, PATIENCE_S)
        with pytest.raises(RecogniserError, match=remedy) as caught:
            await asking
        assert SECRET not in str(caught.value)
        assert "lantern" not in str(caught.value)
        assert "\n" not in str(caught.value)
        server.behaviour = TranscriptionBehaviour(lantern)
        assert (await recogniser.recognise(RecognitionRequest(bicycle(), language="en"))).text == WORDS


@pytest.mark.parametrize(
    ("told", "probability"),
    [
        ({"language_probability": 0.75}, 0.75),
        ({"language_probability": 0.0}, 0.0),
        ({"language_probability": None}, DETECTED_PROBABILITY),
        ({"language_probability": 7}, 1.0),
        ({"language_probability": -1}, 0.0),
        ({"language_probability": True}, DETECTED_PROBABILITY),
        ({"language_probability": "1.0"}, DETECTED_PROBABILITY),
        ({"language_probability": float("nan")}, DETECTED_PROBABILITY),
        ({}, DETECTED_PROBABILITY),
    ],
)
async def test_only_our_own_recognisers_tell_how_sure_the_language_is(told: dict[str, Any], probability: float) -> None:
    """What is no probability is made one or not believed."""
    async with answering(json.dumps({"text": WORDS, **told}).encode()) as recogniser:
        heard = await recogniser.recognise(RecognitionRequest(bicycle()))
    assert heard.language_probability == probability


async def test_half_a_character_costs_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint may end its text in the middle of a character. JSON can carry that as a lone surrogate."""
    async with answering(b'{"text": "We leave at nine \\ud83d"}') as recogniser:
        heard = await recogniser.recognise(RecognitionRequest(bicycle()))
    assert heard.text == "We leave at nine \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b'{"text": 3}',
        b'{"text": "' + b"a" * 5_000 + b'"}',
        b'{"text": "a", "logprobs": [{"logprob": -1e308}, {"logprob": -1e308}]}',
        b"\xff",
        b"",
        b"[" * 5_000,
    ],
)
async def test_what_is_no_answer_is_said(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer that is no transcription raises the same error."""
    async with answering(body) as recogniser:
        with pytest.raises(RecogniserError, match="transcription"):
            await recogniser.recognise(RecognitionRequest(bicycle()))


def test_languages_are_known_by_name_code_and_locale() -> None:
    """A language is recognised by name, code or locale. Any other text counts as no language."""
    told = ("English", "en", "en-GB", "pt_BR", "yue", "lao", "", "the one of the north")
    assert [language_code(one) for one in told] == ["en", "en", "en", "pt", "yue", "lo", "", ""]


async def test_a_busy_endpoint_drops_interims_and_is_not_broken() -> None:
    """Too many requests is a failure for finished speech, which the local model takes; an interim is just dropped."""
    async with endpoint(mode=TranscriptionMode.RATE_LIMITED) as (recogniser, _):
        with pytest.raises(RecogniserOverloadedError):
            await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))
        with pytest.raises(RecogniserError) as failed:
            await recogniser.recognise(RecognitionRequest(voiced(1)))
        assert not isinstance(failed.value, RecogniserOverloadedError)


async def test_guesses_leave_room_for_finished_speech() -> None:
    """Half of the places are for interims, and one for which there is none is dropped like any under load. Finished
    speech does not wait until the endpoint has answered them.
    """
    async with LocalTranscriptionServer(TranscriptionBehaviour(lantern, TranscriptionMode.STALL)) as server:
        where = Endpoint(server.base_url, "whisper-1", timeout_s=PATIENCE_S)
        async with RemoteRecogniser(where, calls_at_once=2) as recogniser:
            guess = asyncio.create_task(
                recogniser.recognise(RecognitionRequest(bicycle(), language="en", interim=True))
            )
            await until(lambda: len(server.calls) == 1)
            with pytest.raises(RecogniserOverloadedError, match="busy"):
                await recogniser.recognise(RecognitionRequest(bicycle(), language="en", interim=True))
            server.behaviour.mode = TranscriptionMode.ANSWER
            assert (await recogniser.recognise(RecognitionRequest(bicycle(), language="en"))).text == WORDS
            assert not guess.done()
            guess.cancel()


BROKEN = RecogniserError("It is down.")


class BusyRecogniser(CannedRecogniser):
    """Answers nothing but finished speech."""

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        heard = await super().recognise(request)
        if request.interim or request.careful:
            raise BROKEN
        return heard


def both(*first: str | RecogniserError) -> tuple[FallbackRecogniser, CannedRecogniser, CannedRecogniser, list[float]]:
    """Return a fallback recogniser whose first recogniser gives these results, both its recognisers, and the clock."""
    clock = [0.0]
    one, two = CannedRecogniser(*first, otherwise="from afar"), CannedRecogniser(otherwise="from here")
    return FallbackRecogniser(one, two, monotonic=lambda: clock[0]), one, two, clock


async def test_what_the_first_cannot_hear_the_second_does() -> None:
    """If the first recogniser fails, the second gets the same sound, language and glossary. The next utterance goes to
    the first again.
    """
    recogniser, first, second, _ = both(BROKEN)
    pcm = voiced(1)
    heard = await recogniser.recognise(RecognitionRequest(pcm, language="en", glossary=("Ada",), speaker_id=1))
    assert heard.text == "from here"
    assert second.sounds[0] is pcm
    assert second.asked == [(1, "en", ("Ada",))]
    assert (await recogniser.recognise(RecognitionRequest(pcm, language="en"))).text == "from afar"
    assert len(first.sounds) == 2


async def test_a_trial_that_tells_nothing_is_made_again_at_once() -> None:
    """A guess that is shed, or dropped because its speaker goes on, does not keep the first recogniser out of use."""
    recogniser, first, second, clock = both(BROKEN, BROKEN, RecogniserOverloadedError("Busy."))
    for _ in range(2):
        await recogniser.recognise(RecognitionRequest(voiced(1), language="en"))
    clock[0] = 61
    with pytest.raises(RecogniserOverloadedError):
        await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))
    first.gate.clear()
    guess = asyncio.create_task(recogniser.recognise(RecognitionRequest(voiced(1), interim=True)))
    await asyncio.sleep(0)
    guess.cancel()
    first.gate.set()
    await asyncio.gather(guess, return_exceptions=True)
    assert recogniser.outage is not None
    assert len(second.sounds) == 2, "neither guess was passed on"
    assert (await recogniser.recognise(RecognitionRequest(voiced(1), language="en"))).text == "from afar"
    assert recogniser.outage is None


async def test_a_right_guess_is_told_to_both() -> None:
    """A confirmation goes to both recognisers, because either may hold the interim request."""
    recogniser, first, second, _ = both()
    recogniser.confirm(7)
    assert (first.confirmed, second.confirmed) == ([7], [7])


async def test_interims_that_fail_do_not_open_the_breaker_while_finished_speech_is_served() -> None:
    """A busy recogniser leaves interims and careful passes unanswered and serves finished speech. It is not broken,
    and what it does not hear the second one does.
    """
    first, second = BusyRecogniser(otherwise="from afar"), CannedRecogniser(otherwise="from here")
    recogniser = FallbackRecogniser(first, second, monotonic=lambda: 0.0)
    for _ in range(5):
        for _ in range(3):
            assert (await recogniser.recognise(RecognitionRequest(voiced(1), careful=True))).text == "from here"
        texts = [(await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))).text for _ in range(3)]
        # Those after a failure are sent as finished speech, to know whether the recogniser works.
        assert texts == ["from afar", "from here", "from afar"]
        assert recogniser.outage is None
    assert [one for one in first.interims if one] == [True] * 5


async def test_interims_alone_find_out_that_the_first_is_away() -> None:
    """After an interim that failed, the next ones are sent as finished speech, which count: where all speech is
    recognised in pauses, a recogniser that is away is left alone after three.
    """
    recogniser, first, second, clock = both(*[BROKEN] * 3)
    for _ in range(5):
        assert (await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))).text == "from here"
    assert first.interims == [True, False, False]
    assert second.interims == [True] * 5
    outage = recogniser.outage
    assert outage is not None
    clock[0] = 61
    assert (await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))).text == "from afar"
    assert recogniser.outage is None
    assert (await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))).text == "from afar"
    assert first.interims[3:] == [False, True], "the trial tells for certain, and then nothing is in doubt"


@pytest.mark.parametrize("asked", [{"interim": True}, {"careful": True}])
async def test_one_that_cannot_be_reached_is_left_alone_after_two_requests_of_any_kind(asked: dict[str, Any]) -> None:
    """No load explains a connection that is refused, so each request counts, and /status soon says so."""
    recogniser, first, _, _ = both(*[RecogniserUnreachableError("Nobody answers.")] * 2)
    for _ in range(3):
        assert (await recogniser.recognise(RecognitionRequest(voiced(1), **asked))).text == "from here"
    assert len(first.sounds) == 2
    assert recogniser.outage is not None


class SlowRecogniser(CannedRecogniser):
    """Takes two seconds for each request. `clock`: the time, in its only element."""

    def __init__(self, answer: str | RecogniserError, clock: list[float]) -> None:
        super().__init__(answer)
        self._clock = clock

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        self._clock[0] += 2.0
        return await super().recognise(request)


@pytest.mark.parametrize(
    ("answer", "outcome", "second_hears"),
    [
        ("from afar", RemoteOutcome.COMPLETED, False),
        (RecogniserOverloadedError("Busy."), RemoteOutcome.SHED, False),
        (RecogniserUnreachableError("Nobody answers."), RemoteOutcome.UNREACHABLE, True),
        (RecogniserLateError("Too slow."), RemoteOutcome.TIMED_OUT, True),
        (BROKEN, RemoteOutcome.FAILED, True),
    ],
)
async def test_what_became_of_a_request_is_told(
    answer: str | RecogniserError, outcome: RemoteOutcome, second_hears: bool
) -> None:
    """Once for each request, with the seconds that the first recogniser took."""
    clock, told, second = [0.0], list[tuple[RemoteOutcome, float]](), CannedRecogniser()
    recogniser = FallbackRecogniser(
        SlowRecogniser(answer, clock), second, monotonic=lambda: clock[0], observe=lambda *each: told.append(each)
    )
    with contextlib.suppress(RecogniserOverloadedError):
        await recogniser.recognise(RecognitionRequest(voiced(1), interim=True))
    assert told == [(outcome, 2.0)]
    assert bool(second.sounds) == second_hears

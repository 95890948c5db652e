"""What people read when an endpoint fails, and what the operator reads."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx2
import openai
import psycopg
import pytest

from bot.brain.replier import TOO_SLOW
from bot.health import FaultKind, database_fault, outage_fault
from bot.llm.budgeted import Budget
from bot.llm.endpoint_errors import translate_error as model_error
from bot.llm.model_calls import OPERATOR
from bot.llm.openai_vision import OpenAIVision
from bot.llm.port import NO_WORDS
from bot.store.dialects.postgresql_sql import postgresql_failure
from bot.store.dialects.sqlite_sql import sqlite_failure
from bot.store.rows import UnreadableRowError, read_from
from bot.texts.text import Text, in_language, joined, sentence_of
from compaction.errors import ContextOverflowError, StoreError
from compaction.settings import BudgetSettings
from voice.asr.remote import translate_error as recogniser_error
from voice.circuit_breaker import Outage
from voice.endpoint import Endpoint
from voice.realtime.connection import ErrorMessages
from voice.screen.port import VisionError, VisionRequest
from voice.speaking.openai import SpeechEndpoint
from voice.speaking.openai import translate_error as voice_error

WHERE = "http://192.168.7.9:11434/v1"
# An address, a setting, a command of the operator.
OPERATORS = re.compile(r"https?://|127\.|192\.168|11434|\b[a-z]+\.[a-z]+_?[a-z]+\b|`")
REQUEST = httpx2.Request("POST", WHERE)


def failures() -> list[Exception]:
    """Return one of each kind of failure that the client library tells."""

    def refused(status: int, kind: type[openai.APIStatusError]) -> openai.APIStatusError:
        return kind("The path /srv is wrong", response=httpx2.Response(status, request=REQUEST), body=None)

    return [
        TimeoutError(),
        openai.APITimeoutError(request=REQUEST),
        openai.APIConnectionError(request=REQUEST),
        refused(401, openai.AuthenticationError),
        refused(404, openai.NotFoundError),
        refused(429, openai.RateLimitError),
        refused(500, openai.InternalServerError),
        refused(400, openai.BadRequestError),
        ValueError("no JSON"),
    ]


def endpoint_errors() -> Iterator[Exception]:
    messages = ErrorMessages("gpt-realtime", WHERE)
    speech = SpeechEndpoint(base_url=WHERE, model="tts", voice="nova")
    for failure in failures():
        yield model_error(failure, model="qwen", where=WHERE)
        yield recogniser_error(failure, Endpoint(WHERE, "whisper-1"))
        yield voice_error(failure, speech)
        yield messages.translate(failure)
    yield messages.for_code("invalid_api_key")
    yield messages.ended()
    yield ContextOverflowError(current=9, maximum=8)


def store_errors() -> Iterator[StoreError]:
    place, path = "postgresql://127.0.0.1:5432/rooms", Path("/data/roomtone.db")
    for state in ("08006", "25006", "28P01", "3D000", "42501", "42P01", "53100", "53300", "55P03", "58030", "XX001"):
        yield postgresql_failure(psycopg.errors.lookup(state)("x"), place)
    for message in ("password", "certificate", "does not exist", "too many clients", "closed", "unreachable"):
        yield postgresql_failure(psycopg.OperationalError(message), place)
    for name in ("FULL", "READONLY", "BUSY", "CORRUPT", "NOTADB", "CANTOPEN", "PERM", "IOERR", "NOMEM", "ERROR"):
        error = sqlite3.OperationalError("x")
        error.sqlite_errorname = f"SQLITE_{name}"
        yield sqlite_failure(error, path)
    for failure in (TimeoutError(), OSError(13, "Permission denied"), ValueError()):
        yield postgresql_failure(failure, place)
        yield sqlite_failure(failure, path)
    row = SimpleNamespace(id=1, session_id="evening")
    with pytest.raises(UnreadableRowError) as unreadable:
        read_from("turns")(lambda _: int("x"))(row)  # type: ignore[arg-type]
    yield unreadable.value


@pytest.mark.parametrize("language", ["en", "de"])
def test_people_read_no_place_of_the_database(language: str) -> None:
    """They read that it does not answer, is full, or cannot be written. The log has the whole sentence."""
    for error in store_errors():
        shown = in_language(database_fault(error).sentence, language).replace("`roomtone tail`", "")
        assert not OPERATORS.search(shown), shown
        assert OPERATORS.search(str(error)), error


@pytest.mark.parametrize("language", ["en", "de"])
def test_people_read_no_address_and_no_setting(language: str) -> None:
    """Neither alone nor as a part of another sentence, nor in /status."""
    told = [sentence_of(error) for error in endpoint_errors()]
    for sentence in (*told, NO_WORDS, TOO_SLOW):
        for shown in (
            sentence,
            joined(("Hello.", sentence)),
            Text("I could not join {channel}. {error}", channel="Den", error=sentence),
        ):
            assert not OPERATORS.search(in_language(shown, language)), sentence
    for error in endpoint_errors():
        part, instead = Text("Speech-to-speech"), Text("I answer from memory")
        fault = outage_fault(FaultKind.MODELS, part, instead, Outage(0.0, None, error))
        assert not OPERATORS.search(in_language(fault.status(60.0), language))


def test_the_operator_reads_address_and_remedy() -> None:
    """The log has the whole sentence, and so has whoever makes a string of it."""
    for error in (model_error(failure, model="qwen", where=WHERE) for failure in failures()[2:4]):
        assert WHERE in str(error)
        assert "llm." in f"{sentence_of(error)}"
        assert WHERE in joined(("Hello.", Text("I cannot come. {why}", why=error)))


async def test_a_vision_model_that_fails_is_told_without_its_address() -> None:
    """Share pages and /watch show its error."""
    gone = Endpoint("http://127.0.0.1:9", "eyes", timeout_s=5.0)
    async with OpenAIVision(gone, Budget(BudgetSettings())) as model:
        with pytest.raises(VisionError, match=r"127\.0\.0\.1:9") as failed:
            await model.read(lambda: VisionRequest(b"\xff\xd8picture", who="Ada"), payer=OPERATOR)
    assert not OPERATORS.search(in_language(sentence_of(failed.value), "en"))

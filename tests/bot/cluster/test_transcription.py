"""What the pool's recognisers accept, what they refuse, and what they answer."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import wave
from dataclasses import fields, make_dataclass, replace
from http import HTTPStatus

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cluster import transcription
from bot.cluster.transcription import (
    MAX_UPLOAD_BYTES,
    PATH,
    Answer,
    PooledUtterance,
    TranscriptionRefusedError,
    check_caller,
    utterance_of,
    verbose_json,
)
from tests.fakes.recogniser import recognition
from voice.asr.glossary import GLOSSARY_MAX_BYTES, glossary_prompt
from voice.asr.pool_request import CAREFUL_HEADER, INTERIM_HEADER, LONGEST_S, SPEAKER_HEADER
from voice.asr.port import TextEnd
from voice.asr.text_end import ReaderFault

TOKEN = "0123"
GOOD = {"authorization": f"Bearer {TOKEN}", "content-length": "64000"}


def wav(samples: int = 16_000, *, rate_hz: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    """Return a WAV file of ones."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate_hz)
        writer.writeframes(b"\x01\x00" * samples)
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "method", "path", "status"),
    [
        ({"authorization": "Bearer 01234"}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({"authorization": ""}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({"authorization": "Bearer \u00e9"}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({}, "POST", "/", HTTPStatus.NOT_FOUND),
        ({}, "GET", PATH, HTTPStatus.METHOD_NOT_ALLOWED),
        ({"content-length": ""}, "POST", PATH, HTTPStatus.LENGTH_REQUIRED),
        ({"content-length": "-1"}, "POST", PATH, HTTPStatus.LENGTH_REQUIRED),
        ({"content-length": str(MAX_UPLOAD_BYTES + 1)}, "POST", PATH, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_a_caller_is_checked_before_the_sound_is_read(
    change: dict[str, str], method: str, path: str, status: HTTPStatus
) -> None:
    """Without the token, at another path, by another method, or without an honest length nothing is read."""
    with pytest.raises(TranscriptionRefusedError) as refused:
        check_caller({**GOOD, **change}, method=method, path=path, token=TOKEN)
    assert refused.value.status is status
    check_caller(GOOD, method="POST", path=PATH, token=TOKEN)


def test_an_utterance_is_what_was_sent() -> None:
    """Sound, language, glossary, speaker and whether it is unfinished come out as the client put them in."""
    headers = {SPEAKER_HEADER.lower(): "42", INTERIM_HEADER.lower(): "1", CAREFUL_HEADER.lower(): "1"}
    form = {"language": "de", "prompt": glossary_prompt(("Roomtone", "Ada"))}
    utterance = utterance_of(form, wav(), headers)
    assert (utterance.language, utterance.glossary) == ("de", ("Roomtone", "Ada"))
    assert (utterance.speaker_id, utterance.interim, utterance.careful) == (42, True, True)
    np.testing.assert_array_equal(utterance.pcm, np.ones(16_000, np.int16))


@pytest.mark.parametrize(
    "kept", [utterance_of({"language": "de"}, wav(), {}), Answer(HTTPStatus.OK, {"text": "hello"})]
)
def test_another_release_reads_what_it_knows_by_name(
    kept: PooledUtterance | Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines are updated one after the other: one with a field more gives no field the value of another."""
    kind = type(kept)
    known = [(each.name, each.type) for each in fields(kind)]
    newer = make_dataclass(kind.__name__, [("words", str), *known], frozen=True, namespace={"__module__": __name__})
    written = pickle.dumps(kept)
    monkeypatch.setattr(transcription, kind.__name__, newer)
    read = pickle.loads(written)
    assert isinstance(read, newer)
    for name, _ in known:
        np.testing.assert_equal(getattr(read, name), getattr(kept, name))


def test_what_was_not_sent_is_left_open() -> None:
    """Any client of OpenAI's API may ask: without a language it is detected, without a speaker nobody is told apart."""
    utterance = utterance_of({}, wav(), {})
    assert (utterance.language, utterance.glossary, utterance.speaker_id) == (None, (), None)
    assert not utterance.interim
    assert not utterance.careful


@pytest.mark.parametrize(
    "sound", [b"", b"RIFF", wav(rate_hz=48_000), wav(channels=2), wav(width=1), wav()[:20], b"\xff\xfb" * 400]
)
def test_other_sound_is_refused(sound: bytes) -> None:
    """Only mono WAV with 16 bits at 16 kHz is read; everything else is refused with a sentence."""
    with pytest.raises(TranscriptionRefusedError) as refused:
        utterance_of({}, sound, {})
    assert refused.value.status is HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("language", ["english", "d3", "../x", "<|en|>", "ж"])
def test_a_language_is_a_code(language: str) -> None:
    """What is no code of two or three letters does not reach the model."""
    with pytest.raises(TranscriptionRefusedError, match="code"):
        utterance_of({"language": language}, wav(1), {})


def test_no_more_than_half_a_minute_is_kept() -> None:
    """Longer sound is cut, as in the local recogniser."""
    assert len(utterance_of({}, wav(int(LONGEST_S * 16_000) + 5), {}).pcm) == LONGEST_S * 16_000


@given(sound=st.binary(max_size=200), prompt=st.text(max_size=1_000), speaker=st.text(max_size=30))
def test_hostile_requests_are_refused_or_bounded(sound: bytes, prompt: str, speaker: str) -> None:
    """Whatever comes, it is refused or becomes an utterance with a glossary within its limit."""
    for file in (sound, wav()[:44] + sound):
        try:
            utterance = utterance_of({"prompt": prompt}, file, {SPEAKER_HEADER.lower(): speaker})
        except TranscriptionRefusedError:
            continue
        assert len(", ".join(utterance.glossary).encode()) <= GLOSSARY_MAX_BYTES
        assert utterance.speaker_id is None or utterance.speaker_id >= 0


def test_the_answer_is_whispers_verbose_json() -> None:
    """The figures that the guards need come along, how sure the language is, and how likely a sentence ends."""
    heard = recognition("hello there", mean_logprob=-0.3, language_probability=0.8, sentence_end_probability=0.6)
    told = json.loads(json.dumps(verbose_json(heard, recogniser="north/4711", reader_fault=None)))
    assert (told["text"], told["language"], told["language_probability"]) == ("hello there", "en", 0.8)
    assert told["sentence_end_probability"] == 0.6
    assert told["text_end"] is None
    assert told["segments"][0]["avg_logprob"] == -0.3
    assert (told["recogniser"], told["reader_fault"]) == ("north/4711", None)
    heard = replace(heard, text_end=TextEnd(0.7, 0.1))
    read = json.loads(json.dumps(verbose_json(heard, recogniser="", reader_fault=None)))
    assert read["text_end"] == {"ends": 0.7, "goes_on": 0.1}


def test_an_answer_has_no_type_of_our_own() -> None:
    """In pickle it would be there by its name, which an older release on the bot's machine may not know."""
    body = verbose_json(recognition("hello"), recogniser="north/4711", reader_fault=ReaderFault.FAILS)
    assert body["reader_fault"] == "fails"
    assert [code.name for code, _, _ in pickletools.genops(pickle.dumps(body)) if "GLOBAL" in code.name] == []
